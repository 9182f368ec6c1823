package caps_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestQuestionSaysWhatIsNow: where the server says something else of the same version
// than it did, what a person was shown before counts for nothing; that isn't
// one of the questions an asker has.
func TestQuestionSaysWhatIsNow(t *testing.T) {
	w := newWorld(t, "s/")
	w.ask("fs:./s")
	c := w.consents("p")
	s := w.subject("t", "c1", "fs.read:./s")
	q := caps.Question{Tool: "t", Version: 1, Subject: *s, Asks: []string{"fs.read:./s"}, Facts: []string{"It would get"}}
	id, asked, err := c.Ask(q)
	if !asked || err != nil {
		t.Fatal(asked, err)
	}
	// The same code evolved again is the same subject.
	q.Version = 2
	if same, asked, err := c.Ask(q); same != id || asked || err != nil {
		t.Errorf("the next version, the same: %s, %v, %v", same, asked, err)
	}
	if questions, _, _ := c.All(); len(questions) != 1 || questions[0].Version != 2 {
		t.Errorf("%+v", questions)
	}
	for i, change := range []func(){
		func() { q.Facts = []string{"It would get", "  everything"} },
		func() { q.Asks = append(q.Asks, "kv:n") },
	} {
		change()
		newer, asked, err := c.Ask(q)
		if newer == id || !asked || err != nil {
			t.Errorf("%d: %s, %v, %v", i, newer, asked, err)
		}
		if err := c.Answer(id, s, caps.YesVersion, "terminal"); !errors.Is(err, caps.ErrNoQuestion) {
			t.Errorf("%d: answered with what was shown before: %v", i, err)
		}
		id = newer
	}
	// Four are left of five.
	for i := range 5 {
		other := w.subject(fmt.Sprint("u", i), "c", "fs.read:./s")
		if _, _, err := c.Ask(caps.Question{Tool: other.Tool, Subject: *other}); (err == nil) != (i < 4) {
			t.Errorf("question %d: %v", i, err)
		}
	}
	if err := c.Answer(id, s, caps.YesVersion, "terminal"); err != nil {
		t.Error(err)
	}
}

// TestLongQuestion: what matters can't be moved out of sight, or left out, by making
// a question long: such a one isn't put, and takes away the one that waited.
func TestLongQuestion(t *testing.T) {
	w := newWorld(t, "s/")
	w.ask("fs:./s")
	c := w.consents("p")
	for what, change := range map[string]func(*caps.Question){
		"many facts": func(q *caps.Question) { q.Facts = strings.Split(strings.Repeat("fact\n", 121), "\n") },
		"a long one": func(q *caps.Question) {
			q.Facts = []string{"It would get", "  kv:n/" + strings.Repeat("x", 16<<10)}
		},
		"a long one in other letters": func(q *caps.Question) { q.Facts = []string{strings.Repeat("\u202e", 2000)} },
		"a declaration of 1 MB":       func(q *caps.Question) { q.Subject.Declared = []string{strings.Repeat("x", 1<<20)} },
	} {
		s := w.subject("t", what, "fs.read:./s")
		q := caps.Question{Tool: "t", Subject: *s, Description: strings.Repeat("x", 1<<20), Code: strings.Repeat("x", 1<<20)}
		id, _, err := c.Ask(q)
		if err != nil {
			t.Fatal(what, err)
		}
		change(&q)
		q.Subject.Code += "'"
		if _, asked, err := c.Ask(q); asked || !errors.Is(err, caps.ErrAsksForTooMuch) {
			t.Errorf("%s: %v, %v", what, asked, err)
		}
		if err := c.Answer(id, s, caps.YesVersion, "terminal"); !errors.Is(err, caps.ErrNoQuestion) {
			t.Errorf("%s: the old one is answered: %v", what, err)
		}
		w.clock.pass(time.Hour)
	}
}

// TestManyQuestions: one asker has a hundred that wait, all together a thousand; a
// file with more is read all the same, and an answer finds its question.
func TestManyQuestions(t *testing.T) {
	w := newWorld(t, "s/")
	w.ask("fs:./s")
	c := w.consents("p")
	for i := range 105 {
		if i%5 == 0 {
			w.clock.pass(time.Hour)
		}
		s := w.subject(fmt.Sprint("t", i), "c", "fs.read:./s")
		if _, _, err := c.Ask(caps.Question{Tool: s.Tool, Subject: *s}); (err == nil) != (i < 100) || err != nil && !errors.Is(err, caps.ErrAsksTooMuch) {
			t.Fatalf("question %d: %v", i, err)
		}
	}
	// Each of so many askers has few.
	fill := func(n int) {
		t.Helper()
		questions := make([]caps.Question, n)
		for i := range questions {
			s := w.subject("t", "c", "fs.read:./s")
			questions[i] = caps.Question{ID: fmt.Sprintf("%08x", i), Who: fmt.Sprint("asker ", i), Tool: "t", Version: 1, Subject: *s, Facts: []string{"It would get"}}
		}
		text, err := json.Marshal(map[string]any{"format": "mcp-pif consent 1", "questions": questions, "answers": []any{}, "spent": []any{}})
		if err == nil {
			err = os.WriteFile(c.Path, text, 0o600)
		}
		must.NoError(t, err)
	}
	s := w.subject("t", "c", "fs.read:./s")
	many := 2000
	if os.Getenv("PIF_FULL") == "1" {
		many = 10_000
	}
	for n, want := range map[int]error{999: nil, 1000: caps.ErrAsksTooMuch, many: caps.ErrAsksTooMuch} {
		fill(n)
		if _, _, err := c.Ask(caps.Question{Tool: "t", Subject: *s}); !errors.Is(err, want) {
			t.Errorf("%d wait: %v", n, err)
		}
		if err := c.Answer("00000003", s, caps.YesVersion, "terminal"); err != nil {
			t.Errorf("%d wait: %v", n, err)
		}
		wantConsent(t, w.consents("asker 3"), "whom the answer is to", s, caps.Approved)
		wantConsent(t, w.consents("asker 4"), "another", s, caps.Unasked)
	}
}

