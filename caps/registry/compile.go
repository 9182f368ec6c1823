package registry

import (
	"container/list"
	"fmt"
	"maps"
	"slices"
	"sync"
	"unicode/utf8"
	"weak"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// prepare compiles a tool that has no authority yet.
func prepare(d Definition) (*Tool, error) {
	if err := checkName(d.Name); err != nil {
		return nil, err
	}
	if len(d.Description) > MaxDescription {
		return nil, fault.Newf(fault.InvalidRequest, "a description has at most %d bytes, this one has %d", MaxDescription, len(d.Description)).
			Hinted("Say in a sentence what the tool computes from its input.")
	}
	if !utf8.Valid(d.Code) {
		return nil, &fault.Fault{
			Kind: fault.ParseError, In: "code", Message: "the code is not UTF-8",
			Hint: "Send it as JSON, whose strings have every character.",
		}
	}
	c := &code{name: d.Name, source: d.Code, text: d.Text}
	prog, err := c.program()
	if err != nil {
		return nil, err
	}
	c.hash = prog.Hash()
	if err := checkExamples(d.Examples); err != nil {
		return nil, err
	}
	if err := checkAs(&d); err != nil {
		return nil, err
	}
	if err := checkInput(&d); err != nil {
		return nil, err
	}
	t := &Tool{
		Name:         d.Name,
		Hash:         c.hash,
		Description:  d.Description,
		Source:       d.Code,
		Text:         d.Text,
		Declared:     d.Capabilities,
		Capabilities: []string{},
		Examples:     d.Examples,
		As:           d.As,
		Input:        d.input(),
		MadeUnder:    labels(d.MadeUnder),
		State:        StateBlocked,
		code:         c,
		finding:      &finding{},
	}
	if t.Description == "" {
		t.Description = display.Truncate(described(t, prog), 1000)
	}
	return t, nil
}

// labels joins lists of labels.
func labels(lists ...[]string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(lists...))))
}

// described is the code as a description: as it was written, or, of JSON, the print.
func described(t *Tool, prog *core.Program) []byte {
	if t.Text {
		return t.Source
	}
	return Printed(prog)
}

// writtenAs takes over a source of a tool that was made from canonical code, if it says
// the same. Code that is shown to somebody has to be the code that runs.
func (t *Tool) writtenAs(source []byte, text bool) {
	c := &code{name: t.Name, source: source, text: text, hash: t.Hash}
	if _, err := c.program(); err == nil {
		t.Source, t.Text, t.code = source, text, c
	}
}

// decide gives the tool the authority that the policy has for it.
func (t *Tool) decide(policy *caps.Policy) *fault.Fault {
	if policy == nil {
		policy = caps.NewPolicy(nil, nil)
	}
	t.Held, t.Notes, t.Capabilities, t.State, t.Why = nil, nil, []string{}, StateBlocked, ""
	t.world = world{kinds: policy.Kinds()}
	if f := t.Unusable(); f != nil {
		return f
	}
	d, f := policy.Decide(t.Declared, t.Program().Needs(), caps.DecideOptions{Tool: t.Name})
	if f != nil {
		return f
	}
	for _, h := range d.Held {
		switch {
		case h.Grant == nil || h.Grant.Node == "":
		case t.Seq == 0: // it is being made
			t.Home = h.Grant.Node
		case t.Home != "" && t.Home != h.Grant.Node:
			return &fault.Fault{Kind: fault.Refused, Message: caps.NotHere(t.Home, h.Grant), Hint: "Tell the user."}
		}
	}
	t.Held, t.Notes, t.State = d.Held, d.Notes, StateReady
	t.Capabilities = append(t.Capabilities, d.Texts...)
	return nil
}

// settle decides as decide does; a tool that is refused is blocked and says why.
func (t *Tool) settle(policy *caps.Policy) {
	if f := t.decide(policy); f != nil {
		t.Why = f.Message
	}
}

