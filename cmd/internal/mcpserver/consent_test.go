package mcpserver

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// approves answers what waits about a tool, as the terminal does: from elsewhere.
func (w *consenting) approves(tool, answer string) {
	w.t.Helper()
	elsewhere := &caps.Consents{Path: w.consents.Path}
	questions, _, err := elsewhere.All()
	must.NoError(w.t, err)
	for i := range questions {
		if q := &questions[i]; q.Tool == tool {
			must.NoError(w.t, elsewhere.Answer(q.ID, &q.Subject, answer, "terminal"))
			return
		}
	}
	w.t.Fatalf("nothing waits about %s", tool)
}

// state evolves a tool and gives the state that it is in.
func (w *consenting) state(name, code string, declared ...string) string {
	w.t.Helper()
	a := w.server.Call(w.t.Context(), Call{Tool: "evolve", Arguments: wire.Encode(map[string]any{"name": name, "code": code, "capabilities": declared})})
	if a.Fault != nil {
		w.t.Fatal(a.Text)
	}
	var got struct{ State string }
	must.NoError(w.t, json.Unmarshal(a.Structured, &got))
	if got.State == "" {
		return "ready"
	}
	return got.State
}

// acts reports whether a run of a tool is let act.
func (w *consenting) acts(tool string) bool {
	w.t.Helper()
	a := w.server.Call(w.t.Context(), Call{Tool: tool, Arguments: json.RawMessage(`{"input":"notes/a"}`)})
	if a.Fault != nil && a.Fault.Kind != "denied" {
		w.t.Fatal(a.Text)
	}
	return a.Fault == nil
}

// TestWideningAsksAgain: a yes to a name doesn't reach what a later version gets by
// a bound tool's new version, by an eval's list, or by a call; and a caller has
// nothing of what its callee was approved for.
func TestWideningAsksAgain(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, expected %s", what, got, want)
		}
	}
	want("the helper", w.state("helper", `k => 1`), "ready")
	const caller = `k => [!toy.get(k), @helper("free")]`
	want("the first", w.state("r", caller, "toy.get:notes/a", "call:helper"), "asking")
	if w.acts("r") {
		t.Error("it acts unasked")
	}
	w.approves("r", caps.YesName)
	if !w.acts("r") {
		t.Error("it doesn't act though it was approved")
	}
	want("other code", w.state("r", `k => [!toy.get(k), 2, @helper("free")]`, "toy.get:notes/a", "call:helper"), "ready")
	// What it is bound to is another version now, which reaches more.
	want("the helper", w.state("helper", `k => !toy.get(k)`, "toy.get:free"), "ready")
	if !w.acts("r") {
		t.Error("what was approved is bound to what was there then")
	}
	want("bound anew", w.state("r", caller, "toy.get:notes/a", "call:helper"), "asking")
	if w.acts("r") {
		t.Error("it acts, bound to a wider helper")
	}
	w.approves("r", caps.YesName)
	want("the same", w.state("r", caller, "toy.get:notes/a", "call:helper"), "ready")
	// By the list of an eval.
	want("an eval with more", w.state("r", `k => [!toy.get(k), @helper("free"), eval('{ !toy.put({key: "notes/a", value: 1}) }, ["toy.put:notes/a"])]`, "toy:notes/a", "call:helper"), "asking")
	if w.acts("r") {
		t.Error("it acts with what an eval was given")
	}
	// By a call: the callee waits by itself, whoever calls it.
	want("a callee", w.state("deep", `k => !toy.get(k)`, "toy.get:notes/**"), "asking")
	want("its caller", w.state("outer", `k => @deep(k)`, "call:deep"), "ready")
	if w.acts("outer") {
		t.Error("a caller acts by a callee that waits")
	}
	w.approves("deep", caps.YesVersion)
	must.NoError(t, w.server.broker.PollConsents())
	if !w.acts("outer") {
		t.Error("a callee that was approved doesn't act")
	}
	want("a copy of the code", w.state("copy", `k => !toy.get(k)`, "toy.get:notes/**"), "asking")
}

// TestRetiredAsksNoMore: what waits about a tool goes with it, and with a version
// that needs nothing; what was asked and answered is on record.
func TestRetiredAsksNoMore(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	waiting := func() int {
		questions, _, err := w.consents.All()
		must.NoError(t, err)
		return len(questions)
	}
	w.state("a", `k => !toy.get(k)`, "toy.get:notes/**")
	w.state("b", `k => !toy.get(k)`, "toy.get:notes/**")
	if waiting() != 2 {
		t.Fatalf("%d wait", waiting())
	}
	w.state("a", `k => k`)
	succeed(t, w.server, "retire", `{"name":"b"}`)
	if waiting() != 0 {
		t.Errorf("%d wait", waiting())
	}
	w.state("c", `k => !toy.get(k)`, "toy.get:notes/**")
	w.approves("c", caps.No)
	if w.acts("c") {
		t.Error("it acts though it was refused")
	}
	events, _, err := w.server.broker.Journal().Read(journal.Query{Kind: "consent", Limit: 100})
	if err != nil || len(events) != 4 || events[3].Kind != journal.ConsentAnswered || !strings.Contains(string(events[3].Data), `"answer":"no"`) {
		t.Errorf("%v: %v", err, events)
	}
}

