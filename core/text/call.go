package text

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A callee is what stands before parentheses and is no value: a primitive, a
// tool, an effect.
type callee struct {
	tok  token
	id   term.ID
	row  *prim.Row
	name string // as written
	op   string // an effect's operation
	// tool and effect are set where it is no primitive, fromFirst where a fold begins with the first item.
	tool, effect, fromFirst bool
}

// arity returns how many operands it takes.
func (c *callee) arity() (least, most int) {
	switch {
	case c.effect:
		return 1, 1
	case c.tool:
		return 1, MaxSource
	}
	return arity(c.row)
}

// arity returns how many operands a row takes in parentheses.
func arity(row *prim.Row) (least, most int) {
	switch {
	case row.Many, row.Beside:
		return len(row.Params), MaxSource
	case row.Min > 0:
		return row.Min, len(row.Params)
	}
	return len(row.Params), len(row.Params)
}

// lastIsSubject reports whether a pipeline's left side becomes the row's last
// operand: if that may be a list and the first can't be one, or if it is a record
// and the first a function. Otherwise it becomes the first.
func lastIsSubject(row *prim.Row) bool {
	if row == nil || len(row.Params) == 0 {
		return true
	}
	first, last := row.Params[0].Kinds, row.Params[len(row.Params)-1].Kinds
	if first == prim.KindFunction && last == prim.KindRecord {
		return true
	}
	if first&prim.KindAny == prim.KindAny {
		first = 0
	}
	return last&prim.KindList != 0 && last&prim.KindAny != prim.KindAny && first&prim.KindList == 0
}

// callable reports whether a row is written with its operands in parentheses,
// or without any where it has none.
func callable(row *prim.Row) bool {
	switch row.Shape {
	case prim.Named:
		return row.Name == "dec"
	case prim.Literal, prim.Lambda, prim.Members, prim.Dotted:
		return false
	}
	return row.With == ""
}

// callee reads what stands here if it is no value by itself.
func (r *reader) callee() (c callee, ok bool) {
	t := r.tok()
	c.tok = t
	switch t.kind {
	case tokName:
		c.name = r.src[t.off:t.end]
		if r.scope[c.name] > 0 {
			return c, false
		}
		if c.id, c.row, ok = prim.Lookup(c.name); ok {
			break
		}
		// The names the predecessor had for effects are calls of them.
		if _, alias := prim.Aliases[c.name]; alias && r.toks[r.i+1].kind == tokOpen {
			c.op, c.effect, ok = c.name, true, true
		} else {
			ok = r.borrowed(&c)
		}
	case tokPrim:
		n := r.toks[r.i+1]
		if !n.kind.word() {
			return c, false
		}
		name := r.src[n.off:n.end]
		c.name = "::" + name
		c.id, c.row, ok = prim.Lookup(name)
		if ok {
			r.i++
			c.tok.end = n.end
		}
	case tokTool:
		c.name, c.tool, ok = r.src[t.off:t.end], true, true
	case tokEffect:
		c.name, c.op, c.effect, ok = r.src[t.off:t.end], r.text(t), true, true
	}
	if ok {
		r.i++
	}
	return c, ok
}

// operative reads ::name, @name and !kind.verb.
func (r *reader) operative() (term.Term, bool) {
	if c, ok := r.callee(); ok {
		t, _, ok := r.call(c, nil)
		return t, ok
	}
	r.i++
	n := r.tok()
	near := ""
	if n.kind.word() {
		near = prim.Nearest(r.src[n.off:n.end])
	}
	hint := "Write ::length(xs) where a variable has the name of the primitive length, and length(xs) elsewhere."
	switch {
	case n.kind == tokMinus: // xs[::-1]
		hint = `Write reverse(xs) for a list, join(reverse(chars(s)), "") for a text.`
	case n.kind == tokInt: // xs[::2]
		hint = fmt.Sprintf("Write [x for i, x in enumerate(xs) if i %% %s == 0].", r.text(n))
	}
	return nil, r.fail(n, &fault.Fault{
		Message:  "expected the name of a primitive after ::, got " + r.got(n),
		Expected: "a primitive's name", Near: near, Hint: hint,
	})
}

