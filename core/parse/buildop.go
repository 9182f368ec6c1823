package parse

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// operation builds the object i as the row id, whose key has the value v.
func (b *builder) operation(i uint32, id term.ID, v uint32, d dialect) term.Term {
	r := &prim.Table[id]
	at := term.At(b.nodes[i].off)
	value := &b.nodes[v]
	extra := b.nodes[i].count() - 1
	if r.Shape == prim.Lambda || r.With != "" || r.Shape == prim.Within && b.member(i, "with") != 0 {
		extra--
	}
	if extra > 0 {
		b.noteExtra(i, v, r)
	}
	switch r.Shape {
	case prim.Named:
		if id == prim.Dec {
			return b.dec(i, v)
		}
		t := b.vars.get()
		t.At, t.Name = at, b.string(v)
		b.names.Use(t.Name)
		return t
	case prim.Lambda:
		body := b.member(i, "body")
		if value.binds() && value.kind() != text && body != 0 {
			if t, ok := b.functionOf(i, v, body, d); ok {
				return t
			}
		}
		if value.kind() != text || body == 0 {
			return b.failShape(i, r, v, d)
		}
		t := b.lams.get()
		t.At, t.Param = at, b.string(v)
		from := b.names.Mark()
		t.Body = b.term(body, d)
		b.names.Bind(t.Param, from)
		return t
	case prim.Flag:
		switch {
		case id == prim.Self && value.kind() != yes && value.kind() != null:
			b.spread = true
			t := b.apps.get()
			*t = term.App{At: at, Func: &term.Self{At: at}, Arg: b.term(v, d)}
			return t
		case id == prim.Self:
			return &term.Self{At: at}
		}
		return b.prim(at, id, nil)
	case prim.NamedOrTerm:
		switch value.kind() {
		case text:
			return &term.CodeOf{At: at, Name: b.string(v)}
		case object:
			args := b.operands(1)
			args[0] = b.term(v, d)
			return b.prim(at, id, args)
		}
		return b.failShape(i, r, v, d)
	case prim.Recursive, prim.Bindings, prim.Branches, prim.Patterns:
		return b.sugar(i, r, v, d)
	case prim.UnaryOrArray:
		if value.kind() == array {
			if value.count() != 1 {
				return b.failShape(i, r, v, d)
			}
			v++
		}
		args := b.operands(1)
		args[0] = b.term(v, d)
		return b.prim(at, id, args)
	case prim.Within:
		return b.within(i, id, v, d)
	case prim.Unary:
		if id == prim.Quote {
			return &term.Quote{At: at, Body: b.quote(v)}
		}
		args := b.operands(1)
		args[0] = b.term(v, d)
		return b.prim(at, id, args)
	case prim.Array:
		if value.kind() != array || !r.Takes(value.count()) {
			return b.failShape(i, r, v, d)
		}
		args := b.operands(value.count())
		b.items(v, args, d)
		if r.PassesPairs(args) {
			b.notePair(v+1, r, args[0])
		}
		return b.prim(at, id, args)
	case prim.Members:
		if value.kind() != object {
			return b.failShape(i, r, v, d)
		}
		return b.record(i, v, d)
	}
	return b.buildKeyed(i, id, v, d)
}

// quote builds quoted code, whose variables aren't those around it.
func (b *builder) quote(v uint32) term.Term {
	around := b.names
	b.track()
	t := b.term(v, code)
	b.names = around
	return t
}

// track begins to note what is used, where that may matter.
func (b *builder) track() {
	b.names = nil
	if b.lets && !b.older {
		b.names = &prim.Names{Hidden: b.hidden}
	}
}

// within builds an eval, with what stands beside it.
func (b *builder) within(i uint32, id term.ID, v uint32, d dialect) term.Term {
	with := b.member(i, "with")
	if with == 0 {
		args := b.operands(1)
		args[0] = b.term(v, d)
		return b.prim(term.At(b.nodes[i].off), id, args)
	}
	if b.nodes[with].kind() != array {
		return b.failWith(with)
	}
	for j := range b.each(with) {
		if b.nodes[j].kind() != text {
			return b.failWith(j)
		}
	}
	args := b.operands(2)
	args[0] = b.term(v, d)
	args[1] = b.term(with, d)
	return b.prim(term.At(b.nodes[i].off), id, args)
}

