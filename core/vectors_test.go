package core_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// tools is a snapshot for code_of.
type tools map[string]*core.Program

func (t tools) Tool(name string, _ bool) (core.Tool, bool) {
	p, ok := t[name]
	if !ok {
		return core.Tool{}, false
	}
	found := p.Tool()
	found.Tools = t
	return found, true
}

func (t tools) Callee(name string, with [][]string, _ fault.Pointer) (core.Tool, *fault.Fault) {
	return vectors.Callee(t, name, with)
}

func evolve(setup []vectors.Tool) (tools, *fault.Fault) {
	ts := tools{}
	for _, s := range setup {
		p, err := core.CompileTool(s.Name, s.Source())
		if err != nil {
			return nil, err.(*fault.Fault)
		}
		ts[s.Name] = p
	}
	return ts, nil
}

// prepare finds the program to run, a tool or a source, and reads its input.
func (t tools) prepare(name string, src, input []byte, as core.InputAs) (p *core.Program, in core.Input, f *fault.Fault) {
	p = t[name]
	var err error
	if name == "" {
		p, err = core.CompileTool("", src)
	}
	if err == nil {
		in, err = core.ParseInput(input, as)
	}
	if err != nil {
		f = err.(*fault.Fault)
	}
	return p, in, f
}

func outcome(m *core.Machine) vectors.Outcome {
	if m.State() == core.Failed {
		return vectors.Failed(m.Fault(), m.Steps())
	}
	e, f := m.Encode(16 << 20)
	if f != nil {
		return vectors.Failed(f, m.Steps())
	}
	return vectors.Outcome{Result: e.JSON, Type: string(e.Type), Steps: m.Steps()}
}

func TestVectors(t *testing.T) {
	vectors.Each(t, func(t *testing.T, v vectors.Vector) vectors.Outcome {
		ts, f := evolve(v.Setup)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		name, src := v.Program()
		p, in, f := ts.prepare(name, src, v.Input, core.InputAuto)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		m := p.Start(in, core.Budgets{}, ts)
		defer m.Release()
		// In slices, so that pausing is exercised by every vector.
		for m.Run(97) == core.Paused {
		}
		return outcome(m)
	})
}

func TestCorpus(t *testing.T) {
	vectors.EachCase(t, func(t *testing.T, c *vectors.Case) vectors.Outcome {
		ts, f := evolve(c.Setup())
		if f != nil {
			return vectors.Failed(f, 0)
		}
		name, src := c.Program()
		as := map[string]core.InputAs{"": core.InputAuto, "auto": core.InputAuto, "term": core.InputTerm, "data": core.InputData}[c.InputAs]
		p, in, f := ts.prepare(name, src, c.Input, as)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		m := p.Start(in, core.Budgets{Steps: c.Budgets.Steps, Memory: c.Budgets.Memory, Depth: c.Budgets.Depth}, ts)
		defer m.Release()
		asked, rounds := 0, 0
		for m.Run(0) == core.Suspended {
			var answers []core.Answer
			for _, e := range c.Answers(t, m.Requests(), func(v core.Value) []byte { return encoded(t, v) }, &asked, &rounds) {
				answers = append(answers, answer(t, e))
			}
			m.Resume(answers)
		}
		o := outcome(m)
		if o.Kind == "" && asked != len(c.Effects) {
			t.Errorf("%d effects were asked for, want %d", asked, len(c.Effects))
		}
		return o
	})
}

func answer(t *testing.T, e vectors.Effect) core.Answer {
	if e.Fault != "" {
		return core.Answer{Fault: &fault.Fault{Kind: e.Fault, Message: "as the case says"}}
	}
	in, err := core.ParseInput(e.Result, core.InputData)
	must.NoError(t, err)
	p, err := core.Compile([]byte(`{"lam":"x","body":{"var":"x"}}`))
	must.NoError(t, err)
	m := p.Start(in, core.Budgets{}, nil)
	defer m.Release()
	if m.Run(0) != core.Done {
		t.Fatal(m.Fault())
	}
	return core.Answer{Value: m.Value()}
}

