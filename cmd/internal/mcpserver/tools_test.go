package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/cmd/internal/wait"
)

// TestFixedOrder: the eight tools are always there, in their order, and those
// names are the ones that no evolved tool may have.
func TestFixedOrder(t *testing.T) {
	want := "evolve run list help describe history journal retire"
	if got := strings.Join(wire.ToolNames(), " "); got != want {
		t.Errorf("%s, expected %s", got, want)
	}
	s := New(Options{})
	for _, name := range wire.ToolNames() {
		if a := do(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":1}`, name)); a.Fault == nil || a.Fault.Kind != "refused" {
			t.Errorf("%s could be evolved: %s", name, a.Text)
		}
	}
}

// TestHelpCalls: every call that help shows of the server's own tools is one
// that works, in the order in which they stand.
func TestHelpCalls(t *testing.T) {
	s := New(Options{})
	calls := 0
	for i := range wire.Tools {
		text := do(t, s, "help", fmt.Sprintf(`{"name":%q}`, wire.Tools[i].Name)).Text
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, `{"name":`) {
				continue
			}
			var c struct {
				Name      string
				Arguments json.RawMessage
			}
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Errorf("help %s: %s: %v", wire.Tools[i].Name, line, err)
				continue
			}
			calls++
			if a := do(t, s, c.Name, string(c.Arguments)); a.Fault != nil {
				// What retire took away can't be retired again.
				if c.Name == "retire" && (a.Fault.Kind == "no_tool" || a.Fault.Kind == "conflict") {
					continue
				}
				t.Errorf("help %s shows %s\n which gives %s", wire.Tools[i].Name, line, a.Text)
			}
		}
	}
	if calls < 14 {
		t.Errorf("help shows %d calls", calls)
	}
}

// TestHistoryPages: the pages of a history are all of it, each version once.
func TestHistoryPages(t *testing.T) {
	s := New(Options{})
	for i := range 45 {
		if a := do(t, s, "evolve", fmt.Sprintf(`{"name":"n","code":%d}`, i)); a.Fault != nil {
			t.Fatal(a.Text)
		}
		if i == 20 {
			do(t, s, "retire", `{"name":"n"}`)
		}
	}
	var seen []string
	arguments := `{"name":"n","limit":7}`
	for arguments != "" {
		a := do(t, s, "history", arguments)
		var page struct {
			Versions []struct {
				Version int
				Kind    string
			}
			Next struct{ Arguments json.RawMessage }
		}
		if err := json.Unmarshal(a.Structured, &page); err != nil || a.Fault != nil {
			t.Fatal(a.Text, err)
		}
		for _, v := range page.Versions {
			seen = append(seen, fmt.Sprint(v.Version, v.Kind[:1]))
		}
		arguments = string(page.Next.Arguments)
	}
	var want []string
	for v := 45; v > 0; v-- {
		if v == 21 {
			want = append(want, "21r")
		}
		want = append(want, fmt.Sprint(v, "e"))
	}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], " ", "")
	}
	for i := range seen {
		seen[i] = strings.ReplaceAll(seen[i], " ", "")
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the pages have\n%v, expected\n%v", seen, want)
	}
}

// TestJournalPages: going back from the newest events, and on from the oldest,
// shows each once, also where an answer has no room for a page.
func TestJournalPages(t *testing.T) {
	s := New(Options{Limits: Limits{Result: 4000}})
	for i := range 40 {
		do(t, s, "evolve", fmt.Sprintf(`{"name":"n%d","code":%q}`, i, strings.Repeat("x", 200)))
	}
	for start, want := range map[string]int{
		`{"kind":"tool"}`: 40, `{"kind":"tool","after":0}`: 40, `{"kind":"tool","limit":3}`: 40,
		`{"after":5,"before":26,"limit":3}`: 20, `{"kind":"tool","after":0,"before":31}`: 30,
	} {
		seen := map[uint64]bool{}
		for arguments := start; arguments != ""; {
			a := do(t, s, "journal", arguments)
			var page struct {
				Events []struct{ Seq uint64 }
				Next   struct{ Arguments json.RawMessage }
			}
			if err := json.Unmarshal(a.Structured, &page); err != nil || a.Fault != nil {
				t.Fatal(a.Text, err)
			}
			if len(a.Structured) > 6000 || len(page.Events) == 0 {
				t.Fatalf("%s gave %d bytes, %d events", arguments, len(a.Structured), len(page.Events))
			}
			for i, e := range page.Events {
				if seen[e.Seq] || i > 0 && e.Seq <= page.Events[i-1].Seq {
					t.Errorf("%s: event %d comes twice, or out of order", arguments, e.Seq)
				}
				seen[e.Seq] = true
			}
			arguments = string(page.Next.Arguments)
		}
		if len(seen) != want {
			t.Errorf("from %s there are %d events", start, len(seen))
		}
	}
}

