package run_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// refusing refuses one request for an effect.
type refusing struct {
	journal.Journal
	nth, seen int
}

func (j *refusing) AppendLater(s journal.Stage, k journal.Kind, id, branch string, data []byte) func() (uint64, error) {
	if k == journal.EffectRequested {
		if j.seen++; j.seen == j.nth {
			return func() (uint64, error) { return 0, errors.New("the disk is full") }
		}
	}
	return j.Journal.AppendLater(s, k, id, branch, data)
}

// Of a round's effects, the one that can't be recorded isn't performed; the others
// are, each when its request has its number.
func TestRoundWithoutItsRecord(t *testing.T) {
	for _, name := range []string{"memory", "file"} {
		for nth := 1; nth <= 4; nth++ {
			var j journal.Journal = journal.NewMemory(1<<20, nil)
			if name == "file" {
				store, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"), journal.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer store.Close()
				j = store
			}
			var performed, unnumbered atomic.Int64
			w := newWorld(t, run.Options{Journal: &refusing{Journal: j, nth: nth}}, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
				performed.Add(1)
				events, _, err := j.Read(journal.Query{Kind: journal.EffectRequested, Limit: 10, Last: true})
				if err != nil || len(events) != 3 {
					unnumbered.Add(1)
				}
				return echo(ctx, a)
			}, "toy:notes/**")
			w.evolve("four", `k => map(x => has(x, "ok"), par(try(!toy.get(k ++ "1")), try(!toy.get(k ++ "2")), try(!toy.get(k ++ "3")), try(!toy.get(k ++ "4"))))`, "toy.get:notes/**")
			want := []string{"true", "true", "true", "true"}
			want[nth-1] = "false"
			if got, f := w.run(context.Background(), "four", `"notes/a"`); f != nil || got != "["+strings.Join(want, ",")+"]" || performed.Load() != 3 || unnumbered.Load() != 0 {
				t.Errorf("%s, without request %d: %s, %v; %d were performed, %d of them before the record", name, nth, got, f, performed.Load(), unnumbered.Load())
			}
		}
	}
}
