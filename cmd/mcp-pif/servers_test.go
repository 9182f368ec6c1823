package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestTwoServers: what one server of a store changes, the other sees before its
// next request, and tells its client though that asks for nothing.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "pif.db")
	one, two := start(t, "--log-level=error", "--store", store).open(), start(t, "--log-level=error", "--store", store).open()
	one.makes("square", "n => n * n")
	if r := two.call("square", `{"input":7}`); r.Content[0].Text != "49" {
		t.Fatalf("the other server's tool: %s", r.Content[0].Text)
	}
	two.makes("square", "n => n + n")
	if r := one.call("square", `{"input":7}`); r.Content[0].Text != "14" {
		t.Fatalf("the other server's version: %s", r.Content[0].Text)
	}
	// Both have told their clients of that by now, or do so now.
	third := start(t, "--log-level=error", "--store", store).open()
	before := third.told
	third.makes("cube", "n => n * n * n")
	third.changed(before)
	before = third.told
	if r := third.call("retire", `{"name":"square","if_version":2}`); r.IsError {
		t.Fatal(r.Content[0].Text)
	}
	third.changed(before)
	// A client that asks for nothing is told all the same.
	one.changed(one.told)
	two.changed(two.told)
	for _, p := range []*process{one, two} {
		if names := listed(p); strings.Join(names[8:], " ") != "cube" {
			t.Errorf("the tools are %v", names)
		}
	}
}

