package eval_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// written returns the programs of core/testdata/bench that do what people write, as JSON.
func written(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../testdata/bench/*.pif")
	if err != nil || len(files) < 12 {
		t.Fatal("no programs", err)
	}
	all := map[string]string{}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".pif")] = string(mustCompileText(t, string(src)).Canonical())
	}
	return all
}

// TestWritten: these programs give on the machine what they give on the reference, for
// as many steps, however they are cut: in slices, by collections, by a budget anywhere.
func TestWritten(t *testing.T) {
	for name, code := range written(t) {
		for _, input := range []string{"0", "1", "2", "40"} {
			tr := trial{code: code, input: input}
			stressedNot()
			want, refused := tr.onNaive(t)
			if refused {
				t.Fatalf("%s: %v", name, want)
			}
			tr.agree(t, tr.onEval(t), want)
			tr.slice = 97
			for _, tight := range []bool{false, true} {
				stressed(t, tight)
				tr.agree(t, tr.onEval(t), want)
			}
			stressedNot()
			for steps := 1 + want.Steps/40; steps <= want.Steps; steps += 1 + want.Steps/40 {
				tr.budgets = core.Budgets{Steps: steps}
				o := tr.onEval(t)
				if cut, _ := tr.onNaive(t); cut.Kind != o.Kind || o.Steps != cut.Steps {
					t.Fatalf("%s: of %d steps: eval %v, naive %v", name, steps, o, cut)
				}
				if o.Kind != "" && o.Kind != fault.OutOfFuel && o.Kind != want.Kind {
					t.Fatalf("%s: %v", name, o)
				}
			}
		}
	}
}
