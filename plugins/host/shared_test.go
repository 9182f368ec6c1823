//go:build linux

package host

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// poolSettings is what the plugin of this test is told when it starts.
type poolSettings struct{ Word, Secret string }

// pool is a plugin that learns what it can do when it starts.
func pool(s poolSettings) sdk.Plugin {
	op := func(name string) caps.Operation {
		return caps.Operation{Name: "pool." + name, Doc: "Does it.", Verb: name, Result: "some data"}
	}
	return sdk.Plugin{
		Given: &caps.Manifest{
			Kind: "pool", Version: "1.0.0", Doc: "Has one process for all.", Algebra: caps.Exact,
			Verbs:      []caps.Verb{{Name: "pid"}, {Name: s.Word}, {Name: "wait"}, {Name: "fail"}},
			Operations: []caps.Operation{op("pid"), op(s.Word), op("wait"), op("fail")},
		},
		Perform: func(ctx context.Context, _ any, operation string, _ value.Value) (value.Value, error) {
			switch operation {
			case "pool.pid":
				return value.NewInt(int64(os.Getpid())), nil
			case "pool.wait":
				sdk.Progress(ctx, "waits")
				<-ctx.Done()
				return nil, ctx.Err()
			case "pool.fail":
				return nil, sdk.Fail("failed", "it failed").WithValue(value.Str("in its words"))
			}
			return value.Str(s.Secret + strings.Join(os.Environ(), "")), nil
		},
	}
}

func init() {
	roles["pool"] = func() {
		b, err := sdk.ReadSettings()
		if err != nil {
			panic(err)
		}
		var s poolSettings
		if err := json.Unmarshal(b, &s); err != nil {
			panic(err)
		}
		sdk.Serve(pool(s))
	}
}

// newPool is a world with that plugin.
func newPool(t *testing.T) *world {
	t.Helper()
	settings := func(*caps.Grant) ([]byte, error) {
		// Larger than a pipe holds, so that it is read while it is written.
		return json.Marshal(poolSettings{Word: "told", Secret: strings.Repeat("s3cret", 50_000)})
	}
	return newGivenWorld(t, pool(poolSettings{Word: "told"}), Source{Args: []string{"pool"}, Settings: settings, Shared: true})
}

// newGivenWorld is a world with a plugin that this test binary is, told by a word.
func newGivenWorld(t *testing.T, p sdk.Plugin, s Source) *world {
	t.Helper()
	exe, err := os.Executable()
	must.NoError(t, err)
	manifest, err := p.Manifest()
	must.NoError(t, err)
	kinds, err := caps.NewKinds(manifest)
	must.NoError(t, err)
	w := &world{policy: caps.NewPolicy(kinds, nil), kinds: kinds, log: &wait.Log{}, dir: t.TempDir()}
	sandbox := unboxed
	if System().Holds() {
		sandbox = nil
	}
	w.Host, err = New(Options{Sandbox: sandbox, Logger: slog.New(slog.NewTextHandler(w.log, nil)), RuntimeDir: w.dir})
	must.NoError(t, err)
	w.patient()
	t.Cleanup(func() { w.Host.Close() })
	s.Manifest, s.Path = manifest, exe
	must.NoError(t, w.Add(s))
	return w
}

// A process is told its settings by a pipe, and nothing of them is in its environment.
func TestSettings(t *testing.T) {
	t.Parallel()
	w := newPool(t)
	h := w.grant(t, "pool:a")
	told := string(w.do(t, h, "told").(value.Str))
	if n := strings.Count(told, "s3cret"); n != 50_000 {
		t.Errorf("it was told %d of 50000 parts, the environment's among them", n)
	}
}

// A process whose settings have changed is ended, and the next one is told those of now.
func TestRenew(t *testing.T) {
	t.Parallel()
	var secret atomic.Value
	secret.Store("first")
	w := newGivenWorld(t, pool(poolSettings{Word: "told"}), Source{Args: []string{"pool"}, Shared: true, Settings: func(*caps.Grant) ([]byte, error) {
		return json.Marshal(poolSettings{Word: "told", Secret: secret.Load().(string)})
	}})
	h := w.grant(t, "pool:a")
	pid := w.pid(t, h)
	if w.Renew(); w.pid(t, h) != pid {
		t.Error("it is another process, though nothing has changed")
	}
	secret.Store("second")
	if w.Renew(); w.pid(t, h) == pid {
		t.Error("it is the process with the settings of before")
	}
	if told := string(w.do(t, h, "told").(value.Str)); !strings.Contains(told, "second") || strings.Contains(told, "first") {
		t.Errorf("it was told %.100s", told)
	}
}

// What a plugin gives beside a failure's message is the fault's value.
func TestFailureWithValue(t *testing.T) {
	t.Parallel()
	w := newPool(t)
	f := w.fails(t, act(t, w.grant(t, "pool:a"), "fail"), fault.EffectFailed, "it failed")
	if f.Raised != value.Value(value.Str("in its words")) || strings.Contains(f.Message, "words") {
		t.Errorf("%v with %v", f, f.Raised)
	}
}

// Grants of a shared kind have one process. A revoked one's requests end, the others'
// go on, and with the last grant the process ends.
func TestShared(t *testing.T) {
	t.Parallel()
	w := newPool(t)
	a, b := w.grant(t, "pool:a"), w.grant(t, "pool:b")
	pid := w.pid(t, a)
	if other := w.pid(t, b); other != pid {
		t.Fatalf("two processes: %d and %d", pid, other)
	}
	begin := func(h *caps.Held) (ended <-chan *fault.Fault) {
		done, waits := make(chan *fault.Fault, 1), make(chan struct{}, 1)
		request := act(t, h, "wait")
		request.Progress = func(string) { waits <- struct{}{} }
		go func() {
			_, _, f := w.Perform(t.Context(), request)
			done <- f
		}()
		wait.For(t, waits, "a request under way")
		return done
	}
	ofA, ofB := begin(a), begin(b)
	w.policy.Revoke(a.Grant.ID)
	if f := wait.For(t, ofA, "the end of the request"); f.Kind != fault.OutcomeUnknown {
		t.Errorf("the revoked grant's request: %v", f)
	}
	w.fails(t, act(t, a, "pid"), fault.Denied, "was revoked by the operator")
	if got := w.pid(t, b); got != pid {
		t.Errorf("the other grant has another process, %d in place of %d", got, pid)
	}
	select {
	case f := <-ofB:
		t.Errorf("the other grant's request ended: %v", f)
	default:
	}
	w.policy.Revoke(b.Grant.ID)
	if f := wait.For(t, ofB, "the end of the request"); f.Kind != fault.OutcomeUnknown {
		t.Errorf("the last grant's request: %v", f)
	}
	wait.Until(t, "the process is gone", func() bool { return !alive(pid) })
	w.policy.Restore(a.Grant.ID)
	if again := w.pid(t, a); again == pid {
		t.Error("the restored grant has the process that was ended")
	}
}
