package flow_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var update = flag.Bool("update", false, "write testdata/rows.txt anew")

// TestRows tells for each row with operands what its value has of the label of each one:
// testdata/rows.txt has the label of the value without its parts, and of all of it, where
// all of the operand is secret, and where only what is in it is. It is to be read: a row
// that shows too little leaks, one that shows too much is no use.
func TestRows(t *testing.T) {
	var b strings.Builder
	for i := range prim.Table {
		row := &prim.Table[i]
		if row.Form || len(row.Params) == 0 {
			continue
		}
		var uses []*term.Prim
		operands := 0
		for _, e := range row.Examples {
			p, f := parse.Code([]byte(e.Code), parse.Options{})
			if f != nil || e.Fault != "" && row.Group != "failure" {
				continue
			}
			if n := gen.Use(p.Term, term.ID(i)); n != nil {
				uses, operands = append(uses, n), max(operands, len(n.Args))
			}
		}
		if operands == 0 {
			t.Errorf("%s: no example shows it by itself", row.Name)
			continue
		}
		fmt.Fprintf(&b, "%-16s", row.Name)
		for k := range operands {
			if k > 0 {
				b.WriteString(" |")
			}
			b.WriteString(" " + told(t, uses, k, func(value.Value) *flow.Shadow { return flow.Whole(secret) }))
			if inside := told(t, uses, k, func(v value.Value) *flow.Shadow { return flow.Inside(v, secret) }); inside != "" {
				b.WriteString(" (" + inside + ")")
			}
		}
		b.WriteByte('\n')
	}
	const file = "testdata/rows.txt"
	if *update {
		must.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	must.NoError(t, err)
	got, wanted := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(wanted)) {
		if i >= len(got) || i >= len(wanted) || got[i] != wanted[i] {
			t.Fatalf("line %d of %s is another; write it with -update and read it\n%s", i+1, file, strings.Join(got[i:min(len(got), i+1)], ""))
		}
	}
}

// told runs the uses of a row of which operand k has a shadow, and gives the label of
// what came of any; "" where none has such an operand.
func told(t *testing.T, uses []*term.Prim, k int, of func(value.Value) *flow.Shadow) string {
	t.Helper()
	any := false
	var own, all flow.Label
	for _, n := range uses {
		if k >= len(n.Args) {
			continue
		}
		args := append([]term.Term{}, n.Args...)
		args[k] = &term.Effect{Op: "fs.read", Arg: args[k]}
		res, err := flow.Run(context.Background(), flow.Config{
			// In a list, so that a function isn't applied to the input.
			Term: &term.List{Items: []term.Term{&term.Prim{ID: n.ID, Args: args}}}, Budgets: naive.Budgets{Steps: 100_000},
			Handler: func(_ context.Context, round []flow.Request) ([]flow.Answer, error) {
				s := of(round[0].Arg)
				any = any || s != nil
				return []flow.Answer{{Answer: value.Answer{Value: round[0].Arg}, Shadow: s, Alone: true}}, nil
			},
		})
		switch {
		case err != nil:
			t.Fatal(prim.Get(n.ID).Name, err)
		case res.Fault != nil && prim.Get(n.ID).Group == "failure":
			own, all = own|res.Label, all|res.Label
		case res.Fault == nil:
			s := flow.First(res.Shadow)
			own, all = own|s.Own(), all|s.All()
		}
	}
	switch {
	case !any:
		return ""
	case own == all:
		return letter(own)
	}
	return letter(own) + "/" + letter(all)
}

// letter tells what a label is of: data, control or nothing.
func letter(l flow.Label) string {
	switch {
	case l&flow.Data != 0:
		return "d"
	case l != 0:
		return "c"
	}
	return "-"
}
