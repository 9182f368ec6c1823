package text

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// What other languages write and these operations never take is read as what is meant:
// a comparator given to sort, lists of two where pairs are, an index beside each item.

// otherwise reports whether operands, by their form, are none that the row takes, so that
// the call is read by [reader.meant]; after :: it isn't.
func (k kinder) otherwise(row *prim.Row, args []term.Term) bool {
	switch row.Name {
	case "repeat", "join":
		return k.always(args[0], prim.KindString) && !k.always(args[1], prim.KindString) || row.Name == "repeat" && k.late(args)
	case "take", "drop":
		return k.sizes(args[1], args[0])
	case "chunk", "window":
		return k.sizes(args[0], args[1])
	case "has":
		return k.always(args[0], prim.KindList) || k.order(row, args) != nil
	case "isEmpty", "length":
		return k.always(args[0], prim.KindRecord) || row.Name == "isEmpty" && k.always(args[0], prim.KindString)
	case "round":
		return len(args) == 2 && tens(args[1]) > 0
	case "format":
		return len(args) == 2 && laid(args[1]) != nil
	case "pow":
		n, ok := args[1].(*term.Int)
		return ok && n.Value < 0 || negates(args[1]) != nil || isHalf(args[1])
	case "append":
		return k.never(args[1], prim.KindList) && !k.never(args[0], prim.KindList)
	case "pad_left", "pad_right":
		return isNumber(args[0]) || k.always(args[0], prim.KindNumber)
	case "format_time", "add_time", "diff_time", "weekday":
		return slices.ContainsFunc(args, func(t term.Term) bool { return k.special(t) == now })
	}
	return k.order(row, args) != nil
}

// never reports whether a term gives no value of the kinds, by its form; numbers are one kind.
func (k kinder) never(t term.Term, kinds prim.Kinds) bool {
	of := k.of(t) & prim.KindAny
	switch t.(type) {
	case *term.Int, *term.Big, *term.Dec:
		of = prim.KindNumber
	case *term.Bool:
		of = prim.KindBool
	case *term.Unit:
		of = prim.KindUnit
	}
	if of&prim.KindNumber != 0 {
		of |= prim.KindNumber
	}
	return of != 0 && of&kinds == 0
}

// orders is in which orders operands are looked at that can't be meant as they are written.
var orders = map[int][][]int{2: {{1, 0}}, 3: {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}}

// order returns the order in which a row can take operands, the one nearest to that in which
// they are written, where it can't take them in that, by their form; nil: it can, or there is
// none, or what it takes first isn't the same in all. What fold and scan begin with stands
// between the list and a function at the end.
func (k kinder) order(row *prim.Row, args []term.Term) (best []int) {
	if row.Form && row.Name != "fold" || row.Many || row.Beside || row.Name == "cons" || row.Name == "repeat" || len(args) < 2 || len(args) > min(3, len(row.Params)) {
		return nil
	}
	fits := func(order []int) bool {
		for i := range args {
			if k.never(args[order[i]], row.Params[i].Kinds) {
				return false
			}
		}
		return row.Passes != prim.PassesPair || len(args) < 3 || order[1] == 1 || !k.always(args[2], prim.KindFunction)
	}
	if fits([]int{0, 1, 2}) {
		return nil
	}
	for _, order := range orders[len(args)] {
		switch {
		case !fits(order):
		case best == nil:
			best = order
		case best[0] == order[0]:
		case row.Name == "set_nth" && order[0] == 2 && isPlace(args[2]):
		case row.Name == "set_nth" && order[0] == 2: // the list is last, as where n stands before one
			return order
		default:
			return nil
		}
	}
	return best
}

// isPlace reports whether a term is a name for the place of an item in its list.
func isPlace(t term.Term) bool {
	v, ok := t.(*term.Var)
	return ok && indexNames[v.Name]
}

// late reports whether repeat is given a variable or a field that may hold a text, and then how often.
func (k kinder) late(args []term.Term) bool {
	open := func(t term.Term) string { // the name of what isn't known
		of := k.of(t) & prim.KindAny
		if v, ok := t.(*term.Var); ok && (of == 0 || of == prim.KindAny) {
			return v.Name
		}
		if p, ok := t.(*term.Prim); ok && p.ID == prim.GetField {
			if s, ok := p.Args[1].(*term.Str); ok {
				return s.Value
			}
		}
		return ""
	}
	item := open(args[0])
	return item != "" && !sizeNames[item] && !isNumber(args[1]) && (k.always(args[1], prim.KindNumber) || sizeNames[open(args[1])])
}

