package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// brokenPlaces is the messages of the places that break a tool's code.
func brokenPlaces(t *testing.T, compile func(string, []byte) (*core.Program, error), src string) (why []string) {
	t.Helper()
	p, err := compile("tool", []byte(src))
	if err != nil {
		t.Fatal(src, err)
	}
	r := check.Infer(p.Term(), p.Tool().Source, check.Env{Tool: "tool", Run: core.RunConstant}, check.Budget{})
	for _, d := range r.Broken() {
		why = append(why, fmt.Sprintf("%s: %s %s", d.Kind, d.Message, d.Hint))
	}
	return why
}

// TestFailingExamplesAreBroken: every example of a row that fails breaks the tool that
// it is the code of, but for those that a program may be meant to fail with, or that
// don't fail in a tool.
func TestFailingExamplesAreBroken(t *testing.T) {
	except := []string{"continue", "self", "code_of", "match", "raise", "no_match", "try"}
	for _, r := range prim.Table {
		if slices.Contains(except, r.Name) {
			continue
		}
		for _, e := range r.Examples {
			if e.Fault == "" || e.Fault == fault.ParseError && !compiles(e.Code) {
				continue
			}
			if why := brokenPlaces(t, core.CompileTool, `{"lam":"unused","body":`+e.Code+`}`); len(why) == 0 {
				t.Errorf("%s: %s fails with %s, and is broken by %q", r.Name, e.Code, e.Fault, why)
			}
		}
	}
}

func compiles(code string) bool {
	_, err := core.CompileTool("tool", []byte(code))
	return err == nil
}

// operands is values of each kind, as code.
var operands = []string{
	`0`, `1`, `-1`, `2`, `7`, `-3`, `300`, `100000000000000000000`, `{"dec":"2.5"}`, `{"dec":"0.0"}`, `{"dec":"-1.25"}`,
	`""`, `"a"`, `"abc"`, `"12"`, `"2.5"`, `"half_even"`, `"down"`, `","`, `"{\"a\":[1]}"`,
	`[]`, `[1]`, `[3,1,2]`, `["b","a"]`, `[1,"a"]`, `[[1],[]]`, `[null]`, `{"range":[0,300]}`, `[{"pair":["k",1]}]`, `[{"lam":"x","body":5}]`,
	`{"pair":[1,2]}`, `{"pair":["a",[]]}`, `{"pair":[{"pair":[1,2]},"a"]}`, `{"record":{}}`, `{"record":{"a":1}}`, `{"record":{"abc":[1],"a":"b"}}`,
	`{"lam":"x","body":{"var":"x"}}`, `{"lam":"x","body":true}`, `{"lam":"x","body":[]}`, `{"lam":"x","body":"k"}`, `{"lam":"x","body":{"fst":{"var":"x"}}}`,
	`{"lam":"x","body":{"add":[{"var":"x"},1]}}`, `{"lam":"x","body":{"get":[{"var":"x"},"a"]}}`, `{"lam":"x","body":{"lam":"y","body":{"var":"x"}}}`,
	`true`, `false`, `null`, `{"quote":1}`, `{"quote":{"var":"x"}}`,
}

// TestBrokenAlwaysFails: a row that is given some constants, and is broken by them,
// fails on whatever else it is given.
func TestBrokenAlwaysFails(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	broken, other := 0, 0
	for _, r := range prim.Table {
		if r.Form || r.Eval == nil && r.Body == "" || len(r.Params) < 2 || r.Shape != prim.Array && r.Shape != prim.KeyedOrArray {
			continue
		}
		if r.Name == "scan" || r.Name == "filter_entries" {
			continue // the function, which is given a pair or a string, fails for each item, if there is one
		}
		for range 60 {
			args, names := make([]string, max(r.Min, len(r.Params)-rng.IntN(2))), []string{}
			if len(args) < len(r.Params) && r.Min == 0 {
				args = make([]string, len(r.Params))
			}
			for i := range args {
				if args[i] = operands[rng.IntN(len(operands))]; rng.IntN(2) == 0 {
					names = append(names, fmt.Sprintf("v%d", i))
					args[i] = fmt.Sprintf(`{"var":"v%d"}`, i)
				}
			}
			code := fmt.Sprintf(`{"lam":"unused","body":{%q:[%s]}}`, r.Name, strings.Join(args, ","))
			for _, name := range names {
				code = fmt.Sprintf(`{"lam":%q,"body":%s}`, name, code)
			}
			why := brokenPlaces(t, core.CompileTool, code)
			if len(names) == 0 || len(names) == len(args) || len(why) == 0 {
				other++
				continue
			}
			broken++
			for range 30 {
				given := code
				for range names {
					given = fmt.Sprintf(`{"app":[%s,%s]}`, given, operands[rng.IntN(len(operands))])
				}
				p, err := core.Compile([]byte(fmt.Sprintf(`{"app":[%s,null]}`, given)))
				if err != nil {
					t.Fatal(err)
				}
				if core.RunConstant(p.Term()) == nil {
					t.Fatalf("%s is broken by %q, and %s doesn't fail", code, why, given)
				}
			}
		}
	}
	if broken < 300 || other < 300 {
		t.Errorf("%d broken, %d not", broken, other)
	}
}
