package mcpserver

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/cmd/internal/wait"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// asleep performs nothing until the run ends.
type asleep struct {
	steady
	entered chan struct{}
}

func (s asleep) Perform(ctx context.Context, _ run.Act) (value.Value, int64, *fault.Fault) {
	s.entered <- struct{}{}
	<-ctx.Done()
	return nil, 0, queue.Cancelled()
}

// TestRunsGiveWay: runs of one principal that sleep with all of the memory don't keep another's
// from running; the newest of them ends, and is told why.
func TestRunsGiveWay(t *testing.T) {
	const pool = 16 << 20
	core.SetPool(eval.PoolHeld() + pool)
	defer core.SetPool(eval.DefaultPool)
	w := newRecordedWorld(t, 12)
	s := asleep{entered: make(chan struct{}, 100)}
	limits := Limits{MaxMemory: 4 << 20}
	sleeps := New(Options{Registry: w.server.Registry(), Broker: run.New(run.Options{Policy: w.policy, Handler: s, Journal: w.store}), Limits: limits})
	w.evolve("sleeper", `n => (let l = map(x => x + 1, range(0, 100000)) in [!toy.get("notes/a"), length(l)])`, toyGet)
	ctx, wake := context.WithCancel(t.Context())
	answers := make(chan wire.Answer, 100)
	full := false
	begun := 0
	for ; !full && begun < 50; begun++ {
		go func() {
			answers <- sleeps.Call(ctx, Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"sleeper"}`)})
		}()
		select {
		case <-s.entered:
		case a := <-answers:
			full = true
			if a.Fault == nil || a.Fault.Kind != fault.Overloaded || !strings.Contains(a.Fault.Message, "your own runs") {
				t.Errorf("one too many: %+v", a.Fault)
			}
		case <-time.After(wait.Limit(t)):
			t.Fatal("a run neither began nor was refused")
		}
	}
	if !full {
		t.Fatal("the pool isn't full")
	}
	other := New(Options{Limits: limits})
	for range 3 {
		a := other.Call(t.Context(), Call{Tool: "run", Arguments: json.RawMessage(`{"code":"length(map(x => x + 1, range(0, 100000)))"}`)})
		if a.Fault != nil || a.Text != "100000" {
			t.Errorf("another principal: %s %+v", a.Text, a.Fault)
		}
	}
	a := wait.For(t, answers, "a run that gives way")
	if a.Fault == nil || a.Fault.Kind != fault.Overloaded || !strings.Contains(a.Fault.Message, "gave way to one of somebody else's") {
		t.Errorf("what gave way is told %+v", a.Fault)
	}
	wake()
	for range begun - 2 {
		if a := wait.For(t, answers, "the end of the other runs"); a.Fault == nil || a.Fault.Kind != fault.Cancelled {
			t.Errorf("another gave way, too: %+v", a.Fault)
		}
	}
}

// TestLongCodeHasTurns: long code waits to be read while others' is, for a second at most; short code doesn't.
func TestLongCodeHasTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		for range max(1, runtime.GOMAXPROCS(0)/2) {
			s.cpu.Read(nil, s, queue.LongCode)
		}
		long := `"[1` + strings.Repeat(",1", queue.LongCode) + `]"`
		began := time.Now()
		for tool, arguments := range map[string]string{"run": `{"code":`, "evolve": `{"name":"f","code":`} {
			if a := s.Call(t.Context(), Call{Tool: tool, Arguments: json.RawMessage(arguments + `"1"}`)}); a.Fault != nil || time.Since(began) > 0 {
				t.Errorf("%s of short code: %v, after %v", tool, a.Fault, time.Since(began))
			}
		}
		var done atomic.Int32
		for tool, arguments := range map[string]string{"run": `{"code":`, "evolve": `{"name":"g","code":`} {
			go func() {
				if a := s.Call(t.Context(), Call{Tool: tool, Arguments: json.RawMessage(arguments + long + `}`)}); a.Fault != nil {
					t.Errorf("%s: %v", tool, a.Fault)
				}
				done.Add(1)
			}()
		}
		synctest.Wait()
		if n := done.Load(); n != 0 {
			t.Errorf("%d didn't wait", n)
		}
		time.Sleep(2 * queue.LongMaking)
		if n := done.Load(); n != 2 {
			t.Errorf("%d are done", n)
		}
	})
}