// sizeNames is what how many items are taken is called.
var sizeNames = map[string]bool{"n": true, "k": true, "m": true, "size": true, "count": true, "width": true, "len": true, "num": true, "limit": true}

// sizes reports whether a tells how many, and not a list, and b is a list or not known to
// tell how many.
func (k kinder) sizes(a, b term.Term) bool {
	number := func(t term.Term) bool {
		v, ok := t.(*term.Var)
		return isNumber(t) || k.always(t, prim.KindNumber) || ok && k.of(t)&prim.KindAny == 0 && sizeNames[v.Name]
	}
	const many = prim.KindList | prim.KindString
	return number(a) && !number(b) || k.always(b, many) && !k.always(a, many)
}

// tens returns 100 where t is -2, and so on; 0 where it isn't negative, or far below 0.
func tens(t term.Term) int64 {
	n, ok := t.(*term.Int)
	if !ok || n.Value >= 0 || n.Value < -18 {
		return 0
	}
	return int64(math.Pow10(int(-n.Value)))
}

// isHalf reports whether t is 0.5 or the quotient of 1 and 2, with its digits.
func isHalf(t term.Term) bool {
	if d, ok := t.(*term.Dec); ok {
		return d.Scale == 1 && d.Unscaled.IsInt64() && d.Unscaled.Int64() == 5
	}
	if p, ok := t.(*term.Prim); ok && p.ID == prim.Ratio {
		one, _ := p.Args[0].(*term.Int)
		two, _ := p.Args[1].(*term.Int)
		return one != nil && two != nil && one.Value == 1 && two.Value == 2
	}
	return false
}

// keyOrder is the keys of the records in a list in the order in which they are written; turned is
// set where that of one record isn't the order of their text.
type keyOrder struct {
	keys   []string
	turned bool
}

// keysOf returns the keys of the records in a list; none where not all are known.
func (r *reader) keysOf(list term.Term) keyOrder {
	var all keyOrder
	known := true
	add := func(more keyOrder) {
		if known = known && more.keys != nil && len(all.keys)+len(more.keys) <= 128; !known {
			return
		}
		for _, k := range more.keys {
			if !slices.Contains(all.keys, k) {
				all.keys = append(all.keys, k)
			}
		}
		all.turned = all.turned || more.turned
	}
	switch t := list.(type) {
	case *term.Var:
		return r.keyed[scoped{t.Name, r.scope[t.Name]}]
	case *term.List:
		for _, item := range t.Items {
			add(writtenKeys(item))
		}
	case *term.Prim:
		switch row := prim.Get(t.ID); {
		case row.Keeps:
			return r.keysOf(row.Through(t.Args))
		case row.Name == "push" || row.Name == "append":
			if add(r.keysOf(t.Args[0])); row.Name == "push" {
				add(writtenKeys(t.Args[1]))
			} else {
				add(r.keysOf(t.Args[1]))
			}
		case row.Name == "map":
			f, _ := operand(t).(*term.Lam)
			if v, ok := operand(t).(*term.Var); ok {
				if lets := r.lets[v.Name]; len(lets) > 0 && lets[len(lets)-1].depth == r.scope[v.Name] {
					f = lets[len(lets)-1].value
				}
			}
			if f != nil {
				results(f.Body, nil, func(t term.Term) { add(writtenKeys(t)) })
			}
		}
	}
	if !known {
		return keyOrder{}
	}
	return all
}

// writtenKeys returns the keys of a record that is written out.
func writtenKeys(t term.Term) (w keyOrder) {
	rec, ok := t.(*term.Record)
	if !ok || len(rec.Fields) > 64 {
		return w
	}
	fields := slices.Clone(rec.Fields)
	slices.SortStableFunc(fields, func(a, b term.Field) int { return cmp.Compare(a.Value.Pos(), b.Value.Pos()) })
	for _, f := range fields {
		w.keys = append(w.keys, f.Key)
	}
	w.turned = !slices.IsSorted(w.keys)
	return w
}

// negates returns what t negates; nil: it is nothing written so.
func negates(t term.Term) term.Term {
	if p, ok := t.(*term.Prim); ok && p.ID == prim.Sub && isNegated(p) {
		return p.Args[1]
	}
	return nil
}

