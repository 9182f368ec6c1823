package mcpserver

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// resumes calls again with what a client brought back, and reports whether the call
// that waits went on.
func resumes(t *testing.T, cs *mcp.ClientSession, tool, arguments, state string, answer *mcp.ElicitResult) bool {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{
		Name: tool, Arguments: json.RawMessage(arguments), RequestState: state,
		InputResponses: mcp.InputResponseMap{questionName: answer},
	})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := res.Content[0].(*mcp.TextContent)
	return text == nil || !strings.Contains(text.Text, "names no call that waits")
}

// TestStateIsSigned: a state names a call only with this process's signature of
// all of it, and to the one whose call it is: knowing what it says isn't enough.
func TestStateIsSigned(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	cs := manually(t, w.server)
	yes := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": consentAnswers[0].text}}
	state := call(t, cs, "evolve", reader, "", "").RequestState
	p, ok := open(state)
	if !ok {
		t.Fatal(state)
	}
	body, sum, _ := strings.Cut(state, ".")
	other := p
	other.Until++
	another := p
	another.Who = "q"
	_, othersSum, _ := strings.Cut(seal(other), ".")
	zeros := strings.Repeat("A", len(sum))
	for what, forged := range map[string]string{
		"no signature": body + ".", "zeros": body + "." + zeros, "the beginning of it": body + "." + sum[:len(sum)-4],
		"more than it": body + "." + sum + "AAAA", "twice": body + "." + sum + "." + sum, "that of another state": body + "." + othersSum,
		"one bit of it is another": body + "." + string(sum[0]^1) + sum[1:], "padded": state + "=",
		"another principal's": seal(another), "nothing": ".",
	} {
		if resumes(t, cs, "evolve", reader, forged, yes) {
			t.Errorf("%s: it counts", what)
		}
	}
	if _, given, _ := w.consents.All(); len(given) != 0 {
		t.Errorf("answers: %+v", given)
	}
	if !resumes(t, cs, "evolve", reader, state, yes) {
		t.Error("the state itself doesn't count any more")
	}
}

// TestStateOfAnotherSession: in the stateless protocol a call is the principal's, not
// a session's: another of the same server goes on with it, once, and another server's
// can't, though it is the same person's.
func TestStateOfAnotherSession(t *testing.T) {
	path := filepath.Join(t.TempDir(), "consent.json")
	w, elsewhere := newConsenting(t, path, "p"), newConsenting(t, path, "p")
	first, second, third := manually(t, w.server), manually(t, w.server), manually(t, elsewhere.server)
	yes := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": consentAnswers[0].text}}
	state := call(t, first, "evolve", reader, "", "").RequestState
	if resumes(t, third, "evolve", reader, state, yes) {
		t.Error("another server's call goes on")
	}
	if !resumes(t, second, "evolve", reader, state, yes) || !w.acts("r") {
		t.Error("another session of the same server doesn't go on with it")
	}
	if resumes(t, first, "evolve", reader, state, yes) {
		t.Error("it counts twice")
	}
}

// TestMeanwhile: what happened between question and answer decides what a yes comes
// to: none gives a tool more than the person saw.
func TestMeanwhile(t *testing.T) {
	yes := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": consentAnswers[1].text}}
	for what, test := range map[string]struct {
		meanwhile func(w *consenting)
		code      string
		acts      bool // made again as it was, after the yes
	}{
		"nothing": {func(*consenting) {}, "", true},
		"retired": {func(w *consenting) { must(w.t, w.server, "retire", `{"name":"r"}`) }, "", false},
		"retired and made anew": {func(w *consenting) {
			must(w.t, w.server, "retire", `{"name":"r"}`)
			must(w.t, w.server, "evolve", reader)
		}, "", false},
		"refused in the terminal": {func(w *consenting) { w.approves("r", caps.No) }, "", false},
		"cleared": {func(w *consenting) {
			w.approves("r", caps.No)
			if _, err := w.consents.Clear("r"); err != nil {
				w.t.Fatal(err)
			}
		}, "", false},
		"the grant taken back": {func(w *consenting) {
			for _, g := range w.policy.Grants() {
				if g.Asked {
					w.policy.Revoke(g.ID)
				}
			}
		}, "", false},
		"denied since": {func(w *consenting) {
			c, err := caps.Parse("toy:notes/**", w.policy.Kinds())
			if err != nil {
				w.t.Fatal(err)
			}
			if err := w.policy.Deny(c); err != nil {
				w.t.Fatal(err)
			}
		}, "", false},
	} {
		t.Run(what, func(t *testing.T) {
			w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
			cs := manually(t, w.server)
			state := call(t, cs, "evolve", reader, "", "").RequestState
			test.meanwhile(w)
			resumes(t, cs, "evolve", reader, state, yes)
			if _, ok := w.server.tools.Snapshot().Get("r"); !ok {
				w.state("r", "k => !toy.get(k)", "toy.get:notes/**")
			}
			if acts := w.acts("r"); acts != test.acts {
				t.Errorf("it acts: %v", acts)
			}
		})
	}
}

