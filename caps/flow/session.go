package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// A Session is what a model was shown, and what was written where, of one profile and principal. It
// lasts: servers of the same profile share the file, and only [Session.Clear] empties it. It is safe
// for concurrent use.
type Session struct {
	path   string // "": in memory
	policy *Policy
	// Stores is what folders hold, whichever profile or principal wrote it there; nil: only this session's is known.
	Stores *Session
	// Kept is the session with what all other stores hold, where those last longer than this one; nil: it is this.
	Kept *Session
	// Fresh waits until its file has what other processes acknowledged, where it is a cluster's; nil: it always has.
	Fresh func() error

	mu   sync.Mutex
	seen os.FileInfo
	now  SessionState
	// tainted is the stores of now, read.
	tainted []taintedStore
}

// A SessionState is what lasts of a session, by names, since a policy may number them otherwise later.
type SessionState struct {
	// Label is the sources that the model was shown something of.
	Label []string `json:"label,omitempty"`
	// Bits is how much was shown of each source in spite of a rule.
	Bits map[string]int `json:"bits,omitempty"`
	// Taints is the sources that stores hold besides their labels, by what the policy calls the store.
	Taints map[string][]string `json:"taints,omitempty"`
	// Moves is the places that requests under way act on, by the requests' keys: what one of them takes on, all do. Those of
	// a server that ended stay.
	Moves map[string][]string `json:"moves,omitempty"`
}

// Empty reports whether nothing was shown or written.
func (s SessionState) Empty() bool { return len(s.Label)+len(s.Bits)+len(s.Taints)+len(s.Moves) == 0 }

type taintedStore struct {
	store caps.Requests
	atoms Atoms
}

// NewSession opens the session of a file, which needn't be there; "" is memory. p may be nil, for who only
// looks.
func NewSession(path string, p *Policy) (*Session, error) {
	s := &Session{path: path, policy: p}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.refresh()
}

// refresh takes in what the file has now; s.mu is held.
func (s *Session) refresh() error {
	if s.path == "" {
		return nil
	}
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.seen, s.now, s.tainted = nil, SessionState{}, nil
		return nil
	case err != nil:
		return err
	case statefile.Unchanged(s.seen, info):
		return nil
	}
	text, err := statefile.ReadPrivate(s.path, 1<<20)
	if err != nil {
		return fmt.Errorf("what the model was shown: %w", err)
	}
	var state SessionState
	if err := json.Unmarshal(text, &state); err != nil {
		return fmt.Errorf("what the model was shown: %s: %w", s.path, err)
	}
	s.seen, s.now = info, state
	s.readTaints()
	return nil
}

func (s *Session) readTaints() {
	s.tainted = nil
	if s.policy == nil {
		return
	}
	for _, text := range slices.Sorted(maps.Keys(s.now.Taints)) {
		if r, err := caps.ParseRequests(text, "", s.policy.kinds); err == nil {
			s.tainted = append(s.tainted, taintedStore{r, s.policy.Known(s.now.Taints[text])})
		}
	}
}

// State is what there is now.
func (s *Session) State() (SessionState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.refresh()
	state := s.now
	for _, other := range []*Session{s.Kept, s.Stores} {
		if other == nil {
			continue
		}
		all, wrong := other.State()
		state.Taints, state.Moves, err = merge(state.Taints, all.Taints), merge(state.Moves, all.Moves), errors.Join(err, wrong)
	}
	return state, err
}

func merge(some, others map[string][]string) map[string][]string {
	all := map[string][]string{}
	maps.Copy(all, some)
	maps.Copy(all, others)
	return all
}

// keeps is the session that has what stores of a kind hold; nil: this one.
func (s *Session) keeps(m *caps.Manifest) *Session {
	if m.Algebra == caps.Path && s.Stores != nil {
		return s.Stores
	}
	return s.Kept
}

