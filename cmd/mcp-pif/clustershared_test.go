//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/postgres/pgtest"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// An acting is some nodes of a cluster with tools that act.
type acting struct {
	t        *testing.T
	order    *pgtest.Server
	command  string
	machines []string
	flags    [][]string
	nodes    []*webServer
	clients  []*webClient
}

// actorToken is that of their one principal.
const actorToken = "0123456789abcdef0123456789abcdef"

// actors starts one for each of own, with flags of all and these.
func actors(t *testing.T, flags []string, own ...[]string) *acting {
	t.Helper()
	at := pgtest.Start(t)
	a := &acting{t: t, order: at, command: "mcp-pif", nodes: make([]*webServer, len(own)), clients: make([]*webClient, len(own))}
	tokens := filepath.Join(t.TempDir(), "tokens")
	must.NoError(t, os.WriteFile(tokens, []byte("ann "+actorToken+"\n"), 0o600))
	for i, more := range own {
		a.machines, a.flags = append(a.machines, t.TempDir()), append(a.flags, slices.Concat([]string{"--cluster", "--http-tokens", tokens}, flags, more))
		says(t, a.machines[i], [2]string{fmt.Sprintf("cluster %s --name n%d %s", []string{"init", "join"}[min(i, 1)], i+1, at.URL()), fmt.Sprintf("is the node n%d", i+1)})
		a.start(i)
	}
	return a
}

// start starts the server of a node.
func (a *acting) start(i int) {
	a.t.Helper()
	a.nodes[i] = startWebAs(a.t, a.command, a.machines[i], a.flags[i]...)
	wait.Until(a.t, "the node is ready", func() bool { return a.nodes[i].readyz() == http.StatusOK })
	a.clients[i] = a.nodes[i].connect(actorToken, eras[1])
}

// kill ends it by kill -9.
func (a *acting) kill(i int) {
	a.t.Helper()
	must.NoError(a.t, a.nodes[i].cmd.Process.Kill())
	wait.For(a.t, a.nodes[i].ended, "the end of a node")
}

// profile is the folder of the principal's profile on a machine.
func (a *acting) profile(i int) string {
	a.t.Helper()
	files, err := filepath.Glob(filepath.Join(a.machines[i], "mcp-pif", "profiles", "*", app.JournalFile))
	if err != nil || len(files) != 1 {
		a.t.Fatal(files, err)
	}
	return filepath.Dir(files[0])
}

// gives has a node run something, whose answer has to hold a text.
func (a *acting) gives(node int, want string, arguments map[string]any) (text string) {
	a.t.Helper()
	text, _ = a.clients[node].asks("run", arguments)
	if !strings.Contains(text, want) {
		a.t.Errorf("node n%d with %v: %s\nexpected %q", node+1, arguments, text, want)
	}
	return text
}

// folders makes sure that what nodes have under one name, each at another place, is one grant, also when it is taken
// back; and that a tool that was made for a node's own folder acts on no other node's. at is where the first has it.
func folders(a *acting, at string) {
	a.t.Helper()
	for _, f := range []string{"papers", "alone"} {
		a.clients[0].makes("from_"+f, `p => !fs.read({path: p})`, "fs.read:"+f)
		a.gives(0, "of n1", map[string]any{"tool": "from_" + f, "input": "a.txt"})
	}
	shared, alone := map[string]any{"tool": "from_papers", "input": "a.txt"}, map[string]any{"tool": "from_alone", "input": "a.txt"}
	a.gives(1, "docs of n2", shared)
	a.gives(1, "of the node n1, and this is the node n2 of the cluster: the operator can grant one that is the same on each with fs:alone,shared=NAME", alone)
	says(a.t, a.machines[0], [2]string{"caps revoke fs:" + at, "'mcp-pif caps revoke fs:papers' revokes it on all"}, [2]string{"caps revoke fs:papers", "no node of the cluster"})
	a.gives(1, "revoked by the operator", shared)
	says(a.t, a.machines[0], [2]string{"caps revoke fs:mine", "revoked"}) // is nothing that the nodes share
	says(a.t, a.machines[1], [2]string{"caps restore fs:mine", "is not revoked"})
	says(a.t, a.machines[1], [2]string{"caps restore fs:papers", "restored"})
	says(a.t, a.machines[0], [2]string{"caps restore fs:" + at, "restored"})
	a.gives(1, "docs of n2", shared)
	a.clients[1].makes("from_alone", `p => !fs.read({path: p})`, "fs.read:alone")
	a.gives(1, "alone of n2", alone)
	a.gives(0, "of the node n2, and this is the node n1", alone)
}

