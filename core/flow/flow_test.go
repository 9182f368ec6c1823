package flow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// datumOf reads JSON as data.
func datumOf(t *testing.T, json string) value.Value {
	t.Helper()
	in, f := parse.Input([]byte(json), parse.Data)
	must.NoFault(t, f)
	v, _, f := naive.Run(naive.Config{Term: in.Term, Source: in.Source})
	must.NoFault(t, f)
	return v
}

func configOf(t *testing.T, code string) flow.Config {
	t.Helper()
	p, err := core.CompileText("tool", []byte(code))
	must.NoError(t, err)
	return flow.Config{Term: p.Term(), Source: p.Tool().Source, Tool: "tool"}
}

func TestItems(t *testing.T) {
	for _, c := range []struct{ tree, value, path, want string }{
		{`{"label":["a"]}`, `[1]`, "", "a"},
		{`{}`, `[1]`, "", ""},
		{`{"items":[{"label":["a"]},{}]}`, `[1,2,3]`, "[]", "a"},
		{`{"items":[{},{"fields":{"to":{"label":["b"]}}}]}`, `[1,{"to":2,"x":3}]`, "", "b"},
		{`{"items":[{"fields":{"to":{"label":["b"]}}}]}`, `[{"to":2,"x":3}]`, "[] x", ""},
		{`{"items":[{}],"label":["a"]}`, `[1]`, "[]", "a"},
		{`{"fields":{"id":{}},"label":["a"]}`, `{"id":1,"text":"x"}`, "id", ""},
		{`{"fields":{"id":{}},"label":["a"]}`, `{"id":1,"text":"x"}`, "text", "a"},
		{`{"fields":{"all":{"items":[{"fields":{"url":{"label":["b"]}}}]}}}`, `{"all":[{"url":1,"id":2}]}`, "all [] url", "b"},
		{`{"fields":{"all":{"items":[{"fields":{"url":{"label":["b"]}}}]}}}`, `{"all":[{"url":1,"id":2}]}`, "all [] id", ""},
		{`{"fields":{"all":{"fields":{"url":{"label":["b"]}}}}}`, `{"all":{"url":1}}`, "all [] url", "b"},
		{`{"fields":{"all":{"fields":{"url":{"label":["b"]}}}}}`, `{"all":{"url":1}}`, "all url x", "b"},
		{`{"fields":{"a":{"label":["a"]}}}`, `{"b":1}`, "c", ""},
		{`{"fields":{"to.x":{"label":["b"]}}}`, `{"to":{"x":1},"to.x":2}`, "to.x", "b"},
		{`{"fields":{"to.x":{"label":["b"]}}}`, `{"to":{"x":1},"to.x":2}`, "to x", ""},
		{`{"fields":{"TO":{"label":["a"]},"to":{"label":["b"]},"too":{"label":["b"]}}}`, `{"TO":1,"to":2,"too":3}`, "To", "ab"},
		{`{"fields":{"ids[]":{"label":["b"]}}}`, `{"ids[]":[1]}`, "ids[]", "b"},
		{`{"items":[]}`, `[]`, "", ""},
		{`{"items":[]}`, `[1]`, "", "unfit"},
		{`{"items":[{}]}`, `{"a":1}`, "", "unfit"},
		{`{"fields":{}}`, `[1]`, "", "unfit"},
		{`{"label":["c"]}`, `1`, "", "unfit"},
		{`{"label":"a"}`, `1`, "", "unfit"},
		{`{"lable":["a"]}`, `1`, "", "unfit"},
		{`{"items":[{}],"fields":{}}`, `[1]`, "", "unfit"},
		{`7`, `1`, "", "unfit"},
	} {
		v := datumOf(t, c.value)
		s, ok := flow.Items(datumOf(t, c.tree), v, func(name string) (flow.Label, bool) {
			i := strings.Index("ab", name)
			return flow.Atom(max(i, 0)), i >= 0
		})
		got := "unfit"
		if ok {
			l := s.Label(v, strings.Fields(c.path))
			if got = ""; l&flow.Atom(0) != 0 {
				got = "a"
			}
			if l&flow.Atom(1) != 0 {
				got += "b"
			}
		}
		if got != c.want {
			t.Errorf("%s of %s at %q is %q, want %q", c.tree, c.value, c.path, got, c.want)
		}
	}
}

// plan runs a program whose reads are answered and whose writes are holes, and gives
// their arguments and how it ended.
func plan(t *testing.T, code string) string {
	t.Helper()
	c := configOf(t, code)
	var steps []string
	c.Handler = func(_ context.Context, round []flow.Request) ([]flow.Answer, error) {
		answers := make([]flow.Answer, len(round))
		for i, q := range round {
			if q.Op == "kv.get" {
				answers[i].Value = value.NewInt(5)
				continue
			}
			steps = append(steps, shown(q.Arg))
			answers[i] = flow.Answer{Answer: value.Answer{Value: flow.NewHole(len(steps))}, Shadow: flow.Whole(flow.Atom(len(steps)))}
		}
		return answers, nil
	}
	r, err := flow.Run(context.Background(), c)
	must.NoError(t, err)
	switch {
	case r.Hole != nil:
		return strings.Join(steps, "; ") + fmt.Sprintf("; needs %s at %s", r.Hole, r.At)
	case r.Fault != nil:
		return strings.Join(steps, "; ") + "; " + string(r.Fault.Kind)
	}
	return strings.Join(append(steps, shown(r.Value)), "; ")
}

