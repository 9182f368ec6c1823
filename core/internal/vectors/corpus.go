package vectors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	// It also says what the rows that reason about code do, for tests of packages below it.
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Case is a program of core/testdata/corpus with all that its run depends
// on, and what must come of it. Evolve Tools (in the order of their names),
// then run Term, or the tool called Tool, with Input. If one of them is
// refused, its fault is the outcome.
//
// The corpus is append-only: a case may be added, and one that turns out to be
// wrong corrected with the reason in the commit, but none taken away.
type Case struct {
	Name string          `json:"name"`
	Term json.RawMessage `json:"term,omitempty"` // as given to run, so a string is JSON or text
	Tool string          `json:"tool,omitempty"`
	// Input is absent for null; InputAs is "", "auto", "term" or "data".
	Input   json.RawMessage            `json:"input,omitempty"`
	InputAs string                     `json:"input_as,omitempty"`
	Tools   map[string]json.RawMessage `json:"tools,omitempty"`
	Budgets struct {
		Steps  uint64 `json:"steps,omitempty"`
		Memory int64  `json:"memory,omitempty"`
		Depth  int    `json:"depth,omitempty"`
	} `json:"budgets,omitzero"`
	// Effects is what becomes of the effects, in the order in which they are
	// asked for; nil: every effect is denied.
	Effects []Effect `json:"effects,omitempty"`
	// Calls says that what comes of the case takes a host that lets all code
	// call tools, where the evals around permit it.
	Calls bool `json:"calls,omitempty"`

	Want  json.RawMessage `json:"want,omitempty"`
	Type  string          `json:"type,omitempty"`
	Fault *Fault          `json:"fault,omitempty"`
	// Steps is what is used, by a run that fails as well; 0: not compared.
	Steps uint64 `json:"steps,omitempty"`
	// Why says what the case is about where its name can't.
	Why string `json:"why,omitempty"`
}

// A Fault is what is compared of one. The place of a budget's is not.
type Fault struct {
	Kind      fault.Kind     `json:"kind"`
	At        *fault.Pointer `json:"at,omitempty"`
	In        string         `json:"in,omitempty"` // without a tool's version
	EvalDepth int            `json:"eval_depth,omitempty"`
	Got       string         `json:"got,omitempty"` // compared where it is set
}

// An Effect is a request that must come, with its outcome: Result as data, or
// a failure of kind Fault. In, Tool, Where, Branch, With and Round are compared
// where they are set; Tool "-" is the empty name, and With [] none. Round is
// the number of the round, from 1.
type Effect struct {
	Op     string          `json:"op"`
	In     string          `json:"in,omitempty"`
	Tool   string          `json:"tool,omitempty"`
	Where  string          `json:"where,omitempty"` // without a tool's version
	Branch string          `json:"branch,omitempty"`
	With   [][]string      `json:"with,omitempty"`
	Round  int             `json:"round,omitempty"`
	Arg    json.RawMessage `json:"arg"`
	Result json.RawMessage `json:"result,omitempty"`
	Fault  fault.Kind      `json:"fault,omitempty"`
}

