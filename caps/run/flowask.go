package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A request that breaks a rule whose else is ask is put to a person: before the client at once, or at a terminal,
// where it waits on record. A yes at a terminal is to the same request made once more, once.

const (
	// FlowQuestionLifetime is how long a question waits, and a yes to it holds.
	FlowQuestionLifetime = time.Hour
	// maxFlowQuestions is how many wait at a time.
	maxFlowQuestions = 50
	maxFlowLines     = 120
	maxFlowBytes     = 64 << 10
)

// A FlowQuestion is what a person is asked who may let a request pass that breaks a rule: about this
// very request, once.
type FlowQuestion struct {
	Operation string
	Tool      string
	Version   int
	Args      value.Value // as the plugin would get them
	Rules     []string    // the sentences
	// From is where each argument came from, in words; none for what nothing is known of.
	From map[string]string
	// Record puts on record that a person is asked, before that is done; false: it can't be.
	Record func() bool
}

var errLongRequest = errors.New("the request is longer than a person reads")

// Lines is what the person reads, with what others wrote in a margin; an error if it is longer than a person reads.
func (q *FlowQuestion) Lines(maxLines, maxBytes int) ([]string, error) {
	breaks := "one of your rules"
	if len(q.Rules) > 1 {
		breaks = "several of your rules"
	}
	lines := append(
		caps.FoldedASCII("", fmt.Sprintf(`The tool "%s", version %d, asks to perform the request below, which breaks %s. A yes allows this one request.`, caps.PlainASCII(q.Tool), q.Version, breaks)), "")
	for _, rule := range q.Rules {
		lines = append(lines, caps.FoldedASCII("", "The rule: "+rule)...)
	}
	lines = append(lines, "", q.Operation+":")
	args, _ := q.Args.(*value.Record)
	if args == nil {
		return nil, errors.New("the request has no arguments")
	}
	for _, f := range args.Fields {
		text, err := journal.AppendValue(nil, f.Value, int64(maxBytes))
		if err != nil {
			return nil, errLongRequest
		}
		maxBytes -= len(text)
		lines = append(lines, "  "+caps.PlainASCII(f.Key))
		if words := cmp.Or(q.From[f.Key], q.From[""]); words != "" {
			lines = append(lines, caps.FoldedASCII("    ", "("+ascii(words)+": written by others)")...)
		}
		margined := caps.Margined(string(text), maxLines)
		if lines = append(lines, margined...); len(lines) > maxLines {
			return nil, errLongRequest
		}
	}
	return lines, nil
}

// A WaitingFlow is a question that was put to the terminal.
type WaitingFlow struct {
	ID      string    `json:"request"`
	Run     string    `json:"run"`
	Op      string    `json:"op"`
	Tool    string    `json:"tool"`
	Version int       `json:"version"`
	Lines   []string  `json:"lines"`
	Asked   time.Time `json:"asked"`

	key  string
	seq  uint64
	yes  []uint64 // answers to it that aren't used up
	said bool     // it was answered since
}

// Expires is until when it waits, and a yes holds.
func (q *WaitingFlow) Expires() time.Time { return q.Asked.Add(FlowQuestionLifetime) }

// flowQuestions is the questions of the last hour, the oldest first.
func flowQuestions(j journal.Journal, now time.Time) (list []*WaitingFlow, err error) {
	var asked []*journal.Event
	for e, err := range newest(j, journal.FlowAsked, now.Add(-FlowQuestionLifetime), 1000) {
		if err != nil {
			return nil, err
		}
		asked = append(asked, e)
	}
	if len(asked) == 0 {
		return nil, nil
	}
	answers, _, err := j.Read(journal.Query{Kind: journal.FlowAnswered, Limit: 1000, Last: true})
	if err != nil {
		return nil, err
	}
	texts := &Record{}
	texts.blobs, _ = j.(Blobs)
	keys := map[string]string{}
	for _, e := range slices.Backward(asked) {
		var data struct {
			Question, Op, Tool, Key string
			Version                 int
			Shown                   json.RawMessage
		}
		if err := json.Unmarshal(e.Data, &data); err != nil || data.Question == "" || now.Sub(e.Time) > FlowQuestionLifetime {
			continue // it was put to a client
		}
		text, err := texts.readText(data.Shown)
		if err != nil {
			return nil, err
		}
		keys[data.Question] = data.Key
		list = append(list, &WaitingFlow{ID: data.Question, Run: e.Run, Op: data.Op, Tool: data.Tool, Version: data.Version, Lines: strings.Split(string(text), "\n"), Asked: e.Time, key: data.Key, seq: e.Seq})
	}
	for i := range answers {
		e, data := &answers[i], flowAnswerOf(&answers[i])
		for _, q := range list {
			switch {
			case data.Used && q.ID == data.Question && len(q.yes) > 0:
				q.yes = q.yes[1:]
			case data.Used:
			case data.Question != "" && q.key == keys[data.Question] && q.seq < e.Seq:
				if q.said = true; q.ID == data.Question && data.Yes {
					q.yes = append(q.yes, e.Seq)
				}
			}
		}
	}
	return list, nil
}

