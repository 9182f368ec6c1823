// Package registry holds the tools that exist: each a name with its current
// version, what it is made of, and what it was granted.
//
// It decides what may be a tool: the name's form, the names reserved for the
// server's own tools, the bounds on number and size, that the code compiles, and
// which versions the names in it are bound to; what the tool may do is decided
// by package caps, from what its code can ask for, what was declared and what
// the operator granted. [Compile] makes these decisions without keeping
// anything; [Registry.Evolve] keeps the result under the next version. A new
// version has nothing of the old one's authority.
//
// The registry is a projection of a [Log], which several processes may share:
// [Open] reads it, every change is in it before it is seen, and
// [Registry.Refresh] takes in what others changed. What the record says of
// authority is never believed: each process decides by its own policy, when it
// opens the log and whenever the policy is another. A record that can't be true
// is left out, with all that is bound to it.
//
// A run sees the tools through a [Snapshot], which never changes: what is
// evolved while it runs is for later runs.
//
// Then compile.go for how a tool is made, edit.go for changes, log.go for the
// way back from the record, document.go and import.go for tools in a file.
package registry

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// Bounds of a registry.
const (
	// MaxTools is how many tools there may be at once. Retired ones don't count.
	MaxTools = 10_000
	// MaxVersions is how many versions there may be of which something is left:
	// the current ones, and those that others are bound to.
	MaxVersions = 2 * MaxTools
	// MaxCode is how long the code of one tool may be, in bytes as given.
	MaxCode = 256 << 10
	// MaxTotal bounds the code of all those versions together, in bytes. A
	// compiled tool takes a good multiple of its text.
	MaxTotal = 8 << 20
	// MaxDescription bounds a description, in bytes.
	MaxDescription = 16 << 10
	// MaxTold bounds the descriptions and examples of all of them together, in
	// bytes.
	MaxTold = 64 << 20
)

// The states of a tool.
const (
	// StateReady is that of a tool that may do all it declares.
	StateReady = "ready"
	// StateBlocked is that of a tool whose capabilities are not granted now. It
	// can be run, and every effect of it is denied.
	StateBlocked = "blocked"
	// StateAsking is that of a tool that waits for a person's approval. It can be
	// run, and what needs the approval is denied.
	StateAsking = "asking"
)

// A Registry is the set of tools that exist now. The zero value is not usable;
// call [Open]. It is safe for concurrent use.
type Registry struct {
	log    Log
	policy *caps.Policy
	byName bool // the log lets changes pass that were made from other names

	// turn is held by whoever changes the tools and would lose a race, or
	// has no reason to try one.
	turn sync.Mutex

	mu       sync.Mutex // one change of what follows at a time
	current  atomic.Pointer[Snapshot]
	held     holdings
	same     *index // that of held; nil in a rehearsal
	problems []error

	listeners atomic.Pointer[[]func([]string)]
	complain  atomic.Pointer[func(error)]
}

// Open makes the tools that a log tells of. What they may do is decided by the
// policy (nil: nothing is granted); a tool that is refused its capabilities is
// there, blocked. The errors of the second kind are of single tools, which are
// left out. A tool that declares nothing isn't compiled before it is used.
func Open(log Log, policy *caps.Policy) (*Registry, []error, error) {
	if policy == nil {
		policy = caps.NewPolicy(nil, nil)
	}
	same := newIndex()
	r := &Registry{log: log, policy: policy, held: newHoldings(same), same: same}
	if l, ok := log.(interface{ ByName() bool }); ok {
		r.byName = l.ByName()
	}
	r.current.Store(new(Snapshot))
	decided := policy.Changes()
	changes, err := log.Newest(0)
	if err != nil {
		return nil, nil, err
	}
	e := new(Snapshot).edit()
	e.next.decided = decided
	r.take(e, changes, recorded)
	r.current.Store(e.done())
	return r, r.problems, nil
}

// Snapshot is the tools as this process last saw them.
func (r *Registry) Snapshot() *Snapshot { return r.current.Load() }

// OnChange has f told, after each new snapshot, which names changed, whoever
// changed them: other code, another state, gone. f may use the registry.
func (r *Registry) OnChange(f func(names []string)) {
	for {
		old := r.listeners.Load()
		var list []func([]string)
		if old != nil {
			list = slices.Clone(*old)
		}
		list = append(list, f)
		if r.listeners.CompareAndSwap(old, &list) {
			return
		}
	}
}

func (r *Registry) tell(names []string) {
	if list := r.listeners.Load(); list != nil && len(names) > 0 {
		for _, f := range *list {
			f(names)
		}
	}
}

// mostProblems bounds what is remembered of records that can't be true.
const mostProblems = 100

func (r *Registry) problem(err error) {
	switch n := len(r.problems); {
	case n > mostProblems:
		return
	case n == mostProblems:
		err = fmt.Errorf("more tools than these %d can't be made", mostProblems)
	}
	r.problems = append(r.problems, err)
	if complain := r.complain.Load(); complain != nil {
		(*complain)(err)
	}
}

