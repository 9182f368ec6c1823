package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// alike is tools that are all alike, each compiled when it is looked up.
type alike struct{ made map[string]*core.Program }

func (l *alike) Tool(name string, _ bool) (core.Tool, bool) {
	if l.made[name] == nil {
		l.made[name], _ = core.CompileText(name, []byte("x => ["+strings.Repeat("-x,", 1000)+"x]"))
	}
	return l.made[name].Tool(), true
}

func (l *alike) Callee(name string, _ [][]string, _ fault.Pointer) (core.Tool, *fault.Fault) {
	t, _ := l.Tool(name, true)
	t.Tools = l
	return t, nil
}

// TestLookedUpCounts: the code of tools that a run looks up counts as the run's
// memory, once each: a short program can't hold a library of any size.
func TestLookedUpCounts(t *testing.T) {
	for _, c := range []struct {
		what, each string
		tools      int
		out        bool
	}{
		{"code_of few", `code_of(concat("t", to_text(i)))`, 3, false},
		{"code_of many", `code_of(concat("t", to_text(i)))`, 20, true},
		{"code_of one, often", `code_of("t")`, 2000, false},
		{"call few", `length(call(concat("t", to_text(i)), 1))`, 3, false},
		{"call many", `length(call(concat("t", to_text(i)), 1))`, 20, true},
		{"call one, often", `length(call("t", 1))`, 100, false},
	} {
		p, err := core.CompileText("user", fmt.Appendf(nil, "map(i => %s, range(0, %d))", c.each, c.tools))
		if err != nil {
			t.Fatal(err)
		}
		m := p.Start(core.Input{}, core.Budgets{Memory: 2 << 20}, &alike{map[string]*core.Program{}})
		state := m.Run(0)
		switch {
		case c.out && (state != core.Failed || m.Fault().Kind != fault.OutOfMemory):
			t.Errorf("%s: %v, %v; expected out_of_memory", c.what, state, m.Fault())
		case !c.out && state != core.Done:
			t.Errorf("%s: %v, %v", c.what, state, m.Fault())
		}
		m.Release()
	}
}
