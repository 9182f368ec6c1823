package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/rogpeppe/go-internal/testscript"
)

// performed is a handler that performs nothing and counts what it should.
type performed struct {
	mu  sync.Mutex
	ops []caps.Flags
}

func (*performed) Prepare(*caps.Grant) {}

func (p *performed) Perform(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, _ := a.Held.Grant.Manifest.Verb(a.Verb)
	p.ops = append(p.ops, v.Flags)
	return value.Str("x"), 1, nil
}

// TestPlanSurvivesKill: a plan, made and approved under rules of flow, whose server is killed at any of its events is done
// to its end by the next: each of its acts is done once, or a person says what became of it, and what is denied never is.
func TestPlanSurvivesKill(t *testing.T) {
	t.Parallel()
	w := newTasksWorld(t)
	w.more = []string{"--confirm", "fs.append", "--label", "box=fs.read:./box", "--no-flow", "box>fetch"}
	must.NoError(t, os.WriteFile(filepath.Join(w.dir, "box", "secret"), []byte("SECRET"), 0o600))
	p := w.serves(t)
	p.makes("acts", fmt.Sprintf(`i => let s = !fs.read("secret") in let _ = try(!fetch.request({method: "POST", url: "%s/", body: s})) in
	  let _ = try(!fs.append({path: "lines", content: i ++ "\n"})) in let _ = try(!fetch.request({method: "POST", url: "%[1]s/", body: i})) in i`, w.web.URL), "fs:./box", "fetch:"+w.web.URL)
	plans := map[int]string{}
	events := killedAt(6, []int{2, -3, -5}) // plan.started, two requests with their outcomes, run.ended
	for _, at := range events {
		plans[at] = strings.Trim(string(p.call("run", fmt.Sprintf(`{"tool":"acts","input":"i%d","plan":true}`, at)).StructuredContent["plan"]), `"`)
	}
	p.in.Close()
	must.NoError(t, p.wait())
	j, err := journal.Open(filepath.Join(w.state, "mcp-pif", "profiles", "p", app.JournalFile), journal.Options{})
	must.NoError(t, err)
	for at, id := range plans {
		plan, err := run.FindPlan(j, id)
		if err != nil || plan == nil || !plan.Confirm || len(plan.Steps) != 2 {
			t.Fatalf("the plan %q of %d: %+v, %v", id, at, plan, err)
		}
		must.NoError(t, run.AnswerPlan(j, plan.Plan, true, "terminal"))
	}
	must.NoError(t, j.Close())
	for _, at := range events {
		w.diesAt(t, at, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"plan":%q,"fresh":false}}}`, plans[at]))
		input := fmt.Sprint("i", at)
		goesOn := fmt.Sprintf(`{"plan":%q,"fresh":false,"resume":true}`, plans[at])
		p := w.serves(t)
		r := p.call("run", goesOn)
		for range 2 { // at most both
			m := resolves.FindStringSubmatch(r.Content[0].Text)
			if m == nil {
				break
			}
			if next := `then {"name":"run","arguments":{"plan":"` + plans[at] + `","resume":true}} goes on.`; !strings.Contains(r.Content[0].Text, next) {
				t.Errorf("%d: %s", at, r.Content[0].Text)
			}
			did := "did-not"
			if m[3] == "fs.append" && w.appended(t, input) > 0 || m[3] == "fetch.request" && w.posted(input) > 0 {
				did = "did"
			}
			if out, err := w.command("mcp-pif", "resolve", m[2], m[1], did, "--profile", "p").CombinedOutput(); err != nil || !strings.Contains(string(out), `run {"plan":"`+plans[at]+`","resume":true}`) {
				t.Fatalf("%d: %v %s", at, err, out)
			}
			r = p.call("run", goesOn)
		}
		if text := r.Content[0].Text; r.IsError && !strings.Contains(text, "was begun and has ended") || !r.IsError && !strings.Contains(text, input) {
			t.Errorf("%d: it ends with %s", at, text)
		}
		if w.appended(t, input) != 1 || w.posted(input) != 1 || w.posted("SECRET") != 0 {
			t.Errorf("%d: appended %d times, posted %d times, and what is denied %d times", at, w.appended(t, input), w.posted(input), w.posted("SECRET"))
		}
		p.in.Close()
		must.NoError(t, p.wait())
	}
}

// resolves is what is said of a step that was under way.
var resolves = regexp.MustCompile(`step (\d+) of the run ([a-z0-9-]+), ([a-z.]+), was under way`)

// TestPlanInShell: what has a model go on with a plan has a shell run the same command again.
func TestPlanInShell(t *testing.T) {
	t.Parallel()
	cmd := newRun()
	must.NoError(t, cmd.ParseFlags([]string{"--store", "pif.db", "--cap", "kv:n/**", "--plan", "p_a-1"}))
	const said = `say it with resolve; then {"name":"run","arguments":{"plan":"p_a-1","resume":true}} goes on.`
	if got, want := inShell(cmd, said), "say it with resolve; then mcp-pif run --cap='kv:n/**' --store=pif.db --plan p_a-1 goes on."; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

// TestApproveExpired: a plan that can't be done any more can't be approved.
func TestApproveExpired(t *testing.T) {
	t.Parallel()
	o := &journalOptions{}
	o.Store = filepath.Join(t.TempDir(), "pif.db")
	s, err := journal.Open(o.Store, journal.Options{})
	must.NoError(t, err)
	_, err = s.Append(journal.Written, journal.PlanMade, "a-1", "", []byte(`{"plan":"p_a-1","content":"{\"confirm\":true,\"made\":\"2026-01-02T12:04:05Z\"}"}`))
	must.NoError(t, errors.Join(err, s.Close()))
	if err := approvePlan(nil, nil, o, "p_a-1", true); err == nil || !strings.Contains(err.Error(), "could be approved until 2026-01-02 ") {
		t.Error(err)
	}
}

// TestPlanAtShell: a plan that a server is doing isn't done at a shell, nor one that is being done at a shell by a server.
func TestPlanAtShell(t *testing.T) {
	t.Parallel()
	w := newTasksWorld(t)
	var posts atomic.Int32
	begun, let := make(chan struct{}, 10), make(chan struct{})
	release := sync.OnceFunc(func() { close(let) })
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
			return
		}
		begun <- struct{}{}
		select {
		case <-let:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(web.Close)
	t.Cleanup(release) // before it, which waits for the handlers
	flags := []string{"--profile", "p", "--timeout=30m", "--cap", "fetch:" + web.URL + ",timeout=600s"}
	p := startCommand(t, w.command("mcp-pif", flags...)).open()
	p.makes("puts", `i => let a = !fetch.request({method: "PUT", url: "`+web.URL+`/", body: i}) in let b = !fetch.request({method: "POST", url: "`+web.URL+`/", body: i}) in i`, "fetch:"+web.URL)
	plan := func() string {
		return strings.Trim(string(p.call("run", `{"tool":"puts","input":"x","plan":true}`).StructuredContent["plan"]), `"`)
	}
	shell := func(id string) <-chan string {
		ended := make(chan string, 1)
		go func() {
			out, err := w.command("mcp-pif", append([]string{"run", "--plan", id}, flags...)...).CombinedOutput()
			ended <- fmt.Sprintf("%v %s", err, out)
		}()
		return ended
	}
	const doing = "another call is doing the plan"
	byServer := plan()
	task := strings.Trim(string(p.call("run", `{"plan":"`+byServer+`","background":true}`).StructuredContent["task"]), `"`)
	wait.For(t, begun, "the server's first step")
	if out := wait.For(t, shell(byServer), "the end at a shell"); !strings.Contains(out, doing) {
		t.Errorf("while the server does it, a shell: %s", out)
	}
	byShell := plan()
	ended := shell(byShell)
	wait.For(t, begun, "the shell's first step")
	if text := p.call("run", `{"plan":"`+byShell+`","resume":true}`).Content[0].Text; !strings.Contains(text, doing) {
		t.Errorf("while a shell does it, the server: %s", text)
	}
	release()
	if out := wait.For(t, ended, "the end at the shell"); out != "<nil> \"x\"\n" {
		t.Errorf("the shell: %s", out)
	}
	if r := p.ended(task); r.IsError || len(begun) > 0 || posts.Load() != 2 {
		t.Errorf("the server: %s, and two plans begin %d times more and post %d times", r.Content[0].Text, len(begun), posts.Load())
	}
}

