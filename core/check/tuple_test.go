package check_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// cells is what a program does with an item of a row, and what it is.
var cells = []struct{ use, is string }{
	{`%s - 1`, `7`}, {`%s * 2`, `1.5`}, {`%s ++ "!"`, `"ann"`}, {`%s == "put"`, `"put"`}, {`not %s`, `true`},
	{`sum(%s)`, `[1,2]`}, {`[%s]`, `{"a":[null]}`}, {`%s.k - 1`, `{"k":1}`}, {`%s ?? 0`, `null`},
}

// TestTuples: of a program that takes the items of a row by their places the schema takes the
// rows it is made for, and that of its result has what comes out. Rows of which all items
// are numbers are lists of numbers.
func TestTuples(t *testing.T) {
	t.Parallel()
	n, tuples, numbers := must.Drawn(400, 30_000), 0, 0
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 53))
		pattern, alike := r.IntN(2) == 0, cells[r.IntN(len(cells))]
		var names, uses, row []string
		for i := range 2 + r.IntN(4) {
			cell, name := alike, string(rune('a'+i))
			if seed%4 > 0 {
				cell = cells[r.IntN(len(cells))]
			}
			if !pattern {
				name = fmt.Sprintf("row[%d]", i)
			}
			names, uses, row = append(names, name), append(uses, fmt.Sprintf(cell.use, name)), append(row, cell.is)
		}
		param, input := "row", "["+strings.Join(row, ",")+"]"
		if pattern {
			param = "([" + strings.Join(names, ", ") + "])"
		}
		src := param + " => {r: [" + strings.Join(uses, ", ") + "]}"
		switch r.IntN(4) {
		case 0:
			src, input = "rows => map("+src+", rows)", "["+input+","+input+"]"
		case 1:
			src, input = "let f = "+src+" in r => f(r.of)", `{"of":`+input+"}"
		case 2:
			src, input = "rows => fold((s, r) => [...s, ("+src+")(r)], [], rows)", "["+input+"]"
		}
		report := reportOf(t, src)
		if err := validates(t, check.InputSchema(report), []byte(`{"input":`+input+`}`)); err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s\n%s", seed, err, src, report.Type, input)
		}
		p, err := core.CompileText("t", []byte(src))
		must.NoError(t, err)
		out, err := core.Run(t.Context(), p, []byte(input), core.Budgets{})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s\n%s", seed, err, src, report.Type, input)
		}
		if err := validates(t, check.OutputSchema(report), out.JSON); err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s\n%s", seed, err, src, report.Type, out.JSON)
		}
		if !report.Sound() {
			tuples++
		} else if strings.Contains(report.Type.Param.String(), "list[num]") {
			numbers++
		}
	}
	t.Logf("of %d kinds of rows %d are of several kinds, %d of numbers", n, tuples, numbers)
	if tuples < n/2 || numbers < n/50 {
		t.Error("too few: the test shows little")
	}
}

// TestTuplesBudget: whatever the budget is, a program is typed at least as a program is
// whose lists are all of one kind, and tuples are found with half of it left.
func TestTuplesBudget(t *testing.T) {
	t.Parallel()
	p, err := core.CompileText("t", []byte(`([name, n]) => {name, n: n + 1, p: quote(x + 1), q: quote(map(y => y.a + x, [{a: 1}, {a: 2}]))}`))
	must.NoError(t, err)
	infer := func(steps int, oneKind bool) *check.Report {
		return check.Infer(p.Term(), nil, check.Env{OneKind: oneKind}, check.Budget{Steps: steps})
	}
	least := infer(0, true).Steps
	for steps := 1; steps < 9*least; steps += 1 + least/200 {
		r, old := infer(steps, false), infer(steps, true)
		if r.Type.String() != old.Type.String() && !strings.Contains(r.Type.String(), "(list[any]) ->") {
			t.Errorf("in %d steps: %s, which is %s", steps, r.Type, old.Type)
		}
		if r.Type.String() == old.Type.String() && steps > 3*least {
			t.Errorf("in %d steps of %d: %s", steps, least, r.Type)
		}
		if strings.Contains(r.Type.String(), "code[?") && !strings.Contains(old.Type.String(), "code[?") || r.Steps > steps {
			t.Errorf("in %d steps: %s, was %s; it took %d", steps, r.Type, old.Type, r.Steps)
		}
	}
}
