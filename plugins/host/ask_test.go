//go:build linux

package host

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// asker is the plugin of a server that asks the user: ask once, pester until nobody answers
// any more, late asks and then goes on for too long; gather reads 3 MiB from elsewhere, blurt has them, insist has asked
// for room for what it dropped, lie doesn't say how many it has, blame fails with them.
func asker() sdk.Plugin {
	m := &caps.Manifest{Kind: "asker", Version: "1.0.0", Doc: "Asks.", Algebra: caps.Exact, Server: "asker", Privileges: []string{"network"}}
	for _, name := range []string{"ask", "pester", "late", "gather", "blurt", "insist", "lie", "blame"} {
		m.Verbs = append(m.Verbs, caps.Verb{Name: name})
		m.Operations = append(m.Operations, caps.Operation{Name: "asker." + name, Doc: "Asks.", Verb: name, Result: "some data"})
	}
	return sdk.Plugin{Given: m, Perform: func(ctx context.Context, _ any, operation string, _ value.Value) (value.Value, error) {
		switch operation {
		case "asker.insist":
			_ = sdk.Room(ctx, 4<<20)
			return value.Str(strings.Repeat("x", 3<<20)), nil
		case "asker.lie":
			_ = grpc.SetHeader(ctx, metadata.Pairs("pif-size", "x"))
			return value.Str(strings.Repeat("x", 3<<20)), nil
		case "asker.blame":
			return nil, sdk.Fail("failed", "it failed").WithValue(value.Str(strings.Repeat("x", 3<<20)))
		case "asker.blurt":
			return value.Str(strings.Repeat("x", 3<<20)), nil
		case "asker.gather":
			b, err := io.ReadAll(sdk.Reading(ctx, strings.NewReader(strings.Repeat("x", 3<<20)), -1))
			if err != nil {
				return nil, sdk.Fail("failed", "%d bytes: %v", len(b), err)
			}
			return value.Str(b), nil
		}
		q := sdk.Question{Message: fmt.Sprint("who? ", os.Getpid()), Schema: []byte(`{"type":"object"}`)}
		a := sdk.Ask(ctx, q)
		switch operation {
		case "asker.pester":
			n := 0
			for ; a.Reason == ""; n++ {
				a = sdk.Ask(ctx, q)
			}
			return value.NewInt(int64(n)), nil
		case "asker.late":
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return value.Str(a.Action + " " + string(a.Content) + " " + a.Reason), nil
	}}
}

func init() { roles["asker"] = func() { sdk.Serve(asker()) } }

func newAsker(t *testing.T, may bool) (*world, *caps.Held) {
	t.Helper()
	w := newGivenWorld(t, asker(), Source{Args: []string{"asker"}, Shared: true, Asks: func(*caps.Grant) bool { return may }})
	return w, w.grant(t, "asker")
}

// What comes from elsewhere is read when there is room, and given up where there is none.
func TestReadsWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	w, h := newAsker(t, false)
	for room, want := range map[int64]string{
		8 << 20:   "[131072 262144 524288 1048576 2097152 4194304]",
		512 << 10: "[131072 262144 524288 1048576]",
	} {
		for _, progress := range []func(string){nil, func(string) {}} {
			var asked []int64
			a := act(t, h, "gather")
			a.Most, a.Progress = 8<<20, progress
			a.Room = func(_ context.Context, bytes int64, begun bool) bool {
				asked = append(asked, bytes)
				return !begun && bytes <= room
			}
			v, _, f := w.Perform(context.Background(), a)
			if fmt.Sprint(asked) != want {
				t.Errorf("with room for %d: %d", room, asked)
			}
			if room < 3<<20 {
				if f == nil || !strings.Contains(f.Message, "524288 bytes") || !strings.Contains(f.Message, "too many effects are under way") {
					t.Errorf("with room for %d: %v", room, f)
				}
			} else if f != nil || len(v.(value.Str)) != 3<<20 {
				t.Errorf("with room for %d: %v", room, f)
			}
		}
	}
}

// What a failure brings along takes room, and counts, as an outcome does.
func TestFailuresTakeRoom(t *testing.T) {
	t.Parallel()
	w, h := newAsker(t, false)
	for _, progress := range []func(string){nil, func(string) {}} {
		var asked int64
		a := act(t, h, "blame")
		a.Most, a.Progress = 8<<20, progress
		a.Room = func(_ context.Context, bytes int64, begun bool) bool {
			asked = max(asked, bytes)
			return true
		}
		_, size, f := w.Perform(context.Background(), a)
		if raised, _ := f.Raised.(value.Str); f.Kind != fault.EffectFailed || len(raised) != 3<<20 || asked < 3<<20 || size < 3<<20 {
			t.Errorf("with room for %d bytes it fails as %s with %d, said to be %d", asked, f.Kind, len(raised), size)
		}
	}
}

