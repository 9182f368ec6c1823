//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/postgres/pgtest"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// A clusterNode is a machine of a cluster, whose server comes and goes.
type clusterNode struct {
	t     *testing.T
	name  string
	state string
	flags []string
	mu    sync.Mutex
	s     *webServer
}

func (n *clusterNode) start() {
	n.t.Helper()
	s := startWeb(n.t, n.state, append(n.flags, "--cluster")...)
	n.mu.Lock()
	n.s = s
	n.mu.Unlock()
	wait.Until(n.t, "node "+n.name+" is ready", func() bool { return n.s.readyz() == http.StatusOK })
}

func (n *clusterNode) server() *webServer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.s
}

func (n *clusterNode) kill() {
	n.t.Helper()
	_ = n.s.cmd.Process.Kill()
	wait.For(n.t, n.s.ended, "the end of node "+n.name)
}

// make makes a version of a tool at a node, which may be down, and reports whether that was acknowledged.
func (n *clusterNode) make(ctx context.Context, tool, code string) bool {
	ctx, cancel := context.WithTimeout(ctx, 6*time.Second) // a paused one answers never
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: n.server().url, HTTPClient: &http.Client{Transport: transport}, MaxRetries: -1}, nil)
	if err != nil {
		return false
	}
	defer c.Close()
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "evolve", Arguments: map[string]any{"name": tool, "code": code}})
	return err == nil && !res.IsError
}

// made is the versions that the node's file has.
func (n *clusterNode) made() map[string]bool {
	n.t.Helper()
	s, err := journal.Open(n.file(), journal.Options{ReadOnly: true})
	must.NoError(n.t, err)
	defer s.Close()
	versions := map[string]bool{}
	must.NoError(n.t, s.Each(n.t.Context(), journal.Query{Kind: journal.ToolEvolved}, func(e *journal.Event) error {
		var data struct{ Source string }
		err := json.Unmarshal(e.Data, &data)
		versions[e.Tool()+" is "+data.Source] = true
		return err
	}))
	return versions
}

// TestClusterPostgres: three servers with one order in Postgres are one. What a node
// acknowledged the others have at the next request, whoever is killed or paused, nodes or
// database; each node's file has all of it in the end, and all have one chain.
func TestClusterPostgres(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	var nodes []*clusterNode
	for i := range 3 {
		n := &clusterNode{t: t, name: fmt.Sprintf("n%d", i+1), state: t.TempDir()}
		verb := "join"
		if i == 0 {
			says(t, n.state, [2]string{"cluster join --name n1 " + pg.URL(), "no cluster is at"})
			verb = "init"
		}
		says(t, n.state, [2]string{"cluster " + verb + " --name " + n.name + " " + pg.URL(), "this machine is the node " + n.name})
		n.start()
		nodes = append(nodes, n)
	}
	for i, n := range nodes {
		name := fmt.Sprintf("at_%d", i)
		n.s.connect("", eras[i%2]).makes(name, "1")
		for _, other := range nodes {
			if names := other.s.connect("", eras[1]).names(); !slices.Contains(names, name) {
				t.Errorf("node %s doesn't have what node %s acknowledged: %v", other.name, n.name, names)
			}
		}
	}

	// Clients that make tools at any node, while nodes and database go down.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var acknowledged sync.Map
	var count atomic.Int64
	var clients sync.WaitGroup
	for who := range 2 {
		clients.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				tool, code := fmt.Sprintf("t_%d_%d", who, i%40), fmt.Sprint(i)
				if nodes[(who+i)%3].make(ctx, tool, code) {
					acknowledged.Store(tool+" is "+code, true)
					count.Add(1)
				}
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	more := func(what string) {
		t.Helper()
		from := count.Load()
		wait.Until(t, "tools are made: "+what, func() bool { return count.Load() > from+1 })
	}
	rounds, seed := 1, uint64(1)
	if os.Getenv("PIF_FULL") != "" {
		rounds, seed = 100, rand.Uint64()
	}
	faults := 0
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	for range rounds {
		if end, ok := t.Deadline(); ok && faults > 0 && time.Until(end) < 10*time.Minute {
			t.Errorf("%d faults were all that the time was enough for", faults)
			break
		}
		n := nodes[r.IntN(3)]
		n.kill()
		more("without one node")
		n.start()
		n = nodes[r.IntN(3)]
		_ = n.s.cmd.Process.Signal(syscall.SIGSTOP)
		more("with one node paused")
		_ = n.s.cmd.Process.Signal(syscall.SIGCONT)
		pg.Kill()
		pg.Start()
		more("after the database was killed")
		faults += 3
	}
	for _, n := range nodes {
		n.kill()
		faults++
	}
	for _, n := range nodes {
		n.start()
	}
	more("after all nodes were killed")
	stop()
	clients.Wait()

	anchor := ""
	for _, n := range nodes {
		_ = n.s.connect("", eras[1]).names() // has what all acknowledged before
	}
	for _, n := range nodes {
		n.s.stop()
		made := n.made()
		acknowledged.Range(func(version, _ any) bool {
			if !made[version.(string)] {
				t.Errorf("node %s doesn't have that %s, which was acknowledged", n.name, version)
			}
			return true
		})
		command := "journal verify --profile http"
		if anchor != "" {
			command += " --anchor " + anchor
		}
		out := onMachine(t, n.state, command)
		if anchor = newestEvent.FindString(out); anchor == "" {
			t.Errorf("node %s: %s: %s", n.name, command, out)
		}
	}
	t.Logf("%d versions acknowledged over %d faults", count.Load(), faults)
}