// TestClusterFlow: what a model was shown at one node holds at the others, also after they were killed, and is forgotten
// at all; so do the bits that it was told, and what a folder took on; what is sealed at
// one is passed on at the others, also when that one was killed; so is a large result read on; a plan made at one,
// approved on the machine of another, is done at a third, once. Folders are shared where the operator says so.
func TestClusterFlow(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := 0
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		asked++
		mu.Unlock()
	}))
	t.Cleanup(site.Close)
	policy := filepath.Join(t.TempDir(), "policy.json")
	all := t.TempDir()
	must.NoError(t, os.WriteFile(policy, fmt.Appendf(nil, `{"flow":{"sources":[{"of":"kv.get:n/shown","label":"shown"},{"of":"kv.get:n/kept","label":"kept"},{"of":"kv.get:few","label":"few"}],
		"rules":[{"to":"fetch","not_from":["shown"]},{"to":"model","not_from":["kept"],"else":"seal"},{"to":"fs.write:%s","not_from":["shown"],"else":"taint"},
			{"to":"model","not_from":["few"],"except":[{"type":"boolean"}],"bits":2}]}}`, all), 0o600))
	var own [3][]string
	for i := range own {
		dir := t.TempDir()
		for _, name := range []string{"docs", "alone"} {
			must.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			must.NoError(t, os.WriteFile(filepath.Join(dir, name, "a.txt"), fmt.Appendf(nil, "%s of n%d", name, i+1), 0o600))
		}
		own[i] = []string{"--cap", "fs:" + dir + "/docs,shared=papers", "--cap", "fs:alone=" + dir + "/alone", "--cap", "fs:" + all + ",shared=all"}
	}
	a := actors(t, []string{"--policy", policy, "--cap", "kv:n/**", "--cap", "kv:few", "--cap", "fetch:" + site.URL, "--confirm", "kv.delete:n/**"}, own[:]...)
	folders(a, strings.TrimSuffix(strings.TrimPrefix(own[0][1], "fs:"), ",shared=papers"))
	a.clients[0].makes("reads", `k => !kv.get({key: "n/" ++ k, in: "n/**"})`, "kv.get:n/**")
	a.clients[0].makes("asks", fmt.Sprintf(`i => !fetch.request({method: "GET", url: "%s/" ++ to_text(i)}).status`, site.URL), "fetch:"+site.URL)
	a.clients[0].makes("drops", `k => !kv.delete({key: "n/x", in: "n/**"})`, "kv.delete:n/**")
	a.clients[0].makes("size", "x => length(to_text(x))")
	a.clients[0].makes("keeps", `k => let s = !kv.get({key: "n/shown", in: "n/**", default: 1}) in let w = !fs.write({in: "all", path: "copy", content: to_text(s)}) in 1`, "kv.get:n/**", "fs:all")
	a.clients[0].makes("leaks", fmt.Sprintf(`i => !fetch.request({method: "GET", url: "%s/" ++ !fs.read({in: "all", path: "copy"})}).status`, site.URL), "fs:all", "fetch:"+site.URL)
	a.clients[0].makes("tells", `k => let v = !kv.get({key: "few", in: "few", default: 1}) in v == null`, "kv.get:few")
	a.gives(1, "200", map[string]any{"tool": "asks", "input": 1})
	a.gives(0, `"result":1`, map[string]any{"tool": "keeps", "input": 1})
	a.gives(0, `"result":`, map[string]any{"tool": "tells", "input": 1})
	a.kill(2)
	a.start(2)
	for i := range a.nodes {
		a.gives(i, "may not be given what depends on shown", map[string]any{"tool": "leaks", "input": 1})
		a.gives(i, "is sealed as", map[string]any{"tool": "tells", "input": 1})
	}
	a.gives(0, "", map[string]any{"tool": "reads", "input": "shown"})
	a.kill(2)
	a.start(2)
	for i := range a.nodes {
		a.gives(i, "may not be given what depends on shown", map[string]any{"tool": "asks", "input": 1})
	}
	sealed := regexp.MustCompile(`s_\w+`).FindString(a.gives(0, "is sealed as", map[string]any{"tool": "reads", "input": "kept"}))
	uses := map[string]any{"tool": "size", "input": "", "sealed": map[string]string{"": sealed}}
	a.gives(1, "is sealed as", uses)

	session, err := flow.NewSession(filepath.Join(a.profile(1), "flow.json"), nil)
	must.NoError(t, err)
	must.NoError(t, session.Clear(nil)) // as 'mcp-pif flow clear' does
	for i := range a.nodes {
		a.gives(i, "200", map[string]any{"tool": "asks", "input": 1})
	}
	mu.Lock()
	if asked != 4 {
		t.Errorf("the site was asked %d times", asked)
	}
	mu.Unlock()

	text := a.gives(0, "too large to show", map[string]any{"code": "range(0, 60000)"})
	large := regexp.MustCompile(`"result":"([^"]+)"`).FindStringSubmatch(text)
	if large == nil {
		t.Fatal(text)
	}
	on := map[string]any{"result": large[1], "from": 20000}
	if here, there := a.gives(0, "4300,4301", on), a.gives(1, "4300,4301", on); here != there {
		t.Errorf("the result differs: %s\n%s", here, there)
	}

	plan := regexp.MustCompile(`p_[\w-]+`).FindString(a.gives(0, "waiting", map[string]any{"tool": "drops", "input": 1}))
	named := filepath.Join(t.TempDir(), "mcp-pif")
	must.NoError(t, os.Symlink(a.nodes[1].cmd.Path, named))
	screen, err := approving(named+" approve "+plan, "yes NUMBER", append(a.nodes[1].cmd.Env, "TERM=xterm")...)
	if err != nil || !strings.Contains(screen, "Approved") {
		t.Fatal(screen, err)
	}
	a.gives(2, "false", map[string]any{"plan": plan})
	a.gives(0, "was begun and has ended", map[string]any{"plan": plan})

	a.kill(0)
	a.gives(2, "is sealed as", uses)
	a.gives(2, "4300,4301", on)
}