// call reads the operands of c. piped, if not nil, is the left side of a
// pipeline, one more operand where c takes one more than the parentheses have;
// done tells that it was taken as that.
func (r *reader) call(c callee, piped term.Term) (t term.Term, done, ok bool) {
	if c.effect {
		if full, ok := prim.Aliases[c.op]; ok {
			c.op = full
		}
		if kind, verb, _ := strings.Cut(c.op, "."); kind == "" || verb == "" {
			return nil, false, r.fail(c.tok, &fault.Fault{
				Message:  fmt.Sprintf("the effect %s has no kind or no verb", strconv.Quote(shorter(c.op))),
				Expected: "kind.verb after !",
				Hint:     `Write !fs.read({path: "a.txt"}) for an effect, and not x for the opposite of x.`,
			})
		}
	}
	if c.tool {
		c.id, c.row = prim.Call, prim.Get(prim.Call)
	}
	if c.row != nil && !callable(c.row) {
		return nil, false, r.fail(c.tok, &fault.Fault{
			Message:  fmt.Sprintf("%s is no name in the text form: it is written %s", c.row.Name, Shape(c.row)),
			Expected: Shape(c.row),
			Hint:     fmt.Sprintf("Write it as %s; for a variable of that name write `%s`, or bind it.", Shape(c.row), c.row.Name),
		})
	}
	least, most := c.arity()
	switch {
	case !c.effect && !c.tool && c.id == prim.Self:
		return &term.Self{At: term.At(c.tok.off)}, false, true
	case most == 0:
		return &term.Prim{At: term.At(c.tok.off), ID: c.id}, false, true
	}
	var args []term.Term
	if r.tok().kind == tokOpen {
		quote, open := !c.effect && c.id == prim.Quote, r.tok().off
		back := func() {}
		if quote {
			back = r.quoting()
		}
		args, _, ok = r.args()
		back()
		if !ok {
			return nil, false, false
		}
		if all := r.given[open]; all != nil {
			if piped != nil {
				args = append(args, piped)
			}
			t, ok = r.byGiven(c.tok, c.name, args, all)
			return t, piped != nil, ok
		}
		if at := term.At(c.tok.end); len(args) == 0 && piped == nil && !r.older { // of nothing
			if c.effect {
				args = []term.Term{&term.Record{At: at}}
			} else if c.tool {
				args = []term.Term{&term.Unit{At: at}}
			}
		}
	} else if piped == nil && r.standsAlone(c) {
		return r.function(c), false, true
	} else if piped == nil || least > 1 {
		return nil, false, r.refuseUnapplied(c, least)
	}
	if c.row != nil && c.row.Name == "find" && !r.older && (piped == nil && len(args) == 2 || piped != nil && len(args) == 1) {
		args = append(args, &term.Unit{At: term.At(c.tok.off)}) // the default
	}
	if n := len(args) + 1; piped != nil && n >= least && n <= most && c.lacks(args) {
		if done = true; c.row != nil && c.row.Name == "find" {
			args = slices.Insert(args, 1, piped)
		} else if !c.tool && lastIsSubject(c.row) {
			args = append(args, piped)
		} else {
			args = slices.Insert(args, 0, piped)
		}
	}
	if c.row != nil && (c.row.Name == "sort" || c.row.Name == "sort_by") {
		if piped != nil && !done && len(args) == 1 {
			args, done = append(args, piped), true
		}
		if len(args) == 2 {
			f, list := args[0], args[1]
			if _, last := list.(*term.Lam); last {
				f, list = list, f
			}
			if t = r.compared(c, f, list); t != nil {
				return t, done, true
			}
		}
	}
	if len(args) == 1 && c.row != nil && !r.older {
		if args = r.lone(c, args); len(args) == 1 && !isLam(args[0]) {
			at := term.At(c.tok.off)
			switch c.row.Name {
			case "any", "all": // of truth values
				args = []term.Term{&term.Lam{At: at, Param: "x", Body: &term.Var{At: at, Name: "x"}}, args[0]}
			case "count":
				return operationOf(at, "length", args[0]), done, true
			}
		}
	}
	if n := len(args); n < least || n > most && c.id != prim.App {
		if t = r.part(c, args); t != nil {
			return t, done, true
		}
		return nil, false, r.wrongCount(c, args)
	}
	t, ok = r.apply(c, args)
	return t, done, ok
}