// A request whose time is over, or that is cancelled, while its plugin waits for room ends as that, and the process goes on.
func TestTimeIsOverWhileItWaitsForRoom(t *testing.T) {
	t.Parallel()
	w, h := newAsker(t, false)
	w.timing.grace = patience
	w.do(t, h, "ask") // the process runs
	for _, how := range []string{"over", "cancelled"} {
		for _, progress := range []func(string){nil, func(string) {}} {
			a := act(t, h, "gather")
			a.Most, a.Progress, a.Deadline = 8<<20, progress, time.Now().Add(patience)
			ctx, cancel := context.WithCancel(context.Background())
			if how == "over" {
				a.Deadline = time.Now().Add(300 * time.Millisecond)
			}
			a.Room = func(ctx context.Context, _ int64, _ bool) bool {
				if how == "cancelled" {
					cancel()
				}
				select {
				case <-ctx.Done():
				case <-time.After(patience / 8): // longer than any grace
					t.Errorf("%s: it still waits for room", how)
				}
				return false
			}
			_, _, f := w.Perform(ctx, a)
			cancel()
			if f == nil || strings.Contains(f.Message, "too many effects") {
				t.Errorf("%s: %v", how, f)
			}
		}
	}
	if s := w.Status(); len(s) != 1 || s[0].Starts != 1 || s[0].PID == 0 {
		t.Errorf("the process was killed: %+v", s)
	}
}

// An outcome that comes though its room was refused is counted when it is there, also where more was refused before.
func TestRefusedOutcomeCounts(t *testing.T) {
	t.Parallel()
	w, h := newAsker(t, false)
	for operation, want := range map[string]string{"blurt": "[3 false 3 true]", "insist": "[4 false 3 false 3 true]"} {
		a := act(t, h, operation)
		var asked []string
		a.Most = 8 << 20
		a.Room = func(_ context.Context, bytes int64, begun bool) bool {
			asked = append(asked, fmt.Sprint(bytes>>20, begun))
			return begun
		}
		if v, _, f := w.Perform(context.Background(), a); f != nil || len(v.(value.Str)) != 3<<20 || fmt.Sprint(asked) != want {
			t.Errorf("%s: %v, asked %v", operation, f, asked)
		}
	}
}

// A question goes to the user and the answer back, as often as an effect may ask; where the
// operator doesn't let the server, or nobody can be asked, it is declined at once.
func TestAsk(t *testing.T) {
	t.Parallel()
	w, h := newAsker(t, true)
	asked := 0
	user := func(_ context.Context, q run.Question) run.Reply {
		asked++
		if !strings.HasPrefix(q.Message, "who? ") || string(q.Schema) != `{"type":"object"}` {
			t.Errorf("the question is %q", q)
		}
		return run.Reply{Action: "accept", Content: []byte(`{"n":1}`)}
	}
	gives := func(w *world, h *caps.Held, operation string, ask func(context.Context, run.Question) run.Reply, want string) {
		t.Helper()
		a := act(t, h, operation)
		a.Ask = ask
		if v, _, f := w.Perform(context.Background(), a); f != nil || fmt.Sprint(v) != want {
			t.Errorf("%s gives %v, %v; want %s", operation, v, f, want)
		}
	}
	gives(w, h, "ask", user, `accept {"n":1} `)
	gives(w, h, "pester", user, fmt.Sprint(run.MaxQuestions))
	if asked != 1+run.MaxQuestions {
		t.Errorf("the user was asked %d times", asked)
	}
	gives(w, h, "ask", nil, "decline  the host asks nobody here")
	w, h = newAsker(t, false)
	gives(w, h, "ask", user, "decline  the host asks nobody here")
}

