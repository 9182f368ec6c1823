package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// dieAt says at which event of runs a server kills itself: N, when it is on record, or -N, when it
// is about to be.
const dieAt = "PIF_DIE_AT"

// dying is the command, which kills itself with SIGKILL at an event.
func dying() {
	n, err := strconv.Atoi(os.Getenv(dieAt))
	if err != nil {
		panic(err)
	}
	app.Watched = func(s *journal.Store) journal.Journal { return &mortal{Store: s, at: int64(n)} }
	main()
}

// mortal is a store that ends its process.
type mortal struct {
	*journal.Store
	at, seen int64
}

func (m *mortal) AppendLater(s journal.Stage, k journal.Kind, run, branch string, data []byte) func() (uint64, error) {
	n := int64(0)
	if run != "" {
		n = atomic.AddInt64(&m.seen, 1)
	}
	if n > 0 && n == -m.at {
		kill()
	}
	if n > 0 && n == m.at {
		_, _ = m.Store.Append(journal.Synced, k, run, branch, data)
		kill()
	}
	return m.Store.AppendLater(s, k, run, branch, data)
}

func (m *mortal) Append(s journal.Stage, k journal.Kind, run, branch string, data []byte) (uint64, error) {
	return m.AppendLater(s, k, run, branch, data)()
}

// unfenced is the command, which doesn't see that others have taken over its tasks.
func unfenced() {
	app.Watched = func(s *journal.Store) journal.Journal { return blind{s} }
	main()
}

// blind is a store in which a run has nothing of who goes on with it.
type blind struct{ *journal.Store }

func (b blind) Read(q journal.Query) (events []journal.Event, more bool, err error) {
	events, more, err = b.Store.Read(q)
	if q.Run != "" && q.Kind == "" {
		events = slices.DeleteFunc(events, func(e journal.Event) bool { return e.Kind == journal.TaskResumed })
	}
	return events, more, err
}

// kill ends this process as kill -9 does.
func kill() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}

// A tasksWorld is what tasks act on: a folder, keys, and a server that counts.
type tasksWorld struct {
	dir, state string
	more       []string // flags
	web        *httptest.Server
	mu         sync.Mutex
	posts      map[string]int
}

func newTasksWorld(t *testing.T) *tasksWorld {
	w := &tasksWorld{dir: t.TempDir(), state: t.TempDir(), posts: map[string]int{}}
	must.NoError(t, os.Mkdir(filepath.Join(w.dir, "box"), 0o700))
	w.web = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost {
			w.mu.Lock()
			w.posts[string(body)]++
			w.mu.Unlock()
		}
	}))
	t.Cleanup(w.web.Close)
	return w
}

// posted is how often a text was posted.
func (w *tasksWorld) posted(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.posts[text]
}

// appended is how often a line is in the file of lines.
func (w *tasksWorld) appended(t *testing.T, line string) int {
	text, err := os.ReadFile(filepath.Join(w.dir, "box", "lines"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), line+"\n")
}

func (w *tasksWorld) command(name string, args ...string) *exec.Cmd {
	cmd := self(name, args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+w.state)
	return cmd
}

// serves starts a server of the one profile.
func (w *tasksWorld) serves(t *testing.T) *process {
	return startCommand(t, w.command("mcp-pif", w.flags()...)).open()
}

func (w *tasksWorld) flags() []string {
	return append([]string{"--profile", "p", "--cap", "fs:./box", "--cap", "kv:n/**", "--cap", "fetch:" + w.web.URL, "--cap", "ask"}, w.more...)
}

// diesAt starts one that kills itself at an event, has it do a call, and waits for its end. It may
// end before it has read the call, with a task that it goes on with.
func (w *tasksWorld) diesAt(t *testing.T, at int, call string) {
	t.Helper()
	cmd := w.command("dying", w.flags()...)
	cmd.Env = append(cmd.Env, dieAt+"="+strconv.Itoa(at))
	p := startCommand(t, cmd)
	for _, line := range []string{initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, call} {
		_, _ = io.WriteString(p.in, line+"\n")
	}
	died := make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, p.out)
		died <- p.cmd.Wait()
	}()
	wait.For(t, died, "the end of the server")
}

// acts has an effect of each kind: a read, two that may be repeated, two that may not, alone and
// together. %s is the server.
const acts = `i => let w = !fs.write({path: i, content: i}) in
  let a = try(!fs.append({path: "lines", content: i ++ "\n"})) in
  let k = !kv.put({key: "n/" ++ i, value: i}) in
  let p = try(!fetch.request({method: "POST", url: "%s/", body: i})) in
  let both = par(try(!fs.append({path: "lines", content: i ++ "+\n"})), try(!kv.get("n/" ++ i)), try(!fetch.request({method: "POST", url: "%s/", body: i ++ "+"}))) in
  [!fs.read(i), map(x => has(x, "ok"), [a, p]), map(x => has(x, "ok"), both), !kv.get("n/" ++ i)]`