func shown(v value.Value) string {
	return strings.TrimLeft(show(flow.Fill(v, func(h *flow.Hole) value.Value { return value.Str(h.String()) })), "abcdefghijklmnopqrstuvwxyz")
}

func TestHoles(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`u => !kv.put(1)`, `1; "‹what step 1 answers›"`},
		{`u => !kv.put({x: !kv.put(1)})`, `1; {"x":"‹what step 1 answers›"}; "‹what step 2 answers›"`},
		{`u => !kv.put(!kv.put(1).id.key)`, `1; "‹what step 1 answers›.id.key"; "‹what step 2 answers›"`},
		{`u => !kv.put("id " ++ !kv.put(1).id)`, `1; "‹made of step 1›"; "‹what step 2 answers›"`},
		{`u => let a = !kv.put(1), b = !kv.put(2) in !kv.put(to_json([a, b]))`, `1; 2; "‹made of steps 1, 2›"; "‹what step 3 answers›"`},
		{`u => let a = !kv.put(1) in length([a, 2])`, `1; 2`},
		{`u => let a = !kv.put(1) in !kv.put(head([3, a]))`, `1; 3; "‹what step 2 answers›"`},
		{`u => let a = !kv.put(1) in map(x => [x, !kv.put(x)], [1, 2])`, `1; 1; 2; [[1,"‹what step 2 answers›"],[2,"‹what step 3 answers›"]]`},
		{`u => let a = !kv.put(1), b = !kv.put(2) in if equal(a, 1) then !kv.put(3) else 0`, `1; 2; needs ‹made of step 1› at 1:44`},
		{`u => if !kv.put(1) then 2 else 3`, `1; needs ‹what step 1 answers› at 1:6`},
		{`u => fold(p => 1, 0, !kv.put(1))`, `1; needs ‹what step 1 answers› at 1:6`},
		{`u => !kv.put(1)(2)`, `1; needs ‹what step 1 answers› at 1:16`},
		{`u => try(raise(!kv.put(1)))`, `1; needs ‹what step 1 answers› at 1:10`},
		{`u => par(!kv.put(1), !kv.put(!kv.put(2)))`, `1; 2; needs ‹what step 2 answers› at 1:6`},
		{`u => try(!kv.put(1))`, `1; "‹made of step 1›"`},
		{`u => let a = try(!kv.put(1).id) in let b = !kv.put(2) in a`, `1; 2; "‹made of step 1›"`},
		{`u => try([!kv.put(1), !kv.put(2)])`, `1; needs ‹what step 1 answers› at 1:23`},
		{`u => let a = !kv.put(1) in try(!kv.put(a.id))`, `1; needs ‹what step 1 answers› at 1:32`},
		{`u => par([1, 2][!kv.put(1)], !kv.put(2))`, `1; 2; ["‹made of step 1›","‹what step 2 answers›"]`},
		{`u => !kv.get(!kv.put(1))`, `1; 5`},
	} {
		if got := plan(t, c.code); got != c.want {
			t.Errorf("%s\n  %s\n  want %s", c.code, got, c.want)
		}
	}
}

func TestBounds(t *testing.T) {
	deep := `{"lam":"n","body":{"app":{"func":{"self":true},"arg":{"var":"n"}}}}`
	lent := int64(0)
	nested := strings.Repeat(`{"not":`, 2000) + `{"app":{"func":{"self":true},"arg":{"var":"n"}}}` + strings.Repeat("}", 2000)
	for _, c := range []struct {
		code, what string
		change     func(*flow.Config)
	}{
		{deep, "steps", func(c *flow.Config) { c.Bounds.Steps = 1000 }},
		{`{"lam":"n","body":{"add":[1,{"app":{"func":{"self":true},"arg":{"var":"n"}}}]}}`, "depth", func(c *flow.Config) { c.Budgets.Memory = 1 << 30 }},
		{`{"lam":"n","body":{"add":[1,{"app":{"func":{"self":true},"arg":{"var":"n"}}}]}}`, "memory", func(c *flow.Config) { c.Budgets.Memory = 1 << 20 }},
		{`{"lam":"n","body":` + nested + `}`, "memory", func(c *flow.Config) {}},
		{`{"lam":"n","body":{"length":[{"range":[0,50000]}]}}`, "the memory that others left", func(c *flow.Config) {
			c.Lend = func(bytes int64) bool {
				if bytes > 0 && lent+bytes > 2<<20 {
					return false
				}
				lent += bytes
				return true
			}
		}},
		{`{"lam":"n","body":{"fold":[{"lam":"p","body":{"cons":[1,{"fst":{"var":"p"}}]}},[],{"range":[0,100000]}]}}`, "memory", func(c *flow.Config) { c.Budgets.Memory = 4 << 20 }},
		{`{"lam":"n","body":{"repeat_text":["abc",10000000]}}`, "memory", func(c *flow.Config) { c.Budgets.Memory = 4 << 20 }},
	} {
		p, err := core.CompileTool("tool", []byte(c.code))
		must.NoError(t, err)
		config := flow.Config{Term: p.Term(), Source: p.Tool().Source, Tool: "tool"}
		c.change(&config)
		_, err = flow.Run(context.Background(), config)
		if e, ok := errors.AsType[*flow.Exceeded](err); !ok || e.What != c.what {
			t.Errorf("%.60s: %v, want %s", c.code, err, c.what)
		}
		if lent != 0 {
			t.Errorf("%d bytes weren't given back", lent)
		}
	}
}

