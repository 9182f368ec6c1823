package core_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A countedContext ends when its Err is asked for the nth time.
type countedContext struct {
	context.Context
	asked, end int
}

func (c *countedContext) Err() error {
	if c.asked++; c.asked >= c.end && c.end > 0 {
		return context.Canceled
	}
	return nil
}

// TestRunIsCancelled: a run ends with its context also inside one step, and while its result is written.
func TestRunIsCancelled(t *testing.T) {
	for _, code := range []string{
		`let n = fold(p => fst(p) * fst(p), 3, range(0, 18)) in length(to_text(n * n))`, `fold(p => (fst(p), fst(p)), 1, range(0, 17))`,
	} {
		p, err := core.Compile([]byte(code))
		must.NoError(t, err)
		ctx := &countedContext{Context: t.Context()}
		if _, err := core.Run(ctx, p, nil, core.Budgets{}); err != nil || ctx.asked < 7 {
			t.Errorf("%s: %v; its context was asked %d times", code, err, ctx.asked)
		}
		ctx.asked, ctx.end = 0, ctx.asked
		_, err = core.Run(ctx, p, nil, core.Budgets{})
		if f := new(fault.Fault); !errors.As(err, &f) || f.Kind != fault.Cancelled || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// TestValueIsBounded: the result as Go data takes no more than the budget of memory, and making it ends with the context.
func TestValueIsBounded(t *testing.T) {
	p, err := core.CompileText("", []byte("n => range(0, n)"))
	must.NoError(t, err)
	_, err = core.Run(t.Context(), p, []byte("4000000"), core.Budgets{})
	if f := new(fault.Fault); !errors.As(err, &f) || f.Kind != fault.OutOfMemory {
		t.Errorf("it gives %v", err)
	}
	in, err := core.ParseInput([]byte("400000"), core.InputData)
	must.NoError(t, err)
	for _, stopped := range []bool{false, true} {
		m := p.Start(in, core.Budgets{}, nil)
		m.Run(0)
		v, f := m.ValueUntil(func() bool { return stopped })
		if (v == nil) != stopped || (f != nil && f.Kind == fault.Cancelled) != stopped {
			t.Errorf("stopped %v: %v", stopped, f)
		}
		m.Release()
	}
}

// TestShared: what a program tells of itself is the caller's.
func TestShared(t *testing.T) {
	p, err := core.CompileTool("", []byte(`{"add":[{"var":"a"},{"add":[{"var":"b"},{"var":"c"}]}]}`))
	must.NoError(t, err)
	tool, err := core.CompileTool("t", []byte(`{"add":[{"var":"a"},1]}`))
	must.NoError(t, err)
	_, _, _ = append(p.Notes(), "x"), append(p.Free(), "x"), append(tool.Params(), "x")
	p.Free()[0], tool.Params()[0] = "x", "x"
	if free, params := p.Free()[0], tool.Params()[0]; free != "a" || params != "a" {
		t.Errorf("%s, %s", free, params)
	}
	noted, err := core.CompileTool("", []byte(`{"record":{"a":{"add":[1,2],"note":1},"b":{"add":[1,2],"note":1},"c":{"add":[1,2],"note":1}}}`))
	must.NoError(t, err)
	if n := noted.Notes(); len(n) != cap(n) || len(p.Notes()) != cap(p.Notes()) {
		t.Errorf("%q, %q have room", n, p.Notes())
	}
	r, err := core.Run(t.Context(), noted, nil, core.Budgets{})
	must.NoError(t, err)
	noted.Notes()[0], r.Notes[1] = "x", "x"
	if n := noted.Notes(); n[0] == "x" || n[1] == "x" {
		t.Errorf("%q", n)
	}
}

// TestEncode: the JSON of a result is the caller's, and as long as was asked for.
func TestEncode(t *testing.T) {
	for _, code := range []string{"true", "false", "null", "[]", "12.5", `"é"`} {
		p, err := core.Compile([]byte(code))
		must.NoError(t, err)
		m := p.Start(core.Input{}, core.Budgets{}, nil)
		m.Run(0)
		e, f := m.Encode(100)
		if f != nil || string(e.JSON) != code {
			t.Errorf("%s: %s, %v", code, e.JSON, f)
		}
		clear(e.JSON[:cap(e.JSON)])
		if e, _ := m.Encode(100); string(e.JSON) != code {
			t.Errorf("%s is %s after a caller used its JSON again", code, e.JSON)
		}
		for _, keep := range []int{1, 0, -1} {
			if e, f := m.Encode(keep); f != nil || string(e.JSON) != code[:max(0, keep)] || !e.Truncated || e.Total != int64(len(code)) {
				t.Errorf("%s: of the first %d bytes it gives %+v, %v", code, keep, e, f)
			}
		}
		m.Release()
	}
}

// TestReadInputInfersOnce: of a program's next inputs the types are known.
func TestReadInputInfersOnce(t *testing.T) {
	p, err := core.Compile([]byte(`rows => rows |> filter(r => r.price > 1) |> map(r => r.price * r.count) |> sum`))
	must.NoError(t, err)
	src := []byte(`[{"price":1.10,"count":3}]`)
	read := func() {
		_, err := p.ReadInput(src)
		must.NoError(t, err)
	}
	if n := testing.AllocsPerRun(10, read); n > 60 { // AllocsPerRun calls it once before it counts
		t.Errorf("an input takes %v allocations", n)
	}
}

// TestReadInputKeepsNothing: an input is what was read, also where its text is used again.
func TestReadInputKeepsNothing(t *testing.T) {
	for _, n := range []int{10, 200_000} {
		p, err := core.Compile([]byte(`n => sum(n) + length(n)`))
		must.NoError(t, err)
		src := []byte("[1" + strings.Repeat(",1", n-1) + "]")
		in, err := p.ReadInput(src)
		must.NoError(t, err)
		copy(src, bytes.Repeat([]byte("]"), len(src)))
		for range 2 {
			m := p.Start(in, core.Budgets{}, nil)
			if m.Run(0); m.Value() == nil || m.Value().(value.Int) != value.NewInt(int64(2*n)) {
				t.Errorf("%d: %v, %v", n, m.Value(), m.Fault())
			}
			m.Release()
		}
	}
}

// TestNotDone: a run that isn't done, or failed, has no result, whatever the run before it gave.
func TestNotDone(t *testing.T) {
	p, err := core.CompileText("t", []byte(`n => if n == 0 then true else if n == 1 then 1 / 0 else self(n)`))
	must.NoError(t, err)
	m := p.Start(core.Input{}, core.Budgets{}, nil)
	defer m.Release()
	for _, n := range []string{"0", "0", "2", "1"} {
		in, err := core.ParseInput([]byte(n), core.InputData)
		must.NoError(t, err)
		for range 2 {
			p.Restart(m, in, core.Budgets{}, nil)
			for range 2 {
				done := m.Run(50) == core.Done
				e, f := m.Encode(100)
				v, vf := m.ValueUntil(nil)
				if done != (f == nil) || done != (vf == nil) || done != (len(e.JSON) > 0) || done != (v != nil) || m.Fault() != nil && f != m.Fault() {
					t.Errorf("%s: %s, %v; %v, %v", n, e.JSON, f, v, vf)
				}
			}
			p.Restart(m, in, core.Budgets{}, nil)
			if e, f := m.Encode(100); f == nil || f.Kind != fault.Internal {
				t.Errorf("%s: before it runs it gives %s, %v", n, e.JSON, f)
			}
		}
	}
}

// TestFaultOfTheCall: a result that was too large as JSON is one as Go data.
func TestFaultOfTheCall(t *testing.T) {
	p, err := core.Compile([]byte(`let s = repeat("aaaaaaaa", 50000) in [s, s, s]`))
	must.NoError(t, err)
	m := p.Start(core.Input{}, core.Budgets{Memory: 1 << 20}, nil)
	defer m.Release()
	m.Run(0)
	if _, f := m.Encode(100); f == nil || f.Kind != fault.ResultTooLarge {
		t.Fatalf("%v, %v", f, m.Fault())
	}
	if v, f := m.ValueUntil(nil); v == nil || f != nil {
		t.Errorf("it gives nil: %v, %v", v == nil, f)
	}
}

// TestNoValue: an answer without a value is null, on each evaluator.
func TestNoValue(t *testing.T) {
	p, err := core.Compile([]byte(`[!fs.read("a"), par(!fs.read("b"))]`))
	must.NoError(t, err)
	const want = "[null,[null]]"
	m := p.Start(core.Input{}, core.Budgets{}, nil)
	defer m.Release()
	for m.Run(0) == core.Suspended {
		m.Resume([]core.Answer{{}})
	}
	if e, f := m.Encode(100); f != nil || string(e.JSON) != want {
		t.Errorf("%s, %v", e.JSON, f)
	}
	e, _, f := p.TraceWith(core.Input{}, core.Budgets{}, core.Tracing{Answer: func(requests []core.Request) []core.Answer { return make([]core.Answer, len(requests)) }})
	if f != nil || string(e.JSON) != want {
		t.Errorf("traced: %s, %v", e.JSON, f)
	}
	r, err := p.Follow(t.Context(), core.Input{}, core.Budgets{}, flow.Config{Handler: func(_ context.Context, requests []flow.Request) ([]flow.Answer, error) {
		return make([]flow.Answer, len(requests)), nil
	}})
	must.NoError(t, err)
	if e, f := text.Encode(r.Value, 100, 1<<20); f != nil || string(e.JSON) != want {
		t.Errorf("followed: %s, %v", e.JSON, f)
	}
}

// TestForeignFunctions: a function that comes with a fault that is caught fails no later answer.
func TestForeignFunctions(t *testing.T) {
	for _, code := range []string{`[try(!fs.read("a")), !fs.read("b")] |> last`, `[try(par(!fs.read("a"))), !fs.read("b")] |> last`} {
		p, err := core.Compile([]byte(code))
		must.NoError(t, err)
		m := p.Start(core.Input{}, core.Budgets{}, nil)
		m.Run(0)
		m.Resume([]core.Answer{{Fault: &fault.Fault{Kind: fault.EffectFailed, Message: "x", Raised: core.Value(&value.Closure{})}}})
		m.Run(0)
		m.Resume([]core.Answer{{Value: value.NewInt(7)}})
		if m.Run(0); m.Value() != value.NewInt(7) {
			t.Errorf("%s: %v, %v", code, m.Value(), m.Fault())
		}
		m.Release()
	}
}

// TestLargeAnswers: a host's answer that shares its parts, or is nested too deep, needs more memory than there is.
func TestLargeAnswers(t *testing.T) {
	p, err := core.Compile([]byte(`length(!fs.read("a"))`))
	must.NoError(t, err)
	var shared, lists, records, deep core.Value = value.Unit{}, value.Unit{}, value.Unit{}, value.Unit{}
	for range 60 {
		shared = &value.Pair{First: shared, Second: shared}
		lists = value.FromSlice([]core.Value{lists, lists})
		records = &value.Record{Fields: []value.Field{{Key: "a", Value: records}, {Key: "b", Value: records}}}
	}
	for range 1<<20 + 10 {
		deep = &value.Pair{First: deep, Second: value.Unit{}}
	}
	for name, v := range map[string]core.Value{"pairs": shared, "lists": lists, "records": records, "deep": deep} {
		m := p.Start(core.Input{}, core.Budgets{}, nil)
		m.Run(0)
		m.Resume([]core.Answer{{Value: v}})
		if m.Run(0); m.Fault() == nil || m.Fault().Kind != fault.OutOfMemory {
			t.Errorf("%s: %v", name, m.Fault())
		}
		m.Release()
	}
}
