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
func several(n int) func(first uint64) ([]journal.Event, error) {
	return func(first uint64) ([]journal.Event, error) {
		events := make([]journal.Event, n)
		for i := range events {
			events[i] = journal.Event{Kind: journal.ToolEvolved, Data: fmt.Appendf(nil, `{"tool":"t%d","version":1,"number":%d}`, i, first+uint64(i))}
		}
		return events, nil
	}
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
		wrong := errors.New("wrong")
		for what, list := range map[string]func(uint64) ([]journal.Event, error){
			"none":     several(0),
			"an error": func(uint64) ([]journal.Event, error) { return nil, wrong },
			"one that changes nothing": func(first uint64) ([]journal.Event, error) {
				events, err := several(3)(first)
				events[1].Kind = journal.RunStarted
				return events, err
			},
			"one about no tool": func(first uint64) ([]journal.Event, error) {
				events, err := several(3)(first)
				events[2].Data = []byte(`{}`)
				return events, err
			},
			"an error when it comes to it": func(first uint64) ([]journal.Event, error) {
				if first > 1 {
					return nil, wrong
				}
				return several(3)(first)
			},
		} {
			if _, err := j.ChangeAll(103, list); err == nil {
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
	large := func(first uint64) ([]journal.Event, error) {
		events, err := several(3000)(first)
		for i := range events {
			events[i].Data = fmt.Appendf(nil, `{"tool":"t%d","text":"%s"}`, i, strings.Repeat("x", 1000))
		}
		return events, err
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