// lacks reports whether a pipeline's left side may be one more operand beside
// args: not for par, which lacks none, and for eval if the capabilities are there.
func (c *callee) lacks(args []term.Term) bool {
	switch {
	case c.effect || c.tool || len(args) == 0:
		return true
	case c.id == prim.Eval:
		_, ok := args[0].(*term.List)
		return ok
	}
	return !c.row.Many || len(args) < len(c.row.Params)
}

// apply makes the term of c and its operands.
func (r *reader) apply(c callee, args []term.Term) (term.Term, bool) {
	at := term.At(c.tok.off)
	switch {
	case c.effect:
		e, ok := term.NewEffect(at, c.op, args[0])
		if !ok {
			return nil, r.fail(c.tok, &fault.Fault{
				Message:  "the field in of an effect's arguments names a capability, in quotes",
				Expected: "a string that isn't empty",
				Hint:     `Write it as in !fs.read({in: "./out", path: "a.txt"}), or leave it out where the tool holds one capability of the kind.`,
			})
		}
		return e, true
	case c.tool:
		return &term.Prim{At: at, ID: c.id, Args: slices.Insert(args, 0, term.Term(&term.Str{At: at + 1, Value: r.text(c.tok)}))}, true
	}
	if c.row.Beside && len(args) > 1 {
		args = []term.Term{&term.List{At: at, Items: args}}
	}
	switch c.id {
	case prim.Quote:
		return &term.Quote{At: at, Body: args[0]}, true
	case prim.If:
		return &term.If{At: at, Cond: args[0], Then: args[1], Else: args[2]}, true
	case prim.Continue:
		return &term.Continue{At: at, Input: args[0]}, true
	case prim.App:
		t := args[0]
		for _, a := range args[1:] {
			t = &term.App{At: at, Func: t, Arg: a}
		}
		return t, true
	case prim.Dec:
		if s, ok := args[0].(*term.Str); ok {
			if r.grown > value.MaxGrown {
				return nil, r.fail(c.tok, prim.TooGrown())
			}
			if d, ok := prim.DecLiteral(at, s.Value, &r.grown); ok {
				return d, true
			}
		}
		return nil, r.fail(c.tok, &fault.Fault{
			Message:  "dec takes the digits of a decimal in quotes, at most 4,096 of them",
			Expected: "a number in quotes",
			Hint:     `Write 3.14 or dec("3"), and to_dec(x) to make a decimal of another value.`,
		})
	case prim.CodeOf:
		switch a := args[0].(type) {
		case *term.Str:
			return &term.CodeOf{At: at, Name: a.Value}, true
		case *term.Int, *term.Big, *term.Bool, *term.Unit, *term.List:
			return nil, r.fail(c.tok, &fault.Fault{
				Message:  "code_of takes a tool's name in quotes or an operation that gives one",
				Expected: "a name in quotes or an operation",
				Hint:     `Write code_of("square") or code_of(x).`,
			})
		}
	case prim.Eval:
		if _, ok := term.With(args); !ok {
			return nil, r.fail(c.tok, &fault.Fault{
				Message:  "the second operand of eval is a list of capabilities, written out in quotes",
				Expected: "a list of strings",
				Hint:     `Write eval(code, ["fs.read:./in"]), or eval(code) where it needs none.`,
			})
		}
	}
	if l, ok := args[0].(*term.Lam); ok && len(r.many[l].params) > 0 && c.row.Passes == prim.PassesItem && !r.older {
		of := r.many[l]
		if !r.kinds.takesPairs(c.row, args) || !r.kinds.ofPairs(c.row.Through(args)) && !indexNames[of.params[1].Name] { // the parts of a list
			args[0] = listFunction(l.At, of)
			return r.apply(c, args)
		}
		return nil, r.fail(c.tok, &fault.Fault{
			Message:  fmt.Sprintf("%s doesn't apply its function to three or more values", c.row.Name),
			Expected: "a function of one parameter, or of two that are a pair's parts",
			Hint:     "Write map((i, x) => …, enumerate(xs)) for items with their places, and map((a, b) => …, xs) for the parts of pairs.",
		})
	}
	if c.row.Name == "pow" {
		r.rate(args[0])
	}
	if t := cmp.Or(r.part(c, args), r.meant(c, args)); t != nil {
		return t, true
	}
	if !r.takesOne(c, args) {
		return nil, false
	}
	if c.row.Name == "re_replace" && !r.older && isLam(args[2]) && !strings.HasPrefix(c.name, "::") {
		return r.replacer(c, args)
	}
	r.fractions(c, args)
	if c.row.Name == "pow" && isHalf(args[1]) && !r.older && !strings.HasPrefix(c.name, "::") {
		return operationOf(at, "sqrt", args[0]), true
	}
	args = r.exactly(c, args)
	if t := r.indexed(c, args); t != nil {
		return t, true
	}
	r.passPair(c, args)
	r.noteOrder(c, args)
	r.noteGroup(c, args)
	r.noteReplaced(c, args)
	if sought[c.row.Name] {
		r.noteEscape(args...)
	}
	if to := r.boundLater(c); to > 0 && len(r.notes) == maxNotes {
		r.quiet++
	} else if to > 0 {
		line, _ := Position([]byte(r.src), int(r.toks[to].off))
		r.note(int(c.tok.off), "%s is the operation here: the let in line %d binds its function %[1]s too late", c.name, line)
	}
	return &term.Prim{At: at, ID: c.id, Args: args}, true
}

