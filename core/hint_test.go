package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
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
		if got := core.HintInText(hint); got != want {
			t.Errorf("%s\n is written %s,\n expected %s", hint, got, want)
		}
	}
}

// TestRunHints: what a run fails with is told in the form of its code, with the place in it.
func TestRunHints(t *testing.T) {
	for code, want := range map[string]struct {
		hint      string
		at        fault.Pointer
		line, col int
	}{
		`x => fst(7)`:                  {"Give fst a pair. Correct: fst((1, 2)).", "", 1, 6},
		`{"lam":"x","body":{"fst":7}}`: {`Give fst a pair. Correct: {"fst":{"pair":[1,2]}}.`, "/body", 0, 0},
		"1 +\n !fs.read(\"a\")":        {"Start a machine, and answer its requests.", "", 2, 2},
		`{"add":[1,{"fs.read":"a"}]}`:  {"Start a machine, and answer its requests.", "/add/1", 0, 0},
	} {
		p, err := core.Compile([]byte(code))
		must.NoError(t, err)
		_, err = core.Run(context.Background(), p, nil, core.Budgets{})
		f, ok := errors.AsType[*fault.Fault](err)
		if !ok || f.Hint != want.hint || f.At != want.at || f.Line != want.line || f.Col != want.col {
			t.Errorf("%s: %+v", code, f)
		}
	}
}
