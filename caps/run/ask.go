package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// While an operation is performed, whoever performs it may need something of the user: a
// server behind a plugin asks. The question is the stranger's, so it is put only in the run
// of a tool that may ask the user itself, by the capability that it holds for that. It is on
// record before it is put, and the answer before it is used. A replay needs neither: what
// the operation gave has all that came of them.

// MaxQuestions is how many questions one effect may put.
const MaxQuestions = 4

// The bytes of a question.
const (
	maxQuestion = 4 << 10
	maxForm     = 16 << 10
)

// A Question is a stranger's.
type Question struct {
	Message string
	// Schema is the form, the JSON Schema of an object; nil: there is none.
	Schema []byte
}

// A Reply is what came of a [Question].
type Reply struct {
	Action string // accept, decline or cancel
	// Content is what was filled in, a JSON object, where the action is accept.
	Content []byte
	// Reason says why nobody was asked; empty: the user answered.
	Reason string
}

// An Asker puts questions to the user.
type Asker interface {
	// AskOperation is the operation by which a tool asks the user: one that may do that
	// may have servers ask.
	AskOperation() string
	// Ask puts the question of whoever performs an act, and waits for the answer.
	Ask(context.Context, Act, Question) Reply
}

// asking is what puts the questions of an act; nil: nobody is asked.
func (a *act) asking(by Act) func(context.Context, Question) Reply {
	if a.run.b.asker == nil {
		return nil
	}
	return func(ctx context.Context, q Question) Reply { return a.ask(ctx, by, q) }
}

// ask decides a question, records it, puts it, and records the answer.
func (a *act) ask(ctx context.Context, by Act, q Question) Reply {
	r, asker := a.run, a.run.b.asker
	if len(q.Message) > maxQuestion || len(q.Schema) > maxForm || !utf8.ValidString(q.Message) || !utf8.Valid(q.Schema) {
		return Reply{Action: "decline", Reason: "the question is too long, or no text"}
	}
	permit, f := a.permitQuestion(q.Message, false)
	if f == nil {
		defer permit.Settle(0)
		if err := r.b.takeRate(ctx, permit.Held.Grant); err != nil {
			f = &fault.Fault{Kind: fault.Denied, Message: asker.AskOperation() + ": " + err.Error(), Cause: caps.TooOften{Grant: permit.Held.Grant}}
		}
	}
	data := strconv.AppendUint([]byte(`{"request":`), a.seq, 10)
	if a.asks(permit, f) {
		data = append(data, `,"limited":true`...)
	}
	data = journal.AppendString(append(data, `,"message":`...), q.Message)
	if q.Schema != nil {
		data = journal.AppendString(append(data, `,"schema":`...), string(q.Schema))
	}
	if f != nil {
		if permit != nil {
			data = append(data, `,"counted":true`...)
		}
		r.note(journal.EffectAsked, a.request.Branch, append(r.b.appendFault(append(data, `,"error":`...), f), '}'))
		return Reply{Action: "decline", Reason: f.Message}
	}
	if _, err := r.b.journal.Append(journal.Written, journal.EffectAsked, r.id, a.request.Branch, append(data, '}')); err != nil {
		return Reply{Action: "decline", Reason: "the question could not be recorded"}
	}
	reply := asker.Ask(ctx, by, q)
	data = strconv.AppendUint([]byte(`{"request":`), a.seq, 10)
	data = journal.AppendString(append(data, `,"action":`...), reply.Action)
	if reply.Content != nil {
		data = journal.AppendString(append(data, `,"content":`...), string(reply.Content))
	}
	if reply.Reason != "" {
		data = journal.AppendString(append(data, `,"reason":`...), reply.Reason)
	}
	if _, err := r.b.journal.Append(journal.Written, journal.EffectAnswered, r.id, a.request.Branch, append(data, '}')); err != nil {
		return Reply{Action: "decline", Reason: "the answer could not be recorded"}
	}
	return reply
}

