// Package core is PIF for Go programs: read, compile, run with budgets.
//
// A [Program] is compiled once and shared; a [Machine] is one run of it:
//
//	p, err := core.Compile([]byte(`n => n * n`))
//	r, err := core.Run(ctx, p, []byte(`12`), core.Budgets{})
//	fmt.Println(r.Value)
//
// [Run] is the short way. Nothing here acts on the world. A program that asks for an effect suspends
// its machine with a [Request]; the caller decides, acts or doesn't, and goes
// on with [Machine.Resume]. A machine isn't tied to a goroutine, and is
// cancelled by running it in slices and not running the next one.
//
// What is wrong with code, an input or a run is a [*fault.Fault].
package core

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// The defaults of [Budgets].
const (
	DefaultSteps  = eval.DefaultSteps
	DefaultMemory = eval.DefaultMemory
	DefaultDepth  = eval.DefaultDepth
)

// Budgets bound a run. A zero field means its default; see package eval for the largest.
type Budgets = eval.Budgets

// The machine's own types; see package eval.
type (
	Machine = eval.Machine
	Share   = eval.Share
	Stake   = eval.Stake
	State   = eval.State
	Request = eval.Request
	Answer  = eval.Answer
	Tool    = eval.Tool
	Tools   = eval.Tools
	Encoded = text.Encoded
)

// What [Machine.Run] returns.
const (
	Paused    = eval.Paused
	Done      = eval.Done
	Suspended = eval.Suspended
	Failed    = eval.Failed
)

// Semantics is the version of what programs mean. It is raised when a program
// may give another result, other steps or another fault than before: a record of
// a run says under which it was made, so that a replay that differs can be told
// from one that can't be the same. What infer, normalize and equivalent give, and
// take, is part of that: it changes with the checker. With 6 a fault inside a row of
// the library is one of that row, and places in the text form are lines and columns;
// with 7 div divides decimals; with 8 MM after the hour is the minute in layouts of dates, and
// a pattern of two in the text form fits a list or a pair; with 9 slices are joined by what they
// are, and a tool of several parameters that may give anything takes a list of its inputs; with 10
// at gives the parts of a pair, and from_entries takes lists of two; with 11 "ceil" is the rounding "ceiling",
// a layout of minutes needs no hour, and repeat in the text form takes a text that it is given; with 12 to_dec and
// parse_int read a plus, and to_dec zeros before a number and none before its point; with 13 self in inline code in
// the text form that is a function is that function, None, True and the like are literals in patterns, and
// [x] * n repeats; with 14 what Python and JavaScript write in the text form is read as they do: {{ and formats in
// f"{x:05d}", s.find(a, from), the index in reduce without a first value; what a pattern for lists tells ends with
// its branches, and a function before a let in the next line, that nothing uses, is refused; with 15 the second parameter of the function in pairs.map((p, i) => p[0]) is the index,
// and x?.f(y) null where x is missing; with 16 code that asks for different operations isn't equal, to_url makes no URL
// whose parts are others, a key of a query that is no UTF-8 is a fault, add_time adds no zone, SS is hundredths, and
// ${} in re_replace is text; infer says that what a failed request raises is data,
// and that what is compared with null may be null; with 17 parse_time refuses an hour of AM or PM that there is not,
// pad_left and pad_right give a text as it is for any width below zero, and a ; in a URL's query is part of a value; with 18 the digits of integers
// in a result take steps beyond those of an integer of 1 MiB, and to_csv quotes what begins with a byte order mark;
// with 19 a function behind lets is given its inputs by their names, as any other is, and {x} is a record of one key
// behind => too.
const Semantics = 19

// SetPool sets how many bytes all machines of the process may hold together,
// 128 MiB where it isn't called. A run that finds no room there fails with overloaded.
func SetPool(bytes int64) { eval.SetPool(bytes) }

// A Keeper counts what is kept for later, and drops it where runs need the room.
type Keeper = eval.Keeper

// Lend counts bytes more of a run that aren't a machine's, or fewer; see [eval.Lend].
func Lend(s *Stake, bytes int64) bool { return eval.Lend(s, bytes) }