// A flowAnswer is what is on record of an answer at a terminal, or that a yes is used up.
type flowAnswer struct {
	Question  string
	Yes, Used bool
}

func flowAnswerOf(e *journal.Event) (a flowAnswer) {
	_ = json.Unmarshal(e.Data, &a) // what can't be read is of no question
	return a
}

// WaitingFlows is the questions that wait for a person at a terminal, the oldest first: of the same request the last.
func WaitingFlows(j journal.Journal, now time.Time) ([]*WaitingFlow, error) {
	list, err := flowQuestions(j, now)
	last := map[string]*WaitingFlow{}
	for _, q := range list {
		last[q.key] = q
	}
	return slices.DeleteFunc(list, func(q *WaitingFlow) bool { return q.said || last[q.key] != q }), err
}

// AnswerFlow records what a person said to a question; an error is that it doesn't wait.
func AnswerFlow(j journal.Journal, id string, yes bool, by string) error {
	list, err := WaitingFlows(j, time.Now())
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(q *WaitingFlow) bool { return q.ID == id }) {
		return fmt.Errorf("the request %s doesn't wait for an answer any more", id)
	}
	data := journal.AppendString([]byte(`{"question":`), id)
	data = journal.AppendString(fmt.Appendf(data, `,"yes":%t,"by":`, yes), by)
	_, err = j.Append(journal.Written, journal.FlowAnswered, "", "", append(data, '}'))
	return err
}

// flowKey is what a yes at a terminal is to: the request, who makes it, the rules and the sources.
func (a *act) flowKey(v *verdict) (string, error) {
	args, err := journal.AppendValue(nil, a.permit.Args, maxFlowBytes)
	if err != nil {
		return "", err
	}
	p := a.run.flows.policy
	said, err := json.Marshal([]any{a.tool.Name, a.tool.Hash, a.request.Op, a.permit.Held.Grant.ID, string(args), v.sentences(p), p.Names(v.asked)})
	sum := sha256.Sum256(said)
	return hex.EncodeToString(sum[:]), err
}

// sentences is the rules that a person is asked about, in words.
func (v *verdict) sentences(p *flow.Policy) (list []string) {
	for _, rule := range v.asks {
		list = append(list, p.Sentence(rule))
	}
	return list
}

// askFlow asks a person about a request that breaks a rule, and records that. f is why it is denied if not: what became
// of the question is in its hint, which no program sees. It tells how long the argument is, and whether the same was asked
// before, so a model does only where it was shown all that may be in that.
func (r *Run) askFlow(ctx context.Context, a *act, v *verdict, f *fault.Fault) bool {
	yes, answered := r.putFlow(ctx, a, v, f)
	if !yes && !answered && !r.shownAll() {
		f.Hint = fmt.Sprintf("It needs the user's yes to this one request: tell the user to type 'mcp-pif approve' at a terminal, which shows it unless it is too long to review; make the same call again after a yes. Or give it what doesn't come from %s.", r.flows.policy.Words(v.about|v.from))
	}
	return yes
}

// shownAll reports whether the model that asked for the run was shown something of all that came in, or that doesn't count.
func (r *Run) shownAll() bool {
	f := r.flows
	if f.policy.IgnoreSession {
		return len(f.policy.Shown()) == 0
	}
	seen, err := r.b.session.Seen()
	return !f.person && err == nil && f.policy.About(f.entered)&^seen == 0
}

const saidNo = "A person was asked, and said no. "