// TestPlanningChangesNothing plans a call of every operation that changes something, of each kind
// that ships and of a server's: none is performed.
func TestPlanningChangesNothing(t *testing.T) {
	t.Parallel()
	server := &caps.Manifest{
		Kind: "shop", Server: "shop", Version: "1.0.0", Doc: "a server", Algebra: caps.Exact,
		Verbs: []caps.Verb{{Name: "look", Flags: caps.Flags{ReadOnly: true}}, {Name: "buy", Flags: caps.Flags{OpenWorld: true}}},
		Operations: []caps.Operation{
			{Name: "shop.look", Wire: "look", Verb: "look", Doc: "looks", Result: "any", Params: []caps.Param{{Name: "what", Type: "string", Doc: "it"}}},
			{Name: "shop.buy", Wire: "buy", Verb: "buy", Doc: "buys", Result: "any", Params: []caps.Param{{Name: "what", Type: "string", Doc: "it"}}},
		},
	}
	known, err := app.Kinds(server)
	must.NoError(t, err)
	dir := t.TempDir()
	must.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))
	scopes := map[string]string{
		"fs": "fs:.", "kv": "kv:**", "fetch": "fetch:https://api.example.com/**", "proc": "proc:python3", "shop": "shop", "clock": "clock:utc",
		"random": "random:seed", "env": "env:LANG", "ask": "ask",
	}
	planned, reads := 0, 0
	for kind := range scopes {
		m, ok := known.Manifest(kind)
		if !ok {
			t.Fatalf("there is no kind %s", kind)
		}
		for i := range m.Operations {
			o := &m.Operations[i]
			policy := caps.NewPolicy(known, time.Now)
			c, err := caps.Parse(scopes[m.Kind], known)
			if err != nil {
				t.Fatalf("%s: %v", m.Kind, err)
			}
			g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: known, Dir: dir})
			if err == nil {
				err = policy.Grant(g)
			}
			must.NoError(t, err)
			handler := &performed{}
			broker := run.New(run.Options{Policy: policy, Handler: handler, Journal: journal.NewMemory(1<<20, nil)})
			tools, _, err := registry.Open(broker.Log(), policy)
			must.NoError(t, err)
			made, err := tools.Evolve(registry.Definition{Name: "act", Code: []byte(`{"lam":"u","body":` + o.Example() + `}`), Capabilities: []string{scopes[m.Kind]}}, registry.Edit{})
			if err != nil {
				t.Fatalf("%s: %v", o.Example(), err)
			}
			in, _ := core.ParseInput([]byte("null"), core.InputData)
			p, f := broker.Begin(tools.Snapshot(), run.Start{Tool: made}).Plan(t.Context(), time.Now().Add(time.Minute), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
			if f != nil {
				t.Fatalf("%s: %v", o.Example(), f)
			}
			for _, flags := range handler.ops {
				reads++
				if !flags.ReadOnly {
					t.Errorf("%s was performed while planning", o.Example())
				}
			}
			if planned += len(p.Steps); len(p.Steps)+len(handler.ops) == 0 {
				t.Logf("%s is denied: %s", o.Example(), p.Ends)
			}
		}
	}
	if planned < 10 || reads < 10 {
		t.Errorf("%d writes were planned and %d reads performed: it tests little", planned, reads)
	}
}