// Program is code that was read and compiled: immutable, shared between
// goroutines.
type Program struct {
	prog    eval.Program
	unit    code.Unit
	derived atomic.Pointer[derived] // nil: nothing was asked for yet
}

// A derived is what is found out of a program once it is asked for; apart, since most runs ask for nothing.
type derived struct {
	canonical sync.Once
	json      []byte
	hash      string
	size      atomic.Int64 // 0: not known yet
	typed     sync.Once
	params    []string
	takes     func(param int, v Value) bool
	inferred  sync.Once
	report    *check.Report // by which inputs are read
	free      []string      // of code that is no lambda, from the start
	notes     []string      // of the code's reading, from the start
}

func (p *Program) derive() *derived {
	d := p.derived.Load()
	if d == nil {
		p.derived.CompareAndSwap(nil, new(derived))
		d = p.derived.Load()
	}
	return d
}

// Compile reads inline code of at most 256 KiB, which must not change afterwards:
// well-formed JSON, or else the text form. A fault is one of JSON where the code begins as
// only JSON does. In inline code there is no self; see [CompileInline] and [CompileTool].
func Compile(src []byte) (*Program, error) {
	p, err := compile("", src)
	if err == nil || json.Valid(src) {
		return p, err
	}
	start := bytes.TrimLeft(src, " \t\r\n[")
	if t, textErr := CompileText("", src); textErr == nil || len(start) > 0 && !bytes.HasPrefix(start, []byte(`{"`)) {
		return t, textErr
	}
	return p, err
}

// CompileTool reads the code of the tool called name, as JSON: self is its function.
// Without a name it is inline code, in JSON alone. Code that is no lambda and has exactly one free
// variable is the function of that variable. src must not change afterwards.
func CompileTool(name string, src []byte) (*Program, error) { return compile(name, src) }

// Older gives what the code of a tool, JSON or in the text form, meant to programs of
// before [Semantics] 6, the newest first: before 5 a number of JSON with a point or an
// exponent was rounded to an integer.
func Older(name string, src []byte, isText bool) iter.Seq[*Program] {
	return func(yield func(*Program) bool) {
		if isText {
			if p, err := compileText(name, src, text.Options{Tool: name, Older: true}); err == nil {
				yield(p)
			}
			return
		}
		for _, round := range []bool{false, true} {
			parsed, f := parse.ReadCode(src, parse.Options{Tool: name, Older: true, Round: round})
			if f != nil {
				continue
			}
			if p, err := compileParsed(name, parsed); err == nil && !yield(p) {
				return
			}
		}
	}
}

// CompileText reads code in the text form, of a tool where name isn't empty. src must not
// change afterwards.
func CompileText(name string, src []byte) (*Program, error) {
	return compileText(name, src, text.Options{Tool: name})
}

// CompileInline is [CompileText] of code that is no tool's, in which self is the function that
// it is. src must not change afterwards.
func CompileInline(src []byte) (*Program, error) { return CompileUnder(Semantics, src) }

// CompileUnder is [CompileInline] of code that was recorded under an earlier version of
// [Semantics], from 6 on, as far as that differed in what is read.
func CompileUnder(semantics int, src []byte) (*Program, error) {
	return compileText("", src, text.Options{Inline: semantics >= 13, Semantics: semantics})
}

func compileText(name string, src []byte, o text.Options) (*Program, error) {
	t, f := check.ReadText(src, o)
	if f != nil {
		return nil, f
	}
	return compileParsed(name, parse.Parsed{Term: t.Term, Source: t.Source, Notes: t.Notes})
}

// LoneName returns the name that is all there is in a source of the text form:
// no keyword and no operation. It is hardly ever meant as a program.
func LoneName(src []byte) (name string, ok bool) { return text.Lone(src) }

func compile(name string, src []byte) (*Program, error) {
	parsed, f := parse.ReadCode(src, parse.Options{Tool: name})
	if f != nil {
		return nil, f
	}
	return compileParsed(name, parsed)
}

