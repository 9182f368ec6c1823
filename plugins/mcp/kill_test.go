//go:build linux

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/internal/jsonvalue"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// servePlugin is this test binary as the plugin's process, if it was started as one.
func servePlugin() {
	if len(os.Args) < 2 || os.Args[1] != "plugin" {
		return
	}
	told, err := sdk.ReadSettings()
	if err != nil {
		panic(err)
	}
	s, err := ParseSettings(told)
	if err != nil {
		panic(err)
	}
	p, err := Plugin(s)
	if err != nil {
		panic(err)
	}
	sdk.Serve(p)
}

// A hosted world has the plugin in a process of its own.
type hosted struct {
	*world
	host *host.Host
	held *caps.Held
}

func newHosted(t testing.TB, script mcptest.Script, overHTTP bool) *hosted {
	t.Helper()
	var settings Settings
	w := newWorld(t, script, overHTTP, func(s *Settings) { settings = *s })
	exe, err := os.Executable()
	must.NoError(t, err)
	m, err := settings.Manifest()
	must.NoError(t, err)
	told, err := json.Marshal(settings)
	must.NoError(t, err)
	mode := host.Off
	if host.System().Holds() {
		mode = host.Require
	}
	h := &hosted{world: w}
	h.host, err = host.New(host.Options{
		Logger: slog.New(slog.NewTextHandler(w.log, nil)), Sandbox: func(string) host.Mode { return mode },
		State:   func(string) (string, error) { return w.state, nil },
		Command: func(*caps.Grant) *caps.Command { return w.command },
	})
	must.NoError(t, err)
	t.Cleanup(func() { h.host.Close() })
	must.NoError(t, h.host.Add(host.Source{
		Manifest: m, Path: exe, Args: []string{"plugin", w.file}, Shared: true, Settings: func(*caps.Grant) ([]byte, error) { return told, nil },
	}))
	kinds, err := caps.NewKinds(m)
	must.NoError(t, err)
	c, err := caps.Parse("srv", kinds)
	must.NoError(t, err)
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: kinds})
	must.NoError(t, err)
	h.held = &caps.Held{Capability: g.Shown(), Grant: g, Within: c.Scope}
	return h
}

// do calls a tool as the broker does.
func (h *hosted) do(word, args string) (value.Value, *fault.Fault) {
	h.t.Helper()
	return h.doIn(context.Background(), word, args)
}

func (h *hosted) doIn(ctx context.Context, word, args string) (value.Value, *fault.Fault) {
	h.t.Helper()
	v, ok := jsonvalue.Read(args)
	o, known := h.held.Grant.Manifest.Operation("srv." + word)
	if !ok || !known {
		h.t.Fatalf("there is no call %s %s", word, args)
	}
	got, _, f := h.host.Perform(ctx, run.Act{
		Held: h.held, Operation: o, Verb: o.Verb, Args: v, Deadline: time.Now().Add(patience), Most: 1 << 20, Key: "r-1",
	})
	return got, f
}

// noted calls a tool that writes a line, and holds what it says to what happened: at most
// one line, and a line without an answer is never called undone.
func (h *hosted) noted(step, line string) *fault.Fault {
	h.t.Helper()
	_, f := h.do("note", `{"line":"`+line+`"}`)
	n := strings.Count(strings.Join(h.lines(), "\n"), "note "+line)
	switch {
	case n > 1:
		h.t.Errorf("%s: the server acted %d times", step, n)
	case f == nil && n != 1:
		h.t.Errorf("%s: it succeeded, and the server did nothing", step)
	case f != nil && n == 1 && f.Kind != fault.OutcomeUnknown:
		h.t.Errorf("%s: the server acted, and the fault is %v", step, f)
	case f != nil && f.Kind != fault.OutcomeUnknown && f.Kind != fault.EffectFailed && f.Kind != fault.Denied:
		h.t.Errorf("%s: %v", step, f)
	}
	if f != nil && strings.Contains(f.Message+f.Hint, mcptest.Canary) {
		h.t.Errorf("%s: the server's words are ours: %v", step, f)
	}
	return f
}

// The server is killed at each step of a session.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		era  string
		http bool
	}{"stdio": {}, "http": {http: true}, "stdio 2026": {mcptest.Stateless, false}, "http 2026": {mcptest.Stateless, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHosted(t, mcptest.Script{Era: c.era}, c.http)
			for _, step := range []string{"initialize", "server/discover", "notifications/initialized", "tools/list", "tools/call", "acted"} {
				h.set(func(s *mcptest.Script) { s.DieAt = step })
				f := h.noted(step, "at "+step)
				if (step == "tools/call" || step == "acted") && (f == nil || f.Kind != fault.OutcomeUnknown) {
					t.Errorf("%s: %v", step, f)
				}
				h.set(func(s *mcptest.Script) { s.DieAt = "" })
				h.until("the server is there again after "+step, func() bool {
					_, f := h.do("look", `{}`)
					return f == nil
				})
			}
			if !c.http {
				h.until("there is one server", func() bool { return len(h.servers()) == 1 })
			}
		})
	}
}

