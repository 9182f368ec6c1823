package registry

import (
	"fmt"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// TestPanics: after a panic, which a server survives, changes and what is known of a
// tool can still be had: no lock is left.
func TestPanics(t *testing.T) {
	survived := func(f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Error("it didn't panic")
			}
		}()
		f()
	}
	r := New(nil)
	// The changes beside it make it wait for its turn in the end, which it then has.
	tries := 0
	survived(func() {
		r.Evolve(def("a", "x => x"), Edit{Check: func(*Tool, *Snapshot) *fault.Fault {
			if tries++; tries > optimists {
				panic("alone")
			}
			evolve(t, r, def("a", fmt.Sprintf("x => x + %d", tries)))
			return nil
		}})
	})
	if made := evolve(t, r, def("a", "x => x")); made.Version != optimists+1 {
		t.Errorf("version %d", made.Version)
	}

	f := &finding{}
	survived(func() { f.get(ofTypes, func(*known, parts) { panic("at work") }) })
	if _, ok := f.remembers(ofTypes); ok {
		t.Error("it knows what it didn't work out")
	}
	if k := f.get(ofTypes, func(k *known, _ parts) { k.problems = 7 }); k.problems != 7 {
		t.Errorf("%+v", k)
	}
}