func compileParsed(name string, parsed parse.Parsed) (*Program, error) {
	p := new(Program)
	if name != "" {
		parsed.Source.In = "tool:" + name
	}
	if parsed.Notes != nil {
		p.derive().notes = parsed.Notes
	}
	t := parsed.Term
	if _, ok := t.(*term.Lam); !ok {
		free := parse.Free(t)
		p.derive().free = free
		if name != "" && len(free) == 1 {
			t = &term.Lam{At: term.At(t.Pos()), Param: free[0], Body: t}
		}
	}
	p.prog = eval.Program{
		Term: parsed.Term, Source: parsed.Source, Tool: name, IsTool: name != "",
		Unit: &p.unit,
	}
	code.CompileTo(&p.unit, t, code.Options{Tool: name != ""})
	if p.unit.Entangled {
		return nil, entangled(parsed.Source.In)
	}
	return p, nil
}

func entangled(in string) *fault.Fault {
	return &fault.Fault{
		Kind: fault.ParseError, In: in,
		Message:  fmt.Sprintf("functions inside each other use more than %d variables of those around them", code.MaxCaptures),
		Expected: "functions that use fewer variables from outside",
		Hint:     `Pass what a function needs as its arguments, together in a record: {"app":[F,{"record":{"a":A,"b":B}}]}.`,
	}
}

// Canonical returns the program as canonical JSON: keys sorted, no spaces. It
// is what is stored, hashed and shown; the caller must not change it.
func (p *Program) Canonical() []byte {
	d := p.derive()
	d.canonical.Do(func() {
		d.json = text.Canonical(p.prog.Term)
		d.hash = hashOf(d.json)
	})
	return d.json
}

