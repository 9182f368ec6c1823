package text

import (
	"cmp"
	"fmt"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// passPair reads a function of two parameters that is written where it is passed a
// pair as one that takes the pair apart. Of others it is noted that they are not.
func (r *reader) passPair(c callee, args []term.Term) {
	row := c.row
	if row == nil || r.older || !r.kinds.takesPairs(row, args) {
		return
	}
	name, f := "f", args[0]
	if v, ok := f.(*term.Var); ok {
		if all := r.lets[v.Name]; len(all) > 0 && all[len(all)-1].depth == r.scope[v.Name] {
			let := all[len(all)-1]
			if let.two && r.src[v.At] != '`' {
				args[0] = r.ofPair(v)
				return
			}
			name = v.Name
			if let.value != nil {
				f = let.value
			}
		}
	}
	l, ok := f.(*term.Lam)
	if !ok {
		return
	}
	ofPairs := r.kinds.ofPairs(row.Through(args))
	passesPairs := row.PassesPairs(args) || row.Passes == prim.PassesItem && ofPairs
	if one, ok := r.one[l]; ok && f == args[0] && (ofPairs || row.Passes == prim.PassesPair) {
		args[0] = prim.FunctionOf([]prim.Parameter{asPair(one.params[0])}, one.body)
		return
	}
	two, ok := r.two[l]
	if ok && row.Name == "fold" {
		r.notePush(two)
	}
	if ofPairs && f == args[0] && row.Passes == prim.PassesPair && ok && two.params[1].IsList {
		two.params = []prim.Parameter{two.params[0], asPair(two.params[1])}
	}
	if ok && !passesPairs && two.params[0].At == two.params[1].At {
		return // max, that stands as a value
	}
	if of := r.many[l]; len(of.params) == 3 && row.Name == "fold" && f == args[0] && ofPairs && r.asParts(of) {
		acc, parts := of.params[0], prim.Pattern{At: of.params[1].At, IsPair: true, Items: []prim.Pattern{of.params[1].Pattern, of.params[2].Pattern}}
		two, ok = twoParams{params: []prim.Parameter{acc, {At: parts.At, Pattern: parts}}, body: of.body, open: of.open}, true
	} else if len(of.params) == 3 && row.Name == "fold" && f == args[0] { // with the index
		if at := int(c.tok.off); r.asParts(of) && (at == 0 || r.src[at-1] != '.') {
			r.note(args[0].Pos(), "the third parameter of the function of fold is the item's index; for the parts of pairs write fold((%s, (%s, %s)) => …, init, list)", of.params[0].Name, of.params[1].Name, of.params[2].Name)
		}
		acc, x, index := of.params[0], of.params[1], of.params[2]
		if ofPairs && x.IsList && !r.before(14) {
			x = asPair(x)
		}
		indexed := prim.Pattern{At: x.At, IsPair: true, Items: []prim.Pattern{index.Pattern, x.Pattern}}
		two, ok = twoParams{params: []prim.Parameter{acc, {At: x.At, Pattern: indexed}}, body: of.body, open: of.open}, true
		if of, tail := args[2].(*term.Prim); c.fromFirst && tail { // the first has the place 0
			args[2] = operationOf(of.At, "tail", operationOf(term.At(c.tok.off), "enumerate", of.Args[0]))
		} else {
			args[2] = operationOf(term.At(c.tok.off), "enumerate", args[2])
		}
	}
	if ok && f == args[0] {
		if so, acc := r.kinds.of(args[1])&prim.KindAny, two.params[0]; row.Passes == prim.PassesPair && acc.Bind && so != 0 && so&^(prim.KindString|prim.KindList) == 0 && r.depth < 200 {
			r.bind(acc.Name) // what it begins with is what it is
			r.kinds.is(acc.Name, so)
			r.reread(two.body)
			r.unbind(acc.Name)
		}
		var pair prim.Pattern
		pair.At, pair.IsList = cmp.Or(two.open, l.At), row.Passes != prim.PassesPair && !ofPairs && r.kinds.ofTwo(row.Through(args))
		pair.IsPair = !pair.IsList
		for _, p := range two.params {
			pair.Items = append(pair.Items, p.Pattern)
		}
		args[0] = prim.FunctionOf([]prim.Parameter{{At: l.At, Pattern: pair}}, two.body)
		if givesItems[row.Name] && !ofPairs && pair.IsPair && !r.before(14) {
			args[0] = ofTwoOrPair(args[0])
		}
	} else if inner, ok := l.Body.(*term.Lam); ok && isLam(inner.Body) && passesPairs {
		r.note(args[0].Pos(), "%[1]s passes its function two values, and this one has more parameters; for items with their index write %[1]s((acc, (i, x)) => …, init, enumerate(list))", row.Name)
	} else if ok && passesPairs {
		r.note(args[0].Pos(), "%s", OnePair(row.Name, name))
	}
}

// asParts reports whether the last two of three parameters may be the parts of a pair: both are
// names, and the last is none of an index.
func (r *reader) asParts(of twoParams) bool {
	return of.params[1].Bind && of.params[2].Bind && !indexNames[of.params[2].Name] && !r.before(14)
}

// givesItems is the operations that give items as they are after a function has seen them.
var givesItems = map[string]bool{"filter": true, "sort_by": true, "group_by": true, "min_by": true, "max_by": true, "find": true, "partition": true, "index_by": true, "group": true}

// ofTwoOrPair returns a function that gives f, which takes a pair, a list of two as one: the item
// stays the list that it is.
func ofTwoOrPair(f term.Term) term.Term {
	at := term.At(f.Pos())
	item := prim.Fresh("item", f)
	pattern := prim.Pattern{At: at, IsList: true}
	var parts []term.Term
	for _, name := range []string{"a", "b"} {
		pattern.Items = append(pattern.Items, prim.Pattern{At: at, Name: name, Bind: true})
		parts = append(parts, &term.Var{At: at, Name: name})
	}
	of := func() term.Term { return &term.Var{At: at, Name: item} }
	pair := prim.FunctionOf([]prim.Parameter{{At: at, Pattern: pattern}}, &term.Prim{At: at, ID: prim.Pair, Args: parts})
	isList := operationOf(at, "equal", operationOf(at, "type_of", of()), &term.Str{At: at, Value: "list"})
	return &term.Lam{At: at, Param: item, Body: &term.App{At: at, Func: f, Arg: &term.If{At: at, Cond: isList, Then: &term.App{At: at, Func: pair, Arg: of()}, Else: of()}}}
}

// ofPair returns the function of a pair that applies f, which a variable is bound to, to
// its parts.
func (r *reader) ofPair(f *term.Var) term.Term {
	name := prim.Fresh("pair", f)
	var t term.Term = f
	for _, part := range [2]string{"fst", "snd"} {
		t = &term.App{At: f.At, Func: t, Arg: operationOf(f.At, part, &term.Var{At: f.At, Name: name})}
	}
	return &term.Lam{At: f.At, Param: name, Body: t}
}

// OnePair describes an operation that passes a pair to a function of one value after
// the other, called so.
func OnePair(operation, name string) string {
	return fmt.Sprintf("%[1]s passes its function one pair, and this one takes one value after the other: write %[1]s((a, b) => %s(a, b), …)", operation, name)
}

// notePush notes that a function given to fold joins an item itself to the list so far.
func (r *reader) notePush(two twoParams) {
	results := []term.Term{two.body}
	if t, ok := two.body.(*term.If); ok {
		results = []term.Term{t.Then, t.Else}
	}
	for _, t := range results {
		p, ok := t.(*term.Prim)
		if !ok || prim.Get(p.ID).Name != "append" {
			continue
		}
		acc, is := p.Args[0].(*term.Var)
		if x, ok := p.Args[1].(*term.Var); ok && is && two.params[1].Bind && acc.Name == two.params[0].Name && x.Name == two.params[1].Name {
			r.note(p.Pos(), "append(%[1]s, %[2]s) joins %[2]s, a list; push(%[1]s, %[2]s) adds it as an item", acc.Name, x.Name)
		}
	}
}
