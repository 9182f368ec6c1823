// Package registry holds the tools that exist: each a name with its current
// version, what it is made of, and what it was granted.
//
// It decides what may be a tool: the name's form, the names reserved for the
// server's own tools, the bounds on number and size, that the code compiles, and
// which versions the names in it are bound to; what the tool may do is decided
// by package caps, from what its code can ask for, what was declared and what
// the operator granted. [Compile] makes these decisions without keeping
// anything; [Registry.Put] keeps the result under the next version. A new
// version has nothing of the old one's authority.
//
// A run sees the tools through a [Snapshot], which never changes: what is
// evolved while it runs is for later runs.
//
// Nothing here lasts beyond the process, except as a file of all tools written
// by [WriteFile]; with a journal the registry becomes its projection, and the
// types here stay what the rest of the program sees.
package registry

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// Bounds of a registry.
const (
	// MaxTools is how many tools there may be at once.
	MaxTools = 10_000
	// MaxCode is how long the code of one tool may be, in bytes as given.
	MaxCode = 256 << 10
	// MaxTotal bounds the code of all tools together, in bytes. A compiled
	// tool takes a good multiple of its text.
	MaxTotal = 8 << 20
	// MaxDescription bounds a description, in bytes.
	MaxDescription = 16 << 10
)

// The states of a tool.
const (
	// StateReady is that of a tool that may do all it declares.
	StateReady = "ready"
	// StateBlocked is that of a tool whose capabilities are not granted now. It
	// can be run, and every effect of it is denied.
	StateBlocked = "blocked"
)

// A Definition is what a tool is made from.
type Definition struct {
	Name        string
	Description string // "" means the printed code
	Code        []byte // JSON, or the text form where Text is set
	Text        bool
	// Capabilities is what is declared, in the text form of package caps.
	Capabilities []string
}

// A Tool is one version of a tool. It is immutable and may be shared.
type Tool struct {
	Name         string
	Version      int // from 1; 0 before [Registry.Put]
	Hash         string
	Description  string
	Source       []byte // the code as given
	Text         bool   // the source is in the text form
	program      *core.Program
	Declared     []string // as given
	Capabilities []string // what is in effect, canonical
	Held         []*caps.Held
	// Bound is the versions that the names in its code stand for: of tools it
	// calls, or whose code it takes. A name that is not here, because it is
	// worked out at run time or no tool had it, stands for the current version.
	Bound map[string]*Tool
	Notes []string // of the decision about its capabilities
	State string
	// Why is the reason where State is [StateBlocked].
	Why string
}

// Program is the tool's code, compiled.
func (t *Tool) Program() *core.Program { return t.program }

// Compile makes a tool from its definition without keeping it: decided by the
// policy (nil: nothing is granted), its names bound to the tools there are. The
// error is a [*fault.Fault]: invalid_request for an impossible name or
// description, refused for a reserved name, an operation that was not declared
// or a capability that was not granted, parse_error.
func Compile(d Definition, policy *caps.Policy, tools *Snapshot) (*Tool, error) {
	t, err := prepare(d)
	if err != nil {
		return nil, err
	}
	if f := t.decide(policy); f != nil {
		return nil, f
	}
	t.bind(tools)
	if f := t.unbound(tools); f != nil {
		return nil, f
	}
	return t, nil
}

// unbound refuses a tool that may call one that isn't there: what that will be
// able to do can't be told of this one.
func (t *Tool) unbound(tools *Snapshot) *fault.Fault {
	if tools == nil {
		return nil
	}
	for _, h := range t.Held {
		if h.Kind != caps.CallKind || t.Bound[h.Scope] != nil || pattern(h.Scope) {
			continue
		}
		f := &fault.Fault{
			Kind:    fault.Refused,
			Message: fmt.Sprintf("the tool declares %s, and there is no tool %q to be called", h, h.Scope),
			Hint:    fmt.Sprintf("Evolve %q first, then this one: a call is bound to the version there is.", h.Scope),
		}
		if h.Scope == t.Name {
			f.Message = fmt.Sprintf("the tool declares %s, a call of itself", h)
			f.Hint = `A tool calls itself with {"app":{"func":{"self":true},"arg":T}}, or self(e), and needs no capability for it.`
		}
		return f
	}
	return nil
}

// pattern reports whether a scope of calls stands for more than one name.
func pattern(scope string) bool { return strings.Contains(scope, "*") }

// Late reports whether the tool, or one that it can call, may call tools that are
// worked out when it runs: what those can do, it can bring about.
func (t *Tool) Late() bool {
	return slices.ContainsFunc(t.Reach(), func(h *caps.Held) bool { return h.Kind == caps.CallKind && pattern(h.Scope) })
}

