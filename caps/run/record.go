package run

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Record is what a journal tells of one run. It is immutable.
type Record struct {
	ID   string
	Call Call
	// Tool, Version and Hash name what was run; "" for inline code.
	Tool    string
	Version int
	Hash    string
	// AsOf is the number of the last change that the tools had which it saw.
	AsOf      uint64
	Semantics int // see [core.Semantics]
	Rounds    int // at most driven; 0: it wasn't
	Even      bool
	Under     []string // the sources that the model had been shown when it asked for it
	Flow      string   // the hash of the rules about where data may flow that it began under
	Answers   registry.Answers
	Read      []byte // see [Start]
	Bounds    Bounds
	Limits    Limits
	// End is how it ended; nil: that is not on record.
	End *Ended

	blobs     Blobs // nil: the journal keeps none
	planned   bool  // what it read was read before what it did
	task      bool  // it goes on with another server
	decisions []*decision
	byNumber  map[int]*decision
	resumed   int // the number of the newest server that went on with it
}

// Requests is how many decisions of the run are on record.
func (r *Record) Requests() int { return len(r.decisions) }

// Ended is a recorded end.
type Ended struct {
	Steps   uint64
	Rounds  int
	Effects int    // decisions, of calls that were allowed, too
	Type    string // of the result
	Result  Digest // of its JSON
	Fault   *fault.Fault
	Answer  *journal.Hash // of the whole answer; nil: there was none
	Stopped Moment        // when it was stopped; "": it ended by itself
	// Entered is the sources of what came in, Rules the hash of the rules that let it be shown, and Sealed the name of
	// what it gave; "": that was shown.
	Entered       []string
	Rules, Sealed string
	// Unrecorded is how many denials the journal didn't take.
	Unrecorded int
}

// external reports whether it was the world that ended the run: no replay comes
// to that by itself.
func (e *Ended) external() bool {
	return e.Stopped != "" || e.Fault != nil && e.Fault.Kind == fault.Overloaded
}

// at is the moment of an external end.
func (e *Ended) at() Moment {
	if e.Stopped == "" {
		return Machine
	}
	return e.Stopped
}

// Blobs is a journal that keeps large texts beside its events.
type Blobs interface {
	Blob(journal.Hash) ([]byte, error)
}

// A Digest is the size and hash of a text.
type Digest struct {
	Bytes  int64        `json:"bytes"`
	SHA256 journal.Hash `json:"sha256"`
}

func digestOf(text []byte) Digest {
	return Digest{int64(len(text)), sha256.Sum256(text)}
}

// ErrNoRecord is the error where there is nothing on record that a replay could
// go by.
var ErrNoRecord = errors.New("it can't be replayed")

func noRecord(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNoRecord, fmt.Sprintf(format, args...))
}

// ParseRecord makes a record of a run's events, all that there are, whose chain
// was checked.
func ParseRecord(j journal.Journal, events []journal.Event) (*Record, error) {
	r := &Record{byNumber: map[int]*decision{}}
	r.blobs, _ = j.(Blobs)
	for i := range events {
		switch events[i].Kind {
		case journal.PlanMade:
			r.planned = true
		case journal.TaskCreated:
			r.task = true
		}
	}
	var o owners
	var failed error
	events = slices.DeleteFunc(slices.Clone(events), func(e journal.Event) bool {
		late, err := o.late(&e)
		failed = cmp.Or(failed, err)
		return late || aboutRun(e.Kind) || e.Kind == journal.ResultSealed
	})
	if r.resumed = o.newest; failed != nil {
		return nil, failed
	}
	if len(events) == 0 {
		return nil, noRecord("there are no events of it")
	}
	if first := &events[0]; first.Kind != journal.RunStarted {
		return nil, noRecord("its beginning is not on record: the first event is %d, of kind %s%s", first.Seq, first.Kind, droppedBefore(j))
	}
	bySeq := map[uint64]*decision{}
	for i := range events {
		if err := r.read(&events[i], i == 0, bySeq); err != nil {
			return nil, fmt.Errorf("event %d of the journal: %w", events[i].Seq, err)
		}
	}
	slices.SortFunc(r.decisions, func(a, b *decision) int { return cmp.Compare(a.n, b.n) })
	return r, nil
}