// TestListPages: tools/list comes in pages, with the fixed tools first, and each
// tool once.
func TestListPages(t *testing.T) {
	s := New(Options{})
	for i := range 2 * mostListed {
		if _, err := s.Registry().Evolve(registry.Definition{Name: fmt.Sprintf("t%05d", i), Code: []byte("1")}, registry.Edit{}); err != nil {
			t.Fatal(err)
		}
	}
	cs := session(t, s, nil)
	var names []string
	var params mcp.ListToolsParams
	for pages := 0; pages < 5; pages++ {
		list, err := cs.ListTools(t.Context(), &params)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		if params.Cursor = list.NextCursor; params.Cursor == "" {
			break
		}
	}
	if len(names) != 8+2*mostListed || !slices.IsSorted(names[8:]) || !slices.Equal(names[:8], wire.ToolNames()) {
		t.Errorf("%d tools, the first %v", len(names), names[:10])
	}
	if _, err := cs.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: "b"}); err == nil {
		t.Error("any cursor is taken")
	}
}

// TestOthersChanges: what another registry on the same journal changes is seen by
// the next call, and told to clients that ask for nothing.
func TestOthersChanges(t *testing.T) {
	j := journal.NewMemory(1<<20, nil)
	policy := caps.NewPolicy(nil, time.Now)
	s := New(Options{Broker: run.New(run.Options{Policy: policy, Journal: j})})
	other, _, err := registry.Open(run.Log(j), policy)
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan struct{}, 100)
	cs := session(t, s, &mcp.ClientOptions{ToolListChangedHandler: func(_ context.Context, _ *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
	evolve := func(name, code string) {
		t.Helper()
		if _, err := other.Evolve(registry.Definition{Name: name, Code: []byte(code)}, registry.Edit{}); err != nil {
			t.Fatal(err)
		}
	}
	evolve("five", "5")
	if text, _ := ask(t, cs, "five", `{}`); text != "5" {
		t.Errorf("%s, expected 5", text)
	}
	wait.For(t, changed, "a notification of the first change")
	evolve("six", "6")
	wait.For(t, changed, "a notification of the second change") // by looking, since nothing was asked
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 10 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := other.Retire("five", registry.Edit{}); err != nil {
		t.Fatal(err)
	}
	if list, err = cs.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 9 {
		t.Errorf("%v, %v", list, err)
	}
	if text, _ := ask(t, cs, "five", `{}`); !strings.Contains(text, "no_tool") {
		t.Errorf("%s, expected no_tool", text)
	}
}

// TestExpectIsRead: what an example expects is read by the type of the tool's result.
func TestExpectIsRead(t *testing.T) {
	s := New(Options{})
	for _, c := range []struct{ code, expect, differs string }{
		{"n => {pair: [n, n * 1]}", `{"pair":[1,1]}`, `{"pair":[1,2]}`},
		{"n => {pair: [n, n * 1]}", `{"record":{"pair":[1,1]}}`, `{"pair":[1,1],"a":1}`},
		{"n => (n, n * 1)", `{"pair":[1,1]}`, `[1,1]`},
		{"n => [{dec: to_text(n * 1)}]", `[{"dec":"1"}]`, `["1"]`},
		{"n => n * 1", `"1"`, `"2"`},
		{"n => to_text(n * 1)", `"1"`, `1`},
		{"n => if n > 5 then 1 else (m => n * m)", `"<function>"`, `"function"`},
		{"n => '{n + 1}", `{"add":[{"var":"n"},1]}`, `{"add":[1,1]}`},
		{"n => if n > 2 then n else continue(n + 1)", `{"continue":{"input":2}}`, `{"continue":{"input":3}}`},
	} {
		evolve := `{"name":"t","code":` + quoteJSON(c.code) + `,"examples":[{"input":1,"expect":%s}]}`
		must(t, s, "evolve", fmt.Sprintf(evolve, c.expect))
		if a := do(t, s, "evolve", fmt.Sprintf(evolve, c.differs)); a.Fault == nil || !strings.Contains(a.Text, "is expected") {
			t.Errorf("%s: %s", c.code, a.Text)
		}
	}
}

// TestLimitsOfExamples: the time of a run bounds examples, and no more is said of
// large ones than is read.
func TestLimitsOfExamples(t *testing.T) {
	s := New(Options{Limits: Limits{MaxSteps: 1000}})
	a := do(t, s, "evolve", `{"name":"n","code":"n => fold(p => fst(p) + 1, 0, range(0, n))","examples":[{"input":1000,"expect":1000}]}`)
	if a.Fault == nil || !strings.Contains(a.Text, "1000 steps in all") {
		t.Error(a.Text)
	}
	// Two that are within it, and together aren't.
	counting := `{"name":"n","code":"n => if n == 0 then 0 else self(n - 1)","examples":[{"input":60000,"expect":0}%s]}`
	if a := do(t, New(Options{}), "evolve", fmt.Sprintf(counting, "")); a.Fault != nil {
		t.Error(a.Text)
	}
	a = do(t, New(Options{}), "evolve", fmt.Sprintf(counting, `,{"input":60001,"expect":0}`))
	if a.Fault == nil || !strings.Contains(a.Text, "example 2 of 2") || !strings.Contains(a.Text, "1000000 steps in all") {
		t.Error(a.Text)
	}
	long := strings.Repeat("x", 10_000)
	a = do(t, s, "evolve", fmt.Sprintf(`{"name":"n","code":"n => n","examples":[{"input":%q,"expect":1}]}`, long))
	if a.Fault == nil || len(a.Text) > 4000 {
		t.Errorf("%d bytes are said", len(a.Text))
	}
	// One of its own size, among many, takes only its part.
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf(`{"input":%d,"expect":%d}`, i, i))
	}
	a = do(t, New(Options{}), "evolve", `{"name":"n","code":"n => n","examples":[`+strings.Join(many, ",")+`]}`)
	if got := field(t, a, "examples"); got != "100" {
		t.Errorf("%s examples: %s", got, a.Text)
	}
	a = do(t, New(Options{}), "evolve", `{"name":"n","code":"n => n","examples":[`+strings.Join(append(many, many[0]+" "), ",")+`,{"input":"more","expect":"more"}]}`)
	if a.Fault == nil || a.Fault.Kind != "invalid_request" {
		t.Errorf("101 examples: %s", a.Text)
	}
}