// heldSite is a site that tells what was asked for, and answers when it may.
func heldSite(t *testing.T) (site *httptest.Server, arrived chan string, answer chan bool) {
	t.Helper()
	arrived, answer = make(chan string, 100), make(chan bool, 100)
	site = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- r.URL.Path
		select {
		case <-answer:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(site.Close)
	return site, arrived, answer
}

// TestClusterPaused: a node, or its plugin, that is stopped while a revocation, or the clearing of an approval, is
// acknowledged at the other node begins nothing under it when it goes on: neither what its program asks for next, nor what
// the plugin was asked for before.
func TestClusterPaused(t *testing.T) {
	t.Parallel()
	t.Run("revoked", func(t *testing.T) {
		t.Parallel()
		site, arrived, answer := heldSite(t)
		defer close(answer)
		a := actors(t, []string{"--cap", "fetch:" + site.URL}, nil, nil)
		paused(a, site.URL, arrived, answer, []bool{false, true}, "revoked by the operator", func() {
			says(t, a.machines[1], [2]string{"caps revoke fetch:" + site.URL, "no node of the cluster acts under it any more"})
		}, func() { says(t, a.machines[1], [2]string{"caps restore fetch:" + site.URL, ""}) }) // the first time it isn't revoked
	})
	t.Run("cleared", func(t *testing.T) {
		t.Parallel()
		site, arrived, answer := heldSite(t)
		defer close(answer)
		a := actors(t, []string{"--ask", "fetch:" + site.URL}, nil, nil)
		person, waits := &caps.Consents{Path: filepath.Join(a.machines[1], "mcp-pif", "consent.json")}, "waits for the operator's approval"
		// While the node goes on, what the plugin was asked for is under way, and done.
		paused(a, site.URL, arrived, answer, []bool{true}, waits, func() { must.Succeed(t)(person.Clear("asks")) }, func() {
			a.gives(1, waits, map[string]any{"tool": "asks", "input": 1})
			all, _, err := person.All()
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			must.NoError(t, person.Answer(all[0].ID, &all[0].Subject, caps.YesVersion, "terminal"))
		})
	})
}

// stopped stops a process, and waits until each of its threads stands still: the signal is only sent before.
func stopped(t *testing.T, pid int) {
	t.Helper()
	if syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return // it has ended
	}
	wait.Until(t, "a process stands still", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return !slices.ContainsFunc(threads, func(path string) bool {
			stat, err := os.ReadFile(path)
			_, state, _ := strings.Cut(string(stat), ") ")
			return err == nil && !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "Z")
		})
	})
}