func (r *Record) read(e *journal.Event, first bool, bySeq map[uint64]*decision) error {
	switch {
	case (e.Kind == journal.RunStarted) != first:
		return noRecord("a run starts once, at its beginning")
	case first:
		r.ID = e.Run
		return r.readStart(e.Data)
	case r.End != nil && e.Kind != journal.EffectOutcome:
		return noRecord("it is of kind %s, and the run had ended", e.Kind)
	}
	switch e.Kind {
	case journal.EffectRequested, journal.EffectDenied:
		return r.readDecision(e, bySeq)
	case journal.EffectOutcome:
		return r.readOutcome(e.Data, bySeq)
	case journal.EffectAsked:
		var data struct {
			Request          uint64
			Message          string
			Error            json.RawMessage
			Limited, Counted bool
		}
		err := json.Unmarshal(e.Data, &data)
		if d := bySeq[data.Request]; d != nil {
			d.limited = d.limited || data.Limited
			if data.Error == nil || data.Counted {
				d.questions = append(d.questions, data.Message)
			}
		}
		return err
	case journal.RunEnded:
		return r.readEnd(e.Data)
	}
	return nil // of later versions
}

func (r *Record) readStart(text []byte) error {
	var data struct {
		Tool    string
		Version int
		Hash    string
		Rounds  int
		Even    bool
		Call    *struct {
			Tool      string
			Arguments json.RawMessage
		}
		AsOf      *uint64 `json:"as_of"`
		Semantics int
		Answers   registry.Answers
		Read      json.RawMessage
		Under     []string
		Flow      string
		Limits    *struct {
			Steps     uint64
			Memory    int64
			Depth     int
			Result    int
			TimeoutMS int64 `json:"timeout_ms"`
			Effects   int
			Bytes     int64
		}
	}
	if err := json.Unmarshal(text, &data); err != nil {
		return err
	}
	if data.Call == nil || data.AsOf == nil || data.Limits == nil {
		return noRecord("it was recorded by a version of mcp-pif that didn't record the call and the limits")
	}
	arguments, err := r.readText(data.Call.Arguments)
	if err != nil {
		return fmt.Errorf("the arguments of the call: %w", err)
	}
	if data.Read != nil {
		if r.Read, err = r.readText(data.Read); err != nil {
			return fmt.Errorf("its input: %w", err)
		}
	}
	l := data.Limits
	r.Call = Call{data.Call.Tool, arguments}
	r.Tool, r.Version, r.Hash = data.Tool, data.Version, data.Hash
	r.Even, r.Under, r.Flow = data.Even, data.Under, data.Flow
	r.AsOf, r.Semantics, r.Rounds, r.Answers = *data.AsOf, data.Semantics, data.Rounds, data.Answers
	r.Bounds = Bounds{l.Steps, l.Memory, l.Depth, l.Result, time.Duration(l.TimeoutMS) * time.Millisecond}
	r.Limits = Limits{Effects: l.Effects, Bytes: l.Bytes}
	if l.Steps == 0 || l.Memory <= 0 || l.Depth <= 0 || l.Result <= 0 {
		return noRecord("its limits are none: %s", text[:min(len(text), 200)])
	}
	return nil
}

// readText reads what appendText wrote.
func (r *Record) readText(raw json.RawMessage) ([]byte, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil && string(raw) != "null" {
		return []byte(text), nil
	}
	var d *Digest
	if err := json.Unmarshal(raw, &d); err != nil || d == nil {
		return nil, noRecord("they are neither a text nor its digest")
	}
	return r.blob(*d)
}

// blob is a text of which an event has only the digest.
func (r *Record) blob(d Digest) ([]byte, error) {
	if r.blobs == nil {
		return nil, noRecord("of a text of %d bytes only the hash was kept", d.Bytes)
	}
	text, err := r.blobs.Blob(d.SHA256)
	if err != nil {
		return nil, noRecord("a text of %d bytes is missing: %v", d.Bytes, err)
	}
	if digestOf(text) != d {
		return nil, noRecord("a text of %d bytes is not what was recorded", d.Bytes)
	}
	return text, nil
}

func (r *Record) readDecision(e *journal.Event, bySeq map[uint64]*decision) error {
	var data struct {
		N         int
		Op, Of    string
		In, At    string
		Callee    string
		Args      json.RawMessage
		ArgsBlob  *Digest               `json:"args_blob"`
		ArgsHash  *Digest               `json:"args_hash"`
		Measured  struct{ Bytes int64 } `json:"args_measured"`
		Asked     json.RawMessage
		AskedBlob *Digest `json:"asked_blob"`
		AskedHash *Digest `json:"asked_hash"`
		Error     json.RawMessage
		Tells     *told
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return err
	}
	if data.N < 1 {
		return noRecord("it has no number among the run's decisions")
	}
	if r.byNumber[data.N] != nil {
		return noRecord("the run has two decisions of number %d", data.N)
	}
	d := &decision{
		n: data.N, seq: e.Seq, op: data.Op, of: data.Of, in: data.In, at: data.At, branch: e.Branch, callee: data.Callee,
		args: recordedText{data.Args, cmp.Or(data.ArgsBlob, data.ArgsHash)}, asked: recordedText{data.Asked, cmp.Or(data.AskedBlob, data.AskedHash)},
		measured: data.Measured.Bytes, tells: data.Tells,
	}
	if e.Kind == journal.EffectDenied {
		f, err := r.readFault(data.Error)
		if err != nil {
			return err
		}
		d.denied = f
	}
	r.decisions = append(r.decisions, d)
	r.byNumber[d.n] = d
	bySeq[e.Seq] = d
	return nil
}