// TestUnkept: what the store says is for the operator; a model isn't shown where
// that is.
func TestUnkept(t *testing.T) {
	j := journal.NewMemory(1<<20, func(e *journal.Event) error {
		if e.Kind == journal.ToolEvolved {
			return fmt.Errorf("the store /home/ada/state/journal.db: %w", journal.ErrFull)
		}
		return nil
	})
	s := New(Options{Broker: run.New(run.Options{Policy: caps.NewPolicy(nil, time.Now), Journal: j})})
	a := do(t, s, "evolve", `{"name":"n","code":1}`)
	if a.Fault == nil || a.Fault.Kind != "refused" || strings.Contains(string(a.Structured)+a.Text, "ada") || !strings.Contains(a.Text, "the disk is full") {
		t.Errorf("%s", a.Text)
	}
	if a := do(t, s, "run", `{"code":{"add":[1,2]}}`); a.Text != "3" {
		t.Errorf("%s, expected 3", a.Text)
	}
}

// TestShownEvents: a model sees of an event what it can use: no record made for
// replays, no hash of the chain, and of a failure its kind, however long it is.
func TestShownEvents(t *testing.T) {
	s := New(Options{})
	do(t, s, "run", `{"code":{"add":[1,2]}}`)
	do(t, s, "evolve", fmt.Sprintf(`{"name":"n","code":"n => n","examples":[{"input":%q,"expect":1}]}`, strings.Repeat("x", 1000)))
	a := do(t, s, "journal", `{}`)
	for _, hidden := range []string{`"call"`, `"limits"`, `"semantics"`, `"answer"`, `"prev"`, `"hash"`} {
		if strings.Contains(a.Text, hidden) {
			t.Errorf("%s is shown: %s", hidden, a.Text)
		}
	}
	refused := do(t, s, "journal", `{"kind":"tool.refused"}`)
	if !strings.Contains(refused.Text, `"error":{"kind":"refused","message":"example 1`) {
		t.Errorf("the kind isn't shown: %s", refused.Text)
	}
	if strings.Count(refused.Text, "x") > 400 {
		t.Errorf("a failure is shown whole: %s", refused.Text)
	}
}
