package normal

import (
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

func row(name string) term.ID {
	id, _, ok := prim.Lookup(name)
	if !ok {
		panic("normal: no row named " + name)
	}
	return id
}

// ids of rows with equations of their own.
var (
	idEqual, idTypeOf          = row("equal"), row("type_of")
	idGet, idPut, idDel, idHas = row("get"), row("put"), row("del"), row("has")
	idKeys, idValues           = row("keys"), row("values")
	idPush, idNth, idContains  = row("push"), row("nth"), row("contains")
	idRaise, idNoMatch         = row("raise"), row("no_match")
)

// integral is those that do so for integers, but not for decimals.
var integral = rows("add", "sub", "mul")

func rows(names ...string) map[term.ID]bool {
	m := map[term.ID]bool{}
	for _, name := range names {
		m[row(name)] = true
	}
	return m
}

// Bounds of what is computed beforehand: the result's bytes, and the steps.
const (
	maxResultBytes = 1 << 14
	maxResultSteps = 1000
)

// strict normalises a row of the table applied to values.
func (n *normaliser) strict(id term.ID, args []val, b *block) (val, bool) {
	if !n.spend(1 + n.bulk(id, args, b)) {
		return nil, false
	}
	r := prim.Get(id)
	if v, ok := n.part(id, args, b); ok {
		return v, true
	}
	if v, done, ok := n.compute(id, args, b); done {
		return v, ok
	}
	if id == prim.Compare && n.compare(args[0], args[1]) > 0 {
		v, ok := n.strict(id, []val{args[1], args[0]}, b)
		if !ok {
			return nil, false
		}
		return n.strict(prim.Sub, []val{lit{value.NewInt(0)}, v}, b)
	}
	id, args = n.orderOperands(id, args)
	if v, ok := n.identity(id, args, b); ok {
		return v, n.left >= 0
	}
	for i, a := range args {
		if b.kinds(a)&r.Params[i].Kinds == 0 {
			return n.fail(b, &comp{what: aPrim, id: id, args: args})
		}
	}
	if n.splits(id, args, b) {
		return n.split(id, args, b)
	}
	c := &comp{what: aPrim, id: id, args: args, result: &atom{kinds: resultKinds(id, args, b)}}
	if id == idRaise || id == idNoMatch {
		return n.fail(b, c)
	}
	c.total = n.total(id, args, b)
	key, keyed := n.key(id, args)
	if !keyed {
		return n.leaveAndLearn(b, c)
	}
	if a, ok := b.done(key); ok {
		return b.resolve(a), true
	}
	v, ok := n.leaveAndLearn(b, c)
	if ok {
		b.note(key, c.result)
	}
	return v, ok
}

// split leaves a row as tests and a computation that can't fail.
func (n *normaliser) split(id term.ID, args []val, b *block) (val, bool) {
	known := true
	for i, a := range args {
		k := prim.Get(id).Params[i].Kinds
		known = known && b.kinds(a)&^k == 0
		if !n.guard(a, k, b) {
			return nil, false
		}
	}
	if !known {
		// What is known now may decide it.
		return n.strict(id, args, b)
	}
	if id == prim.Concat {
		if v, done := n.joinedStrings(args, b); done {
			return v, v != nil && n.left >= 0
		}
	}
	key, keyed := n.key(id, args)
	if keyed {
		if a, ok := b.done(key); ok {
			return b.resolve(a), true
		}
	}
	c := &comp{what: aPrim, id: id, args: args, result: &atom{kinds: resultKinds(id, args, b)}, total: true}
	v, ok := n.leave(b, c)
	if ok && keyed {
		b.note(key, c.result)
	}
	return v, ok
}

// leaveAndLearn leaves a strict row and learns what it is that its operands must
// have been.
func (n *normaliser) leaveAndLearn(b *block, c *comp) (val, bool) {
	r := prim.Get(c.id)
	v, ok := n.leave(b, c)
	for i, a := range c.args {
		f := fact{kinds: r.Params[i].Kinds}
		if c.id == prim.Head || c.id == prim.Tail {
			f.some = true
		}
		b.learn(a, f)
	}
	return v, ok
}

// once leaves a computation that always comes to the same, or uses its result.
func (n *normaliser) once(b *block, c *comp, key string) (val, bool) {
	if a, ok := b.done(key); ok {
		return b.resolve(a), true
	}
	v, ok := n.leave(b, c)
	if ok {
		b.note(key, c.result)
	}
	return v, ok
}

func (b *block) done(key string) (*atom, bool) {
	n, around := b.n, 0
	for ; b != nil; b = b.parent {
		if a, ok := b.number[key]; ok {
			return a, true
		}
		around++
	}
	n.spend(around / aStep)
	return nil, false
}

func (b *block) note(key string, a *atom) {
	if b.number == nil {
		b.number = map[string]*atom{}
	}
	b.number[key] = a
}

// part takes structures apart that are known, and makes them.
func (n *normaliser) part(id term.ID, args []val, b *block) (val, bool) {
	switch id {
	case prim.Nil:
		return empty{}, true
	case prim.Pair:
		return &pair{args[0], args[1]}, true
	case prim.Cons:
		if b.kinds(args[1]) == prim.KindList {
			return &cons{args[0], args[1]}, true
		}
	case prim.Fst, prim.Snd:
		if p, ok := args[0].(*pair); ok {
			if id == prim.Fst {
				return b.resolve(p.a), true
			}
			return b.resolve(p.b), true
		}
	case prim.Head:
		if c, ok := args[0].(*cons); ok {
			return b.resolve(c.head), true
		}
	case prim.Tail:
		if c, ok := args[0].(*cons); ok {
			return b.resolve(c.tail), true
		}
	case prim.IsEmpty:
		switch a := args[0].(type) {
		case empty:
			return lit{value.Bool(true)}, true
		case *cons:
			return lit{value.Bool(false)}, true
		case *atom:
			if f := b.fact(a); f.some && f.kinds == prim.KindList {
				return lit{value.Bool(false)}, true
			}
		}
	case prim.Length:
		if spine(b, args[0]) {
			return lit{value.NewInt(int64(n.length(b, args[0])))}, true
		}
	case idTypeOf:
		if name, ok := typeName(b.kinds(args[0])); ok {
			return lit{value.Str(name)}, true
		}
	case idEqual:
		a, okA := args[0].(*atom)
		c, okB := args[1].(*atom)
		if okA && okB && a == c && b.kinds(a)&^(prim.KindNumber|prim.KindBool|prim.KindString|prim.KindUnit) == 0 {
			return lit{value.Bool(true)}, true
		}
		if x, y := b.kinds(args[0]), b.kinds(args[1]); x&y == 0 && (x&prim.KindNumber == 0 || y&prim.KindNumber == 0) {
			return lit{value.Bool(false)}, true
		}
	case idPush:
		if spine(b, args[0]) {
			return appendItem(b, args[0], args[1]), true
		}
	case idNth:
		return n.nth(args, b)
	case idGet, idHas, idPut, idDel, idKeys, idValues:
		return n.recordPart(id, args, b)
	}
	return nil, false
}

func (n *normaliser) length(b *block, v val) int {
	i := 0
	for {
		c, ok := b.resolve(v).(*cons)
		if !ok {
			return i
		}
		v = c.tail
		i++
	}
}

func appendItem(b *block, l, item val) val {
	if c, ok := b.resolve(l).(*cons); ok {
		return &cons{c.head, appendItem(b, c.tail, item)}
	}
	return &cons{item, empty{}}
}

func (n *normaliser) nth(args []val, b *block) (val, bool) {
	at, ok := args[1].(lit)
	if !ok {
		return nil, false
	}
	i, isInt := at.v.(value.Int)
	if !isInt {
		return nil, false
	}
	k, ok := i.Int64()
	l := args[0]
	for c, isCons := l.(*cons); ok && isCons && k >= 0; c, isCons = b.resolve(l).(*cons) {
		if k == 0 {
			return b.resolve(c.head), true
		}
		k--
		l = c.tail
	}
	return nil, false
}

// recordPart takes apart a record whose keys are known.
func (n *normaliser) recordPart(id term.ID, args []val, b *block) (val, bool) {
	r, ok := args[0].(*record)
	if !ok {
		return nil, false
	}
	switch id {
	case idKeys:
		var l val = empty{}
		for i := len(r.keys) - 1; i >= 0; i-- {
			l = &cons{lit{value.Str(r.keys[i])}, l}
		}
		return l, true
	case idValues:
		var l val = empty{}
		for i := len(r.vals) - 1; i >= 0; i-- {
			l = &cons{r.vals[i], l}
		}
		return l, true
	}
	k, ok := args[1].(lit)
	if !ok {
		return nil, false
	}
	name, ok := k.v.(value.Str)
	if !ok {
		return nil, false
	}
	i := 0
	for i < len(r.keys) && r.keys[i] < string(name) {
		i++
	}
	found := i < len(r.keys) && r.keys[i] == string(name)
	switch {
	case id == idHas:
		return lit{value.Bool(found)}, true
	case id == idGet && found:
		return b.resolve(r.vals[i]), true
	case id == idGet && len(args) == 3:
		return args[2], true
	case id == idPut:
		keys, vals := append([]string{}, r.keys[:i]...), append([]val{}, r.vals[:i]...)
		keys, vals = append(keys, string(name)), append(vals, args[2])
		if found {
			i++
		}
		return &record{append(keys, r.keys[i:]...), append(vals, r.vals[i:]...)}, true
	case id == idDel && !found:
		return r, true
	case id == idDel:
		return &record{without(r.keys, i), without(r.vals, i)}, true
	}
	return nil, false
}

// compute does what can be done beforehand; done is false where it can't.
func (n *normaliser) compute(id term.ID, args []val, b *block) (v val, done, ok bool) {
	r := prim.Get(id)
	if r.Eval == nil {
		return nil, false, false // it reasons about code, which takes a budget of its own
	}
	values := make([]value.Value, len(args))
	most := min(n.left, 10_000)
	left := most
	for i, a := range args {
		x, ok := ground(a, &left)
		if !ok {
			return nil, !n.spend((most - left) / 16), false
		}
		values[i] = x
	}
	size := int64(0)
	if r.Size != nil {
		size = r.Size(values)
	}
	if size > maxResultBytes ||
		r.Cost != nil && r.Cost(values) > maxResultSteps || r.Work != nil && r.Work(values, maxResultSteps) > maxResultSteps {
		return nil, false, false
	}
	if !n.spend(len(values) + (most-left)/16 + int(size)/256) {
		return nil, true, false
	}
	result, f := r.Eval(values)
	if f != nil {
		v, ok = n.fail(b, &comp{what: aPrim, id: id, args: args})
		return v, true, ok
	}
	x, ok := known(result)
	return x, ok, ok
}

// bulk returns the further steps of work on structures that are known, which grows
// with them: for so many parts that are looked at, or made.
func (n *normaliser) bulk(id term.ID, args []val, b *block) int {
	switch id {
	case idKeys, idValues, idPut, idDel, idGet, idHas:
		r, ok := args[0].(*record)
		switch {
		case !ok:
			return 0
		case id == idKeys || id == idValues:
			return len(r.keys) / 2
		case id == idPut || id == idDel:
			return len(r.keys) / 8
		}
		return len(r.keys) / 32
	case idPush:
		return n.length(b, args[0]) / 4
	case prim.Length, idNth:
		return n.length(b, args[0]) / 16
	}
	return 0
}
