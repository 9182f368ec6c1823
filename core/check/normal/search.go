package normal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A search looks for an input for which two programs do something else.
type search struct {
	terms      [2]term.Term
	limits     Limits
	programs   [2]*eval.Program
	params     int // that get an argument
	wrap       bool
	draw       *draw
	conclusive int
	left       int // runs
	// stopped is set where no more runs may be made, and overloaded where one
	// had no memory.
	stopped, overloaded bool
	looks               int // how many parts of values were compared
}

// runMemory is the budget of memory of each run, maxShownBytes how many bytes of a
// result a verdict shows, and maxRequests how often a run may ask.
const (
	runMemory     = 8 << 20
	maxShownBytes = 400
	maxRequests   = 200
)

func newSearch(a, b term.Term, tool bool, l Limits) *search {
	s := &search{terms: [2]term.Term{a, b}, limits: l, left: l.Runs}
	s.draw = &draw{state: uint64(len(text.Canonical(a))) ^ 0x9e3779b97f4a7c15}
	s.params = min(s.paramsOf(a), s.paramsOf(b))
	// More than one argument is given by applying the code to them, which is
	// the same as running it where it doesn't look for its tool.
	s.wrap = s.params > 1 && !(tool && (contextual(a) || contextual(b)))
	if s.params > 1 && !s.wrap {
		s.params = 1
	}
	for i, t := range s.terms {
		s.programs[i] = program(t, tool && !s.wrap)
	}
	return s
}

// paramsOf returns how many parameters a program has.
func (s *search) paramsOf(t term.Term) int {
	if _, ok := t.(*term.Lam); !ok && !s.limits.Lets {
		return 0
	}
	return len(term.Params(t))
}

// contextual reports whether a term uses what only a tool's code has.
func contextual(t term.Term) bool {
	switch t := t.(type) {
	case *term.Self, *term.Continue, *term.CodeOf:
		return true
	case *term.Prim:
		if t.ID == prim.CodeOf {
			return true
		}
	}
	return !term.Children(t, func(t term.Term) bool { return !contextual(t) })
}

// toolName is what the programs are called as tools.
const toolName = "tool"

func program(t term.Term, tool bool) *eval.Program {
	p := &eval.Program{Term: t, IsTool: tool}
	if parsed, f := parse.Code(text.Canonical(t), parse.Options{MaxBytes: 4 << 20}); f == nil {
		p.Term, p.Source = parsed.Term, parsed.Source
	}
	if tool {
		p.Tool = toolName
	}
	p.Unit = code.Compile(p.Term, code.Options{Tool: tool})
	return p
}

// An outcome is what came of a run.
type outcome struct {
	value value.Value
	kind  fault.Kind
	asked []asked
	// unsure is set where a budget ended the run.
	unsure bool
}

type asked struct {
	op, in string
	arg    value.Value
}

func (s *search) run() (Verdict, bool) {
	for i := range s.programs {
		if s.programs[i].Unit.Entangled {
			return Verdict{}, false
		}
	}
	if s.params == 0 {
		if x, y := s.both(nil); s.differ(x, y) == yes {
			return s.verdict(nil, x, y), true
		}
		return s.asValues()
	}
	shapes := demands(s.terms[0], s.terms[1], s.params)
	for s.left > 0 && !s.stopped {
		args := make([]value.Value, s.params)
		for i := range args {
			args[i] = shapes.value(s.draw, shapes.params[i], 3)
		}
		if x, y := s.both(args); s.differ(x, y) == yes {
			args, x, y = s.shrink(args, x, y)
			return s.verdict(args, x, y), true
		}
	}
	return Verdict{}, false
}

// asValues decides that two programs are the same that take no input, look at
// nothing outside and give the same data.
func (s *search) asValues() (Verdict, bool) {
	if !isClosed(s.terms[0]) || !isClosed(s.terms[1]) {
		return Verdict{}, false
	}
	for i, t := range s.terms {
		// In a list a function isn't applied to the input.
		s.programs[i] = program(&term.List{Items: []term.Term{t}}, false)
	}
	x, y := s.both(nil)
	if s.differ(x, y) != no {
		return Verdict{}, false
	}
	if items, ok := value.Slice(x.value); ok {
		x.value = items[0]
	}
	return Verdict{Answer: Same, Reason: "both were run, and " + s.show(x) + " came of both"}, true
}

// isClosed reports whether what comes of a term is decided by the term alone.
func isClosed(t term.Term) bool { return len(term.Free(t)) == 0 && inward(t) }

