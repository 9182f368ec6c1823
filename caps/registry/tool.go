package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
)

// A Definition is what a tool is made from.
type Definition struct {
	Name        string
	Description string // "" means the code
	Code        []byte // JSON, or the text form where Text is set
	Text        bool
	// Capabilities is what is declared, in the text form of package caps.
	Capabilities []string
	// Examples is the tests that come with it. They are added to those of the
	// version before, where one with the same input and effects takes the place
	// of the old one; nil keeps what there is, an empty list drops all.
	Examples []Example
	// As is what it is published as: [AsTool], [AsPrompt] or [AsResource].
	As string
	// Input is a JSON Schema of its arguments that is narrower than the inferred one,
	// for calls by its name; nil: none. See [check.Narrow].
	Input json.RawMessage
	// MadeUnder is the labels of what whoever wrote it had been shown: what may go where
	// holds for all that the code says.
	MadeUnder []string
	// Keep says what a new version has of the one before.
	Keep Keep
}

// Keep says which parts of a definition, which are left empty in it, a new version has
// of the version before it.
type Keep struct{ Description, As, Input bool }

// A Tool is one version of a tool. It is immutable and may be shared.
type Tool struct {
	Name    string
	Version int // from 1; 0 before it is kept
	// Seq is the number of the change that made it; 0 before it is kept.
	Seq          uint64
	Time         time.Time // of that change, as far as it is known
	Hash         string
	Description  string
	Source       []byte   // the code as given
	Text         bool     // the source is in the text form
	Declared     []string // as given
	Capabilities []string // what is in effect, canonical
	Held         []*caps.Held
	// Bound is the versions that the names in its code stand for: of tools it
	// calls, or whose code it takes. A name that is not here is worked out at run
	// time, or no tool had it, and stands for the current version (see [Near.CodeOf]).
	Bound map[string]*Tool
	// Group is the tools that were made with it, at once, in their order, itself
	// among them; nil: it was made alone. It is bound to all the others.
	Group    []Member
	Examples []Example
	As       string          // what it is published as
	Input    json.RawMessage // the declared schema of its arguments; nil: none
	// MadeUnder is the labels of what the writer of it, or of what it keeps of the version
	// before, had been shown; sorted.
	MadeUnder []string
	// Home is the node of a cluster whose own folders it acts on; "": it acts on none of one node alone.
	Home  string
	Notes []string // of the decision about its capabilities
	State string
	// Why is the reason where State is [StateBlocked].
	Why string

	code    *code
	group   *group
	finding *finding
	kept    *kept // nil: nothing
	world   world
}

// A code is what a tool's source says, compiled when it is first asked for, and
// again when it was taken off the shelf.
type code struct {
	name   string
	source []byte
	text   bool
	hash   string   // as it is on record; "": whatever it is
	json   []byte   // the canonical JSON on record, for when the text comes to be read otherwise; nil: none
	names  []string // of its group, whose places the hash is over
	prog   atomic.Pointer[core.Program]
	used   atomic.Bool              // since the shelf was last searched for room
	bad    atomic.Bool              // err is set
	other  atomic.Bool              // today the source is read otherwise, or not at all
	copies atomic.Pointer[[]string] // the names under code_of, "" for those that it works out; nil: they aren't known
	mu     sync.Mutex               // held while it is compiled
	err    error
}

