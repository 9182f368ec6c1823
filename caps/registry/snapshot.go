package registry

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// shards is in how many parts a snapshot's map is split: a change copies one.
const shards = 256

var seed = maphash.MakeSeed()

// A Snapshot is the tools at one moment. It is immutable; the zero value has no
// tools. What a run looks up in it goes through package run.
type Snapshot struct {
	tools [shards]map[string]*Tool
	count int
	bytes int // of code, together
}

func shard(name string) int { return int(maphash.String(seed, name) % shards) }

// Len is the number of tools.
func (s *Snapshot) Len() int { return s.count }

// Get finds the current version of a tool.
func (s *Snapshot) Get(name string) (*Tool, bool) {
	t, ok := s.tools[shard(name)][name]
	return t, ok
}

// All is the tools sorted by name. The slice is the caller's.
func (s *Snapshot) All() []*Tool {
	all := make([]*Tool, 0, s.count)
	for _, part := range s.tools {
		for _, t := range part {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *Tool) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// With is the snapshot with t in it, as it is, whatever its version. The error
// is a [*fault.Fault] of kind refused where there is no room.
func (s *Snapshot) With(t *Tool) (*Snapshot, error) { return s.with(t) }

func (s *Snapshot) with(t *Tool) (*Snapshot, error) {
	next := *s
	i := shard(t.Name)
	part := make(map[string]*Tool, len(s.tools[i])+1)
	for name, tool := range s.tools[i] {
		part[name] = tool
	}
	if old, ok := part[t.Name]; ok {
		next.bytes -= len(old.Source)
		next.count--
	}
	part[t.Name] = t
	next.tools[i] = part
	next.bytes += len(t.Source)
	next.count++
	if next.count > MaxTools {
		return nil, full(fmt.Sprintf("there are %d tools already, and no more fit", MaxTools))
	}
	if next.bytes > MaxTotal && next.bytes > s.bytes {
		return nil, full(fmt.Sprintf("the tools' code would take %d bytes together, at most %d fit", next.bytes, MaxTotal))
	}
	return &next, nil
}

func full(message string) error {
	return &fault.Fault{
		Kind:    fault.Refused,
		Message: message,
		Hint:    "Evolve under a name that exists to replace that tool, or use run with the code itself.",
	}
}
