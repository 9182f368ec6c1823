package journal

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/core"
)

// chunk is how many events are dropped at once, or the last of as many as make the
// 64th part of the journal's size.
const chunk = 1024

// overhead is about what an event takes besides its strings and data.
const overhead = 160

// Memory is a [Journal] of one process. It keeps the newest events, as many as
// fit its size; what was dropped is replaced by a checkpoint. Events that changed
// the tools there are stay, as long as they take no more than half of the size;
// then the oldest go that a newer one of the same tool follows.
//
// Events are sealed behind Append, in order: whoever reads them finds them sealed.
type Memory struct {
	mu     sync.Mutex
	size   int64
	held   int64
	now    func() time.Time
	chunks [][]Event // the oldest first
	newest int64     // bytes of the last chunk
	last   uint64    // number of the newest event
	// sealed is the number of the newest that has its hash, which is head.
	sealed uint64
	head   Hash
	// sealing is set while a goroutine seals.
	sealing bool
	// dropped is the checkpoint in place of what is gone; Seq 0: nothing is.
	dropped Event
	// kept are the events of dropped chunks that changed the tools there are,
	// of keptSize bytes.
	kept     []Event
	keptSize int64
	forgot   int64  // what keptSize was when forget ended: nothing more can be forgotten soon
	changed  uint64 // number of the newest event that did
	// tools is hashes of the names of tools that events are or were about, so that a new tool's aren't
	// looked for in all of them; nil: nobody asked, or there were many.
	tools  map[uint64]struct{}
	mirror func(*Event) error
	room   *Room // nil: it has its size alone
}

// A Room is what several journals in memory hold together at most. Where they would hold more, the
// one that holds most drops its oldest events.
type Room struct {
	most   int64
	keeper core.Keeper
	mu     sync.Mutex
	held   int64
	all    map[*Memory]int64
}

// NewRoom makes room for about so many bytes. Where runs need memory they take up to half of it.
func NewRoom(bytes int64) *Room {
	r := &Room{most: bytes, all: map[*Memory]int64{}}
	r.keeper.Drop = func(need int64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.shrink(max(r.most/2, r.held-need))
	}
	return r
}

// Memory returns an empty journal of at most about size bytes in the room, until it is closed.
func (r *Room) Memory(size int64) *Memory {
	m := NewMemory(min(size, r.most), nil)
	m.room = r
	return m
}

// note notes what a journal holds, and has events dropped where that is too much. Nobody
// may hold a journal's lock.
func (r *Room) note(m *Memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.mu.Lock()
	r.count(m)
	m.mu.Unlock()
	r.shrink(r.most)
}

// count counts what a journal holds, none once it is closed. The caller holds both locks.
func (r *Room) count(m *Memory) {
	bytes := m.held
	if m.room == nil {
		bytes = 0
	}
	r.keeper.Note(bytes - r.all[m])
	r.held += bytes - r.all[m]
	if r.all[m] = bytes; bytes == 0 {
		delete(r.all, m)
	}
}

// shrink drops events until so many bytes are held, or what is left is tools and the last few.
func (r *Room) shrink(most int64) {
	stuck := map[*Memory]bool{}
	for r.held > most {
		var m *Memory
		for other, bytes := range r.all {
			if !stuck[other] && (m == nil || bytes > r.all[m]) {
				m = other
			}
		}
		if m == nil {
			return
		}
		m.mu.Lock()
		before := m.held
		if n := len(m.chunks); n > 1 || n == 1 && m.newest > m.size/64 {
			m.drop()
		}
		stuck[m] = m.held >= before
		r.count(m)
		m.mu.Unlock()
	}
}

// NewMemory returns an empty journal that holds about size bytes at most. mirror,
// if it isn't nil, is given every event before Append returns; an error of it
// is Append's.
func NewMemory(size int64, mirror func(*Event) error) *Memory {
	return &Memory{size: size, now: time.Now, mirror: mirror}
}

// Append implements [Journal]. All stages are one here.
func (m *Memory) Append(_ Stage, k Kind, run, branch string, data []byte) (uint64, error) {
	return m.append(math.MaxUint64, k, run, branch, data)
}

// AppendLater implements [Journal]. There is nothing to wait for.
func (m *Memory) AppendLater(st Stage, k Kind, run, branch string, data []byte) (wait func() (seq uint64, err error)) {
	seq, err := m.Append(st, k, run, branch, data)
	return func() (uint64, error) { return seq, err }
}

