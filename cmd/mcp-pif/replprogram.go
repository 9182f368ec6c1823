package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// lastValue is the name of the last value.
const lastValue = "it"

// scan looks at an entry's brackets, outside strings and comments: open reports
// whether one waits for its partner. A bracket closed by another kind, or a quote
// open at a line's end, is a mistake, not a reason to wait for more. rest is the
// entry without comments.
func scan(entry string) (open bool, rest string) {
	var brackets, kept []byte
	for i := 0; i < len(entry); i++ {
		c := entry[i]
		switch c {
		case '/':
			if strings.HasPrefix(entry[i:], "//") {
				n := strings.IndexByte(entry[i:], '\n')
				if n < 0 {
					return len(brackets) > 0, string(kept)
				}
				i += n
				c = '\n'
			}
		case '"', '`':
			start := i
			for i++; i < len(entry) && entry[i] != c && entry[i] != '\n'; i++ {
				if entry[i] == '\\' {
					i++
				}
			}
			if i >= len(entry) || entry[i] == '\n' {
				return false, string(append(kept, entry[start:]...))
			}
			kept = append(kept, entry[start:i]...)
		case '(':
			brackets = append(brackets, ')')
		case '{', '[':
			brackets = append(brackets, c+2) // its partner, in ASCII
		case ')', '}', ']':
			if n := len(brackets) - 1; n < 0 || brackets[n] != c {
				return false, string(append(kept, entry[i:]...))
			} else {
				brackets = brackets[:n]
			}
		}
		kept = append(kept, c)
	}
	return len(brackets) > 0, string(kept)
}

// uncommented is an entry that may be joined to one line.
func uncommented(entry string) string {
	if !strings.Contains(entry, "\n") {
		return entry
	}
	_, rest := scan(entry)
	return strings.TrimSpace(rest)
}

// lacks reports whether an entry ends where an operand must follow.
func (r *repl) lacks(entry string) bool {
	if entry = strings.TrimSpace(entry); entry == "" || entry[0] == ':' {
		return false
	}
	_, err := r.open("", entry)
	if f, ok := errors.AsType[*fault.Fault](err); !ok || f.Got != endOfText {
		return false
	}
	_, lets := r.lets(entry)
	return !lets
}

// endOfText is how a fault calls the end of a program that must go on.
const endOfText = "the end of the text"

// A typedProgram is an entry that is a program, with what it uses of the session.
type typedProgram struct {
	source string    // the entry
	code   string    // the entry within its lets
	entry  string    // the part of code that is the entry
	after  int       // how much of code follows the entry
	head   int       // the place of the entry's beginning in term
	term   term.Term // of the entry alone
	lets   term.Term // of the entry within its lets
	names  []string  // of those lets, the outermost first
	*core.Program
}

// open reads an entry, or the code of a tool where a name is given.
func (r *repl) open(tool, entry string) (*typedProgram, error) {
	if json.Valid([]byte(entry)) {
		p, err := cli.Compile(tool, entry)
		if err != nil {
			return nil, err
		}
		return r.within(tool, &typedProgram{source: entry, code: entry, term: p.Term(), Program: p})
	}
	// A let makes a variable of a primitive's name, which changes how the entry is read.
	var names, all []string
	for _, name := range r.names() {
		if !strings.Contains(entry, name) {
			continue
		}
		all = append(all, name)
		if _, _, primitive := prim.Lookup(name); primitive {
			names = append(names, name)
		}
	}
	before, after := r.surroundings(names, entry)
	p, err := core.CompileText(tool, []byte(before+entry+after))
	if err != nil && len(all) > 0 {
		// What a name is may tell how it is read: xs.sort().
		names = all
		before, after = r.surroundings(names, entry)
		if p, err = core.CompileText(tool, []byte(before+entry+after)); err != nil {
			if _, own := core.CompileText(tool, []byte(entry)); own != nil {
				err = own // at its own place
			}
		}
	}
	if err != nil {
		return nil, err
	}
	t := p.Term()
	lets := len(names)
	if after != "" { // the let of the block
		lets++
	}
	for range lets {
		t = t.(*term.App).Func.(*term.Lam).Body
	}
	return r.within(tool, &typedProgram{source: entry, code: entry, head: len(before), term: t, names: names, Program: p})
}

