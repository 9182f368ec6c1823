package cost_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
)

const merge = "merge = (a, b) => match (a, b) { ([], _) => b; (_, []) => a; ([x, ...r], [y, ...s]) => if x <= y then [x, ...merge(r, b)] else [y, ...merge(a, s)] }"

// dividers is functions that take a list apart.
var dividers = map[string]cost.Class{
	"xs => if length(xs) <= 1 then xs else let m = length(xs) / 2, " + merge + " in merge(self(take(m, xs)), self(drop(m, xs)))": cost.Polynomial,
	"xs => if length(xs) < 2 then xs else let m = (length(xs) + 1) / 2, " + merge + " in merge(self(xs[:m]), self(xs[m:]))":      cost.Polynomial,
	`xs => if length(xs) <= 1 then xs else
		let merge = (a, b, acc) => if isEmpty(a) then append(reverse(acc), b) else if isEmpty(b) then append(reverse(acc), a)
			else if head(a) <= head(b) then merge(tail(a), b, cons(head(a), acc)) else merge(a, tail(b), cons(head(b), acc)), m = length(xs) / 2
		in merge(self(xs[:m]), self(xs[m:]), [])`: cost.Polynomial,
	"xs => match xs { [] => []; [p, ...rest] => [...self(filter(x => x < p, rest)), p, ...self(filter(x => x >= p, rest))] }":                                      cost.Polynomial,
	"xs => if isEmpty(xs) then [] else let p = head(xs), rest = tail(xs) in append(self(filter(x => x < p, rest)), cons(p, self(filter(x => not (x < p), rest))))": cost.Polynomial,
	"xs => if length(xs) <= 1 then xs else let p = xs[0], rest = xs[1:] in [...self(filter(x => p > x, rest)), p, ...self(filter(x => p <= x, rest))]":             cost.Polynomial,
	"xs => if length(xs) <= 1 then sum(xs) else let m = length(xs) / 2 in self(xs[:m]) + self(xs[m:])":                                                             cost.Polynomial,
	// Most of these go on for ever for some lists, or take exponentially long.
	"xs => if length(xs) <= 1 then 1 else let m = (length(xs) + 2) / 2 in self(xs[:m]) + self(xs[m:])":                                           cost.Budget,
	"xs => if length(xs) < 1 then 1 else let m = length(xs) / 2 in self(xs[:m]) + self(xs[m:])":                                                  cost.Budget,
	"xs => if length(xs) <= 1 then 1 else let m = length(xs) / 2, n = length(xs) / 3 in self(xs[:m]) + self(xs[n:])":                             cost.Budget,
	"xs => if length(xs) <= 1 then 1 else let ys = if xs[0] > 3 then xs[:5] else xs, m = length(ys) / 2 in self(ys[:m]) + self(xs[m:])":          cost.Budget,
	"xs => match xs { [] => 1; [p, ...rest] => self(filter(x => x <= p, rest)) + self(filter(x => x >= p, rest)) }":                              cost.Budget,
	"xs => match xs { [] => 1; [p, ...rest] => (let p = 1 in self(filter(x => x < p, rest))) + (let p = 9 in self(filter(x => x >= p, rest))) }": cost.Budget,
	"xs => match xs { [] => 1; [p, ...rest] => self(filter(x => x < p, rest)) + self(filter(x => x >= p, xs)) }":                                 cost.Budget,
	"xs => match xs { [] => 1; [p, ...rest] => sum(map(i => self(filter(x => x < p, rest)), [1, 2])) + self(filter(x => x >= p, rest)) }":        cost.Budget,
}

func numbers(d gen.Draw, n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprint(d(12) - 3)
	}
	return "[" + strings.Join(items, ",") + "]"
}

func TestDividers(t *testing.T) {
	n := must.Full(8, 1_000)
	for code, class := range dividers {
		for seed := range n {
			r := rand.New(rand.NewPCG(uint64(seed), 63))
			tr := trial{code: code, tool: "tool", inputs: []string{numbers(r.IntN, r.IntN(1+4*seed))}}
			if report, _ := tr.check(t); report.Class != class {
				t.Errorf("%s: %s, want %s: %s %v", code, report.Class, class, report.Steps, report.Why)
				break
			}
		}
	}
}

// divider makes a function that takes a list apart at random, rightly or not.
func divider(d gen.Draw) string {
	one := func(of ...string) string { return of[d(len(of))] }
	rest := one("tail(xs)", "xs[1:]", "drop(1, xs)", "xs[1:]", "xs", "tail(tail(xs))")
	op := func() string { return one("<", "<=", ">", ">=", "==", "!=") }
	part := func() string {
		switch d(6) {
		case 0, 1:
			return one("xs[:m]", "take(m, xs)", "xs[:m]", "slice(xs, 0, m)", "take(2, xs)")
		case 2, 3:
			return one("xs[m:]", "drop(m, xs)", "xs[m:]", "slice(xs, m, length(xs))", "rest")
		case 4:
			return "filter(x => " + one("x ", "p ", "x ") + op() + one(" p", " p", " x") + ", " + one("rest", "rest", "rest", "xs") + ")"
		}
		o := op()
		return "filter(x => x " + o + " p, rest)), self(filter(x => not (x " + o + " p), rest)"
	}
	m := one("length(xs) / 2", "length(xs) / 2", "(length(xs) + 1) / 2", "(length(xs) + 2) / 2", "length(xs) / 3", "1", "2", "length(xs) - 1", "length(rest) / 2", "length(xs) - length(xs) / 2")
	guard := one("length(xs) <= 1", "length(xs) < 2", "length(xs) < 1", "length(xs) <= 2", "not (length(xs) > 1)", "isEmpty(xs)", "length(xs) == 0", "length(xs) <= 1 or xs[0] > 5", "length(xs) <= 1 and xs == xs")
	calls := make([]string, 1+d(3))
	for i := range calls {
		calls[i] = "self(" + part() + ")"
	}
	body := strings.Join(calls, ", ")
	if list := d(3) > 0; list {
		all := strings.Split(body, ", self")
		if body = "[..." + strings.Join(all, ", ...self") + one("]", ", p]"); len(all) == 2 && d(2) == 0 {
			body = "merge(" + strings.Join(all, ", self") + ")"
		}
		return "xs => if " + guard + " then xs else let p = head(xs), rest = " + rest + ", m = " + m + ", " + merge + " in " + one("", "reverse(", "", "map(x => x + 1, ") + body
	}
	return "xs => if " + guard + " then " + one("1", "sum(xs)", "length(xs)") + " else let p = head(xs), rest = " + rest + ", m = " + m + " in " + one("sum", "max", "product", "length") + "([" + body + "])"
}

// TestDividersHold: functions made at random that take lists apart take no more than their bounds.
func TestDividersHold(t *testing.T) {
	n := must.Full(100, 20_000)
	bounded, all := 0, 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 64))
		tr := trial{code: divider(r.IntN), tool: "tool"}
		tr.code += strings.Repeat(")", strings.Count(tr.code, "(")-strings.Count(tr.code, ")"))
		if _, err := tr.compile(); err != nil {
			t.Fatalf("%s: %v", tr.code, err)
		}
		all++
		for _, size := range []int{0, 1, 2, 3, r.IntN(9), r.IntN(30)} {
			tr.inputs = []string{numbers(r.IntN, size)}
			if _, ok := tr.check(t); !ok {
				break
			}
			bounded++
		}
	}
	t.Logf("%d of %d have bounds", bounded/6, all)
	if bounded/6 < all/20 {
		t.Errorf("only %d of %d programs have bounds", bounded/6, all)
	}
}
