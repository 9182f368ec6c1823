//go:build linux

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

func TestPerformGivesTheOutcome(t *testing.T) {
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	v := value.FromSlice([]value.Value{value.NewInt(1), value.Str("é"), &value.Pair{First: value.Unit{}, Second: value.Bool(true)}})
	got, size, f := w.Perform(context.Background(), act(t, h, "echo", arg("v", v)))
	must.NoFault(t, f)
	if items, ok := value.Slice(got); !ok || len(items) != 3 || items[1] != value.Value(value.Str("é")) || size < 8 || size > 40 {
		t.Fatalf("%v of %d bytes", got, size)
	}
	if key := w.do(t, h, "key"); key != value.Value(value.Str("k-1")) {
		t.Fatalf("key %v", key)
	}
	w.fails(t, act(t, h, "fail", arg("code", value.Str("not_found")), arg("message", value.Str("no such\nthing"))), fault.EffectFailed, "toy.fail: not_found: no such thing")
	w.fails(t, act(t, h, "fail", arg("code", value.Str("denied")), arg("message", value.Str("no"))), fault.Denied, "no")
	w.fails(t, act(t, h, "fail", arg("code", value.Str("conflict")), arg("message", value.Str("no"))), fault.Conflict, "no")
	f = w.fails(t, act(t, h, "panic"), fault.OutcomeUnknown, "panicked")
	if strings.Contains(f.Error(), "disco") {
		t.Fatalf("the panic's own words: %v", f)
	}
	w.fails(t, act(t, h, "echo"), fault.EffectFailed, "v is missing")
	wait.Until(t, "the panic is in the log", func() bool { return strings.Contains(w.log.String(), "at the disco") })
}

func TestPerformOpensACapabilityOnce(t *testing.T) {
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**,max=1KiB")
	w.do(t, h, "pid")
	w.do(t, h, "pid")
	narrow := *h
	narrow.Within, narrow.Verbs = "a/b", []string{"scope"}
	a := act(t, &narrow, "scope")
	a.Denies = []caps.Capability{{Kind: "toy", Scope: "a/b/c", Verbs: []string{"echo"}}}
	v, _, f := w.Perform(context.Background(), a)
	must.NoFault(t, f)
	if want := value.Str("toy.scope:a/**,max=1KiB a/b [scope] max=1024 [{[echo] a/b/c}]"); v != value.Value(want) {
		t.Fatalf("%q, want %q", v, want)
	}
	if st := w.Status(); len(st) != 1 || st[0].State != "running" || st[0].Handles != 2 || st[0].Starts != 1 || st[0].PID == 0 {
		t.Fatalf("%+v", st)
	}
	refused := *h
	refused.Within = "refused"
	w.fails(t, act(t, &refused, "pid"), fault.Denied, "not this one")
	late := *h // nothing was asked to be done
	late.Within = "late"
	w.fails(t, act(t, &late, "echo_once", arg("v", value.Unit{})), fault.EffectFailed, "timeout: ")
	fatal := *h
	fatal.Within = "fatal"
	w.fails(t, act(t, &fatal, "echo_once", arg("v", value.Unit{})), fault.EffectFailed, "ended before")
}

func TestPerformSixteenCallersAtOnce(t *testing.T) {
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	var all sync.WaitGroup
	for caller := range 16 {
		all.Go(func() {
			for i := range 50 {
				n := value.NewInt(int64(caller*1000 + i))
				v, _, f := w.Perform(context.Background(), act(t, h, "echo", arg("v", n)))
				if f != nil || v != value.Value(n) {
					t.Errorf("%v, %v; want %v", v, f, n)
					return
				}
			}
		})
	}
	all.Wait()
	if st := w.Status(); st[0].Starts != 1 || st[0].Handles != 1 || st[0].Calls != 0 {
		t.Fatalf("%+v", st)
	}
}

func TestPerformTooLarge(t *testing.T) {
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	large := func(bytes, most int64) (value.Value, *fault.Fault) {
		a := act(t, h, "large", arg("bytes", value.NewInt(bytes)))
		a.Most = most
		v, _, f := w.Perform(context.Background(), a)
		return v, f
	}
	if v, f := large(1000, 1003); f != nil || len(v.(value.Str)) != 1000 {
		t.Fatalf("1000 bytes and a head of 3 in 1003: %v", f)
	}
	for _, c := range []struct{ bytes, most int64 }{{1000, 1002}, {100 << 20, 1 << 20}, {100 << 20, 1 << 40}, {100 << 20, 0}} {
		if _, f := large(c.bytes, c.most); f == nil || f.Kind != fault.EffectFailed || !strings.Contains(f.Message, "too_large") {
			t.Fatalf("%d bytes where %d are allowed: %v", c.bytes, c.most, f)
		}
	}
	w.fails(t, act(t, h, "echo", arg("v", value.Str(strings.Repeat("x", 40<<20)))), fault.EffectFailed, "it wasn't begun: its arguments")
	if st := w.Status(); st[0].Starts != 1 {
		t.Fatalf("it cost a process: %+v", st)
	}
}