func (r *Record) readOutcome(text []byte, bySeq map[uint64]*decision) error {
	var data struct {
		Request   uint64
		Value     json.RawMessage
		ValueBlob *Digest `json:"value_blob"`
		ValueHash *Digest `json:"value_hash"`
		Error     json.RawMessage
		Done      *bool
	}
	if err := json.Unmarshal(text, &data); err != nil {
		return err
	}
	d := bySeq[data.Request]
	if d == nil || d.denied != nil {
		return noRecord("it is an outcome of event %d, which waits for none", data.Request)
	}
	if d.done || r.End != nil { // several, at once, may say what came of it: the first counts
		return nil
	}
	if data.Done != nil && !*data.Done { // it is asked for again
		d.done = true
		delete(r.byNumber, d.n)
		r.decisions = slices.DeleteFunc(r.decisions, func(other *decision) bool { return other == d })
		return nil
	}
	d.outcome = recordedText{data.Value, cmp.Or(data.ValueBlob, data.ValueHash)}
	if data.Error != nil {
		f, err := r.readFault(data.Error)
		if err != nil {
			return err
		}
		d.outcomeErr = f
	} else if d.outcome.none() {
		return noRecord("it has neither a value nor an error")
	}
	d.done = true
	return nil
}

// readFault reads what appendFault wrote.
func (r *Record) readFault(text json.RawMessage) (*fault.Fault, error) {
	var data struct {
		Raised json.RawMessage
		Whole  *Digest `json:"whole_blob"`
		Hash   *Digest `json:"whole_hash"`
	}
	f := &fault.Fault{}
	if text == nil {
		return nil, noRecord("it has no error")
	}
	if err := errors.Join(json.Unmarshal(text, &data), json.Unmarshal(text, f)); err != nil {
		return nil, err
	}
	if data.Whole = cmp.Or(data.Whole, data.Hash); data.Whole != nil {
		whole, err := r.blob(*data.Whole)
		if err != nil {
			return nil, err
		}
		*f = fault.Fault{}
		data.Raised = nil
		if err := errors.Join(json.Unmarshal(whole, &data), json.Unmarshal(whole, f)); err != nil {
			return nil, err
		}
	}
	if f.Kind == "" {
		return nil, noRecord("its error has no kind")
	}
	if data.Raised != nil {
		v, err := journal.ReadValue(data.Raised)
		if err != nil {
			return nil, err
		}
		f.Raised = v
	}
	return f, nil
}

func (r *Record) readEnd(text []byte) error {
	var data struct {
		Steps      uint64
		Rounds     int
		Effects    int
		Type       string
		Result     Digest
		Error      json.RawMessage
		Answer     *journal.Hash
		Stopped    Moment
		Entered    []string
		Rules      string
		Sealed     string
		Unrecorded int
	}
	if err := json.Unmarshal(text, &data); err != nil {
		return err
	}
	r.End = &Ended{
		Steps: data.Steps, Rounds: data.Rounds, Effects: data.Effects, Type: data.Type, Result: data.Result,
		Answer: data.Answer, Stopped: data.Stopped, Entered: data.Entered, Rules: data.Rules, Sealed: data.Sealed, Unrecorded: data.Unrecorded,
	}
	if data.Error == nil {
		return nil
	}
	f, err := r.readFault(data.Error)
	r.End.Fault = f
	return err
}

// ReadRecord reads what a journal tells of a run. It checks first that the events
// from the run's first to its last, whosever they are, follow each other and are
// what was recorded; that error is a [*journal.Break].
func ReadRecord(j journal.Journal, id string) (*Record, error) {
	events, _, err := j.Read(journal.Query{Run: id})
	if err != nil {
		return nil, err
	}
	for n := len(events); n > 1 && events[n-1].Kind == journal.ResultSealed; n-- { // maybe long after the end
		events = events[:n-1]
	}
	if id == "" || len(events) == 0 {
		return nil, noRecord("there is no run %q on record%s; 'mcp-pif journal runs' lists them", id, droppedBefore(j))
	}
	if err := follow(j, events[0].Seq, events[len(events)-1].Seq); err != nil {
		return nil, err
	}
	return ParseRecord(j, events)
}

