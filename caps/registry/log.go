package registry

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
)

// ErrBehind is the error of [Log.Append] where there is a newer change.
var ErrBehind = errors.New("the tools changed meanwhile")

// A ChangeKind is what became of a tool.
type ChangeKind uint8

// What becomes of tools.
const (
	Evolved    ChangeKind = 1 + iota // it has a new version
	Retired                          // it is gone
	RolledBack                       // it has a new version, made from an old one
)

// String is the kind in a word.
func (k ChangeKind) String() string {
	switch k {
	case Evolved:
		return "evolved"
	case Retired:
		return "retired"
	case RolledBack:
		return "rolled back"
	}
	return "unknown"
}

// A Ref names a version of a tool.
type Ref struct {
	Name    string
	Version int
}

// A Binding is the version that a name in a tool's code stands for.
type Binding struct {
	Ref
	Hash string // "": not on record
	// Seq is the number of the change that made it; 0: not on record.
	Seq uint64
}

// A Stored is a version of a tool as it was recorded.
type Stored struct {
	Definition
	Version int
	Hash    string
	Bound   []Binding
	// Group is that of [Tool].
	Group []Member
	Facts Facts
	// Canonical is code in the text form as canonical JSON, by which it is read where
	// the text comes to be read otherwise; nil: not on record.
	Canonical []byte
}

// A Change is one entry of a log. Of a [Retired] one there is the name, and the
// version and hash that were current.
type Change struct {
	Seq  uint64
	Time time.Time
	Kind ChangeKind
	Stored
	// Capabilities is what was in effect when it was made, by the policy of the
	// process that made it; nothing is decided by it. What was declared is
	// Stored.Definition.Capabilities.
	Capabilities []string
	// Home is [Tool.Home].
	Home string
	// From is the version that a [RolledBack] one was made from.
	From int
	// Unsound is why the entry isn't to be believed though it can be read: the
	// version is there, and its code is never run.
	Unsound error
	// Err is why the entry can't be read; of the rest only Seq, Kind and perhaps
	// the name are known then.
	Err error
}

// A Log keeps what changed the tools, in order. Several processes may append to
// one. It is safe for concurrent use.
type Log interface {
	// Append makes a change last before it returns, and gives its number. If
	// there is a change with a number larger than after, nothing is appended
	// and the error is [ErrBehind]. With the names that the change was made from, a
	// log may let those with other names pass: then it isn't the next one after what
	// was known.
	Append(after uint64, c *Change, read ...string) (seq uint64, err error)
	// AppendAll is Append of several changes in a row, all or none of them. What is
	// bound to one of them has in its place the number that it would have if the
	// first had the number after+1: the log puts in what they come to have. It gives
	// the first's.
	AppendAll(after uint64, list []Change, read ...string) (first uint64, err error)
	// Changed is the number of the newest change, 0 for none. It is asked before
	// every request.
	Changed() (uint64, error)
	// Newest is the newest change of each tool with a number of at most through,
	// in the order of the numbers; 0: no bound.
	Newest(through uint64) ([]Change, error)
	// Since is the changes with a larger number than after, in order, at most
	// limit, and whether there are more.
	Since(after uint64, limit int) (changes []Change, more bool, err error)
	// Of is the changes of a tool with a smaller number than before (0: any),
	// newest first, at most limit, and whether there are more.
	Of(name string, before uint64, limit int) (changes []Change, more bool, err error)
	// One is the change of a number, if there is one.
	One(seq uint64) (c Change, ok bool, err error)
}

// A loader makes tools of what is on record, each version once. What a record
// says is believed as far as it can be true: a version is bound to earlier ones
// only, so that bindings end; its code has the hash that is on record.
type loader struct {
	log Log
	// policy gives a tool its authority; nil: it gets none and isn't compiled.
	policy *caps.Policy
	// found is the tools that were there before, by the number of their change.
	found func(seq uint64) *Tool
	// changes is those that were read already, by their number.
	changes map[uint64]*Change
	made    map[uint64]*Tool
	bad     map[uint64]error
}

func newLoader(log Log, policy *caps.Policy, found func(uint64) *Tool) *loader {
	if found == nil {
		found = func(uint64) *Tool { return nil }
	}
	return &loader{
		log: log, policy: policy, found: found,
		changes: map[uint64]*Change{}, made: map[uint64]*Tool{}, bad: map[uint64]error{},
	}
}

// load makes the tools of some changes, and those they are bound to. Afterwards
// [loader.tool] gives each.
func (l *loader) load(changes []Change) {
	if len(l.changes) == 0 {
		l.changes, l.made = make(map[uint64]*Change, len(changes)), make(map[uint64]*Tool, len(changes))
	}
	for i := range changes {
		c := &changes[i]
		l.changes[c.Seq] = c
		if i > 0 && c.Group != nil && slices.Equal(c.Group, changes[i-1].Group) {
			c.Group = changes[i-1].Group // they were made together, and keep one list
		}
	}
	todo := make([]*Change, 0, len(changes))
	for i := range changes {
		if c := &changes[i]; c.Kind != Retired {
			todo = append(todo, c)
		}
	}
	// What they are bound to, and what that is bound to, without recursion:
	// chains can be long.
	bound := map[uint64][]*Change{}
	for len(todo) > 0 {
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if l.made[c.Seq] != nil || l.bad[c.Seq] != nil {
			continue
		}
		t, err := c.tool()
		if err != nil {
			l.bad[c.Seq] = err
			continue
		}
		if l.policy != nil {
			t.world = world{kinds: l.policy.Kinds()}
		}
		l.made[c.Seq] = t
		if l.bad[c.Seq] = c.grouped(); l.bad[c.Seq] != nil {
			continue
		}
		delete(l.bad, c.Seq)
		for i := range c.Bound {
			b, err := l.find(c, &c.Bound[i])
			if err != nil {
				l.bad[c.Seq] = err
				break
			}
			bound[c.Seq] = append(bound[c.Seq], b)
			if l.found(b.Seq) == nil {
				todo = append(todo, b)
			}
		}
	}
	l.settle()
	l.spoilGroups(bound)
	defer l.group(bound)
	for _, seq := range slices.Sorted(maps.Keys(l.made)) {
		t := l.made[seq]
		for _, c := range bound[seq] {
			if b, err := l.tool(c.Seq); err != nil && l.bad[seq] == nil {
				l.bad[seq] = fmt.Errorf("it is bound to version %d of %q, which can't be made: %w", c.Version, c.Name, root(err))
			} else if err == nil {
				t.boundTo(b)
			}
		}
		t.blockUnbound()
	}
}