// paused has what one node does at a site be forbidden and permitted at the other one, while it or its plugin is stopped.
// both says of each time that the plugin is whether the node is, too, and why what a program is told.
func paused(a *acting, site string, arrived chan string, answer chan bool, both []bool, why string, forbid, permit func()) {
	t := a.t
	a.clients[0].makes("asks", fmt.Sprintf(`n => map(i => !fetch.request({method: "GET", url: "%s/" ++ to_text(i)}).status, range(0, n))`, site), "fetch:"+site)
	refused := func(text string) {
		t.Helper()
		if !strings.Contains(text, why) {
			t.Errorf("its end: %s", text)
		}
		select {
		case path := <-arrived:
			t.Errorf("%s was asked for after that was forbidden", path)
		default:
		}
	}
	var all []int
	start := func() {
		t.Helper()
		permit()
		answer <- true
		a.gives(0, "200", map[string]any{"tool": "asks", "input": 1})
		wait.For(t, arrived, "the request that starts a plugin")
		all = children(t, a.nodes[0].cmd.Process.Pid)
	}

	start()
	task := regexp.MustCompile(`"task":"([^"]+)"`).FindStringSubmatch(a.gives(0, "task", map[string]any{"tool": "asks", "input": 3, "background": true}))
	if task == nil {
		t.Fatal("no task")
	}
	wait.For(t, arrived, "the first request")
	stopped(t, a.nodes[0].cmd.Process.Pid)
	answer <- true
	forbid()
	must.NoError(t, a.nodes[0].cmd.Process.Signal(syscall.SIGCONT))
	text := "working"
	wait.Until(t, "the end of the task", func() bool {
		text, _ = a.clients[1].asks("run", map[string]any{"task": task[1]})
		return !strings.Contains(text, "working")
	})
	refused(text)

	plugins := func(s syscall.Signal) {
		for _, pid := range all {
			_ = syscall.Kill(pid, s) // one whose grant was revoked has ended
		}
	}
	s, err := journal.Open(filepath.Join(a.profile(0), app.JournalFile), journal.Options{ReadOnly: true})
	must.NoError(t, err)
	defer s.Close()
	requested := func() int {
		events, _, err := s.Read(journal.Query{Kind: journal.EffectRequested})
		must.NoError(t, err)
		return len(events)
	}
	for _, both := range both {
		start()
		before := requested()
		for _, pid := range all {
			stopped(t, pid)
		}
		ended := make(chan string, 1)
		go func() { // not as a task, which looks at once whose it is
			text, _ := a.clients[0].asks("run", map[string]any{"tool": "asks", "input": 1})
			ended <- text
		}()
		wait.Until(t, "the plugin is asked", func() bool { return requested() > before })
		if both { // so that the node neither ends it nor takes back what it asked for
			a.clients[0].names() // by then the plugin has the request
			stopped(t, a.nodes[0].cmd.Process.Pid)
		}
		forbid()
		if both { // so that it has the plugin's answer before it hears of that
			a.order.Signal(syscall.SIGSTOP)
		}
		plugins(syscall.SIGCONT)
		if both {
			says(t, a.machines[1], [2]string{"caps revoked", ""}) // while the plugin looks
			must.NoError(t, a.nodes[0].cmd.Process.Signal(syscall.SIGCONT))
			says(t, a.machines[0], [2]string{"cluster status", "can't act now"})
			a.order.Signal(syscall.SIGCONT)
		}
		refused(wait.For(t, ended, "the end of the call"))
	}
}