// TestNameApproved: a yes to a name is to what is made of it later, by whatever way,
// while it gets no wider: a version that goes back to something wider asks.
func TestNameApproved(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	want := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, expected %v", what, got, want)
		}
	}
	want("a wide version", w.state("r", "k => [!toy.get(k), !toy.put({key: k, value: 1})]", "toy:notes/**"), "asking")
	want("a narrower one", w.state("r", "k => !toy.get(k)", "toy.get:notes/**"), "asking")
	w.approves("r", caps.YesName)
	want("the narrower one acts", w.acts("r"), true)
	if _, err := w.server.tools.Rollback("r", 1, registry.Edit{}); err != nil {
		t.Fatal(err)
	}
	want("rolled back to the wide one", w.acts("r"), false)
	if _, err := w.server.tools.Rollback("r", 2, registry.Edit{}); err != nil {
		t.Fatal(err)
	}
	want("and back to the one approved", w.acts("r"), true)
	must(t, w.server, "retire", `{"name":"r"}`)
	want("made anew as it was", w.state("r", "k => !toy.get(k)", "toy.get:notes/**"), "ready")
	want("made anew, other code", w.state("r", "k => [!toy.get(k)]", "toy.get:notes/a"), "ready")
	want("and wider", w.state("r", "k => [!toy.get(k), !toy.put({key: k, value: 1})]", "toy:notes/a"), "asking")
	want("it acts", w.acts("r"), false)
	want("the same under another name", w.state("s", "k => !toy.get(k)", "toy.get:notes/**"), "asking")
	// Another profile on the same file was asked nothing.
	other := newConsenting(t, w.consents.Path, "q")
	want("another profile's", other.state("r", "k => !toy.get(k)", "toy.get:notes/**"), "asking")
	want("another profile's acts", other.acts("r"), false)
}

// TestRetiredElsewhere: what waits about a tool goes also where something else than
// this server's tool took it away; the yes comes too late.
func TestRetiredElsewhere(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	w.state("r", "k => !toy.get(k)", "toy.get:notes/**")
	questions, _, err := w.consents.All()
	if err != nil || len(questions) != 1 {
		t.Fatal(questions, err)
	}
	if _, err := w.server.tools.Retire("r", registry.Edit{}); err != nil {
		t.Fatal(err)
	}
	if left, _, _ := w.consents.All(); len(left) != 0 {
		t.Errorf("it waits still: %+v", left)
	}
	elsewhere := &caps.Consents{Path: w.consents.Path}
	if err := elsewhere.Answer(questions[0].ID, &questions[0].Subject, caps.YesName, "terminal"); err == nil {
		t.Error("a question about a retired tool is answered")
	}
}

// TestQuestionTooLong: a tool that declares more than a person would read isn't asked
// about, and the model learns why.
func TestQuestionTooLong(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	a := w.server.Call(t.Context(), Call{Tool: "evolve", Arguments: wire.Encode(map[string]any{
		"name": "r", "code": "k => !toy.get(k)", "capabilities": []string{"toy.get:notes/" + strings.Repeat("x", 4080)},
	})})
	if a.Fault != nil || !strings.Contains(string(a.Structured), "would be too long") {
		t.Errorf("%.300s", a.Structured)
	}
	if questions, _, _ := w.consents.All(); len(questions) != 0 || w.acts("r") {
		t.Errorf("%d questions wait", len(questions))
	}
}
