package core_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/internal/vectors"
)

func TestZZ(t *testing.T) {
	files, _ := filepath.Glob("/tmp/w/c/*")
	for _, file := range files {
		b, _ := os.ReadFile(file)
		var out bytes.Buffer
		for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
			f := strings.Split(line, " ;; ")
			var budgets []string
			tr := trial{code: f[1], input: "null", budgets: core.Budgets{}}
			if len(f) > 2 {
				last := f[len(f)-1]
				if d, ok := strings.CutPrefix(last, "depth "); ok {
					tr.budgets.Depth, _ = strconv.Atoi(d)
					budgets = append(budgets, `"depth":`+d)
				} else {
					tr.budgets.Steps, _ = strconv.ParseUint(last, 10, 64)
					budgets = append(budgets, `"steps":`+last)
				}
			}
			tr.compare(t)
			o := tr.onNaive(t)
			q := func(s string) string { var b bytes.Buffer; e := json.NewEncoder(&b); e.SetEscapeHTML(false); e.Encode(s); return strings.TrimSpace(b.String()) }
			fmt.Fprintf(&out, `{"name":%s,"term":%s`, q(f[0]), f[1])
			if budgets != nil { fmt.Fprintf(&out, `,"budgets":{%s}`, strings.Join(budgets, ",")) }
			if o.Kind != "" {
				fmt.Fprintf(&out, `,"fault":{"kind":%q`, o.Kind)
				if !vectors.ByBudget(o.Kind) { fmt.Fprintf(&out, `,"at":%s`, q(string(o.At))) }
				if o.EvalDepth > 0 { fmt.Fprintf(&out, `,"eval_depth":%d`, o.EvalDepth) }
				out.WriteString("}")
			} else {
				fmt.Fprintf(&out, `,"want":%s,"type":%q`, o.Result, o.Type)
			}
			if !vectors.ByBudget(o.Kind) { fmt.Fprintf(&out, `,"steps":%d`, o.Steps) }
			out.WriteString("}\n")
		}
		os.WriteFile("testdata/corpus/"+filepath.Base(file)+".jsonl", out.Bytes(), 0o644)
	}
}