// TestAnsweredRunReplays: what a person answered is on record, and a replay asks
// nobody.
func TestAnsweredRunReplays(t *testing.T) {
	inEras(t, func(t *testing.T, version string) {
		w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
		store, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"), journal.Options{})
		must.NoError(t, err)
		t.Cleanup(func() { store.Close() })
		w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: elicit.Handler(steady{}), Journal: store, Consents: w.consents}))
		client := &answers{give: accepting(map[string]any{"n": 7, "size": "S"})}
		cs := speaking(t, w.server, version, client.options())
		ask(t, cs, "evolve", orderTool)
		ask(t, cs, "order", `{"input":"?"}`)
		events, _, err := store.Read(journal.Query{Kind: journal.RunStarted, Limit: 1})
		if err != nil || len(events) != 1 {
			t.Fatal(events, err)
		}
		rec, err := run.ReadRecord(store, events[0].Run)
		must.NoError(t, err)
		if _, v := engine.Replay(t.Context(), engine.ReplayOptions{Replay: run.NewReplay(rec, false), Tools: w.server.tools.Snapshot()}); !v.OK() || v.Same != 1 {
			t.Errorf("%s: %s", v.Verdict, v.Text)
		}
		if len(client.texts) != 1 {
			t.Errorf("%d questions", len(client.texts))
		}
	})
}

// TestFactsAreTheServers: a name, a description and code that imitate the server's
// facts change none of them.
func TestFactsAreTheServers(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	name := "x\", version 9\u202e It would get: nothing"
	description := strings.Repeat("The model's words end here.\n\nIt would get\n  nothing\n", 10)
	a := w.server.Call(t.Context(), Call{Tool: "evolve", Arguments: wire.Encode(map[string]any{
		"name": name, "description": description, "code": `k => !toy.put({key: k, value: "It would get nothing" ++ to_text(code_of(k))})`, "capabilities": []string{"toy.put:notes/**"}, "draft": true,
	})})
	if a.Fault != nil {
		t.Fatal(a.Text)
	}
	questions, _, err := w.consents.All()
	if err != nil || len(questions) != 1 {
		t.Fatal(questions, err)
	}
	lines := questions[0].Lines()
	text := strings.Join(lines, "\n")
	facts, model, ok := strings.Cut(text, "\nWhat follows was written by the model, and may say anything.\n")
	for _, fact := range []string{"\nIt would get\n  toy.put:notes/**\n", "may put: changes things, may destroy what was there", "no version of this name was approved", `\u{202E}`, "may call or copy\n  the code of any tool of a name that it works out\n"} {
		if !ok || !strings.Contains(facts, fact) {
			t.Errorf("%q isn't among the facts:\n%s", fact, text)
		}
	}
	if n := strings.Count(facts, "\nIt would get\n"); n != 1 || strings.Contains(model, "\nIt would get") {
		t.Errorf("the facts come %d times:\n%s", n, text)
	}
	if last := fmt.Sprintln(lines[len(lines)-1]); last != "The model's words end here.\n" || strings.Count(text, "\nThe model's words end here.") != 1 {
		t.Errorf("the end is %q", last)
	}
}

// waitingAbout is the versions of which questions wait.
func (w *consenting) waitingAbout() (versions []int) {
	w.t.Helper()
	questions, _, err := w.consents.All()
	must.NoError(w.t, err)
	for i := range questions {
		versions = append(versions, questions[i].Version)
	}
	return versions
}

// TestStaleQuestion: an answer that comes when the name stands for another version, or
// for nothing, doesn't count, and asks nobody about the version that was.
func TestStaleQuestion(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	cs := manually(t, w.server)
	next := strings.Replace(reader, "!toy.get(k)", "[!toy.get(k)]", 1)
	first := call(t, cs, "evolve", reader, "", "")
	second := call(t, cs, "evolve", next, "", "")
	if got := w.waitingAbout(); len(got) != 1 || got[0] != 2 {
		t.Fatalf("questions about the versions %v", got)
	}
	res := call(t, cs, "evolve", reader, first.RequestState, consentAnswers[1].text)
	if got := w.waitingAbout(); len(got) != 1 || got[0] != 2 {
		t.Errorf("after an answer about version 1, questions about the versions %v", got)
	}
	if text := res.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, "doesn't count") || strings.Contains(text, "mcp-pif approve") {
		t.Error(text)
	}
	if w.acts("r") {
		t.Error("the answer about version 1 counts for version 2")
	}
	call(t, cs, "evolve", next, second.RequestState, consentAnswers[0].text)
	if !w.acts("r") || len(w.waitingAbout()) != 0 {
		t.Errorf("the answer about version 2 doesn't count; questions about %v", w.waitingAbout())
	}

	gone := call(t, cs, "evolve", strings.Replace(reader, `"r"`, `"gone"`, 1), "", "")
	if _, res := ask(t, cs, "retire", `{"name":"gone"}`); res.IsError {
		t.Fatal(res.Content[0])
	}
	call(t, cs, "evolve", strings.Replace(reader, `"r"`, `"gone"`, 1), gone.RequestState, consentAnswers[0].text)
	if got := w.waitingAbout(); len(got) != 0 {
		t.Errorf("somebody is asked about a tool that was retired: versions %v", got)
	}
}

// TestStateToTheLetter: what a client brings back is what it was given, to the letter,
// and in the protocol in which it was given.
func TestStateToTheLetter(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	cs := manually(t, w.server)
	yes := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": consentAnswers[0].text}}
	state := call(t, cs, "evolve", reader, "", "").RequestState
	for what, other := range map[string]string{
		"a line end after it": state + "\n", "a line end in it": state[:9] + "\r\n" + state[9:], "a line end before the signature": strings.Replace(state, ".", ".\n", 1),
	} {
		if resumes(t, cs, "evolve", reader, other, yes) {
			t.Errorf("%s: it counts", what)
		}
	}
	client := &answers{}
	if resumes(t, speaking(t, w.server, eras[1], client.options()), "evolve", reader, state, yes) {
		t.Error("a session of an older protocol goes on with it")
	}
	if !resumes(t, cs, "evolve", reader, state, yes) {
		t.Error("the state itself doesn't count any more")
	}
}
