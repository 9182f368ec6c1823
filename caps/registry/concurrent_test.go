package registry

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// TestConcurrent: of several registries on one log no update is lost, and the
// numbers of each tool have no gap.
func TestConcurrent(t *testing.T) {
	l := new(memoryLog)
	const writers, each = 8, 60
	all := make([]*Registry, 3)
	for i := range all {
		all[i] = open(t, l, nil)
	}
	var mu sync.Mutex
	seen := map[Ref]int{}
	count := func(made *Tool, err error) {
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		seen[made.ref()]++
		mu.Unlock()
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			r := all[w%len(all)]
			for i := range each {
				// Some with a check, which goes beside others.
				o := Edit{}
				if i%2 == 0 {
					o.Check = func(*Tool, *Snapshot) *fault.Fault { return nil }
				}
				count(r.Evolve(def(fmt.Sprint("t", (w+i)%5), fmt.Sprint(w*1000+i)), o))
				if s := r.Snapshot(); s.Len() != len(s.All()) {
					t.Error("a snapshot miscounts")
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, r := range all {
		if _, err := r.Refresh(); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range all[0].Snapshot().All() {
		total += tool.Version
		for v := 1; v <= tool.Version; v++ {
			if seen[Ref{tool.Name, v}] != 1 {
				t.Errorf("%s@%d was made %d times", tool.Name, v, seen[Ref{tool.Name, v}])
			}
		}
		for _, r := range all[1:] {
			if other, _ := r.Snapshot().Get(tool.Name); other == nil || other.Version != tool.Version || other.Hash != tool.Hash {
				t.Errorf("%s is %+v for another", tool.Name, other)
			}
		}
	}
	if total != writers*each {
		t.Errorf("%d versions were counted, %d made", total, writers*each)
	}
}

// TestOnChange: who listens hears of every change, whoever made it, once.
func TestOnChange(t *testing.T) {
	l := new(memoryLog)
	mine, other := open(t, l, nil), open(t, l, nil)
	var heard []string
	mine.OnChange(func(names []string) { heard = append(heard, strings.Join(names, " ")) })
	evolve(t, mine, def("a", "1"))
	evolve(t, other, def("b", "1"))
	evolve(t, other, def("c", "1"))
	evolve(t, other, def("d", "1"))
	if _, err := other.Retire("d", Edit{}); err != nil {
		t.Fatal(err)
	}
	if changed, err := mine.Refresh(); !changed || err != nil {
		t.Error(changed, err)
	}
	if changed, err := mine.Refresh(); changed || err != nil {
		t.Error(changed, err)
	}
	if _, err := other.Retire("a", Edit{}); err != nil {
		t.Fatal(err)
	}
	evolve(t, mine, def("b", "2")) // hears of a first
	if want := []string{"a", "b c", "a", "b"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, expected %q", heard, want)
	}
}
