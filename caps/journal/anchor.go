package journal

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// What a chain can't tell, that its end was cut off or that an older copy was put
// in its place, a note elsewhere can: which store was at a path, and what its
// newest event was when it was last known to be on the disk. It is kept in another
// folder than the store, one small file for each path, so that a copy of a store
// has none of its own. It proves nothing against one who writes both.

// A noted head is what the file says.
type notedHead struct {
	Path  string `json:"path"`
	Store string `json:"store"` // its ID
	Anchor
	Time time.Time `json:"time"`
	// Lost is the last time that what was noted was found not to be there any more.
	Lost *lostHead `json:"lost,omitempty"`
}

// A lostHead is what was noted and not found again.
type lostHead struct {
	Anchor
	Found time.Time `json:"found"`
	Why   string    `json:"why"`
}

// pace is how long one note stands before a newer one is written. What comes
// between is noted when the store is closed.
const pace = time.Second

// noteAt returns the file about the store at a path; "": none is kept.
func noteAt(folder, path string) string {
	if folder == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(folder, fmt.Sprintf("%x.json", sum[:16]))
}

// readNote reads such a file. One that can't be read says nothing: it isn't synced,
// so that a machine that went down may leave half of it.
func readNote(file string) *notedHead {
	text, err := os.ReadFile(file)
	n := new(notedHead)
	if err != nil || json.Unmarshal(text, n) != nil || n.Seq == 0 || n.Store == "" {
		return nil
	}
	return n
}

// sweepNotes removes what killed processes left of such a file.
func sweepNotes(file string) {
	entries, _ := os.ReadDir(filepath.Dir(file))
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), filepath.Base(file)+".")
		if pid, err := strconv.Atoi(number); ok && err == nil && ended(pid) {
			_ = os.Remove(filepath.Join(filepath.Dir(file), e.Name()))
		}
	}
}

// writeNote puts a file in the place of the one there is.
func writeNote(file string, n *notedHead) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	unfinished := fmt.Sprintf("%s.%d", file, os.Getpid()) // several servers may write at once
	if err := os.WriteFile(unfinished, append(text, '\n'), 0o600); err != nil {
		return err
	}
	if err := os.Rename(unfinished, file); err != nil {
		_ = os.Remove(unfinished)
		return err
	}
	return nil
}

// missingFrom returns in words what of a note the store doesn't have; "": it has it all,
// or retention dropped it.
func (s *Store) missingFrom(n *notedHead) string {
	if n.Store != s.id {
		return "another store was here before"
	}
	e, err := oneEvent(s.readers, `SELECT `+columns+` FROM events WHERE seq = ?`, int64(n.Seq))
	if err != nil {
		return "" // that is reported as what it is
	}
	is := e.Hash
	if e.Kind == Checkpoint && is != n.Hash {
		is = e.Prev
	}
	switch {
	case e.Seq == n.Seq && is == n.Hash:
		return ""
	case e.Seq == n.Seq:
		return fmt.Sprintf("event %d is another than the one that was here on %s", n.Seq, day(n.Time))
	}
	cut, err := oneEvent(s.readers, `SELECT `+columns+` FROM events WHERE kind = 'checkpoint' AND seq >= ? ORDER BY seq DESC LIMIT 1`, int64(n.Seq))
	if err != nil || cut.Seq > 0 {
		return "" // it was dropped; who says so is checked elsewhere
	}
	last, err := lastEvent(s.readers)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("its newest event was %d on %s, and is %d now: its end was cut off, an older copy was put in its place, or the machine lost what it hadn't written", n.Seq, day(n.Time), last.Seq)
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// compareNote warns where the store isn't the one that was noted, or lacks what was.
// It goes on: a copy that was restored is a reason to say so, not to stay away.
func (s *Store) compareNote() {
	n := readNote(s.note)
	if n == nil {
		return
	}
	why := s.missingFrom(n)
	if why == "" {
		return
	}
	if n.Store != s.id {
		s.o.Log.Warn("the store isn't the one that was at its path before", "path", s.path)
	} else {
		s.o.Log.Warn("the store isn't what it was; `mcp-pif journal verify` says more", "path", s.path, "why", why)
	}
	if s.writer != nil {
		s.writer.noted.lost = &lostHead{Anchor: n.Anchor, Found: s.o.Now().UTC(), Why: why}
	}
}

// verifyNote adds to a report what a note says.
func (s *Store) verifyNote(r *Report) {
	n := readNote(s.note)
	if n == nil {
		return
	}
	if why := s.missingFrom(n); why != "" && n.Store == s.id {
		r.Breaks = append(r.Breaks, Break{n.Seq, why})
	} else if why == "" {
		r.Noted = &n.Anchor
	}
	if l := n.Lost; l != nil && n.Store == s.id {
		r.Lost = fmt.Sprintf("on %s: %s", day(l.Found), l.Why)
	}
}

// A noting keeps the note about a store that is written. It is used by whoever has
// the writer's turn.
type noting struct {
	file  string // "": none
	store string
	path  string
	head  Anchor // the newest event that is on the disk
	done  uint64 // the number of the one that is noted
	at    time.Time
	lost  *lostHead
}

// keep writes the note, if there is something new and it is time, or now.
func (n *noting) keep(now time.Time, atOnce bool) error {
	if n.file == "" || n.head.Seq == n.done || !atOnce && now.Sub(n.at) < pace {
		return nil
	}
	n.at = now // also where it fails: trying costs as much as doing
	if known := readNote(n.file); known != nil && known.Store == n.store && n.lost == nil {
		n.lost = known.Lost
	}
	err := writeNote(n.file, &notedHead{Path: n.path, Store: n.store, Anchor: n.head, Time: now.UTC(), Lost: n.lost})
	if err == nil {
		n.done = n.head.Seq
	}
	return err
}
