package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// An oracle is a plugin whose answers vary within what its manifest says, or, where
// it lies, beyond.
type oracle struct {
	*rand.Rand
	lies bool
}

func (*oracle) Prepare(*caps.Grant) {}

func (o *oracle) Perform(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	if !o.lies && o.IntN(10) == 0 {
		return nil, 0, &fault.Fault{Kind: fault.EffectFailed, Message: "it doesn't want to"}
	}
	v := o.value(a.Operation.Type, 4)
	for o.lies && a.Operation.Type.Misfit(v) == "" {
		v = o.value(o.typ(2), 4)
	}
	return v, 10, nil
}

var answerKinds = []prim.Kinds{prim.KindInt, prim.KindDec, prim.KindBool, prim.KindString, prim.KindUnit, prim.KindList, prim.KindPair, prim.KindRecord}

// typ makes a type of answers.
func (o *oracle) typ(depth int) *check.Type {
	t := &check.Type{}
	for t.Kinds == 0 {
		for _, k := range answerKinds {
			if o.IntN(6) > 0 || depth == 0 && k&(prim.KindList|prim.KindPair|prim.KindRecord) != 0 {
				continue
			}
			switch t.Kinds |= k; k {
			case prim.KindList:
				t.Item = o.typ(depth - 1)
			case prim.KindPair:
				t.First, t.Second = o.typ(depth-1), o.typ(depth-1)
			case prim.KindRecord:
				for _, key := range []string{"a", "b"} {
					if o.IntN(2) == 0 {
						t.Fields = append(t.Fields, check.Field{Key: key, Type: o.typ(depth - 1), Optional: o.IntN(2) == 0})
					}
				}
				if o.IntN(4) == 0 {
					t.Rest = o.typ(depth - 1)
				}
			}
		}
	}
	return t
}

func (o *oracle) value(t *check.Type, depth int) value.Value {
	var kinds []prim.Kinds
	for _, k := range answerKinds {
		if t.Kinds&k != 0 {
			kinds = append(kinds, k)
		}
	}
	switch kinds[o.IntN(len(kinds))] {
	case prim.KindInt:
		return value.NewInt(int64(o.IntN(20) - 5))
	case prim.KindDec:
		d, _ := value.ParseDec(fmt.Sprintf("%d.25", o.IntN(9)))
		return d
	case prim.KindBool:
		return value.Bool(o.IntN(2) == 0)
	case prim.KindString:
		return value.Str(strings.Repeat("é", o.IntN(4)))
	case prim.KindList:
		var items []value.Value
		for range o.IntN(4) {
			items = append(items, o.value(t.Item, depth-1))
		}
		return value.FromSlice(items)
	case prim.KindPair:
		return &value.Pair{First: o.value(t.First, depth-1), Second: o.value(t.Second, depth-1)}
	case prim.KindRecord:
		r := &value.Record{}
		for _, f := range t.Fields {
			if !f.Optional || o.IntN(2) == 0 {
				r.Fields = append(r.Fields, value.Field{Key: f.Key, Value: o.value(f.Type, depth-1)})
			}
		}
		if t.Rest != nil && o.IntN(2) == 0 {
			r.Fields = append(r.Fields, value.Field{Key: "c", Value: o.value(t.Rest, depth-1)})
		}
		return r
	}
	return value.Unit{}
}

// use is code that does something with a variable of a type; now and then with
// another than that.
func (o *oracle) use(x string, t *check.Type, depth int) string {
	if o.IntN(15) == 0 {
		return []string{x + " + 1", "length(" + x + ")", x + ".a", "fst(" + x + ")", x + ` ++ "!"`, "not(" + x + ")", "sum(" + x + ")"}[o.IntN(7)]
	}
	y := fmt.Sprint("v", depth)
	inside := func(of string, p *check.Type) string {
		if depth == 0 || p == nil {
			return of
		}
		return fmt.Sprintf("(let %s = %s in %s)", y, of, o.use(y, p, depth-1))
	}
	one := func(k prim.Kinds) string {
		switch k {
		case prim.KindInt:
			return []string{x + " + 1", x + " * 2", "to_text(" + x + ")", "if " + x + " > 3 then 1 else 2"}[o.IntN(4)]
		case prim.KindDec:
			return []string{x + " * 2", "to_text(" + x + ")"}[o.IntN(2)]
		case prim.KindBool:
			return []string{"not(" + x + ")", "if " + x + " then 1 else 2"}[o.IntN(2)]
		case prim.KindString:
			return []string{"length(" + x + ")", x + ` ++ "!"`, "upper(" + x + ")"}[o.IntN(3)]
		case prim.KindList:
			if t.Item.Kinds == 0 || o.IntN(3) == 0 {
				return "length(" + x + ")"
			}
			return fmt.Sprintf("map(%s => %s, %s)", y, o.use(y, t.Item, max(0, depth-1)), x)
		case prim.KindPair:
			return inside("fst("+x+")", t.First)
		case prim.KindRecord:
			if len(t.Fields) > 0 {
				f := t.Fields[o.IntN(len(t.Fields))]
				if f.Optional {
					return fmt.Sprintf(`if has(%s, %q) then 1 else 0`, x, f.Key)
				}
				return inside(x+"."+f.Key, f.Type)
			}
			return "keys(" + x + ")"
		}
		return "[" + x + "]"
	}
	var kinds []prim.Kinds
	for _, k := range answerKinds {
		if t.Kinds&k != 0 {
			kinds = append(kinds, k)
		}
	}
	code := one(kinds[len(kinds)-1])
	for _, k := range kinds[:len(kinds)-1] {
		code = fmt.Sprintf("if type_of(%s) == %q then %s else (%s)", x, k.String(), one(k), code)
	}
	return code
}

