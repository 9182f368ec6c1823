package ui

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
)

// TestWeek: the rules are tried on what was done before them, on demand; and a plan that waits is shown as at the
// terminal.
func TestWeek(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	w.call(false, "keep", object{"k": "work/a", "v": 1})
	w.rules = []string{"work=note.get:work/**", "work>note.put"}
	c, err := caps.ParseRequests("note.put:work/**", "", w.writes.Kinds())
	w.fatal(err)
	w.writes.Confirm([]caps.Requests{c})
	w.call(false, "keep", object{"k": "work/a", "v": "as it is"})
	_, text := w.get("flow")
	if !strings.Contains(text, "Replay last week") || strings.Contains(text, "Would be") {
		t.Errorf("it isn't asked first: %s", text)
	}
	_, text = w.get("flow?week=1")
	for _, words := range []string{"<td class=\"num\">2</td><td class=\"num\">2</td>", "note.put", "<td>denied</td><td>work</td>", "<bdi>keep</bdi>"} {
		if !strings.Contains(text, words) {
			t.Errorf("it doesn't show %q: %s", words, text)
		}
	}
	_, text = w.get("questions")
	for _, words := range []string{"&#34;keep&#34; (version 1) wants to do 1 thing:", "key &#34;work/a&#34;", "mcp-pif approve p_"} {
		if !strings.Contains(text, words) {
			t.Errorf("it doesn't show %q: %s", words, text)
		}
	}
	if strings.Contains(text, "Nothing waits") {
		t.Error("it says that nothing waits")
	}
}