// root is the innermost error: of a chain of versions, why the first can't be made.
func root(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// settle gives the tools that declare something their authority, several at once.
func (l *loader) settle() {
	var all []*Tool
	for seq, t := range l.made {
		if len(t.Declared) > 0 && l.bad[seq] == nil {
			all = append(all, t)
		}
	}
	if l.policy == nil || len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b *Tool) int { return cmp.Compare(a.Seq, b.Seq) })
	var wg sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), len(all))
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(all); i += workers {
				all[i].settle(l.policy)
			}
		})
	}
	wg.Wait()
}

// tool is the version that a change made.
func (l *loader) tool(seq uint64) (*Tool, error) {
	if t := l.found(seq); t != nil {
		return t, nil
	}
	if err := l.bad[seq]; err != nil {
		return nil, err
	}
	if t := l.made[seq]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("event %d made no version of a tool", seq)
}

// find is the change that made the version a change is bound to.
func (l *loader) find(c *Change, b *Binding) (*Change, error) {
	bad := func(format string, a ...any) (*Change, error) {
		return nil, fmt.Errorf("it is bound to version %d of %.80q, %s", b.Version, b.Name, fmt.Sprintf(format, a...))
	}
	found := l.changes[b.Seq]
	if found == nil {
		var one Change
		var ok bool
		var err error
		if b.Seq > 0 {
			one, ok, err = l.log.One(b.Seq)
		} else {
			one, ok, err = version(l.log, b.Ref, c.Seq)
		}
		if err != nil {
			return bad("which can't be read: %v", err)
		}
		if !ok {
			return bad("which is not on record")
		}
		if found = l.changes[one.Seq]; found == nil {
			found = &one
			l.changes[one.Seq] = found
		}
	}
	switch {
	case found.Seq >= c.Seq && !c.with(found):
		return bad("which was made later")
	case found.Err != nil:
		return bad("which can't be read: %v", found.Err)
	case found.Kind == Retired || found.Name != b.Name || found.Version != b.Version || b.Hash != "" && found.Hash != b.Hash:
		return bad("and event %d made another", found.Seq)
	}
	return found, nil
}

// version finds, before a change, the one that made a version of a tool.
func version(log Log, ref Ref, before uint64) (Change, bool, error) {
	for {
		changes, more, err := log.Of(ref.Name, before, page)
		if err != nil {
			return Change{}, false, err
		}
		for _, c := range changes {
			if c.Kind != Retired && c.Version == ref.Version {
				return c, true, nil
			}
		}
		if !more || len(changes) == 0 {
			return Change{}, false, nil
		}
		before = changes[len(changes)-1].Seq
	}
}

// tool makes the version that a change tells of, without authority and not bound
// to anything. It isn't compiled.
func (c *Change) tool() (*Tool, error) {
	switch {
	case c.Err != nil:
		return nil, c.Err
	case c.Version < 1:
		return nil, fmt.Errorf("it has the version %d on record", c.Version)
	case len(c.Description) > 2*MaxDescription:
		return nil, fmt.Errorf("its description has %d bytes", len(c.Description))
	case len(c.Hash) != 64:
		return nil, errors.New("it has no hash on record")
	}
	if err := checkName(c.Name); err != nil {
		return nil, err
	}
	if err := CheckSize(c.Code); err != nil {
		return nil, err
	}
	if err := checkExamples(c.Examples); err != nil {
		return nil, err
	}
	if err := checkAs(&c.Definition); err != nil {
		return nil, err
	}
	if err := checkInput(&c.Definition); err != nil {
		return nil, err
	}
	t := &Tool{
		Name: c.Name, Version: c.Version, Seq: c.Seq, Time: c.Time, Hash: c.Hash,
		Description: c.Description, Source: c.Code, Text: c.Text, Examples: c.Examples, As: c.As, Input: c.Definition.input(), MadeUnder: c.MadeUnder, Home: c.Home,
		Declared: c.Definition.Capabilities, Capabilities: []string{}, State: StateReady,
		code:    &code{name: c.Name, source: c.Code, text: c.Text, hash: c.Hash, json: c.Canonical},
		finding: &finding{},
		kept:    c.Facts.keep(),
	}
	if len(t.Declared) > 0 {
		t.State, t.Why = StateBlocked, "it wasn't decided what it may do"
	}
	if i := slices.Index(memberNames(c.Group), c.Name); i >= 0 {
		t.Group, t.code.names, t.code.hash = c.Group, memberNames(c.Group), c.Group[i].Code
	}
	if c.Unsound != nil {
		t.code.spoil(c.Unsound)
	}
	return t, nil
}

// named says which tool an error is about.
func named(c *Change, err error) error {
	if c.Name == "" {
		return fmt.Errorf("event %d: %w", c.Seq, err)
	}
	return fmt.Errorf("tool %.80q, version %d: %w", c.Name, c.Version, err)
}