// ReadEnd reads the end of a run without the rest of its record; nil: it has none.
func ReadEnd(j journal.Journal, id string) (*Ended, error) {
	e, err := EndEvent(j, id)
	if err == nil && e != nil {
		err = follow(j, e.Seq, e.Seq)
	}
	if err != nil || e == nil {
		return nil, err
	}
	r := &Record{}
	r.blobs, _ = j.(Blobs)
	err = r.readEnd(e.Data)
	return r.End, err
}

// EndEvent is the event of a run's end, which is none of a server that another had taken the run over from; nil: there is none.
func EndEvent(j journal.Journal, id string) (*journal.Event, error) {
	if id == "" {
		return nil, nil
	}
	events, err := runEvents(j, id, journal.RunEnded, journal.TaskResumed, journal.PlanStarted)
	return endOf(events), err
}

// endOf is the event of a run's end among its events in their order.
func endOf(events []journal.Event) *journal.Event {
	var o owners
	for i := range events {
		if late, err := o.late(&events[i]); err == nil && !late && events[i].Kind == journal.RunEnded {
			return &events[i]
		}
	}
	return nil
}

// droppedBefore says what the journal doesn't know any more.
func droppedBefore(j journal.Journal) string {
	cut, _, err := j.Read(journal.Query{Kind: journal.Checkpoint, Limit: 1})
	if err != nil || len(cut) == 0 {
		return ""
	}
	return fmt.Sprintf("; what happened before event %d was dropped by retention", cut[0].Seq+1)
}

// chainPage is how many events are checked at once.
const chainPage = 1024

// follow checks the events from one number to another, and that those before and
// behind fit; that others are dropped meanwhile is no break.
func follow(j journal.Journal, first, last uint64) error {
	store, ok := j.(interface {
		KeptBefore(uint64) (uint64, map[uint64]journal.Hash, error)
	})
	f := &following{j: j, first: first, after: max(first, 2) - 2}
	for failed := error(nil); ; {
		var to uint64
		var err error
		if ok {
			to, f.kept, err = store.KeptBefore(first)
		}
		if failed != nil && to <= f.to {
			return failed
		}
		if f.to = to; err == nil {
			err = f.pages(last)
		}
		if b := (*journal.Break)(nil); !errors.As(err, &b) {
			return err
		}
		failed = err
	}
}

// following is how far events have been checked.
type following struct {
	j            journal.Journal
	first, after uint64
	before       *journal.Event // the last; nil: none
	to           uint64         // the checkpoint
	kept         map[uint64]journal.Hash
}

func (f *following) pages(last uint64) error {
	for {
		page, more, err := f.j.Read(journal.Query{After: f.after, Before: last + 2, Limit: chainPage})
		if err != nil {
			return err
		}
		for i := range page {
			e := &page[i]
			if f.before == nil && e.Seq < f.first && e.Kind != journal.Checkpoint && e.Seal() != e.Hash {
				return &journal.Break{Seq: e.Seq, Reason: "it is not what was recorded: its hash differs"}
			}
			if f.before != nil || e.Seq >= f.first {
				before := f.before
				if e.Seq <= f.to { // what was between is gone
					before = nil
				}
				if err := linked(before, e); err != nil {
					return err
				}
				if e.Seq < f.to && f.kept[e.Seq] != e.Hash {
					return &journal.Break{Seq: e.Seq, Reason: "it is not the event that was kept when others were dropped"}
				}
			}
			f.before, f.after = e, e.Seq
		}
		if !more || len(page) == 0 {
			return nil
		}
	}
}

// linked checks an event, and that it follows the one before it.
func linked(before, e *journal.Event) error {
	if e.Seal() != e.Hash {
		return &journal.Break{Seq: e.Seq, Reason: "it is not what was recorded: its hash differs"}
	}
	if before == nil {
		return nil
	}
	hash := before.Hash
	if before.Kind == journal.Checkpoint {
		hash = before.Prev // of the last event it stands for
	}
	switch {
	case e.Seq != before.Seq+1:
		return &journal.Break{Seq: e.Seq, Reason: fmt.Sprintf("it follows event %d: events are missing", before.Seq)}
	case e.Prev != hash:
		return &journal.Break{Seq: e.Seq, Reason: "it was made after another event than the one before it"}
	}
	return nil
}