// textFirst is what takes a text and what is looked for in it.
var textFirst = map[string]bool{"split": true, "contains": true, "starts_with": true, "ends_with": true, "index_of": true, "last_index_of": true,
	"re_match": true, "re_find": true, "re_find_all": true, "re_split": true, "re_replace": true, "replace": true}

// patterned is a pattern that hardly is a text in which one is looked for.
var patterned = lazyregexp.New(`\\[dwsbDWSB]|^\^|\[\^|\[\w-\w|\(\?|\.[*+]`)

// isSought reports whether a literal can't be the text in which the row looks for what
// another operand is, since nothing but itself could be there: one character, for split
// several that are no letters, a pattern.
func isSought(row *prim.Row, s string, part term.Term) bool {
	switch {
	case strings.HasPrefix(row.Name, "re_"):
		return patterned.MatchString(s)
	case row.Name == "starts_with", row.Name == "ends_with":
		return true
	}
	p, ok := part.(*term.Str)
	return utf8.RuneCountInString(s) == 1 && (len(row.Params) == 2 || ok && s != p.Value) ||
		row.Name == "split" && s != "" && !strings.ContainsFunc(s, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) })
}

// isPattern reports whether t is written out as a pattern rather than as a text.
func isPattern(t term.Term) bool {
	s, ok := t.(*term.Str)
	return ok && patterned.MatchString(s.Value)
}

func isList(t term.Term) bool {
	_, ok := t.(*term.List)
	return ok
}

