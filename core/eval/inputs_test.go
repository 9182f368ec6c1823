package eval_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
)

// TestStressInputs: a function that waits for its next input stays what it is
// through every collection, while that input is made and while effects are away.
func TestStressInputs(t *testing.T) {
	for _, c := range []struct {
		code   string
		inputs []string
		want   string
	}{
		{`{"lam":["a","b","c"],"body":[{"var":"a"},{"var":"b"},{"var":"c"}]}`, []string{`["x","y"]`, `{"concat":["p","q"]}`, `{"lam":"z","body":1}`}, `[["x","y"],"pq","<function>"]`},
		{`{"lam":"a","body":{"let":[["r",{"concat":[{"var":"a"},"!"]}]],"in":{"lam":"b","body":{"pair":[{"var":"r"},{"var":"b"}]}}}}`, []string{`{"concat":["p","q"]}`, `{"fold":[{"lam":"p","body":{"cons":[{"snd":{"var":"p"}},{"fst":{"var":"p"}}]}},[],[1,2,3]]}`}, `{"pair":["pq!",[3,2,1]]}`},
		{`{"let":[["s",{"concat":["a","b"]}]],"in":{"lam":["a","b"],"body":[{"var":"s"},{"var":"a"},{"var":"b"}]}}`, []string{`"1x"`, `{"eval":{"quote":{"concat":["c","d"]}}}`}, `["ab","1x","cd"]`},
		{`{"lam":"a","body":{"let":[["r",{"fs.read":{"concat":["f",{"var":"a"}]}}]],"in":{"lam":"b","body":{"let":[["s",{"fs.read":{"var":"b"}}]],"in":[{"var":"a"},{"var":"r"},{"var":"b"},{"var":"s"}]}}}}`, []string{`"1x"`, `{"concat":["c","d"]}`}, `["1x","f1x","cd","cd"]`},
	} {
		p, err := core.CompileTool("t", []byte(c.code))
		if err != nil {
			t.Fatal(err)
		}
		var all []core.Input
		for _, src := range c.inputs {
			in, err := core.ParseInput([]byte(src), core.InputAuto)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, in)
		}
		stressed(t, true)
		m := p.Start(core.Inputs(all...), core.Budgets{}, nil)
		for {
			state := m.Run(1)
			if state == core.Suspended {
				answers := make([]core.Answer, len(m.Requests()))
				for i, r := range m.Requests() {
					answers[i].Value = r.Arg
				}
				m.Resume(answers)
			} else if state != core.Paused {
				break
			}
		}
		stressedNot()
		if m.State() != core.Done {
			t.Errorf("%s: %v", c.code, m.Fault())
		} else if e, f := m.Encode(1000); f != nil || string(e.JSON) != c.want {
			t.Errorf("%s gives %s (%v), want %s", c.code, e.JSON, f, c.want)
		}
		m.Release()
	}
}