// Setup is the case's tools in the order of their names.
func (c *Case) Setup() []Tool {
	var tools []Tool
	for name, code := range c.Tools {
		tools = append(tools, Tool{name, code})
	}
	slices.SortFunc(tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return tools
}

// Program is what the case runs: a tool, or a source as JSON, which is made of one in
// the text form that can be read. See [Vector.Program].
func (c *Case) Program() (tool string, code []byte) {
	if c.Tool != "" {
		return c.Tool, nil
	}
	tool, code = program(c.Term, func(name string) bool { return c.Tools[name] != nil })
	if tool == "" && !json.Valid(code) {
		if t, err := core.Parse(code); err == nil {
			code = text.Canonical(t)
		}
	}
	return tool, code
}

// Answers is the outcomes of a round of requests, of which arg is the JSON of
// the arguments; asked counts requests that were permitted, and rounds the
// rounds. A request that an eval around it doesn't permit is denied: every list
// of With must have an entry that is the operation or its kind, or begins with
// that and a colon ("fs.read:x", "fs:x"). It fails the test where the others
// are not those that the case expects.
func (c *Case) Answers(t testing.TB, round []value.Request, arg func(value.Value) []byte, asked, rounds *int) []Effect {
	t.Helper()
	*rounds++
	answers := make([]Effect, len(round))
	for i, r := range round {
		answers[i] = Effect{Fault: fault.Denied}
		if c.Effects == nil || !Permits(r.With, r.Op) {
			continue
		}
		answers[i] = c.answer(t, *asked, *rounds, r, arg(r.Arg))
		*asked++
	}
	return answers
}

// Permits reports whether every list has an entry for the operation.
func Permits(with [][]string, op string) bool {
	kind, _, _ := strings.Cut(op, ".")
	for _, list := range with {
		if !slices.ContainsFunc(list, func(s string) bool {
			name, _, _ := strings.Cut(s, ":")
			return name == op || name == kind
		}) {
			return false
		}
	}
	return true
}

func (c *Case) answer(t testing.TB, i, round int, r value.Request, arg []byte) Effect {
	t.Helper()
	if i >= len(c.Effects) {
		t.Errorf("effect %d, %s, was not expected", i, r.Op)
		return Effect{Fault: fault.Internal}
	}
	e := c.Effects[i]
	if e.Op != r.Op || !SameJSON(e.Arg, arg) {
		t.Errorf("effect %d is %s of %s, want %s of %s", i, r.Op, arg, e.Op, e.Arg)
	}
	where, _, _ := strings.Cut(r.Where, "@")
	tool := cmp.Or(r.Tool, "-")
	if e.In != r.In || e.Tool != "" && e.Tool != tool || e.Where != "" && e.Where != where || e.Branch != "" && e.Branch != r.Branch ||
		e.With != nil && !slices.EqualFunc(e.With, r.With, slices.Equal) || e.Round != 0 && e.Round != round {
		t.Errorf("effect %d has in %q, tool %q, where %q, branch %q, with %q in round %d; want %+v", i, r.In, tool, where, r.Branch, r.With, round, e)
	}
	return e
}

// EachCase runs every case of the corpus as a test of its own.
func EachCase(t *testing.T, run func(t *testing.T, c *Case) Outcome) {
	dir, ok := above(filepath.Join("core", "testdata", "corpus"))
	if !ok {
		t.Fatal("core/testdata/corpus is not in a folder above this test")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus in %s (%v)", dir, err)
	}
	for _, file := range files {
		group := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(group, func(t *testing.T) {
			seen := map[string]bool{}
			lines(t, file, func(line []byte) {
				d := json.NewDecoder(bytes.NewReader(line))
				d.DisallowUnknownFields()
				c := new(Case)
				if err := d.Decode(c); err != nil {
					t.Fatalf("%.80s…: %v", line, err)
				}
				if seen[c.Name] {
					t.Errorf("two cases named %q", c.Name)
				}
				seen[c.Name] = true
				if (c.Want == nil) == (c.Fault == nil) || (c.Term == nil) == (c.Tool == "") {
					t.Errorf("case %q needs one of want and fault, and one of term and tool", c.Name)
				}
				t.Run(c.Name, func(t *testing.T) { c.check(t, run(t, c)) })
			})
		})
	}
}

func (c *Case) check(t *testing.T, got Outcome) {
	t.Helper()
	if c.Fault != nil {
		c.checkFault(t, got)
	} else if got.Kind != "" {
		t.Errorf("got %s at %s %q, want %s", got, got.In, got.At, c.Want)
	} else if !SameJSON(got.Result, c.Want) || c.Type != "" && got.Type != c.Type {
		t.Errorf("got %s, want %s, %s", got, c.Want, c.Type)
	}
	steps := c.Steps
	if c.Fault != nil && c.Fault.Kind == fault.OutOfFuel {
		steps = c.Budgets.Steps
	}
	if steps != 0 && got.Steps != steps {
		t.Errorf("%d steps, want %d", got.Steps, steps)
	}
}

func (c *Case) checkFault(t *testing.T, got Outcome) {
	t.Helper()
	w := c.Fault
	if got.Kind != w.Kind {
		t.Errorf("got %s, want %s", got, w.Kind)
		return
	}
	if ByBudget(w.Kind) {
		return
	}
	if w.At != nil && got.At != *w.At {
		t.Errorf("%s is at %q, want %q", got.Kind, got.At, *w.At)
	}
	if in, _, _ := strings.Cut(got.In, "@"); w.In != "" && in != w.In {
		t.Errorf("%s is in %q, want %q", got.Kind, in, w.In)
	}
	if w.Got != "" && got.Got != w.Got {
		t.Errorf("%s got %q, want %q", got.Kind, got.Got, w.Got)
	}
	if got.EvalDepth != w.EvalDepth {
		t.Errorf("%s has eval depth %d, want %d", got.Kind, got.EvalDepth, w.EvalDepth)
	}
}