// OnProblem has f told each further one of the [Registry.Problems]. f must not use
// the registry.
func (r *Registry) OnProblem(f func(error)) { r.complain.Store(&f) }

// Problems is why tools were left out since the log was opened; at most about a
// hundred of them.
func (r *Registry) Problems() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.problems)
}

// Refresh takes in what other processes changed, and decides anew what the tools
// may do if the policy is another since. It is cheap if there is nothing: ask
// before every request. On an error the snapshot is the one there was.
func (r *Registry) Refresh() (changed bool, err error) {
	newest, err := r.log.Changed()
	if err != nil {
		return false, fmt.Errorf("reading what changed the tools: %w", err)
	}
	if s := r.current.Load(); newest <= s.seq && r.policy.Changes() == s.decided {
		return false, nil
	}
	names, err := r.catchUp()
	r.tell(names)
	return len(names) > 0, err
}

// page is how many changes are read at once.
const page = 100

// catchUp does what Refresh says, and gives the names that changed.
func (r *Registry) catchUp() (names []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.current.Load()
	decided := r.policy.Changes()
	e := before.edit()
	if decided != before.decided {
		r.redecide(e)
		e.next.decided = decided
	}
	for more := true; more; {
		var changes []Change
		changes, more, err = r.log.Since(e.next.seq, page)
		if err != nil {
			err = fmt.Errorf("reading what changed the tools: %w", err)
			break
		}
		r.take(e, changes, anything)
	}
	// What was read before an error holds.
	after := e.done()
	r.current.Store(after)
	return after.differs(before), err
}

// full is the refusal of what doesn't fit.
func full(message string) error {
	return fault.New(fault.Refused, message).
		Hinted("Retire tools that aren't needed, or evolve under a name that exists to replace that tool, or use run with the code itself.")
}

// Trying gives the tools with other code in the place of one's, as it is when a
// recorded run is done again with it: it has no authority, and the names in it
// are bound to the tools of the snapshot. The error is a [*fault.Fault], of kind
// parse_error where it is no code.
func (s *Snapshot) Trying(d Definition) (*Snapshot, *Tool, error) {
	t, err := prepare(d)
	if err != nil {
		return nil, nil, err
	}
	t.bind(s)
	return s.Putting(t), t, nil
}

// Putting gives the tools with t in the place of the one of its name.
func (s *Snapshot) Putting(t *Tool) *Snapshot {
	e := s.edit()
	e.set(t)
	return e.done()
}

// shards is in how many parts a snapshot's map is split: a change copies one.
const shards = 256

var seed = maphash.MakeSeed()

// A Snapshot is the tools at one moment. It is immutable; the zero value has no
// tools. What a run looks up in it goes through package run.
type Snapshot struct {
	tools [shards]map[string]*Tool
	count int
	seq   uint64
	// decided is [caps.Policy.Changes] when it was decided what the tools may do.
	decided uint64
}

func shard(name string) int { return int(maphash.String(seed, name) % shards) }

// Len is the number of tools.
func (s *Snapshot) Len() int { return s.count }

// Seq is the number, in the log, of the last change it includes; 0: none.
func (s *Snapshot) Seq() uint64 { return s.seq }

// Get finds the current version of a tool.
func (s *Snapshot) Get(name string) (*Tool, bool) {
	t, ok := s.tools[shard(name)][name]
	return t, ok
}

// All is the tools sorted by name. The slice is the caller's.
func (s *Snapshot) All() []*Tool {
	all := make([]*Tool, 0, s.count)
	for _, part := range s.tools {
		all = slices.AppendSeq(all, maps.Values(part))
	}
	slices.SortFunc(all, func(a, b *Tool) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// differs is the names, sorted, for which there is another tool than in before,
// or one in only one of the two.
func (s *Snapshot) differs(before *Snapshot) (names []string) {
	for i := range s.tools {
		old, now := before.tools[i], s.tools[i]
		if len(old) == 0 && len(now) == 0 {
			continue
		}
		for name, t := range now {
			if old[name] != t {
				names = append(names, name)
			}
		}
		for name := range old {
			if _, ok := now[name]; !ok {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// An editing is a snapshot on its way to the next one.
type editing struct {
	next Snapshot
	own  [shards]bool // parts that are this one's to change
}

func (s *Snapshot) edit() *editing { return &editing{next: *s} }

// done ends it.
func (e *editing) done() *Snapshot { return &e.next }

func (e *editing) part(name string) map[string]*Tool {
	i := shard(name)
	if !e.own[i] {
		e.own[i] = true
		part := make(map[string]*Tool, len(e.next.tools[i])+1)
		maps.Copy(part, e.next.tools[i])
		e.next.tools[i] = part
	}
	return e.next.tools[i]
}

func (e *editing) set(t *Tool) {
	part := e.part(t.Name)
	if _, ok := part[t.Name]; !ok {
		e.next.count++
	}
	part[t.Name] = t
}

func (e *editing) remove(name string) {
	if _, ok := e.next.Get(name); ok {
		delete(e.part(name), name)
		e.next.count--
	}
}
