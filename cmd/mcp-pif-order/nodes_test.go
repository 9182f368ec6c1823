//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crypto "crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/postgres/pgtest"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/remote"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// mcpPif builds the program whose order this one keeps, in a folder that TestMain removes.
var mcpPif = sync.OnceValues(func() (string, error) {
	path := filepath.Join(serverFolder, "mcp-pif")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = filepath.Join("..", "mcp-pif")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

var serverFolder string

const token = "0123456789abcdef0123456789abcdef"

// A node is a machine with a server that comes and goes.
type node struct {
	t     testing.TB
	dir   string // where commands run, with the state below it
	flags []string
	space string // the network namespace that it is in; "": this one
	http  *http.Client
	cmd   *exec.Cmd
	ended chan struct{}

	mu  sync.Mutex
	url string
	log bytes.Buffer
}

// newNode makes one that has no server yet.
func newNode(t testing.TB, flags ...string) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir(), flags: append(flags, "--http-tokens", "tokens"), http: http.DefaultClient}
	must.NoError(t, os.WriteFile(filepath.Join(n.dir, "tokens"), []byte("ann "+token+"\n"), 0o600))
	return n
}

// command runs one on the machine.
func (n *node) command(args ...string) *exec.Cmd {
	n.t.Helper()
	program, err := mcpPif()
	must.NoError(n.t, err)
	cmd := exec.Command(program, args...)
	within(n.space, cmd)
	cmd.Dir = n.dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "XDG_STATE_HOME=") }), "XDG_STATE_HOME="+filepath.Join(n.dir, "state"), "TMPDIR="+serverFolder) // what stays of a server that is killed goes with it
	return cmd
}

// says holds what a command prints against what it should.
func (n *node) says(want string, args ...string) {
	n.t.Helper()
	if out, _ := n.command(args...).CombinedOutput(); !strings.Contains(string(out), want) {
		n.t.Fatalf("%v: %s\nexpected %q", args, out, want)
	}
}

func (n *node) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.Write(p)
}

func (n *node) start() {
	n.t.Helper()
	n.mu.Lock()
	n.url = ""
	n.log.Reset()
	n.mu.Unlock()
	n.cmd, n.ended = n.command(append([]string{"serve", "--http", "127.0.0.1:0"}, n.flags...)...), make(chan struct{})
	n.cmd.Stdout, n.cmd.Stderr = n, n
	must.NoError(n.t, wait.Start(n.cmd))
	cmd, ended := n.cmd, n.ended
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	n.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		wait.For(n.t, ended, "the end of a server")
		if n.t.Failed() {
			n.t.Logf("%s: %.3000s", n.dir, n.log.String())
		}
	})
	served := regexp.MustCompile(`serves MCP at (\S+)`)
	wait.Until(n.t, "a server is ready", func() bool {
		n.mu.Lock()
		if m := served.FindStringSubmatch(n.log.String()); m != nil {
			n.url = m[1]
		}
		url := n.url
		n.mu.Unlock()
		select {
		case <-ended:
			n.t.Fatalf("the server ended: %s", n.log.String())
		default:
		}
		res, err := n.http.Get(strings.TrimSuffix(url, "/mcp") + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

func (n *node) kill() {
	n.t.Helper()
	_ = n.cmd.Process.Kill()
	wait.For(n.t, n.ended, "the end of a server")
}

// An answer is a tool's.
type answer struct {
	IsError           bool
	StructuredContent struct {
		Version      int
		Task, Status string
		Result       json.RawMessage
		Error        struct{ Kind, Message, Expected string }
	}
}

// errDown says that nothing was asked, or the server takes no requests now.
var errDown = errors.New("the server is down")

// ask calls a tool at a node, which may be down.
func (n *node) ask(ctx context.Context, tool string, arguments map[string]any) (a answer, err error) {
	n.mu.Lock()
	url := n.url
	n.mu.Unlock()
	if url == "" {
		return a, errDown
	}
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments, "_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": map[string]any{"name": "test", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": map[string]any{},
	}}})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	for key, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + token,
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		r.Header.Set(key, value)
	}
	res, err := n.http.Do(r)
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return a, errDown
	} else if err != nil {
		return a, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusServiceUnavailable {
		return a, errDown // before anything was done
	}
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadString('\n')
		var message struct{ Result *answer }
		if text, is := strings.CutPrefix(line, "data: "); is && json.Unmarshal([]byte(text), &message) == nil && message.Result != nil {
			return *message.Result, nil
		}
		if err != nil {
			return a, fmt.Errorf("%s: %w", res.Status, err)
		}
	}
}

