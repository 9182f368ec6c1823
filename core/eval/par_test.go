package eval_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// chain asks for each number from n down in a branch of its own: par of the
// head and of the rest.
const chain = `{"lam":"n","body":{"if":{"cond":{"eq":[{"var":"n"},0]},"then":0,"else":
	{"sum":{"par":[{"a.b":{"var":"n"}},{"app":[{"self":true},{"sub":[{"var":"n"},1]}]}]}}}}}`

// tree does the same in halves: the numbers from fst up to snd.
const tree = `{"lam":"p","body":{"let":[["a",{"fst":{"var":"p"}}],["b",{"snd":{"var":"p"}}]],"in":
	{"if":{"cond":{"lte":[{"sub":[{"var":"b"},{"var":"a"}]},1]},"then":{"a.b":{"var":"a"}},"else":
	{"let":[["m",{"div":[{"add":[{"var":"a"},{"var":"b"}]},2]}]],"in":
	{"sum":{"par":[{"app":[{"self":true},{"pair":[{"var":"a"},{"var":"m"}]}]},{"app":[{"self":true},{"pair":[{"var":"m"},{"var":"b"}]}]}]}}}}}}}`

func startTool(t testing.TB, code, input string, b core.Budgets) *core.Machine {
	t.Helper()
	p, f := compileAs("t", code)
	must.NoFault(t, f)
	return p.Start(mustInput(t, input, core.InputTerm), b, nil)
}

// answerAll answers every request with its argument.
func answerAll(m *core.Machine) {
	answers := make([]core.Answer, len(m.Requests()))
	for i, r := range m.Requests() {
		answers[i].Value = r.Arg
	}
	m.Resume(answers)
	clear(answers) // the host uses them again
}

// TestManyBranches has thousands of branches wait at once.
func TestManyBranches(t *testing.T) {
	for _, c := range []struct {
		code, input string
		width       int
	}{
		{chain, "3000", 3000},
		{tree, `{"pair":[1,100001]}`, 100_000},
	} {
		m := startTool(t, c.code, c.input, core.Budgets{Memory: 128 << 20})
		rounds := 0
		for s := m.Run(1000); s == core.Paused || s == core.Suspended; s = m.Run(1000) {
			if s == core.Paused {
				continue
			}
			if rounds++; len(m.Requests()) != c.width {
				t.Errorf("%d requests, want %d", len(m.Requests()), c.width)
			}
			answerAll(m)
		}
		if want := value.NewInt(int64(c.width) * int64(c.width+1) / 2); m.Fault() != nil || rounds != 1 || m.Value() != want {
			t.Errorf("%v %v in %d rounds, want %v", m.Fault(), m.Value(), rounds, want)
		}
		m.Release()
	}
}

// TestBranchesAreCounted: what waits counts to the budget of memory, and the
// process doesn't grow past it.
func TestBranchesAreCounted(t *testing.T) {
	held := eval.PoolHeld()
	for name, code := range map[string]string{
		"branches":  chain,
		"stacks":    `{"lam":"n","body":{"if":{"cond":{"eq":[{"var":"n"},0]},"then":{"a.b":0},"else":{"sum":{"par":[{"add":[{"var":"n"},{"app":[{"self":true},{"sub":[{"var":"n"},1]}]}]},{"app":[{"self":true},{"sub":[{"var":"n"},1]}]}]}}}}}`,
		"arguments": `{"lam":"n","body":{"app":[{"lam":"s","body":{"par":[` + strings.Repeat(`{"a.b":{"var":"s"}},`, 400) + `1]}},{"fold":[{"lam":"p","body":{"concat":[{"fst":{"var":"p"}},{"fst":{"var":"p"}}]}},"0123456789abcdef",{"range":[0,15]}]}]}}`,
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m := startTool(t, code, "1000000", core.Budgets{Memory: 16 << 20, Steps: 100_000_000})
		for m.Run(0) == core.Suspended {
			answerAll(m)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if f := m.Fault(); f == nil || f.Kind != fault.OutOfMemory {
			t.Errorf("%s: %v, want out_of_memory", name, f)
		}
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
			t.Errorf("%s: the process grew by %d bytes", name, grown)
		}
		m.Release()
	}
	if now := eval.PoolHeld(); now != held {
		t.Errorf("machines hold %d bytes of the pool, before it were %d", now, held)
	}
}

