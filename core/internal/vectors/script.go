package vectors

import (
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Library is the tools that programs of a test can look up, as the code of
// Owner sees them: all of them, and itself.
type Library struct {
	Owner string
	Code  map[string]value.Tool // Term and Source
}

// Tool finds a tool.
func (l Library) Tool(name string, _ bool) (value.Tool, bool) {
	t, ok := l.Code[name]
	t.Name, t.Tools = name, Library{name, l.Code}
	return t, ok
}

// Callee finds a tool that the evals around permit to be called.
func (l Library) Callee(name string, with [][]string, _ fault.Pointer) (value.Tool, *fault.Fault) {
	return Callee(l, name, with)
}

// A Script answers the requests of a run, and writes down all that they say, so
// that two runs can be held against each other.
type Script struct {
	// Reply is the outcome of request i (from 0) of those that the evals around
	// permit.
	Reply func(i int, op string, arg value.Value) (value.Value, *fault.Fault)
	Log   strings.Builder
	asked int
}

// Answer answers a round.
func (s *Script) Answer(round []value.Request) []value.Answer {
	fmt.Fprintf(&s.Log, "round of %d\n", len(round))
	answers := make([]value.Answer, len(round))
	for i, r := range round {
		arg := "too large"
		if e, f := text.Encode(r.Arg, 1<<16, 1<<20); f == nil {
			arg = string(e.JSON)
		}
		owner := "nobody"
		if l, ok := r.Tools.(Library); ok {
			owner = "owner " + l.Owner
		}
		fmt.Fprintf(&s.Log, "%s in %q at %q of %q, tool %q of %s, with %q, branch %q: %s\n", r.Op, r.In, r.At, r.Where, r.Tool, owner, r.With, r.Branch, arg)
		if !Permits(r.With, r.Op) {
			answers[i].Fault = fault.New(fault.Denied, r.Op+" is not permitted by an eval around")
			continue
		}
		answers[i].Value, answers[i].Fault = s.Reply(s.asked, r.Op, r.Arg)
		s.asked++
	}
	return answers
}