// ofTerm is a program that the repl made of parts of an entry.
func (r *repl) ofTerm(t term.Term) (*typedProgram, error) {
	return r.open("", string(text.Alone(t, core.Print(t))))
}

// within puts a program into the lets that it uses.
func (r *repl) within(tool string, p *typedProgram) (*typedProgram, error) {
	for _, name := range parse.Free(p.term) {
		_, ok := r.bound[name]
		if !ok && tool == "" {
			_, ok = r.pure(name)
		}
		if ok && !slices.Contains(p.names, name) {
			p.names = append(p.names, name)
		}
	}
	if len(p.names) == 0 {
		return p, nil
	}
	if json.Valid([]byte(p.source)) {
		p.code = string(core.Print(p.term))
	}
	p.entry = p.code
	before, after := r.surroundings(p.names, p.code)
	p.code, p.after = before+p.code+after, len(after)
	var err error
	if p.Program, err = core.CompileText(tool, []byte(p.code)); err == nil {
		p.lets = p.Term()
	}
	return p, err
}

// surroundings is the lets of these names around an entry, in a block where it may be several statements.
func (r *repl) surroundings(names []string, entry string) (before, after string) {
	if len(names) == 0 {
		return "", ""
	}
	before = strings.TrimSuffix(strings.TrimSpace(string(core.Print(r.around(names, &term.Unit{})))), "null")
	if strings.Contains(entry, ";") {
		return before + "{let _ = null; ", "\n}"
	}
	return before, ""
}

// around is a term within the lets of these names.
func (r *repl) around(names []string, t term.Term) term.Term {
	for _, name := range slices.Backward(names) {
		b, ok := r.bound[name]
		if !ok {
			b.term, _ = r.pure(name)
		}
		t = &term.App{Func: &term.Lam{Param: name, Body: t}, Arg: b.term}
	}
	return t
}

// pure is the code of a tool that is as good as a let of it: a function that neither
// acts nor refers to itself or other tools.
func (r *repl) pure(name string) (term.Term, bool) {
	t, ok := r.tool(name)
	if !ok || t.Unusable() != nil || !t.Program().IsFunction() || len(t.Program().Free()) > 0 || !closed(t.Program().Term()) {
		return nil, false
	}
	return t.Program().Term(), true
}

// closed reports whether a term needs nothing of the tool that it is in.
func closed(t term.Term) bool {
	switch t := t.(type) {
	case *term.Self, *term.Continue, *term.Effect, *term.CodeOf:
		return false
	case *term.Prim:
		if t.ID == prim.Call {
			return false
		}
	}
	return term.Children(t, closed)
}

// inside is around for the body of a function, whose parameters stay in front.
func (r *repl) inside(names []string, t term.Term) term.Term {
	if l, ok := t.(*term.Lam); ok {
		return &term.Lam{Param: l.Param, Body: r.inside(names, l.Body)}
	}
	return r.around(names, t)
}

func (r *repl) names() []string { return slices.Sorted(maps.Keys(r.bound)) }

// tool is the evolved tool that a name means.
func (r *repl) tool(name string) (*registry.Tool, bool) {
	if _, own := r.bound[name]; own {
		return nil, false
	}
	return r.server.Registry().Snapshot().Get(name)
}

// How other languages bind a name, and change what it is bound to: const x = 5, x = 5, x += 1, x++.
var (
	declaration = lazyregexp.New(`^(?:const|var)\s+`)
	assignment  = lazyregexp.New(`^(?:[A-Za-z_]\w*|\{[\w\s,]+\}|\[[\w\s,]+\])\s*=[^=>]`)
	change      = lazyregexp.New(`(?s)^([A-Za-z_]\w*)\s*(?:([-+*/])=\s*(.+)|(\+)\+|(-)-)$`)
)

// asLet is an entry that does that as a let; any other is as it was.
func asLet(entry string) string {
	entry = strings.TrimRight(entry, "; ")
	if m := change.FindStringSubmatch(entry); m != nil {
		return fmt.Sprintf("let %s = %[1]s %s (%s\n)", m[1], m[2]+m[4]+m[5], cmp.Or(m[3], "1"))
	}
	if assignment.MatchString(entry) {
		return "let " + entry
	}
	if at := declaration.Compiled().FindString(entry); at != "" {
		return "let " + entry[len(at):]
	}
	return entry
}

