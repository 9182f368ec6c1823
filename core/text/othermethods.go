package text

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// otherMethod returns how x.f(y) of another language is written, which is no operation of the
// same operands; empty: it is none of those.
func (r *reader) otherMethod(name string, x term.Term, args []term.Term) string {
	of := r.own(x, "s")
	var first string
	if len(args) > 0 {
		first = r.own(args[0], "a")
	}
	s, text := term.Term(nil), false
	if len(args) > 0 {
		s, text = args[0], isText(args[0])
	}
	switch {
	case name == "substr" && len(args) == 2:
		from, ok := args[0].(*term.Int)
		n, counts := args[1].(*term.Int)
		to := fmt.Sprintf("%s + %s", first, r.own(args[1], "n"))
		if ok && from.Value < 0 {
			return fmt.Sprintf("write %s[%s:][:%s]", of, first, r.own(args[1], "n"))
		}
		if ok && counts {
			to = strconv.FormatInt(from.Value+n.Value, 10)
		}
		return fmt.Sprintf("write slice(%s, %s, %s)", of, first, to)
	case (name == "strip" || name == "lstrip" || name == "rstrip") && len(args) == 1 && text:
		set := "[" + regexp.QuoteMeta(s.(*term.Str).Value) + "]+"
		pattern := map[string]string{"strip": "^" + set + "|" + set + "$", "lstrip": "^" + set, "rstrip": set + "$"}[name]
		return fmt.Sprintf(`write re_replace(%s, %s, "")`, of, AppendString(nil, pattern))
	case name == "index" && len(args) == 1:
		return fmt.Sprintf("write index_of(%s, %s)", of, first)
	case name == "reduceRight" && len(args) == 2:
		return fmt.Sprintf("write fold(f, %s, reverse(%s))", r.own(args[1], "init"), of)
	case name == "center" && len(args) > 0:
		fill := `" "`
		if len(args) > 1 {
			fill = r.own(args[1], "fill")
		}
		return fmt.Sprintf("write pad_right(pad_left(%[1]s, (length(%[1]s) + %[2]s) / 2, %[3]s), %[2]s, %[3]s)", of, first, fill)
	case name == "splice" && len(args) == 2:
		n := r.own(args[1], "n")
		return fmt.Sprintf("write take(%[3]s, drop(%[2]s, %[1]s)) for the items taken out, take(%[2]s, %[1]s) ++ drop(%[2]s + %[3]s, %[1]s) for those left", of, first, n)
	case name == "replace" && len(args) == 3:
		return "write " + replacedOnce(of, first, r.own(args[1], "b"))
	case (name == "rsplit" || name == "rpartition") && len(args) > 0:
		return fmt.Sprintf("write let parts = split(%s, %s) in [join(parts[:-1], %[2]s), parts[-1]]", of, first)
	case name == "insert" && len(args) == 2:
		return fmt.Sprintf("write take(%[2]s, %[1]s) ++ [%[3]s] ++ drop(%[2]s, %[1]s)", of, first, r.own(args[1], "x"))
	case name == "remove" && len(args) == 1:
		return fmt.Sprintf("write filter(x => x != %[2]s, %[1]s) for a list, del(%[1]s, %[2]s) for a record", of, first)
	case name == "reduceRight" && len(args) == 1:
		return fmt.Sprintf("write reverse(%s).reduce(f)", of)
	case name == "flat" && len(args) == 1 && isInt(args[0], 1):
		return fmt.Sprintf("write flatten(%s)", of)
	case name == "flat" && len(args) == 1:
		return fmt.Sprintf("write let flat = xs => flat_map(x => if is_list(x) then flat(x) else [x], xs) in flat(%s)", of)
	case name == "update" && len(args) == 1:
		return fmt.Sprintf("write {...%s, ...%s}", of, first)
	case name == "pop" && len(args) == 1 && isInt(args[0], -1):
		return fmt.Sprintf("write %[1]s[-1] for the item, %[1]s[:-1] for the others", of)
	case name == "pop" && len(args) == 1 && isInt(args[0], 0):
		return fmt.Sprintf("write %[1]s[0] for the item, %[1]s[1:] for the others", of)
	case name == "pop" && len(args) == 1:
		return fmt.Sprintf("write get(%[1]s, %[2]s) for the value, del(%[1]s, %[2]s) for the record without it", of, first)
	case name == "setdefault" && len(args) == 2:
		return fmt.Sprintf("write get(%s, %s, %s)", of, first, r.own(args[1], "d"))
	}
	return ""
}

