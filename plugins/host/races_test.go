//go:build linux

package host

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// A grant that is taken back ends its process, also where it is given again before
// whoever ends it gets his turn.
func TestRestoredAtOnce(t *testing.T) {
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	pid := w.pid(t, h)
	s, err := w.seat(h.Grant)
	must.NoError(t, err)
	s.mu.Lock() // which that takes
	if !w.policy.Revoke(h.Grant.ID) || !w.policy.Restore(h.Grant.ID) {
		t.Error("it can't be taken back and given again")
	}
	s.watch(h.Grant)
	s.mu.Unlock()
	wait.Until(t, "the process is gone", func() bool { return !alive(pid) })
	if again := w.pid(t, h); again == pid {
		t.Fatalf("process %d still serves", pid)
	}
}

// What was asked for under a grant of before takes nothing from the one of the same identity that came after it.
func TestGrantedAnew(t *testing.T) {
	w := newWorld(t, "toy")
	old := w.grant(t, "toy:a/**")
	w.pid(t, old)
	must.NoError(t, w.policy.Replace(nil, nil))
	now := w.grant(t, "toy:a/**")
	if now.Grant == old.Grant || now.Grant.ID != old.Grant.ID {
		t.Fatal("it is the same grant, or another identity")
	}
	pid := w.pid(t, now)
	w.fails(t, act(t, old, "pid"), fault.Denied, "revoked")
	s, err := w.seat(old.Grant)
	must.NoError(t, err)
	if s.watched != now.Grant.Context() || s.grant != now.Grant {
		t.Error("the grant of before has the process of the one after it")
	}
	if again := w.pid(t, now); again != pid {
		t.Errorf("process %d was ended", pid)
	}
}

// A capability that is being opened isn't closed for another's sake, though nobody
// waits for it any more: it has no number yet.
func TestEvictWhileOpening(t *testing.T) {
	opening := &handle{key: "opening", opened: make(chan struct{})}
	idle := &handle{key: "idle", opened: make(chan struct{}), number: 7, used: 1}
	close(idle.opened)
	h := &handles{open: map[string]*handle{opening.key: opening, idle.key: idle}}
	if n := h.evict(); n != 7 || h.open[opening.key] != opening || len(h.open) != 1 {
		t.Errorf("%d was taken out, and %v are left", n, h.open)
	}
	if n := h.evict(); n != 0 || len(h.open) != 1 {
		t.Errorf("%d was taken out, and %v are left", n, h.open)
	}
	close(opening.opened)
	if h.evict(); len(h.open) != 0 {
		t.Error("what is open by now isn't taken out")
	}
}

// slowLog is a log whose first line takes until it is let go on.
type slowLog struct {
	slog.Handler
	once         sync.Once
	begun, going chan struct{}
}

func (l *slowLog) Handle(context.Context, slog.Record) error {
	l.once.Do(func() { close(l.begun); <-l.going })
	return nil
}

// What a probe's process wrote last on its standard output is known when it is
// closed, however late it is read.
func TestStrayIsReadOut(t *testing.T) {
	exe, err := os.Executable()
	must.NoError(t, err)
	log := &slowLog{Handler: slog.NewTextHandler(io.Discard, nil), begun: make(chan struct{}), going: make(chan struct{})}
	p, err := NewProbe(t.Context(), ProbeOptions{
		Source: Source{Path: exe, Args: []string{"toy"}}, Sandbox: Off, Within: patience, Logger: slog.New(log),
	})
	must.NoError(t, err)
	defer p.Close()
	plugin := pluginv1.NewPluginClient(p.Conn())
	opened, err := plugin.Open(t.Context(), &pluginv1.OpenRequest{Capability: &pluginv1.Capability{Text: "toy:a", Within: "a"}})
	must.NoError(t, err)
	for _, words := range []string{"first", "last"} {
		args, err := wire.EncodeValue(&value.Record{Fields: []value.Field{arg("words", value.Str(words))}}, 1000)
		must.NoError(t, err)
		answer, err := plugin.Invoke(t.Context(), &pluginv1.InvokeRequest{Handle: opened.GetHandle(), Operation: "toy.stray", Arguments: args})
		if err != nil || answer.GetFailure() != nil {
			t.Fatal(err, answer.GetFailure())
		}
		wait.For(t, log.begun, "a stray word")
	}
	p.launch.mu.Lock()
	p.launch.draining = patience
	p.launch.mu.Unlock()
	closed := make(chan struct{})
	go func() {
		<-p.Done()
		select {
		case <-closed: // it didn't wait
		case <-time.After(100 * time.Millisecond):
		}
		close(log.going)
	}()
	p.Close()
	s := p.Stray()
	close(closed)
	if !strings.Contains(s, "first\n") || !strings.Contains(s, "last\n") {
		t.Errorf("it wrote %q", s)
	}
}