// noteOrder notes a pattern that stands where the text is taken, and a function of two
// parameters where it gets one item.
func (r *reader) noteOrder(c callee, args []term.Term) {
	row := c.row
	if row == nil || len(args) < 2 || len(row.Params) != len(args) {
		return
	}
	first, last := args[0], args[len(args)-1]
	if v, ok := first.(*term.Var); ok && row.Passes == prim.PassesItem && !r.kinds.takesPairs(row, args) {
		if all := r.lets[v.Name]; len(all) > 0 && all[len(all)-1].two && all[len(all)-1].depth == r.scope[v.Name] {
			r.note(v.Pos(), "the function of %s takes one item; where that is a pair, write ((a, b)) => %s(a, b)", row.Name, v.Name)
		}
	}
	if s, ok := first.(*term.Str); ok && textFirst[row.Name] && (!literally(last) || len(args) == 2 && isPattern(s) && !isPattern(last)) && isSought(row, s.Value, args[1]) {
		own := r.writtenArgs()
		if len(own) != len(args) {
			own = own[:0]
			for _, a := range args {
				own = append(own, string(Print(a)))
			}
		}
		if all := strings.Join(slices.Insert(own[:len(own)-1], 0, own[len(own)-1]), ", "); len(all) < 60 {
			r.note(int(c.tok.off), "%s takes the text first: %s(%s)", row.Name, row.Name, all)
		}
	}
	if row.Name == "repeat" && isZero(first) && !literally(last) {
		r.note(int(c.tok.off), "repeat(0, x) is always []; n copies of 0 is repeat(n, 0), here %s", r.own(&term.Prim{ID: c.id, Args: []term.Term{last, first}}, "with the number first"))
	}
	if row.Name == "set_nth" && isPlace(last) && !isPlace(args[1]) && !isNumber(args[1]) {
		r.note(int(c.tok.off), "the index stands before the value; where %s is the index write %s", string(Print(last)), r.own(&term.Prim{ID: c.id, Args: []term.Term{first, last, args[1]}}, "it in the second place"))
	}
	if f, isLam := first.(*term.Lam); isLam && row.Name == "map_values" && r.two[f].body != nil {
		r.note(f.Pos(), "the function of map_values takes the value alone; for the key as well write from_entries(map((k, v) => (k, …), entries(r)))")
	}
}

// refuseUnapplied refuses a primitive that is used as if it were a function.
func (r *reader) refuseUnapplied(c callee, least int) bool {
	if r.tok().kind == tokBad {
		r.badToken(r.tok())
		return false
	}
	names := make([]string, least)
	for i := range names {
		names[i] = string(rune('a' + i))
	}
	params := strings.Join(names, ", ")
	hint := fmt.Sprintf("Apply it, %s(%s), or make a function of it: ", c.name, params)
	if least == 1 {
		hint += fmt.Sprintf("a => %s(a).", c.name)
	} else {
		hint += fmt.Sprintf("(%s) => %s(%s).", params, c.name, params)
	}
	what := "a primitive: here it stands before its operands in parentheses"
	if c.effect {
		what = "an effect, which is no value: it stands before its operands in parentheses only"
	} else if c.tool {
		what = "a tool, which is no value: it stands before its operands in parentheses only"
	} else if t := r.tok(); least == 1 && (t.kind == tokName && r.scope[r.text(t)] > 0 || t.kind == tokInt || t.kind == tokString) {
		a := around{r}
		hint = fmt.Sprintf("Write %s(%s).", c.name, a.said(r.i, a.operandAfter(r.i)))
	} else if r.tok().kind == tokDot {
		hint = fmt.Sprintf("Write one function inside the other, x => %s(f(x)), or x |> f |> %[1]s.", c.name)
	} else if h := (around{r}).foreign(); c.name == "try" && h != "" {
		hint = h
	} else {
		hint += fmt.Sprintf(" For a variable of that name write `%s`, or bind it.", c.row.Name)
	}
	return r.fail(c.tok, &fault.Fault{
		Message:  c.name + " is " + what,
		Expected: fmt.Sprintf("%s(%s)", c.name, params),
		Hint:     hint,
	})
}