// hashOf is the SHA-256 of canonical JSON, in hexadecimal.
func hashOf(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// Text returns the program in the text form, laid out for reading. As a string
// of code it says the same program: see [text.Alone].
func (p *Program) Text() []byte { return text.Alone(p.prog.Term, Print(p.prog.Term)) }

// Hash returns the SHA-256 of the canonical JSON, in hexadecimal.
func (p *Program) Hash() string {
	p.Canonical()
	return p.derive().hash
}

// Notes tell of what in the source is legal but perhaps not meant: rounded
// numbers, ignored keys, free variables. The slice is the caller's.
func (p *Program) Notes() []string {
	notes := slices.Clone(p.derive().notes)
	free := p.Free()
	if p.prog.Tool != "" && len(free) == 1 && !p.lambda() {
		return append(notes, fmt.Sprintf("the variable %q is free: running the tool binds it to the input", free[0]))
	}
	for _, name := range free {
		notes = append(notes, fmt.Sprintf("the variable %q is free: using it fails unless the code is evaluated where it is bound", name))
	}
	return slices.Clip(notes)
}

func (p *Program) lambda() bool {
	_, ok := p.prog.Term.(*term.Lam)
	return ok
}

// Free returns the names of the free variables, in order of first use.
func (p *Program) Free() []string {
	if p.lambda() {
		return parse.Free(p.prog.Term)
	}
	return slices.Clone(p.derive().free)
}

// IsFunction reports whether the code is known to give a function.
func (p *Program) IsFunction() bool {
	return len(p.Params()) > 0
}

// Params returns the names of the parameters of a function; see [term.Params].
func (p *Program) Params() []string {
	if !p.lambda() && p.prog.Tool != "" {
		if free := p.derive().free; len(free) == 1 {
			return slices.Clone(free)
		}
	}
	return term.Params(p.prog.Term)
}

// Effects returns the operations ("fs.read") that the code names outside
// quotes, sorted.
func (p *Program) Effects() []string { return term.Effects(p.prog.Term) }

// Term returns the syntax tree.
func (p *Program) Term() term.Term { return p.prog.Term }

// Advise returns a fault of a run of this code, as [Machine.Fault] gives it, with a hint in words of
// the code that failed, where that says how it may be meant, and in the form that the code is in.
// [Run] has done it.
func (p *Program) Advise(f *fault.Fault) *fault.Fault {
	if f == nil {
		return nil
	}
	g := *f
	if f.In == p.prog.Source.In {
		if message, hint := check.NoFunction(p.prog.Term, p.prog.Source, f); message != "" {
			g.Message, g.Hint = message, hint
		} else if hint = check.OwnHint(p.prog.Term, p.prog.Source, f); hint != "" {
			g.Hint = hint
		}
	}
	if p.prog.Source.Form == term.PIF {
		g.Hint = HintInText(g.Hint)
	}
	return &g
}

// Tool returns the program as what code_of finds under its name. What its own
// code looks tools up in, for a call, is still to be filled in.
func (p *Program) Tool() Tool {
	d := p.derive()
	d.typed.Do(func() {
		d.params = prim.Placed(p.Params())
		if p.prog.Tool != "" {
			d.takes = check.Takes(p.prog.Tool, p.prog.Term)
		}
	})
	return Tool{Term: p.prog.Term, Source: p.prog.Source, Name: p.prog.Tool, Size: p.Size(), Params: d.params, Takes: d.takes}
}

// InputAs says how a run's input is read.
type InputAs = parse.Mode

// The ways to read an input.
const (
	// InputData, the zero value, evaluates nothing: JSON as it is, numbers exact,
	// with the shapes in which results are shown read back.
	InputData = parse.Data
	// InputAuto is the predecessor's reading: a term, after numbers, truth values
	// and JSON that were sent as strings have become what they say; an object
	// without an operation is a record, and numbers are rounded to integers.
	InputAuto = parse.Auto
	// InputTerm reads a term, as code is read, but rounds numbers to integers.
	InputTerm = parse.Term
	// InputRounded is InputData as it was before Semantics 5: numbers are rounded to
	// integers. Examples of older stores are read so.
	InputRounded = parse.Rounded
)

// Input is an input that was read. The zero value is null. It is immutable and
// may be used by any number of runs.
type Input struct {
	// Notes tell of what normalising changed.
	Notes []string
	read  *reading // nil: null
}

// A reading is an input's parts; apart, so that an Input is small enough to be passed in registers.
type reading struct {
	prog  eval.Program
	room  parse.Room
	large *largeInput // in place of the others
}

// A largeInput is one whose term isn't kept beside its value: a run that begins takes it, and
// reads it again where another has. It is a text, or parts of which one at least is large.
type largeInput struct {
	src   []byte
	as    InputAs
	read  atomic.Pointer[parse.Parsed]
	parts []Input
	done  atomic.Pointer[func()]
}

// largeText is from how many bytes on the text of an input is large.
const largeText = 256 << 10

// LargeValues returns how many values are in the text of a large input, about; 0: it isn't large.
func LargeValues(src []byte) (n int64) {
	if len(src) < largeText {
		return 0
	}
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case ',', '[', '{', ':':
			n++
		case '"':
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		}
	}
	return min(n+1, parse.MaxValues)
}

// program returns what a machine runs of the input.
func (in Input) program() *eval.Program {
	if in.read == nil {
		return nil
	}
	return &in.read.prog
}

// whole returns the input with its terms.
func (in Input) whole() Input {
	if in.read == nil || in.read.large == nil {
		return in
	}
	return in.read.large.whole()
}

// input returns the input that stands for the large one.
func (l *largeInput) input(notes []string, r *reading) Input {
	r.large = l
	r.prog.Large = &eval.Large{Whole: func() *eval.Program { return l.whole().program() }}
	return Input{notes, r}
}

func (l *largeInput) whole() Input {
	if l.parts != nil {
		parts := make([]Input, len(l.parts))
		for i := range parts {
			parts[i] = l.parts[i].whole()
		}
		return joinInputs(parts)
	}
	p := l.read.Swap(nil)
	if p == nil {
		p, _ = parse.Input(l.src, l.as) // it could be read before
	}
	in := new(reading).of(*p, l.as)
	in.read.prog.Large = &eval.Large{Imported: func() {
		if done := l.done.Load(); done != nil {
			(*done)()
		}
	}}
	return in
}

