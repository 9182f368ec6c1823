package run_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// document is an export of tools in a chain: each takes the code of the one before.
func document(t *testing.T, n int, description string) []byte {
	t.Helper()
	r := openTools(t, journal.NewMemory(1<<30, nil))
	for i := range n {
		d := definition(fmt.Sprintf("t%d", i), fmt.Sprint(i))
		d.Description = description
		if i > 0 {
			d.Code = fmt.Appendf(nil, `{"code_of":"t%d"}`, i-1)
		}
		must.Succeed(t)(r.Evolve(d, registry.Edit{}))
	}
	return registry.Encode(r.Snapshot())
}

// TestImportAtOnce: an import is one entry after another in the journal whatever
// else is appended, and what is bound within it is found again.
func TestImportAtOnce(t *testing.T) {
	const n = 50
	text := document(t, n, "")
	for sort, j := range journals(t) {
		r := openTools(t, j)
		if _, err := r.Evolve(definition("t0", `"old"`), registry.Edit{}); err != nil {
			t.Fatal(sort, err)
		}
		for range 7 { // so that numbers of events aren't those of changes
			must.Succeed(t)(j.Append(journal.Noted, journal.RunStarted, "r", "", []byte(`{}`)))
		}
		tools, err := registry.Decode(bytes.NewReader(text))
		must.NoError(t, err)
		added, replaced, same, err := r.Import(tools)
		if err != nil || added != n-1 || replaced != 1 || same != 0 {
			t.Fatalf("%s: %d added, %d replaced, %d the same: %v", sort, added, replaced, same, err)
		}
		events, _, err := j.Read(journal.Query{Changes: true, After: 1})
		if err != nil || len(events) != n || events[n-1].Seq-events[0].Seq != n-1 {
			t.Errorf("%s: %d events, %v", sort, len(events), err)
		}
		if strings.Contains(string(events[n-1].Data), `"event":0`) || !strings.Contains(string(events[n-1].Data), fmt.Sprintf(`"event":%d}`, events[n-2].Seq)) {
			t.Errorf("%s: the last is bound by %s", sort, events[n-1].Data)
		}
		again, problems, err := registry.Open(run.Log(j), nil)
		if err != nil || len(problems) > 0 {
			t.Fatal(sort, problems, err)
		}
		for _, r := range []*registry.Registry{r, again} {
			last, _ := r.Snapshot().Get(fmt.Sprintf("t%d", n-1))
			depth := 0
			for ; len(last.Bound) > 0; depth++ {
				for _, b := range last.Bound {
					last = b
				}
			}
			if depth != n-1 || last.Name != "t0" || last.Version != 2 {
				t.Errorf("%s: at the end of the chain, after %d, is %s@%d", sort, depth, last.Name, last.Version)
			}
		}
		if _, _, same, err = r.Import(tools); same != n || err != nil {
			t.Errorf("%s: again %d are the same: %v", sort, same, err)
		}
	}
}

// TestImportBesideOthers: where another process changes the tools meanwhile, all of
// the import comes after it; where it can't be kept, nothing of it is there.
func TestImportBesideOthers(t *testing.T) {
	tools, err := registry.Decode(bytes.NewReader(document(t, 20, "")))
	must.NoError(t, err)
	path := filepath.Join(t.TempDir(), "j.db")
	j := openStore(t, path)
	r, _, err := registry.Open(run.Log(meddled{j, openTools(t, openStore(t, path))}), nil)
	must.NoError(t, err)
	if added, _, _, err := r.Import(tools); err != nil || added != 20 {
		t.Fatalf("%d were added: %v", added, err)
	}
	events, _, err := j.Read(journal.Query{Changes: true})
	if err != nil || len(events) != 21 || events[0].Tool() != "other" {
		t.Errorf("the changes are %d, the first of %s; %v", len(events), events[0].Tool(), err)
	}

	small, err := journal.Open(filepath.Join(t.TempDir(), "small.db"), journal.Options{MaxBytes: 64 << 10})
	must.NoError(t, err)
	defer small.Close()
	if tools, err = registry.Decode(bytes.NewReader(document(t, 20, strings.Repeat("x", 8<<10)))); err != nil {
		t.Fatal(err)
	}
	full := openTools(t, small)
	if _, _, _, err := full.Import(tools); err == nil || !strings.Contains(err.Error(), "nothing was imported") {
		t.Errorf("it was kept: %v", err)
	}
	if n := full.Snapshot().Len(); n > 0 {
		t.Errorf("%d tools are there", n)
	}
	if events, _, err := small.Read(journal.Query{Changes: true}); err != nil || len(events) > 0 {
		t.Errorf("%d events are there, %v", len(events), err)
	}
}

// A meddled journal has another process evolve a tool before each import until there
// is one.
type meddled struct {
	*journal.Store
	other *registry.Registry
}

func (m meddled) ChangeAll(after uint64, list []journal.Part, read ...string) (uint64, error) {
	if _, there := m.other.Snapshot().Get("other"); !there {
		if _, err := m.other.Evolve(definition("other", "1"), registry.Edit{}); err != nil {
			return 0, err
		}
	}
	return m.Store.ChangeAll(after, list, read...)
}