// listed is the tasks that the command lists.
func (w *tasksWorld) listed(t *testing.T) (list struct{ Tasks []shownTask }) {
	t.Helper()
	out, err := w.command("mcp-pif", "tasks", "list", "--json", "--profile", "p").Output()
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		t.Fatal(err, string(out))
	}
	return list
}

// ended asks for a task until it is over, and gives its answer.
func (p *process) ended(id string) toolReply {
	p.t.Helper()
	for {
		r := p.call("run", `{"task":"`+id+`"}`)
		if _, under := r.StructuredContent["status"]; !under {
			return r
		}
	}
}

// A task whose server is killed at any of its events goes on with the next server, which may be
// killed, too, and ends with the answer that a replay gives. What isn't idempotent happens once at most, and where it was
// under way the program is told that nobody knows.
func TestTasksSurviveKill(t *testing.T) {
	t.Parallel()
	few := []int{1, -4, 6, -10, 14, 20}
	for _, at := range killedAt(21, few) { // task.created, run.started, nine requests with their outcomes, run.ended
		t.Run(strconv.Itoa(at), func(t *testing.T) {
			w := newTasksWorld(t)
			w.survives(t, at, fmt.Sprintf(acts, w.web.URL, w.web.URL), []string{"fs:./box", "kv:n/**", "fetch:" + w.web.URL}, func(input, result string, unknown int) {
				done := 0
				for _, one := range []string{input, input + "+"} {
					for what, times := range map[string]int{"posted": w.posted(one), "appended": w.appended(t, one)} {
						if done += times; times > 1 {
							t.Errorf("%s was %s %d times", one, what, times)
						}
					}
				}
				if done+unknown < 4 {
					t.Errorf("of the four that happen once %d happened, and of %d it is said that nobody knows: %s", done, unknown, result)
				}
			})
		})
	}
}

// killedAt is the events of a run at which its server is killed, before and after each is on record; few are enough
// without full counts.
func killedAt(events int, few []int) (points []int) {
	if !full() {
		return few
	}
	for n := 1; n <= events; n++ {
		points = append(points, n, -n)
	}
	return points
}

// survives has a tool run as a task whose server is killed at an event, five times in full counts. Each ends with
// the answer that its replay gives, a list that begins with the input; check is told it, and of how many effects it
// is said that nobody knows.
func (w *tasksWorld) survives(t *testing.T, at int, code string, capabilities []string, check func(input, result string, unknown int)) {
	t.Helper()
	first := w.serves(t)
	first.makes("acts", code, capabilities...)
	first.in.Close()
	must.NoError(t, first.wait())
	each := 1
	if full() {
		each = 5 // 210 tasks in all
	}
	for n := range each {
		w.diesAt(t, at, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"tool":"acts","input":"i%d","background":true}}}`, n))
	}
	p := w.serves(t)
	list := w.listed(t).Tasks
	if len(list) == 0 && at != -1 {
		t.Fatal("no task is on record")
	}
	for _, task := range list {
		var input string
		must.NoError(t, json.Unmarshal([]byte(task.Input), &input))
		r := p.ended(task.Task)
		if r.IsError {
			t.Fatalf("%s ended with %s", task.Task, r.Content[0].Text)
		}
		out, err := w.command("mcp-pif", "replay", task.Task, "--profile", "p", "--json").Output()
		var replayed struct {
			Verdict string
			Answer  struct{ Result json.RawMessage }
		}
		if err != nil || json.Unmarshal(out, &replayed) != nil || replayed.Verdict != "identical" || string(replayed.Answer.Result) != r.Content[0].Text {
			t.Errorf("the answer is %s, and the replay: %v %s", r.Content[0].Text, err, out)
		}
		var result []json.RawMessage
		if err := json.Unmarshal(replayed.Answer.Result, &result); err != nil || len(result) == 0 || string(result[0]) != strconv.Quote(input) {
			t.Fatalf("the result is %s", replayed.Answer.Result)
		}
		events, _ := w.command("mcp-pif", "journal", "export", "--run", task.Task, "--profile", "p").Output()
		check(input, string(replayed.Answer.Result), strings.Count(string(events), `"kind":"outcome_unknown"`))
	}
}

const asks = `i => let a = !ask.user({message: "how many?", schema: {n: {type: "integer"}}}) in let k = !fs.append({path: "lines", content: i ++ "\n"}) in [i, a.content.n]`

// frame sends a request of a client that knows tasks, and gives the answer.
func frame(p *process, id int, method, params string) message {
	p.t.Helper()
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, id, method, params))
	return p.answer(strconv.Itoa(id))
}

// A clientState is what a client is told of a task.
type clientState struct {
	ResultType, TaskID, Status string
	InputRequests              map[string]json.RawMessage
	Result                     toolReply
}

func readState(t *testing.T, m message) (s clientState) {
	t.Helper()
	if m.Error != nil || json.Unmarshal(m.Result, &s) != nil {
		t.Fatalf("%+v", m)
	}
	return s
}

// TestTasksRestart: a hundred tasks that wait for a person wait on after a restart, and keep
// nobody else from running.
func TestTasksRestart(t *testing.T) {
	t.Parallel()
	w := newTasksWorld(t)
	const many = 100
	serves := func() *process {
		cmd := w.command("mcp-pif", "--profile", "p", "--cap", "fs:./box", "--cap", "ask")
		return startCommand(t, cmd)
	}
	p := serves()
	frame(p, 1, "tools/call", `"name":"evolve","arguments":`+string(cli.Marshal(map[string]any{"name": "asks", "code": asks, "capabilities": []string{"ask:user", "fs:./box"}})))
	ids := make([]string, many)
	for i := range ids {
		if ids[i] = readState(t, frame(p, 10+i, "tools/call", fmt.Sprintf(`"name":"asks","arguments":{"input":"t%d"}`, i))).TaskID; ids[i] == "" {
			t.Fatal("a call with a question isn't a task")
		}
	}
	kill9(t, p)
	p = serves()
	for i, id := range ids {
		var s clientState
		for s = readState(t, frame(p, 1000+i, "tasks/get", `"taskId":"`+id+`"`)); s.Status == "working"; s = readState(t, frame(p, 1000+i, "tasks/get", `"taskId":"`+id+`"`)) {
			time.Sleep(10 * time.Millisecond)
		}
		if s.Status != "input_required" || len(s.InputRequests) != 1 {
			t.Fatalf("task %d: %+v", i, s)
		}
		for key := range s.InputRequests {
			if i%2 == 0 {
				frame(p, 2000+i, "tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:{"action":"accept","content":{"n":%d}}}`, id, key, i))
			} else {
				frame(p, 2000+i, "tasks/cancel", `"taskId":"`+id+`"`)
			}
		}
		for s = readState(t, frame(p, 3000+i, "tasks/get", `"taskId":"`+id+`"`)); s.Status == "working" || s.Status == "input_required"; s = readState(t, frame(p, 3000+i, "tasks/get", `"taskId":"`+id+`"`)) {
			time.Sleep(10 * time.Millisecond)
		}
		line, did := fmt.Sprintf("t%d", i), 0
		if i%2 == 0 {
			if did = 1; s.Status != "completed" || s.Result.Content[0].Text != fmt.Sprintf(`["t%d",%d]`, i, i) {
				t.Errorf("task %d: %+v", i, s)
			}
		} else if s.Status != "cancelled" {
			t.Errorf("task %d: %+v", i, s)
		}
		if got := w.appended(t, line); got != did {
			t.Errorf("task %d acted %d times, not %d", i, got, did)
		}
	}
}