// replacedOnce is how the first place of a text alone is replaced.
func replacedOnce(s, old, with string) string {
	return fmt.Sprintf("replace(s, old, new) for all; for the first: let i = index_of(%[1]s, %[2]s) in if i < 0 then %[1]s else %[1]s[:i] ++ %[3]s ++ %[1]s[i + length(%[2]s):]", s, old, with)
}

func isInt(t term.Term, n int64) bool {
	i, ok := t.(*term.Int)
	return ok && i.Value == n
}

func isText(t term.Term) bool {
	_, ok := t.(*term.Str)
	return ok
}

// untaken refuses what other languages write behind a parameter: a default, a type, a ? of what
// may be left out.
func (r *reader) untaken() bool {
	i := r.i
	switch name, next := r.src[r.toks[i-1].off:r.toks[i-1].end], r.toks[i]; next.kind {
	case tokBind:
		value := (around{r}).said(i+1, (around{r}).end(i+1, ","))
		return r.fail(next, &fault.Fault{
			Message: "a parameter has no default", Expected: `"," or ")"`,
			Hint: fmt.Sprintf("Take a record, of which a key may be missing: p => … p.%[1]s ?? %[2]s … in place of %[1]s.", name, value),
		})
	case tokAsk:
		return r.fail(next, &fault.Fault{
			Message: "a parameter can't be left out", Expected: `"," or ")"`,
			Hint: fmt.Sprintf("Take a record, of which a key may be missing: p => … p.%[1]s ?? null … in place of %[1]s.", name),
		})
	case tokColon:
		return r.fail(next, &fault.Fault{
			Message: "a parameter has no type", Expected: `"," or ")"`,
			Hint: "Leave the types away: (a, b) => a + b; the first item of a list and the others are [x, ...rest].",
		})
	}
	return true
}

// ofList reads list(xs), which is xs where that is a list by its form.
func (r *reader) ofList(c callee, x term.Term) term.Term {
	switch {
	case r.kinds.always(x, prim.KindList):
		return x
	case !r.kinds.always(x, prim.KindString):
		of := r.own(x, "xs")
		if r.kinds.always(x, prim.KindRecord) {
			r.fail(c.tok, &fault.Fault{Message: "list is of what is known to be a list or a text", Expected: "a list", Hint: fmt.Sprintf("Write keys(%[1]s), as Python has it, or entries(%[1]s) for its pairs.", of)})
			return x
		}
		r.fail(c.tok, &fault.Fault{Message: "list is of what is known to be a list or a text", Expected: "a list", Hint: fmt.Sprintf("Write %[1]s alone where it is a list, chars(%[1]s) for a text's characters, keys(%[1]s) for a record's keys.", of)})
		return x
	}
	return operationOf(term.At(c.tok.off), "chars", x)
}

// distinct returns what t has each value of once; nil: it is nothing of that kind.
func distinct(t term.Term) term.Term {
	if p, ok := t.(*term.Prim); ok && prim.Get(p.ID).Name == "unique" {
		return p.Args[0]
	}
	return nil
}

// numbers refuses - between what each value is there of once.
func (r *reader) numbers(op token, t term.Term) bool {
	p, ok := t.(*term.Prim)
	if !ok || p.ID != prim.Sub || r.before(14) {
		return true
	}
	a, b := distinct(p.Args[0]), distinct(p.Args[1])
	if a == nil || b == nil {
		return true
	}
	return r.fail(op, &fault.Fault{Message: "- is of numbers, and these are lists", Expected: "numbers", Hint: fmt.Sprintf("Write difference(%s, %s).", r.own(a, "a"), r.own(b, "b"))})
}

// chained refuses the comparison that stands after another, op.
func (r *reader) chained(op token, left, right term.Term) bool {
	hint, next := "Put one of them into parentheses: (a < b) == c.", r.tok().kind
	same, is := left.(*term.Prim)
	if equal, _ := infix(op.kind); equal == prim.Equal {
		hint = "Put one of them into parentheses: a == (b < c)."
	}
	if of, _ := infix(next); is && same.ID == prim.Equal && of == prim.Equal && next != tokNe && next != tokOther {
		hint = fmt.Sprintf("Write %s and %s == %s.", r.own(left, "a == b"), r.own(right, "b"), (around{r}).said(r.i+1, r.i+2))
	}
	return r.fail(r.tok(), &fault.Fault{Message: "comparisons don't chain", Expected: "one comparison", Hint: hint})
}

// maxCompared is how many comparisons may be chained: each looks through the others for a
// name that none of them has.
const maxCompared = 100

func (r *reader) tooMany() bool {
	return r.fail(r.tok(), &fault.Fault{Message: fmt.Sprintf("more than %d comparisons are chained", maxCompared), Expected: `"and" between them`, Hint: "Write a < b and b < c."})
}