// Imported has done be called when a run needs the terms of a large input no more, since it has the
// value, and reports whether the input is large. It may be called at any time, and never where the
// run ends before.
func (in Input) Imported(done func()) bool {
	if !in.isLarge() {
		return false
	}
	in.read.large.done.Store(&done)
	for _, part := range in.read.large.parts {
		part.Imported(done)
	}
	return true
}

// all returns what was read of each input; nil for null.
func (in Input) all() []*parse.Parsed {
	if in.read == nil {
		return []*parse.Parsed{nil}
	}
	var all []*parse.Parsed
	for p := in.whole().program(); p != nil; p = p.Next {
		all = append(all, &parse.Parsed{Term: p.Term, Source: p.Source})
	}
	return all
}

func (in Input) isLarge() bool { return in.read != nil && in.read.large != nil }

func (r *reading) of(in parse.Parsed, as InputAs) Input {
	evals := as != InputData && mayEval(in.Source.Text) && code.Evals(in.Term)
	r.prog = eval.Program{Term: in.Term, Source: in.Source, Evals: evals}
	return Input{in.Notes, r}
}

// ParseInput reads an input of at most 16 MiB; an empty src is null. src must
// not change afterwards. A fault's In is "input".
func ParseInput(src []byte, as InputAs) (Input, error) {
	r := new(reading)
	room := &r.room
	if len(src) >= largeText {
		room = nil // it would keep the terms
	}
	in, f := parse.ReadInput(room, src, as)
	if f != nil {
		return Input{}, f
	}
	if room != nil {
		return r.of(in, as), nil
	}
	large, read := &largeInput{src: src, as: as}, in
	large.read.Store(&read)
	return large.input(in.Notes, r), nil
}

// mayEval is a quick test whether an operation eval can be in JSON: its key, or
// one that is written with escapes.
func mayEval(src []byte) bool {
	return len(src) > len(`"eval"`) && (bytes.Contains(src, []byte(`"eval"`)) || bytes.IndexByte(src, '\\') >= 0)
}

// Start returns a machine that will run p: the code is evaluated, and where it
// gives a function that is applied to the input, or to each of [Inputs]. tools may
// be nil. [Machine.Release] it when you are done: until then its memory counts for all
// machines of the process.
func (p *Program) Start(in Input, b Budgets, tools Tools) *Machine {
	return eval.Start(&p.prog, in.program(), b, tools)
}

// Restart makes a machine run p, as Start does, without returning it to the
// pool in between. Any state of its last run is gone, except the stake that its memory
// counts for: see [Machine.Draw].
func (p *Program) Restart(m *Machine, in Input, b Budgets, tools Tools) {
	m.Reset(&p.prog, in.program(), b, tools)
}

// A Value is what evaluation gives; see package value.
type Value = value.Value

// runSlice is how many steps [Run] takes before it looks at its context.
const runSlice = 100_000

// A Result is what a run gave.
type Result struct {
	// Value is the result as Go data, and JSON the same as JSON, exact.
	Value Value
	JSON  []byte
	// Steps is how many were used.
	Steps uint64
	// Notes tell what was ignored in the code, and how the input was read.
	Notes []string
}