// buildKeyed builds what is spelled with an object of operands, or with an array.
func (b *builder) buildKeyed(i uint32, id term.ID, v uint32, d dialect) term.Term {
	r := &prim.Table[id]
	at := term.At(b.nodes[i].off)
	value := &b.nodes[v]
	n := len(r.Params)
	var at3 [4]uint32
	operands := at3[:n]
	switch {
	case value.kind() == object && r.List != "" && b.member(v, r.List) != 0:
		return b.buildListed(i, id, v, d)
	case value.kind() == object:
		for k, p := range r.Params {
			if operands[k] = b.member(v, p.Name); operands[k] == 0 {
				return b.failShape(i, r, v, d)
			}
		}
		if value.count() > n {
			if r.Rank >= prim.NewRank {
				return b.failMember(b.strange(v, r), r)
			}
			b.noteMembers(v, r)
		}
	case value.kind() == array && r.Shape == prim.KeyedOrArray &&
		(value.count() == n || id == prim.App && value.count() > n):
		operands[0] = v + 1
		for k := 1; k < n; k++ {
			operands[k] = b.nodes[operands[k-1]].next
		}
	default:
		return b.failShape(i, r, v, d)
	}
	switch id {
	case prim.If:
		t := b.ifs.get()
		t.At = at
		t.Cond = b.term(operands[0], d)
		t.Then = b.term(operands[1], d)
		t.Else = b.term(operands[2], d)
		return t
	case prim.Continue:
		return &term.Continue{At: at, Input: b.term(operands[0], d)}
	case prim.App:
		t := b.apps.get()
		t.At = at
		t.Func = b.term(operands[0], d)
		t.Arg = b.term(operands[1], d)
		if value.kind() == array && value.count() > 2 {
			b.spread = true
			for j := b.nodes[operands[1]].next; j < value.next; j = b.nodes[j].next {
				outer := b.apps.get()
				outer.At, outer.Func = at, t
				outer.Arg = b.term(j, d)
				t = outer
			}
		}
		return t
	}
	args := b.operands(n)
	for k := range args {
		args[k] = b.term(operands[k], d)
	}
	return b.prim(at, id, args)
}

// buildListed builds what is spelled with an object that has its last operands in a list.
func (b *builder) buildListed(i uint32, id term.ID, v uint32, d dialect) term.Term {
	r := &prim.Table[id]
	list := b.member(v, r.List)
	last := len(r.Params) - 1
	if b.nodes[list].kind() != array || b.nodes[list].count() == 0 || b.member(v, r.Params[last].Name) != 0 {
		return b.failShape(i, r, v, d)
	}
	args := b.operands(last + b.nodes[list].count())
	for k, p := range r.Params[:last] {
		operand := b.member(v, p.Name)
		if operand == 0 {
			return b.failShape(i, r, v, d)
		}
		args[k] = b.term(operand, d)
	}
	if b.nodes[v].count() > len(r.Params) {
		return b.failMember(b.strange(v, r), r)
	}
	b.items(list, args[last:], d)
	return b.prim(term.At(b.nodes[i].off), id, args)
}

// strange returns the first key of the object v that the row has no parameter for.
func (b *builder) strange(v uint32, r *prim.Row) uint32 {
	for k := v + 1; k < b.nodes[v].next; k = b.nodes[k+1].next {
		if b.unusedBy(r, b.string(k)) {
			return k
		}
	}
	return v
}

func (b *builder) prim(at term.At, id term.ID, args []term.Term) term.Term {
	t := b.prims.get()
	t.At, t.ID, t.Args = at, id, args
	return t
}

// member finds the value of a key of the object i; 0: it has none.
func (b *builder) member(i uint32, name string) uint32 {
	end := b.nodes[i].next
	for k := i + 1; k < end; k = b.nodes[k+1].next {
		if n := &b.nodes[k]; n.meta&escaped == 0 {
			if b.src[n.off+1:n.end-1] == name {
				return k + 1
			}
		} else if b.string(k) == name {
			return k + 1
		}
	}
	return 0
}