// interpreter reads the interpreter of PIF that is written in PIF, and returns its canonical
// JSON.
func interpreter(t *testing.T) string {
	src, err := os.ReadFile(filepath.Join("..", "cmd", "internal", "packs", "self", "interpret_data.pif"))
	must.NoError(t, err)
	p, err := core.CompileText("", []byte(strings.Replace(string(src), "<%library%>", prim.LibraryText(), 1)))
	must.NoError(t, err)
	return string(p.Canonical())
}

// interpreted is code that has the interpreter interpret a program on an input, both canonical
// JSON.
func interpreted(interpreter, name, code, input string, setup map[string]string) string {
	tools := []byte(`{"record":{`)
	for name, code := range setup {
		if len(tools) > len(`{"record":{`) {
			tools = append(tools, ',')
		}
		key, _ := json.Marshal(name) // a string has JSON
		tools = append(append(append(tools, key...), `:{"to_data":{"quote":`+code...), "}}"...)
	}
	key, _ := json.Marshal(name)
	return `{"app":[` + interpreter + `,{"record":{"code":{"to_data":{"quote":` + code + `}},"input_code":{"to_data":{"quote":` + input + `}},"name":` + string(key) + `,"tools":` + string(tools) + `}}}}]}`
}

// ranByItself runs such code and returns what came of the program.
func ranByItself(t *testing.T, code string) vectors.Outcome {
	p, err := core.CompileTool("", []byte(code))
	must.NoError(t, err)
	in, err := core.ParseInput([]byte("null"), core.InputData)
	must.NoError(t, err)
	m := p.Start(in, core.Budgets{Steps: 1e9, Memory: 1 << 30}, nil)
	defer m.Release()
	m.Run(0)
	o := outcome(m)
	var got struct {
		Value json.RawMessage
		Error struct{ Kind fault.Kind }
		Steps uint64
	}
	if o.Kind != "" || json.Unmarshal(o.Result, &got) != nil {
		return vectors.Outcome{Kind: "interpreter: " + o.Kind + fault.Kind(o.Result), Steps: o.Steps}
	}
	return vectors.Outcome{Result: got.Value, Kind: got.Error.Kind, Steps: got.Steps}
}

// TestSelf: the interpreter of PIF that is written in PIF gives for the vectors of the
// predecessor what the machine gives: result or kind of failure, and steps. Those that a budget
// ends are left out.
func TestSelf(t *testing.T) {
	t.Parallel()
	self := interpreter(t)
	vectors.Each(t, func(t *testing.T, v vectors.Vector) vectors.Outcome {
		ts, f := evolve(v.Setup)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		name, src := v.Program()
		p, in, f := ts.prepare(name, src, v.Input, core.InputAuto)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		m := p.Start(in, core.Budgets{}, ts)
		defer m.Release()
		m.Run(0)
		direct := outcome(m)
		if vectors.ByBudget(direct.Kind) || direct.Steps > 10_000 && os.Getenv("PIF_FULL") == "" {
			return direct
		}
		setup := map[string]string{}
		for name, p := range ts {
			setup[name] = string(p.Canonical())
		}
		read, f := parse.Input(v.Input, parse.Auto)
		if f != nil {
			return vectors.Failed(f, 0)
		}
		input := "null"
		if read != nil {
			w := text.NewWriter(64<<20, 64<<20)
			w.Canonical(read.Term)
			input = string(w.Bytes())
		}
		got := ranByItself(t, interpreted(self, name, string(p.Canonical()), input, setup))
		if got.Steps != direct.Steps || got.Kind != direct.Kind {
			t.Errorf("interpreted: %v, by the machine: %v", got, direct)
		}
		got.Type = direct.Type
		return got
	})
}

// TestSelfTwice: it interprets itself, within the steps of ranByItself.
func TestSelfTwice(t *testing.T) {
	t.Parallel()
	self := interpreter(t)
	inner := `{"record":{"code":{"to_data":{"quote":{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}}}},"input":12}}`
	code := interpreted(self, "", self, inner, nil)
	if got := ranByItself(t, code); string(got.Result) != `{"steps":6,"value":144}` {
		t.Error(got)
	}
}
