package core_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// TestLibraryFaults: a fault inside a row of the library names the row that was
// written and its operand, on both evaluators, with a hint for the value that came;
// one in a function that it was given stays that function's.
func TestLibraryFaults(t *testing.T) {
	for src, want := range map[string]string{
		`{"max":[]}`:                                       "max of the empty list",
		`{"max":5}`:                                        "max takes a list as its operand, not the integer 5",
		`{"sort":{"record":{"a":1}}}`:                      "sort takes a list as its operand, not a record",
		`{"sort":[1,"a"]}`:                                 `sort can't compare the string "a" with the integer 1`,
		`{"map":[[1],{"lam":"x","body":1}]}`:               "map takes a list as its second operand, not a function",
		`{"map":[3,[1]]}`:                                  "map takes a function as its first operand, not the integer 3",
		`{"filter":[{"lam":"x","body":1},[1]]}`:            "filter takes as its first operand a function that gives true or false, and it gave the integer 1",
		`{"group":[{"lam":"x","body":{"var":"x"}},[7]]}`:   "group takes as its first operand a function that gives a string, and it gave the integer 7",
		`{"group":[{"lam":"x","body":"a"},"b"]}`:           `group takes a list as its second operand, not the string "b"`,
		`{"take":["a",[1]]}`:                               `take takes an integer as its first operand, not the string "a"`,
		`{"take":[-1,[1]]}`:                                "take takes an integer that is not negative as its first operand, not the integer -1",
		`{"drop":[-1,[1]]}`:                                "drop takes an integer that is not negative as its first operand, not the integer -1",
		`{"sum":[1,"2"]}`:                                  `sum takes as its operand a list each of whose items is a number, and one is the string "2"`,
		`{"zip":[[1],3]}`:                                  "zip takes a list as its second operand, not the integer 3",
		`{"zip":[3,[1]]}`:                                  "zip takes a list as its first operand, not the integer 3",
		`{"append":[[1],2]}`:                               "append takes a list as its second operand, not the integer 2",
		`{"append":[1,[2]]}`:                               "append takes a list as its first operand, not the integer 1",
		`{"flatten":[1]}`:                                  "flatten takes as its operand a list each of whose items is a list, and one is the integer 1",
		`{"app":[{"compose":[{"lam":"x","body":1},2]},3]}`: "compose takes a function as its second operand, not the integer 2",
		`{"pow":[2,{"dec":"1.5"}]}`:                        "pow takes an integer as its second operand, not the decimal 1.5",
		`{"pipeline":[[1],5]}`:                             "pipeline takes as its first operand a list each of whose items is a function, and one is the integer 1",
		`{"map":[{"lam":"x","body":{"head":{"var":"x"}}},[[]]]}`: "head of the empty list",
	} {
		p := program{code: src}
		e, n := p.onEval(t), p.onNaive(t)
		sameFault(t, e, n)
		switch {
		case e.fault == nil:
			t.Errorf("%s gives %v", src, e)
		case e.fault.Message != want:
			t.Errorf("%s fails with %q, want %q", src, e.fault.Message, want)
		}
	}
	for src, hint := range map[string]string{
		`{"sort":{"record":{"a":1}}}`:        `Make a list of the record: {"entries":R}`,
		`{"sum":["2"]}`:                      `{"sum":{"map":[{"lam":"x","body":{"to_dec":{"var":"x"}}},L]}}`,
		`{"map":[[1],{"lam":"x","body":1}]}`: "The function is the first operand, the list the last",
		`{"max":[]}`:                         `"else":{"max":L}`,
	} {
		if e := (&program{code: src}).onEval(t); e.fault == nil || !strings.Contains(e.fault.Hint, hint) {
			t.Errorf("%s fails with the hint %q, want %q", src, e.fault.Hint, hint)
		}
	}
}

// TestLibraryNamed: each example of a row of the library that fails names the row,
// and fails in the same words on both evaluators.
func TestLibraryNamed(t *testing.T) {
	n := 0
	for i := range prim.Table {
		row := &prim.Table[i]
		for _, x := range row.Examples {
			if row.Body == "" || x.Fault == "" || x.Fault == fault.Raised || x.Input != "" {
				continue
			}
			p := program{code: x.Code}
			e, naive := p.onEval(t), p.onNaive(t)
			if sameFault(t, e, naive); e.fault == nil || e.fault.Kind == fault.ParseError {
				continue
			}
			if e.fault.At != "" { // it is that of a function that the row was given
				continue
			}
			n++
			if !strings.HasPrefix(e.fault.Message, row.Name+" ") && !strings.HasPrefix(e.fault.Message, row.Name+": ") {
				t.Errorf("%s fails with %q, which doesn't name %s", x.Code, e.fault.Message, row.Name)
			}
		}
	}
	if n < 25 {
		t.Errorf("%d examples are few", n)
	}
}