// wrongCount refuses a primitive with too few or too many operands.
func (r *reader) wrongCount(c callee, args []term.Term) bool {
	n := len(args)
	least, most := c.arity()
	want := strconv.Itoa(least)
	if c.tool || c.row != nil && c.row.Beside {
		want = "at least 1"
	} else if c.row != nil && c.row.Many {
		want = c.row.Operands()
	} else if most > least {
		want += " to " + strconv.Itoa(most)
	}
	if want += " operand"; !strings.HasSuffix(want, "1 operand") {
		want += "s"
	}
	f := &fault.Fault{
		Message:  fmt.Sprintf("%s takes %s, got %d", c.name, want, n),
		Expected: want,
		Got:      strconv.Itoa(n),
		Hint:     fmt.Sprintf("Write it with one operand, a record of its arguments: %s({k: 1}).", c.name),
	}
	if c.tool {
		f.Hint = fmt.Sprintf("Write %s(null) where it takes nothing, and %[1]s(a, b) where it takes two.", c.name)
	} else if !c.effect {
		f.Hint = fmt.Sprintf("Write it as %s.", Shape(c.row))
		wider, _ := byName(c.row.Name + "_indent")
		switch {
		case wider != nil && n >= len(wider.Params):
			f.Hint = fmt.Sprintf("Write it as %s.", Shape(wider))
		case slices.ContainsFunc(c.row.Params, func(p prim.Param) bool { return p.Name == "mode" }):
			f.Hint = fmt.Sprintf(`Write it as %s; a mode is "half_even", "half_up", "down", "up", "floor" or "ceiling".`, Shape(c.row))
		case c.id == prim.Concat && n == 1:
			list := r.own(args[0], "list")
			if own := r.writtenArgs(); len(own) == 1 && len(own[0]) <= 60 {
				list = own[0]
			}
			f.Hint = fmt.Sprintf("Write join(%[1]s, \"\") for a list of texts, flatten(%[1]s) for one of lists; a ++ b joins two.", list)
		case c.row.Beside:
			f.Hint = fmt.Sprintf("Write %[1]s(a, b), or %[1]s(list).", c.name)
		case n == 3 && c.row.Name == "sort_by":
			f.Hint = fmt.Sprintf("Write sorted(%s, key=%s, reverse=True) for the largest first.", r.own(args[1], "xs"), r.own(args[0], "f"))
		case n == most+1 && (c.row.Name == "sort_by" || c.row.Name == "sort"):
			sorted := r.own(&term.Prim{ID: c.id, Args: args[:most]}, Shape(c.row))
			f.Hint = fmt.Sprintf("Write reverse(%s), where the largest is to come first.", sorted)
		case n == 2 && c.row.Name == "sum" && isLam(args[1]):
			f.Hint = fmt.Sprintf("Write sum(map(%s, %s)).", r.own(args[1], "f"), r.own(args[0], "xs"))
		case n == 2 && c.row.Name == "sum" && (r.kinds.always(args[0], prim.KindList) || !isNumber(args[0]) && isNumber(args[1])):
			f.Hint = fmt.Sprintf("Write sum(%s) + %s.", r.own(args[0], "xs"), r.own(args[1], "start"))
		case n == 3 && c.row.Name == "pow":
			f.Hint = fmt.Sprintf("Write %s %% %s.", r.own(&term.Prim{ID: c.id, Args: args[:2]}, "pow(a, b)"), r.own(args[2], "m"))
		case n == 2 && c.row.Name == "trim" && isText(args[1]):
			chars := args[1].(*term.Str).Value
			set := regexp.QuoteMeta(strings.ReplaceAll(chars, "-", ""))
			if strings.Contains(chars, "-") {
				set += "-" // there it's no range
			}
			set = "[" + set + "]+"
			f.Hint = fmt.Sprintf(`Write re_replace(%s, %s, "").`, r.own(args[0], "s"), AppendString(nil, "^"+set+"|"+set+"$"))
		case n > 2 && c.row.Name == "zip":
			f.Hint = fmt.Sprintf("Write transpose(%s), a list of lists.", r.own(&term.List{Items: args}, "[a, b, c]"))
		case n == 4 && c.row.Name == "replace":
			f.Hint = "Write " + replacedOnce(r.own(args[0], "s"), r.own(args[1], "old"), r.own(args[2], "new")) + "."
		case n == 3 && c.row.Name == "split":
			f.Hint = r.splitOnce(args[0], args[1])
		case n == 3 && c.row.Name == "range":
			f.Hint = "Write map(i => from + i * step, range(0, n)), or filter(i => i % 2 == 0, range(from, to))."
		case n > most && most == 1 && c.row.Params[0].Kinds == prim.KindList:
			f.Hint = fmt.Sprintf("Write it as %s; a list is [a, b].", Shape(c.row))
		case n > most && most == 1:
			if f.Hint = "Write match try(f(x)) { {ok: v} => v; {error: e} => e.kind }: try gives one of these records."; c.id == prim.Try {
				break
			}
			if f.Hint = fmt.Sprintf("Write it as %s.", Shape(c.row)); c.row.Result&prim.KindFunction != 0 {
				f.Hint = fmt.Sprintf("Write it as %s; what it gives is applied as %s(a)(b).", Shape(c.row), c.name)
			}
		}
	}
	if to := r.boundLater(c); to > 0 {
		line, _ := Position([]byte(r.src), int(r.toks[to].off))
		f.Hint = fmt.Sprintf("%s is the operation here: the let in line %d binds its function %[1]s too late. Bind it before, or rename it.", c.name, line)
	}
	return r.fail(c.tok, f)
}