// meant returns what a call is read as whose operands its operation never takes; nil: none.
func (r *reader) meant(c callee, args []term.Term) term.Term {
	at := term.At(c.tok.off)
	if r.older || strings.HasPrefix(r.src[c.tok.off:], "::") {
		return nil
	}
	if name := c.row.Name; (name == "table" || name == "to_csv") && len(args) == 1 && r.inQuote == 0 {
		if rows := r.keysOf(args[0]); rows.turned {
			columns := &term.List{At: at}
			for _, k := range rows.keys {
				columns.Items = append(columns.Items, &term.Str{At: at, Value: k})
			}
			return operationOf(at, name, args[0], columns)
		}
	}
	if !r.kinds.otherwise(c.row, args) {
		return nil
	}
	if order := r.kinds.order(c.row, args); order != nil {
		moved := make([]term.Term, len(args))
		for i, from := range order {
			moved[i] = args[from]
		}
		t, _ := r.apply(c, moved)
		return t
	}
	switch c.row.Name {
	case "format_time", "add_time", "diff_time", "weekday":
		for i, t := range args {
			if r.kinds.special(t) == now {
				args[i] = operationOf(at, "get", t, &term.Str{At: at, Value: "rfc3339"})
			}
		}
		return operationOf(at, c.row.Name, args...)
	case "pad_left", "pad_right":
		return operationOf(at, c.row.Name, slices.Concat([]term.Term{operationOf(at, "to_text", args[0])}, args[1:])...)
	case "append":
		return operationOf(at, "push", args...)
	case "has":
		return operationOf(at, "contains", args...)
	case "repeat":
		t := operationOf(at, "repeat_text", args...)
		if !r.kinds.late(args) {
			return t
		}
		return bound(at, prim.Fresh("item", args[1]), args[0], func(x term.Term) term.Term {
			return bound(at, prim.Fresh("times", x), args[1], func(n term.Term) term.Term {
				kind := operationOf(at, "equal", operationOf(at, "type_of", again(x)), &term.Str{At: at, Value: "string"})
				return &term.If{At: at, Cond: kind, Then: operationOf(at, "repeat_text", x, n), Else: operationOf(at, "repeat", again(x), again(n))}
			})
		})
	case "join", "take", "drop", "chunk", "window":
		return operationOf(at, c.row.Name, args[1], args[0])
	case "isEmpty":
		var none term.Term = &term.Record{At: at}
		if r.kinds.always(args[0], prim.KindString) {
			none = &term.Str{At: at}
		}
		return operationOf(at, "equal", args[0], none)
	case "length":
		return operationOf(at, "length", operationOf(at, "keys", args[0]))
	case "format":
		return r.formatted(c, args[0], laid(args[1]))
	case "round": // to tens, hundreds and so on
		by, x := tens(args[1]), args[0]
		half := &term.Str{At: at, Value: "half_up"}
		if r.divides(x) {
			x = r.exact(x, &term.Int{At: at, Value: 20}, half)
		}
		whole := operationOf(at, "div_dec", x, &term.Int{At: at, Value: by}, &term.Int{At: at}, half)
		return &term.Prim{At: at, ID: prim.Mul, Args: []term.Term{operationOf(at, "to_int", whole, &term.Str{At: at, Value: "down"}), &term.Int{At: at, Value: by}}}
	case "pow": // with an exponent of a half, or below 0
		if isHalf(args[1]) {
			return operationOf(at, "sqrt", args[0])
		}
		over := func(base, n term.Term) term.Term {
			return operationOf(at, "div_dec", &term.Int{At: at, Value: 1}, operationOf(at, "pow", base, n), &term.Int{At: at, Value: 20}, &term.Str{At: at, Value: "half_even"})
		}
		if n, ok := args[1].(*term.Int); ok {
			return over(args[0], &term.Int{At: n.At, Value: -n.Value})
		}
		less := args[1].(*term.Prim)
		return bound(at, prim.Fresh("base", less), args[0], func(base term.Term) term.Term {
			return bound(at, prim.Fresh("exponent", base), less.Args[1], func(n term.Term) term.Term {
				less.Args[1] = again(n)
				more := &term.Prim{At: at, ID: prim.Gt, Args: []term.Term{n, &term.Int{At: at}}}
				return &term.If{At: at, Cond: more, Then: over(again(base), again(n)), Else: operationOf(at, "pow", again(base), less)}
			})
		})
	}
	return nil
}