// TestReleaseInBranches drops a machine while branches wait, and uses it again.
func TestReleaseInBranches(t *testing.T) {
	held := eval.PoolHeld()
	p, f := compileAs("t", tree)
	must.NoFault(t, f)
	in := mustInput(t, `{"pair":[1,3001]}`, core.InputTerm)
	m := p.Start(in, core.Budgets{}, nil)
	for range 3 {
		if m.Run(0) != core.Suspended || len(m.Requests()) != 3000 {
			t.Fatalf("%v with %d requests", m.State(), len(m.Requests()))
		}
		p.Restart(m, in, core.Budgets{}, nil)
	}
	m.Run(0)
	answerAll(m)
	if m.Run(0) != core.Done || m.Value() != value.NewInt(3000*3001/2) {
		t.Errorf("%v %v", m.Value(), m.Fault())
	}
	p.Restart(m, in, core.Budgets{}, nil)
	m.Run(0)
	m.Release()
	if now := eval.PoolHeld(); now != held {
		t.Errorf("machines hold %d bytes of the pool, before it were %d", now, held)
	}
}

// TestBranchesMove collects at every allocation, and in the middle of branches.
func TestBranchesMove(t *testing.T) {
	for _, tight := range []bool{false, true} {
		stressed(t, tight)
		code := `{"lam":"n","body":{"app":[{"lam":"mk","body":{"par":[
			{"map":[{"lam":"i","body":[{"var":"i"},{"a.b":["x",{"var":"i"}]},{"record":{"k":{"var":"mk"}}}]},{"range":[0,5]}]},
			{"try":{"fold":[{"lam":"p","body":{"cons":[{"a.b":{"fst":{"var":"p"}}},{"fst":{"var":"p"}}]}},[],{"range":[0,6]}]}},
			{"par":[{"try":{"raise":[{"a.b":"deep"},{"var":"mk"}]}},{"a.b":{"to_text":{"range":[0,40]}}}]}]}},{"concat":["m",{"to_text":{"var":"n"}}]}]}}`
		for slice := range uint64(5) {
			tr := trial{tool: "t", code: code, input: "7", slice: slice, reply: echo, tools: map[string]string{}}
			tr.budgets = core.Budgets{Steps: 100_000, Memory: 4 << 20, Depth: 100}
			tr.check(t)
		}
	}
	stressedNot()
}

// TestDeepBranches nests pars as deep as they are written out, and calls of
// tools as deep as the budget lets them.
func TestDeepBranches(t *testing.T) {
	deep := strings.Repeat(`{"par":[`, 2000) + `{"a.b":1}` + strings.Repeat(`]}`, 2000)
	tr := trial{code: deep, input: "null", reply: echo, tools: map[string]string{}, budgets: core.Budgets{Steps: 100_000, Memory: 64 << 20, Depth: 10_000}}
	tr.check(t)
	tr.code = fmt.Sprintf(`{"call":{"tool":"down","input":%d}}`, 3000)
	tr.tools["down"] = `{"lam":"n","body":{"if":{"cond":{"eq":[{"var":"n"},0]},"then":{"a.b":0},"else":{"add":[1,{"call":{"tool":"down","input":{"sub":[{"var":"n"},1]}}}]}}}}`
	if o := tr.check(t); string(o.Result) != "3000" {
		t.Errorf("got %v", o)
	}
}

// TestAbandonedBranchesAreDropped abandons large branches over and over: what
// they held is given back.
func TestAbandonedBranchesAreDropped(t *testing.T) {
	code := `{"lam":"n","body":{"app":[{"lam":"wide","body":{"fold":[{"lam":"p","body":{"app":[{"lam":"_","body":{"add":[{"fst":{"var":"p"}},1]}},
		{"try":{"par":[{"head":{"a.b":[]}},{"app":[{"var":"wide"},{"var":"wide"},8]}]}}]}},0,{"range":[0,{"var":"n"}]}]}},
		{"lam":["w","k"],"body":{"if":{"cond":{"eq":[{"var":"k"},0]},"then":{"a.b":0},"else":{"par":[
			{"app":[{"var":"w"},{"var":"w"},{"sub":[{"var":"k"},1]}]},{"app":[{"var":"w"},{"var":"w"},{"sub":[{"var":"k"},1]}]}]}}}}]}}`
	m := startTool(t, code, "300", core.Budgets{Memory: 2 << 20})
	defer m.Release()
	rounds := 0
	for ; m.Run(0) == core.Suspended; rounds++ {
		if len(m.Requests()) != 257 {
			t.Fatalf("%d requests", len(m.Requests()))
		}
		answerAll(m)
	}
	if m.Fault() != nil || m.Value() != value.NewInt(300) || rounds != 300 {
		t.Errorf("%v %v in %d rounds", m.Fault(), m.Value(), rounds)
	}
}