// listed is the names on tools/list.
func listed(p *process) (names []string) {
	p.t.Helper()
	p.next++
	id := strconv.Itoa(p.next)
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/list"}`, id))
	var list struct{ Tools []struct{ Name string } }
	must.NoError(p.t, json.Unmarshal(p.answer(id).Result, &list))
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// TestManyWriters: writers over two servers, each adding to one tool what it
// read there, lose no addition, and are told of a conflict or nothing at all.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	const writers = 8
	each := 12
	if full() {
		each = 100
	}
	store := filepath.Join(t.TempDir(), "pif.db")
	var servers [2]*process
	for i := range servers {
		servers[i] = start(t, "--log-level=error", "--store", store).open()
	}
	servers[0].makes("counter", "0")
	var wg sync.WaitGroup
	clients := [2]*shared{newShared(servers[0]), newShared(servers[1])}
	for w := range writers {
		wg.Go(func() {
			c := clients[w%2]
			for done := 0; done < each; {
				var now struct {
					Version, Code int
				}
				if r := c.call("describe", `{"name":"counter"}`); r.IsError || json.Unmarshal(structured(r), &now) != nil {
					t.Errorf("describe: %s", r.Content[0].Text)
					return
				}
				r := c.call("evolve", fmt.Sprintf(`{"name":"counter","code":%d,"if_version":%d}`, now.Code+1, now.Version))
				switch {
				case !r.IsError:
					done++
				case r.kind() != "conflict":
					t.Errorf("evolve: %s", r.Content[0].Text)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, c := range clients {
		c.stop()
	}
	if r := servers[0].call("counter", `{}`); r.Content[0].Text != fmt.Sprint(writers*each) {
		t.Errorf("the counter is %s, expected %d", r.Content[0].Text, writers*each)
	}
	var d struct{ Version int }
	if r := servers[1].call("describe", `{"name":"counter"}`); json.Unmarshal(structured(r), &d) != nil || d.Version != writers*each+1 {
		t.Errorf("the counter has the version %d, expected %d", d.Version, writers*each+1)
	}
}

func structured(r toolReply) []byte {
	b, _ := json.Marshal(r.StructuredContent)
	return b
}

// A shared is a client with many calls under way over one connection.
type shared struct {
	p       *process
	mu      sync.Mutex
	next    int
	waiting map[string]chan message
	ended   chan struct{}
}

func newShared(p *process) *shared {
	s := &shared{p: p, next: 1 << 20, waiting: map[string]chan message{}, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		for {
			line, err := p.out.ReadBytes('\n')
			var m message
			if err != nil || json.Unmarshal(line, &m) != nil || m.Method == "" && string(m.ID) == `"stop"` {
				s.mu.Lock()
				defer s.mu.Unlock()
				for _, w := range s.waiting {
					close(w)
				}
				s.waiting = nil
				return
			}
			s.mu.Lock()
			if w := s.waiting[string(m.ID)]; w != nil && m.Method == "" {
				delete(s.waiting, string(m.ID))
				w <- m
			}
			s.mu.Unlock()
		}
	}()
	return s
}

// ask makes a call; ok is false where the server is gone.
func (s *shared) ask(tool, arguments string) (r toolReply, ok bool) {
	answered := make(chan message, 1)
	s.mu.Lock()
	if s.waiting == nil {
		s.mu.Unlock()
		return r, false
	}
	s.next++
	id := strconv.Itoa(s.next)
	s.waiting[id] = answered
	_, err := fmt.Fprintf(s.p.in, `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", id, tool, arguments)
	s.mu.Unlock()
	if err != nil {
		return r, false
	}
	select {
	case m, ok := <-answered:
		return r, ok && json.Unmarshal(m.Result, &r) == nil && len(r.Content) > 0
	case <-time.After(wait.Limit(s.p.t)):
		return r, false
	}
}

func (s *shared) call(tool, arguments string) toolReply {
	r, ok := s.ask(tool, arguments)
	if !ok {
		r.IsError, r.Content = true, []struct{ Text string }{{"the server gave no answer"}}
	}
	return r
}

// stop hands the connection back.
func (s *shared) stop() {
	s.p.send(`{"jsonrpc":"2.0","id":"stop","method":"ping"}`)
	wait.For(s.p.t, s.ended, "the end of reading")
}

// TestKilledServer: a server that is killed at any moment under load has lost
// nothing that it acknowledged; the record holds, and the next server goes on.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	kills := 20
	if full() {
		kills = 500
	}
	if testing.Short() {
		kills = 3
	}
	store := filepath.Join(t.TempDir(), "pif.db")
	acknowledged := map[string]int{} // the newest version of each tool that was answered for
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	answered := make(chan struct{})
	first := sync.OnceFunc(func() { close(answered) })
	defer first()
	for kill := range kills {
		p := start(t, "--log-level=error", "--store", store).open()
		c := newShared(p)
		// What was acknowledged before is there.
		for name, version := range acknowledged {
			r := c.call("history", fmt.Sprintf(`{"name":%q,"limit":1}`, name))
			var h struct{ Versions []struct{ Version int } }
			if json.Unmarshal(structured(r), &h) != nil || len(h.Versions) == 0 || h.Versions[0].Version < version {
				t.Fatalf("after %d kills %s has %s, version %d was acknowledged", kill, name, r.Content[0].Text, version)
			}
		}
		var wg sync.WaitGroup
		for w := range 4 {
			name := fmt.Sprintf("tool%d", w)
			wg.Go(func() {
				defer first()
				for i := 0; ; i++ {
					r, ok := c.ask("evolve", fmt.Sprintf(`{"name":%q,"code":%d}`, name, i))
					if !ok {
						return
					}
					var made struct{ Version int }
					if r.IsError || json.Unmarshal(structured(r), &made) != nil {
						t.Errorf("evolve: %s", r.Content[0].Text)
						return
					}
					mu.Lock()
					acknowledged[name] = max(acknowledged[name], made.Version)
					mu.Unlock()
					first()
				}
			})
			wg.Go(func() {
				for {
					if r, ok := c.ask("run", `{"code":{"add":[1,2]}}`); !ok {
						return
					} else if r.Content[0].Text != "3" {
						t.Errorf("run: %s", r.Content[0].Text)
					}
				}
			})
		}
		if kill == 0 { // whatever the others show
			wait.For(t, answered, "the first answer")
		}
		time.Sleep(time.Duration(random.IntN(60_000)) * time.Microsecond)
		_ = p.cmd.Process.Kill()
		wg.Wait()
		_ = p.cmd.Wait()
	}
	out, err := self("mcp-pif", "journal", "verify", "--store", store).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "\nok\n") {
		t.Errorf("verify: %v\n%s", err, out)
	}
	total := 0
	for _, version := range acknowledged {
		total += version
	}
	if total == 0 {
		t.Error("nothing was acknowledged: the test shows nothing")
	}
	t.Logf("%d kills, %d versions", kills, total)
}

// keptTools fills a new store with so many tools and gives its path.
func keptTools(t testing.TB, n int) string {
	t.Helper()
	store := filepath.Join(t.TempDir(), "pif.db")
	j, err := journal.Open(store, journal.Options{})
	must.NoError(t, err)
	defer j.Close()
	log := run.Log(j)
	r, _, err := registry.Open(log, caps.NewPolicy(nil, time.Now))
	must.NoError(t, err)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := w; i < n; i += 8 {
				if _, err := r.Evolve(registry.Definition{Name: fmt.Sprintf("tool%05d", i), Code: fmt.Appendf(nil, `{"lam":"x","body":{"add":[{"var":"x"},%d]}}`, i)}, registry.Edit{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return store
}

// TestRetireInOrder: calls sent without waiting see what the retire before them
// did, and an evolve after it goes on with the next version.
func TestRetireInOrder(t *testing.T) {
	p := start(t, "--log-level=error", "--store=memory").open()
	const rounds = 100
	go func() {
		for i := range rounds {
			for j, c := range []string{
				fmt.Sprintf(`"evolve","arguments":{"name":"n","code":%d}`, i),
				`"n","arguments":{}`,
				`"retire","arguments":{"name":"n"}`,
				`"n","arguments":{}`,
			} {
				fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%s}}`+"\n", 4*i+j, c)
			}
		}
	}()
	answers := make(map[string]toolReply, 4*rounds)
	for len(answers) < 4*rounds {
		if m := p.receive(); m.Method == "" {
			answers[string(m.ID)] = p.tool(m)
		}
	}
	for i := range rounds {
		at := func(j int) toolReply { return answers[strconv.Itoa(4*i+j)] }
		if got := string(at(0).StructuredContent["version"]); got != strconv.Itoa(i+1) {
			t.Fatalf("round %d made the version %s", i, got)
		}
		if at(1).Content[0].Text != strconv.Itoa(i) || at(2).IsError || at(3).kind() != "no_tool" {
			t.Fatalf("round %d: %s, %s, %s", i, at(1).Content[0].Text, at(2).Content[0].Text, at(3).Content[0].Text)
		}
	}
}