// meanwhile is a person who answers after something has happened.
type meanwhile struct {
	happens func()
	answer  io.Reader
}

func (m meanwhile) Read(b []byte) (int, error) {
	m.happens()
	return m.answer.Read(b)
}

// TestApproveTooLate: who refuses a plan that was begun while they read it is told so.
func TestApproveTooLate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pif.db")
	s, err := journal.Open(path, journal.Options{})
	must.NoError(t, err)
	defer s.Close()
	known, err := app.Kinds()
	must.NoError(t, err)
	policy := caps.NewPolicy(known, time.Now)
	c, err := caps.Parse("kv:**", known)
	must.NoError(t, err)
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: known})
	must.NoError(t, err)
	must.NoError(t, policy.Grant(g))
	r, err := caps.ParseRequests("kv.put:**", "", known)
	must.NoError(t, err)
	policy.Confirm([]caps.Requests{r})
	broker := run.New(run.Options{Policy: policy, Handler: &performed{}, Journal: s})
	tools, _, err := registry.Open(broker.Log(), policy)
	must.NoError(t, err)
	made, err := tools.Evolve(registry.Definition{Name: "act", Code: []byte(`u => !kv.put({key: "a", value: 1})`), Text: true, Capabilities: []string{"kv:**"}}, registry.Edit{})
	must.NoError(t, err)
	in, _ := core.ParseInput([]byte("null"), core.InputData)
	for _, begun := range []bool{false, true} {
		doer := broker.Begin(tools.Snapshot(), run.Start{Tool: made})
		p, f := doer.Plan(t.Context(), time.Now().Add(time.Minute), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
		must.NoFault(t, f)
		doer.Abandon()
		person := meanwhile{func() {
			if begun {
				must.NoError(t, run.AnswerPlan(s, p, true, "elicitation"))
				_, err := s.Append(journal.Written, journal.PlanStarted, p.Run, "", []byte(`{"plan":"`+p.ID+`","after":0,"owner":""}`))
				must.NoError(t, err)
			}
		}, strings.NewReader("no\n")}
		var screen bytes.Buffer
		o := &journalOptions{StoreOptions: app.StoreOptions{Store: path}}
		err := approvePlan(&controlling{shown: cli.TerminalWriter{Out: &screen}}, bufio.NewReader(person), o, p.ID, false)
		if begun != (err != nil && strings.Contains(err.Error(), "begun before")) || begun == strings.Contains(screen.String(), "Refused") {
			t.Errorf("begun %v: %v\n%s", begun, err, screen.String())
		}
	}
}

