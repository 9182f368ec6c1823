package run_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Large arguments of all principals together wait for their turn: no more are under way than there is room for.
func TestLargeArgumentsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 3_000_000
		now, most := make(chan int, 1), 0
		now <- 0
		count := func(n int) {
			under := <-now + n
			most = max(most, under)
			now <- under
		}
		done := make(chan *fault.Fault)
		for range 3 {
			w := newWorld(t, run.Options{}, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
				if !a.Room(ctx, size, true) { // its own arguments don't keep the answer out
					return nil, 0, fault.New(fault.EffectFailed, "no room")
				}
				count(1)
				time.Sleep(100 * time.Millisecond) // all that may be are under way then
				count(-1)
				return value.Unit{}, 2, nil
			}, "toy:notes/**")
			w.evolve("put", `s => par(!toy.put({key: "notes/a", value: s}), !toy.put({key: "notes/b", value: s}), !toy.put({key: "notes/c", value: s}))`, "toy.put:notes/**")
			go func() {
				_, f := w.run(context.Background(), "put", `"`+strings.Repeat("x", size)+`"`)
				done <- f
			}()
		}
		for range 3 {
			if f := <-done; f != nil {
				t.Error(f)
			}
		}
		if most != 2 {
			t.Errorf("%d of %d bytes were under way at once, not two: one of a broker, and 8 MiB of all", most, size)
		}
	})
}

// The outcomes of a round count for the run in the pool until the machine has them, and where they have no room it ends.
func TestOutcomesCountInThePool(t *testing.T) { synctest.Test(t, outcomesCount) }

func outcomesCount(t *testing.T) {
	defer core.SetPool(128 << 20)
	w := newWorld(t, run.Options{}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
		return value.Str("x"), 3 << 20, nil
	}, "toy:notes/**")
	tool := w.evolve("get", `k => par(!toy.get(k), !toy.get(k), !toy.get(k), !toy.get(k))`, "toy.get:notes/**")
	for _, c := range []struct {
		pool int64
		want fault.Kind
	}{{32 << 20, ""}, {9 << 20, fault.Overloaded}} {
		core.SetPool(c.pool)
		in, err := core.ParseInput([]byte(`"notes/a"`), core.InputData)
		must.NoError(t, err)
		share := &core.Share{}
		stake := &core.Stake{Share: share, Most: 64 << 20, GiveWay: func(bool) {}, Wait: func(<-chan struct{}) bool { return false }}
		r := w.broker.Begin(w.tools.Snapshot(), run.Start{Tool: tool, Input: []byte(`"notes/a"`), As: "data"})
		r.Draw(stake)
		m := tool.Program().Start(in, core.Budgets{Memory: 2 << 20}, r.Tools(tool))
		if m.Run(0) != core.Suspended {
			t.Fatal(m.Fault())
		}
		m.Resume(r.Answer(context.Background(), time.Now().Add(time.Hour), m.Requests()))
		got := fault.Kind("")
		if f := r.Halted(); f != nil {
			got = f.Kind
		}
		if got != c.want {
			t.Errorf("a pool of %d bytes: %q, want %q", c.pool, got, c.want)
		}
		r.Draw(nil)
		if !core.Lend(nil, 7<<20) {
			t.Error("what the outcomes took isn't given back")
		}
		core.Lend(nil, -7<<20)
		m.Release()
	}
}

