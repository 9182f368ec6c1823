package core_test

import (
	"os"
	"strings"
	"testing"
	"github.com/mcp-pif/mcp-pif/core"
)

func TestZZ(t *testing.T) {
	b, _ := os.ReadFile("/tmp/w/zz.txt")
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		code, in, _ := strings.Cut(line, " ;; ")
		if in == "" { in = "null" }
		tr := trial{code: code, input: in, budgets: core.Budgets{Steps: 10_000_000, Memory: 64<<20}}
		o, refused := tr.onEval(t)
		t.Log(code)
		if refused { t.Logf("   refused %v %s", o.Kind, o.At); if _, err := core.Compile([]byte(code)); err != nil { t.Log(err) }; continue }
		n := tr.onNaive(t)
		t.Logf("   eval  %v %s %s", o, o.At, o.In)
		if o.String() != n.String() || o.At != n.At { t.Logf("   NAIVE %v %s %s", n, n.At, n.In) }
	}
}
