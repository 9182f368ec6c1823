//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/postgres/pgtest"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// readyz is what a load balancer is told.
func (s *webServer) readyz() int {
	s.t.Helper()
	res, err := http.Get(strings.TrimSuffix(s.url, "/mcp") + "/readyz")
	must.NoError(s.t, err)
	defer res.Body.Close()
	return res.StatusCode
}

// onMachine runs a command on a machine, which may fail.
func onMachine(t *testing.T, state, args string) string {
	t.Helper()
	cmd := self("mcp-pif", strings.Fields(args)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "XDG_STATE_HOME=") }), "XDG_STATE_HOME="+state)
	cmd.Dir = state // another one on each machine
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// says holds what commands print against what they should.
func says(t *testing.T, state string, commands ...[2]string) {
	t.Helper()
	for _, c := range commands {
		if out := onMachine(t, state, c[0]); !strings.Contains(out, c[1]) {
			t.Errorf("%s: %s\nexpected %q", c[0], out, c[1])
		}
	}
}

// TestClusterDev: a server with an order in memory serves as one without, commands reach
// it, and after kill -9 it goes on with its files; a single server has them when they left
// the cluster, and not before.
func TestClusterDev(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	alone := startWeb(t, state)
	alone.connect("", eras[0]).makes("first", "1")
	alone.stop()
	for _, name := range []string{"second", "third"} {
		s := startWeb(t, state, "--cluster=dev", "--cluster-node=n1")
		if got := s.readyz(); got != http.StatusOK {
			t.Errorf("/readyz: %d", got)
		}
		c := s.connect("", eras[1])
		c.makes(name, "1")
		if names := c.names(); !slices.Contains(names, "first") || !slices.Contains(names, name) {
			t.Errorf("tools: %v", names)
		}
		says(t, state, [2]string{"cluster status", "node n1 of the order"}, [2]string{"cluster status --json", `"nodes": []`}, [2]string{"caps revoke kv:x", "revoked kv:x"},
			[2]string{"cluster repair", "no other node has a copy"},
			[2]string{"caps restore kv:x", "restored kv:x"}, [2]string{"tools retire " + name + " --profile http", "is retired"}, [2]string{"tools rollback " + name + " 1 --profile http", name},
			[2]string{"cluster leave", "end it first"}, [2]string{"journal verify --profile http", "ok"})
		must.NoError(t, s.cmd.Process.Kill())
		wait.For(t, s.ended, "the end of the server")
	}
	says(t, state, [2]string{"caps revoke kv:x", "start it"}, [2]string{"tools retire first --profile http", "start it"}, [2]string{"cluster leave", "out of the cluster: 1 profile"}, [2]string{"caps revoke kv:x", "revoked kv:x"})
	s := startWeb(t, state, "--cluster=dev", "--cluster-node=n1")
	s.connect("", eras[0])
	s.stop()
	says(t, state, [2]string{"cluster status", "mcp-pif cluster leave"}, [2]string{"cluster leave", "out of the cluster: 1 profile"})
	alone = startWeb(t, state)
	if names := alone.connect("", eras[0]).names(); !slices.Contains(names, "first") || !slices.Contains(names, "third") {
		t.Errorf("tools: %v", names)
	}
	alone.stop()
	says(t, state, [2]string{"journal verify --profile http", "ok"})
}

// TestReadmeCluster: the README's ten commands make three machines of one, with the addresses
// of this machine.
func TestReadmeCluster(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	_, at, _ := strings.Cut(pg.URL(), "host=")
	text, err := os.ReadFile("../README.md")
	must.NoError(t, err)
	_, block, _ := strings.Cut(string(text), "from one machine to three:\n\n```text\n")
	block, _, _ = strings.Cut(block, "\n```")
	tokens := filepath.Join(t.TempDir(), "tokens")
	must.NoError(t, os.WriteFile(tokens, []byte("ann 0123456789abcdef0123456789abcdef\n"), 0o600))
	here := strings.NewReplacer("postgres://pif@db.example/pif", "postgres://pif@/pif?sslmode=disable&host="+at, "http-tokens tokens", "http-tokens "+tokens)
	var machines []string
	var nodes []*webServer
	lines := strings.Split(block, "\n")
	for _, line := range lines {
		command, _, _ := strings.Cut(here.Replace(line), "  ")
		program, args, _ := strings.Cut(command, " ")
		serves, served := strings.CutPrefix(args, "serve --http 0.0.0.0:8443 ")
		switch {
		case program == "createdb":
			pg.Exec("CREATE DATABASE " + args)
		case program == "curl":
			if got := nodes[0].readyz(); got != http.StatusOK || !strings.HasSuffix(args, "/readyz") {
				t.Errorf("%s: %d", line, got)
			}
		case served:
			nodes = append(nodes, startWeb(t, machines[len(machines)-1], strings.Fields(serves)...))
		case strings.HasPrefix(args, "cluster status"):
			for _, state := range machines {
				says(t, state, [2]string{args, "can act"})
			}
		case strings.HasPrefix(args, "cluster "):
			machines = append(machines, t.TempDir())
			says(t, machines[len(machines)-1], [2]string{args, fmt.Sprintf("this machine is the node n%d;", len(machines))})
		default:
			says(t, machines[1], [2]string{args, "revoked kv:notes"})
		}
	}
	if len(lines) != 10 || len(nodes) != 3 {
		t.Fatalf("%d commands for %d nodes", len(lines), len(nodes))
	}
	for i, s := range nodes {
		c := s.connect("0123456789abcdef0123456789abcdef", eras[0])
		c.makes(fmt.Sprint("at", i), "1")
		if names := c.names(); !slices.Contains(names, "at0") {
			t.Errorf("node %d has %v", i, names)
		}
		says(t, machines[i], [2]string{"caps revoked", "kv:notes"})
	}
}