// TestClusterTaken: a node that is stopped in the middle of a task, which another then does, begins nothing more of it when it
// goes on. One that doesn't see whose the task is does all of it once more, so that this test can fail.
func TestClusterTaken(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"mcp-pif", "unfenced"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			var gets, posts atomic.Int64
			arrived, answer := make(chan bool, 1), make(chan bool)
			site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					posts.Add(1)
				} else if gets.Add(1) == 1 {
					arrived <- true
					select {
					case <-answer:
					case <-r.Context().Done():
					}
				}
			}))
			t.Cleanup(site.Close)
			release := sync.OnceFunc(func() { close(answer) })
			defer release()
			a := actors(t, []string{"--cap", "fetch:" + site.URL}, nil, nil)
			a.kill(0)
			a.command = command
			a.start(0)
			a.clients[0].makes("asks", fmt.Sprintf(`i => let a = !fetch.request({method: "GET", url: "%s/"}) in !fetch.request({method: "POST", url: "%s/"}).status`, site.URL, site.URL), "fetch:"+site.URL)
			a.clients[1].names()
			a.gives(0, "task", map[string]any{"tool": "asks", "input": 1, "background": true})
			wait.For(t, arrived, "the first request")
			must.NoError(t, a.nodes[0].cmd.Process.Signal(syscall.SIGSTOP))
			wait.Until(t, "the other node does the task", func() bool { return posts.Load() == 1 })
			release()
			must.NoError(t, a.nodes[0].cmd.Process.Signal(syscall.SIGCONT))
			wait.Until(t, "its end at the node that was stopped", func() bool {
				return strings.Contains(a.nodes[0].logged(), "another server has taken over this task") || posts.Load() > 1
			})
			if n := posts.Load(); (n == 1) != (command == "mcp-pif") {
				t.Errorf("%s: it was done %d times", command, n)
			}
		})
	}
}

// TestClusterLostCall: a call that is no task and was under way at a node that was killed is on record as one of which
// nobody knows what came, at each other node, and at that one when it is back; a run that ended isn't. It can be replayed
// as far as it is on record.
func TestClusterLostCall(t *testing.T) {
	t.Parallel()
	site, arrived, answer := heldSite(t)
	defer close(answer)
	a := actors(t, []string{"--cap", "fetch:" + site.URL}, nil, nil, nil)
	a.clients[0].makes("asks", fmt.Sprintf(`i => !fetch.request({method: "POST", url: "%s/"}).status`, site.URL), "fetch:"+site.URL)
	answer <- true
	a.gives(0, "200", map[string]any{"tool": "asks", "input": 1})
	wait.For(t, arrived, "the first request")
	for i := 1; i < 3; i++ {
		a.clients[i].names()
	}
	go func() { // it is cut off
		_, _ = a.clients[0].CallTool(t.Context(), &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"tool": "asks", "input": 2}})
	}()
	wait.For(t, arrived, "the request of the call")
	a.kill(0)
	look := func(i int) {
		t.Helper()
		var runs []shownRun
		wait.Until(t, "the run is lost", func() bool {
			out := onMachine(t, a.machines[i], "journal runs --json --profile "+filepath.Base(a.profile(i)))
			runs = nil
			if err := json.Unmarshal([]byte(out), &runs); err != nil {
				t.Fatal(err, out)
			}
			return len(runs) == 2 && runs[1].Result != "running"
		})
		if !strings.Contains(runs[0].Result, "✓") || !strings.HasPrefix(runs[1].Result, "✗ outcome_unknown: the node n1 ended") {
			t.Errorf("node n%d: %+v", i+1, runs)
		}
		if out := onMachine(t, a.machines[i], "replay "+runs[1].Run+" --profile "+filepath.Base(a.profile(i))); !strings.Contains(out, "the record ends after") {
			t.Error(out)
		}
	}
	look(1)
	look(2)
	a.start(0)
	a.clients[0].names()
	look(0)
}