// A decision is a recorded request, allowed or denied, with what became of it.
type decision struct {
	n          int
	seq        uint64
	op, of     string
	in, at     string
	branch     string
	args       recordedText // as they were performed, or asked for where it was denied
	asked      recordedText // where it isn't nothing: as the program gave them
	measured   int64        // bytes of arguments of which only that is on record; 0: there are none
	callee     string       // of a denied call
	denied     *fault.Fault
	tells      *told    // of a denial; nil: that isn't on record
	limited    bool     // a limit or a rate decided about a question that was to be put meanwhile
	questions  []string // that were permitted meanwhile
	done       bool     // there is an outcome
	outcome    recordedText
	outcomeErr *fault.Fault
}

// told is the sources that a denial tells of, those that it is made of and those that decided it, by the rules that
// there were, of which it has the hash.
type told struct {
	Rules  string   `json:"rules"`
	Of     []string `json:"of,omitempty"`
	By     []string `json:"by,omitempty"`
	Judged bool     `json:"judged,omitempty"` // by a rule
	Rated  bool     `json:"rated,omitempty"`  // by how often it is permitted
}

// recordedText is JSON as it was recorded, or only its digest. The zero value is
// nothing.
type recordedText struct {
	text   json.RawMessage
	digest *Digest
}

func (t recordedText) none() bool { return t.text == nil && t.digest == nil }

// is reports whether a text is the one that was recorded.
func (t recordedText) is(text []byte) bool {
	if t.digest != nil {
		return *t.digest == digestOf(text)
	}
	return t.text != nil && bytes.Equal(t.text, text)
}

// answerOf is what became of a request, with the text of its value; an error is that it
// can't be read.
func (r *Record) answerOf(d *decision) (_ core.Answer, text []byte, err error) {
	switch {
	case d.denied != nil:
		return core.Answer{Fault: d.denied}, nil, nil
	case d.outcomeErr != nil:
		return core.Answer{Fault: d.outcomeErr}, nil, nil
	}
	text = d.outcome.text
	if d.outcome.digest != nil {
		if text, err = r.blob(*d.outcome.digest); err != nil {
			return core.Answer{}, nil, err
		}
	}
	v, err := journal.ReadValue(text)
	return core.Answer{Value: v}, text, err
}

// differs gives a request's argument as JSON, and in what it differs from the recorded one,
// its place included if places are compared; "": in nothing.
func (d *decision) differs(q *core.Request, places bool) (args []byte, what string) {
	args, same := d.sameArgument(q)
	switch {
	case d.callee != "" || d.op != q.Op:
		what = "operation"
	case d.of != q.In:
		what = `"in"`
	case !same:
		what = "arguments"
	case places && (d.at != string(q.At) || d.in != q.Where || d.branch != q.Branch):
		what = "place"
	}
	return args, what
}

// sameArgument reports whether an argument is the one that was asked with. One
// that stands alone is the same as a record with only the main one.
func (d *decision) sameArgument(q *core.Request) (text []byte, same bool) {
	if q.TooLarge() || d.measured > 0 {
		return unwritten, d.measured == q.Size
	}
	text, err := journal.AppendValue(nil, q.Arg, mostRecorded(q))
	if err != nil {
		// It was denied for that, with nothing to compare.
		return unwritten, d.args.none() && d.asked.none() && d.denied != nil
	}
	if !d.asked.none() {
		return text, d.asked.is(text)
	}
	if d.args.is(text) {
		return text, true
	}
	if _, isRecord := value.Force(q.Arg).(*value.Record); isRecord || d.args.digest != nil {
		return text, false
	}
	var args map[string]json.RawMessage
	if d.denied != nil || json.Unmarshal(d.args.text, &args) != nil || len(args) != 1 {
		return text, false
	}
	for _, only := range args {
		return text, bytes.Equal(only, text)
	}
	return text, false
}

// unwritten stands for an argument that can't be recorded.
var unwritten = []byte(`"(a value that can't be recorded)"`)

// shown is a recorded request as a difference shows it.
func (d *decision) shown() *Asked {
	a := &Asked{Op: d.op, Of: d.of, In: d.in, At: d.at, Branch: d.branch}
	if d.callee != "" {
		a.Op += " " + d.callee
	}
	shown := d.args
	if !d.asked.none() {
		shown = d.asked
	}
	a.Args, a.Digest = shown.text, shown.digest
	if d.measured > 0 {
		a.Args = unwritten
	}
	return a
}
