package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// params are the names in parentheses before an arrow, and the index of the
// token after it; nil where something else stands here.
func (r *reader) params() (names []token, next int) {
	i := r.i + 1
	for {
		t := r.toks[i]
		if t.kind != tokName && t.kind != tokQuoted {
			return nil, 0
		}
		names = append(names, t)
		switch r.toks[i+1].kind {
		case tokComma:
			i += 2
		case tokClose:
			if r.toks[i+2].kind != tokArrow {
				return nil, 0
			}
			return names, i + 3
		default:
			return nil, 0
		}
	}
}

// lambda reads the body of a function, which begins at the token next.
func (r *reader) lambda(params []token, next int) (term.Term, bool) {
	r.i = next
	names := make([]string, len(params))
	for i, t := range params {
		names[i] = r.text(t)
		r.bind(names[i])
	}
	body, ok := r.expr()
	for i := len(names) - 1; i >= 0; i-- {
		r.unbind(names[i])
		body = &term.Lam{At: term.At(params[i].off), Param: names[i], Body: body}
	}
	return body, ok
}

func (r *reader) bind(name string) {
	if r.scope == nil {
		r.scope = map[string]int{}
	}
	r.scope[name]++
}

func (r *reader) unbind(name string) {
	if r.scope[name]--; r.scope[name] == 0 {
		delete(r.scope, name)
	}
}

// apart is how a value is taken apart, by what its pattern would begin with.
var apart = map[tokKind]string{
	tokOpen:      "Bind the whole and take it apart: let p = (1, 2), a = fst(p), b = snd(p) in a + b.",
	tokOpenList:  "Bind the whole and take it apart: let xs = [1, 2], a = nth(xs, 0), b = nth(xs, 1) in a + b, or match xs { [a, b] => a + b }.",
	tokOpenBrace: "Bind the whole and take it apart: let r = {a: 1, b: 2}, a = r.a, b = r.b in a + b, or match r { {a: a, b: b} => a + b }.",
}

// let reads bindings in sequence and the body they are for: each binding is a
// function applied at once.
func (r *reader) let() (term.Term, bool) {
	r.i++
	var names, binds []token
	var values []term.Term
	good := true
	for {
		t := r.tok()
		if t.kind != tokName && t.kind != tokQuoted {
			hint := "Write let x = 1, y = 2 in x + y."
			if t.kind == tokOpen || t.kind == tokOpenBrace || t.kind == tokOpenList {
				hint = apart[t.kind]
			} else if t.kind >= tokLet {
				hint = fmt.Sprintf("Take another name, or write this one in backquotes: `%s`.", spelled[t.kind])
			}
			good = r.unexpected("a name after let", hint)
			break
		}
		r.i++
		eq := r.tok()
		if eq.kind == tokOpen {
			good = r.unexpected(`"="`, "Bind a function: let f = (x, y) => x + y in f(1, 2).")
			break
		}
		if !r.expect(tokBind, "Write let x = 1 in x + 1.") {
			good = false
			break
		}
		r.binding = append(r.binding, r.text(t))
		v, ok := r.expr()
		r.binding = r.binding[:len(r.binding)-1]
		if !ok {
			good = false
			break
		}
		names, binds, values = append(names, t), append(binds, eq), append(values, v)
		r.bind(r.text(t))
		if !r.take(tokComma) {
			break
		}
	}
	var body term.Term
	if good {
		if good = r.expect(tokIn, "Write let x = 1, y = x + 1 in x * y."); good {
			body, good = r.expr()
		}
	}
	for i := len(names) - 1; i >= 0; i-- {
		name := r.text(names[i])
		r.unbind(name)
		body = &term.App{
			At:   term.At(binds[i].off),
			Func: &term.Lam{At: term.At(names[i].off), Param: name, Body: body},
			Arg:  values[i],
		}
	}
	return body, good
}

// conditional reads if … then … else …
func (r *reader) conditional() (term.Term, bool) {
	t := &term.If{At: term.At(r.tok().off)}
	r.i++
	var ok bool
	if t.Cond, ok = r.expr(); !ok || !r.expect(tokThen, "Write if a then b else c.") {
		return nil, false
	}
	if t.Then, ok = r.expr(); !ok || !r.expect(tokElse, "Write if a then b else c; both branches are needed.") {
		return nil, false
	}
	t.Else, ok = r.expr()
	return t, ok
}

// decimal reads a number with a fraction or an exponent.
func (r *reader) decimal(t token) (term.Term, bool) {
	if d, ok := decimalLiteral(r.src[t.off:t.end], term.At(t.off)); ok {
		return d, true
	}
	return nil, r.fail(t, &fault.Fault{
		Message:  fmt.Sprintf("a decimal has at most %d digits", maxDigits),
		Expected: fmt.Sprintf("at most %d digits", maxDigits),
		Hint:     "Compute large numbers in the program, with *.",
	})
}