// TestClusterOwner: commands on another machine than that of the node which does a task or a plan: the task ends, what is under way of the plan can't be resolved while the node runs, and is when it has ended.
func TestClusterOwner(t *testing.T) {
	t.Parallel()
	site, arrived, answer := heldSite(t)
	defer close(answer)
	a := actors(t, []string{"--cap", "fetch:" + site.URL}, nil, nil)
	a.clients[0].makes("asks", fmt.Sprintf(`i => !fetch.request({method: "POST", url: "%s/"}).status`, site.URL), "fetch:"+site.URL)
	profile := " --profile " + filepath.Base(a.profile(0))
	task := regexp.MustCompile(`"task":"([^"]+)"`).FindStringSubmatch(a.gives(0, "task", map[string]any{"tool": "asks", "input": 1, "background": true}))
	wait.For(t, arrived, "the request of the task")
	a.clients[1].names()
	says(t, a.machines[1], [2]string{"tasks cancel " + task[1] + profile, "cancelled: its run has ended"})

	plan := regexp.MustCompile(`p_[\w-]+`).FindString(a.gives(0, "plan", map[string]any{"tool": "asks", "input": 1, "plan": true}))
	go func() { // it is cut off
		_, _ = a.clients[0].CallTool(t.Context(), &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"plan": plan}})
	}()
	wait.For(t, arrived, "the request of the plan")
	a.clients[1].names()
	resolve := "resolve " + strings.TrimPrefix(plan, "p_") + " 1 did" + profile
	says(t, a.machines[1], [2]string{resolve, "the server that began the plan " + plan + " is running"})
	a.kill(0)
	goesOn := map[string]any{"plan": plan, "resume": true}
	text := ""
	wait.Until(t, "the plan can go on", func() bool {
		text, _ = a.clients[1].asks("run", goesOn)
		return resolves.MatchString(text)
	})
	m := resolves.FindStringSubmatch(text)
	says(t, a.machines[1], [2]string{"resolve " + m[2] + " " + m[1] + " did" + profile, "recorded: the plan can go on"})
	a.gives(1, "was done, as a person said", goesOn)
}

// TestClusterSchedule: what a person has run now and then on one machine is started by one node, any of them, once for
// each time, and not while another node does the task before; it goes on without the node that did it, and ends where
// it is taken out on another machine.
func TestClusterSchedule(t *testing.T) {
	t.Parallel()
	site, arrived, answer := heldSite(t)
	defer close(answer)
	a := actors(t, []string{"--cap", "fetch:" + site.URL}, nil, nil, nil)
	a.clients[0].makes("beats", fmt.Sprintf(`i => !fetch.request({method: "POST", url: "%s/"}).status`, site.URL), "fetch:"+site.URL)
	for i := range a.clients {
		a.clients[i].names()
	}
	profile := " --profile " + filepath.Base(a.profile(0))
	says(t, a.machines[0], [2]string{"tasks every 1s beats 1" + profile, "beats every 1s"})
	schedules := func(i int) []engine.Schedule {
		t.Helper()
		all, err := engine.SchedulesIn(filepath.Join(a.profile(i), "tasks")).Load()
		must.NoError(t, err)
		return all
	}
	begun := func(node int) (last time.Time) {
		if all := schedules(node); len(all) == 1 {
			last = all[0].Begun
		}
		return last
	}
	newest := func(node, want int) *run.Task {
		t.Helper()
		var all []*run.Task
		wait.Until(t, "the node has its task", func() bool {
			s, err := journal.Open(filepath.Join(a.profile(node), app.JournalFile), journal.Options{ReadOnly: true})
			must.NoError(t, err)
			all, err = run.Tasks(s, time.Time{})
			must.NoError(t, errors.Join(err, s.Close()))
			return len(all) >= want
		})
		if len(all) != want || all[want-1].Schedule == "" || !strings.Contains(all[want-1].Owner, "@n") {
			t.Fatalf("%d tasks, not %d", len(all), want)
		}
		return all[want-1]
	}
	// The task is under way, and becomes due again and again.
	held := func(node, tasks int) (owner int) {
		t.Helper()
		wait.For(t, arrived, "the request of a scheduled tool")
		for range 3 {
			before := begun(node)
			wait.Until(t, "the schedule is due again", func() bool { return begun(node).After(before) })
		}
		select {
		case <-arrived:
			t.Error("it was started twice")
		default:
		}
		_, err := fmt.Sscanf(newest(node, tasks).Owner[strings.Index(newest(node, tasks).Owner, "@"):], "@n%d", &owner)
		must.NoError(t, err)
		return owner - 1
	}
	held(1, 1)
	answer <- true
	owner := held(0, 2)
	a.kill(owner)
	other := (owner + 1) % len(a.nodes)
	if again := held(other, 3); again == owner {
		t.Errorf("the node n%d did it, which has ended", again+1)
	}
	says(t, a.machines[other], [2]string{"tasks remove " + schedules(other)[0].ID + profile, "removed"})
	third := 3 - owner - other
	wait.Until(t, "it is taken out", func() bool { return len(schedules(third)) == 0 })
}

