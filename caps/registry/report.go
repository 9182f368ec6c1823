package registry

import (
	"sync"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// A report is what is known of a version, worked out when it is first asked for.
type report struct {
	once sync.Once
	made *check.Report
}

// Report is what is known of the tool's code before it runs: its type, what it can
// ask for, and where it must fail. The first call works it out.
func (t *Tool) Report() *check.Report {
	t.report.once.Do(func() {
		t.report.made = check.Infer(t.Program().Term(), nil, t.env(), check.Budget{})
	})
	return t.report.made
}

// env is what the checker is told of the tools that a tool is bound to.
func (t *Tool) env() check.Env {
	return check.Env{
		Tool: t.Name,
		Callee: func(name string) (check.Callee, bool) {
			b := t.Bound[name]
			if b == nil {
				return check.Callee{}, false
			}
			r := b.Report()
			return check.Callee{Type: r.Type, Effects: r.Effects, Sound: r.Sound()}, true
		},
		Code: func(name string) (term.Term, bool) {
			b := t.Bound[name]
			if b == nil {
				return nil, false
			}
			return b.Program().Term(), true
		},
	}
}
