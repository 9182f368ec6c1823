package journal_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
)

// several is n changes, each of which has its own number in its data.
func several(n int) []journal.Part {
	parts := make([]journal.Part, n)
	for i := range parts {
		data := fmt.Appendf(nil, `{"tool":"t%d","version":1,"number":0}`, i)
		parts[i] = journal.Part{Kind: journal.ToolEvolved, Data: data, Refs: []journal.Ref{{At: len(data) - 2, Part: i}}}
	}
	return parts
}

// TestChangeAll: several changes have numbers in a row, which they are told, and a
// chain that holds; all or none of them are appended.
func TestChangeAll(t *testing.T) {
	journals(t, func(t *testing.T, j journal.Journal) {
		for range 3 {
			if _, err := j.Append(journal.Noted, journal.RunStarted, "r", "", []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
		}
		first, err := j.ChangeAll(0, several(100))
		if err != nil || first != 4 {
			t.Fatalf("the first is %d, %v", first, err)
		}
		if n, err := j.Changed(); n != 103 || err != nil {
			t.Errorf("the newest change is %d, %v", n, err)
		}
		if _, err := j.ChangeAll(102, several(2)); !errors.Is(err, journal.ErrBehind) {
			t.Errorf("after a change that isn't the newest: %v", err)
		}
		nothing, noTool, noPlace, noPart := several(3), several(3), several(3), several(3)
		nothing[1].Kind = journal.RunStarted
		noTool[2] = journal.Part{Kind: journal.ToolEvolved, Data: []byte(`{}`)}
		noPlace[0].Refs[0].At--
		noPart[0].Refs[0].Part = 3
		for what, parts := range map[string][]journal.Part{
			"none": several(0), "one that changes nothing": nothing, "one about no tool": noTool,
			"a number where none belongs": noPlace, "a number of no part": noPart,
		} {
			if _, err := j.ChangeAll(103, parts); err == nil {
				t.Errorf("%s: it was taken", what)
			}
		}
		if first, err = j.ChangeAll(103, several(2)); first != 104 || err != nil {
			t.Errorf("then the first is %d, %v", first, err)
		}
		events, _, err := j.Read(journal.Query{})
		if err != nil || len(events) != 105 {
			t.Fatalf("%d events, %v", len(events), err)
		}
		var v journal.Verifier
		for i := range events {
			e := &events[i]
			if err := v.Next(e); err != nil {
				t.Error(err)
			}
			if e.Kind == journal.ToolEvolved && !strings.HasSuffix(string(e.Data), fmt.Sprintf(`"number":%d}`, e.Seq)) {
				t.Errorf("event %d was told another number: %s", e.Seq, e.Data)
			}
		}
	})
}

// TestChangeAllOrNone: where not all of it fits, nothing of it is there, and what is
// appended later goes on from what was.
func TestChangeAllOrNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := openStore(t, path, journal.Options{MaxBytes: 1 << 20})
	seq, err := s.Change(0, journal.ToolEvolved, []byte(`{"tool":"a","version":1}`))
	if err != nil {
		t.Fatal(err)
	}
	large := several(3000)
	for i := range large {
		large[i] = journal.Part{Kind: journal.ToolEvolved, Data: fmt.Appendf(nil, `{"tool":"t%d","text":"%s"}`, i, strings.Repeat("x", 1000))}
	}
	if _, err := s.ChangeAll(seq, large); !errors.Is(err, journal.ErrFull) {
		t.Errorf("it was taken: %v", err)
	}
	next, err := s.ChangeAll(seq, several(5))
	if err != nil || next != seq+1 {
		t.Errorf("then it goes on with %d, %v", next, err)
	}
	if _, err := s.Verify(context.Background()); err != nil {
		t.Error(err)
	}
}