// bind finds the versions that names written in the code, or in a declared call,
// stand for.
func (t *Tool) bind(tools *Snapshot) {
	t.Bound = nil
	for _, name := range t.names() {
		if bound, ok := tools.Get(name); ok {
			t.boundTo(bound)
		}
	}
}

func (t *Tool) boundTo(b *Tool) {
	if t.Bound == nil {
		t.Bound = make(map[string]*Tool)
	}
	t.Bound[b.Name] = b
}

// Uses is those of the versions it is bound to that its own code may call or copy: one that was made with others is bound
// to all of them, as is one that is made anew of such a version.
func (t *Tool) Uses() map[string]*Tool {
	if len(t.Bound) == 0 || t.Problem() != nil || t.copying("") {
		return t.Bound
	}
	names := t.names()
	if slices.ContainsFunc(names, pattern) {
		return t.Bound
	}
	uses := maps.Clone(t.Bound)
	maps.DeleteFunc(uses, func(name string, _ *Tool) bool { return !slices.Contains(names, name) })
	return uses
}

// names is the tools that the code, or a declared call, names, but for itself.
func (t *Tool) names() []string {
	needs := t.Program().Needs()
	var list []string
	add := func(name string) {
		if name != t.Name {
			list = append(list, name)
		}
	}
	for _, n := range needs.Codes {
		add(n.Name)
	}
	for _, n := range needs.Calls {
		add(n.Name)
	}
	for _, h := range t.Held {
		if h.Kind == caps.CallKind {
			add(h.Scope)
		}
	}
	if t.State == StateReady {
		return list
	}
	// It may be granted later what it declares.
	for _, text := range t.Declared {
		if c, err := caps.Parse(text, caps.Kinds{}); err == nil && c.Kind == caps.CallKind {
			add(c.Scope)
		}
	}
	return list
}

// unbound refuses a tool that may call one that isn't there: what that will be
// able to do can't be told of this one.
func (t *Tool) unbound() *fault.Fault {
	for _, h := range t.Held {
		if h.Kind != caps.CallKind || t.Bound[h.Scope] != nil || pattern(h.Scope) {
			continue
		}
		f := fault.Newf(fault.Refused, "the tool declares %s, and there is no tool %q to be called", h, h.Scope).
			Hinted(fmt.Sprintf(`Evolve %q first, then this one: a call is bound to the version there is. Where each calls the other, make both at once: {"tools":[{"name":%[1]q,"code":…},{"name":%q,"code":…}]}.`,
				h.Scope, t.Name))
		if h.Scope == t.Name {
			f.Message = fmt.Sprintf("the tool declares %s, a call of itself", h)
			f.Hint = `A tool calls itself with {"app":{"func":{"self":true},"arg":T}}, or self(e), and needs no capability for it.`
		}
		return f
	}
	return nil
}

// blockUnbound blocks a tool from the record that [Tool.unbound] would refuse.
func (t *Tool) blockUnbound() {
	if f := t.unbound(); f != nil {
		t.Held, t.Capabilities, t.State, t.Why = nil, []string{}, StateBlocked, f.Message
	}
}

// mostPrinted is how long code may be, as canonical JSON, to be laid out as text.
const mostPrinted = 32 << 10

// Printed is a program to be shown: in the text form, or as canonical JSON
// where it is so long that nobody will read it.
func Printed(p *core.Program) []byte {
	if c := p.Canonical(); len(c) > mostPrinted {
		return c
	}
	return p.Text()
}

// Shown is the tool's code to be shown: its source as it was given, byte for byte.
// Where there is none that is read so today, it is the print.
func (t *Tool) Shown() []byte {
	if t.Unusable() != nil || len(t.Source) == 0 || t.readOtherwise() {
		return Printed(t.Program())
	}
	return t.Source
}

// ToApprove is [Tool.Shown] for whoever decides by it: a source that is for the most
// part not code, such as a comment that would hide the code behind it, is printed.
func (t *Tool) ToApprove() []byte {
	if print := Printed(t.Program()); len(t.Shown()) > 4*len(print)+1000 {
		return print
	}
	return t.Shown()
}