// enter does an entry that is no command: a program, a let, or a tool with its input.
func (r *repl) enter(entry string) {
	name, rest, _ := strings.Cut(entry, " ")
	rest = strings.TrimSpace(rest)
	tool, isTool := r.tool(name)
	switch {
	case isTool && rest == "" && tool.Program() != nil && tool.Program().IsFunction():
		cli.Paint(r.cmd.OutOrStdout(), cli.Cyan, tool.Report().Signature())
		return
	case isTool && (rest == "" || json.Valid([]byte(rest))):
		r.run(map[string]any{"tool": name}, rest)
		return
	}
	p, err := r.open("", entry)
	if err == nil {
		r.program(p)
		return
	}
	if isTool {
		if values := jsonValues(rest); len(values) > 1 {
			r.give(tool, values)
		} else {
			r.run(map[string]any{"tool": name}, rest)
		}
		return
	}
	if lets, ok := r.lets(entry); ok {
		r.let(entry, lets)
		return
	}
	for i := range entry { // FUNCTION INPUT
		if entry[i] != ' ' || !json.Valid([]byte(entry[i:])) {
			continue
		}
		p, slip := r.open("", entry[:i])
		if slip == nil && p.typ().IsFunction() {
			r.evaluate(p, map[string]any{"input": cli.InputJSON(strings.TrimSpace(entry[i:]))}, true)
			return
		}
		if slip != nil && json.Valid([]byte(entry[:i])) {
			err = slip
		}
	}
	r.complain(cli.InSource(err, entry).Error())
}

// program shows the value of a program, or the type of a function, and keeps it.
func (r *repl) program(p *typedProgram) {
	if _, ok := core.LoneName([]byte(p.code)); ok && !json.Valid([]byte(p.code)) {
		r.complain(fmt.Sprintf("unbound: there is neither a let nor a tool of the name %s\nlet %[1]s = 3 binds it; the last value has the name %s.", p.source, lastValue))
		return
	}
	if name, args, ok := called(p.term); ok {
		if tool, ok := r.tool(name); ok {
			r.apply(tool, args)
			return
		}
	}
	if b, ok := r.value(p, true); ok {
		r.keep(lastValue, b)
	}
}

// value evaluates a program, and shows what it gives if show is set.
func (r *repl) value(p *typedProgram, show bool) (b binding, ok bool) {
	b = binding{term: r.around(p.names, p.term), typ: p.typ()}
	if b.typ.IsFunction() {
		b.from = &typedPart{source: p.source, term: p.term, head: p.head, names: p.names}
		for _, name := range p.names {
			b.from.uses = append(b.from.uses, r.bound[name])
		}
		if free := parse.Free(p.Term()); len(free) > 0 {
			r.complain("unbound: nothing has the name " + free[0])
			return b, false
		}
		if show {
			cli.Paint(r.cmd.OutOrStdout(), cli.Cyan, b.typ.String())
		}
		return b, true
	}
	a := r.evaluate(p, map[string]any{}, show)
	if a.Fault != nil {
		return b, false
	}
	if result, _ := resultOf(a); result != nil && plain(b.typ) {
		if in, f := parse.Input(result, parse.Data); f == nil {
			b.term = in.Term
		}
	}
	return b, true
}

// evaluate runs a program; a failure is shown at its place in the entry.
func (r *repl) evaluate(p *typedProgram, arguments map[string]any, show bool) engine.Answer {
	return r.evaluateAt(r.server, p, arguments, show)
}

func (r *repl) evaluateAt(server *engine.Engine, p *typedProgram, arguments map[string]any, show bool) engine.Answer {
	arguments["code"] = p.code
	a := evaluate(r.cmd, server, arguments)
	if a.Fault != nil || show {
		failed := a.Text
		if f := a.Fault; f != nil {
			source := p.code
			if p.entry != "" {
				f, source = p.placed(r.bound, f)
			}
			failed = strings.Replace(failed, a.Fault.Error(), f.Error(), 1)
			if f.In != a.Fault.In { // of a let
				g := *f
				f, g.In = &g, a.Fault.In
			}
			failed = cli.Faulty(failed, f, sourceOf(r.server.Registry(), f, source))
		}
		for i := range a.More {
			a.More[i] = p.placedNote(r.bound, a.More[i])
		}
		r.print(a, failed)
	}
	return a
}

// typ is the inferred type of what a program gives.
func (p *typedProgram) typ() *check.Type { return infer(p.Term()) }