func decimalLiteral(digits string, at term.At) (term.Term, bool) {
	d, ok := value.ParseDec(digits)
	if !ok {
		return nil, false
	}
	return &term.Dec{At: at, Unscaled: d.Unscaled(), Scale: d.Scale()}, true
}

// pipe reads the right side of |>. A primitive or an effect that lacks one
// operand takes the left side as that.
func (r *reader) pipe(left term.Term, op token) (term.Term, bool) {
	if c, ok := r.callee(); ok {
		t, done, ok := r.call(c, left)
		if !ok {
			return nil, false
		}
		if done {
			if k := r.tok().kind; levels[k] > levelPipe || k == tokOpen || k == tokDot {
				return nil, r.unexpected("another |> or the end of the expression", "Put the pipeline into parentheses: (x |> f) + 1.")
			}
			return t, true
		}
		if t, ok = r.suffixes(t); ok {
			t, ok = r.climb(t, levelPipe+1)
		}
		return &term.App{At: term.At(op.off), Func: t, Arg: left}, ok
	}
	f, ok := r.binary(levelPipe + 1)
	return &term.App{At: term.At(op.off), Func: f, Arg: left}, ok
}

// name reads a name that is no parameter: a variable or a primitive.
func (r *reader) name() (term.Term, bool) {
	if c, ok := r.callee(); ok {
		t, _, ok := r.call(c, nil)
		return t, ok
	}
	t := r.tok()
	r.i++
	name := r.text(t)
	if r.scope[name] == 0 && r.inQuote == 0 {
		r.freeName(name, t)
	}
	return &term.Var{At: term.At(t.off), Name: name}, true
}

// method notes that what is written as a method is a function, if there is one.
func (r *reader) method(key token, name, why string) {
	near := r.near(name, true)
	if _, row, ok := prim.Lookup(near); ok && r.scope[near] == 0 {
		r.note(int(key.off), "%s; did you mean %s?", why, Shape(row))
	} else if why != "" {
		r.note(int(key.off), "%s; help lists what there is", why)
	}
}

// function is a hint on how a method of another language is said.
func (r *reader) function(name string) string {
	near := r.near(name, true)
	if _, row, ok := prim.Lookup(near); ok && r.scope[near] == 0 {
		return fmt.Sprintf("Write %s.", Shape(row))
	}
	return "Write f(x), where f is a function or an operation; help lists what there is."
}

// freeName keeps a variable that nothing binds, and notes what it may be a slip for.
func (r *reader) freeName(name string, t token) {
	if _, ok := r.seen[name]; ok {
		return
	}
	if r.seen == nil {
		r.seen = map[string]struct{}{}
	}
	r.seen[name] = struct{}{}
	f := Free{Name: name, Off: int(t.off)}
	switch next := r.toks[r.i]; {
	case len(r.free) >= mostNotes:
	case slices.Contains(r.binding, name):
		r.note(f.Off, "a let isn't bound in itself: give the function itself as well, let %[1]s = (%[1]s, n) => if n < 1 then 0 else %[1]s(%[1]s, n - 1) in %[1]s(%[1]s, 9)", name)
		r.free = append(r.free, f)
		return
	case next.kind == tokDot && r.toks[min(r.i+2, len(r.toks)-1)].kind == tokOpen:
		verb := r.toks[r.i+1]
		if method := r.src[verb.off:verb.end]; name[0] >= 'A' && name[0] <= 'Z' {
			r.method(verb, method, fmt.Sprintf("there is no %s", name))
		} else {
			r.note(f.Off, "%q is not bound; an effect has a mark before it: !%s.%s(a)", name, name, method)
		}
		r.free = append(r.free, f)
		return
	}
	if t.kind == tokQuoted && strings.Contains(name, "${") {
		r.note(f.Off, `backquotes are for names: join strings with ++, as in "Hello " ++ r.name ++ to_text(r.n)`)
	}
	if t.kind == tokName && len(r.free) < mostNotes {
		f.Near = r.near(name, r.tok().kind == tokOpen)
	}
	r.free = append(r.free, f)
	if f.Near == "" {
		if _, known := prim.Meant(name); known && r.tok().kind == tokOpen {
			r.note(f.Off, "there is no %s; help lists what there is", name)
		}
		return
	}
	what := fmt.Sprintf("did you mean %s?", f.Near)
	if _, row, ok := prim.Lookup(f.Near); ok && r.scope[f.Near] == 0 {
		what = fmt.Sprintf("did you mean %s, as in %s?", f.Near, Shape(row))
	}
	r.note(f.Off, "%q is neither bound here nor a primitive; %s", name, what)
}