// Label is what whatever the model says counts as: [Session.Seen], or all sources where that can't be read.
func (s *Session) Label() Atoms {
	a, err := s.Seen()
	if err != nil {
		return ^Atoms(0) >> (maxAtoms - len(s.policy.names))
	}
	return a
}

// Seen is the sources that the model was shown something of.
func (s *Session) Seen() (Atoms, error) {
	p := s.policy
	if p == nil || p.IgnoreSession {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.refresh()
	return p.Start | p.Known(s.now.Label), err
}

// change changes the state, of what is on file now, and writes it, on all nodes of a cluster. It may do so
// more than once, and nobody waits for it who only looks.
func (s *Session) change(do func(*SessionState) bool) (changed bool, err error) {
	if s.path != "" && s.Fresh != nil { // "nothing new" is of now
		if err := s.Fresh(); err != nil {
			return false, fmt.Errorf("what the model was shown can't be kept: %w", err)
		}
	}
	s.mu.Lock()
	if err := s.refresh(); err != nil {
		s.mu.Unlock()
		return false, err
	}
	next := SessionState{Label: slices.Clone(s.now.Label), Bits: maps.Clone(s.now.Bits), Taints: maps.Clone(s.now.Taints), Moves: maps.Clone(s.now.Moves)}
	changed = do(&next)
	if changed && s.path == "" {
		s.now = next
		s.readTaints()
	}
	s.mu.Unlock()
	if !changed || s.path == "" {
		return changed, nil
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return false, err
	}
	err = statefile.Change(s.path, func(before []byte) ([]byte, error) {
		var next SessionState
		if before != nil {
			if err := json.Unmarshal(before, &next); err != nil {
				return nil, err
			}
		}
		if !do(&next) {
			return nil, statefile.ErrSame
		}
		return statefile.EncodeJSON(next)
	})
	if errors.Is(err, statefile.ErrSame) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("what the model was shown can't be kept: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return true, s.refresh()
}

// union adds names to a list; ok is false if all were there.
func union(to []string, names []string) (list []string, ok bool) {
	list = slices.Compact(slices.Sorted(slices.Values(slices.Concat(to, names))))
	return list, len(list) > len(to)
}

// Show records that the model is shown something of sources, before it is. It reports whether that is new.
func (s *Session) Show(a Atoms) (bool, error) {
	names := s.policy.Names(a)
	if s.policy.IgnoreSession || len(names) == 0 {
		return false, nil
	}
	return s.change(func(st *SessionState) (ok bool) {
		st.Label, ok = union(st.Label, names)
		return ok
	})
}

// A Telling is bits that a model is told of sources in spite of a rule, which allows so many in all; 0: any number.
type Telling struct {
	Of         Atoms
	Bits, Most int
}

// Spend records that an answer is shown in spite of rules. Its bits of a source count once, however many rules are about
// that; ok is false if that is more than one of them allows, and then nothing is.
func (s *Session) Spend(told []Telling) (ok bool, err error) {
	_, err = s.change(func(st *SessionState) bool {
		bits := maps.Clone(st.Bits)
		if bits == nil {
			bits = map[string]int{}
		}
		for _, t := range told {
			for _, name := range s.policy.Names(t.Of) {
				bits[name] = max(bits[name], st.Bits[name]+t.Bits)
			}
		}
		ok = !slices.ContainsFunc(told, func(t Telling) bool {
			return t.Most > 0 && slices.ContainsFunc(s.policy.Names(t.Of), func(name string) bool { return bits[name] > t.Most })
		})
		changed := ok && !maps.Equal(bits, st.Bits)
		if ok {
			st.Bits = bits
		}
		return changed
	})
	return ok && err == nil, err
}

// Taint gives a store the label of sources from now on. It reports whether that is new.
func (s *Session) Taint(store string, a Atoms) (bool, error) {
	kind, _, _ := strings.Cut(strings.SplitN(store, ":", 2)[0], ".")
	if m, ok := s.policy.kinds.Manifest(kind); ok {
		if other := s.keeps(m); other != nil {
			return other.Taint(store, a)
		}
	}
	names := s.policy.Names(a)
	return s.change(func(st *SessionState) (changed bool) {
		if st.Taints == nil {
			st.Taints = map[string][]string{}
		}
		for todo := []string{store}; len(todo) > 0; todo = todo[1:] {
			list, more := union(st.Taints[todo[0]], names)
			if !more {
				continue
			}
			st.Taints[todo[0]], changed = list, true
			for _, places := range st.Moves {
				if slices.ContainsFunc(places, func(place string) bool { return s.together(todo[0], place) }) {
					todo = append(todo, places...)
				}
			}
		}
		return changed
	})
}

// together reports whether two stores may have something in common.
func (s *Session) together(one, other string) bool {
	a, err := caps.ParseRequests(one, "", s.policy.kinds)
	b, wrong := caps.ParseRequests(other, "", s.policy.kinds)
	return err != nil || wrong != nil || a.Together(&b)
}

// Move records that a request which acts on several places is under way, or isn't any more; key is its own.
func (s *Session) Move(permit *caps.Permit, key string, under bool) error {
	if other := s.keeps(permit.Held.Grant.Manifest); other != nil {
		return other.Move(permit, key, under)
	}
	places := permit.Places()
	for i, place := range places {
		if _, err := caps.ParseRequests(place, "", s.policy.kinds); err != nil {
			places[i] = (*Rule)(nil).Store(permit)
		}
	}
	_, err := s.change(func(st *SessionState) bool {
		had := len(st.Moves)
		if !under {
			delete(st.Moves, key)
			return len(st.Moves) < had
		}
		if st.Moves == nil {
			st.Moves = map[string][]string{}
		}
		st.Moves[key] = places
		return true
	})
	return err
}

// Tainted is the sources that what a request reads holds besides the labels of the policy, and those that all that it
// changes holds.
func (s *Session) Tainted(permit *caps.Permit) (read, kept Atoms) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.keeps(permit.Held.Grant.Manifest); other != nil {
		read, kept = other.Tainted(permit) // see Taint: those of the session's own file are older
	} else if s.refresh() != nil {
		return ^Atoms(0) >> (maxAtoms - len(s.policy.names)), 0
	}
	for _, t := range s.tainted {
		if t.store.Near(permit) {
			read |= t.atoms
		}
		if t.store.Keeps(permit) {
			kept |= t.atoms
		}
	}
	return read, kept
}

// ErrMore is that there is more to forget than a person was shown.
var ErrMore = errors.New("there is more of it by now than was shown: look again, and say it again")

// within reports whether others has all of it.
func (s SessionState) within(others *SessionState) bool {
	all := func(list, of []string) bool {
		return !slices.ContainsFunc(list, func(name string) bool { return !slices.Contains(of, name) })
	}
	for name, bits := range s.Bits {
		if bits > others.Bits[name] {
			return false
		}
	}
	for store, names := range s.Taints {
		if !all(names, others.Taints[store]) {
			return false
		}
	}
	return all(s.Label, others.Label)
}

// Clear forgets what a person was shown of it, who says that a new conversation began, and stores are clean, and leaves in
// shown what was forgotten; nil: all. Of a file in which there is more by then nothing is.
func (s *Session) Clear(shown *SessionState) error {
	gone := SessionState{}
	var err error
	for _, one := range []*Session{s.Stores, s} {
		if one == nil || err != nil {
			continue
		}
		var had SessionState
		more := false
		_, err = one.change(func(st *SessionState) bool {
			had, more = *st, shown != nil && !st.within(shown)
			if more || st.Empty() {
				return false
			}
			*st = SessionState{}
			return true
		})
		if err == nil && more {
			err = ErrMore
		}
		if err == nil {
			gone.Label, gone.Bits = had.Label, had.Bits
			gone.Taints, gone.Moves = merge(gone.Taints, had.Taints), merge(gone.Moves, had.Moves)
		}
	}
	if shown != nil {
		*shown = gone
	}
	return err
}