// The time of a request stands still while the user is asked, on both sides, and goes on
// after that.
func TestAskStandsStill(t *testing.T) {
	t.Parallel()
	w, h := newAsker(t, true)
	for operation, kind := range map[string]fault.Kind{"ask": "", "late": fault.OutcomeUnknown} {
		isAsked := false
		a := act(t, h, operation)
		a.Ask = func(ctx context.Context, _ run.Question) run.Reply {
			isAsked = true
			select {
			case <-time.After(time.Until(a.Deadline) + 500*time.Millisecond):
			case <-ctx.Done():
				t.Error("the question is taken back when the time is over that stands still")
			}
			return run.Reply{Action: "accept"}
		}
		for left := 2 * time.Second; !isAsked; left *= 2 { // as much as it takes to ask
			w.do(t, h, "ask") // the process runs
			a.Deadline = time.Now().Add(left)
			if v, _, f := w.Perform(context.Background(), a); isAsked && (kind == "" && f != nil || kind != "" && (f == nil || f.Kind != kind)) {
				t.Errorf("%s: %v, %v; want %s", operation, v, f, kind)
			}
		}
	}
}

// slowAnswers is a plugin that doesn't take answers.
type slowAnswers struct {
	pluginv1.PluginClient
	t     *testing.T
	calls *atomic.Int32
}

func (p slowAnswers) Answer(ctx context.Context, r *pluginv1.AnswerRequest, _ ...grpc.CallOption) (*pluginv1.AnswerResponse, error) {
	p.calls.Add(1)
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		p.t.Error("time stands still while the answer is brought")
	}
	return nil, ctx.Err()
}

// The time of a request goes on once the user has answered, also where the plugin doesn't take it.
func TestAnswerTakesTime(t *testing.T) {
	t.Parallel()
	w, h := newAsker(t, true)
	w.do(t, h, "ask") // the process runs
	s, err := w.seat(h.Grant)
	must.NoError(t, err)
	for left := time.Second; ; left *= 2 { // as much as it takes to ask
		p, err := s.running(context.Background(), time.Time{})
		must.NoError(t, err)
		var calls atomic.Int32
		p.plugin = slowAnswers{p.plugin, t, &calls}
		a := act(t, h, "ask")
		a.Deadline = time.Now().Add(left)
		a.Ask = func(context.Context, run.Question) run.Reply { return run.Reply{Action: "accept"} }
		if v, _, f := w.Perform(context.Background(), a); f == nil || calls.Load() > 1 {
			t.Fatalf("after %d answers it gives %v, %v", calls.Load(), v, f)
		}
		if calls.Load() == 1 {
			return
		}
		p.kill("the next has more time")
		wait.For(t, p.gone, "its end")
	}
}

// What is larger than the plugin said isn't taken.
func TestLargerThanSaid(t *testing.T) {
	t.Parallel()
	w, h := newAsker(t, false)
	w.do(t, h, "ask") // the process runs
	seat, err := w.seat(h.Grant)
	must.NoError(t, err)
	p, err := seat.running(context.Background(), time.Time{})
	must.NoError(t, err)
	p.rooms = false           // it answers at once
	for range trustedAtOnce { // other answers
		p.trusted <- struct{}{}
	}
	var asked int64
	a := act(t, h, "lie")
	a.Most = 8 << 20
	a.Room = func(_ context.Context, bytes int64, begun bool) bool {
		asked = bytes
		return begun
	}
	if _, _, f := w.Perform(context.Background(), a); f == nil || !strings.Contains(f.Message, "can't be used") || asked != sizeUnknown {
		t.Errorf("with room for %d bytes: %v", asked, f)
	}
	w.do(t, h, "ask")
	if s := w.Status(); len(s) != 1 || s[0].Starts != 2 {
		t.Errorf("the process goes on: %+v", s)
	}
}

// A question ends with its call: cancelled, or when the plugin's process dies.
func TestAskEnds(t *testing.T) {
	t.Parallel()
	w, h := newAsker(t, true)
	for name, end := range map[string]func(cancel func(), pid int){
		"cancelled": func(cancel func(), _ int) { cancel() },
		"killed":    func(_ func(), pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) },
	} {
		ctx, cancel := context.WithCancel(context.Background())
		a := act(t, h, "ask")
		a.Ask = func(ctx context.Context, q run.Question) run.Reply {
			pid := 0
			fmt.Sscanf(q.Message, "who? %d", &pid)
			end(cancel, pid)
			select {
			case <-ctx.Done():
			case <-time.After(patience):
				t.Errorf("%s: the question stays", name)
			}
			return run.Reply{Action: "cancel"}
		}
		if _, _, f := w.Perform(ctx, a); f == nil && name == "killed" {
			t.Errorf("%s: it succeeds", name)
		}
		cancel()
	}
}