func infer(t term.Term) *check.Type {
	return check.Infer(t, nil, check.Env{}, check.Budget{Steps: 60_000, Places: 1}).Type
}

// plain reports whether values of a type read back from JSON as they are: they have
// neither functions nor code in them.
func plain(t *check.Type) bool {
	if t == nil {
		return true
	}
	if t.Any || t.Dynamic || t.Unknown || len(t.Vars) > 0 || t.Kinds&^(prim.KindData&^prim.KindQuoted) != 0 {
		return false
	}
	for _, f := range t.Fields {
		if !plain(f.Type) {
			return false
		}
	}
	return plain(t.Item) && plain(t.First) && plain(t.Second) && plain(t.Rest)
}

// resultOf is the result in an answer, if all of it is there, and its type.
func resultOf(a engine.Answer) (result json.RawMessage, typ string) {
	var s struct {
		Result json.RawMessage
		Type   string
	}
	if json.Unmarshal(a.Structured, &s) != nil {
		return nil, ""
	}
	return s.Result, s.Type
}

// mostKept is how large a name's code may be, as text, so that some fit into a program.
const mostKept = 64 << 10

// keep binds a name.
func (r *repl) keep(name string, b binding) {
	delete(r.bound, name)
	if len(text.Print(b.term)) > mostKept {
		cli.Paint(r.cmd.ErrOrStderr(), cli.Faint, fmt.Sprintf("note: %s is not kept: it is larger than %d KiB", name, mostKept>>10))
		return
	}
	r.bound[name] = b
}

// keepResult keeps the result of a tool, if it is data.
func (r *repl) keepResult(a engine.Answer) {
	delete(r.bound, lastValue)
	result, typ := resultOf(a)
	if result == nil || a.Function || typ == "quoted" || typ == "continuation" {
		return
	}
	if in, f := parse.Input(result, parse.Data); f == nil {
		r.keep(lastValue, binding{term: in.Term, typ: infer(in.Term)})
	}
}

// A let is a name with the term that it is to stand for.
type let struct {
	name string
	term term.Term
}

// lets reads an entry of lets without a program: let x = 3, y = x + 1.
func (r *repl) lets(entry string) (lets []let, ok bool) {
	if entry = asLet(entry); !strings.HasPrefix(entry, "let") {
		return nil, false
	}
	p, err := r.open("", entry+"\nin null")
	if err != nil {
		return nil, false
	}
	for t := p.term; ; {
		switch u := t.(type) {
		case *term.Unit:
			return lets, true
		case *term.LetRec:
			for _, f := range u.Funcs {
				lets = append(lets, let{f.Name, &term.LetRec{Funcs: u.Funcs, Body: &term.Var{Name: f.Name}}})
			}
			t = u.Body
		case *term.If: // of a pattern, which is seen to fit first
			if t = u.Then; len(lets) > 0 && lets[0].name != "" {
				lets = slices.Insert(lets, 0, let{})
			}
			if no, ok := u.Then.(*term.Prim); ok && prim.Get(no.ID).Name == "no_match" {
				t = u.Else
			}
		case *term.App:
			l, ok := u.Func.(*term.Lam)
			if !ok {
				return nil, false
			}
			lets, t = append(lets, let{l.Param, u.Arg}), l.Body
		default:
			return nil, false
		}
	}
}

// let evaluates lets of an entry, one after the other, and keeps them.
func (r *repl) let(entry string, lets []let) {
	for _, l := range lets {
		p, err := r.open("", asLet(entry)+"\nin null")
		head := 0
		if l.term != nil {
			head = p.head
			p, err = r.ofTerm(l.term)
		}
		if err != nil {
			r.complain(err.Error())
			return
		}
		b, ok := r.value(p, false)
		if !ok {
			return
		}
		if b.from != nil && l.term != nil {
			b.from.source, b.from.term, b.from.head = asLet(entry), l.term, head
		}
		if r.keep(l.name, b); !strings.Contains(entry, l.name) || l.name == "" {
			defer delete(r.bound, l.name) // a pattern needs it
		} else if r.in.interactive() {
			cli.Paint(r.cmd.OutOrStdout(), cli.Cyan, l.name+": "+b.typ.String())
		}
	}
}