// A small answer doesn't wait behind large ones of its process, of which each has its room, and no more.
func TestSmallBesideLarge(t *testing.T) {
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	waiting, room := make(chan int64, trustedAtOnce), make(chan struct{})
	var all sync.WaitGroup
	defer all.Wait()
	defer close(room)
	for range trustedAtOnce {
		all.Go(func() {
			a := act(t, h, "large", arg("bytes", value.NewInt(1<<20)))
			a.Most = 8 << 20
			a.Room = func(_ context.Context, bytes int64, begun bool) bool {
				waiting <- bytes
				<-room
				return begun
			}
			if _, _, f := w.Perform(context.Background(), a); f != nil {
				t.Error(f)
			}
		})
	}
	for range trustedAtOnce {
		if bytes := wait.For(t, waiting, "a large answer that waits"); bytes != 1<<20+4 {
			t.Errorf("it asks for %d bytes", bytes)
		}
	}
	a := act(t, h, "large", arg("bytes", value.NewInt(1000)))
	a.Room = func(_ context.Context, bytes int64, _ bool) bool {
		if bytes >= sizeUnknown {
			t.Errorf("a small answer asks for %d bytes", bytes)
		}
		return true
	}
	if _, _, f := w.Perform(context.Background(), a); f != nil {
		t.Error(f)
	}
}

// A large outcome comes when there is room. What a plugin of this machine reads is asked for again then.
func TestPerformWaitsForRoom(t *testing.T) {
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	type asked struct {
		bytes int64
		begun bool
	}
	perform := func(bytes int64, room, heard bool) (all []asked, f *fault.Fault) {
		a := act(t, h, "large", arg("bytes", value.NewInt(bytes)))
		a.Most = 8 << 20
		a.Room = func(_ context.Context, bytes int64, begun bool) bool {
			all = append(all, asked{bytes, begun})
			return room
		}
		if heard {
			a.Progress = func(string) {}
		}
		v, _, f := w.Perform(context.Background(), a)
		if f == nil && len(v.(value.Str)) != int(bytes) {
			t.Errorf("%d of %d bytes", len(v.(value.Str)), bytes)
		}
		return all, f
	}
	for _, c := range []struct {
		local, room bool
		bytes       int64
		want        []asked
		fails       bool
		heard       bool
	}{
		{false, true, 1000, []asked{{0, true}}, false, false},
		{false, true, 1 << 20, []asked{{1<<20 + 4, true}}, false, false},
		{false, false, 1 << 20, []asked{{1<<20 + 4, false}, {1<<20 + 4, true}}, false, true},
		{true, true, 1000, nil, false, false},
		{true, true, 1 << 20, []asked{{1<<20 + 4, false}}, false, false},
		{true, false, 1 << 20, []asked{{1<<20 + 4, false}}, true, false},
	} {
		w.sources["toy"].Local = c.local
		if got, f := perform(c.bytes, c.room, c.heard); !slices.Equal(got, c.want) || (f != nil) != c.fails {
			t.Errorf("%+v: %v, %v", c, got, f)
		}
	}
}

// What says again and again that it needs more is asked as often as there is more to give.
func TestPerformNeedsTooMuch(t *testing.T) {
	w := newWorld(t, "toy")
	w.sources["toy"].Local = true
	h := w.grant(t, "toy:a/**")
	for bytes, want := range map[int64]int{1000: 1, 1 << 20: 2, 60 << 20: 1} {
		a := act(t, h, "needs", arg("bytes", value.NewInt(bytes)))
		a.Most = 64 << 20
		asked := 0
		a.Room = func(context.Context, int64, bool) bool { asked++; return asked < 10 }
		_, _, f := w.Perform(context.Background(), a)
		if f == nil || !strings.Contains(f.Message, "too_large: more than") || asked != want {
			t.Errorf("%d bytes: asked %d times, %v", bytes, asked, f)
		}
	}
}

