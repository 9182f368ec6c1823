package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A crowded journal takes no large texts while it is over its limit.
type crowded struct {
	*journal.Memory
	over bool
}

func (c *crowded) PutBlob(context.Context, []byte) (h journal.Hash, err error) {
	if c.over {
		err = errors.New("no room")
	}
	return h, err
}

// TestNotKept: of a large value that the journal didn't take, the record says that there
// is the hash alone: nobody looks for bytes that were never there.
func TestNotKept(t *testing.T) {
	var log bytes.Buffer
	j := &crowded{Memory: journal.NewMemory(1<<20, nil)}
	b := &Broker{journal: j, log: slog.New(slog.NewTextHandler(&log, nil))}
	large := value.Str(strings.Repeat("x", 2*whole))
	for _, over := range []bool{false, true} {
		j.over = over
		data, err := b.appendValue([]byte(`{"n":1`), "value", large, journal.MaxBlob)
		must.NoError(t, err)
		var said map[string]json.RawMessage
		must.NoError(t, json.Unmarshal(append(data, '}'), &said))
		if (said["value_hash"] != nil) != over || (said["value_blob"] != nil) == over {
			t.Errorf("over its limit %v, the record says %s", over, data)
		}
		r := Record{}
		waiting := map[uint64]*decision{1: {}}
		outcome := append(bytes.Replace(data, []byte(`"n":1`), []byte(`"request":1`), 1), '}')
		if err := r.readOutcome(outcome, waiting); err != nil || waiting[1].outcome.none() {
			t.Errorf("it is read as %+v, %v", waiting[1].outcome, err)
		}
	}
	if n := strings.Count(log.String(), "only the hash"); n != 1 {
		t.Errorf("the log says %s", log.String())
	}
}