// called takes f(a, b) and @f(a, b) apart.
func called(t term.Term) (name string, args []term.Term, ok bool) {
	for {
		switch u := t.(type) {
		case *term.App:
			args = append([]term.Term{u.Arg}, args...)
			t = u.Func
			continue
		case *term.Var:
			return u.Name, args, len(args) > 0
		case *term.Prim:
			if u.ID == prim.Call {
				if s, is := u.Args[0].(*term.Str); is && len(args) == 0 {
					return s.Value, u.Args[1:], true
				}
			}
		}
		return "", nil, false
	}
}

// apply runs a tool on arguments that are evaluated first.
func (r *repl) apply(tool *registry.Tool, args []term.Term) {
	p, err := r.ofTerm(&term.List{Items: args})
	if err != nil {
		r.complain(err.Error())
		return
	}
	a := r.evaluateAt(r.whole, p, map[string]any{}, false)
	if a.Fault != nil {
		return
	}
	var values []json.RawMessage
	result, _ := resultOf(a)
	if err := json.Unmarshal(result, &values); err != nil || a.Function {
		r.complain("a tool takes data: a function is none")
		return
	}
	r.give(tool, values)
}

// jsonValues is the values of a text that is some of JSON and nothing else.
func jsonValues(text string) (values []json.RawMessage) {
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var v json.RawMessage
		switch err := d.Decode(&v); {
		case err == io.EOF:
			return values
		case err != nil:
			return nil
		}
		values = append(values, v)
	}
}

// give runs a tool on an input, or on one for each of its parameters.
func (r *repl) give(tool *registry.Tool, values []json.RawMessage) {
	arguments := map[string]any{"tool": tool.Name, "input": values[0]}
	if len(values) > 1 {
		var params []string
		if tool.Program() != nil {
			params = tool.Program().Params()
		}
		if len(params) != len(values) {
			r.complain(fmt.Sprintf("%s takes %d inputs, not %d", tool.Name, len(params), len(values)))
			return
		}
		record := map[string]json.RawMessage{}
		for i, name := range params {
			record[name] = values[i]
		}
		arguments["input"] = record
	}
	r.run(arguments, "")
}

// describe shows type and cost of code, and where it must fail.
func (r *repl) describe(code string) {
	tools := r.server.Registry().Snapshot()
	t, ok := r.tool(code)
	if !ok {
		p, err := r.open("", code)
		if err == nil {
			if free := parse.Free(p.Term()); len(free) > 0 {
				err = fmt.Errorf("unbound: nothing has the name %s", free[0])
			}
		}
		if err == nil {
			_, t, err = tools.Trying(registry.Definition{Name: lastValue, Code: []byte(p.code), Text: !json.Valid([]byte(p.code))})
		}
		if err != nil {
			r.complain(cli.InSource(err, code).Error())
			return
		}
	}
	if err := t.Problem(); err != nil {
		r.complain(err.Error())
		return
	}
	s := subject{tool: t}
	report := s.report(false)
	cli.Paint(r.cmd.OutOrStdout(), cli.Cyan, report.Type)
	if c := report.Cost; c != nil {
		fmt.Fprintln(r.cmd.OutOrStdout(), cli.PrintableLines(c.short()))
	}
	for _, d := range report.Problems {
		r.complain(fmt.Sprintf("%s: %s", d.Kind, d.Message))
	}
}

// mostStepped is how many steps are shown where nobody is there to end it.
const mostStepped = 1000

// step runs code on the reference evaluator and shows each evaluation.
func (r *repl) step(code string) {
	p, err := r.open("", code)
	if err != nil {
		r.complain(cli.InSource(err, code).Error())
		return
	}
	if typ := p.typ(); typ.IsFunction() {
		cli.Paint(r.cmd.OutOrStdout(), cli.Cyan, typ.String())
		r.complain("apply the function to see its steps: (n => n * n)(12)")
		return
	}
	out := r.cmd.OutOrStdout()
	ctx, stop := cli.Interruptible(r.cmd)
	defer stop()
	w := step.New([]step.Round{{Program: p.Program}}, 0)
	if r.in.interactive() {
		fmt.Fprintln(out, stepHint)
		st := &stepper{ctx: ctx, out: out, walk: w}
		err = st.run(func() (string, error) { return r.in.read("step> ") })
	} else {
		err = trace(ctx, out, w, 0, mostStepped, false)
	}
	if err != nil && ctx.Err() != nil {
		err = errInterrupted
	}
	if err != nil {
		r.complain(err.Error())
	}
}
