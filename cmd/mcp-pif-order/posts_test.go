//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// posts is what tasks of the nodes post to a site, which counts that where it arrives.
type posts struct {
	site  *httptest.Server
	nodes []*node
	// arrived is told of the first request of a task that is held until its client is gone, or may go on.
	arrived, goOn chan struct{}

	mu      sync.Mutex
	tasks   []string
	holds   string // the task whose first request is
	times   map[string]int
	revoked bool     // and acknowledged
	late    []string // those that arrived while it was
}

func newPosts(t *testing.T) *posts {
	p := &posts{times: map[string]int{}, arrived: make(chan struct{}, 1), goOn: make(chan struct{}, 1)}
	p.site = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodGet {
			p.mu.Lock()
			held := r.URL.Path == "/"+p.holds
			if held {
				p.holds = ""
			}
			p.mu.Unlock()
			if held {
				p.arrived <- struct{}{}
				select {
				case <-p.goOn:
				case <-r.Context().Done():
				}
			}
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.times[string(body)]++; p.revoked {
			p.late = append(p.late, string(body))
		}
	}))
	t.Cleanup(p.site.Close)
	return p
}

// capability is that of posting there.
func (p *posts) capability() string { return "fetch:" + p.site.URL }

// made are the nodes, which get a tool that posts some times.
func (p *posts) made(nodes []*node, tool string, times int) {
	p.nodes = nodes
	nodes[0].does("evolve", map[string]any{"name": tool, "capabilities": []string{p.capability()},
		"code": fmt.Sprintf(`id => let _ = !fetch.request({method: "GET", url: "%s/" ++ id}) in map(i => !fetch.request({method: "POST", url: "%[1]s/", body: id ++ "-" ++ to_text(i)}).status, range(0, %d))`, p.site.URL, times)})
}

// ask has a node run something; one that is paused never answers.
func (p *posts) ask(n *node, arguments map[string]any) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Second)
	defer cancel()
	return n.ask(ctx, "run", arguments)
}

// told reports whether a task has its answer.
func (p *posts) told(n *node, task string) (a answer, ended bool) {
	a, err := p.ask(n, map[string]any{"task": task})
	return a, err == nil && a.StructuredContent.Status != "working"
}

// client has tasks done one after the other, at any node, until ctx ends.
func (p *posts) client(ctx context.Context, i int, r *rand.Rand) {
	anyNode := func() *node { return p.nodes[r.IntN(len(p.nodes))] }
	for n := 0; ctx.Err() == nil; n++ {
		a, err := p.ask(anyNode(), map[string]any{"tool": "posts", "input": fmt.Sprint("t", i, "-", n), "background": true})
		task := a.StructuredContent.Task
		if err == nil && task != "" {
			p.mu.Lock()
			p.tasks = append(p.tasks, task)
			p.mu.Unlock()
		}
		for ended := false; !ended && ctx.Err() == nil; {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
			if ended = task == ""; !ended {
				_, ended = p.told(anyNode(), task)
			}
		}
	}
}

// elsewhere pauses a node in the middle of a task, until another node has done that.
func (p *posts) elsewhere(t *testing.T, paused, other *node, id string) {
	t.Helper()
	p.hold(id)
	task := paused.does("run", map[string]any{"tool": "posts", "input": id, "background": true}).StructuredContent.Task
	wait.For(t, p.arrived, "the first request of a task")
	_ = paused.cmd.Process.Signal(syscall.SIGSTOP)
	wait.Until(t, "its end elsewhere", func() bool {
		_, ended := p.told(other, task)
		return ended
	})
	p.goOn <- struct{}{}
	_ = paused.cmd.Process.Signal(syscall.SIGCONT)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tasks = append(p.tasks, task)
}

// forbids says whether what is posted from now on is late.
func (p *posts) forbids(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.revoked = is
}

// hold has the first request of a task be held.
func (p *posts) hold(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = id
}

// revoke has nobody post from when that is acknowledged, until what happens meanwhile is over.
func (p *posts) revoke(t *testing.T, n *node, meanwhile func()) {
	t.Helper()
	arrived := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.times)
	}
	before := arrived()
	wait.Until(t, "tasks post", func() bool { return arrived() > before })
	n.says("no node of the cluster acts under it any more", "caps", "revoke", p.capability())
	p.forbids(true)
	meanwhile()
	p.forbids(false)
	n.says("restored", "caps", "restore", p.capability())
}

// judge makes sure that each task ends, with one answer at all nodes, and that nothing was posted twice.
func (p *posts) judge(t *testing.T) {
	t.Helper()
	done := 0
	for _, task := range p.tasks {
		var first string
		for i, n := range p.nodes {
			var a answer
			wait.Until(t, "the end of a task", func() (ended bool) {
				a, ended = p.told(n, task)
				return ended
			})
			said := fmt.Sprintf("%+v", a)
			if i == 0 {
				first = said
			}
			if said != first {
				t.Errorf("the task %s gave %s, at node %d %s", task, first, i, said)
			}
		}
		if !strings.Contains(first, "IsError:true") {
			done++
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for body, n := range p.times {
		if n > 1 {
			t.Errorf("%s was posted %d times", body, n)
		}
	}
	if t.Logf("%d tasks, %d done, %d posts, %d of them late", len(p.tasks), done, len(p.times), len(p.late)); done == 0 {
		t.Error("no task was done")
	}
}

// listed makes sure that what was posted after a revocation had begun before, as its record says.
func (p *posts) listed(t *testing.T, file string) {
	t.Helper()
	s, err := journal.Open(file, journal.Options{ReadOnly: true})
	must.NoError(t, err)
	defer s.Close()
	var listed []string
	must.NoError(t, s.Each(t.Context(), journal.Query{Kind: journal.PolicyRevoked}, func(e *journal.Event) error {
		var data struct {
			UnderWay []string `json:"under_way"`
		}
		err := json.Unmarshal(e.Data, &data)
		listed = append(listed, data.UnderWay...)
		return err
	}))
	must.NoError(t, s.Each(t.Context(), journal.Query{Kind: journal.EffectRequested}, func(e *journal.Event) error {
		for _, body := range p.late {
			if strings.Contains(string(e.Data), `"`+body+`"`) && !slices.Contains(listed, fmt.Sprintf("fetch.request of the run %s, event %d", e.Run, e.Seq)) {
				t.Errorf("%s was posted after the revocation, and isn't among %q", body, listed)
			}
		}
		return nil
	}))
}
