//go:build linux

package mcp

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
)

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
	time.Sleep(2 * time.Millisecond)
	w.fails("note", `{}`, "denied", "srv changed note")

	w = newWorld(t, mcptest.Script{}, false, nil)
	w.fails("error", `{"code":-32602}`, "invalid", "")
	w.set(func(s *mcptest.Script) { s.List = "error" })
	w.fails("note", `{}`, "denied", "can't be read")
}

// A server that says all the time that its list changed has it read every five seconds.
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