// servers is the processes that are the scripted server.
func (h *hosted) servers() []string { return h.processes(mcptest.Word) }

// processes is those that were started with a word and the script.
func (h *hosted) processes(word string) (pids []string) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must.NoError(h.t, err)
	for _, path := range all {
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(word+"\x00"+h.file)) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// The plugin is killed before, during and after a call: nothing is done twice, and its
// server ends with it.
func TestKilledPlugin(t *testing.T) {
	t.Parallel()
	for name, overHTTP := range map[string]bool{"stdio": false, "http": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHosted(t, mcptest.Script{}, overHTTP)
			kill := func() {
				t.Helper()
				for _, pid := range h.processes("plugin") {
					must.NoError(t, syscall.Kill(must.Value(strconv.Atoi(pid)), syscall.SIGKILL))
				}
			}
			must.NoFault(t, h.noted("first", "1"))
			was := h.servers()
			kill()
			h.until("the server ends with the plugin", func() bool {
				now := h.servers()
				return overHTTP || len(now) == 0 || now[0] != was[0]
			})
			h.until("the plugin is there again", func() bool {
				_, f := h.do("look", `{}`)
				return f == nil
			})
			go func() {
				h.until("it waits", func() bool { return strings.Contains(strings.Join(h.lines(), "\n"), "wait") })
				kill()
			}()
			if _, f := h.do("wait", `{}`); f == nil || f.Kind != fault.OutcomeUnknown {
				t.Errorf("killed during a call: %v", f)
			}
			h.until("the plugin is there again", func() bool {
				_, f := h.do("look", `{}`)
				return f == nil
			})
			if n := strings.Count(strings.Join(h.lines(), "\n"), "note "); n != 1 {
				t.Errorf("the server acted %d times", n)
			}
		})
	}
}

// A fault has the server's words as its value, and the answer its type.
func TestHosted(t *testing.T) {
	t.Parallel()
	h := newHosted(t, mcptest.Script{}, false)
	_, f := h.do("fail", `{}`)
	if f == nil || f.Kind != fault.EffectFailed || f.Raised == nil || strings.Contains(f.Message, mcptest.Canary) {
		t.Fatalf("%v", f)
	}
	if got := shown(t, f.Raised.(value.Value)); !strings.Contains(got, mcptest.Canary) {
		t.Errorf("the fault's value is %s", got)
	}
	if v, f := h.doIn(run.WithHops(t.Context(), 2), "hops", `{}`); f != nil || shown(t, v) != `{"text":"3 1 "}` {
		t.Errorf("through two others: %v, %v", v, f)
	}
	if _, f := h.doIn(run.WithHops(t.Context(), 3), "hops", `{}`); f == nil || f.Kind != fault.Denied {
		t.Errorf("through three others: %v", f)
	}
	h.set(func(s *mcptest.Script) { s.List = "changed=note" })
	if _, f := h.do("changes", `{}`); f != nil {
		t.Fatal(f)
	}
	if _, f := h.do("note", `{}`); f == nil || f.Kind != fault.Denied || !strings.Contains(f.Message, "srv changed note since it was accepted on 3 Nov 2026") {
		t.Errorf("a held tool: %v", f)
	}
	// What the server wrote to its standard error is kept, in quotes.
	h.set(func(s *mcptest.Script) { s.Noise = mcptest.Canary + "\x1b[2J" })
	h.set(func(s *mcptest.Script) { s.DieAt = "tools/call" })
	if _, f := h.do("echo", `{}`); f == nil {
		t.Fatal("the server lives on")
	}
	h.set(func(s *mcptest.Script) { s.DieAt = "" })
	h.until("it is kept", func() bool {
		_, _ = h.do("look", `{}`)
		b, err := os.ReadFile(LogPath(h.state, ""))
		return err == nil && strings.Contains(string(b), `"`+mcptest.Canary+`\x1b[2J"`)
	})
}

