package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// full is a journal without room for large texts.
type full struct{ journal.Journal }

func (full) PutBlob(context.Context, []byte) (journal.Hash, error) {
	return journal.Hash{}, journal.ErrFull
}

// What nobody could read back is no task, and no sealed result.
func TestTextsAreKept(t *testing.T) {
	t.Parallel()
	p := newPosted(t, toSend, run.Options{})
	b := run.New(run.Options{Policy: p.policy, Journal: full{p.memory}, Flow: p.broker.Flow()})
	large := strings.Repeat("x", 300<<10)
	if b.CreateTask(&run.Task{ID: "a", Call: run.Call{Tool: "it", Arguments: []byte(large)}, Owner: "me"}) == nil {
		t.Error("a task was made")
	}
	if one, err := b.Seal(run.Sealed{Text: large}, 0); err == nil {
		t.Errorf("a result was sealed as %s", one.ID)
	}
	// A journal in memory, which keeps nothing beside its events, has them whole.
	must.NoError(t, p.broker.CreateTask(&run.Task{ID: "b", Call: run.Call{Tool: "it", Arguments: []byte(large)}, Owner: "me"}))
	one, err := run.FindTask(p.memory, "b")
	if err != nil || one == nil {
		t.Fatal(one, err)
	}
	if text, err := one.Arguments(p.memory); err != nil || string(text) != large {
		t.Errorf("its arguments are read as %d bytes, %v", len(text), err)
	}
	sealed, err := p.broker.Seal(run.Sealed{Text: large}, 0)
	must.NoError(t, err)
	if one, err := run.FindSealed(t.Context(), p.memory, sealed.ID); err != nil || one.Text != large {
		t.Errorf("what was sealed is read as %.100v, %v", one, err)
	}
}

// A label that the journal didn't take is recorded by who relies on it next.
func TestLabelIsRecorded(t *testing.T) {
	t.Parallel()
	broken := true
	j := journal.NewMemory(1<<20, func(e *journal.Event) error {
		if broken && e.Kind == journal.SessionLabelled {
			return journal.ErrFull
		}
		return nil
	})
	p := newPosted(t, toSend, run.Options{Journal: j})
	if p.broker.ShowNames([]string{"secret"}, "r") == nil {
		t.Error("it may be shown")
	}
	broken = false
	for range 2 {
		must.NoError(t, p.broker.ShowNames([]string{"secret"}, "r"))
	}
	if events, _, err := j.Read(journal.Query{Kind: journal.SessionLabelled}); err != nil || len(events) != 1 {
		t.Errorf("%d events, %v", len(events), err)
	}
}

// TestSealedInOnePass: however many sealed results are wanted, the record is read once, and not for who is gone.
func TestSealedInOnePass(t *testing.T) {
	t.Parallel()
	j := &reader{Journal: journal.NewMemory(1<<30, nil), kinds: map[journal.Kind]int{}}
	var ids []string
	for i := range 2500 {
		ids = append(ids, fmt.Sprintf("s_%d", i))
		data := fmt.Appendf(nil, `{"sealed":%q,"label":[],"value":%q}`, ids[i], fmt.Sprintf(`{"id":%q,"text":"t%d"}`, ids[i], i))
		_, err := j.Append(journal.Written, journal.ResultSealed, "", "", data)
		must.NoError(t, err)
	}
	var found []string
	each := func(ctx context.Context) error {
		return run.EachSealed(ctx, j, []string{ids[7], ids[2400], "s_none", ids[7], "s_240"}, func(id string, one *run.Sealed) { found = append(found, id+" "+one.Text) })
	}
	must.NoError(t, each(t.Context()))
	if reads, _ := j.counted(); reads != 25 || strings.Join(found, ",") != "s_2400 t2400,s_240 t240,s_7 t7" {
		t.Errorf("it read %d times, and found %q", reads, found)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := each(gone); !errors.Is(err, context.Canceled) || len(found) > 3 {
		t.Errorf("for who is gone it found %q, %v", found, err)
	}
}