// What a run that goes on was answered before counts, too.
func TestRecalledOutcomesCountInThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, part = 200_000, 100_000
		w := newWorld(t, run.Options{}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
			return value.Str(strings.Repeat("x", size)), size, nil
		}, "toy:notes/**")
		tool := w.evolve("get", `k => par(`+strings.Repeat(`!toy.get(k), `, 40)+`null)`, "toy.get:notes/**")
		in, err := core.ParseInput([]byte(`"notes/a"`), core.InputData)
		must.NoError(t, err)
		s := bounds(tool, "", `"notes/a"`)
		r := w.broker.Begin(w.tools.Snapshot(), s)
		for _, want := range []fault.Kind{"", "", fault.Overloaded} {
			r.Draw(&core.Stake{Share: &core.Share{}, Most: 64 << 20, GiveWay: func(bool) {}, Wait: func(<-chan struct{}) bool { return false }})
			m := tool.Program().Start(in, core.Budgets{Memory: 2 << 20}, r.Tools(tool))
			if m.Run(0) != core.Suspended {
				t.Fatal(m.Fault())
			}
			full := int64(0)
			for want != "" && core.Lend(nil, part) {
				full += part
			}
			core.Lend(nil, -min(full, 10*size))
			full = max(full-10*size, 0)
			r.Answer(t.Context(), time.Now().Add(time.Hour), m.Requests())
			core.Lend(nil, -full)
			if kindOf(r.Halted()) != want {
				t.Errorf("it was halted by %v, not %q", r.Halted(), want)
			}
			r.Draw(nil)
			m.Release()
			rec, err := run.ReadRecord(w.memory, r.ID())
			must.NoError(t, err)
			r, err = w.broker.Resume(w.tools.Snapshot(), s, rec)
			must.NoError(t, err)
		}
	})
}

// A turn begins when there is room in the pool, too: while that is full turns don't end one after the other, so that all come
// at once when it isn't.
func TestTurnsBeginWithRoomInThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, full, runs = 3_000_000, 127 << 20, 6
		if !core.Lend(nil, full) {
			t.Fatal("the pool is full already")
		}
		time.AfterFunc(1500*time.Millisecond, func() { core.Lend(nil, -full) })
		now, most, done := make(chan int, 1), 0, make(chan *fault.Fault)
		now <- 0
		count := func(n int) {
			under := <-now + n
			most = max(most, under)
			now <- under
		}
		for range runs {
			w := newWorld(t, run.Options{}, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
				for !a.Room(ctx, size, false) {
					if ctx.Err() != nil {
						return nil, 0, fault.New(fault.EffectFailed, "no room")
					}
				}
				count(1)
				time.Sleep(100 * time.Millisecond)
				count(-1)
				return value.Unit{}, 2, nil
			}, "toy:notes/**")
			w.evolve("get", `k => !toy.get(k)`, "toy.get:notes/**")
			go func() {
				_, f := w.run(context.Background(), "get", `"notes/a"`)
				done <- f
			}()
		}
		for range runs {
			if f := <-done; f != nil {
				t.Error(f)
			}
		}
		if most != 2 {
			t.Errorf("%d of %d bytes were under way at once, not two", most, size)
		}
	})
}

// At the end of a section what was planned of the round waits for room, as ever.
func TestRoomAtTheEndOfASection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, part = 150_000, 100_000
		puts, full := 0, int64(0)
		free := sync.OnceFunc(func() { core.Lend(nil, -full) })
		defer free()
		w := newWorldOf(t, ledger, run.Options{Limits: run.Limits{Width: 1}}, func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
			for puts++; puts == 1 && core.Lend(nil, part); {
				full += part
			}
			if puts == 1 { // before the large one
				time.AfterFunc(25*time.Millisecond, free)
			}
			return value.Str("x"), 1, nil
		}, "led:**")
		made := w.evolve("act", `k => par(!led.put({key: "a", value: 1}), !led.put({key: "a", value: k}), `+strings.Repeat(`try(!led.put({key: "a", value: 1})), `, run.MaxPlanSteps)+`null)`, "led:**")
		input := `"` + strings.Repeat("x", size) + `"`
		in, err := core.ParseInput([]byte(input), core.InputData)
		must.NoError(t, err)
		p, f := w.broker.Begin(w.tools.Snapshot(), bounds(made, "", input)).Plan(t.Context(), time.Now().Add(time.Hour), run.Evaluation{Tool: made, Program: made.Program(), Input: in}, 1, nil)
		must.NoFault(t, f)
		rec, err := run.ReadRecord(w.memory, p.Run)
		must.NoError(t, err)
		r, err := w.broker.Resume(w.tools.Snapshot(), bounds(made, "", input), rec)
		must.NoError(t, err)
		must.NoFault(t, r.Does(p, 0, ""))
		drive(t, r, made, input)
		if !r.Section() || p.Complete || puts != len(p.Steps) {
			t.Errorf("of %d steps %d were done", len(p.Steps), puts)
		}
	})
}
