//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/streamable"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestToolsMakeRoom: for the tools of one who comes those are closed that take more than their part of
// the memory and that nobody uses, and no others.
func TestToolsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := registry.NewRoom(1<<20, 4, nil)
		var closed []string
		ps := newPrincipals(slog.New(slog.DiscardHandler), func(name string, _ uint64) (*principal, error) {
			tools := run.NewTools(nil)
			tools.Enter(room, 1)
			return &principal{server: mcpserver.New(engine.Options{Registry: tools}), lasting: true, close: func() {
				tools.Leave()
				closed = append(closed, name)
			}}, nil
		})
		use := func(name string, bytes int) (end func()) {
			ctx, end := context.WithCancel(t.Context())
			_, err := ps.server(ctx, name)
			must.NoError(t, err)
			code := fmt.Sprintf(`{"name":"f","code":"n => \"%s\""}`, strings.Repeat("x", bytes))
			ps.all[name].server.Call(t.Context(), engine.Call{Tool: "evolve", Arguments: []byte(code)})
			return end
		}
		use("small", 10)()
		use("large", 200_000)()
		endUsed := use("used", 200_000)
		synctest.Wait()
		if !ps.makeRoom() || ps.makeRoom() || !slices.Equal(closed, []string{"large"}) {
			t.Errorf("%q were closed", closed)
		}
		endUsed()
		synctest.Wait()
		if !ps.makeRoom() || !slices.Equal(closed, []string{"large", "used"}) {
			t.Errorf("%q were closed", closed)
		}
		ps.close()
	})
}

// TestPrincipalsAreBounded: the one that was longest idle makes room, first one that only said
// hello, and never one that is in use; who finds no room waits for a moment, and the log says so once.
func TestPrincipalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan string, 100)
		lasting := true
		var log bytes.Buffer
		ps := newPrincipals(slog.New(slog.NewTextHandler(&log, nil)), func(name string, _ uint64) (*principal, error) {
			if name == "broken" {
				return nil, errors.New("it can't be opened")
			}
			return &principal{server: mcpserver.New(engine.Options{}), close: func() { closed <- name }, lasting: lasting}, nil
		})
		ps.most = 3
		use := func(name string) (*mcp.Server, func()) {
			t.Helper()
			ctx, end := context.WithCancel(t.Context())
			s, err := ps.server(ctx, name)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			time.Sleep(time.Millisecond)
			return s, func() {
				end()
				time.Sleep(time.Millisecond) // the end of a request is noticed soon, not at once
			}
		}
		gone := func(want string) {
			t.Helper()
			select {
			case name := <-closed:
				if name != want {
					t.Errorf("%s was closed, not %s", name, want)
				}
			default:
				t.Errorf("%s wasn't closed", want)
			}
		}
		call := func(name string) {
			ps.all[name].server.Call(t.Context(), engine.Call{Tool: "evolve", Arguments: []byte(`{"name":"f","code":"n => n"}`)})
		}
		hello := func(name string) {
			t.Helper()
			near, far := mcp.NewInMemoryTransports()
			must.Succeed(t)(ps.all[name].server.Protocol().Connect(t.Context(), near, nil))
			client, err := far.Connect(t.Context())
			must.NoError(t, err)
			go func() { // takes what it is told
				for err == nil {
					_, err = client.Read(t.Context())
				}
				client.Close()
			}()
		}
		a, _ := use("a")
		if again, err := ps.server(t.Context(), "a"); err != nil || again != a {
			t.Errorf("a principal has two servers: %v", err)
		}
		_, endB := use("b")
		c, endC := use("c")
		began := time.Now()
		for range 2 {
			if _, err := ps.server(t.Context(), "d"); !errors.Is(err, streamable.ErrFull) {
				t.Errorf("a fourth came in while three are in use: %v", err)
			}
		}
		if waited := time.Since(began); waited != 2*ps.moment {
			t.Errorf("it waited for %v", waited)
		}
		if n := strings.Count(log.String(), "kept out"); n != 1 {
			t.Errorf("the log says it %d times", n)
		}
		go func() {
			time.Sleep(ps.moment / 2)
			endC()
		}()
		_, endD := use("d")
		gone("c")
		hello("b")
		call("b")
		endB()
		endD()
		if again, endC := use("c"); again == c {
			t.Error("what was closed is used again")
		} else {
			gone("d") // b was idle for longer, but has a session and has called a tool
			hello("c")
			endC()
		}
		_, endE := use("e")
		gone("c") // which only said hello
		if _, err := ps.server(t.Context(), "d"); err == nil {
			t.Error("who called a tool a moment ago was closed for another")
		}
		time.Sleep(keptUsed)
		_, endD = use("d")
		gone("b")
		endD()
		if err := ps.open("broken"); err == nil {
			t.Error("a principal without a server came in")
		}
		gone("d")
		endE()

		// What is kept in memory is lost with its server.
		lasting = false
		for _, name := range []string{"m", "n"} {
			_, end := use(name)
			call(name)
			end()
		}
		gone("e")
		if err := ps.open("o"); err == nil {
			t.Error("tools that are kept in memory were lost for another")
		}
		time.Sleep(keptOnly)
		_, endO := use("o")
		gone("m")
		endO()
		endAll := len(ps.all)
		ps.close()
		if len(closed) != endAll {
			t.Errorf("%d were closed at the end, of %d", len(closed), endAll)
		}
		if err := ps.open("a"); err == nil {
			t.Error("one was opened after the end")
		}
	})
}

