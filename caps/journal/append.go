package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// MaxData is how large the data of one event may be. What is larger goes to
// [Store.PutBlob].
const MaxData = 16 << 20

var appendable = func() map[Kind]bool {
	m := map[Kind]bool{}
	for _, k := range Kinds {
		m[k] = k != Checkpoint
	}
	return m
}()

// Append implements [Journal].
//
// Noted: the event is in this process's memory, behind all that this process
// appended before, and is written within about [Options.Linger]. Nothing more:
// it is lost if the process is killed first. Where writing fails, noted events
// wait and are tried again, in order; when as many wait as fit [Options.Queue],
// Append refuses more while writing fails, and waits while it works. seq is 0.
//
// Written: it and all before it are committed, visible to every process on the
// file, and there after a kill -9. A crash of the machine can lose it, never
// something in the middle.
//
// Synced: it and everything committed before it, by any process, was synced to
// the disk.
//
// An error of Written or Synced says that the event was not committed and that
// it won't be tried again, with one exception that no database can rule out:
// where syncing failed and the machine crashes next, it may be there after all.
// While writing fails, each of them tries anew, so the first to succeed is the
// sign that it works again.
//
// Append refuses unknown kinds, checkpoints (see [Store.Retain]), data that
// isn't an object of JSON on one line or is larger than [MaxData], and names
// that aren't UTF-8.
func (s *Store) Append(st Stage, k Kind, run, branch string, data []byte) (seq uint64, err error) {
	if err := check(k, run, branch, data); err != nil {
		return 0, err
	}
	return s.append(&entry{stage: st, e: Event{Kind: k, Run: run, Branch: branch, Data: data}})
}

// AppendLater implements [Journal]. Where much is in the queue it waits for room.
func (s *Store) AppendLater(st Stage, k Kind, run, branch string, data []byte) (wait func() (seq uint64, err error)) {
	if err := check(k, run, branch, data); err != nil {
		return func() (uint64, error) { return 0, err }
	}
	x := &entry{stage: st, e: Event{Kind: k, Run: run, Branch: branch, Data: data}}
	if err := s.push(x); err != nil {
		return func() (uint64, error) { return 0, err }
	}
	return x.wait
}

// Change implements [Journal]. Whether the tools have changed is decided while
// the file is locked to be written, so of several that know of the same event
// one is appended, whichever process they are in.
func (s *Store) Change(after uint64, k Kind, data []byte, tools ...string) (seq uint64, err error) {
	if err := checkChange(k, data); err != nil {
		return 0, err
	}
	return s.append(&entry{stage: Synced, change: true, after: after, tools: tools, e: Event{Kind: k, Data: data}})
}

// ChangeAll implements [Journal]. They are written in one transaction, which other
// processes wait for.
func (s *Store) ChangeAll(after uint64, parts []Part, tools ...string) (seq uint64, err error) {
	size, err := checkAll(parts)
	if err != nil {
		return 0, err
	}
	return s.append(&entry{stage: Synced, change: true, after: after, tools: tools, all: parts, size: size})
}

// checkAll refuses, before they have numbers, events that can't be appended.
func checkAll(parts []Part) (size int64, err error) {
	if len(parts) == 0 {
		return 0, errors.New("there are no events to be appended")
	}
	for i := range parts {
		p := &parts[i]
		if err := checkChange(p.Kind, p.Data); err != nil {
			return 0, err
		}
		if err := p.checkRefs(len(parts)); err != nil {
			return 0, err
		}
		size += overhead + int64(len(p.Data)+20*len(p.Refs))
	}
	return size, nil
}

// append puts an entry into the queue, and waits as its stage says.
func (s *Store) append(x *entry) (seq uint64, err error) {
	if err := s.push(x); err != nil {
		return 0, err
	}
	return x.wait()
}

// push puts an entry into the queue.
func (s *Store) push(x *entry) error {
	if s.writer == nil && s.o.Through == nil {
		return &problem{s.path, ErrReadOnly, "it was opened to be read only", nil}
	}
	if s.writer == nil {
		seq, err := s.o.Through(encodeEntries([]*entry{x}))
		x.done = make(chan outcome, 1)
		x.done <- outcome{seq, err}
		return nil
	}
	x.e.Time = s.o.Now().UTC().Truncate(time.Microsecond)
	if x.stage != Noted {
		x.done = make(chan outcome, 1)
	}
	return s.writer.push(x)
}

// Take appends, Synced, what [Options.Through] was given in another process.
func (s *Store) Take(content []byte) (seq uint64, err error) {
	batch, err := decodeEntries(content)
	if err != nil || len(batch) != 1 {
		return 0, errors.Join(err, errGarbled)
	}
	x := batch[0]
	x.stage = Synced
	switch {
	case x.blob != nil:
		_, err := s.PutBlob(bg, x.blob)
		return 0, err
	case x.all != nil:
		x.size, err = checkAll(x.all)
	case x.change:
		err = checkChange(x.e.Kind, x.e.Data)
	default:
		err = check(x.e.Kind, x.e.Run, x.e.Branch, x.e.Data)
	}
	if err != nil {
		return 0, err
	}
	return s.append(x)
}

// wait waits as the stage of an entry says.
func (x *entry) wait() (seq uint64, err error) {
	if x.done == nil {
		return 0, nil
	}
	got := <-x.done
	return got.seq, got.err
}

// check refuses what couldn't be read back exactly.
func check(k Kind, run, branch string, data []byte) error {
	switch {
	case !appendable[k]:
		return fmt.Errorf("an event of kind %q can't be appended", k)
	case !utf8.ValidString(run) || !utf8.ValidString(branch):
		return fmt.Errorf("the run %q or branch %q of an event is not UTF-8", run, branch)
	case len(data) > MaxData || len(run)+len(branch) > MaxData:
		return fmt.Errorf("an event of %d bytes can't be recorded, the most is %d", len(data)+len(run)+len(branch), MaxData)
	case len(data) == 0 || data[0] != '{' || slices.Contains(data, '\n') || !utf8.Valid(data) || !json.Valid(data):
		return fmt.Errorf("the data of an event must be an object of JSON on one line, not %.80q", data)
	}
	return nil
}

// checkChange refuses what doesn't change the tools there are.
func checkChange(k Kind, data []byte) error {
	if err := check(k, "", "", data); err != nil {
		return err
	}
	if e := (Event{Kind: k, Data: data}); !k.Changes() || e.Tool() == "" {
		return fmt.Errorf("an event of kind %q with the data %.80q changes no tool", k, data)
	}
	return nil
}

// flush waits until what is in the queue is written. It doesn't wait while
// writing fails.
func (s *Store) flush() {
	w := s.writer
	if w == nil {
		return
	}
	x := &entry{flush: true, done: make(chan outcome, 1)}
	if w.push(x) == nil {
		<-x.done
	}
}
