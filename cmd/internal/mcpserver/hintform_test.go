package mcpserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// TestHintInText: code in hints is shown as the reader wrote theirs, and calls of tools
// stay calls.
func TestHintInText(t *testing.T) {
	for hint, want := range map[string]string{
		`eq compares numbers only: use {"equal":[A,B]} or {"compare":[A,B]}. Correct: {"eq":[2,2]}.`:   `eq compares numbers only: use A == B or compare(A, B). Correct: eq(2, 2).`,
		`Make a string of the value: {"to_text":V}.`:                                                   `Make a string of the value: to_text(V).`,
		`Give what stands in for it, {"get":[R,K,DEFAULT]}.`:                                           `Give what stands in for it, get(R, K, DEFAULT).`,
		`Write {"fs.read":{"path":"A {\"x\"}"}}.`:                                                      `Write !fs.read({path: "A {\"x\"}"}).`,
		`Bind it with {"lam":"x","body":…}, or {"pair":[1,2]}.`:                                        `Bind it with x => …, or (1, 2).`,
		`Call {"name":"describe","arguments":{"name":"square"}} first.`:                                `Call {"name":"describe","arguments":{"name":"square"}} first.`,
		`Add {"match":T,"with":[…,["_",D]]} or {"unclosed":`:                                           `Add {"match":T,"with":[…,["_",D]]} or {"unclosed":`,
		`Write one here, such as {k: 1}.`:                                                              `Write one here, such as {k: 1}.`,
		`The sum is {"add":[{"var":"x"},{"if":{"cond":true,"then":1,"else":"…"}}]}, no more than "A".`: `The sum is x + (if true then 1 else "…"), no more than "A".`,
	} {
		if got := HintInText(hint); got != want {
			t.Errorf("%s\n is written %s,\n expected %s", hint, got, want)
		}
	}
}

// TestHintsSpeakText: what fails of code in the text form is told in the text form, and
// of JSON in JSON.
func TestHintsSpeakText(t *testing.T) {
	s := New(Options{})
	for text, json := range map[string]string{
		`x => equal(x, 1) + 1`:     `{"lam":"x","body":{"add":[{"equal":[{"var":"x"},1]},1]}}`,
		`x => "a" ++ x`:            `{"lam":"x","body":{"concat":["a",{"var":"x"}]}}`,
		`x => {a: 1}.b`:            `{"lam":"x","body":{"get":[{"record":{"a":1}},"b"]}}`,
		`x => if 1 then 2 else 3`:  `{"lam":"x","body":{"if":{"cond":1,"then":2,"else":3}}}`,
		`x => fst(x)`:              `{"lam":"x","body":{"fst":{"var":"x"}}}`,
		`x => y`:                   `{"lam":"x","body":{"var":"y"}}`,
		`x => eq(x, "a")`:          `{"lam":"x","body":{"eq":[{"var":"x"},"a"]}}`,
		`x => 1 / 0`:               `{"lam":"x","body":{"div":[1,0]}}`,
		`x => head([])`:            `{"lam":"x","body":{"head":[]}}`,
		`x => fold(1, 2, [3])`:     `{"lam":"x","body":{"fold":[1,2,[3]]}}`,
		`x => slice(x, "a", "b")`:  `{"lam":"x","body":{"slice":[{"var":"x"},"a","b"]}}`,
		`x => map(x, y => y + 1)`:  `{"lam":"x","body":{"map":[{"var":"x"},{"lam":"y","body":{"add":[{"var":"y"},1]}}]}}`,
		`x => parse_int("x" ++ x)`: `{"lam":"x","body":{"parse_int":{"concat":["x",{"var":"x"}]}}}`,
	} {
		for _, call := range []string{`{"code":` + quoteJSON(text) + `,"input":7}`, `{"code":` + json + `,"input":7}`} {
			a := do(t, s, "run", call)
			if a.Fault == nil {
				t.Errorf("%s gives %s", call, a.Text)
				continue
			}
			if isText := call[8] == '"'; isText && strings.Contains(a.Fault.Hint, `{"`) {
				t.Errorf("%s: %s", text, a.Fault.Hint)
			} else if !isText && !strings.Contains(a.Fault.Hint, `{"`) && strings.Contains(HintInText(a.Fault.Hint), "(") {
				t.Errorf("%s: %s", json, a.Fault.Hint)
			}
		}
	}
	// A call of a tool, too.
	must(t, s, "evolve", `{"name":"sub","code":"(a, b) => a - b"}`)
	for code, want := range map[string]string{
		`"x => @sub(x)"`: `Give them in their order, @sub(A, B), or in one record by their names.`,
		`{"lam":"x","body":{"call":{"tool":"sub","inputs":[{"var":"x"}]}}}`: `Give them in their order, {"call":{"tool":"sub","inputs":[A,B]}}, or in one record by their names.`,
	} {
		must(t, s, "evolve", fmt.Sprintf(`{"name":"calls%d","capabilities":["call:sub"],"code":%s}`, len(code), code))
		if a := do(t, s, "run", fmt.Sprintf(`{"tool":"calls%d","input":4}`, len(code))); a.Fault == nil || a.Fault.Hint != want {
			t.Errorf("%s: %s", code, a.Text)
		}
	}
	// Every correct use that the table has can be told in the text form.
	for i := range prim.Table {
		if r := &prim.Table[i]; r.Operation() {
			hint := "Correct: " + r.Correct() + "."
			if got := HintInText(hint); strings.Contains(got, `{"`) && len(r.Correct()) < 60 {
				t.Errorf("%s: %s", r.Name, got)
			}
		}
	}
}