// Change implements [Journal].
func (m *Memory) Change(after uint64, k Kind, data []byte, _ ...string) (uint64, error) {
	if err := checkChange(k, data); err != nil {
		return 0, err
	}
	return m.append(after, k, "", "", data)
}

// append appends an event unless the tools were changed after an event.
func (m *Memory) append(after uint64, k Kind, run, branch string, data []byte) (uint64, error) {
	if cap(data) > len(data)+len(data)/4 {
		data = bytes.Clone(data) // it is kept for long
	}
	defer m.note()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed > after {
		return 0, ErrBehind
	}
	return m.add(k, run, branch, data)
}

// note notes in its room what it holds.
func (m *Memory) note() {
	m.mu.Lock()
	room := m.room
	m.mu.Unlock()
	if room != nil {
		room.note(m)
	}
}

// ChangeAll implements [Journal]. An error of mirror leaves those before it.
func (m *Memory) ChangeAll(after uint64, parts []Part, _ ...string) (first uint64, err error) {
	if _, err := checkAll(parts); err != nil {
		return 0, err
	}
	defer m.note()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed > after {
		return 0, ErrBehind
	}
	first = m.last + 1
	for i := range parts {
		if err == nil {
			_, err = m.add(parts[i].Kind, "", "", parts[i].fill(first))
		}
	}
	return first, err
}

// add appends an event. The caller has the lock.
func (m *Memory) add(k Kind, run, branch string, data []byte) (uint64, error) {
	e := Event{
		Seq: m.last + 1, Time: m.now().UTC().Truncate(time.Microsecond),
		Kind: k, Run: run, Branch: branch, Data: data,
	}
	if m.mirror != nil {
		m.seal()
		e.Prev = m.head
		e.Hash = e.Seal()
		if err := m.mirror(&e); err != nil {
			return 0, fmt.Errorf("recording event %d: %w", e.Seq, err)
		}
	}
	if n := len(m.chunks); n == 0 || len(m.chunks[n-1]) == chunk || m.newest > m.size/256 {
		m.chunks, m.newest = append(m.chunks, nil), 0
	}
	last := &m.chunks[len(m.chunks)-1]
	*last = append(*last, e)
	m.last = e.Seq
	if k.Changes() {
		m.changed = e.Seq
	}
	if m.tools != nil && k.aboutTool() {
		m.tools[hashName(e.Tool())] = struct{}{}
	}
	m.newest += weight(&e)
	m.held += weight(&e)
	for m.held > m.size && m.held-m.keptSize > m.size/4 && len(m.chunks) > 1 {
		m.drop()
	}
	if !m.sealing {
		m.sealing = true
		go m.sealBehind()
	}
	return e.Seq, nil
}

func weight(e *Event) int64 {
	return overhead + int64(len(e.Run)+len(e.Branch)+cap(e.Data))
}

// has reports whether an event that is kept may be about a tool.
func (m *Memory) has(tool string) bool {
	if m.tools == nil {
		m.tools = map[uint64]struct{}{}
		for _, c := range append([][]Event{m.kept}, m.chunks...) {
			for i := range c {
				if c[i].Kind.aboutTool() {
					m.tools[hashName(c[i].Tool())] = struct{}{}
				}
			}
		}
	}
	_, ok := m.tools[hashName(tool)]
	return ok
}

var nameSeed = maphash.MakeSeed()

func hashName(tool string) uint64 { return maphash.String(nameSeed, tool) }

// at returns the event with a number, which is kept.
func (m *Memory) at(seq uint64) *Event {
	i := sort.Search(len(m.chunks), func(i int) bool { return m.chunks[i][0].Seq > seq }) - 1
	return &m.chunks[i][seq-m.chunks[i][0].Seq]
}

// seal gives every event its hash.
func (m *Memory) seal() {
	for m.sealed < m.last {
		e := m.at(m.sealed + 1)
		e.Prev = m.head
		e.Hash = e.Seal()
		m.sealed, m.head = e.Seq, e.Hash
	}
}