func (c *code) program() (*core.Program, error) {
	if prog := c.prog.Load(); prog != nil {
		if !c.used.Load() { // else many processors would write to one place
			c.used.Store(true)
		}
		return prog, nil
	}
	if c.bad.Load() {
		return nil, c.err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if prog := c.prog.Load(); prog != nil || c.bad.Load() {
		return prog, c.err
	}
	if len(c.source) > largeCode {
		largeTurn.Lock()
		defer largeTurn.Unlock()
	}
	prog, err := c.compile()
	if err != nil {
		c.fail(err)
		return nil, err
	}
	c.prog.Store(prog)
	compiled.put(c, prog.Size())
	return prog, nil
}

// fail has nothing ever be made of it. The lock is held.
func (c *code) fail(err error) {
	c.err = err
	c.bad.Store(true)
}

// spoil has nothing be made of it, for a reason that lies elsewhere.
func (c *code) spoil(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.bad.Load() {
		c.fail(err)
	}
}

func (c *code) compile() (*core.Program, error) {
	if err := CheckSize(c.source); err != nil {
		return nil, err
	}
	compile := core.CompileTool
	if c.text {
		compile = core.CompileText
	}
	prog, err := compile(c.name, c.source)
	if c.is(prog) {
		return prog, nil
	}
	if c.hash != "" {
		if p := c.kept(); p != nil {
			c.other.Store(true)
			return p, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("its code has the hash %s, and %s is on record", c.hashOf(prog), c.hash)
	}
	return nil, err
}

// kept is what is on record by the canonical JSON beside a source that isn't read so
// today, or by the rules under which the source was read; nil: neither.
func (c *code) kept() *core.Program {
	if c.json != nil && CheckSize(c.json) == nil {
		if p, _ := core.CompileTool(c.name, c.json); c.is(p) {
			return p
		}
	}
	for p := range core.Older(c.name, c.source, c.text) {
		if c.is(p) {
			return p
		}
	}
	return nil
}

// is reports whether a program, nil for none, is what is on record.
func (c *code) is(p *core.Program) bool {
	return p != nil && (c.hash == "" || c.hashOf(p) == c.hash)
}

func (c *code) hashOf(p *core.Program) string {
	if c.names != nil {
		return memberHash(p, c.names)
	}
	return p.Hash()
}

// canonical is the canonical JSON to be kept with a source that may come to be read
// otherwise, where it can be read again; else nil.
func (t *Tool) canonical() []byte {
	if t.Problem() != nil || !t.Text && !t.readOtherwise() {
		return nil
	}
	if c := t.Program().Canonical(); len(c) <= MaxCode {
		return c
	}
	return nil
}

// readOtherwise reports whether the source means something else today than the code
// that runs, or nothing.
func (t *Tool) readOtherwise() bool { return t.Problem() == nil && t.code.other.Load() }

// Program is the tool's code, compiled; the first call compiles it. Code on
// record that isn't what its hash says is never run: the program then raises an
// error that says so. Whoever runs it asks [Tool.Unusable] before.
func (t *Tool) Program() *core.Program {
	if t.code == nil {
		return nil
	}
	prog, err := t.code.program()
	if err == nil {
		return prog
	}
	return standIn(t, err)
}

// standIn is a program in place of one that can't be had.
func standIn(t *Tool, err error) *core.Program {
	text := pifjson.MustEncode(fmt.Sprintf("the code of %q, version %d, can't be used: %v", t.Name, t.Version, err))
	prog, err := core.CompileTool(t.Name, slices.Concat([]byte(`{"raise":`), text, []byte(`}`)))
	if err != nil {
		panic(err) // a string is a term
	}
	return prog
}

// Problem compiles the tool's code if that wasn't done, and says why it can't be
// used; nil: it can.
func (t *Tool) Problem() error {
	if t.code == nil {
		return nil
	}
	_, err := t.code.program()
	return err
}

// Unusable is the refusal of a tool whose code on record can't be used, because
// it, or what is recorded with it, isn't what was recorded; nil: it can. It
// compiles the code if that wasn't done.
func (t *Tool) Unusable() *fault.Fault {
	err := t.Problem()
	if err == nil {
		return nil
	}
	why := err.Error()
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		why = f.Message // how to correct the code is nobody's question
	}
	return &fault.Fault{
		Kind:    fault.Refused,
		In:      fmt.Sprintf("tool:%s@%d", t.Name, t.Version),
		Message: fmt.Sprintf("the code of %q, version %d, can't be used: %s", t.Name, t.Version, why),
		Hint:    fmt.Sprintf("Tell the operator that the record was changed: mcp-pif journal verify shows where. Evolve %q anew to replace it; don't retry.", t.Name),
	}
}

// pattern reports whether a scope of calls stands for more than one name.
func pattern(scope string) bool { return strings.Contains(scope, "*") }

// Late reports whether the tool, or one that it can call, may call tools that are
// worked out when it runs: what those can do, it can bring about.
func (t *Tool) Late() bool {
	return slices.ContainsFunc(t.Reach(), func(h *caps.Held) bool { return h.Kind == caps.CallKind && pattern(h.Scope) })
}

// mostNear is how many tools are looked at for a name that stands in code from elsewhere.
const mostNear = 100

// A Near finds what names under code_of stand for in one tool's code.
type Near struct{ tools []*Tool } // that and those that it is bound to, from the first written name on

// CodeOf is the tool whose code a name stands for in that of t. Where the name is written (literal), that is the version
// that the tool is bound to, or itself for its own name; a name that isn't in its code is looked for in what it is bound to,
// whose code it may evaluate. current is set where it is the current version, if there is one: the name stands in its code
// and no tool had it when that was evolved, or its code works out names.
func (n *Near) CodeOf(t *Tool, name string, literal bool) (found *Tool, current bool) {
	if !literal {
		return nil, t.copying("")
	}
	if n.tools == nil {
		n.tools, _ = t.below(mostNear)
	}
	for _, of := range n.tools {
		switch {
		case of.Bound[name] != nil:
			return of.Bound[name], false
		case name == of.Name:
			return of, false
		case of.copying(name): // self, too: where no tool is called that it is its own code
			return nil, true
		}
	}
	return nil, t.copying("")
}

// copying reports whether a name stands under code_of in the tool's code; "": whether one is worked out there.
func (t *Tool) copying(name string) bool { return slices.Contains(t.copied(), name) }

// copied is the names that stand under code_of in the tool's code, "" for those that it works out.
func (t *Tool) copied() []string {
	if t.code == nil || t.code.copies.Load() == nil && t.Problem() != nil {
		return nil
	}
	if names := t.code.copies.Load(); names != nil {
		return *names
	}
	needs, names := t.Program().Needs(), []string{}
	if needs.AnyCode {
		names = append(names, "")
	}
	for _, n := range needs.Codes {
		names = append(names, n.Name)
	}
	t.code.copies.Store(&names)
	return names
}

// Copies reports whether the tool, or one that it is bound to, takes the code of tools that are known only when it runs.
func (t *Tool) Copies() bool {
	return slices.ContainsFunc(t.Below(), func(t *Tool) bool {
		var near Near
		return slices.ContainsFunc(t.copied(), func(name string) bool {
			_, current := near.CodeOf(t, name, true)
			return current
		})
	})
}

// Below is the tool and all that it is bound to, of which it may call or copy.
func (t *Tool) Below() []*Tool {
	all, _ := t.below(math.MaxInt)
	return all
}

// below is the tool and all that it is bound to, at most so many, in an order that follows from the names, and each one's
// place there.
func (t *Tool) below(most int) ([]*Tool, map[*Tool]int) {
	all, at := []*Tool{t}, map[*Tool]int{t: 0}
	for i := 0; i < len(all) && len(all) < most; i++ {
		for _, name := range slices.Sorted(maps.Keys(all[i].Bound)) {
			b := all[i].Bound[name]
			if _, known := at[b]; !known && len(all) < most {
				at[b], all = len(all), append(all, b)
			}
		}
	}
	return all, at
}

// Whole is a hash of the tool's code and of that of all that it is bound to: its own where it is bound to nothing; ""
// where it calls, or takes the code of, what is worked out when it runs.
func (t *Tool) Whole() string {
	if t.Late() || t.Copies() {
		return ""
	} else if len(t.Bound) == 0 {
		return t.Hash
	}
	sum := sha256.New()
	all, at := t.below(math.MaxInt)
	for _, of := range all {
		fmt.Fprintf(sum, "%s\n", of.Hash)
		for _, name := range slices.Sorted(maps.Keys(of.Bound)) {
			fmt.Fprintf(sum, "%q %d\n", name, at[of.Bound[name]])
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Reach is everything that running the tool can act with: what it holds, and
// what the tools it is bound to hold.
func (t *Tool) Reach() (all []*caps.Held) {
	tools, _ := t.Runs()
	for _, t := range tools {
		all = append(all, t.Held...)
	}
	return all
}

// Runs is the tool and those that it may call, as far as that is known before it runs; known reports whether that is all,
// and each can be used.
func (t *Tool) Runs() (all []*Tool, known bool) {
	known = true
	seen := map[*Tool]bool{t: true}
	for todo := []*Tool{t}; len(todo) > 0; {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		all, known = append(all, t), known && t.State == StateReady
		for _, h := range t.Held {
			b := t.Bound[h.Scope]
			switch {
			case h.Kind != caps.CallKind:
			case b == nil:
				known = false
			case !seen[b]:
				seen[b] = true
				todo = append(todo, b)
			}
		}
	}
	return all, known
}

// Pure reports whether no effect is reachable over all that the tool is bound to: it
// holds calls alone, of tools that are known and hold no more.
func (t *Tool) Pure() bool {
	tools, known := t.Runs()
	return known && !slices.ContainsFunc(tools, func(t *Tool) bool {
		return slices.ContainsFunc(t.Held, func(h *caps.Held) bool { return h.Kind != caps.CallKind })
	})
}

// StateOf is a tool's state now, and why where it is [StateBlocked]: what was
// decided when the policy was last read, whether each grant still holds, and
// whether its code can be used, as far as that was tried. A grant that was taken
// back and is given back again, being the same one, makes the tool ready again.
func StateOf(t *Tool, policy *caps.Policy) (state, why string) {
	if t.code != nil && t.code.bad.Load() {
		return StateBlocked, t.Unusable().Message
	}
	if t.State != StateReady || policy == nil {
		return t.State, t.Why
	}
	for _, h := range t.Held {
		if why := policy.Lapsed(h); why != "" {
			return StateBlocked, why
		}
	}
	return StateReady, ""
}

// ref is the version's name and number.
func (t *Tool) ref() Ref { return Ref{t.Name, t.Version} }

// bindings is what a record says of the versions it is bound to, by name.
func (t *Tool) bindings() []Binding {
	var list []Binding
	for name, b := range t.Bound {
		list = append(list, Binding{Ref: Ref{name, b.Version}, Hash: b.Hash, Seq: b.Seq})
	}
	slices.SortFunc(list, func(a, b Binding) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Reserved is the names that the server keeps for its own tools, whether this
// version has them or not.
var Reserved = []string{"evolve", "run", "list", "help", "describe", "history", "journal", "retire"}

// maxName is the length of a name in bytes; maxListed that of one that MCP
// clients accept.
const (
	maxName   = 256
	maxListed = 64
)

// checkName refuses what can't be a tool's name.
func checkName(name string) error {
	bad := func(message string) error {
		return &fault.Fault{
			Kind:    fault.InvalidRequest,
			Message: message,
			Got:     display.Truncate([]byte(name), 80),
			Hint:    `Choose a name of letters, digits, "_", "-" and ".", at most 64 of them, such as "square".`,
		}
	}
	switch {
	case name == "":
		return bad("a tool needs a name")
	case len(name) > maxName:
		return bad(fmt.Sprintf("a tool's name has at most %d bytes, this one has %d", maxName, len(name)))
	case !utf8.ValidString(name):
		return bad("a tool's name is UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return bad("a tool's name has no control characters")
	}
	if slices.Contains(Reserved, name) {
		return &fault.Fault{
			Kind:    fault.Refused,
			Message: fmt.Sprintf("the name %q is reserved: %s belong to the server", name, strings.Join(Reserved, ", ")),
			Got:     name,
			Hint:    fmt.Sprintf("Evolve it under another name, such as %q.", "my_"+name),
		}
	}
	return nil
}

// Listed reports whether MCP clients accept the name as that of a tool:
// [A-Za-z0-9_.-]{1,64}. Any other is reached by run only.
func Listed(name string) bool {
	if name == "" || len(name) > maxListed {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}

// What a tool may be published as.
const (
	AsTool = "" // a tool, and nothing else
	// AsPrompt is a prompt: its parameters are the prompt's arguments, and it gives
	// a text or a list of messages.
	AsPrompt = "prompt"
	// AsResource is a resource: it is run on null when it is read.
	AsResource = "resource"
)

// checkAs refuses what can't be published. Clients find prompts and resources by
// their names, so those have names that clients accept.
func checkAs(d *Definition) error {
	switch {
	case d.As != AsTool && d.As != AsPrompt && d.As != AsResource:
		return &fault.Fault{
			Kind:    fault.InvalidRequest,
			Message: fmt.Sprintf("a tool can't be published as %.40q", d.As),
			Got:     display.Truncate([]byte(d.As), 40),
			Hint:    `"as" is "prompt" or "resource", or left out.`,
		}
	case d.As != AsTool && !Listed(d.Name):
		return &fault.Fault{
			Kind:    fault.InvalidRequest,
			Message: fmt.Sprintf("a %s needs a name that clients accept", d.As),
			Got:     display.Truncate([]byte(d.Name), 80),
			Hint:    `Choose a name of letters, digits, "_", "-" and ".", at most 64 of them.`,
		}
	}
	return nil
}

// checkInput refuses a declared schema that can't be kept.
func checkInput(d *Definition) error {
	why := ""
	switch {
	case d.input() == nil:
		return nil
	case len(d.Input) > check.MaxDeclared:
		why = fmt.Sprintf("a declared schema has at most %d bytes, this one has %d", check.MaxDeclared, len(d.Input))
	case d.Input[0] != '{' || !json.Valid(d.Input):
		why = "a declared schema is an object"
	case d.As == AsResource:
		why = "a declared schema is of arguments, and a resource has none"
	default:
		return nil
	}
	return &fault.Fault{
		Kind: fault.InvalidRequest, In: "input_schema", Message: why,
		Hint: `Declare {"type":"object","properties":{…}}, or leave it out.`,
	}
}

// narrow refuses a version whose declared schema lets through what its code can't
// take. It has to be bound.
func (t *Tool) narrow() *fault.Fault {
	if t.Input == nil {
		return nil
	}
	_, f := check.Narrow(t.Report(), t.Input)
	if f != nil {
		f.In = "input_schema"
	}
	return f
}

// Narrowed is the declared schema of the tool's arguments; nil where none was. The
// fault says that what is on record can't be used.
func (t *Tool) Narrowed() (*check.Declared, *fault.Fault) {
	if t.Input == nil {
		return nil, nil
	}
	k := t.know(ofSchemas)
	if k.declared == nil {
		return nil, &fault.Fault{
			Kind:    fault.Refused,
			In:      fmt.Sprintf("tool:%s@%d", t.Name, t.Version),
			Message: fmt.Sprintf("the schema that was declared of %q, version %d, can't be used", t.Name, t.Version),
			Hint:    fmt.Sprintf("Evolve %q anew, with a schema or without one; don't retry.", t.Name),
		}
	}
	return k.declared, nil
}

// sameInput reports whether two schemas are declared by the same text.
func sameInput(a, b json.RawMessage) bool { return bytes.Equal(compact(a), compact(b)) }

// input is the declared schema as it is kept.
func (d *Definition) input() json.RawMessage {
	if len(d.Input) == 0 || string(d.Input) == "null" {
		return nil
	}
	return compact(d.Input)
}