// numberShown is where the terminal shows the number that is to be typed.
var numberShown = regexp.MustCompile(`(?m)^  (?:yes|clear) (?:.* )?([0-9]{4})\r?$`)

// questionShown is where it shows the question's name.
var questionShown = regexp.MustCompile(`(?m)^  question  ([0-9a-f]{8})\r?$`)

// answering runs mcp-pif approve on a terminal of its own: answer LINE [FLAGS…].
// NUMBER in the line stands for the number shown. What the terminal shows is the
// script's stdout; "! answer" is one that fails.
func answering(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: answer LINE [FLAGS…]")
	}
	screen, err := approving("mcp-pif approve "+strings.Join(args[1:], " "), args[0], "XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME"), "NO_COLOR="+ts.Getenv("NO_COLOR"))
	_, werr := ts.Stdout().Write([]byte(screen))
	ts.Check(werr)
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || neg != (err != nil) {
		ts.Fatalf("it ended with %v:\n%s", err, screen)
	}
}

// approving runs a command on a terminal of its own, types a line wherever it asks, the
// next of those that a | separates, and gives what the terminal shows. NUMBER in the line stands for the number shown, and
// QUESTION for the question's name.
func approving(command, line string, env ...string) (shown string, err error) {
	cmd := exec.Command("script", "-qec", command, "/dev/null")
	cmd.Env = append(append(cmd.Environ(), "TERM=xterm"), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer cmd.Process.Kill()
	timer := time.AfterFunc(receiveTime, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	var screen bytes.Buffer
	lines := strings.Split(line, "|")
	b := make([]byte, 4096)
	for typed := 0; ; {
		n, err := out.Read(b)
		screen.Write(b[:n])
		if err != nil {
			break
		}
		if bytes.Count(screen.Bytes(), []byte("\n> ")) == typed {
			continue
		}
		next := "" // leaves what is open
		if typed < len(lines) {
			next = lines[typed]
		}
		typed++
		number := "none"
		if all := numberShown.FindAllSubmatch(screen.Bytes(), -1); all != nil {
			number = string(all[len(all)-1][1])
		}
		if m := questionShown.FindSubmatch(screen.Bytes()); m != nil {
			next = strings.ReplaceAll(next, "QUESTION", string(m[1]))
		}
		_, _ = io.WriteString(in, strings.ReplaceAll(next, "NUMBER", number)+"\r")
	}
	in.Close()
	err = cmd.Wait()
	return strings.ReplaceAll(screen.String(), "\r\n", "\n"), err
}