// kill9 ends a server as kill -9 does.
func kill9(t *testing.T, p *process) {
	t.Helper()
	must.NoError(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()
}

// TestTasksSlow: a call that isn't done after two seconds is answered with a task, to a client that
// declares the extension; another client waits.
func TestTasksSlow(t *testing.T) {
	t.Parallel()
	w := newTasksWorld(t)
	let := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-let:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	p := startCommand(t, w.command("mcp-pif", "--profile", "p", "--cap", "fetch:"+slow.URL))
	frame(p, 1, "tools/call", `"name":"evolve","arguments":`+string(cli.Marshal(map[string]any{"name": "slow", "code": "i => !fetch.request({url: \"" + slow.URL + "/\"}).status", "capabilities": []string{"fetch:" + slow.URL}})))
	p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{"input":1},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	s := readState(t, frame(p, 3, "tools/call", `"name":"slow","arguments":{"input":1}`))
	if s.ResultType != "task" || s.Status != "working" {
		t.Fatalf("the slow call gives %+v", s)
	}
	close(let)
	if r := p.tool(p.answer("2")); r.Content[0].Text != "200" {
		t.Errorf("who doesn't know tasks gets %+v", r)
	}
	for s.Status == "working" {
		s = readState(t, frame(p, 4, "tasks/get", `"taskId":"`+s.TaskID+`"`))
	}
	if s.Status != "completed" || s.Result.Content[0].Text != "200" {
		t.Errorf("it ends as %+v", s)
	}
}

// TestTasksCancelUnknown: what goes wrong once a task is cancelled doesn't hide that it is.
func TestTasksCancelUnknown(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	must.NoError(t, os.MkdirAll(filepath.Join(state, "mcp-pif"), 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(state, "mcp-pif", "cluster.json"), []byte("{"), 0o600))
	path := filepath.Join(state, "j.db")
	s, err := journal.Open(path, journal.Options{})
	must.NoError(t, err)
	_, err = s.Append(journal.Written, journal.TaskCreated, "task-1", "", []byte(`{"call":{"tool":"run","arguments":"{}"},"owner":"x"}`))
	must.NoError(t, errors.Join(err, s.Close()))
	for _, want := range []string{"the task is cancelled on record; whether its server ended it isn't known: ", "the task is over already"} {
		var out bytes.Buffer
		command([]string{"tasks", "cancel", "task-1", "--store", path}, strings.NewReader(""), &out, &out)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s, not %s", out.String(), want)
		}
	}
}