// inward reports whether nothing in a term, quoted code included, looks outside.
func inward(t term.Term) bool {
	switch t := t.(type) {
	case *term.Effect, *term.CodeOf, *term.Self, *term.Continue:
		return false
	case *term.Prim:
		if t.ID == prim.CodeOf || t.ID == prim.Call || t.ID == idToCode {
			return false
		}
	}
	return term.Children(t, inward)
}

var idToCode = row("to_code")

func (s *search) verdict(args []value.Value, x, y outcome) Verdict {
	v := Verdict{Answer: Different, Left: s.show(x), Right: s.show(y)}
	v.Values = args
	for _, a := range args {
		v.Inputs = append(v.Inputs, dataOf(a))
	}
	switch {
	case len(v.Inputs) == 0:
		v.Reason = fmt.Sprintf("one gives %s, the other %s", v.Left, v.Right)
	default:
		v.Reason = fmt.Sprintf("for %s one gives %s, the other %s", joinInputs(v.Inputs), v.Left, v.Right)
	}
	return v
}

func joinInputs(inputs []json.RawMessage) string {
	all := make([]string, len(inputs))
	for i, in := range inputs {
		all[i] = string(in)
	}
	return strings.Join(all, ", ")
}

// dataOf returns a value as an input that is read as data.
func dataOf(v value.Value) json.RawMessage {
	e, f := text.Encode(v, 1<<20, 1<<20)
	if f != nil {
		return json.RawMessage("null")
	}
	return e.JSON
}

func (s *search) show(o outcome) string {
	var shown string
	switch {
	case o.kind != "":
		shown = "the failure " + string(o.kind)
	default:
		// As a term, so that code is told from the value it looks like.
		w := text.NewWriter(maxShownBytes, maxShownBytes)
		w.Term(o.value)
		if shown = string(w.Bytes()); len(shown) >= maxShownBytes-4 {
			shown += "…"
		}
	}
	for _, a := range o.asked {
		shown += ", having asked for " + a.op
		if a.in != "" {
			shown += " in " + a.in
		}
		shown += " with " + string(dataOf(a.arg))
	}
	return shown
}

// both runs both programs with arguments.
func (s *search) both(args []value.Value) (x, y outcome) {
	s.left--
	if s.stopped {
		return outcome{unsure: true}, outcome{unsure: true}
	}
	x, y = s.once(0, args), s.once(1, args)
	if !x.unsure && !y.unsure {
		s.conclusive++
	}
	return x, y
}

func (s *search) once(i int, args []value.Value) outcome {
	p := s.programs[i]
	input := &eval.Program{Term: &term.Unit{}}
	if s.wrap {
		t := p.Term
		for _, a := range args {
			in := read(a)
			if in == nil {
				return outcome{unsure: true}
			}
			t = &term.App{Func: t, Arg: in.Term}
		}
		p = &eval.Program{Term: t, Unit: code.Compile(t, code.Options{})}
		if p.Unit.Entangled {
			return outcome{unsure: true}
		}
	} else if len(args) == 1 {
		in := read(args[0])
		if in == nil {
			return outcome{unsure: true}
		}
		input = in
	}
	m := eval.Start(p, input, eval.Budgets{Steps: s.limits.RunSteps, Memory: s.limits.RunMemory, Depth: 2_000}, nil)
	defer m.Release()
	defer func() { s.ran(m) }()
	var o outcome
	room := s.limits.RunMemory
	for {
		switch m.Run(0) {
		case eval.Suspended:
			var answers []eval.Answer
			for _, r := range m.Requests() {
				if room -= bytesOf(r.Arg, room); room < 0 || len(o.asked) == maxRequests {
					return outcome{unsure: true}
				}
				o.asked = append(o.asked, asked{r.Op, r.In, r.Arg})
				answers = append(answers, answer(r, len(o.asked)))
			}
			m.Resume(answers)
		case eval.Done:
			o.value = m.Value()
			return o
		default:
			o.kind = m.Fault().Kind
			o.unsure = !o.kind.Catchable()
			return o
		}
	}
}

// ran charges a run that is over.
func (s *search) ran(m *eval.Machine) {
	if m.State() == eval.Failed && m.Fault().Kind == fault.Overloaded {
		s.stopped, s.overloaded = true, true
	}
	if s.limits.Ran != nil && !s.limits.Ran(m.Steps()) {
		s.stopped = true
	}
}