// TestCluster: three servers with a Postgres between are one: what one acknowledged the
// next request at another sees, of two changes of one version one is refused, what is
// revoked on one machine is everywhere; after kill -9 of one the others go on, and it comes
// back with all. Each file has the same chain.
func TestCluster(t *testing.T) {
	t.Parallel()
	_, at, _ := strings.Cut(pgtest.Start(t).URL(), "host=")
	url := "postgres://pif@/postgres?sslmode=disable&host=" + at
	machines := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	nodes := make([]*webServer, len(machines))
	says(t, machines[1], [2]string{"cluster join --name n1 " + url, "no cluster is at"})
	for i, state := range machines {
		verb := []string{"init", "join", "join"}[i]
		says(t, state, [2]string{fmt.Sprintf("cluster %s --name n%d %s", verb, i, url), fmt.Sprintf("this machine is the node n%d", i)})
		if i == 0 {
			says(t, t.TempDir(), [2]string{"cluster init --name n8 " + url, "that of the node n0, which hasn't started yet"})
		}
		nodes[i] = startWeb(t, state, "--cluster")
	}
	says(t, t.TempDir(), [2]string{"cluster init --name n9 " + url, "join it"}, [2]string{"cluster join --name n1 " + url, "a name is used once"})
	clients := make([]*webClient, len(nodes))
	for i, s := range nodes {
		clients[i] = s.connect("", eras[i%2])
	}
	for i := range 9 {
		clients[i%3].makes("counts", fmt.Sprint(i))
		if text, failed := clients[(i+1)%3].asks("run", map[string]any{"code": "@counts({})"}); failed || !strings.Contains(text, fmt.Sprint(i)) {
			t.Fatalf("after version %d: %s", i+1, text)
		}
	}
	results := make(chan bool, 3)
	for _, c := range clients {
		go func() {
			_, failed := c.asks("evolve", map[string]any{"name": "counts", "code": `"raced"`, "if_version": 9, "description": c.ID()})
			results <- failed
		}()
	}
	refused := 0
	for range clients {
		if wait.For(t, results, "the answer to a change") {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("of three changes of one version %d were refused", refused)
	}
	says(t, machines[1], [2]string{"caps revoke kv:x", "revoked kv:x"})
	for _, state := range machines {
		text, err := os.ReadFile(filepath.Join(state, "mcp-pif", "revoked.json"))
		if err != nil || !strings.Contains(string(text), "kv:x") {
			t.Errorf("%s, %v", text, err)
		}
	}
	must.NoError(t, nodes[2].cmd.Process.Kill())
	wait.For(t, nodes[2].ended, "the end of a node")
	clients[0].makes("later", "1")
	nodes[2] = startWeb(t, machines[2], "--cluster")
	if names := nodes[2].connect("", eras[0]).names(); !slices.Contains(names, "later") {
		t.Errorf("it came back without what was made meanwhile: %v", names)
	}
	says(t, machines[2], [2]string{"cluster status", "n0"})
	nodes[2].stop()
	clients[0].makes("last", "1")
	says(t, machines[0], [2]string{"caps revoke kv:last", "revoked kv:last"})
	nodes[0].stop()
	nodes[1].stop()
	// What was decided while a machine was away it has when it leaves.
	says(t, machines[2], [2]string{"cluster leave", "out of the cluster: 1 profile"}, [2]string{"caps revoked", "kv:last"},
		[2]string{"tools show last --profile http", "last"}, [2]string{"cluster leave", "in no cluster"})
	machines = machines[:2]
	// The one that ended last has what the others recorded when they ended, and more.
	var chains [][]journal.Event
	for _, state := range machines {
		s, err := journal.Open(filepath.Join(state, "mcp-pif", "profiles", "http", app.JournalFile), journal.Options{ReadOnly: true})
		must.NoError(t, err)
		if _, err := s.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		events, _, err := s.Read(journal.Query{})
		must.NoError(t, errors.Join(err, s.Close()))
		chains = append(chains, events)
	}
	for i := range chains {
		for j := range chains[i] {
			if last := chains[len(chains)-1]; j < len(last) && chains[i][j].Hash != last[j].Hash {
				t.Fatalf("event %d of the nodes %d and %d differs", j+1, i, len(chains)-1)
			}
		}
	}
	if n := len(chains[0]); n < 20 {
		t.Errorf("only %d events", n)
	}
}

// TestClusterTask: a task whose node is killed in the middle of it goes on at another one by
// itself: what it did before is done once, what it was at is asked for again, and any node has
// its answer. Nodes with other flow rules, or another lock of MCP servers, than those that run
// don't take it, and say why they don't act.
func TestClusterTask(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	posts := map[string]int{}
	held, over := make(chan bool, 1), make(chan bool)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		posts[r.Method+" "+r.URL.Path+" "+string(body)]++
		n := posts["GET /hold "]
		mu.Unlock()
		if r.URL.Path == "/hold" && n == 1 {
			held <- true
			select {
			case <-r.Context().Done():
			case <-over:
			}
		}
	}))
	t.Cleanup(site.Close)
	defer close(over)
	url := pgtest.Start(t).URL()
	dir := t.TempDir()
	const token = "0123456789abcdef0123456789abcdef"
	must.NoError(t, os.WriteFile(filepath.Join(dir, "tokens"), []byte("ann "+token+"\n"), 0o600))
	must.NoError(t, os.WriteFile(filepath.Join(dir, "other.json"), []byte(`{"flow":{"sources":[{"of":"kv.get:n","label":"l"}],"rules":[{"to":"fetch","not_from":["l"]}]}}`), 0o600))
	var machines []string
	var nodes []*webServer
	start := func(verb string, flags ...string) *webClient {
		state, name := t.TempDir(), fmt.Sprint("n", len(nodes))
		says(t, state, [2]string{"cluster " + verb + " --name " + name + " " + url, "is the node " + name})
		s := startWeb(t, state, append(flags, "--cluster", "--http-tokens", filepath.Join(dir, "tokens"), "--cap", "kv:n", "--cap", "fetch:"+site.URL)...)
		wait.Until(t, name+" is ready", func() bool { return s.readyz() == http.StatusOK })
		nodes, machines = append(nodes, s), append(machines, state)
		return s.connect(token, eras[1])
	}
	first := start("init")
	code := fmt.Sprintf(`i => let post = b => !fetch.request({method: "POST", url: "%s/", body: b}) in
  let a = post("a") in let h = !fetch.request({method: "GET", url: "%s/hold"}) in let b = post("b") in [a.status, h.status, b.status]`, site.URL, site.URL)
	if text, failed := first.asks("evolve", map[string]any{"name": "acts", "code": code, "capabilities": []string{"fetch:" + site.URL}}); failed {
		t.Fatal(text)
	}
	second := start("join")
	var other *webClient
	for i, has := range [][3]string{{"flow rules", "--policy", filepath.Join(dir, "other.json")}, {"plugins", "--mcp-lock", newServedWorld(t).lock.Path}} {
		other = start("join", has[1:]...)
		if text, failed := other.asks("run", map[string]any{"tool": "acts", "input": 1}); !failed || !strings.Contains(text, "has other "+has[0]+" than the cluster") {
			t.Errorf("a node with other %s: %s", has[0], text)
		}
		says(t, machines[2+i], [2]string{"cluster status", "performs no effects, since it has other " + has[0]})
	}
	text, failed := first.asks("run", map[string]any{"tool": "acts", "input": 1, "background": true})
	found := regexp.MustCompile(`"task":"([^"]+)"`).FindStringSubmatch(text)
	if failed || found == nil {
		t.Fatal(text)
	}
	id := found[1]
	wait.For(t, held, "the middle of the task")
	must.NoError(t, nodes[0].cmd.Process.Kill())
	wait.Until(t, "the task has its answer", func() bool {
		text, failed = second.asks("run", map[string]any{"task": id})
		return failed || !strings.Contains(text, "working")
	})
	again, _ := other.asks("run", map[string]any{"task": id})
	mu.Lock()
	defer mu.Unlock()
	if failed || text != again || posts["POST / a"] != 1 || posts["POST / b"] != 1 || posts["GET /hold "] != 2 {
		t.Errorf("%s, elsewhere %s, with %v", text, again, posts)
	}
}