// ofTwo reports whether a list is one of lists of two, or of such a list's items, which are
// written with two items or given by an operation.
func (k kinder) ofTwo(t term.Term) bool {
	switch t := t.(type) {
	case *term.Prim:
		switch row := prim.Get(t.ID); {
		case row.Keeps:
			return k.ofTwo(row.Through(t.Args))
		case row.Name == "map":
			f, ok := operand(t).(*term.Lam)
			return ok && k.listOfTwo(f.Body)
		case row.Name == "re_find_all":
			s, ok := t.Args[1].(*term.Str)
			return ok && groupsIn(s.Value) == 2
		case row.Name == "window":
			n, ok := t.Args[0].(*term.Int)
			return ok && n.Value == 2
		}
	case *term.List:
		return len(t.Items) > 0 && !slices.ContainsFunc(t.Items, func(x term.Term) bool { return !k.listOfTwo(x) })
	}
	return false
}

func (k kinder) listOfTwo(t term.Term) bool {
	two := true
	results(t, nil, func(t term.Term) {
		l, ok := t.(*term.List)
		p, is := t.(*term.Prim)
		two = two && (ok && len(l.Items) == 2 || is && prim.Get(p.ID).Name == "split")
	})
	return two
}

// indexNames is what the place of an item in its list is called.
var indexNames = map[string]bool{"i": true, "j": true, "idx": true, "index": true, "ix": true, "pos": true, "_i": true}

// indexed reads a function of an item and its place, which other languages pass to these.
// Where the items may be pairs, their parts stay what it takes.
func (r *reader) indexed(c callee, args []term.Term) term.Term {
	if c.row == nil || r.older || len(args) != 2 || c.row.Passes != prim.PassesItem {
		return nil
	}
	switch c.row.Name {
	case "map", "flat_map", "filter", "any", "all", "count":
	default:
		return nil
	}
	l, _ := args[0].(*term.Lam)
	two, ok := r.two[l]
	if !ok || two.params[0].At == two.params[1].At {
		return nil
	}
	of, method := r.kinds.ofPairs(args[1]), c.tok.off > 0 && r.src[c.tok.off-1] == '.'
	whole := method && indexNames[two.params[1].Name] && !r.before(15) && isParted(two.params[0].Pattern, two.body)
	if whole && of {
		two.params[0] = asPair(two.params[0])
	} else if of {
		if index := two.params[1].Name; method && indexNames[index] {
			r.note(int(c.tok.off), "%[1]s over pairs takes them apart: %[2]s is the second part of each; for its index write %[1]s((%[2]s, (a, b)) => …, enumerate(pairs))", c.row.Name, index)
		}
		return nil
	}
	at, item, place := l.At, prim.Fresh("item", two.body), prim.Fresh("place", two.body)
	never := neverPairs(args[1])
	if never = whole || never && !r.kinds.ofTwo(args[1]); !never && !indexNames[two.params[1].Name] {
		return nil
	}
	name := func(s string) term.Term { return &term.Var{At: at, Name: s} }
	part := func(of string, other term.Term) term.Term {
		if never {
			return other
		}
		pair := operationOf(at, "equal", operationOf(at, "type_of", name(item)), &term.Str{At: at, Value: "pair"})
		return &term.If{At: at, Cond: pair, Then: operationOf(at, of, name(item)), Else: other}
	}
	body := &term.App{At: at, Func: &term.App{At: at, Func: prim.FunctionOf(two.params, two.body), Arg: part("fst", name(item))}, Arg: part("snd", name(place))}
	both := prim.Pattern{At: at, IsPair: true, Items: []prim.Pattern{{At: at, Name: place, Bind: true}, {At: at, Name: item, Bind: true}}}
	f := prim.FunctionOf([]prim.Parameter{{At: at, Pattern: both}}, body)
	t := &term.Prim{At: term.At(c.tok.off), ID: c.id, Args: []term.Term{f, operationOf(at, "enumerate", args[1])}}
	if c.row.Name != "filter" {
		return t
	}
	return operationOf(at, "map", &term.Lam{At: at, Param: item, Body: operationOf(at, "snd", name(item))}, t)
}