// TestExpel: the server of a principal for whom no token stands any more is closed, in use or not; nobody else's is.
func TestExpel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed []string
		ps := newPrincipals(slog.New(slog.DiscardHandler), func(name string, _ uint64) (*principal, error) {
			return &principal{server: mcpserver.New(engine.Options{}), lasting: true, close: func() { closed = append(closed, name) }}, nil
		})
		for _, name := range []string{"ann", "bob"} {
			_, err := ps.server(t.Context(), name)
			must.NoError(t, err)
		}
		ps.expel(func(name string) bool { return name == "bob" })
		if !slices.Equal(closed, []string{"ann"}) {
			t.Errorf("%q were closed", closed)
		}
		ps.close()
	})
}

// TestPrincipalsOpenOnce: however many requests come at once, and however often there
// is no room, a principal has one server at a time.
func TestPrincipalsOpenOnce(t *testing.T) {
	var open [8]atomic.Int32
	var opened atomic.Int32
	ps := newPrincipals(slog.New(slog.DiscardHandler), func(name string, _ uint64) (*principal, error) {
		var i int
		fmt.Sscan(name, &i)
		opened.Add(1)
		if open[i].Add(1) != 1 {
			t.Errorf("%s is open twice", name)
		}
		time.Sleep(time.Millisecond)
		return &principal{server: mcpserver.New(engine.Options{}), lasting: true, close: func() {
			time.Sleep(time.Millisecond)
			open[i].Add(-1)
		}}, nil
	})
	ps.most, ps.moment = 4, 0
	var all sync.WaitGroup
	for w := range 16 {
		all.Go(func() {
			for i := 0; i < 20; {
				ctx, end := context.WithCancel(t.Context())
				if _, err := ps.server(ctx, fmt.Sprint((w+i)%len(open))); err == nil {
					i++
				} else { // all are in use at this moment
					time.Sleep(time.Millisecond)
				}
				end()
			}
		})
	}
	all.Wait()
	ps.close()
	if opened.Load() <= int32(len(open)) {
		t.Errorf("%d were opened, so that none was closed for another", opened.Load())
	}
	for i := range open {
		if n := open[i].Load(); n != 0 {
			t.Errorf("%d is open %d times after the end", i, n)
		}
	}
}

// TestHTTPRevoked: what the operator takes back stops for every principal, and is on
// the record of each, of those too that come later.
func TestHTTPRevoked(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	s := startWeb(t, state, "--http-tokens", tokensFile(t, "ann "+annToken, "bob "+bobToken, "eve eve-eve-eve-eve-eve-eve"), "--cap", "kv:notes/**")
	clients := []*webClient{s.connect(annToken, eras[0]), s.connect(bobToken, eras[1])}
	for i, c := range clients {
		c.makes("put", `v => !kv.put({key: "notes/a", value: v})`, "kv:notes/**")
		c.makes("get", `u => !kv.get("notes/a")`, "kv:notes/**")
		if text, failed := c.asks("put", map[string]any{"input": i}); failed {
			t.Fatal(text)
		}
	}
	for i, c := range clients {
		if text, _ := c.asks("get", map[string]any{}); !strings.HasPrefix(text, fmt.Sprint(i)) {
			t.Errorf("principal %d reads %s", i, text)
		}
	}
	revoke := self("mcp-pif", "caps", "revoke", "kv:notes/**")
	revoke.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
	if out, err := revoke.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// It is said of each principal that is there, and then of whoever comes.
	s.wait("the revocation", func() bool { return strings.Count(s.logged(), "msg=revoked") >= len(clients)+1 })
	clients = append(clients, s.connect("eve-eve-eve-eve-eve-eve", eras[0]))
	for i, c := range clients {
		if i < 2 {
			if text, failed := c.asks("get", map[string]any{}); !failed || !strings.Contains(text, "denied") {
				t.Errorf("principal %d still reads %s", i, text)
			}
		}
		if text, _ := c.asks("journal", map[string]any{"kind": "policy.revoked"}); !strings.Contains(text, "kv:notes/**") {
			t.Errorf("principal %d has no record of it: %s", i, text)
		}
	}
	s.stop()
}
