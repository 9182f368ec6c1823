// Package registry holds the tools that exist: each a name with its current
// version, what it is made of, and what it was granted.
//
// It decides what may be a tool: the name's form, the names reserved for the
// server's own tools, the bounds on number and size, and that the code compiles
// and asks for no operation nobody granted (in this version nothing is granted,
// so any operation is refused). [Compile] makes that decision without keeping
// anything; [Registry.Put] keeps the result under the next version.
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
	"sync"
	"sync/atomic"

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

// StateReady is the state of a tool that can be run.
const StateReady = "ready"

// A Definition is what a tool is made from.
type Definition struct {
	Name        string
	Description string // "" means the printed code
	Code        []byte // JSON, or the text form where Text is set
	Text        bool
}

// A Tool is one version of a tool. It is immutable and may be shared.
type Tool struct {
	Name         string
	Version      int // from 1; 0 before [Registry.Put]
	Hash         string
	Description  string
	Source       []byte // the code as given
	Program      *core.Program
	Capabilities []string // canonical; none in this version
	State        string
}

// Compile makes a tool from its definition without keeping it. The error is a
// [*fault.Fault]: invalid_request for an impossible name or description,
// refused for a reserved name or an operation nobody granted, parse_error.
func Compile(d Definition) (*Tool, error) {
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
	if ops := prog.Effects(); len(ops) > 0 {
		return nil, refuseEffects(d.Name, ops)
	}
	t := &Tool{
		Name:         d.Name,
		Hash:         prog.Hash(),
		Description:  d.Description,
		Source:       d.Code,
		Program:      prog,
		Capabilities: []string{},
		State:        StateReady,
	}
	if t.Description == "" {
		t.Description = shorten(Printed(prog), 1000)
	}
	return t, nil
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

func refuseEffects(name string, ops []string) error {
	list := ops[0]
	for _, op := range ops[1:] {
		list += ", " + op
	}
	return &fault.Fault{
		Kind:    fault.Refused,
		In:      "code",
		Message: fmt.Sprintf("the tool %q would act on the world (%s), and this server grants no capability: it computes and can't act", name, list),
		Got:     list,
		Hint:    "Leave the operation out and take the data as the input instead. Capabilities are granted by the operator with --cap, which arrives with a later version.",
	}
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
	keep func(*Snapshot) error
}

// New returns a registry that starts with the snapshot's tools (nil: none).
// If keep is not nil, every change is given to it first and is refused when it
// fails; it is called with one change at a time.
func New(start *Snapshot, keep func(*Snapshot) error) *Registry {
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
		if err := r.keep(after); err != nil {
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