// splitOnce is the hint on a split that ends after so many parts.
func (r *reader) splitOnce(s, by term.Term) string {
	text, sep := r.own(s, "s"), r.own(by, "by")
	return fmt.Sprintf("Write split(%[1]s, %[2]s) for all parts, take(2, split(%[1]s, %[2]s)) for the first two, and for all that stands after the first %[2]s: let parts = split(%[1]s, %[2]s) in join(tail(parts), %[2]s).", text, sep)
}

// near returns what an unknown name may be a slip for; applied tells that arguments
// follow it.
func (r *reader) near(name string, applied bool) string {
	near := r.nearest(name, applied)
	if near == "var" && r.scope[near] == 0 { // what a name or a ref is in JSON
		return ""
	}
	return near
}

// nearest is near, with the forms of JSON.
func (r *reader) nearest(name string, applied bool) string {
	switch strings.ToLower(name) {
	case "none", "undefined", "nothing":
		return "null"
	}
	names := make([]string, 0, len(r.scope))
	for v := range r.scope {
		names = append(names, v)
	}
	slices.Sort(names)
	if applied {
		for i := range prim.Table {
			if row := &prim.Table[i]; row.Operation() && callable(row) {
				names = append(names, row.Name)
			}
		}
	}
	for _, list := range [...][]string{names, Keywords()} {
		for _, n := range list {
			if strings.EqualFold(n, name) {
				return n
			}
		}
	}
	if applied {
		if near, known := prim.Meant(name); known {
			return near
		}
	}
	near := prim.Closest(name, names)
	if meant, known := prim.Meant(name); known && near == "" {
		return meant // as an operation that stands as a value
	}
	if _, _, operation := prim.Lookup(near); applied && (near == "" || operation && r.scope[near] == 0) {
		near = prim.Nearest(name)
	}
	return near
}

