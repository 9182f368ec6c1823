package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// mostMemory is what the server may have resident with default budgets.
const mostMemory = 256 << 20

const (
	omega     = `{"app":{"func":{"lam":"x","body":{"app":{"func":{"var":"x"},"arg":{"var":"x"}}}},"arg":{"lam":"x","body":{"app":{"func":{"var":"x"},"arg":{"var":"x"}}}}}}`
	factorial = `{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},1]},"then":1,"else":{"mul":[{"var":"n"},{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}`
	square    = `{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`
)

// loop is a tool that applies step to a state n times, in tail position: the
// state is the second of a pair whose first counts down.
func loop(step string) string {
	return fmt.Sprintf(`{"lam":"p","body":{"if":{"cond":{"lte":[{"fst":{"var":"p"}},0]},"then":{"snd":{"var":"p"}},"else":{"app":{"func":{"self":true},"arg":{"pair":[{"sub":[{"fst":{"var":"p"}},1]},{"app":{"func":%s,"arg":{"snd":{"var":"p"}}}}]}}}}}}`, step)
}

// doubling is a step that makes a state of two of it.
func doubling(operation string) string {
	return `{"lam":"s","body":{"` + operation + `":[{"var":"s"},{"var":"s"}]}}`
}

// hostileProgram is one that tries to take the server down. It must be answered
// as said, with the server within its memory and answering the next call.
type hostileProgram struct {
	name      string
	tool      string // evolved as "t" first
	arguments string // of run
	want      string // kinds of failure, "|" between them; or "=" and the text
}

