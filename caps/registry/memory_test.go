package registry

import (
	"slices"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
)

// New returns a registry without tools that keeps them in memory.
func New(policy *caps.Policy) *Registry {
	r, _, err := Open(new(memoryLog), policy)
	if err != nil {
		panic(err) // an empty log can be read
	}
	return r
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