func TestPerformProgress(t *testing.T) {
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	a := act(t, h, "count", arg("to", value.NewInt(3)))
	var heard []string
	a.Progress = func(s string) { heard = append(heard, s) }
	if v, _, f := w.Perform(context.Background(), a); f != nil || v != value.Value(value.NewInt(3)) {
		t.Fatal(v, f)
	}
	if !slices.Equal(heard, []string{"1 of 3", "2 of 3", "3 of 3"}) {
		t.Fatalf("%q", heard)
	}
}

func TestPerformCancelledInTime(t *testing.T) {
	w := newWorld(t, "toy")
	w.timing.grace = patience
	h := w.grant(t, "toy:a/**")
	pid := w.pid(t, h)
	// A handler that heeds the end says what came of it, and lives on.
	a := act(t, h, "sleep", arg("ms", value.NewInt(3_600_000)))
	v, f := w.overdue(a)
	w.failed(t, a, v, f, fault.EffectFailed, "stopped and undone")
	a.Deadline = time.Now().Add(time.Hour)
	for range 20 { // at once: the word of the end may overtake the request
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan struct{})
		go func() {
			defer close(over)
			for ctx.Err() == nil {
				if w.Status()[0].Calls == 1 {
					cancel()
				}
			}
		}()
		v, _, f = w.Perform(ctx, a)
		cancel()
		wait.For(t, over, "the watcher's end")
		w.failed(t, a, v, f, fault.EffectFailed, "stopped and undone")
	}
	if again := w.pid(t, h); again != pid {
		t.Fatalf("process %d became %d", pid, again)
	}
	a.Deadline = time.Now().Add(-time.Second)
	w.fails(t, a, fault.EffectFailed, "it wasn't begun")
}

// overdue performs an act whose time is over while it is under way: it has as much as
// it takes to begin.
func (w *world) overdue(a run.Act) (value.Value, *fault.Fault) {
	for left := 100 * time.Millisecond; ; left *= 2 {
		a.Deadline = time.Now().Add(left)
		if v, _, f := w.Perform(context.Background(), a); f == nil || !strings.Contains(f.Message, "it wasn't begun") {
			return v, f
		}
	}
}

func TestPerformRunawayIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	for name, kind := range map[string]fault.Kind{"runaway": fault.EffectFailed, "runaway_once": fault.OutcomeUnknown} {
		pid := w.pid(t, h)
		a := act(t, h, name)
		v, f := w.overdue(a)
		w.failed(t, a, v, f, kind, "the plugin was stopped")
		wait.Until(t, "the process is gone", func() bool { return !alive(pid) })
		if again := w.pid(t, h); again == pid {
			t.Fatalf("process %d still serves", pid)
		}
	}
}

func TestPerformCrashes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	dir := t.TempDir()
	mark := filepath.Join(dir, "mark")
	done := func() string { b, _ := os.ReadFile(mark); return string(b) }

	// Before: the process was killed while nothing was under way.
	pid := w.pid(t, h)
	syscall.Kill(pid, syscall.SIGKILL)
	wait.Until(t, "its end is known", func() bool { return w.Status()[0].State == "idle" })
	w.do(t, h, "echo_once", arg("v", value.Unit{}))

	// During: what isn't repeatable is not repeated.
	w.fails(t, act(t, h, "crash_once", arg("mark", value.Str(mark))), fault.OutcomeUnknown, "nobody knows")
	if done() != "x" {
		t.Fatalf("it was done %d times", len(done()))
	}
	// What only reads is tried once more.
	os.Remove(mark)
	if v := w.do(t, h, "crash", arg("mark", value.Str(mark))); v != value.Value(value.Str("the second time")) || done() != "xx" {
		t.Fatalf("%v, done %d times", v, len(done()))
	}
	w.fails(t, act(t, h, "die"), fault.EffectFailed, "the plugin's process ended")

	// After: the next request has a new process.
	w.timing.patience = time.Hour
	pid = w.pid(t, h)
	w.do(t, h, "echo_once", arg("v", value.Unit{}))
	syscall.Kill(pid, syscall.SIGKILL)
	wait.Until(t, "its end is known", func() bool { return w.Status()[0].State == "idle" })
	if again := w.pid(t, h); again == pid {
		t.Fatalf("process %d still serves", pid)
	}
}

func TestPerformKilledWhileUnderWay(t *testing.T) {
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	pid := w.pid(t, h)
	a := act(t, h, "sleep", arg("ms", value.NewInt(3_600_000)))
	go func() {
		for w.Status()[0].Calls == 0 {
			time.Sleep(time.Millisecond)
		}
		syscall.Kill(pid, syscall.SIGKILL)
	}()
	w.fails(t, a, fault.OutcomeUnknown, "the plugin's process ended during it")
}

