package run_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// TestChangeByName: in a cluster a change is made anew only where one of the names that it
// was made from was changed meanwhile; what others made is there in any case.
func TestChangeByName(t *testing.T) {
	t.Parallel()
	m := order.NewMemory(order.MemoryOptions{})
	open := func(name string) *registry.Registry {
		s, err := journal.Open(filepath.Join(t.TempDir(), "j.db"), journal.Options{Order: m.Open(), Profile: "p", Node: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		r, _, err := registry.Open(run.Log(s), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, b := open("a"), open("b")
	evolve := func(r *registry.Registry, name, code string, check registry.Check) *registry.Tool {
		t.Helper()
		d := definition(name, code)
		if name == "calls" {
			d.Capabilities, d.Text = []string{"call:used"}, true
		}
		made, err := r.Evolve(d, registry.Edit{Check: check})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	evolve(a, "used", "1", nil)
	for _, c := range []struct {
		other string
		times int
	}{{"unrelated", 1}, {"used", 2}, {"calls", 2}} {
		times := 0
		made := evolve(a, "calls", fmt.Sprintf("x => @used(%d)", len(c.other)), func(*registry.Tool, *registry.Snapshot) *fault.Fault {
			if times++; times == 1 {
				evolve(b, c.other, fmt.Sprintf("%q", c.other), nil)
			}
			return nil
		})
		if times != c.times {
			t.Errorf("beside a change of %s it was tried %d times, expected %d", c.other, times, c.times)
		}
		if now, ok := a.Snapshot().Get("calls"); !ok || now != made {
			t.Errorf("beside a change of %s it isn't what is there", c.other)
		}
		if _, ok := a.Snapshot().Get(c.other); !ok {
			t.Errorf("%s isn't there", c.other)
		}
	}
}