// does is ask where nothing may fail.
func (n *node) does(tool string, arguments map[string]any) answer {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait.Limit(n.t))
	defer cancel()
	a, err := n.ask(ctx, tool, arguments)
	if err != nil || a.IsError {
		n.t.Fatalf("%s: %v %+v", tool, err, a)
	}
	return a
}

// joined makes machines the nodes of a cluster, each with its way to the order, and starts them.
func joined(t testing.TB, orders []string, flags ...string) (nodes []*node) {
	t.Helper()
	for i, at := range orders {
		n := newNode(t, append(flags, "--cluster")...)
		if i == 0 {
			n.says("no cluster is at", "cluster", "join", "--name", "n1", at)
		}
		n.says("this machine is the node", "cluster", []string{"init", "join"}[min(i, 1)], "--name", fmt.Sprint("n", i+1), at)
		n.start()
		nodes = append(nodes, n)
	}
	return nodes
}

// certificates writes those of an authority's for some names, and the authority's own.
func certificates(t testing.TB, dirs []string, names ...string) {
	t.Helper()
	var authority *x509.Certificate
	var sign *ecdsa.PrivateKey
	for i, name := range append([]string{"ca"}, names...) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), crypto.Reader)
		must.NoError(t, err)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
			IsCA: i == 0, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(addressIn(i - 1))},
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if i == 0 {
			authority, sign = template, key
		}
		der, err := x509.CreateCertificate(crypto.Reader, template, authority, &key.PublicKey, sign)
		must.NoError(t, err)
		private, err := x509.MarshalPKCS8PrivateKey(key)
		must.NoError(t, err)
		for _, dir := range dirs {
			must.NoError(t, os.WriteFile(filepath.Join(dir, name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
			must.NoError(t, os.WriteFile(filepath.Join(dir, name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
		}
	}
}

// TestReadme: the README's ten commands make three machines of one, with addresses of this
// machine: what one node acknowledged the others have.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	must.NoError(t, err)
	_, block, _ := strings.Cut(string(text), "from one machine to three without a Postgres:\n\n```text\n")
	block, _, _ = strings.Cut(block, "\n```")
	var machines []*node
	var dirs, addresses []string
	for i, port := range ports(t, 6) {
		addresses = append(addresses, fmt.Sprintf("10.0.0.%d:%d", i%3+1, 7001+i/3), port)
		if i < 3 {
			machines = append(machines, newNode(t))
			dirs = append(dirs, machines[i].dir)
		}
	}
	certificates(t, dirs, "o1", "o2", "o3", "n1", "n2", "n3")
	here := strings.NewReplacer(append(addresses, "'", "", "0.0.0.0:8443", "127.0.0.1:0")...)
	lines := strings.Split(block, "\n")
	processes, nodes := 0, 0
	for _, line := range lines {
		words := strings.Fields(here.Replace(line))
		switch {
		case words[0] == "mcp-pif-order":
			p := &process{t: t, args: words[1:], dir: dirs[processes]}
			p.start()
			t.Cleanup(p.kill)
			processes++
		case words[1] == "serve":
			n := machines[nodes-1]
			n.flags = words[4:]
			n.start()
		case words[2] == "status":
			machines[0].says("can act", words[1:]...)
		default:
			machines[nodes].says(fmt.Sprintf("this machine is the node n%d;", nodes+1), words[1:]...)
			nodes++
		}
	}
	if len(lines) != 10 || processes != 3 || nodes != 3 {
		t.Fatalf("%d commands for %d processes and %d nodes", len(lines), processes, nodes)
	}
	for i, n := range machines {
		if a := n.does("evolve", map[string]any{"name": "counts", "code": fmt.Sprint(i)}); a.StructuredContent.Version != i+1 {
			t.Errorf("node n%d made version %d", i+1, a.StructuredContent.Version)
		}
	}
}

// A watch is what the clients of real nodes saw.
type watch struct {
	simulation
	nodes []*node
	acked atomic.Int64
	tried []atomic.Int64 // at each node
	works []atomic.Int64 // of these what was answered as it should be
	puts  atomic.Int64   // under a rate of 20 an hour
	begun time.Time
	made  []string                               // versions
	also  func(context.Context, int, *rand.Rand) // as many clients more; nil: none

	calm          atomic.Pointer[context.Context] // until something breaks; what begins and ends in it is counted
	calls, failed atomic.Int64
}

// rated grants them.
var rated = []string{"--cap", "kv:n,rate=20/h"}

func watched(nodes []*node) *watch {
	nodes[0].does("evolve", map[string]any{"name": "puts", "code": `k => !kv.put({key: "n", value: k})`, "capabilities": []string{"kv.put:n"}})
	w := &watch{nodes: nodes, tried: make([]atomic.Int64, len(nodes)), works: make([]atomic.Int64, len(nodes)), begun: time.Now()}
	w.rests(func() {})
	return w
}

// rests has what clients call be counted until something ends.
func (w *watch) rests(until func()) {
	calm, broken := context.WithCancel(context.Background())
	defer broken()
	w.calm.Store(&calm)
	until()
}

// exhausted is what a node says, and what the cluster does, of the rate.
var exhausted = regexp.MustCompile(`more than 20/h|as often as the operator allows`)

// answered reports whether an answer is one that a whole cluster gives.
func (a answer) answered(err error) bool {
	e := a.StructuredContent.Error
	return err == nil && (!a.IsError || e.Kind == "conflict" || e.Kind == "no_tool" || exhausted.MatchString(e.Message))
}

// client asks one node until ctx ends.
func (w *watch) client(ctx context.Context, i int, r *rand.Rand) {
	known := map[string]int{}
	for n := 0; ctx.Err() == nil; n++ {
		in := asked{what: []string{"read", "evolve", "evolve", "retire"}[r.IntN(4)], tool: []string{"a", "b"}[r.IntN(2)]}
		if in.at = known[in.tool]; in.at == 0 && in.what == "retire" {
			in.what = "evolve"
		}
		calm := *w.calm.Load()
		limit, cancel := context.WithCancel(context.Background())
		limited := context.AfterFunc(calm, func() { time.AfterFunc(6*time.Second, cancel) }) // one that is paused never answers
		tool, arguments := in.what, map[string]any{"name": in.tool}
		switch in.what {
		case "read":
			tool = "describe"
		case "evolve":
			arguments["code"] = fmt.Sprint(i+1, "00000", n)
			fallthrough
		default:
			arguments["if_version"] = in.at
		}
		call := w.clock.Add(1)
		a, err := w.nodes[i].ask(limit, tool, arguments)
		put, failed := w.nodes[i].ask(limit, "run", map[string]any{"tool": "puts", "input": n})
		limited()
		cancel()
		w.tried[i].Add(1)
		works, counts := a.answered(err) && put.answered(failed), calm.Err() == nil
		if counts {
			w.calls.Add(1)
		}
		switch {
		case works:
			w.works[i].Add(1)
		case counts:
			w.failed.Add(1)
			w.nodes[i].t.Logf("failed at node %d: %v %+v, %v %+v", i, err, a, failed, put)
			fallthrough
		default: // not thousands that fail at once
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
		if errors.Is(err, errDown) {
			continue
		}
		if failed == nil && !put.IsError {
			w.puts.Add(1)
		}
		out, end := told{version: a.StructuredContent.Version}, w.clock.Add(1)
		switch kind := a.StructuredContent.Error.Kind; {
		case err == nil && !a.IsError:
			w.acked.Add(1)
			if known[in.tool] = out.version; in.what == "retire" {
				known[in.tool] = 0
			}
			if in.what == "evolve" {
				w.mu.Lock()
				w.made = append(w.made, fmt.Sprint(in.tool, " is ", arguments["code"]))
				w.mu.Unlock()
			}
		case in.what == "read" && kind == "no_tool":
			known[in.tool] = 0
		case in.what == "read":
			continue // nothing was seen
		case kind == "conflict" || kind == "no_tool":
			out.refused = true
			known[in.tool], _ = strconv.Atoi(a.StructuredContent.Error.Expected) // 0 where there is none
		default:
			out.unknown, end = true, math.MaxInt64
		}
		w.mu.Lock()
		w.history = append(w.history, porcupine.Operation{ClientId: i, Input: in, Output: out, Call: call, Return: end})
		w.mu.Unlock()
	}
}

// goes has clients ask while something happens, which waits for more to be acknowledged, and where
// nothing is broken any more for calls at each node, which are counted.
func (w *watch) goes(t *testing.T, while func(more, whole func(what string))) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	for i := range w.nodes {
		clients.Go(func() { w.client(ctx, i, rand.New(rand.NewPCG(uint64(i), 1))) })
		if w.also != nil {
			clients.Go(func() { w.also(ctx, i, rand.New(rand.NewPCG(uint64(i), 2))) })
		}
	}
	while(func(what string) {
		t.Helper()
		from := w.acked.Load()
		wait.Until(t, what, func() bool { return w.acked.Load() > from+5 })
	}, func(what string) {
		t.Helper()
		each(t, what, w.works, 1)
		w.rests(func() { each(t, what+", calls", w.tried, 6) })
	})
	stop()
	clients.Wait()
}

// judge reports whether one registry could have answered so, and one rate have given as many; while
// nothing was broken 99 of 100 calls are answered.
func (w *watch) judge(t *testing.T) (order porcupine.CheckResult, rate bool) {
	t.Helper()
	if order = porcupine.CheckOperationsTimeout(versions, w.history, wait.Limit(t)); order != porcupine.Ok {
		_, info := porcupine.CheckOperationsVerbose(versions, w.history, time.Minute)
		path := filepath.Join(t.ArtifactDir(), "history.html")
		t.Logf("what clients saw is in %s (kept with -artifacts): %v", path, porcupine.VisualizePath(versions, info, path))
	}
	most := 20 + int64(time.Since(w.begun)/(3*time.Minute))
	t.Logf("%d operations, %d acknowledged, %d puts of %d", len(w.history), w.acked.Load(), w.puts.Load(), most)
	calls, failed := w.calls.Load(), w.failed.Load()
	if t.Logf("%d of %d pairs of calls failed while nothing was broken", failed, calls); failed*100 > calls {
		t.Error("fewer than 99 % of the calls succeed outside of faults")
	}
	return order, w.puts.Load() <= most
}

// each waits until a number has grown by more than some at each node.
func each(t *testing.T, what string, numbers []atomic.Int64, some int64) {
	t.Helper()
	for i := range numbers {
		from := numbers[i].Load()
		wait.Until(t, fmt.Sprintf("%s at node %d", what, i), func() bool { return numbers[i].Load() > from+some })
	}
}

// TestNodes: what clients of real servers saw of versions and of a rate one server could have
// answered, though order and servers are killed and paused, and in the end all at once; each node's
// file has all that was acknowledged, and all have one chain.
func TestNodes(t *testing.T) {
	t.Parallel()
	t.Run("mcp-pif-order", func(t *testing.T) {
		t.Parallel()
		p, _ := alone(t)
		p.start()
		survives(t, p.address, must.Full(1, 20), func() { p.kill(); p.start() })
	})
	t.Run("Postgres", func(t *testing.T) {
		t.Parallel()
		pg := pgtest.Start(t)
		survives(t, pg.URL(), must.Full(1, 80), func() { pg.Kill(); pg.Start() })
	})
}

func survives(t *testing.T, at string, rounds int, fail func()) {
	p, a := newPosts(t), approvals{newPosts(t)}
	nodes := joined(t, []string{at, at, at}, slices.Concat(rated, []string{"--cap", p.capability(), "--ask", a.capability()})...)
	w, r, faults := watched(nodes), seeded(t), 0
	p.made(nodes, "posts", 20)
	a.forbids(true)
	a.made(slices.Clone(nodes), "asked", 1)
	w.also = p.client
	w.goes(t, func(more, whole func(string)) {
		for round := range rounds {
			if end, ok := t.Deadline(); ok && faults > 0 && time.Until(end) < 10*time.Minute {
				t.Errorf("%d faults were all that the time was enough for", faults)
				break
			}
			more("the cluster goes on")
			fail()
			whole("after its order was killed")
			if round < 2 { // five questions an hour are put
				a.nemesis(t, r, fail)
				whole("after approvals")
				faults += 3
			}
			if round%4 == 0 {
				i := r.IntN(3)
				p.elsewhere(t, nodes[i], nodes[(i+1)%3], fmt.Sprint("e", round))
				whole("after a node was paused in the middle of a task")
				faults++
			}
			i := r.IntN(3)
			n := nodes[i]
			_ = n.cmd.Process.Signal(syscall.SIGSTOP)
			more("while a node is paused")
			goesOn := func() {
				_ = n.cmd.Process.Signal(syscall.SIGCONT)
				whole("after a node was paused")
			}
			if round%4 == 0 {
				p.revoke(t, nodes[(i+1)%3], goesOn)
			} else {
				goesOn()
			}
			n = nodes[r.IntN(3)]
			n.kill()
			more("without a node")
			n.start()
			faults += 3
		}
		for _, n := range nodes {
			n.kill()
		}
		for _, n := range nodes {
			n.start()
		}
		whole("after all nodes were killed")
	})
	if order, rate := w.judge(t); order != porcupine.Ok || !rate {
		t.Errorf("the answers of one server: %v, of one rate: %v", order, rate)
	}
	p.judge(t)
	files := w.kept(t)
	p.listed(t, files[0])
	t.Logf("%d faults", faults+len(nodes))
}

// seeded gives what a test's faults are by: another one each time with PIF_FULL.
func seeded(t *testing.T) *rand.Rand {
	seed := uint64(1)
	if must.Full(0, 1) > 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 4))
}

// kept ends the nodes, holds their files against each other and what was acknowledged, and gives them.
func (w *watch) kept(t *testing.T) (all []string) {
	t.Helper()
	for _, n := range w.nodes {
		n.does("describe", map[string]any{"name": "puts"}) // it has what all acknowledged before
	}
	var first journal.Event
	for i, n := range w.nodes {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
		wait.For(t, n.ended, "the end of a server")
		files, err := filepath.Glob(filepath.Join(n.dir, "state", "mcp-pif", "profiles", "*", "journal.db"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		all = append(all, files[0])
		s, err := journal.Open(files[0], journal.Options{ReadOnly: true})
		must.NoError(t, err)
		defer s.Close()
		if _, err := s.Verify(t.Context()); err != nil {
			t.Errorf("node %d: %v", i, err)
		}
		made, last := map[string]bool{}, journal.Event{}
		must.NoError(t, s.Each(t.Context(), journal.Query{Kind: journal.ToolEvolved}, func(e *journal.Event) error {
			var data struct{ Source string }
			err := json.Unmarshal(e.Data, &data)
			made[e.Tool()+" is "+data.Source], last = true, *e
			return err
		}))
		for _, version := range w.made {
			if !made[version] {
				t.Errorf("node %d doesn't have that %s, which was acknowledged", i, version)
			}
		}
		if i == 0 {
			first = last
		}
		if len(w.made) == 0 || last.Seq != first.Seq || last.Hash != first.Hash {
			t.Errorf("%d were made; node 0 has the event %d with %x, node %d the event %d with %x", len(w.made), first.Seq, first.Hash, i, last.Seq, last.Hash)
		}
	}
	return all
}

// A fork is an order that from some moment on acknowledges to each node what it loses for
// the others: what no engine may do, and no node can see.
type fork struct {
	mu     sync.Mutex
	sides  []order.Order
	forked bool
}

// A side is one node's.
type side struct {
	order.Order
	fork *fork
}

func (s side) Propose(ctx context.Context, p []byte) (err error) {
	ctx = context.WithoutCancel(ctx) // a command that ends meanwhile leaves the sides alike
	s.fork.mu.Lock()
	defer s.fork.mu.Unlock()
	for _, o := range s.fork.sides {
		if !s.fork.forked || o == s.Order {
			err = errors.Join(err, o.Propose(ctx, p))
		}
	}
	return err
}

// TestNodesControl: over an order that acknowledges and loses the same is found out, of
// versions and of the rate.
func TestNodesControl(t *testing.T) {
	t.Parallel()
	f := &fork{}
	var addresses []string
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	t.Cleanup(func() { stop(); serving.Wait() })
	for range 2 {
		folder, err := os.MkdirTemp("", "o") // short enough for a socket's path
		must.NoError(t, err)
		t.Cleanup(func() { os.RemoveAll(folder) })
		addresses = append(addresses, "unix:"+filepath.Join(folder, "s"))
		l, err := remote.Listen(addresses[len(addresses)-1], false)
		must.NoError(t, err)
		one := order.NewMemory(order.MemoryOptions{Identity: "same"}).Open()
		f.sides = append(f.sides, one)
		serving.Go(func() { _ = remote.Serve(ctx, l, side{one, f}, nil) })
	}
	w := watched(joined(t, addresses, rated...))
	w.goes(t, func(_, _ func(string)) {
		wait.Until(t, "a pair of calls, not as many puts as there may be", func() bool { return w.acked.Load() > 0 })
		f.mu.Lock()
		f.forked = true
		f.mu.Unlock()
		each(t, "the nodes go on", w.works, 20)
		for _, n := range w.nodes { // all that either gives
			for range 20 {
				if put, err := n.ask(t.Context(), "run", map[string]any{"tool": "puts", "input": 0}); err == nil && !put.IsError {
					w.puts.Add(1)
				}
			}
		}
	})
	if order, rate := w.judge(t); order != porcupine.Illegal || rate {
		t.Errorf("an order that loses: the answers of one server: %v, of one rate: %v", order, rate)
	}
}

// TestFigures measures what takes how long on one server and on three nodes, and prints the
// table of the README, with PIF_FIGURES=1 only.
func TestFigures(t *testing.T) {
	if os.Getenv("PIF_FIGURES") == "" {
		t.Skip("PIF_FIGURES=1 go test -v -count=1 -run TestFigures . measures")
	}
	fmt.Println("| | evolve, p50 | p99 | call with an effect, p50 | p99 | `caps revoke` until it is done | longest without an evolve |\n|---|---|---|---|---|---|---|")
	one := newNode(t, "--cap", "kv:n")
	one.start()
	figures(t, "one server", one, func(func()) { one.kill(); one.start() })
	one.kill()
	pg := pgtest.Start(t)
	nodes := joined(t, []string{pg.URL(), pg.URL(), pg.URL()}, "--cap", "kv:n")
	figures(t, "three nodes, Postgres", nodes[2], func(func()) { pg.Kill(); pg.Start() })
	for _, n := range nodes {
		n.kill()
	}
	pg.Kill()
	all := three(t)
	at := all[0].address + "," + all[1].address + "," + all[2].address
	nodes = joined(t, []string{at, at, at}, "--cap", "kv:n")
	next := 0
	figures(t, "three nodes, `mcp-pif-order`", nodes[2], func(more func()) {
		all[next].kill() // each in turn, so the one that leads, too
		more()
		all[next].start()
		next++
	})
}

// figures measures at a node what fail does to it, too.
func figures(t *testing.T, what string, n *node, fail func(more func())) {
	t.Helper()
	made := atomic.Int64{}
	evolve := func(ctx context.Context) bool {
		a, err := n.ask(ctx, "evolve", map[string]any{"name": "t", "code": fmt.Sprint(made.Add(1))})
		return err == nil && !a.IsError
	}
	n.does("evolve", map[string]any{"name": "puts", "code": `k => !kv.put({key: "n", value: k})`, "capabilities": []string{"kv.put:n"}})
	fmt.Printf("| %s ", what)
	measure := func(times int, quantiles []int, do func()) {
		took := make([]time.Duration, times)
		for i := range took {
			begun := time.Now()
			do()
			took[i] = time.Since(begun)
		}
		slices.Sort(took)
		for _, q := range quantiles {
			fmt.Printf("| %v ", took[times*q/100].Round(100*time.Microsecond))
		}
	}
	evolve(t.Context()) // the first one opens what is needed
	n.does("run", map[string]any{"tool": "puts", "input": 0})
	measure(300, []int{50, 99}, func() {
		if !evolve(t.Context()) {
			t.Error("evolve failed")
		}
	})
	measure(300, []int{50, 99}, func() { n.does("run", map[string]any{"tool": "puts", "input": 1}) })
	measure(11, []int{50}, func() { _ = n.command("caps", "revoke", "kv:x").Run() })
	ctx, stop := context.WithCancel(t.Context())
	longest, acknowledged := make(chan time.Duration, 1), atomic.Int64{}
	go func() {
		most, last := time.Duration(0), time.Now()
		for ctx.Err() == nil {
			limit, cancel := context.WithTimeout(ctx, 20*time.Second)
			if evolve(limit) {
				acknowledged.Add(1)
				most, last = max(most, time.Since(last)), time.Now()
			}
			cancel()
		}
		longest <- most
	}()
	more := func() {
		from := acknowledged.Load()
		wait.Until(t, "tools are made", func() bool { return acknowledged.Load() > from+20 })
	}
	for range 3 {
		more()
		fail(more)
		more()
	}
	stop()
	fmt.Printf("| %v |\n", wait.For(t, longest, "the end of the client").Round(10*time.Millisecond))
}