// TestClusterScheduleWakes: a node that is stopped in the middle of a scheduled task, which others went on with, and with
// the next ones, begins nothing more of it when it goes on: no effect is done twice, and no two runs do it at once.
func TestClusterScheduleWakes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked, posts := 0, map[string]int{}
	arrived, answer := make(chan bool, 1), make(chan bool)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if r.Method == http.MethodPost {
			posts[r.URL.Path]++
			mu.Unlock()
			return
		}
		asked++
		n := asked
		mu.Unlock()
		if n == 1 {
			arrived <- true
			select {
			case <-answer:
			case <-r.Context().Done():
			}
		}
		fmt.Fprint(w, n)
	}))
	t.Cleanup(site.Close)
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	a := actors(t, []string{"--cap", "fetch:" + site.URL}, nil, nil, nil)
	a.clients[0].makes("beats", fmt.Sprintf(`i => let a = !fetch.request({method: "GET", url: "%s/first"}) in !fetch.request({method: "POST", url: "%s/" ++ a.body}).status`, site.URL, site.URL), "fetch:"+site.URL)
	for i := range a.clients {
		a.clients[i].names()
	}
	says(t, a.machines[0], [2]string{"tasks every 1s beats 1 --profile " + filepath.Base(a.profile(0)), "beats every 1s"})
	wait.For(t, arrived, "the first request")
	var all []*run.Task
	wait.Until(t, "the node 0 has the task", func() bool {
		s, err := journal.Open(filepath.Join(a.profile(0), app.JournalFile), journal.Options{ReadOnly: true})
		must.NoError(t, err)
		all, err = run.Tasks(s, time.Time{})
		must.NoError(t, errors.Join(err, s.Close()))
		return len(all) > 0
	})
	var owner int
	must.Succeed(t)(fmt.Sscanf(all[0].Owner[strings.Index(all[0].Owner, "@"):], "@n%d", &owner))
	woken := a.nodes[owner-1]
	must.NoError(t, woken.cmd.Process.Signal(syscall.SIGSTOP))
	done := func(more int) bool {
		mu.Lock()
		defer mu.Unlock()
		return len(posts) >= more
	}
	wait.Until(t, "others go on with it, and with the next ones", func() bool { return done(3) })
	release()
	must.NoError(t, woken.cmd.Process.Signal(syscall.SIGCONT))
	wait.Until(t, "it hears that another has it", func() bool { return strings.Contains(woken.logged(), "another server has taken over this task") })
	mu.Lock()
	before := len(posts)
	mu.Unlock()
	wait.Until(t, "more are done", func() bool { return done(before + 2) })
	mu.Lock()
	defer mu.Unlock()
	for path, n := range posts {
		if path == "/1" || n > 1 {
			t.Errorf("%s was done %d times", path, n)
		}
	}
}