// Run evaluates a program on an input: JSON that is read by the types of the program's
// parameters, as [Program.ReadInput] does; empty: null. Zero budgets are the defaults. The
// run ends with the context, whose error is the cause of the fault.
//
// It performs nothing. A program that asks for an effect fails with denied: [Program.Start]
// is for hosts that answer one, and for calls in a hot loop. Errors are of type
// [*fault.Fault]; overloaded is that of a run for which the others left no room in the pool,
// see [SetPool].
func Run(ctx context.Context, p *Program, input []byte, b Budgets) (Result, error) {
	in, err := p.ReadInput(input)
	if err != nil {
		return Result{}, err
	}
	m := p.Start(in, b, nil)
	defer m.Release()
	stop := func() bool { return ctx.Err() != nil }
	failed := func(f *fault.Fault) error {
		if f.Kind == fault.Cancelled {
			f = &fault.Fault{Kind: fault.Cancelled, Message: fmt.Sprintf("the run was ended after %d steps: %v", m.Steps(), ctx.Err()), Cause: ctx.Err()}
		}
		return f
	}
	for {
		if stop() {
			return Result{}, failed(&fault.Fault{Kind: fault.Cancelled})
		}
		switch m.RunUntil(runSlice, stop) {
		case Failed:
			return Result{}, failed(p.Advise(m.Fault()))
		case Suspended:
			q := m.Requests()[0]
			f := &fault.Fault{
				Kind: fault.Denied, At: q.At, In: q.Where, Message: q.Op + ": nothing performs effects here",
				Hint: "Start a machine, and answer its requests.",
			}
			if _, err := fmt.Sscanf(string(q.At), "%d:%d", &f.Line, &f.Col); err == nil {
				f.At = "" // of the text form
			}
			return Result{}, f
		case Done:
			enc, f := m.EncodeUntil(int(b.OrDefault().Memory), stop)
			if f != nil {
				return Result{}, failed(f)
			}
			if int64(len(enc.JSON)) < enc.Total {
				return Result{}, &fault.Fault{Kind: fault.ResultTooLarge, Message: fmt.Sprintf("the result has %d bytes as JSON, more than the budget of memory", enc.Total)}
			}
			v, f := m.ValueUntil(stop)
			if f != nil {
				return Result{}, failed(f)
			}
			return Result{v, enc.JSON, m.Steps(), append(p.Notes(), in.Notes...)}, nil
		}
	}
}

// Parse reads a term in either spelling: well-formed JSON, or else the text form. It
// is what [Compile] and [CompileText] read, without compiling it; src must not change
// afterwards.
func Parse(src []byte) (term.Term, error) {
	if json.Valid(src) {
		p, f := parse.Code(src, parse.Options{})
		if f != nil {
			return nil, f
		}
		return p.Term, nil
	}
	p, f := check.ReadText(src, text.Options{})
	if f != nil {
		return nil, f
	}
	return p.Term, nil
}

// Print writes a term in the text form, laid out for reading. [Parse] gives it back.
func Print(t term.Term) []byte { return check.PrintText(t) }

// Follow runs p on an input as Start and Run would, with labels; see package flow. It
// fills in what c says of the program, its inputs and its budgets. shadows are where the
// inputs come from, the first one's and so on; those that are missing have no labels.
func (p *Program) Follow(ctx context.Context, in Input, b Budgets, c flow.Config, shadows ...*flow.Shadow) (flow.Result, error) {
	c.Term, c.Source, c.Tool = p.prog.Term, p.prog.Source, p.prog.Tool
	e := b.OrDefault()
	c.Budgets = naive.Budgets{Steps: e.Steps, Memory: e.Memory, Depth: e.Depth}
	for _, parsed := range in.all() {
		c.Inputs = append(c.Inputs, flow.Input{Parsed: parsed})
	}
	for i := range c.Inputs {
		if i < len(shadows) {
			c.Inputs[i].Shadow = shadows[i]
		}
	}
	return flow.Run(ctx, c)
}

// A TraceEvent is one evaluation of a term: its place, its variables, what is
// left of the budget.
type TraceEvent = naive.Scene

// A TraceEnding is the end of an evaluation of a term and of those that go on with it.
type TraceEnding = naive.Ending

// Tracing is how [Program.TraceWith] looks at a run.
type Tracing struct {
	Tools Tools // may be nil
	// Visit is called before each evaluation of a term; false ends the trace.
	// nil: nothing is called.
	Visit func(TraceEvent) bool
	// Ended is told of the end of each evaluation; nil: nothing is called.
	Ended func(TraceEnding)
	// Asked is told of the steps used before each round of requests; nil: nothing is called.
	Asked func(steps uint64)
	// Answer answers a round of requests, in order, as [Machine.Resume] is
	// given them; nil: every effect is denied. Whoever traces a run that was
	// recorded answers from the record.
	Answer func([]Request) []Answer
}