// CheckSize refuses code that is longer than [MaxCode].
func CheckSize(code []byte) error {
	if len(code) <= MaxCode {
		return nil
	}
	return &fault.Fault{
		Kind:    fault.ParseError,
		In:      "code",
		Message: fmt.Sprintf("the code has %d bytes, at most %d are read", len(code), MaxCode),
		Hint:    "Give large data as the input, or build it with a fold, and keep the code small.",
	}
}

// mostCompiled bounds the compiled code of all tools of the process, in bytes. It
// takes up to eighty times what its text does, so that not all of what may be
// kept can be compiled at once; what isn't in use is compiled again when it is.
const mostCompiled = 24 << 20

// largeCode is code, in bytes, of which one is compiled at a time: reading it takes
// a multiple of what is left in the end.
const largeCode = 16 << 10

var largeTurn sync.Mutex

// A shelf is the code that is compiled now. What it has no room for it takes the
// program from, going round; code that was used since it was last passed by stays
// (the clock algorithm, F. J. Corbató, A Paging Experiment with the Multics
// System, 1968).
type shelf struct {
	keeper core.Keeper
	mu     sync.Mutex
	most   int
	held   int
	ring   []placed
	hand   int
}

// placed is compiled code on a shelf, which doesn't keep alive what nobody holds.
type placed struct {
	code weak.Pointer[code]
	size int
}

// compiled is the shelf of the process.
var compiled = newShelf(mostCompiled)

func newShelf(most int) *shelf {
	s := &shelf{most: most}
	s.keeper.Drop = func(bytes int64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.trim(nil, max(s.most/8, s.held-int(bytes)))
	}
	return s
}

// put makes room for code that was just compiled. That itself stays.
func (s *shelf) put(c *code, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring = append(s.ring, placed{weak.Make(c), size})
	s.held += size
	s.keeper.Note(int64(size))
	s.trim(c, s.most)
}

// trim drops code until the rest has so many bytes, but not that of c.
func (s *shelf) trim(c *code, most int) {
	// Who uses it meanwhile must not keep the hand going round for ever.
	for turns := 3 * len(s.ring); s.held > most && turns > 0; turns-- {
		if s.hand >= len(s.ring) {
			s.hand = 0
		}
		p := s.ring[s.hand]
		other := p.code.Value()
		if other != nil && (other == c || other.used.Swap(false)) {
			s.hand++
			continue
		}
		if other != nil {
			other.prog.Store(nil)
		}
		s.held -= p.size
		s.keeper.Note(-int64(p.size))
		last := len(s.ring) - 1
		s.ring[s.hand] = s.ring[last] // the newest, so that the hand comes to it last
		s.ring = s.ring[:last]
		s.hand++
	}
}

// maxRemembered is about how many bytes of what is known of versions a process
// remembers. What is forgotten is worked out again.
const maxRemembered = 8 << 20

// remembered is the findings that hold something.
var remembered = &memory{most: maxRemembered}

// A memory forgets what was used longest ago where there is more than fits.
type memory struct {
	mu    sync.Mutex
	most  int
	bytes int
	order list.List // of *finding, the newest first
}

// touch notes that a finding was used, and how large it is. Nobody may hold the
// finding's lock.
func (m *memory) touch(f *finding, size int) {
	for _, old := range m.note(f, size) {
		old.forget()
	}
}

// note gives the findings that have to go.
func (m *memory) note(f *finding, size int) (gone []*finding) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes += size - f.counted
	f.counted = size
	if f.place == nil {
		f.place = m.order.PushFront(f)
	} else {
		m.order.MoveToFront(f.place)
	}
	for m.bytes > m.most && m.order.Len() > 1 {
		old := m.order.Remove(m.order.Back()).(*finding)
		m.bytes -= old.counted
		old.place, old.counted = nil, 0
		gone = append(gone, old)
	}
	return gone
}