func TestPerformStoppedProcess(t *testing.T) {
	w := newWorld(t, "toy")
	w.timing.watch, w.timing.health = time.Millisecond, 10*time.Second
	h := w.grant(t, "toy:a/**")
	pid := w.pid(t, h)
	syscall.Kill(pid, syscall.SIGSTOP)
	wait.Until(t, "all its threads have stopped", func() bool { return stopped(pid) })
	// Long before its deadline it is found that nobody is there; it only reads, so
	// that a new process answers.
	if again := w.pid(t, h); again == pid {
		t.Fatal("a stopped process answered")
	}
	wait.Until(t, "the stopped one is gone", func() bool { return !alive(pid) })
	// And where that isn't found, the deadline holds.
	w = newWorld(t, "toy")
	h = w.grant(t, "toy:a/**")
	a := act(t, h, "freeze")
	v, f := w.overdue(a)
	w.failed(t, a, v, f, fault.EffectFailed, "the plugin was stopped")
}

// stopped reports whether every thread of a process is stopped: the signal takes
// its time. Where there is no /proc it can't be told.
func stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return true
	}
	for _, path := range threads {
		if stat, err := os.ReadFile(path); err == nil && !strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " T") {
			return false
		}
	}
	return true
}

// TestPerformLapsed: a request that a paused process finds when its lease is over isn't begun.
func TestPerformLapsed(t *testing.T) {
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	pid := w.pid(t, h)
	mark := filepath.Join(t.TempDir(), "mark")
	a := act(t, h, "crash_once", arg("mark", value.Str(mark)))
	asked := 0
	a.Lease = func(context.Context) (lease.Time, error) {
		if asked++; asked > 1 {
			return 0, errors.New("there is no majority")
		}
		syscall.Kill(pid, syscall.SIGSTOP)
		wait.Until(t, "it is paused", func() bool { return stopped(pid) })
		end := lease.Now().Add(20 * time.Millisecond)
		go func() {
			for !end.Over() {
				time.Sleep(time.Millisecond)
			}
			syscall.Kill(pid, syscall.SIGCONT)
		}()
		return end, nil
	}
	w.fails(t, a, fault.EffectFailed, "it wasn't begun: there is no majority")
	if _, err := os.Stat(mark); err == nil || asked != 2 {
		t.Errorf("it was begun; asked %d times", asked)
	}
	a.Lease = func(context.Context) (lease.Time, error) { return lease.Now().Add(time.Hour), nil }
	w.fails(t, a, fault.OutcomeUnknown, "the plugin's process ended during it")
}

func TestPerformRevoked(t *testing.T) {
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	for name, kind := range map[string]fault.Kind{"sleep": fault.OutcomeUnknown, "runaway": fault.Denied} {
		pid := w.pid(t, h)
		fields := []value.Field{arg("ms", value.NewInt(3_600_000))}
		if name == "runaway" {
			fields = nil
		}
		a := act(t, h, name, fields...)
		go func() {
			for w.Status()[0].Calls == 0 {
				time.Sleep(time.Millisecond)
			}
			w.policy.Revoke(h.Grant.ID)
		}()
		w.fails(t, a, kind, "was revoked by the operator")
		wait.Until(t, "the process is gone", func() bool { return !alive(pid) })
		w.fails(t, act(t, h, "pid"), fault.Denied, "was revoked by the operator")
		if !w.policy.Restore(h.Grant.ID) {
			t.Fatal("it can't be restored")
		}
	}
	w.do(t, h, "pid")
}

func TestPerformFloodsAreDropped(t *testing.T) {
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	w.do(t, h, "shout", arg("bytes", value.NewInt(20<<20)))
	w.do(t, h, "pid")
	if n := len(w.log.String()); n > 1<<20 {
		t.Fatalf("%d bytes of log", n)
	}
	if !strings.Contains(w.log.String(), "plugin=toy") {
		t.Fatal("nothing was logged")
	}
}

