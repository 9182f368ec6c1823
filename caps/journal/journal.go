// Package journal is the record of what happened: an append-only sequence of
// events, each bound to the one before it by a hash.
//
// It decides what an event is, how events are chained ([Event.Seal]), how a
// value is written so that it can be read back exactly ([AppendValue]), and how
// a chain is checked ([Verify]). It refuses events of unknown kinds, and to
// change or drop what was appended, except that the oldest part may be dropped
// as a whole; a checkpoint then says where the chain begins.
//
// [Memory] keeps the events of one process, up to a number of bytes; [Store]
// keeps them in a file that several processes may share. The rest of the program
// sees a [Journal] and may not assume where it is kept.
//
// An entry has its logical position besides its number: the run it belongs to
// and the branch of a par in it. Numbers are in order of arrival, positions in
// the order of the program.
package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is what an event tells of.
type Kind string

// The kinds of events. They don't change within a major version.
const (
	ServerStarted   Kind = "server.started"
	ToolEvolved     Kind = "tool.evolved"
	ToolRefused     Kind = "tool.refused"
	ToolRetired     Kind = "tool.retired"
	ToolRolledBack  Kind = "tool.rolled_back"
	PolicyGranted   Kind = "policy.granted"
	PolicyDenied    Kind = "policy.denied"
	PolicyRevoked   Kind = "policy.revoked"
	PolicyRestored  Kind = "policy.restored"
	ConsentAsked    Kind = "consent.asked"
	ConsentAnswered Kind = "consent.answered"
	RunStarted      Kind = "run.started"
	EffectRequested Kind = "effect.requested"
	EffectDenied    Kind = "effect.denied"
	EffectOutcome   Kind = "effect.outcome"
	EffectAsked     Kind = "effect.asked"
	EffectAnswered  Kind = "effect.answered"
	RunEnded        Kind = "run.ended"
	RunLost         Kind = "run.lost"
	TaskCreated     Kind = "task.created"
	TaskResumed     Kind = "task.resumed"
	TaskCancelled   Kind = "task.cancelled"
	PlanMade        Kind = "plan.made"
	PlanAnswered    Kind = "plan.answered"
	PlanStarted     Kind = "plan.started"
	FlowAsked       Kind = "flow.asked"
	FlowAnswered    Kind = "flow.answered"
	FlowCleared     Kind = "flow.cleared"
	SessionLabelled Kind = "session.labelled"
	StoreTainted    Kind = "store.tainted"
	ResultSealed    Kind = "result.sealed"
	Released        Kind = "released"
	Checkpoint      Kind = "checkpoint"
)

// Kinds is all of them.
var Kinds = []Kind{
	ServerStarted, ToolEvolved, ToolRefused, ToolRetired, ToolRolledBack, PolicyGranted, PolicyDenied, PolicyRevoked,
	PolicyRestored, ConsentAsked, ConsentAnswered, RunStarted, EffectRequested, EffectDenied, EffectOutcome, EffectAsked,
	EffectAnswered, RunEnded, RunLost, TaskCreated, TaskResumed, TaskCancelled, PlanMade, PlanAnswered, PlanStarted, FlowAsked, FlowAnswered, FlowCleared,
	SessionLabelled, StoreTainted, ResultSealed, Released, Checkpoint,
}

// Changes reports whether events of the kind change the tools there are. Their
// data has "tool", a string, and "version", a number.
func (k Kind) Changes() bool { return k == ToolEvolved || k == ToolRetired || k == ToolRolledBack }

// aboutTool reports whether the data of events of the kind names a tool as "tool".
func (k Kind) aboutTool() bool { return k.Changes() || k == ToolRefused }

// A Hash is a SHA-256. Its text is hexadecimal.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes the hash in hexadecimal.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads it.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h) {
		return fmt.Errorf("a hash has %d digits, not %d", 2*len(h), len(text))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// An Event is one entry.
type Event struct {
	Seq  uint64    `json:"seq"` // from 1, without gaps but below a checkpoint
	Prev Hash      `json:"prev"`
	Hash Hash      `json:"hash"`
	Time time.Time `json:"time"` // UTC, microseconds
	Kind Kind      `json:"kind"`
	Run  string    `json:"run,omitempty"`
	// Branch is the indices of the par branches around, "0.2".
	Branch string          `json:"branch,omitempty"`
	Data   json.RawMessage `json:"data"` // an object, compact
}

