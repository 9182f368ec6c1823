package run_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
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
}