// isParted reports whether what a parameter takes is looked at as a pair: by a pattern of two, or
// by nothing but x[0] and x[1] in t.
func isParted(p prim.Pattern, t term.Term) bool {
	if !p.Bind {
		return len(p.Items) == 2 && p.Rest == nil
	}
	found, alone := false, true
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		switch t := t.(type) {
		case *term.Var:
			alone = alone && t.Name != p.Name
		case *term.Lam:
			if t.Param == p.Name {
				return true
			}
		case *term.Prim:
			if t.ID == prim.At && len(t.Args) == 2 {
				v, name := t.Args[0].(*term.Var)
				n, number := t.Args[1].(*term.Int)
				if name && v.Name == p.Name && number && (n.Value == 0 || n.Value == 1) {
					found = true
					return true
				}
			}
		}
		term.Children(t, walk)
		return true
	}
	walk(t)
	return found && alone
}

// neverPairs reports whether no item of a list is a pair, by its form.
func neverPairs(t term.Term) bool {
	p, ok := t.(*term.Prim)
	if !ok {
		return false
	}
	of, _ := prim.Get(p.ID).Facts(p.Args)
	return of != nil && of.Kinds == prim.KindList && of.Item != nil && of.Item.Kinds&prim.KindPair == 0
}

// A key is what a comparator orders by: a term in the names of its first parameter, or its
// second. text is set where it may be anything that has an order.
type key struct {
	of           term.Term
	second, text bool
	falling      bool
}

// comparator finds what a function of two parameters orders by.
type comparator struct {
	names [2]map[string]string // of the parameters, each with that of the other
	lets  map[string]term.Term
}

// compared reads a list sorted by a function of two items; nil: it is none that is
// understood.
func (r *reader) compared(c callee, f, list term.Term) term.Term {
	l, _ := f.(*term.Lam)
	two, ok := r.two[l]
	if !ok || r.older || c.row.Name == "sort_by" && r.kinds.ofPairs(list) {
		return nil
	}
	var names [2][]string
	for i, p := range two.params {
		names[i] = namesOf(p.Pattern, nil)
	}
	order := comparator{[2]map[string]string{{}, {}}, map[string]term.Term{}}
	if len(names[0]) != len(names[1]) {
		return nil
	}
	for i := range names[0] {
		order.names[0][names[0][i]], order.names[1][names[1][i]] = names[1][i], names[0][i]
	}
	keys, ok := order.orders(two.body)
	if !ok || len(keys) == 0 {
		return nil
	}
	at := term.At(c.tok.off)
	for _, k := range slices.Backward(keys) {
		by := callee{tok: c.tok, name: "sort_by"}
		by.id, by.row, _ = prim.Lookup("sort_by")
		p := two.params[0]
		if k.second {
			p = two.params[1]
		}
		if k.falling && !k.text {
			k.of, k.falling = &term.Prim{At: at, ID: prim.Sub, Args: []term.Term{&term.Int{At: at}, k.of}}, false
		}
		if k.falling { // so that equals stay in their order
			list = operationOf(at, "reverse", list)
		}
		if list, ok = r.apply(by, []term.Term{r.ofParams([]prim.Parameter{p}, k.of), list}); !ok {
			return nil
		}
		if k.falling {
			list = operationOf(at, "reverse", list)
		}
	}
	return list
}

func namesOf(p prim.Pattern, names []string) []string {
	if p.Bind {
		names = append(names, p.Name)
	}
	for _, item := range p.Items {
		names = namesOf(item, names)
	}
	return names
}