// Seal returns the hash of the event: of the one before, and of every field with its
// length, so that no two events have the same text to be hashed.
func (e *Event) Seal() Hash {
	var buf [512]byte
	b := append(buf[:0], e.Prev[:]...)
	b = binary.BigEndian.AppendUint64(b, e.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time.UnixMicro()))
	for _, s := range [...]string{string(e.Kind), e.Run, e.Branch} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(len(e.Data)))
	if len(b)+len(e.Data) <= cap(b) {
		return sha256.Sum256(append(b, e.Data...))
	}
	h := sha256.New()
	h.Write(b)
	h.Write(e.Data)
	var sum Hash
	h.Sum(sum[:0])
	return sum
}

// Tool returns the name of the tool that an event of a kind about tools is about; ""
// for other events, and where the data names none.
func (e *Event) Tool() string {
	if !e.Kind.aboutTool() {
		return ""
	}
	// As those who append write it, first and without anything escaped.
	if rest, ok := bytes.CutPrefix(e.Data, []byte(`{"tool":"`)); ok {
		if n := bytes.IndexAny(rest, `"\`); n >= 0 && rest[n] == '"' {
			return string(rest[:n])
		}
	}
	dec := json.NewDecoder(bytes.NewReader(e.Data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return ""
		}
		if key == "tool" { // the first counts, as it does for SQLite
			name, _ := dec.Token()
			text, _ := name.(string)
			return text
		}
		var skipped json.RawMessage
		if dec.Decode(&skipped) != nil {
			return ""
		}
	}
	return ""
}

// Stage is how safe an event must be before Append returns.
type Stage uint8

// The stages.
const (
	// Noted events are in order and will be written soon. A process that is
	// killed, or a disk that stays full, loses the last of them.
	Noted Stage = iota
	// Written events, and all this process appended before them, survive the
	// process.
	Written
	// Synced events, and all that were in the journal before them, survive the
	// machine.
	Synced
)

// A Query selects events.
type Query struct {
	Run   string // "": any
	Kind  Kind   // "": any; "effect" selects all kinds that begin with it and a dot
	After uint64 // those with a larger Seq
	// Before selects those with a smaller Seq; 0: any.
	Before uint64
	// Changes selects only events that change the tools there are.
	Changes bool
	// Tool selects only events about the tool of this name: what changed it,
	// and what was refused. "": any event
	Tool string
	// Ran selects only the beginnings of runs of the tool of this name; Kind must be
	// [RunStarted]. No index has them: give After, too, where there may be many events.
	Ran   string
	Limit int // at most so many; 0: no limit
	// Last selects the newest that fit the limit, not the oldest. The order of
	// what is given is by Seq in any case.
	Last bool
}

// Matches reports whether the query selects an event.
func (q *Query) Matches(e *Event) bool {
	return e.Seq > q.After && (q.Before == 0 || e.Seq < q.Before) && (q.Run == "" || e.Run == q.Run) &&
		q.kind(e.Kind) && (q.Tool == "" || e.Tool() == q.Tool) && (q.Ran == "" || bytes.HasPrefix(e.Data, q.ranPrefix()))
}

// kind reports whether the query selects events of a kind.
func (q *Query) kind(k Kind) bool {
	if q.Changes && !k.Changes() || q.Tool != "" && !k.aboutTool() {
		return false
	}
	n := len(q.Kind)
	return n == 0 || k == q.Kind || len(k) > n && k[:n] == q.Kind && k[n] == '.'
}

// CheckKind refuses a kind that no event has, and none begins with.
func CheckKind(k Kind) error {
	q := Query{Kind: k}
	if k == "" || slices.ContainsFunc(Kinds, q.kind) {
		return nil
	}
	kinds := strings.Fields(strings.Trim(fmt.Sprint(Kinds), "[]"))
	return fmt.Errorf("there are no events of kind %q; the kinds are %s", k, strings.Join(kinds, ", "))
}

// A Journal keeps events. It is safe for concurrent use.
type Journal interface {
	// Append gives the event its number, time and hash, and returns when it is
	// as safe as the stage says. An error means that it was not recorded. data
	// belongs to the journal afterwards. Where several processes write one
	// journal, the number of an event that is only Noted isn't known yet: seq is 0.
	Append(s Stage, k Kind, run, branch string, data []byte) (seq uint64, err error)
	// AppendLater is Append that doesn't wait: wait does, and is called once. Events
	// are in the order of the calls.
	AppendLater(s Stage, k Kind, run, branch string, data []byte) (wait func() (seq uint64, err error))
	// Change appends an event that changes the tools there are (see
	// [Kind.Changes]), Synced, unless there is such an event with a number
	// larger than after: then nothing is appended, and the error is [ErrBehind].
	// data must name the tool. With the names of tools only changes of these count
	// in a cluster; elsewhere all do in any case.
	Change(after uint64, k Kind, data []byte, tools ...string) (seq uint64, err error)
	// ChangeAll is Change of several events in a row, all or none of them. seq is the
	// number of the first.
	ChangeAll(after uint64, parts []Part, tools ...string) (seq uint64, err error)
	// Changed is the number of the newest event that changed the tools there
	// are, whoever appended it; 0: none did. It costs some microseconds: it is
	// for asking before every request whether there is something to catch up with.
	Changed() (uint64, error)
	// EachNewest gives the newest event of each tool that changed it, of those with
	// a number up to through (0: of all), in the order of Seq.
	EachNewest(through uint64, each func(*Event) error) error
	// Read gives the events that a query selects, in the order of Seq, and
	// whether there are more of them. With a limit it gives fewer, and at least one,
	// where they are large.
	Read(q Query) (events []Event, more bool, err error)
	// Close writes what is not written.
	Close() error
}

// A Part is one event of several that are appended as a whole.
type Part struct {
	Kind Kind
	// Data has a 0 in place of each number of an event of the whole, since these aren't
	// known before.
	Data []byte
	// Refs is where those are, in ascending order.
	Refs []Ref
}

// A Ref says that the number of the Part-th event of a whole, from 0, comes in place
// of the 0 at an index of the data.
type Ref struct{ At, Part int }

// checkRefs refuses references that [Part.fill] can't fill in; n is how many parts the
// whole has.
func (p *Part) checkRefs(n int) error {
	last := -1
	for _, r := range p.Refs {
		if r.At <= last || r.At >= len(p.Data) || p.Data[r.At] != '0' || r.Part < 0 || r.Part >= n {
			return fmt.Errorf("no number of an event belongs at %d of the data %.80q", r.At, p.Data)
		}
		last = r.At
	}
	return nil
}

// fill returns the data, with the number of the whole's first event known.
func (p *Part) fill(first uint64) []byte {
	if len(p.Refs) == 0 {
		return p.Data
	}
	data := make([]byte, 0, len(p.Data)+19*len(p.Refs))
	from := 0
	for _, r := range p.Refs {
		data = strconv.AppendUint(append(data, p.Data[from:r.At]...), first+uint64(r.Part), 10)
		from = r.At + 1
	}
	return append(data, p.Data[from:]...)
}

// A Break is a place where a chain does not hold.
type Break struct {
	Seq    uint64 `json:"seq"` // of the event
	Reason string `json:"reason"`
}

func (b *Break) Error() string { return fmt.Sprintf("event %d: %s", b.Seq, b.Reason) }

// A Verifier checks a chain event by event. The zero value begins at the first
// event, or at a checkpoint, which has the number of the last event it stands
// for and that event's hash as its Prev. It doesn't check a checkpoint's
// signature and knows of no events kept from before one: see [Store.Verify].
type Verifier struct {
	Count uint64
	// From is the number of the checkpoint where the chain begins; 0: it is
	// all there.
	From uint64
	last Event
}

// Next checks that e follows the event before it and is as it was sealed. The
// error is a [*Break].
func (v *Verifier) Next(e *Event) error {
	if v.Count == 0 && e.Kind == Checkpoint {
		v.From = e.Seq
	} else if b := follows(e, &v.last); b != nil {
		return b
	}
	if b := checkSeal(e); b != nil {
		return b
	}
	v.Count++
	v.last = *e
	if v.Count == 1 && v.From > 0 {
		v.last.Hash = e.Prev
	}
	return nil
}

// follows returns what is wrong with e as the event after last.
func follows(e, last *Event) *Break {
	switch {
	case e.Seq != last.Seq+1:
		return &Break{e.Seq, fmt.Sprintf("it follows event %d: events are missing, or out of order", last.Seq)}
	case e.Prev != last.Hash:
		return &Break{e.Seq, "it was made after another event than the one before it"}
	}
	return nil
}

// checkSeal returns what is wrong with e itself.
func checkSeal(e *Event) *Break {
	if e.Seal() != e.Hash {
		return &Break{e.Seq, "it is not what was recorded: its hash differs"}
	}
	return nil
}