// prepare compiles a tool that has no authority yet.
func prepare(d Definition) (*Tool, error) {
	if err := checkName(d.Name); err != nil {
		return nil, err
	}
	if len(d.Description) > MaxDescription {
		return nil, &fault.Fault{
			Kind:    fault.InvalidRequest,
			Message: fmt.Sprintf("a description has at most %d bytes, this one has %d", MaxDescription, len(d.Description)),
			Hint:    "Say in a sentence what the tool computes from its input.",
		}
	}
	if err := CheckSize(d.Code); err != nil {
		return nil, err
	}
	compile := core.CompileTool
	if d.Text {
		compile = core.CompileText
	}
	prog, err := compile(d.Name, d.Code)
	if err != nil {
		return nil, err
	}
	t := &Tool{
		Name:         d.Name,
		Hash:         prog.Hash(),
		Description:  d.Description,
		Source:       d.Code,
		Text:         d.Text,
		program:      prog,
		Declared:     d.Capabilities,
		Capabilities: []string{},
		State:        StateBlocked,
	}
	if t.Description == "" {
		t.Description = shorten(Printed(prog), 1000)
	}
	return t, nil
}

// decide gives the tool the authority that the policy has for it.
func (t *Tool) decide(policy *caps.Policy) *fault.Fault {
	if policy == nil {
		policy = caps.NewPolicy(nil, time.Now)
	}
	d, f := policy.Decide(t.Declared, t.Program().Needs(), caps.DecideOptions{Tool: t.Name})
	if f != nil {
		return f
	}
	t.Held, t.Notes, t.State = d.Held, d.Notes, StateReady
	t.Capabilities = append(t.Capabilities, d.Texts...)
	return nil
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

// bind finds the versions that names written in the code, or in a declared call,
// stand for.
func (t *Tool) bind(tools *Snapshot) {
	if tools == nil {
		return
	}
	needs := t.Program().Needs()
	name := func(n string) {
		if bound, ok := tools.Get(n); ok && n != t.Name {
			if t.Bound == nil {
				t.Bound = make(map[string]*Tool)
			}
			t.Bound[n] = bound
		}
	}
	for _, n := range needs.Codes {
		name(n.Name)
	}
	for _, n := range needs.Calls {
		name(n.Name)
	}
	for _, h := range t.Held {
		if h.Kind == caps.CallKind {
			name(h.Scope)
		}
	}
}

// Reach is everything that running the tool can act with: what it holds, and
// what the tools it is bound to hold.
func (t *Tool) Reach() []*caps.Held {
	var all []*caps.Held
	seen := map[*Tool]bool{}
	var visit func(*Tool)
	visit = func(t *Tool) {
		if seen[t] {
			return
		}
		seen[t] = true
		all = append(all, t.Held...)
		for _, h := range t.Held {
			if b := t.Bound[h.Scope]; h.Kind == caps.CallKind && b != nil {
				visit(b)
			}
		}
	}
	visit(t)
	return all
}

// shorten cuts text to about n bytes at a character's start.
func shorten(b []byte, n int) string {
	if len(b) <= n {
		return string(b)
	}
	for n > 0 && b[n]&0xC0 == 0x80 {
		n--
	}
	return string(b[:n]) + "…"
}

// A Registry is the set of tools that exist now. The zero value is not usable;
// call [New]. It is safe for concurrent use.
type Registry struct {
	mu      sync.Mutex // one change at a time
	current atomic.Pointer[Snapshot]
	// keep makes a change last before it is seen; see [New].
	keep func(*Snapshot, *Tool) error
}

// New returns a registry that starts with the snapshot's tools (nil: none).
// If keep is not nil, every change is given to it first, with the new version
// that makes it, and is refused when it fails; it is called with one change at
// a time.
func New(start *Snapshot, keep func(*Snapshot, *Tool) error) *Registry {
	if start == nil {
		start = new(Snapshot)
	}
	r := &Registry{keep: keep}
	r.current.Store(start)
	return r
}

// Snapshot is the tools as they are now.
func (r *Registry) Snapshot() *Snapshot { return r.current.Load() }

// Put makes t the current version of its name, and returns it with its version
// number. The error is a [*fault.Fault] of kind refused: the registry is full,
// or the change could not be kept.
func (r *Registry) Put(t *Tool) (*Tool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.current.Load()
	next := *t
	next.Version = 1
	if old, ok := before.Get(t.Name); ok {
		next.Version = old.Version + 1
	}
	after, err := before.with(&next)
	if err != nil {
		return nil, err
	}
	if r.keep != nil {
		if err := r.keep(after, &next); err != nil {
			return nil, &fault.Fault{
				Kind:    fault.Refused,
				Message: fmt.Sprintf("the tool %q was not kept: %v", t.Name, err),
				Hint:    "Tell the operator; the tools that exist are unchanged.",
				Cause:   err,
			}
		}
	}
	r.current.Store(after)
	return &next, nil
}
