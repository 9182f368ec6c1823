package registry

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
)

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
		for _, t := range part {
			all = append(all, t)
		}
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