// permitQuestion decides a question; again is set where it was permitted before.
func (a *act) permitQuestion(message string, again bool) (*caps.Permit, *fault.Fault) {
	r := a.run
	request := caps.Request{
		Operation: r.b.asker.AskOperation(), Arg: value.Str(message), With: a.request.With, Tool: a.request.Tool,
		Declared: a.tool.Declared, Consent: a.consent(), Again: again,
	}
	if r.flows != nil {
		request.From = uint32(r.flows.entered)
	}
	return r.b.policy.Permit(r.ledger, a.tool.Held, request)
}

// asks reports whether what a tool holds lets its operations put questions.
func (b *Broker) asks(h *caps.Held) bool {
	return b.asker != nil && strings.HasPrefix(b.asker.AskOperation(), h.Kind+".")
}

// asks notes what else an outcome tells of that a question came before: whether limits and rates let it be put. It
// reports whether they decided that.
func (a *act) asks(p *caps.Permit, f *fault.Fault) bool {
	r := a.run
	var often caps.TooOften
	switch {
	case f == nil && p.Rated():
		often.Grant = p.Held.Grant
	case f != nil && (errors.As(f.Cause, &often) || errors.Is(f.Cause, caps.ErrUsedUp)):
	default:
		return false
	}
	if r.flows != nil && often.Grant != nil {
		r.rates(often.Grant)
	}
	a.limited.Store(true)
	return true
}

// appendAsked writes the argument as the program gave it, where it can't be told
// from the arguments of the act, which are in their one spelling and relative to
// what the tool holds. A main argument that stood alone can.
func (a *act) appendAsked(data []byte) ([]byte, error) {
	args := a.permit.Args.Fields
	asked := value.Force(a.request.Arg)
	given := []value.Field{{Value: asked}}
	r, isRecord := asked.(*value.Record)
	if isRecord {
		given = r.Fields
	}
	same := len(given) == len(args) && (!isRecord || len(args) != 1 || a.main(args[0].Key))
	for i := 0; same && i < len(args); i++ {
		same = (!isRecord || given[i].Key == args[i].Key) && sameValue(given[i].Value, args[i].Value)
	}
	// Of a large one there is only the digest, which doesn't tell what stood alone.
	if same && (isRecord || !bytes.HasSuffix(data, []byte(`"}`)) || !bytes.Contains(data, []byte(`,"args_blob":`)) && !bytes.Contains(data, []byte(`,"args_hash":`))) {
		return data, nil
	}
	return a.run.b.appendValue(data, "asked", asked, mostRecorded(a.request))
}

// mostRecorded is how many bytes of JSON a value of a request may have on record:
// no more than the run has memory. A host that doesn't say how much that is gets
// what a blob can have.
func mostRecorded(q *core.Request) int64 {
	if q.Most > 0 {
		return min(q.Most, journal.MaxBlob)
	}
	return journal.MaxBlob
}

// tooLarge is the fault of a request that is permitted and isn't performed, since
// its argument would be larger than the run's memory once it was written. Like any
// other use of more memory than there is it ends the run.
func tooLarge(q *core.Request) *fault.Fault {
	return fault.Newf(fault.OutOfMemory, "%s was not done: its argument has more than %d bytes written out, the budget of memory", q.Op, q.Most).
		Hinted("Give it less: parts that are shared count each time they are written.")
}

// excerpt is how many bytes of a denied request's arguments are recorded.
const excerpt = 1000

// appendDenied writes what was asked for, as the program gave it, into the record
// of a denial. Nothing was done, so of what is long there is only the hash, to
// compare it with; and of what is larger than the run's memory only that, with what
// it was about.
func (a *act) appendDenied(data []byte) []byte {
	q := a.request
	if q.TooLarge() {
		kind, _, _ := strings.Cut(q.Op, ".")
		data = journal.AppendString(append(data, `,"args_measured":{"kind":`...), kind)
		if scope, ok := a.scope(); ok {
			data = journal.AppendString(append(data, `,"scope":`...), scope)
		}
		return append(strconv.AppendInt(append(data, `,"bytes":`...), q.Size, 10), '}')
	}
	before := len(data)
	data, err := journal.AppendValue(append(data, `,"args":`...), q.Arg, excerpt)
	if err == nil {
		return data
	}
	data = data[:before]
	if !errors.Is(err, journal.ErrSize) {
		return data
	}
	h := sha256.New()
	n, err := journal.HashValue(h, q.Arg, mostRecorded(q))
	if err != nil {
		return data
	}
	return appendHashed(append(data, `,"args_hash":`...), n, journal.Hash(h.Sum(nil)))
}