// sealBehind seals what there is, and ends. It holds the lock for no longer than
// copying takes.
func (m *Memory) sealBehind() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.sealed < m.last {
		e := *m.at(m.sealed + 1)
		e.Prev = m.head
		m.mu.Unlock()
		hash := e.Seal()
		m.mu.Lock()
		if m.sealed+1 != e.Seq {
			continue // a reader was faster
		}
		kept := m.at(e.Seq)
		kept.Prev, kept.Hash = e.Prev, hash
		m.sealed, m.head = e.Seq, hash
	}
	m.sealing = false
}

// drop gives up the oldest chunk.
func (m *Memory) drop() {
	if len(m.tools) > 1<<16 {
		m.tools = nil // most may be of events that are gone
	}
	old := m.chunks[0]
	end := &old[len(old)-1]
	if m.sealed < end.Seq {
		m.seal()
	}
	for i := range old {
		if n := weight(&old[i]); old[i].Kind.Changes() {
			m.kept = append(m.kept, old[i])
			m.keptSize += n
		} else {
			m.held -= n
		}
	}
	if m.keptSize > max(m.size/2, m.forgot+m.size/16) {
		m.forget()
		m.forgot = m.keptSize
	}
	// The checkpoint takes the number of the last event that is gone and so
	// keeps the chain's shape; the next event was made after that event's hash.
	m.dropped = Event{
		Seq: end.Seq, Hash: end.Hash, Prev: end.Prev, Time: end.Time, Kind: Checkpoint,
		Data: fmt.Appendf(nil, `{"dropped":%d,"hash":%q}`, end.Seq, end.Hash),
	}
	m.chunks = slices.Delete(m.chunks, 0, 1)
}

// forget gives up old versions of tools, with some room for those to come.
func (m *Memory) forget() {
	newest := map[string]uint64{}
	for i := range m.kept {
		newest[m.kept[i].Tool()] = m.kept[i].Seq
	}
	m.kept = slices.DeleteFunc(m.kept, func(e Event) bool {
		if m.keptSize <= m.size/8*3 || newest[e.Tool()] == e.Seq {
			return false
		}
		m.keptSize -= weight(&e)
		m.held -= weight(&e)
		return true
	})
}

// Changed implements [Journal].
func (m *Memory) Changed() (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed, nil
}

// EachNewest implements [Journal].
func (m *Memory) EachNewest(through uint64, each func(*Event) error) error {
	q := Query{Changes: true}
	if through > 0 {
		q.Before = through + 1
	}
	events, _, err := m.Read(q)
	if err != nil {
		return err
	}
	newest := map[string]uint64{}
	for i := range events {
		newest[events[i].Tool()] = events[i].Seq
	}
	for i := range events {
		if e := &events[i]; e.Tool() != "" && newest[e.Tool()] == e.Seq {
			if err := each(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// Dropped returns the number up to which events are gone, but those that changed the
// tools there are.
func (m *Memory) Dropped() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dropped.Seq
}

// Len returns the number of the newest event.
func (m *Memory) Len() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// Read implements [Journal]. The events' Data must not be changed.
func (m *Memory) Read(q Query) ([]Event, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seal()
	if q.Tool != "" && !m.has(q.Tool) {
		return nil, false, nil
	}
	var found []Event
	take := func(e *Event) (full bool) {
		if !q.Matches(e) {
			return false
		}
		if q.Limit > 0 && len(found) == q.Limit {
			return true
		}
		found = append(found, *e)
		return false
	}
	all := append([][]Event{m.kept}, m.chunks...)
	if q.Last {
		defer func() { slices.Reverse(found) }()
		for _, c := range slices.Backward(all) {
			for i := range slices.Backward(c) {
				if take(&c[i]) {
					return found, true, nil
				}
			}
		}
		return found, false, nil
	}
	for _, c := range all {
		if len(c) == 0 || c[len(c)-1].Seq <= q.After {
			continue
		}
		for i := range c {
			if take(&c[i]) {
				return found, true, nil
			}
		}
	}
	return found, false, nil
}

// Verify checks the chain of what is kept. The error is a [*Break].
func (m *Memory) Verify() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seal()
	v := Verifier{}
	if m.dropped.Seq > 0 {
		v.Count, v.From, v.last = 1, m.dropped.Seq, m.dropped
	}
	for _, c := range m.chunks {
		for i := range c {
			if err := v.Next(&c[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close implements [Journal]; there is nothing to write.
func (m *Memory) Close() error {
	m.mu.Lock()
	room := m.room
	m.room = nil
	m.mu.Unlock()
	if room != nil {
		room.note(m)
	}
	return nil
}
