//go:build linux

package host

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// A world is a host with the toy plugin, and a policy.
type world struct {
	*Host
	policy *caps.Policy
	kinds  caps.Kinds
	log    *wait.Log
	dir    string // the host's folder
}

// newWorld makes a host whose toy is the test binary in a role.
func newWorld(t testing.TB, role string) *world {
	t.Helper()
	exe, err := os.Executable()
	must.NoError(t, err)
	toys, err := toy().Manifest()
	must.NoError(t, err)
	paths, err := files().Manifest()
	must.NoError(t, err)
	kinds, err := caps.NewKinds(toys, paths)
	must.NoError(t, err)
	w := &world{policy: caps.NewPolicy(kinds, nil), kinds: kinds, log: &wait.Log{}, dir: t.TempDir()}
	w.Host, err = New(Options{Sandbox: unboxed, Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), RuntimeDir: w.dir})
	must.NoError(t, err)
	w.patient()
	for _, s := range []Source{{Manifest: toys, Path: exe, Args: []string{role}}, {Manifest: paths, Path: exe, Args: []string{"files"}}} {
		must.NoError(t, w.Add(s))
	}
	t.Cleanup(func() {
		if err := w.Host.Close(); err != nil {
			t.Error(err)
		}
		if err := w.policy.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log:\n%.20000s", w.log.String())
		}
	})
	return w
}

// patient has a host wait: a machine that is busy with other tests answers late. It is
// called before anything is started.
func (h *Host) patient() { h.timing.start, h.timing.health = patience, patience }

// patience is how long tests wait for what has to come.
const patience = 4 * time.Minute

// grant grants a capability, and holds all of it.
func (w *world) grant(t testing.TB, text string) *caps.Held {
	t.Helper()
	c, err := caps.Parse(text, w.kinds)
	must.NoError(t, err)
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: w.kinds})
	must.NoError(t, err)
	must.NoError(t, w.policy.Grant(g))
	within := c.Scope
	if g.Manifest.Algebra == caps.Path {
		within = "."
	}
	return &caps.Held{Capability: g.Shown(), Grant: g, Within: within}
}

// act makes an act of an operation of the holder's kind.
func act(t testing.TB, h *caps.Held, name string, fields ...value.Field) run.Act {
	t.Helper()
	o, ok := h.Grant.Manifest.Operation(h.Kind + "." + name)
	if !ok {
		t.Fatalf("there is no operation %s", name)
	}
	return run.Act{
		Held: h, Operation: o, Verb: o.Verb, Args: &value.Record{Fields: fields},
		Deadline: time.Now().Add(2 * patience), Most: 1 << 20, Key: "k-1",
	}
}

func arg(key string, v value.Value) value.Field { return value.Field{Key: key, Value: v} }

// do performs an operation that succeeds.
func (w *world) do(t testing.TB, h *caps.Held, name string, fields ...value.Field) value.Value {
	t.Helper()
	v, _, f := w.Perform(context.Background(), act(t, h, name, fields...))
	if f != nil {
		t.Fatalf("%s: %v", name, f)
	}
	return v
}

// fails performs an operation that fails in a way, and gives the fault.
func (w *world) fails(t testing.TB, a run.Act, kind fault.Kind, says string) *fault.Fault {
	t.Helper()
	v, _, f := w.Perform(context.Background(), a)
	w.failed(t, a, v, f, kind, says)
	return f
}

func (w *world) failed(t testing.TB, a run.Act, v value.Value, f *fault.Fault, kind fault.Kind, says string) {
	t.Helper()
	if f == nil {
		t.Fatalf("%s succeeded with %v", a.Operation.Name, v)
	}
	if f.Kind != kind || !strings.Contains(f.Message, says) {
		t.Fatalf("%s: %v; want %s with %q", a.Operation.Name, f, kind, says)
	}
	for _, place := range []string{w.dir, os.TempDir() + "/", ".sock", "plugin-dir", "rpc error", os.Args[0]} {
		if strings.Contains(f.Error(), place) {
			t.Fatalf("%s: the fault tells %q: %v", a.Operation.Name, place, f)
		}
	}
}

func (w *world) pid(t testing.TB, h *caps.Held) int {
	t.Helper()
	n, _ := w.do(t, h, "pid").(value.Int).Int64()
	return int(n)
}

// alive reports whether a process runs: one that ended and wasn't reaped doesn't.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", value.NewInt(int64(pid)).String(), "stat"))
	if err != nil {
		return !os.IsNotExist(err)
	}
	_, after, _ := bytes.Cut(stat, []byte(") "))
	return len(after) == 0 || after[0] != 'Z' && after[0] != 'X'
}