// hostile is a function because this binary is the server too: as a variable
// its megabytes would count as the server's.
func hostile() []hostileProgram {
	return []hostileProgram{
		{"omega", "", `{"code":` + omega + `}`, "out_of_fuel"},
		{"omega with all steps allowed and little", "", `{"code":` + omega + `,"steps":200000000}`, "out_of_fuel"},
		{"a tree of 2^3000 calls", `{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},0]},"then":1,"else":{"add":[{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}},{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}`,
			`{"tool":"t","input":3000}`, "out_of_fuel"},
		{"doubling strings", loop(doubling("concat")), `{"tool":"t","input":{"pair":[200,"abc"]}}`, "out_of_memory"},
		{"doubling strings to what fits, and printed", loop(doubling("concat")), `{"tool":"t","input":{"pair":[23,"abc"]}}`, "=preview"},
		{"doubling strings beyond what a result may be", loop(`{"lam":"s","body":{"cons":{"head":{"var":"s"},"tail":[{"var":"s"}]}}}`), `{"tool":"t","input":{"pair":[60,"abc"]}}`, "result_too_large|out_of_fuel"},
		{"doubling lists", loop(`{"lam":"l","body":{"fold":[{"lam":"p","body":{"cons":{"head":{"snd":{"var":"p"}},"tail":{"fst":{"var":"p"}}}}},{"var":"l"},{"var":"l"}]}}`), `{"tool":"t","input":{"pair":[200,[1]]},"steps":1000000000}`, "out_of_memory"},
		{"pairs shared 2^60 times, printed", loop(doubling("pair")), `{"tool":"t","input":{"pair":[60,1]}}`, "result_too_large|out_of_fuel"},
		{"a tower of integers", loop(`{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}}`), `{"tool":"t","input":{"pair":[100,3]},"steps":1000000000}`, "out_of_memory|out_of_fuel"},
		{"an integer of a million digits, printed", loop(`{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}}`), `{"tool":"t","input":{"pair":[21,3]},"steps":1000000000}`, "=preview"},
		{"a million pending calls", `{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},0]},"then":0,"else":{"add":[1,{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}`,
			`{"tool":"t","input":2000000,"steps":1000000000}`, "too_deep|out_of_memory"},
		{"a hundred thousand pending calls", `{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},0]},"then":0,"else":{"add":[1,{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}]}}}}`,
			`{"tool":"t","input":100000}`, "=100000"},
		{"ten million tail calls", `{"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},0]},"then":"done","else":{"app":{"func":{"self":true},"arg":{"sub":[{"var":"n"},1]}}}}}}`,
			`{"tool":"t","input":10000000,"steps":1000000000}`, `="done"`},
		{"a list of a million items folded", `{"lam":"n","body":{"fold":[{"lam":"p","body":{"add":[{"fst":{"var":"p"}},{"snd":{"var":"p"}}]}},0,{"app":{"func":{"app":{"func":` +
			`{"lam":"f","body":{"app":{"func":{"var":"f"},"arg":{"var":"f"}}}},"arg":{"lam":"f","body":{"lam":"s","body":{"if":{"cond":{"lte":[{"fst":{"var":"s"}},0]},"then":{"snd":{"var":"s"}},"else":{"app":{"func":{"app":{"func":{"var":"f"},"arg":{"var":"f"}}},"arg":{"pair":[{"sub":[{"fst":{"var":"s"}},1]},{"cons":{"head":1,"tail":{"snd":{"var":"s"}}}}]}}}}}}}}},"arg":{"pair":[{"var":"n"},[]]}}}]}}`,
			`{"tool":"t","input":1000000,"steps":1000000000}`, "=1000000"},
		{"ten thousand nested arrays in a string", "", `{"code":` + mustJSON(strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000)) + `}`, "any"},
		{"a hundred thousand nested arrays in a string", "", `{"code":` + mustJSON(strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)) + `}`, "parse_error"},
		{"a million nested arrays as input", "", `{"code":1,"input":` + mustJSON(strings.Repeat("[", 1_000_000)+strings.Repeat("]", 1_000_000)) + `}`, "any"},
		{"forty levels of eval that fails", "", `{"code":` + nestedEval(40) + `}`, "division_by_zero"},
		{"a hundred and one levels of eval", "", `{"code":` + nestedEval(101) + `}`, "runtime_error"},
		{"a key of a megabyte", "", `{"code":{"` + strings.Repeat("k", 1<<20) + `":1}}`, "parse_error"},
		{"a key of a megabyte in the input", "", `{"code":{"lam":"x","body":1},"input":{"` + strings.Repeat("k", 1<<20) + `":1}}`, "=1"},
		{"a string of a megabyte", "", `{"code":"\"` + strings.Repeat("s", 1<<20) + `\""}`, "parse_error"},
		{"a string of a megabyte as input", "", `{"code":{"lam":"x","body":{"length":{"var":"x"}}},"input":"` + strings.Repeat("s", 1<<20) + `"}`, "=1048576"},
		{"a string of fifteen megabytes as input", "", `{"code":{"lam":"x","body":{"length":{"var":"x"}}},"input":"` + strings.Repeat("s", 15<<20) + `"}`, "=15728640"},
		{"an input of four million numbers", "", `{"code":{"lam":"x","body":{"length":{"var":"x"}}},"input":[1` + strings.Repeat(",1", 4<<20) + `]}`, "any"},
		{"an input of four million numbers, as data", "", `{"code":{"lam":"x","body":{"length":{"var":"x"}}},"input_as":"data","input":[1` + strings.Repeat(",1", 4<<20) + `]}`, "any"},
		{"an input of a million empty lists in a string", "", `{"code":{"lam":"x","body":{"length":{"var":"x"}}},"input":"[[]` + strings.Repeat(",[]", 2<<20) + `]"}`, "any"},
		{"a number of a million digits", "", `{"code":` + strings.Repeat("9", 200_000) + `}`, "parse_error"},
		{"an exponent of a billion", "", `{"code":1e1000000000}`, "parse_error"},
		{"an unknown argument of a megabyte", "", `{"` + strings.Repeat("a", 1<<20) + `":1}`, "invalid_request"},
		{"a variable with a name of 200 kB", "", `{"code":{"var":"` + strings.Repeat("v", 200_000) + `"}}`, "unbound"},
		{"an operation with a name of 200 kB", "", `{"code":{"` + strings.Repeat("v", 200_000) + `":1}}`, "parse_error"},
		{"an effect with a name of 200 kB", "", `{"code":{"fs.` + strings.Repeat("v", 200_000) + `":1}}`, "denied|parse_error"},
		{"a tool looked up with a name of 200 kB", "", `{"code":{"code_of":"` + strings.Repeat("v", 200_000) + `"}}`, "runtime_error"},
		{"a string of 200 kB where a number should be", "", `{"code":{"add":["` + strings.Repeat("v", 200_000) + `",1]}}`, "type_error"},
		{"sixty thousand numbers to round", "", `{"code":[0.5` + strings.Repeat(",0.5", 60_000) + `]}`, "any"},
		{"twenty thousand keys to ignore", "", `{"code":{"add":[1,2],` + manyKeys(20_000) + `}}`, "=3"},
		{"twenty thousand free variables", "", `{"code":{"lam":"x","body":[` + manyVars(15_000) + `]}}`, "unbound"},
		{"twenty thousand mistakes", "", `{"code":[` + strings.Repeat(`{"ad":1},`, 20_000) + `1]}`, "parse_error"},
		{"a tool's name of a megabyte", "", `{"tool":"` + strings.Repeat("a", 1<<20) + `"}`, "no_tool"},
		{"all the steps there are on a string", loop(`{"lam":"s","body":{"concat":[{"var":"s"},"x"]}}`), `{"tool":"t","input":{"pair":[1000000,""]},"steps":100000000}`, "=preview"},
	}
}

// manyKeys is n members of an object that mean nothing, manyVars n variables.
func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	return strings.Join(keys, ",")
}

