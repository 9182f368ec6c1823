package run

import (
	"context"
	"strconv"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
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
	r.mu.Lock()
	consent := r.consent(a.tool)
	r.mu.Unlock()
	permit, f := r.b.policy.Permit(r.ledger, a.tool.Held, caps.Request{
		Operation: asker.AskOperation(), Arg: value.Str(q.Message), With: a.request.With, Tool: a.request.Tool, Where: a.request.Where,
		Declared: a.tool.Declared, Consent: consent,
	})
	data := strconv.AppendUint([]byte(`{"request":`), a.seq, 10)
	data = journal.AppendString(append(data, `,"message":`...), q.Message)
	if q.Schema != nil {
		data = journal.AppendString(append(data, `,"schema":`...), string(q.Schema))
	}
	if f != nil {
		r.note(journal.EffectAsked, a.request.Branch, append(r.b.appendFault(append(data, `,"error":`...), f), '}'))
		return Reply{Action: "decline", Reason: f.Message}
	}
	defer permit.Settle(0)
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
