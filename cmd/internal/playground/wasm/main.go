//go:build wasip1

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"
	"unsafe"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/examples"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// request and answer stay where they are until the next call.
var request, answer []byte

// Reserve makes room for a request.
//
//go:wasmexport reserve
func Reserve(size int32) unsafe.Pointer {
	request = make([]byte, max(1, size))
	return unsafe.Pointer(&request[0])
}

// Answer does what the request asks for.
//
//go:wasmexport answer
func Answer(size int32) int32 {
	var q asked
	var a any
	if err := json.Unmarshal(request[:size], &q); err != nil {
		a = told{Fault: &problem{Message: err.Error()}}
	} else {
		switch q.Do {
		case "tasks":
			a = tasks()
		case "check":
			a = q.check()
		case "run":
			a = q.run()
		case "lines":
			a = q.lines()
		}
	}
	answer, _ = json.Marshal(a)
	return int32(len(answer))
}

// Result is where the answer is.
//
//go:wasmexport result
func Result() unsafe.Pointer { return unsafe.Pointer(&answer[0]) }

// asked is what the page wants done.
type asked struct {
	Do    string `json:"do"`
	Code  string `json:"code"`
	Input string `json:"input"`
	Steps uint64 `json:"steps"`
}

// A problem is a fault as the page shows it. From and To are what is underlined, in the
// units of a string of JavaScript.
type problem struct {
	Kind    fault.Kind `json:"kind,omitempty"`
	Message string     `json:"message"`
	Hint    string     `json:"hint,omitempty"`
	At      string     `json:"at,omitempty"`
	Caret   string     `json:"caret,omitempty"`
	From    int        `json:"from"`
	To      int        `json:"to"`
}

// told is what is known of code, or what a run gave.
type told struct {
	Parts    []text.Part `json:"parts,omitempty"`
	Fault    *problem    `json:"fault,omitempty"`
	Problems []problem   `json:"problems,omitempty"`
	Other    string      `json:"other,omitempty"` // the same in the other form
	IsText   bool        `json:"isText"`
	Type     string      `json:"type,omitempty"`
	Cost     string      `json:"cost,omitempty"`
	Bound    string      `json:"bound,omitempty"`
	Effects  []string    `json:"effects,omitempty"`
	Params   []string    `json:"params,omitempty"`
	Notes    []string    `json:"notes,omitempty"`

	Result string       `json:"result,omitempty"`
	Steps  uint64       `json:"steps,omitempty"`
	Lines  []step.Spent `json:"lines,omitempty"`
}

// name is the tool that the code is: it may call itself.
const name = "it"

// compile reads code in either form.
func (q *asked) compile() (*core.Program, bool, error) {
	if json.Valid([]byte(q.Code)) {
		p, err := core.CompileTool(name, []byte(q.Code))
		return p, false, err
	}
	p, err := core.CompileText(name, []byte(q.Code))
	return p, true, err
}

const (
	// maxShown is how many bytes of a result are shown, and mostProblems how many problems.
	maxShown     = 64 << 10
	mostProblems = 20
	// profiled is how many points of a run are looked at for where its steps went.
	profiled = 100_000
)

func (q *asked) check() told {
	p, isText, err := q.compile()
	t := told{IsText: isText, Parts: text.Parts(q.Code)}
	if !isText {
		t.Parts = []text.Part{{Text: q.Code}}
	}
	if err != nil {
		t.Fault = q.problem(err)
		return t
	}
	if isText {
		t.Other = string(lay(nil, p.Canonical(), 0))
	} else {
		t.Other = string(p.Text())
	}
	src := p.Tool().Source
	r := check.Infer(p.Term(), src, check.Env{Tool: name, Run: core.RunConstant}, check.Budget{Places: mostProblems})
	t.Type, t.Params, t.Notes = r.Type.String(), r.Params, p.Notes()
	for _, d := range r.Diagnostics {
		if d.Guarded {
			continue
		}
		t.Problems = append(t.Problems, *q.problem(&fault.Fault{Kind: d.Kind, Message: d.Message, Hint: d.Hint, At: d.At, Line: d.Line, Col: d.Col}))
	}
	for _, e := range r.Effects {
		t.Effects = append(t.Effects, e.Op)
	}
	c := cost.Of(p.Term(), cost.Options{Tool: true, Source: src})
	if t.Cost = string(c.Class); c.Steps.Finite() {
		t.Bound = c.Steps.Explain()
	}
	return t
}

// width is how wide JSON is laid out.
const width = 50

// lay appends JSON, broken into lines where it is wider than that.
func lay(to []byte, raw json.RawMessage, indent int) []byte {
	if len(raw)+indent <= width || raw[0] != '{' && raw[0] != '[' {
		return append(to, raw...)
	}
	var items []json.RawMessage
	var keys []string
	if json.Unmarshal(raw, &items) != nil {
		members := map[string]json.RawMessage{}
		_ = json.Unmarshal(raw, &members)
		for _, key := range slices.Sorted(maps.Keys(members)) {
			name, _ := json.Marshal(key)
			keys, items = append(keys, string(name)+": "), append(items, members[key])
		}
	}
	line := "\n" + strings.Repeat(" ", indent)
	to = append(to, raw[0])
	for i, item := range items {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(append(to, line...), ' ')
		if keys != nil {
			to = append(to, keys[i]...)
		}
		to = lay(to, item, indent+1)
	}
	return append(append(to, line...), raw[len(raw)-1])
}

