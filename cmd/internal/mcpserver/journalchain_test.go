package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
)

// TestJournalChain: the events of an answer can be checked one against the other by a
// program; whoever reads the text is spared that.
func TestJournalChain(t *testing.T) {
	s := newRecordedWorld(t, 1).server
	for range 3 {
		must(t, s, "run", `{"code":"1 + 1"}`)
	}
	a := must(t, s, "journal", `{"limit":5}`)
	var page struct{ Events []journal.Event }
	if err := json.Unmarshal(a.Structured, &page); err != nil {
		t.Fatal(err)
	}
	if len(page.Events) != 5 {
		t.Fatalf("%d events: %s", len(page.Events), a.Structured)
	}
	for i, e := range page.Events {
		if e.Hash == (journal.Hash{}) || i > 0 && (e.Prev != page.Events[i-1].Hash || e.Seq != page.Events[i-1].Seq+1) {
			t.Errorf("event %d doesn't follow the one before it: %s", e.Seq, a.Structured)
		}
	}
	if strings.Contains(a.Text, `"prev"`) || strings.Contains(a.Text, page.Events[0].Hash.String()) {
		t.Errorf("the text has the chain: %s", a.Text)
	}
	if !strings.Contains(a.Text, `"next"`) || !strings.Contains(string(a.Structured), `"next"`) {
		t.Errorf("next is in one alone: %s\n%s", a.Text, a.Structured)
	}
}