// scope is what a request's main argument names, where that is a short string.
func (a *act) scope() (string, bool) {
	arg := value.Force(a.request.Arg)
	if r, ok := arg.(*value.Record); ok {
		arg = nil
		_, o, known := a.run.b.policy.Kinds().Operation(a.request.Op)
		for i := range r.Fields {
			if known && slices.ContainsFunc(o.Takes(), func(p caps.Param) bool {
				return p.Name == r.Fields[i].Key && (p.Main || p.Designates)
			}) {
				arg = value.Force(r.Fields[i].Value)
				break
			}
		}
	}
	s, ok := arg.(value.Str)
	return string(s), ok && len(s) <= excerpt
}

// main reports whether a parameter is the operation's main one.
func (a *act) main(name string) bool {
	return slices.ContainsFunc(a.permit.Operation.Takes(), func(p caps.Param) bool { return p.Main && p.Name == name })
}

// sameValue reports whether two values are the same as far as that is seen at
// once: strings by their bytes, lists and records by being the very same.
func sameValue(a, b value.Value) bool {
	b = value.Force(b)
	switch a := value.Force(a).(type) {
	case value.Str:
		b, ok := b.(value.Str)
		return ok && a == b
	case value.Bool:
		return value.Value(a) == b
	case *value.Cons:
		return value.Value(a) == b
	case *value.Record:
		return value.Value(a) == b
	case value.Int:
		b, ok := b.(value.Int)
		return ok && a.Words() == 1 && b.Words() == 1 && a.String() == b.String()
	}
	return false
}

// Consents is what a person approved; nil: nobody approves anything.
func (b *Broker) Consents() *caps.Consents { return b.consents }

// Consent is what a person said to a version, as far as the answers were read.
func (b *Broker) Consent(t *registry.Tool) caps.Consent {
	return b.consents.Of(registry.SubjectOf(t))
}

// consent is the same within a run, for the tool whose code asks.
func (r *Run) consent(t *registry.Tool) caps.Consent {
	if t == nil || r.b.consents == nil || !r.b.policy.Asking() {
		return caps.Unasked
	}
	s := r.subjects[t]
	if s == nil {
		if s = registry.SubjectOf(t); r.subjects == nil {
			r.subjects = map[*registry.Tool]*caps.Subject{}
		}
		r.subjects[t] = s
	}
	return r.b.consents.Of(s)
}

func (a *act) consent() caps.Consent {
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	return a.run.consent(a.tool)
}

// PollConsents takes in what was answered, and puts on record what is new.
func (b *Broker) PollConsents() error {
	return errors.Join(b.consents.Poll(), b.TellConsents())
}

// TellConsents puts on record what was answered and is new.
func (b *Broker) TellConsents() error {
	return b.consents.Tell(func(a caps.ConsentAnswer) error {
		data := appendRef([]byte{'{'}, a.Tool, a.Version, a.Subject.Code)
		data = journal.AppendString(append(data, `,"question":`...), a.ID)
		data = journal.AppendString(append(data, `,"answer":`...), a.Answer)
		data = journal.AppendString(append(data, `,"by":`...), a.By)
		data = journal.AppendString(append(data, `,"answered":`...), a.Time.UTC().Format("2006-01-02T15:04:05Z"))
		data = journal.AppendString(append(data, `,"subject":`...), a.Subject.Key())
		_, err := b.journal.Append(journal.Synced, journal.ConsentAnswered, "", "", append(data, '}'))
		return err
	})
}

// Asked records that a person was asked.
func (b *Broker) Asked(id string, q *caps.Question) {
	data := appendRef([]byte{'{'}, q.Tool, q.Version, q.Subject.Code)
	data = journal.AppendString(append(data, `,"question":`...), id)
	data = appendTexts(append(data, `,"capabilities":`...), q.Asks)
	b.note(journal.ConsentAsked, append(strconv.AppendQuote(append(data, `,"subject":`...), q.Subject.Key()), '}'))
}
