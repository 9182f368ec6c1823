//go:build unix

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/journal/order"
	"github.com/mcp-pif/mcp-pif/cmd/internal/orders/postgres/pgtest"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestFiguresOfNodes is [TestFigures] of what is seen, comes back and goes on elsewhere.
func TestFiguresOfNodes(t *testing.T) {
	if os.Getenv("PIF_FIGURES") == "" {
		t.Skip("PIF_FIGURES=1 go test -v -count=1 -run TestFigures . measures")
	}
	arrived, answer := make(chan bool, 100), make(chan bool)
	site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- true
		select {
		case <-answer:
		case <-r.Context().Done():
		}
	}))
	defer site.Close()
	defer close(answer)
	fmt.Println("| | call that does nothing, 16 callers, p50 | with `--cluster-reads=local` | seen at another node, p99 | a node is back after kill -9 | a task goes on after its node's death |\n|---|---|---|---|---|---|")
	one := newNode(t)
	one.start()
	one.does("evolve", map[string]any{"name": "nothing", "code": "x => 0"})
	fmt.Printf("| one server | %v | | | %v | |\n", calls(one), back(one))
	one.kill()
	for _, c := range []struct {
		what  string
		start func() (at string, end func())
	}{
		{"three nodes, Postgres", func() (string, func()) {
			pg := pgtest.Start(t)
			return pg.URL(), pg.Kill
		}},
		{"three nodes, `mcp-pif-order`", func() (string, func()) {
			all := three(t)
			return all[0].address + "," + all[1].address + "," + all[2].address, func() {}
		}},
	} {
		at, end := c.start()
		nodes := joined(t, []string{at, at, at}, "--cap", "fetch:"+site.URL)
		nodes[0].does("evolve", map[string]any{"name": "nothing", "code": "x => 0"})
		nodes[0].does("evolve", map[string]any{"name": "asks", "code": fmt.Sprintf(`i => !fetch.request({method: "GET", url: "%s"}).status`, site.URL), "capabilities": []string{"fetch:" + site.URL}})
		n := nodes[2]
		latest := calls(n)
		n.kill()
		n.flags = append(n.flags, "--cluster-reads=local")
		n.start()
		local := calls(n)
		var seen []time.Duration
		for i := range 300 {
			made := nodes[0].does("evolve", map[string]any{"name": "t", "code": fmt.Sprint(i)}).StructuredContent.Version
			begun := time.Now()
			wait.Until(t, "the version is seen", func() bool {
				a, err := n.ask(t.Context(), "describe", map[string]any{"name": "t"})
				return err == nil && a.StructuredContent.Version == made
			})
			seen = append(seen, time.Since(begun))
		}
		fmt.Printf("| %s | %v | %v | %v | %v ", c.what, latest, local, quantile(seen, 99), back(n))
		for _, n := range nodes {
			n.does("run", map[string]any{"tool": "nothing", "input": 1}) // so that it knows whose tasks there are
		}
		n.does("run", map[string]any{"tool": "asks", "input": 1, "background": true})
		wait.For(t, arrived, "the request of the task")
		n.kill()
		begun := time.Now()
		wait.For(t, arrived, "the request once more")
		fmt.Printf("| %v |\n", time.Since(begun).Round(10*time.Millisecond))
		for _, n := range nodes {
			n.kill()
		}
		end()
	}
	fmt.Printf("Events that a node applies: %d a second\n", applied(t))
}

// quantile is so many hundredths of what was measured.
func quantile(took []time.Duration, hundredths int) time.Duration {
	slices.Sort(took)
	return took[len(took)*hundredths/100].Round(100 * time.Microsecond)
}

// calls measures what a call of a tool that does nothing takes beside 15 others.
func calls(n *node) time.Duration {
	var mu sync.Mutex
	var took []time.Duration
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range 100 {
				begun := time.Now()
				_, err := n.ask(context.Background(), "run", map[string]any{"tool": "nothing", "input": 1})
				mu.Lock()
				if took = append(took, time.Since(begun)); err != nil {
					n.t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	return quantile(took, 50)
}

// back measures what it takes until a server that was killed serves again.
func back(n *node) time.Duration {
	var took []time.Duration
	for range 5 {
		n.kill()
		begun := time.Now()
		n.start()
		took = append(took, time.Since(begun))
	}
	return quantile(took, 50)
}

// applied measures how many events a second come into the file of a node that begins.
func applied(t *testing.T) int {
	t.Helper()
	const events = 50_000
	m, dir := order.NewMemory(order.MemoryOptions{}), t.TempDir()
	open := func(name string) *journal.Store {
		s, err := journal.Open(filepath.Join(dir, name), journal.Options{Order: m.Open(), Node: name, Profile: "p"})
		must.NoError(t, err)
		return s
	}
	a := open("a")
	defer a.Close()
	for range events {
		_, err := a.Append(journal.Noted, journal.EffectOutcome, "r", "", []byte(`{"request":1,"value":"0123456789012345678901234567890123456789012345678901234567890123456789"}`))
		must.NoError(t, err)
	}
	must.NoError(t, a.Barrier(t.Context()))
	begun := time.Now()
	b := open("b")
	defer b.Close()
	must.NoError(t, b.Barrier(t.Context()))
	return int(events / time.Since(begun).Seconds())
}