func manyVars(n int) string {
	vars := make([]string, n)
	for i := range vars {
		vars[i] = fmt.Sprintf(`{"var":"v%d"}`, i)
	}
	return strings.Join(vars, ",")
}

func mustJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// nestedEval is a division by zero inside n evals of quoted code.
func nestedEval(n int) string {
	code := `{"div":[1,0]}`
	for range n {
		code = `{"eval":{"quote":` + code + `}}`
	}
	return code
}

// cheaper is the budgets of those that take seconds to use up the default ones. With
// PIF_FULL they get it all.
var cheaper = map[string]string{
	"a tower of integers":                          `"steps":2000000`,
	"doubling strings beyond what a result may be": `"memory":8000000`,
	"pairs shared 2^60 times, printed":             `"memory":8000000`,
}

// given is the arguments, with the budgets that the test is to give.
func (h hostileProgram) given() string {
	budget, ok := cheaper[h.name]
	if !ok || full() {
		return h.arguments
	}
	arguments, _, _ := strings.Cut(strings.TrimSuffix(h.arguments, "}"), `,"steps"`)
	return arguments + "," + budget + "}"
}

// TestHostile: each hostile program on a server of its own, which answers it,
// answers the next call, and stays within its memory.
func TestHostile(t *testing.T) {
	t.Parallel()
	if must.Racing() && !full() {
		t.Skip("slow with the race detector, and one call after the other")
	}
	programs := hostile()
	for _, h := range programs {
		t.Run(h.name, func(t *testing.T) {
			p := start(t, "--log-level=warn", "--timeout=1h").open() // on a slow machine, too, other budgets end it
			if h.tool != "" {
				if r := p.call("evolve", `{"name":"t","code":`+h.tool+`}`); r.IsError {
					t.Fatal(r.Content[0].Text)
				}
			}
			r := p.call("run", h.given())
			got := r.kind()
			if text, ok := strings.CutPrefix(h.want, "="); ok {
				got = r.Content[0].Text
				if r.StructuredContent["preview"] != nil {
					got = "preview"
				}
				if got != text {
					t.Errorf("%.500s, expected %s", got, text)
				}
			} else if h.want != "any" && !slices.Contains(strings.Split(h.want, "|"), got) {
				t.Errorf("%q, expected %s: %.500s", got, h.want, r.Content[0].Text)
			}
			if n := len(r.Content[0].Text); r.IsError && n > 16<<10 || n > 256<<10 {
				t.Errorf("the answer's text has %d bytes", n)
			}
			p.still(t)
			t.Logf("%.60s; at most %d MiB were resident", got, p.peak()>>20)
			p.end()
		})
	}
}

// still checks that a server works and is within its memory.
func (p *process) still(t *testing.T) {
	t.Helper()
	if r := p.call("run", `{"code":`+square+`,"input":12}`); r.Content[0].Text != "144" {
		t.Errorf("the next call gave %s", r.Content[0].Text)
	}
	if peak := p.peak(); peak > mostMemory && !must.Racing() {
		t.Errorf("%d MiB were resident, at most %d may be", peak>>20, mostMemory>>20)
	}
}

// TestHostileTogether: all of them at once on one server. The bound on memory is
// for a run's budget; what many runs make and drop at the same moment comes on
// top until the collector has seen it.
func TestHostileTogether(t *testing.T) {
	if !full() {
		t.Skip("the same programs as in TestHostile: with PIF_FULL=1")
	}
	p := start(t, "--log-level=warn").open()
	programs, waiting := hostile(), map[string]bool{}
	for i, h := range programs {
		if h.tool != "" {
			if r := p.call("evolve", fmt.Sprintf(`{"name":"t%d","code":%s}`, i, h.tool)); r.IsError {
				t.Fatal(r.Content[0].Text)
			}
		}
	}
	go func() {
		for i, h := range programs {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"h%d","method":"tools/call","params":{"name":"run","arguments":%s}}`,
				i, strings.Replace(h.arguments, `"tool":"t"`, fmt.Sprintf(`"tool":"t%d"`, i), 1)))
		}
	}()
	for i := range programs {
		waiting[fmt.Sprintf(`"h%d"`, i)] = true
	}
	for len(waiting) > 0 {
		m := p.receive()
		if !waiting[string(m.ID)] && m.Method == "" {
			t.Errorf("an answer to %s, which nobody asked", m.ID)
		}
		delete(waiting, string(m.ID))
	}
	if r := p.call("run", `{"code":`+square+`,"input":12}`); r.Content[0].Text != "144" {
		t.Errorf("the next call gave %s", r.Content[0].Text)
	}
	peak := p.peak()
	if peak > 2*mostMemory && !must.Racing() {
		t.Errorf("%d MiB were resident", peak>>20)
	}
	t.Logf("at most %d MiB were resident", peak>>20)
	p.end()
}