// Trace runs p as Start and Run would, on the reference evaluator, which is
// slow, and calls visit before each evaluation of a term. Effects are denied.
// It returns the result as JSON, its first 256 KiB, with the steps used. The budget of memory
// bounds what a machine holds at once; here all that is ever allocated counts, up to 16 times
// the budget, so a long run may end with out_of_memory here alone.
func (p *Program) Trace(in Input, b Budgets, tools Tools, visit func(TraceEvent)) (Encoded, uint64, *fault.Fault) {
	return p.TraceWith(in, b, Tracing{Tools: tools, Visit: func(e TraceEvent) bool {
		visit(e)
		return true
	}})
}

// TraceWith is [Program.Trace] with effects that are answered, and an end that
// the visitor may choose: the fault is of kind cancelled then.
func (p *Program) TraceWith(in Input, b Budgets, t Tracing) (Encoded, uint64, *fault.Fault) {
	e := b.OrDefault()
	inputs := in.all()
	v, steps, f := naive.Run(naive.Config{
		Term: p.prog.Term, Source: p.prog.Source, Tool: p.prog.Tool, Input: inputs[0], More: inputs[1:],
		Budgets: naive.Budgets{Steps: e.Steps, Memory: e.Memory, Depth: e.Depth},
		Tools:   t.Tools, Handler: t.Answer, Visit: t.Visit, Ended: t.Ended, Asked: t.Asked,
	})
	if f != nil {
		return Encoded{}, steps, f
	}
	enc, more, f := text.EncodeWithin(v, 256<<10, e.Memory, steps, e.Steps, nil)
	return enc, steps + more, f
}

// Inputs joins inputs for functions of several parameters, one after the other:
// what comes of the first is applied to the second, and so on. Each costs what
// the first one does: its own steps, and one for the application. Where anything
// but a function comes of an input that others follow, the run fails with
// type_error at the whole code; code that gives no function ignores all of them.
// Without any the input is null.
func Inputs(all ...Input) Input {
	if len(all) == 1 {
		return all[0]
	}
	if slices.ContainsFunc(all, Input.isLarge) {
		var notes []string
		for _, in := range all {
			notes = append(notes, in.Notes...)
		}
		return (&largeInput{parts: slices.Clone(all)}).input(notes, new(reading))
	}
	return joinInputs(all)
}

func joinInputs(all []Input) Input {
	var joined Input
	var progs []eval.Program
	for _, in := range all {
		joined.Notes = append(joined.Notes, in.Notes...)
		if in.read == nil {
			progs = append(progs, eval.Program{Term: &term.Unit{}})
		}
		for p := in.whole().program(); p != nil; p = p.Next {
			progs = append(progs, *p)
		}
	}
	if len(progs) == 0 {
		return joined
	}
	for i := range progs[1:] {
		progs[i].Next = &progs[i+1]
	}
	// Whether the program is compiled for evals around it is decided once.
	progs[0].Evals = slices.ContainsFunc(progs, func(p eval.Program) bool { return p.Evals })
	joined.read = &reading{prog: progs[0]}
	return joined
}

// readSteps bounds the inference of a program's types for reading its input.
const readSteps = 60_000

// ReadInput reads an input by the types that are inferred of the program's parameters,
// as the server does; see [check.Read]. Several parameters are one record by their
// names. An empty src is null. src isn't kept. Faults: parse_error, and invalid_request
// for a missing or unknown parameter.
func (p *Program) ReadInput(src []byte) (Input, error) {
	src = bytes.Clone(src)
	d := p.derive()
	d.inferred.Do(func() {
		env := check.Env{Tool: p.prog.Tool, OneKind: true}
		d.report = check.Infer(p.prog.Term, p.prog.Source, env, check.Budget{Steps: readSteps, Places: 1})
	})
	r, f := check.Read(json.RawMessage(src), d.report, nil)
	if f != nil {
		return Input{}, f
	}
	as := InputData
	if r.Term {
		as = InputTerm
	}
	all := make([]Input, len(r.Values))
	for i, raw := range r.Values {
		in, err := ParseInput(raw, as)
		if err != nil {
			return Input{}, err
		}
		all[i] = in
	}
	in := Inputs(all...)
	in.Notes = append(r.Notes[:len(r.Notes):len(r.Notes)], in.Notes...)
	return in, nil
}