// asking is a server with operations toy.op0, toy.op1, … that answer what is of
// random types.
func (o *oracle) asking(t *testing.T, n int) (*Server, []*check.Type) {
	t.Helper()
	m := *toy
	m.Operations = nil
	types := make([]*check.Type, n)
	for i := range types {
		types[i] = o.typ(2)
		op := toy.Operations[0]
		op.Name, op.Type = fmt.Sprint("toy.op", i), types[i]
		m.Operations = append(m.Operations, op)
	}
	s, _ := answering(t, &m, o)
	return s, types
}

// answering is a server of a kind of notes, on a store.
func answering(t *testing.T, m *caps.Manifest, h run.Handler) (*Server, *journal.Store) {
	t.Helper()
	kinds, err := caps.NewKinds(m)
	if err != nil {
		t.Fatal(err)
	}
	policy := caps.NewPolicy(kinds, time.Now)
	c, err := caps.Parse("toy:notes/**", kinds)
	if err != nil {
		t.Fatal(err)
	}
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: kinds})
	if err == nil {
		err = policy.Grant(g)
	}
	if err != nil {
		t.Fatal(err)
	}
	store, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return New(Options{Broker: run.New(run.Options{Policy: policy, Handler: h, Journal: store})}), store
}

// TestAnswersSound: a tool that is sound by what manifests say of answers never fails
// with type_error or unbound while these hold, gives what its schema says, and fails
// by the plugin's fault where that lies.
func TestAnswersSound(t *testing.T) {
	worlds := 6
	if os.Getenv("PIF_FULL") != "" {
		worlds = 60
	}
	const ops, tools, runs = 6, 25, 6
	sound, unsound, failed, lies := 0, 0, 0, 0
	for seed := range worlds {
		o := &oracle{Rand: rand.New(rand.NewPCG(uint64(seed), 9))}
		s, types := o.asking(t, ops)
		must(t, s, "evolve", `{"name":"helper","code":"k => !toy.op0(\"notes/a\")","capabilities":["toy.get:notes/**"]}`)
		for range tools {
			i := o.IntN(ops)
			asked := fmt.Sprintf(`!toy.op%d("notes/x")`, i)
			if i == 0 && o.IntN(2) == 0 {
				asked = "@helper(k)"
			}
			code := fmt.Sprintf("k => let x = %s in %s", asked, o.use("x", types[i], 2))
			if o.IntN(4) == 0 {
				code = fmt.Sprintf("k => let x = try(%s) in if has(x, \"ok\") then (let x = x.ok in %s) else 0", asked, o.use("x", types[i], 2))
			}
			must(t, s, "evolve", string(wire.Encode(map[string]any{"name": "it", "code": code, "capabilities": []string{"toy:notes/**", "call:helper"}, "draft": true})))
			tool, _ := s.tools.Snapshot().Get("it")
			if !tool.Report().Sound() {
				unsound++
				continue
			}
			sound++
			for range runs {
				o.lies = false
				a := do(t, s, "run", `{"tool":"it","input":1}`)
				switch {
				case a.Fault == nil && !shapes.hold(tool, json.RawMessage(a.Text)) && a.Type != string(value.TypePair):
					t.Errorf("%s of %s gives %s, which isn't of %s", code, types[i], a.Text, tool.OutputSchema())
				case a.Fault == nil:
				case a.Fault.Kind == fault.TypeError || a.Fault.Kind == fault.Unbound:
					t.Errorf("%s is sound by %s, and gives %s", code, types[i], a.Text)
				default:
					failed++
				}
			}
			o.lies = true
			a := do(t, s, "run", `{"tool":"it","input":1}`)
			if a.Fault != nil {
				if lies++; a.Fault.Kind != fault.EffectFailed || !strings.Contains(a.Text, "the plugin's answer can't be used") {
					t.Errorf("%s of %s, of which the plugin lies, gives %s", code, types[i], a.Text)
				}
			} else if !strings.Contains(code, "try") {
				t.Errorf("%s of %s has the answer of a plugin that lies: %s", code, types[i], a.Text)
			}
			o.lies = false
		}
	}
	t.Logf("%d tools are sound and %d aren't; %d runs failed otherwise, %d by lies", sound, unsound, failed, lies)
	if sound < 6*worlds || unsound < worlds || failed < worlds || lies < 5*worlds {
		t.Error("these runs show too little")
	}
}
