package journal_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
)

// appendRun appends three events of a run, from its start to its end.
func appendRun(t *testing.T, j journal.Journal, run string, size int) {
	t.Helper()
	for _, k := range []journal.Kind{journal.RunStarted, journal.EffectRequested, journal.RunEnded} {
		if _, err := j.Append(journal.Noted, k, run, "", fmt.Appendf(nil, `{"pad":%q}`, strings.Repeat("x", size))); err != nil {
			t.Fatal(err)
		}
	}
}

// Of each run it is known whether all of it is there.
func TestReadRun(t *testing.T) {
	check := func(t *testing.T, j journal.Journal, run string, want journal.Extent, n int) {
		t.Helper()
		events, x, err := journal.ReadRun(j, run)
		if err != nil || x != want || len(events) != n {
			t.Errorf("of %q there are %d events, it %s, %v; expected %d, it %s", run, len(events), x, err, n, want)
		}
	}
	journals(t, func(t *testing.T, j journal.Journal) {
		appendRun(t, j, "a", 10)
		if _, err := j.Append(journal.Noted, journal.RunStarted, "b", "", []byte("{}")); err != nil {
			t.Fatal(err)
		}
		check(t, j, "a", journal.RunWhole, 3)
		check(t, j, "b", journal.RunOpen, 1)
		check(t, j, "c", journal.RunAbsent, 0)
		check(t, j, "", journal.RunAbsent, 0)
		if _, err := j.Append(journal.Written, journal.RunEnded, "b", "", []byte("{}")); err != nil {
			t.Fatal(err)
		}
		check(t, j, "b", journal.RunWhole, 2)
	})
	words := map[string]bool{}
	for x := range journal.RunOpen + 2 {
		words[x.String()] = true
	}
	if len(words) != 5 {
		t.Errorf("the extents are called %v", words)
	}

	// Wherever a store is cut, the runs across the cut are known as cut.
	for round := range full(5, 50) {
		pick := rand.New(rand.NewPCG(9, uint64(round)))
		a := newAged(t, 0)
		var open []string
		left := map[string]int{}
		for n := 0; n < 100; {
			if len(open) < 4 {
				run := fmt.Sprint("r", n)
				n++
				left[run] = 1 + pick.IntN(4)
				open = append(open, run)
				if _, err := a.Append(journal.Noted, journal.RunStarted, run, "", []byte("{}")); err != nil {
					t.Fatal(err)
				}
			}
			i := pick.IntN(len(open))
			run, kind := open[i], journal.EffectRequested
			if left[run]--; left[run] == 0 {
				kind = journal.RunEnded
				open = slices.Delete(open, i, i+1)
			}
			if _, err := a.Append(journal.Noted, kind, run, "", []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		before := map[string]int{}
		for _, e := range all(t, a.Store, journal.Query{}) {
			before[e.Run]++
		}
		a.pass(time.Hour)
		add(t, a.Store, journal.Written, journal.ServerStarted, "{}")
		sqlSize := int64(160 * (20 + pick.IntN(200)))
		keep := func(e *journal.Event) bool { return pick.IntN(5) == 0 } // even where somebody keeps parts
		if round%2 == 0 {
			keep = nil
		}
		retain(t, a.Store, journal.RetainOptions{MaxBytes: sqlSize, Keep: keep})
		found := map[journal.Extent]int{}
		for run, n := range before {
			events, x, err := journal.ReadRun(a.Store, run)
			if err != nil {
				t.Fatal(err)
			}
			found[x]++
			whole := len(events) == n && events[len(events)-1].Kind == journal.RunEnded
			if whole && x != journal.RunWhole && keep == nil || !whole && x == journal.RunWhole || x == journal.RunOpen && len(events) != n {
				t.Errorf("of %s %d events are left of %d, and it %s", run, len(events), n, x)
			}
		}
		if found[journal.RunWhole] == 0 || found[journal.RunAbsent]+found[journal.RunCut] == 0 {
			t.Errorf("%v", found)
		}
	}
}