// The table of what a list can be, and what becomes of calls.
func TestHeld(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		// The session's first list is wrong: each case has a session of its own.
		for _, c := range []struct {
			list             string
			code, says, told string // of note; "" code: it is called
			others           bool   // other tools go on
		}{
			{"", "", "", "", true},
			{"changed=note", "denied", "srv changed note since it was accepted on 3 Nov 2026; the operator sees how with mcp-pif mcp diff srv", "it changed note", true},
			{"words=note", "denied", "srv changed note since", "it changed note", true},
			{"twice=note", "denied", "srv lists note more than once", "it changed note", true},
			{"gone=note", "not_found", "the server has it no longer", "it has note no longer", true},
			{"renamed=note", "not_found", "the server has it no longer", `a new tool, which doesn't exist for programs until it is accepted: "note_2"`, true},
			{"new", "", "", `until it is accepted: "new_` + mcptest.Canary, true},
			{"pages=3", "", "", "", true},
			{"pages=1", "", "", "", true},
			{"endless", "denied", "can't be read, so that all of its tools are held", "more than 100 pages", false},
			{"circle", "denied", "can't be read", "begins again", false},
			{"many", "denied", "can't be read", "more than 2000 tools", false},
			{"huge", "denied", "can't be read", "too large", false},
			{"garbage", "denied", "can't be read", "can't be read", false},
			{"error", "denied", "can't be read", "can't be read", false},
		} {
			w.restart()
			w.set(func(s *mcptest.Script) { s.List = c.list })
			if c.code == "" {
				w.gives("note", `{}`, `{"text":"noted"}`)
			} else {
				before := len(w.lines())
				w.fails("note", `{}`, c.code, c.says)
				if got := w.lines(); len(got) != before {
					t.Errorf("%s: the server was asked: %s", c.list, got)
				}
			}
			if c.others {
				w.gives("echo", `{}`, `{"data":{},"text":""}`)
			} else {
				w.fails("echo", `{}`, c.code, c.says)
			}
			if !strings.Contains(w.log.String(), c.told) {
				t.Errorf("%s: the operator wasn't told %q:\n%s", c.list, c.told, w.log.String())
			}
		}
	})
}

// Who answers at a URL under another name than the server that was added is held as a whole, before it is
// asked for anything; a program is pinned by its bytes.
func TestOtherServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		added, era string
		http, held bool
	}{
		"another": {"theirs", "", true, true}, "another, 2026": {"theirs", mcptest.Stateless, true, true},
		"the same": {"scripted-" + mcptest.Canary, "", true, false}, "the same, 2026": {"scripted-" + mcptest.Canary, mcptest.Stateless, true, false},
		"unnamed": {"", "", true, false}, "a program": {"theirs", "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, mcptest.Script{Era: c.era}, c.http, func(s *Settings) { s.Server.Info.Name = c.added })
			if !c.held {
				w.gives("note", `{}`, `{"text":"noted"}`)
				return
			}
			w.fails("note", `{}`, "denied", "another server than the one that was added answers at the URL of srv")
			if got := w.lines(); got[0] != "" {
				t.Errorf("it was asked: %s", got)
			}
			if !strings.Contains(w.log.String(), `answers at its URL, so that all of its tools are held: "scripted-`+mcptest.Canary) {
				t.Errorf("the operator isn't told: %s", w.log.String())
			}
		})
	}
}

// restart ends the session, so that the next call makes another.
func (w *world) restart() {
	w.upstream.mu.Lock()
	s := w.upstream.sessions[""]
	delete(w.upstream.sessions, "")
	w.upstream.mu.Unlock()
	if s != nil {
		s.end()
	}
}

// A list that changes during a session is read again: when the server says so, when its
// time is over, and when it doesn't know a tool.
func TestListChanges(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		w.gives("note", `{}`, `{"text":"noted"}`)
		w.set(func(s *mcptest.Script) { s.List = "changed=note" })
		w.gives("note", `{}`, `{"text":"noted"}`) // nobody said so
		w.gives("changes", `{}`, `{"text":"changed"}`)
		w.fails("note", `{}`, "denied", "srv changed note")
		w.gives("echo", `{}`, `{"data":{},"text":""}`)
	})
	w := newWorld(t, mcptest.Script{}, true, nil)
	w.gives("note", `{}`, `{"text":"noted"}`)
	w.set(func(s *mcptest.Script) { s.List = "gone=note" })
	w.until("the stream outside of answers is open", w.http.Listens)
	w.http.Changed()
	w.until("the tool is gone", func() bool {
		_, err := w.call(w.context(), "note", `{}`)
		return err != nil
	})
	w.fails("note", `{}`, "not_found", "no longer")

	w = newWorld(t, mcptest.Script{TTL: 1}, false, nil)
	w.gives("note", `{}`, `{"text":"noted"}`)
	w.set(func(s *mcptest.Script) { s.List = "changed=note" })
	w.until("the list is read again", func() bool { // at once, if the first call didn't take so long that it was then
		_, err := w.call(w.context(), "note", `{}`)
		return err != nil
	})
	w.fails("note", `{}`, "denied", "srv changed note")

	w = newWorld(t, mcptest.Script{}, false, nil)
	w.fails("error", `{"code":-32602}`, "invalid", "")
	w.set(func(s *mcptest.Script) { s.List = "error" })
	w.fails("note", `{}`, "denied", "can't be read")
}

// A server that says all the time that its list changed has it read every five seconds
// (8 A 11).
func TestListStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		s := newSession(&upstream{}, "")
		s.read = func(context.Context) { reads++ }
		for range 1000 {
			s.suspect()
			s.relist(t.Context())
			time.Sleep(20 * time.Millisecond)
		}
		if reads != 4 {
			t.Errorf("the list was read %d times in 20 s", reads)
		}
	})
}
