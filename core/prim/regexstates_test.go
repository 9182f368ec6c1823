package prim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// TestStatesCount: a search by states finds the places that the machine finds, and comes
// to as many instructions, with few steps left, too, and where there are too many states.
func TestStatesCount(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(21, 7))
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	var some func(deep int) string
	some = func(deep int) string {
		if deep == 0 {
			return pick("a", "b", "é", ".", "[ab]", "[^a]", "\\w", "(?i:k)", "ab", "", "[b-ü]")
		}
		switch r.IntN(5) {
		case 0, 1:
			return some(deep-1) + some(deep-1)
		case 2:
			return "(" + some(deep-1) + "|" + some(deep-1) + ")"
		default:
			return "(" + some(deep-1) + ")" + pick("*", "+", "?", "*?", "+?", "{2}", "{0,3}", "")
		}
	}
	trace := func(p *pattern, s string, groups, test bool, left uint64) (out string, used uint64) {
		m := &Meter{Left: left}
		v, f := newSearch(p, s, groups, test, m)
		if f != nil {
			t.Fatal(f)
		}
		if test {
			out = fmt.Sprint(v.find(0))
		} else {
			f = v.all(func(match []int) *fault.Fault { out += fmt.Sprint(match); return nil })
		}
		if _, f = v.result(nil, f); f != nil {
			return string(f.Kind), 0
		}
		return out, m.Used()*perMatchStep + v.work
	}
	rounds, searched := 1_500, 0
	if os.Getenv("PIF_FULL") != "" {
		rounds = 20_000
	}
	for i := range rounds {
		source, n := some(1+r.IntN(4)), 30
		if i%100 == 0 {
			source, n = "("+source+"|[ab]*a[ab]{9}c)", 3000 // many states
		}
		p, f := newPattern("re_find", source)
		if f != nil || !p.states {
			continue
		}
		searched++
		machine, _ := newPattern("re_find", source)
		machine.states = false
		var text strings.Builder
		for range r.IntN(n) {
			text.WriteString(pick("a", "a", "b", "b", "c", "é", "K", "\u212a", "\xff", "ü", "😀"))
		}
		for _, left := range []uint64{Unlimited, uint64(r.IntN(200))} {
			for k := range 3 {
				got, work := trace(p, text.String(), k > 0, k == 2, left)
				want, works := trace(machine, text.String(), k > 0, k == 2, left)
				if got != want || work != works {
					t.Fatalf("%q in %q: %s with %d instructions, by the machine %s with %d", source, text.String(), got, work, want, works)
				}
			}
		}
	}
	if searched < rounds/3 {
		t.Errorf("only %d of %d patterns are searched by states", searched, rounds)
	}
}
