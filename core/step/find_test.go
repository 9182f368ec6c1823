package step

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestFind: what is looked for, forwards and backwards, from points far apart, is what one pass over all points finds,
// whether a summary was made before or not.
func TestFind(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"calls": "n =>\n let fib = n =>\n  if n < 2 then n\n  else fib(n - 1) + fib(n - 2) in\n fib(15)",
		"loops": "n =>\n let one = x =>\n  try(1 / (x - 500)) in\n range(0, 900)\n |> map(one)\n |> filter(x => has(x, \"ok\"))\n |> length",
		"par":   "n =>\n let f = k => fold((a, x) =>\n  a + x, 0, range(0, k)) in\n par(f(700), try(!fs.read(\"a\")), f(900), map(x =>\n  try(!fs.read(to_text(x))), range(0, 40)))",
		"fails": "n =>\n let down = k =>\n  if k == 0 then 1 / 0 else down(k - 1) in\n down(2000)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, err := core.CompileText("", []byte(code))
			must.NoError(t, err)
			in, _ := core.ParseInput([]byte("1"), core.InputData)
			rounds := []Round{{Program: program, Input: in, Budgets: core.Budgets{Steps: 1e7, Memory: 64 << 20, Depth: 10_000}}}
			var all []Point
			if err := New(rounds, 0).Each(t.Context(), func(p *Point) bool {
				all = append(all, *p)
				return true
			}); err != nil || len(all) < 3*blockPoints {
				t.Fatal(len(all), err)
			}
			bare, known := New(rounds, 0), New(rounds, 0)
			must.Succeed(t)(known.Summary(t.Context()))
			chance := rand.New(rand.NewPCG(1, 2))
			for _, n := range []uint64{0, uint64(chance.IntN(len(all))), uint64(len(all) - 1), 1 << 60} { // a summary keeps what is looked at first
				w := New(rounds, 0)
				sum, err := w.SummaryAt(t.Context(), n)
				if err != nil || !reflect.DeepEqual(w.blocks, known.blocks) || sum.Points != known.sum.Points || sum.Steps != known.sum.Steps || !slices.Equal(sum.Effects, known.sum.Effects) || !slices.Equal(sum.Faults, known.sum.Faults) {
					t.Fatalf("the summary is another one with %d: %v", n, err)
				}
				for at := max(n, window) - window; at < min(n+window+2, uint64(len(all))); at += 101 {
					got, err := w.At(t.Context(), at)
					if want, failed := bare.At(t.Context(), at); err != nil || failed != nil || !reflect.DeepEqual(got.View(), want.View()) {
						t.Errorf("with %d, point %d is %+v, not %+v: %v, %v", n, at, got, want, err, failed)
					}
				}
			}
			for range 5 {
				p := &all[chance.IntN(len(all))]
				for what, wanted := range map[string]Wanted{"over": Over(p), "out": Out(p), "effect": Acted, "fault": Failed, "line": Line("", 1+chance.IntN(6)), "any": Any} {
					next, previous := -1, -1
					for i := range all {
						switch is := wanted.is(&all[i]); {
						case is && i < int(p.N):
							previous = i
						case is && i > int(p.N) && next < 0:
							next = i
						}
					}
					for which, w := range map[string]*Walk{"without": bare, "with": known} {
						found := func(p *Point, err error) int {
							if err != nil {
								return -1
							}
							return int(p.N)
						}
						for range 2 { // from its window, or from elsewhere
							if got := found(w.Next(t.Context(), p.N, wanted)); got != next {
								t.Errorf("%s a summary: the next %s from %d is %d, not %d", which, what, p.N, got, next)
							}
							if got := found(w.Previous(t.Context(), p.N, wanted)); got != previous {
								t.Errorf("%s a summary: the %s before %d is %d, not %d", which, what, p.N, got, previous)
							}
							must.Succeed(t)(w.At(t.Context(), uint64(chance.IntN(len(all)))))
						}
						if near, err := w.Near(t.Context(), p.Steps); err != nil || near.Steps > p.Steps || near.N < p.N || near.N+1 < uint64(len(all)) && all[near.N+1].Steps <= p.Steps {
							t.Errorf("%s a summary: near %d is %+v: %v", which, p.Steps, near, err)
						}
					}
				}
			}
		})
	}
}
