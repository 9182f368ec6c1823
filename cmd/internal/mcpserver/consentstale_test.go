package mcpserver

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// waitingAbout is the versions of which questions wait.
func (w *consenting) waitingAbout() (versions []int) {
	w.t.Helper()
	questions, _, err := w.consents.All()
	if err != nil {
		w.t.Fatal(err)
	}
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

// TestQuestionContent: an answer with a question has the empty list as its content, since
// null isn't one.
func TestQuestionContent(t *testing.T) {
	s := New(Options{})
	asking := &talk{cancel: func() {}, questions: make(chan question, 1), ended: make(chan struct{})}
	close(asking.ended)
	asking.questions <- question{&mcp.ElicitParams{Message: "?"}, make(chan *mcp.ElicitResult, 1)}
	res, err := s.follow(t.Context(), asking)
	defer s.EndWaiting()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(res)
	if err != nil || !strings.Contains(string(text), `"content":[]`) {
		t.Errorf("%s, %v", text, err)
	}
}