// standsAlone reports whether c, which no parentheses follow, is a primitive that is
// read as a function of its operands: one that has no operator or operand beside it,
// since a function is none of its.
func (r *reader) standsAlone(c callee) bool {
	if c.tool { // as an argument: map(@slug, xs)
		before, after := r.toks[max(0, r.i-2)].kind, r.tok().kind
		return !r.older && (before == tokOpen || before == tokComma) && (after == tokClose || after == tokComma)
	}
	if c.row == nil || c.row.Many || c.row.Form && c.id != prim.Fold && c.id != prim.And && c.id != prim.Or {
		return false
	}
	first := r.i - 1
	if r.toks[first].off != c.tok.off {
		first-- // ::name
	}
	if first > 0 {
		if k := r.toks[first-1].kind; k == tokNot || levels[k] > levelPipe {
			return false
		}
	}
	switch k := r.tok().kind; {
	case r.begins(r.i):
		return true
	case k == tokDot, k == tokOpenList, k == tokName, k == tokQuoted, k == tokInt, k == tokDec, k == tokString, k == tokOpenBrace, k == tokBad:
		return false
	default:
		return levels[k] <= levelPipe
	}
}

// function returns a primitive as a value: x => length(x), (a, b) => add(a, b), without
// the operands that may be left out. Where a pair is passed to it, max is a function of
// the pair's parts too; see [reader.passPair].
func (r *reader) function(c callee) term.Term {
	n, _ := c.arity()
	if c.row.Name == "to_int" && !r.older {
		n = 1 // its mode has a default
	}
	f := r.functionOf(c, n)
	if c.row.Beside {
		r.two[f.(*term.Lam)] = r.two[r.functionOf(c, 2).(*term.Lam)]
	} else if n > 1 {
		if r.standing == nil {
			r.standing = map[term.Term]callee{}
		}
		r.standing[f] = c
	}
	return f
}

// takesOne makes an operation of several operands, that stands as the function to which c
// passes one item that is no pair, one of that item, with defaults for the others. It
// refuses one that has none.
func (r *reader) takesOne(c callee, args []term.Term) bool {
	op, ok := r.standing[args[0]]
	if !ok || r.older || c.row.Passes != prim.PassesItem || r.kinds.takesPairs(c.row, args) && (c.row.PassesPairs(args) || r.kinds.ofPairs(c.row.Through(args))) {
		return true
	}
	at := term.At(op.tok.off)
	operands := []term.Term{&term.Var{At: at, Name: "x"}}
	body := r.part(op, operands)
	if operands = r.lone(op, operands); body == nil && len(operands) == len(op.row.Params) {
		body, _ = r.apply(op, operands)
	}
	if body != nil {
		args[0] = &term.Lam{At: at, Param: "x", Body: body}
		return true
	}
	n, _ := arity(op.row)
	names := make([]string, n)
	for i := range names {
		names[i] = op.row.Params[i].Name
	}
	hint := ""
	if n == 2 {
		hint = fmt.Sprintf(", or (a, b) => %s(a, b) where its items are pairs", op.name)
	}
	if lastIsSubject(op.row) {
		names[n-1] = "x"
	} else {
		names[0] = "x"
	}
	return r.fail(op.tok, &fault.Fault{
		Message:  fmt.Sprintf("%s passes its function one item, and %s takes %d operands", c.row.Name, op.name, n),
		Expected: "a function of one item",
		Hint:     fmt.Sprintf("Write x => %s(%s) in its place%s.", op.name, strings.Join(names, ", "), hint),
	})
}

// functionOf returns the function that applies c to so many operands.
func (r *reader) functionOf(c callee, n int) term.Term {
	at := term.At(c.tok.off)
	params, operands := make([]prim.Parameter, n), make([]term.Term, n)
	for i := range params {
		name := "x"
		if n > 1 {
			name = string(rune('a' + i))
		}
		params[i] = prim.Parameter{At: at, Pattern: prim.Pattern{Name: name, Bind: true}}
		operands[i] = &term.Var{At: at, Name: name}
	}
	if n == 1 && c.row.Shape == prim.Array && !c.row.Beside && !c.tool {
		operands = r.lone(c, operands)
	}
	body, _ := r.apply(c, operands)
	return r.ofParams(params, body)
}
