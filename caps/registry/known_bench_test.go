package registry

import (
	"fmt"
	"testing"
)

// BenchmarkEvolve is making tools of the usual size, in memory: what is found out of
// them is most of it.
func BenchmarkEvolve(b *testing.B) {
	for _, c := range []struct{ name, code string }{
		{"square", "n => n * n"},
		{"total", "xs => fold(p => fst(p) + snd(p), 0, xs)"},
		{"slug", `s => join("-", filter(w => length(w) > 0, split(replace(s, "_", " "), " ")))`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			r := New(nil)
			n := 0
			for b.Loop() {
				n++
				if _, err := r.Evolve(def(fmt.Sprint("t", n%5000), c.code), Edit{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