// orders returns the keys that the number which a comparator gives stands for.
func (c *comparator) orders(t term.Term) ([]key, bool) {
	switch t := t.(type) {
	case *term.Var:
		if value := c.lets[t.Name]; value != nil {
			delete(c.lets, t.Name)
			return c.orders(value)
		}
	case *term.App:
		if l, ok := t.Func.(*term.Lam); ok {
			c.lets[l.Param] = t.Arg
			return c.orders(l.Body)
		}
	case *term.Prim:
		switch {
		case t.ID == prim.Sub && isZero(t.Args[0]):
			keys, ok := c.orders(t.Args[1])
			for i := range keys {
				keys[i].falling = !keys[i].falling
			}
			return keys, ok
		case t.ID == prim.Sub, t.ID == prim.Compare, c.less(t.ID):
			k, ok := c.key(t)
			return []key{k}, ok
		case t.ID == prim.Or:
			return c.both(t.Args[0], t.Args[1])
		}
	case *term.If:
		first, second := t.Then, t.Else
		cond, ok := t.Cond.(*term.Prim)
		if !ok {
			return nil, false
		}
		if same, not := cond.Args[0].(*term.Prim); not && cond.ID == prim.Not {
			cond = same
		} else {
			first, second = second, first
		}
		switch {
		case cond.ID == prim.Equal:
			if _, is := c.key(cond); !is && !isZero(cond.Args[1]) {
				return nil, false
			}
			return c.both(first, second)
		case cond != t.Cond:
			return nil, false
		case c.less(cond.ID):
			k, ok := c.key(cond)
			n, is := sign(t.Then)
			if !ok || !is || n == 0 {
				return nil, false
			}
			k.falling = k.falling != (n > 0)
			second = t.Else
			if rest, more := second.(*term.If); more {
				if _, is := sign(rest.Then); is {
					second = rest.Else
				}
			}
			if _, is := sign(second); is {
				return []key{k}, true
			}
			keys, ok := c.orders(second)
			return append([]key{k}, keys...), ok
		}
	}
	return nil, false
}

func (c *comparator) less(id term.ID) bool {
	return id == prim.Lt || id == prim.Lte || id == prim.Gt || id == prim.Gte
}

func (c *comparator) both(a, b term.Term) ([]key, bool) {
	first, ok := c.orders(a)
	rest, more := c.orders(b)
	return append(first, rest...), ok && more
}

// sign returns an integer that is written out, negative ones too.
func sign(t term.Term) (int64, bool) {
	if p, ok := t.(*term.Prim); ok && p.ID == prim.Sub && isZero(p.Args[0]) {
		n, ok := sign(p.Args[1])
		return -n, ok
	}
	n, ok := t.(*term.Int)
	if !ok {
		return 0, false
	}
	return n.Value, true
}

func isZero(t term.Term) bool {
	n, ok := t.(*term.Int)
	return ok && n.Value == 0
}

// key returns what a comparison of the two items orders by: the same of both.
func (c *comparator) key(t *term.Prim) (k key, ok bool) {
	of := t
	if p, ok := t.Args[0].(*term.Prim); ok && c.less(t.ID) && p.ID == prim.Compare && isZero(t.Args[1]) {
		of = p
	}
	k = key{of: of.Args[0], text: t.ID != prim.Sub, falling: t.ID == prim.Gt || t.ID == prim.Gte}
	for i := range 2 {
		if same, ok := renamed(of.Args[1], c.names[1-i], c.names[i]); ok && bytes.Equal(Canonical(same), Canonical(k.of)) {
			k.second, k.falling = i == 1, k.falling != (i == 1)
			return k, true
		}
	}
	return k, false
}

// renamed returns a copy of t with other names for those of from; ok is false where it has
// none of them, or one of those in without, or binds one.
func renamed(t term.Term, from, without map[string]string) (u term.Term, ok bool) {
	free := term.Free(t)
	used := func(m map[string]string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(m)), func(name string) bool { return slices.Contains(free, name) })
	}
	if !used(from) || used(without) {
		return nil, false
	}
	u, ok = term.Relocate(t, func(at term.At) term.At { return at }), true
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		switch t := t.(type) {
		case *term.Var:
			if to := from[t.Name]; to != "" {
				t.Name = to
			}
		case *term.Lam:
			ok = ok && from[t.Param] == "" && without[t.Param] == ""
		case *term.LetRec, *term.Quote:
			ok = false
		}
		return ok && term.Children(t, walk)
	}
	walk(u)
	return u, ok
}

// writtenArgs returns the operands as they are written in the parentheses before the token
// here; nil: there are none.
func (r *reader) writtenArgs() (all []string) {
	if r.i == 0 || r.toks[r.i-1].kind != tokClose {
		return nil
	}
	deep, end := 0, r.toks[r.i-1].off
	for i := r.i - 1; i >= 0; i-- {
		t := r.toks[i]
		switch {
		case t.kind.closes():
			deep++
		case t.kind.opens():
			deep--
		}
		if deep == 0 || deep == 1 && t.kind == tokComma {
			all = append(all, strings.TrimSpace(r.src[t.end:end]))
			end = t.off
		}
		if deep == 0 {
			slices.Reverse(all)
			return all
		}
	}
	return nil
}
