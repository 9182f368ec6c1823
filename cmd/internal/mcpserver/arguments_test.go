package mcpserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// An ear is a plugin that holds what it is given to what its manifest says.
type ear struct{ t *testing.T }

func (ear) Prepare(*caps.Grant) {}

func (e ear) Perform(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	args, _ := value.Force(a.Args).(*value.Record)
	for _, f := range args.Fields {
		for _, p := range a.Operation.Params {
			if p.Name == f.Key && p.Of != nil && p.Of.Misfit(f.Value) != "" {
				e.t.Errorf("%s is given what isn't %s", p.Name, p.Of)
			}
		}
	}
	return value.Str("done"), 4, nil
}

// spell writes a value as code.
func spell(v value.Value) string {
	switch v := v.(type) {
	case *value.Cons:
		var parts []string
		for at, ok := v, true; ok; at, ok = at.Tail.(*value.Cons) {
			parts = append(parts, spell(at.Head))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case value.Nil:
		return "[]"
	case *value.Pair:
		return "(" + spell(v.First) + ", " + spell(v.Second) + ")"
	case *value.Record:
		var parts []string
		for _, f := range v.Fields {
			parts = append(parts, f.Key+": "+spell(f.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case value.Str:
		return fmt.Sprintf("%q", string(v))
	case value.Unit:
		return "null"
	case value.Dec:
		return v.String()
	case value.Int:
		return v.String()
	case value.Bool:
		return fmt.Sprint(bool(v))
	}
	return "?"
}

// TestArgumentsSound: evolve refuses an argument only if the host would, too; an
// argument of which nothing is left open is performed; and no other reaches a plugin.
func TestArgumentsSound(t *testing.T) {
	worlds := 5
	if os.Getenv("PIF_FULL") != "" {
		worlds = 60
	}
	refused, performed, open := 0, 0, 0
	for seed := range worlds {
		o := &oracle{Rand: rand.New(rand.NewPCG(uint64(seed), 19))}
		m := *toy
		m.Operations = nil
		const ops = 6
		types := make([]*check.Type, ops)
		for i := range types {
			types[i] = o.typ(2)
			op := toy.Operations[0]
			op.Name, op.Type = fmt.Sprint("toy.op", i), check.String
			op.Params = append(op.Params[:len(op.Params):len(op.Params)], caps.Param{Name: "n", Type: "any", Of: types[i], Optional: true})
			m.Operations = append(m.Operations, op)
		}
		s, _ := answering(t, &m, ear{t})
		for range 40 {
			i := o.IntN(ops)
			of := types[i]
			if o.IntN(2) == 0 {
				of = o.typ(2)
			}
			code := fmt.Sprintf(`k => !toy.op%d({key: "notes/a", n: %s})`, i, spell(o.value(of, 4)))
			if o.IntN(12) == 0 {
				code = strings.Replace(code, "n:", "m:", 1)
			}
			evolve := map[string]any{"name": "it", "code": code, "capabilities": []string{"toy:notes/**"}}
			a := do(t, s, "evolve", string(wire.Encode(evolve)))
			evolve["draft"] = true
			must(t, s, "evolve", string(wire.Encode(evolve)))
			tool, _ := s.tools.Snapshot().Get("it")
			ran := do(t, s, "run", `{"tool":"it","input":1}`)
			switch {
			case ran.Fault != nil && ran.Fault.Kind != fault.EffectFailed:
				t.Errorf("%s, where n is %s: %s", code, types[i], ran.Text)
			case a.Fault != nil:
				if refused++; a.Fault.Kind != fault.Refused || ran.Fault == nil {
					t.Errorf("%s, where n is %s, is refused and performed: %s", code, types[i], a.Text)
				}
			case !tool.Report().Sound():
				open++
			case ran.Fault != nil:
				t.Errorf("%s, where n is %s, is sound and fails: %s", code, types[i], ran.Text)
			default:
				performed++
			}
		}
	}
	t.Logf("%d are refused, %d performed, %d left to the run", refused, performed, open)
	if refused < 10*worlds || performed < 10*worlds || open == 0 {
		t.Error("these show too little")
	}
}