// TestAnswersAreKept: of what was said of one name the newest 50 are kept, and every
// no; what was said of another name is no answer, whatever it was.
func TestAnswersAreKept(t *testing.T) {
	w := newWorld(t, "s/")
	w.ask("fs:./s")
	c := w.consents("p")
	versions := make([]*caps.Subject, 55)
	for i := range versions {
		if versions[i] = w.subject("t", fmt.Sprint("c", i), "fs.read:./s"); i%5 == 0 {
			w.clock.pass(time.Hour)
		}
		answered(t, c, versions[i], caps.YesVersion)
	}
	wantConsent(t, c, "the first", versions[0], caps.Unasked)
	wantConsent(t, c, "the fifth", versions[4], caps.Unasked)
	wantConsent(t, c, "the sixth", versions[5], caps.Approved)
	wantConsent(t, c, "the last", versions[54], caps.Approved)

	w.clock.pass(time.Hour)
	refused := w.subject("u", "c5", "fs.read:./s")
	answered(t, c, refused, caps.No)
	wantConsent(t, c, "a no to another name", versions[5], caps.Approved)
	// A yes of the same code under another name isn't a refusal.
	if _, names := c.Before(w.subject("v", "c54", "fs.read:./s")); len(names) != 0 {
		t.Errorf("refused under %q", names)
	}

	// However many a yes comes after it: a no stands. Nothing that this program does
	// writes such a file.
	text, err := os.ReadFile(c.Path)
	must.NoError(t, err)
	var content map[string]any
	must.NoError(t, json.Unmarshal(text, &content))
	list := content["answers"].([]any)
	no := list[len(list)-1].(map[string]any)
	for range 60 {
		yes := map[string]any{}
		maps.Copy(yes, no)
		yes["answer"] = caps.YesName
		list = append(list, yes)
	}
	content["answers"] = list
	content["questions"] = []any{map[string]any{"id": "00000001", "who": "p", "tool": "u", "version": 1, "time": no["time"], "subject": no["subject"]}}
	if text, err = json.Marshal(content); err == nil {
		err = os.WriteFile(c.Path, text, 0o600)
	}
	must.NoError(t, err)
	wantConsent(t, c, "a yes after a no", refused, caps.Rejected)
	// Nor does another answer push the no out: only clearing does that.
	must.NoError(t, c.Answer("00000001", refused, caps.YesName, "terminal"))
	wantConsent(t, c, "after another answer", refused, caps.Rejected)
	if n, err := c.Clear("u"); n != 51 || err != nil {
		t.Error(n, err)
	}
	wantConsent(t, c, "cleared", refused, caps.Unasked)
}

// TestNoWhileAsking: in a cluster a change takes its time; a no that holds meanwhile isn't undone by what was written
// before it.
func TestNoWhileAsking(t *testing.T) {
	w := newWorld(t, "s/")
	w.ask("fs:./s")
	c := w.consents("p")
	s := w.subject("t", "c1", "fs.read:./s")
	answered(t, c, s, caps.YesVersion)
	yes, err := os.ReadFile(c.Path)
	must.NoError(t, err)
	d := w.consents("p")
	answered(t, d, s, caps.No)
	no, err := os.ReadFile(c.Path)
	must.NoError(t, err)
	must.NoError(t, statefile.Replace(c.Path, yes, 0o600))
	wantConsent(t, c, "what was approved", s, caps.Approved)

	sockets, err := os.MkdirTemp("", "s") // short enough for a socket's path
	must.NoError(t, err)
	defer os.RemoveAll(sockets)
	socket := filepath.Join(sockets, "s")
	l, err := net.Listen("unix", socket)
	must.NoError(t, err)
	node := http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var change statefile.Replacement
		must.NoError(t, errors.Join(json.NewDecoder(r.Body).Decode(&change), statefile.Replace(c.Path, change.After, 0o600)))
		must.NoError(t, statefile.Replace(c.Path, no, 0o600))
		must.NoError(t, c.Poll())
		_, _ = rw.Write([]byte("null"))
	})}
	served := make(chan error, 1)
	go func() { served <- node.Serve(l) }()
	defer func() {
		must.NoError(t, node.Close())
		wait.For(t, served, "the end of the node")
	}()
	must.NoError(t, statefile.WriteCluster(filepath.Dir(c.Path), statefile.Cluster{Order: "dev", Node: "n", Socket: socket}))
	_, _, err = c.Ask(caps.Question{Tool: "u", Subject: *w.subject("u", "c2", "fs.read:./s")})
	must.NoError(t, err)
	if c.Of(s) != caps.Rejected {
		t.Error("what was refused meanwhile is approved")
	}
}