func TestCloseEndsEverything(t *testing.T) {
	w := newWorld(t, "toy")
	w.timing.settle = patience
	h := w.grant(t, "toy:a/**")
	closing := w.grant(t, "toy:closing/**")
	pid := w.pid(t, h)
	w.pid(t, closing)
	n, _ := w.do(t, h, "fork").(value.Int).Int64()
	grandchild := int(n)
	if !alive(grandchild) {
		t.Fatal("there is no grandchild")
	}
	over := make(chan *fault.Fault)
	a := act(t, h, "sleep", arg("ms", value.NewInt(3_600_000)))
	go func() {
		_, _, f := w.Perform(context.Background(), a)
		over <- f
	}()
	wait.Until(t, "it sleeps", func() bool {
		return slices.ContainsFunc(w.Status(), func(s Status) bool { return s.Calls == 1 })
	})
	must.NoError(t, w.Host.Close())
	if f := wait.For(t, over, "the end of the request"); f == nil || f.Kind != fault.OutcomeUnknown {
		t.Fatalf("%v", f)
	}
	wait.Until(t, "both processes are gone", func() bool { return !alive(pid) && !alive(grandchild) })
	if _, err := os.Stat(filepath.Join(w.dir, "closed")); err != nil {
		t.Fatalf("the capability wasn't closed: %v", err)
	}
	os.Remove(filepath.Join(w.dir, "closed"))
	wait.Until(t, "nothing is left", func() bool { left, err := os.ReadDir(w.dir); return err == nil && len(left) == 0 })
	w.fails(t, act(t, h, "pid"), fault.EffectFailed, "the server is ending")
}

func TestPrepareStartsBeforehand(t *testing.T) {
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	w.Prepare(h.Grant)
	wait.Until(t, "it runs", func() bool { s := w.Status(); return len(s) == 1 && s[0].State == "running" })
	w.do(t, h, "pid")
	if s := w.Status()[0]; s.Starts != 1 {
		t.Fatalf("%+v", s)
	}
}

// unboxed starts plugins without the system's sandbox: the toy misbehaves in ways
// that the sandbox would stop before the host has to.
func unboxed(string) Mode { return Off }

// reacher is a plugin that tries to get at things, and says how far it came.
func reacher(privileges ...string) sdk.Plugin {
	type what struct {
		At string `pif:"at,main" doc:"where"`
	}
	try := func(do func(at string) error) func(context.Context, sdk.Capability, what) (string, error) {
		return func(_ context.Context, _ sdk.Capability, w what) (string, error) {
			if err := do(w.At); err != nil {
				return "refused: " + err.Error(), nil
			}
			return "done", nil
		}
	}
	return sdk.Plugin{
		Kind: "reach", Version: "1.0.0", Doc: "Tries to get at things.", Scope: sdk.Segments, Privileges: privileges,
		Open: func(_ context.Context, c sdk.Capability) (any, error) { return c, nil },
		Operations: []sdk.Operation{
			sdk.Op("read", "Reads a file.", sdk.Flags{}, try(func(at string) error { _, err := os.ReadFile(at); return err })),
			sdk.Op("write", "Writes a file.", sdk.Flags{}, try(func(at string) error { return os.WriteFile(at, nil, 0o600) })),
			sdk.Op("dial", "Connects.", sdk.Flags{}, try(func(at string) error {
				c, err := net.Dial("tcp", at)
				if err == nil {
					c.Close()
				}
				return err
			})),
			sdk.Op("start", "Starts a program.", sdk.Flags{}, try(func(at string) error { return exec.Command(at).Run() })),
		},
	}
}

// What a process writes just before its end is read, though it is gone by then.
func TestLastWords(t *testing.T) {
	exe, err := os.Executable()
	must.NoError(t, err)
	var all sync.WaitGroup
	for range 8 { // so that who reads gets its turn late
		all.Go(func() {
			for range 8 {
				_, err := NewProbe(context.Background(), ProbeOptions{Source: Source{Path: exe, Args: []string{"brief"}}, Sandbox: Off, Within: patience})
				if !errors.Is(err, ErrProtocol) {
					t.Errorf("it ended with %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}

// What was written is waited for although the time is over; where nothing is, who
// holds the other end isn't.
func TestHearOut(t *testing.T) {
	over, end := context.WithCancel(context.Background())
	end()
	r, w, err := os.Pipe()
	must.NoError(t, err)
	defer r.Close()
	defer w.Close()
	hearOut(over, make(chan struct{}), r)
	must.Succeed(t)(w.WriteString("words\n"))
	w.Close()
	heard, given := make(chan struct{}), make(chan struct{})
	go func() { hearOut(over, heard, r); close(given) }()
	select {
	case <-given:
		t.Error("it was given up unread")
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := io.ReadAll(r); err != nil {
		t.Error(err)
	}
	close(heard)
	wait.For(t, given, "the reader's end")
}