// putFlow puts the question: answered is set where a person said something just now.
func (r *Run) putFlow(ctx context.Context, a *act, v *verdict, f *fault.Fault) (yes, answered bool) {
	p := r.flows.policy
	q := FlowQuestion{Operation: a.request.Op, Tool: a.tool.Name, Version: a.tool.Version, Args: a.permit.Args, Rules: v.sentences(p)}
	key, err := a.flowKey(v)
	if err == nil && r.spendYes(a, key) {
		return true, true
	}
	if err == nil && r.flows.refused[key] {
		f.Hint = saidNo + f.Hint
		return false, true
	}
	if err == nil {
		q.From = r.origins(ctx, a, slices.ContainsFunc(v.asks, func(r *flow.Rule) bool { return r.Any }))
		_, err = q.Lines(maxFlowLines, maxFlowBytes)
	}
	if err != nil {
		f.Hint = "It can't be put to a person: it is too long to review. " + f.Hint
		return false, false
	}
	head := strconv.AppendInt(append(a.head(), `,"rule":`...), int64(v.rule.N), 10)
	head = appendTexts(append(head, `,"from":`...), p.Names(v.asked))
	if r.b.askFlow != nil {
		q.Record = func() bool {
			return r.note(journal.FlowAsked, a.request.Branch, append(slices.Clone(head), '}'))
		}
		if yes, err := r.b.askFlow(ctx, q); err == nil {
			data := strconv.AppendInt([]byte(`{"n":`), int64(a.n), 10)
			data = strconv.AppendBool(append(data, `,"yes":`...), yes)
			if _, err := r.b.journal.Append(journal.Written, journal.FlowAnswered, r.id, a.request.Branch, append(data, '}')); err != nil {
				return false, false // a yes that isn't on record is none
			}
			if !yes {
				r.flows.refused[key] = true
				f.Hint = saidNo + f.Hint
			}
			return yes, true
		}
	}
	waiting, err := WaitingFlows(r.b.journal, time.Now())
	if err != nil {
		return false, false
	}
	var id string
	if i := slices.IndexFunc(waiting, func(q *WaitingFlow) bool { return q.key == key }); i >= 0 {
		id = waiting[i].ID // it was told before
	} else {
		if len(waiting) >= maxFlowQuestions {
			f.Hint = "It can't be put to a person: too many requests are waiting. Tell the user: 'mcp-pif approve' shows them."
			return false, false
		}
		id = "f_" + strings.ToLower(rand.Text()[:12])
		lines, _ := q.Lines(maxFlowLines, maxFlowBytes)
		data := journal.AppendString(append(journal.AppendString(append(head, `,"question":`...), id), `,"key":`...), key)
		data = r.b.appendText(append(data, `,"shown":`...), []byte(strings.Join(lines, "\n")))
		if _, err := r.b.journal.Append(journal.Written, journal.FlowAsked, r.id, a.request.Branch, append(data, '}')); err != nil {
			return false, false
		}
	}
	f.Hint = fmt.Sprintf("It waits for the user's yes to this one request, as %s: tell the user to type 'mcp-pif approve %[1]s' at a terminal, which shows the request; make the same call again after a yes. Or give it what doesn't come from %s.", id, p.Words(v.about|v.from))
	return false, false
}

// spendYes uses up a yes to a request, if there is one: it is used on record before the request is made, and by the
// first who has it there, since several servers may have one store.
func (r *Run) spendYes(a *act, key string) bool {
	list, err := flowQuestions(r.b.journal, time.Now())
	if err != nil {
		return false
	}
	for _, q := range list {
		if q.key != key || len(q.yes) == 0 {
			continue
		}
		data := strconv.AppendInt(append(journal.AppendString([]byte(`{"question":`), q.ID), `,"n":`...), int64(a.n), 10)
		seq, err := r.b.journal.Append(journal.Written, journal.FlowAnswered, r.id, a.request.Branch, append(data, `,"used":true}`...))
		if err != nil {
			return false
		}
		used, _, err := r.b.journal.Read(journal.Query{Kind: journal.FlowAnswered, Limit: 1000, Last: true})
		if err != nil {
			return false
		}
		for i := range used {
			if a := flowAnswerOf(&used[i]); a.Used && a.Question == q.ID {
				return used[i].Seq == seq // a question is answered once
			}
		}
	}
	return false
}
