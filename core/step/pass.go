package step

import (
	"context"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A pass is one evaluation of all rounds, or of their beginning.
type pass struct {
	ctx     context.Context
	rounds  []Round
	max     uint64
	from    uint64 // the points before aren't made
	to      uint64 // nor are those from there on; 0: all are
	profile *Profile
	sum     *summary          // nil: none is wanted
	visit   func(*Point) bool // false ends the pass

	n       uint64 // of the next point
	point   Point  // that is shown, used again
	stopped bool
	cut     bool // the round ends here, for what isn't its program's
	round   int
	now     *Round
	awaited int    // endings that are waited for
	frames  uint64 // that were made
	asked   uint64 // the steps at the last round of requests
	other   *frame // of a document that isn't the code's

	terms  map[term.Term]*info
	lines  map[*term.Source]*text.LineIndex
	stacks map[int]*stack    // of the branches of par, by number; 0: outside
	paths  map[string]*stack // the same by their paths
	at     *stack            // that runs
	value  value.Value       // of the round
}

func (w *Walk) newPass(ctx context.Context) *pass {
	return &pass{ctx: ctx, rounds: w.rounds, max: w.max, lines: map[*term.Source]*text.LineIndex{}}
}

// mostTerms is how many terms a pass knows at once. Code that is made at run time
// may have more.
const mostTerms = 100_000

// An info is what is known of a term wherever it is evaluated.
type info struct {
	line int
	fn   *fn    // whose body it is
	name string // of a function that is bound to one
	let  bool   // a function that is applied where it stands
}

// A fn is a function as it is written.
type fn struct {
	name string
	in   string // the document
	line int    // 0: it is what a row of the library means
}

// A frame is an application that hasn't returned.
type frame struct {
	fn     *fn
	n      uint64          // among all frames of a pass, from 1; of any other pass, too
	deep   int             // how many there are around it, and itself
	call   core.TraceEvent // that applied it
	line   int             // of the call
	parent *frame
	node   *Node // of the call, in a profile
}

// in reports whether f, or one that called it, is of. They may be of two passes.
func (f *frame) in(of *frame) bool {
	for of != nil && f != nil && f.n > of.n {
		f = f.parent
	}
	return of == nil || f != nil && f.n == of.n
}

// depth is how many frames there are, with those that called it.
func (f *frame) depth() int {
	if f == nil {
		return 0
	}
	return f.deep
}

// A stack is the evaluations under way in one branch.
type stack struct {
	id     int
	path   string
	outer  *stack // that its par is in
	base   level  // of that, as it was then
	levels []level
}

// A level is an evaluation under way.
type level struct {
	n      int
	scene  core.TraceEvent // the last one
	line   int
	frame  *frame
	ending *ending // nil: nobody has asked
	// failed is the faults of evaluations inside, and branches those of its par.
	failed   []*fault.Fault
	branches []int
}

func (s *stack) top() *level {
	if n := len(s.levels); n > 0 {
		return &s.levels[n-1]
	}
	return &s.base
}

func (p *pass) run(visit func(*Point) bool) error {
	p.visit = visit
	for i := range p.rounds {
		p.round, p.now, p.cut, p.value = i, &p.rounds[i], false, nil
		p.terms = map[term.Term]*info{}
		p.at = &stack{base: level{n: -1}}
		p.stacks, p.paths = map[int]*stack{0: p.at}, map[string]*stack{"": p.at}
		var tools core.Tools
		answer := func(requests []core.Request) []core.Answer {
			answers := make([]core.Answer, len(requests))
			for i := range requests {
				answers[i].Fault = prim.Denied(requests[i].Op)
			}
			return answers
		}
		if p.now.Begin != nil {
			tools, answer = p.now.Begin()
		}
		result, steps, f := p.now.Program.TraceWith(p.now.Input, p.now.Budgets, core.Tracing{
			Tools: tools, Visit: p.eval, Ended: p.ended, Asked: func(steps uint64) { p.asked = steps },
			Answer: func(requests []core.Request) []core.Answer {
				answers := answer(requests)
				p.effects(requests, answers)
				return answers
			},
		})
		if err := p.ctx.Err(); err != nil {
			return err
		}
		if p.stopped {
			return nil
		}
		if p.now.Ended != nil {
			result, steps, f = core.Encoded{}, p.now.Steps, p.now.Ended
		}
		if p.profile != nil {
			p.profile.goTo(nil, 0) // writing the result
			p.profile.spend(p.now.Before + steps)
		}
		if p.outgrown(f) {
			p.end(Limit, steps, core.Encoded{}, nil)
			return nil
		}
		p.end(End, steps, result, f)
		if p.stopped {
			return nil
		}
	}
	return nil
}

// outgrown reports whether a fault may be the reference evaluator's alone: it counts all that a
// run ever allocates, and a machine what it holds.
func (p *pass) outgrown(f *fault.Fault) bool {
	return f != nil && f.Kind == fault.OutOfMemory && p.now.Ended == nil
}

// end emits the point at the end of a round, or of the walk.
func (p *pass) end(kind Kind, steps uint64, result core.Encoded, f *fault.Fault) {
	p.point = Point{Kind: kind, Steps: p.now.Before + steps, Result: result, ending: &ending{known: kind == End, value: p.value, fault: f}}
	if f != nil {
		p.point.ending.value = nil
	}
	if p.sum != nil {
		p.sum.add(p.n, kind, p.point.Steps, &level{}, &core.TraceEvent{}, false)
	}
	p.emit()
}

// emit gives the point to the visitor.
func (p *pass) emit() {
	p.point.N, p.point.Round = p.n, p.round
	p.n++
	p.stopped = p.stopped || !p.visit(&p.point)
}

// emitAt emits a point at a level, unless nobody is to see it.
func (p *pass) emitAt(kind Kind, l *level, s *core.TraceEvent, steps uint64, moved bool, q *Request) {
	if p.sum != nil {
		p.sum.add(p.n, kind, p.now.Before+steps, l, s, moved)
	}
	if p.n < p.from || p.to > 0 && p.n >= p.to {
		p.n++
		return
	}
	if l.ending == nil {
		l.ending = &ending{}
	}
	p.point = Point{
		Kind: kind, Steps: p.now.Before + steps, Request: q,
		scene: *s, some: s.Term != nil, frame: l.frame, line: l.line, moved: moved, ending: l.ending,
	}
	p.emit()
}

// awaits has the pass go on until an ending is known.
func (p *pass) awaits(e *ending) {
	if !e.known && !e.awaited {
		e.awaited = true
		p.awaited++
	}
}

// eval is told of an evaluation.
func (p *pass) eval(s core.TraceEvent) bool {
	switch {
	case p.stopped || p.cut:
		return false
	case p.n%4096 == 0 && p.ctx.Err() != nil:
		p.stopped = true
		return false
	case p.now.Ended != nil && s.Step >= p.now.Steps:
		p.cut = true
		return false
	case p.n+1 >= p.max:
		p.end(Limit, s.Step, core.Encoded{}, nil)
		p.stopped = true
		return false
	}
	st := p.stackOf(&s)
	top, of := st.top(), p.infoOf(&s)
	call, line, base := &top.scene, top.line, top.frame
	if s.Level > top.n {
		st.levels = append(st.levels, level{n: s.Level, frame: base})
		top = st.top()
	} else if base = st.base.frame; len(st.levels) > 1 {
		base = st.levels[len(st.levels)-2].frame
	}
	moved := of.line != line || of.fn != nil
	if of.fn != nil {
		p.frames++
		top.frame = &frame{fn: of.fn, n: p.frames, deep: base.depth() + 1, call: *call, line: line, parent: base}
	}
	top.line = of.line
	// The program of a tool that is called runs at the level of the call.
	if c, ok := top.scene.Term.(*term.Prim); !ok || c.ID != prim.Call {
		top.scene = s
	}
	if p.profile != nil {
		if p.profile.in == "" {
			p.profile.in = s.In()
		}
		p.profile.spend(p.now.Before + s.Step)
		p.profile.goTo(p.frameOf(top), top.line)
		p.profile.at.Evaluations++
	}
	p.emitAt(Eval, top, &s, s.Step, moved, nil)
	return !p.stopped
}

// infoOf finds out about the term of a scene, and about the functions in it.
func (p *pass) infoOf(s *core.TraceEvent) *info {
	in, ok := p.terms[s.Term]
	if ok && in.line >= 0 {
		return in
	}
	if len(p.terms) > mostTerms {
		clear(p.terms)
	}
	in = p.term(s.Term)
	in.line = 0
	if src, offset := s.Source(); src != nil {
		lines, ok := p.lines[src]
		if !ok {
			lines = text.Lines(src.Text)
			p.lines[src] = lines
		}
		in.line, _ = lines.Position(offset)
	}
	switch t := s.Term.(type) {
	case *term.App:
		var args []term.Term
		var f term.Term = t
		for app, ok := f.(*term.App); ok; app, ok = f.(*term.App) {
			f, args = app.Func, append(args, app.Arg)
		}
		for i := len(args) - 1; i >= 0; i-- {
			lam, ok := f.(*term.Lam)
			if !ok {
				break
			}
			if p.term(lam).let = true; s.Row(t) == "" {
				p.call(args[i], lam.Param)
			}
			f = lam.Body
		}
	case *term.LetRec:
		for _, f := range t.Funcs {
			p.call(f.Lam, f.Name)
		}
	case *term.Lam:
		if s.Root() == s.Term || s.Root() == t.Body {
			p.call(t, s.Tool())
		}
		if _, more := t.Body.(*term.Lam); more || in.let {
			break
		}
		f := &fn{name: in.name, in: s.In(), line: in.line}
		if row := s.Row(t); row != "" {
			f.name, f.line = row, 0
		} else if f.name == "" && s.Root() != s.Term {
			f.name = nameless(s, t)
		}
		p.term(t.Body).fn = f
	}
	return in
}

// nameless is what a function without a name is called: its parameters, as they are written.
func nameless(s *core.TraceEvent, t *term.Lam) string {
	name := t.Param
	if src, offset := s.Source(); src != nil && src.Form == term.PIF && offset < len(src.Text) {
		name, _, _ = strings.Cut(string(src.Text[offset:min(len(src.Text), offset+4*shownName)]), "=>")
	}
	return display.Truncate(strings.Join(strings.Fields(name), " "), shownName) + " => …"
}

// term is what is known of a term; its line isn't where it is below 0.
func (p *pass) term(t term.Term) *info {
	in, ok := p.terms[t]
	if !ok {
		in = &info{line: -1}
		p.terms[t] = in
	}
	return in
}

// call gives a function that is a term, and those that it gives, a name.
func (p *pass) call(t term.Term, name string) {
	for lam, ok := t.(*term.Lam); ok; lam, ok = lam.Body.(*term.Lam) {
		if in := p.term(lam); in.name == "" {
			in.name = name
		}
	}
}

// frameOf is what a level's steps are spent in: those of an input apart from the code's.
func (p *pass) frameOf(l *level) *frame {
	if l.frame == nil && l.scene.Term != nil && l.scene.In() != p.profile.in {
		if p.other == nil || p.other.fn.in != l.scene.In() {
			p.other = &frame{fn: &fn{in: l.scene.In(), line: 1}}
		}
		return p.other
	}
	return l.frame
}

// stackOf finds the stack of the branch that a scene is in.
func (p *pass) stackOf(s *core.TraceEvent) *stack {
	id := s.Branch()
	if id == p.at.id {
		return p.at
	}
	st, ok := p.stacks[id]
	if !ok {
		path, outer := s.Path()
		around := p.stacks[outer].top()
		around.branches = append(around.branches, id)
		st = &stack{id: id, path: path, outer: p.stacks[outer], base: level{n: -1, scene: around.scene, line: around.line, frame: around.frame}}
		p.stacks[id], p.paths[path] = st, st
	}
	p.at = st
	return st
}

// ended is told of the end of an evaluation.
func (p *pass) ended(e core.TraceEnding) {
	st := p.stacks[e.Branch]
	p.cut = p.cut || p.outgrown(e.Fault)
	if p.stopped || p.cut || st == nil {
		return
	}
	if e.Branch == 0 && e.Level == 0 {
		p.value = e.Value
	}
	if p.profile != nil {
		p.profile.spend(p.now.Before + e.Steps)
	}
	top := st.top()
	if e.Fault != nil && !slices.Contains(top.failed, e.Fault) {
		p.emitAt(Fault, top, &top.scene, e.Steps, false, nil)
	}
	if len(st.levels) > 0 && top.n == e.Level {
		for _, id := range top.branches {
			p.drop(id)
		}
		if end := top.ending; end != nil {
			end.known, end.value, end.fault = true, e.Value, e.Fault
			if end.awaited {
				p.awaited--
			}
		}
		*top = level{} // lets go of what it holds
		st.levels = st.levels[:len(st.levels)-1]
	}
	if e.Fault != nil {
		around := st.top()
		if len(st.levels) == 0 && st.outer != nil {
			around = st.outer.top()
		}
		around.failed = append(around.failed, e.Fault)
	}
	if p.profile != nil {
		p.profile.goTo(p.frameOf(st.top()), st.top().line)
	}
}

// drop forgets a branch.
func (p *pass) drop(id int) {
	if st := p.stacks[id]; st != nil {
		delete(p.stacks, id)
		if p.paths[st.path] == st {
			delete(p.paths, st.path)
		}
		for _, l := range st.levels { // abandoned
			if l.ending != nil && l.ending.awaited {
				p.awaited--
			}
			for _, inner := range l.branches {
				p.drop(inner)
			}
		}
	}
}

// effects is told of a round of requests with their answers.
func (p *pass) effects(requests []core.Request, answers []core.Answer) {
	for i := range requests {
		if f := answers[i].Fault; f != nil && f.Kind == fault.Cancelled && p.now.Ended != nil && p.asked >= p.now.Steps {
			p.cut = true // the round ended before this was asked for
		}
		if st := p.paths[requests[i].Branch]; st != nil && !p.stopped && !p.cut {
			top := st.top()
			p.emitAt(Effect, top, &top.scene, p.asked, false, &Request{requests[i], answers[i]})
		}
	}
}
