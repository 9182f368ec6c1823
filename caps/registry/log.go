package registry

import (
	"errors"
	"slices"
	"sync"
	"time"
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

// memoryLog is a log that ends with the process. The zero value is empty.
type memoryLog struct {
	mu      sync.Mutex
	changes []Change
}

func (l *memoryLog) Append(after uint64, c *Change, _ ...string) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if after < uint64(len(l.changes)) {
		return 0, ErrBehind
	}
	kept := *c
	kept.Seq = uint64(len(l.changes)) + 1
	kept.Time = time.Now().UTC().Truncate(time.Microsecond)
	l.changes = append(l.changes, kept)
	return kept.Seq, nil
}

func (l *memoryLog) AppendAll(after uint64, list []Change, _ ...string) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if after < uint64(len(l.changes)) {
		return 0, ErrBehind
	}
	for _, c := range list {
		c.Seq = uint64(len(l.changes)) + 1
		c.Time = time.Now().UTC().Truncate(time.Microsecond)
		l.changes = append(l.changes, c)
	}
	return after + 1, nil
}

func (l *memoryLog) Changed() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(len(l.changes)), nil
}

func (l *memoryLog) Newest(through uint64) ([]Change, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Change
	seen := map[string]bool{}
	for _, c := range slices.Backward(l.changes) {
		if (through == 0 || c.Seq <= through) && !seen[c.Name] {
			seen[c.Name] = true
			list = append(list, c)
		}
	}
	slices.Reverse(list)
	return list, nil
}

func (l *memoryLog) Since(after uint64, limit int) ([]Change, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.changes[min(after, uint64(len(l.changes))):]
	n := min(limit, len(rest))
	return slices.Clone(rest[:n]), n < len(rest), nil
}

func (l *memoryLog) Of(name string, before uint64, limit int) (list []Change, more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range slices.Backward(l.changes) {
		if c.Name != name || before > 0 && c.Seq >= before {
			continue
		}
		if len(list) == limit {
			return list, true, nil
		}
		list = append(list, c)
	}
	return list, false, nil
}

func (l *memoryLog) One(seq uint64) (Change, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq == 0 || seq > uint64(len(l.changes)) {
		return Change{}, false, nil
	}
	return l.changes[seq-1], true, nil
}