func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	c := configOf(t, `u => let x = par(!kv.get(1), try(!kv.get(2))) in self(u)`)
	c.Handler = func(context.Context, []flow.Request) ([]flow.Answer, error) { return nil, enough }
	if _, err := flow.Run(ctx, c); err != enough {
		t.Errorf("the handler's error is %v", err)
	}
	cancel(enough)
	if _, err := flow.Run(ctx, configOf(t, `u => self(u)`)); err != enough {
		t.Errorf("the context's error is %v", err)
	}
	c.Handler, c.Budgets.Steps = nil, 50
	r, err := flow.Run(context.Background(), configOf(t, `u => !kv.get(1)`))
	if err != nil || r.Fault == nil || r.Fault.Kind != "denied" {
		t.Errorf("without a handler: %v %v", r.Fault, err)
	}
	c = configOf(t, `u => self(u)`)
	c.Budgets.Steps, c.Inputs = 50, []flow.Input{{Value: value.NewInt(1), Shadow: flow.Whole(secret)}}
	if r, err = flow.Run(context.Background(), c); err != nil || r.Fault.Kind != "out_of_fuel" || r.Label != secret.Control() {
		t.Errorf("a budget: %v %x %v", r.Fault, r.Label, err)
	}
}

// TestOrigins: code, inputs and tools have labels of their own.
func TestOrigins(t *testing.T) {
	code, in, other := flow.Atom(1), flow.Atom(2), flow.Atom(3)
	for _, c := range []struct {
		code   string
		shadow func(v value.Value) *flow.Shadow
		want   flow.Label
	}{
		{`x => 1`, nil, code},
		{`x => x`, nil, code | in},
		{`x => !kv.put(1)`, nil, code},
		{`x => @gives(2)`, nil, code | other},
		{`x => code_of("gives")`, nil, code | other},
		{`x => x.a`, func(v value.Value) *flow.Shadow { return flow.Inside(v, in) }, code | in},
		{`x => keys(x)`, func(v value.Value) *flow.Shadow { return flow.Inside(v, in) }, code},
		{`x => type_of(x)`, func(v value.Value) *flow.Shadow { return flow.Whole(in) }, code | in},
	} {
		config := configOf(t, c.code)
		p, f := parse.Code([]byte(callees["gives"]), parse.Options{Tool: "gives"})
		must.NoFault(t, f)
		config.Tools = vectors.Library{Owner: "tool", Code: map[string]value.Tool{"gives": {Term: p.Term, Source: p.Source}}}
		config.Code, config.MadeUnder = code, func(value.Tool) flow.Label { return other }
		config.Handler = func(context.Context, []flow.Request) ([]flow.Answer, error) {
			return []flow.Answer{{Answer: value.Answer{Value: value.NewInt(0)}, Alone: true}}, nil
		}
		v := datumOf(t, `{"a":1,"b":2}`)
		config.Inputs = []flow.Input{{Value: v, Shadow: flow.Whole(in)}}
		if c.shadow != nil {
			config.Inputs[0].Shadow = c.shadow(v)
		}
		if r, err := flow.Run(context.Background(), config); err != nil || r.Fault != nil || r.Shadow.All() != c.want {
			t.Errorf("%s: %v %v, label %x, want %x", c.code, err, r.Fault, r.Shadow.All(), c.want)
		}
	}
}

// TestUnfit: a shadow of another shape than its value is all of it.
func TestUnfit(t *testing.T) {
	c := configOf(t, `x => head(x)`)
	c.Inputs = []flow.Input{{Value: datumOf(t, `[1,2]`), Shadow: flow.Inside(datumOf(t, `{"a":1,"b":2,"c":3}`), secret)}}
	if r, err := flow.Run(context.Background(), c); err != nil || r.Shadow.All() != secret {
		t.Errorf("%v %v", r.Shadow, err)
	}
}
