package mcpserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
)

// pagesOf is the numbers of the events that a call of journal gives with what it says
// to call next, and how many calls that took.
func pagesOf(t *testing.T, s *Server, arguments string) (seqs []uint64, calls int) {
	t.Helper()
	for arguments != "" {
		a := must(t, s, "journal", arguments)
		var page struct {
			Events []struct{ Seq uint64 }
			Next   struct{ Arguments json.RawMessage }
		}
		if err := json.Unmarshal(a.Structured, &page); err != nil {
			t.Fatal(a.Text, err)
		}
		for _, e := range page.Events {
			if slices.Contains(seqs, e.Seq) {
				t.Fatalf("%s: event %d comes twice", arguments, e.Seq)
			}
			seqs = append(seqs, e.Seq)
		}
		arguments = string(page.Next.Arguments)
		if calls++; calls > 1000 {
			t.Fatal("there is always another page")
		}
	}
	slices.Sort(seqs)
	return seqs, calls
}

// TestJournalOfTool: the effects of a tool are those of its runs and those it asked
// for in the runs of others, in pages of any size, from the newest or the oldest.
func TestJournalOfTool(t *testing.T) {
	w := newRecordedWorld(t, 1)
	s := w.server
	must(t, s, "evolve", `{"name":"inner","code":"k => try(!toy.get(k))","capabilities":["toy.get:notes/**"]}`)
	must(t, s, "evolve", `{"name":"outer","code":"k => (@inner(k), try(!toy.say(\"a\")))","capabilities":["call:inner","toy.get:notes/**"]}`)
	must(t, s, "evolve", `{"name":"pure","code":"k => k"}`)
	for i := range 12 {
		do(t, s, []string{"inner", "outer", "pure"}[i%3], `{"input":"notes/a"}`)
		do(t, s, "run", `{"code":"n => n","input":1}`)
	}
	// What is expected is worked out from the whole record.
	all, _, err := w.store.Read(journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	ofRun, of := map[string]string{}, map[uint64]string{}
	want := map[string][]uint64{}
	for _, e := range all {
		var d struct {
			Tool    string
			Request uint64
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		if e.Kind == journal.RunStarted {
			ofRun[e.Run] = d.Tool
		}
		asker := d.Tool
		if d.Request > 0 {
			asker = of[d.Request]
		}
		of[e.Seq] = asker
		group, _, _ := strings.Cut(string(e.Kind), ".")
		for _, tool := range []string{"inner", "outer", "pure"} {
			if e.Run != "" && (ofRun[e.Run] == tool || group == "effect" && asker == tool) {
				want[tool+" "+group] = append(want[tool+" "+group], e.Seq)
			}
		}
	}
	if len(want["inner effect"]) < 12 || len(want["outer effect"]) <= 8 || len(want["pure run"]) != 8 || want["pure effect"] != nil {
		t.Fatalf("the record is not what is to be tested: %v", want)
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		var tool, kind string
		fmt.Sscan(key, &tool, &kind)
		for _, more := range []string{"", `,"limit":1`, `,"limit":3`, `,"after":0`, `,"after":0,"limit":2`} {
			got, calls := pagesOf(t, s, fmt.Sprintf(`{"tool":%q,"kind":%q%s}`, tool, kind, more))
			if !slices.Equal(got, want[key]) {
				t.Errorf("%s%s: %v, expected %v", key, more, got, want[key])
			}
			if more == "" && calls != 1 {
				t.Errorf("%s: %d pages", key, calls)
			}
		}
	}
	if got, _ := pagesOf(t, s, `{"tool":"pure","kind":"effect"}`); got != nil {
		t.Errorf("what is pure asked for %v", got)
	}
	// Without a kind it is what became of the tool, as before.
	if got, _ := pagesOf(t, s, `{"tool":"inner"}`); len(got) != 1 {
		t.Errorf("inner was evolved once: %v", got)
	}
}

// TestJournalOfToolBounded: where a tool's runs are few among very many an answer
// looks at a part of them, and the next goes on.
func TestJournalOfToolBounded(t *testing.T) {
	w := newRecordedWorld(t, 1)
	s := w.server
	must(t, s, "evolve", `{"name":"first","code":"n => n"}`)
	must(t, s, "evolve", `{"name":"other","code":"n => n"}`)
	must(t, s, "run", `{"tool":"first","input":1}`)
	for range mostRunsLooked + 5 {
		must(t, s, "run", `{"tool":"other","input":1}`)
	}
	got, calls := pagesOf(t, s, `{"tool":"first","kind":"run.started"}`)
	if len(got) != 1 || calls != 2 {
		t.Errorf("%d events in %d calls, expected 1 in 2", len(got), calls)
	}
}