// bytesOf estimates how many bytes a value has, or more than most: what a run asked
// with is kept outside of its memory.
func bytesOf(v value.Value, most int64) int64 {
	bytes := int64(0)
	todo := []value.Value{v}
	for len(todo) > 0 && bytes <= most {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		bytes += 64
		switch v := v.(type) {
		case value.Str:
			bytes += int64(len(v))
		case value.Int:
			bytes += 8 * int64(v.Words())
		case value.Dec:
			bytes += 8 * int64(v.Words())
		case *value.Cons:
			todo = append(todo, v.Tail, v.Head)
		case *value.Pair:
			todo = append(todo, v.First, v.Second)
		case *value.Record:
			for _, f := range v.Fields {
				bytes += int64(len(f.Key))
				todo = append(todo, f.Value)
			}
		case *value.Continuation:
			todo = append(todo, v.Input)
		}
	}
	return bytes
}

// read returns a value as an input.
func read(v value.Value) *eval.Program {
	in, f := parse.Input(dataOf(v), parse.Data)
	if f != nil {
		return nil
	}
	return &eval.Program{Term: in.Term, Source: in.Source}
}

// answer returns what becomes of the i-th request: what an eval around doesn't
// permit is denied, every fifth fails.
func answer(r eval.Request, i int) eval.Answer {
	kind, _, _ := strings.Cut(r.Op, ".")
	for _, list := range r.With {
		permits := false
		for _, text := range list {
			name, _, _ := strings.Cut(text, ":")
			permits = permits || name == r.Op || name == kind
		}
		if !permits {
			return eval.Answer{Fault: fault.New(fault.Denied, r.Op+" is not permitted by an eval around")}
		}
	}
	switch i % 5 {
	case 0:
		return eval.Answer{Fault: fault.New(fault.EffectFailed, "this effect fails")}
	case 1:
		return eval.Answer{Value: value.Str("text " + fmt.Sprint(i))}
	case 2:
		return eval.Answer{Value: value.NewInt(int64(i))}
	case 3:
		return eval.Answer{Value: value.FromSlice([]value.Value{value.Str("a"), value.Str("b")})}
	}
	return eval.Answer{Value: &value.Record{Fields: []value.Field{{Key: "ok", Value: value.Bool(true)}}}}
}

// ternary is yes, no, or that it can't be known.
type ternary uint8

const (
	unsure ternary = iota
	no
	yes
)

// maxLooks is how many parts of values a search compares in all. What a run gives
// is small in memory, but one part may stand in it in very many places.
const maxLooks = 1 << 21

// differ reports whether two runs did something else.
func (s *search) differ(x, y outcome) ternary {
	if x.unsure || y.unsure {
		return unsure
	}
	found := no
	for i := 0; i < len(x.asked) && i < len(y.asked); i++ {
		a, b := x.asked[i], y.asked[i]
		if a.op != b.op || a.in != b.in {
			return yes
		}
		switch s.values(a.arg, b.arg) {
		case yes:
			return yes
		case unsure:
			found = unsure
		}
	}
	switch {
	case len(x.asked) != len(y.asked) || x.kind != y.kind:
		return yes
	case x.kind != "":
		return found
	}
	if d := s.values(x.value, y.value); d != no {
		return d
	}
	return found
}

// values reports whether two values differ. Two functions may or may not, and so may
// values that are too large to be gone through.
func (s *search) values(a, b value.Value) ternary {
	type two struct{ a, b value.Value }
	found := no
	todo := []two{{a, b}}
	for len(todo) > 0 {
		a, b := todo[len(todo)-1].a, todo[len(todo)-1].b
		todo = todo[:len(todo)-1]
		if s.looks++; s.looks > maxLooks {
			return unsure
		}
		if a.Type() != b.Type() {
			return yes
		}
		switch a := a.(type) {
		case value.Nil:
			if _, ok := b.(value.Nil); !ok {
				return yes
			}
		case *value.Cons:
			c, ok := b.(*value.Cons)
			if !ok {
				return yes
			}
			todo = append(todo, two{a.Tail, c.Tail}, two{a.Head, c.Head})
		case *value.Pair:
			c := b.(*value.Pair)
			todo = append(todo, two{a.Second, c.Second}, two{a.First, c.First})
		case *value.Record:
			c := b.(*value.Record)
			if len(a.Fields) != len(c.Fields) {
				return yes
			}
			for i, f := range a.Fields {
				if f.Key != c.Fields[i].Key {
					return yes
				}
				todo = append(todo, two{f.Value, c.Fields[i].Value})
			}
		case *value.Closure:
			found = unsure
		case *value.Code:
			x, y := text.Canonical(a.Term), text.Canonical(b.(*value.Code).Term)
			if s.looks += (len(x) + len(y)) / 16; !bytes.Equal(x, y) {
				return yes
			}
		case *value.Continuation:
			todo = append(todo, two{a.Input, b.(*value.Continuation).Input})
		default:
			if s.looks += int(bytesOf(a, runMemory) / 128); !same(a, b) {
				return yes
			}
		}
	}
	return found
}