func (q *asked) run() told {
	p, isText, err := q.compile()
	t := told{IsText: isText}
	if err != nil {
		t.Fault = q.problem(err)
		return t
	}
	in, err := p.ReadInput([]byte(strings.TrimSpace(q.Input)))
	if err != nil {
		t.Fault = q.problem(err)
		return t
	}
	b := core.Budgets{Steps: q.Steps}
	m := p.Start(in, b, nil)
	defer m.Release()
	t.Notes = append(p.Notes(), in.Notes...)
	switch m.Run(0) {
	case core.Suspended:
		r := m.Requests()[0]
		f := &fault.Fault{Kind: fault.Denied, Message: r.Op + ": nothing performs effects here", Hint: "A server asks its operator; see mcp-pif's README.", At: r.At, In: r.Where}
		if _, err := fmt.Sscanf(string(r.At), "%d:%d", &f.Line, &f.Col); err == nil {
			f.At = ""
		}
		t.Fault = q.problem(f)
	case core.Failed:
		t.Fault = q.problem(p.Advise(m.Fault()))
	default:
		enc, f := m.Encode(maxShown)
		if f != nil {
			t.Fault = q.problem(f)
			break
		}
		t.Result = string(enc.JSON)
		if enc.Truncated {
			t.Result += "…"
		}
	}
	t.Steps = m.Steps()
	return t
}

// lines tells where a run's steps went.
func (q *asked) lines() (t told) {
	p, _, err := q.compile()
	if err != nil {
		return t
	}
	in, err := p.ReadInput([]byte(strings.TrimSpace(q.Input)))
	if err != nil {
		return t
	}
	if s, err := step.New([]step.Round{{Program: p, Input: in, Budgets: core.Budgets{Steps: q.Steps}}}, profiled).Summary(context.Background()); err == nil {
		t.Lines, t.Steps = s.Profile.Lines(6), s.Steps
	}
	return t
}

// problem shows an error, where it is in the code.
func (q *asked) problem(err error) *problem {
	var f *fault.Fault
	if !errors.As(err, &f) {
		return &problem{Message: err.Error()}
	}
	src := []byte(q.Code)
	hint := f.Hint
	if !json.Valid(src) {
		hint = core.HintInText(hint)
	}
	o := &problem{Kind: f.Kind, Message: display.Truncate(f.Message, 1000), Hint: hint, At: f.Place(), Caret: text.Caret(src, f), From: -1}
	if f.In == "input" {
		o.At = strings.TrimSpace("input " + o.At)
		return o
	}
	if f.Line > 0 {
		from := offset(q.Code, f.Line, f.Col)
		to := from
		for to < len(q.Code) && q.Code[to] != '\n' && (to == from || isWord(q.Code[to]) && isWord(q.Code[from])) {
			to++
		}
		o.From = units(q.Code[:from])
		o.To = o.From + max(1, units(q.Code[from:to]))
	}
	return o
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

// offset is where a line and a column, in characters, are.
func offset(s string, line, col int) int {
	at := 0
	for ; line > 1; line-- {
		n := strings.IndexByte(s[at:], '\n')
		if n < 0 {
			return len(s)
		}
		at += n + 1
	}
	for i := range s[at:] {
		if col--; col == 0 {
			return at + i
		}
	}
	return len(s)
}

// units is the length of a text as a string of JavaScript.
func units(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// A task is a program with an input and what it gives.
type task struct {
	Name  string `json:"name"`
	Of    string `json:"of"`
	Says  string `json:"says"`
	Code  string `json:"code"`
	Input string `json:"input"`
}

// tasks is the worked tasks.
func tasks() (all []task) {
	files, _ := fs.Glob(examples.Tasks, "tasks/*.txtar")
	for _, file := range files {
		data, _ := examples.Tasks.ReadFile(file)
		inputs := map[string]string{}
		for _, f := range txtar.Parse(data).Files {
			if name, ok := strings.CutSuffix(f.Name, ".json"); ok {
				var x struct{ Input json.RawMessage }
				_ = json.Unmarshal(f.Data, &x)
				inputs[name] = string(x.Input)
			}
			name, ok := strings.CutSuffix(f.Name, ".pif")
			if !ok {
				continue
			}
			code := strings.TrimSpace(string(f.Data))
			says, _, _ := strings.Cut(strings.TrimPrefix(code, "// "), "\n")
			all = append(all, task{
				Name: strings.ReplaceAll(name, "_", " "), Of: strings.TrimSuffix(strings.TrimPrefix(file, "tasks/"), ".txtar"), Says: says, Code: code, Input: inputs[name],
			})
		}
	}
	return all
}
