package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// A tool that holds something for which a person is asked first is made at once,
// and waits. The question lies where `mcp-pif approve` finds it; nothing that a
// client sends answers it.

// stateOf is a tool's state now, and why where it isn't ready, with what a person
// said.
func (s *Engine) StateOf(t *registry.Tool) (state, why string) {
	policy := s.broker.Policy()
	_ = t.Problem() // StateOf knows it from then on
	if state, why = registry.StateOf(t, policy); state != registry.StateReady {
		return state, why
	}
	waits := policy.Asks(t.Held)
	if len(waits) == 0 {
		return state, ""
	}
	texts := strings.Join(heldTexts(waits), ", ")
	switch s.broker.Consent(t) {
	case caps.Approved:
		return registry.StateReady, ""
	case caps.Rejected:
		return registry.StateBlocked, "the operator was asked for " + texts + ", and said no"
	}
	return registry.StateAsking, texts + " waits for the operator's approval of this version"
}

func heldTexts(held []*caps.Held) []string {
	texts := make([]string, len(held))
	for i, h := range held {
		texts[i] = h.String()
	}
	return texts
}

// An asking is what became of asking for a new version. The zero value is that it
// need not wait.
type asking struct {
	state, why string // where it isn't ready
	note       string // for the model
	// question is what was put to a person just now; nil: nothing, or it waited
	// before.
	question *caps.Question
}

// ask asks a person, where a version needs it and they weren't asked, and says in
// which state it is.
func (s *Engine) ask(t *registry.Tool) (a asking) {
	policy, consents := s.broker.Policy(), s.broker.Consents()
	if !policy.Asking() {
		return a
	}
	if err := s.broker.PollConsents(); err != nil {
		s.log.Error("what was approved can't be read, so nothing is", "error", err)
	}
	state, why := s.StateOf(t)
	if s.superseded(t) {
		// What waits about the name is another version's, which it mustn't replace.
		if state != registry.StateReady {
			a.state, a.why = state, why
			a.note = "it isn't what the name stands for any more, so nobody is asked: an answer to it doesn't count"
		}
		return a
	}
	if state == registry.StateReady {
		s.withdraw(t.Name)
		return a
	}
	a.state, a.why = state, why
	if state == registry.StateBlocked {
		if s.broker.Consent(t) == caps.Rejected {
			s.withdraw(t.Name)
			a.note = "the operator said no to this name before, so nothing was asked: tell the user, who can clear that with `mcp-pif approve --clear NAME`, and don't try another name"
		}
		return a
	}
	q := s.question(t)
	id, asked, err := consents.Ask(q)
	switch {
	case errors.Is(err, caps.ErrAsksTooMuch):
		a.note = "not approved, and nobody was asked: there were five questions within an hour. Tell the user, and run the tool later to ask"
	case errors.Is(err, caps.ErrAsksForTooMuch):
		a.note = "not approved, and nobody was asked: the question would be too long. Declare fewer and shorter capabilities"
	case err != nil:
		s.log.Error("a person can't be asked", "tool", t.Name, "error", err)
		a.note = "not approved, and nobody can be asked: the server can't write the question. Tell the operator"
	default:
		a.note = fmt.Sprintf("%s isn't approved yet. Ask the user to run `mcp-pif approve %s` in a terminal; no restart is needed", strings.Join(q.Asks, ", "), id)
		if asked {
			q.ID = id
			a.question = s.waiting(id)
			s.broker.Asked(id, &q)
			s.log.Warn("a tool waits for your approval: run 'mcp-pif approve'", "question", id, "tool", t.Name, "capabilities", q.Asks)
		}
	}
	return a
}

// superseded reports whether the name of a version stands for another by now, or for
// nothing.
func (s *Engine) superseded(t *registry.Tool) bool {
	now, ok := s.tools.Snapshot().Get(t.Name)
	return !ok || now.Version != t.Version
}

// waiting is a question as it waits, with who asks and when; nil: it doesn't any more.
func (s *Engine) waiting(id string) *caps.Question {
	all, _, err := s.broker.Consents().All()
	if i := slices.IndexFunc(all, func(q caps.Question) bool { return q.ID == id }); err == nil && i >= 0 {
		return &all[i]
	}
	return nil
}

// Answers as a client's form has them.
var consentAnswers = []struct{ text, answer string }{
	{"yes, for this version alone", caps.YesVersion},
	{"yes, for this name while it gets no wider", caps.YesName},
	{"no", caps.No},
}

// askHere is ask, and where the operator allowed it the question is put by the
// client as well; whichever answer comes first counts.
func (s *Engine) askHere(ctx context.Context, t *registry.Tool) asking {
	a := s.ask(t)
	e := elicit.Of(ctx)
	if a.question == nil || e == nil || !s.opts.Elicit {
		return a
	}
	texts := make([]string, len(consentAnswers))
	for i, c := range consentAnswers {
		texts[i] = c.text
	}
	text, err := e.Choose(ctx, strings.Join(a.question.Lines(), "\n"), texts)
	if err != nil {
		s.log.Info("the client put no question; it waits for 'mcp-pif approve'", "tool", t.Name, "error", err)
		return a
	}
	i := slices.Index(texts, text)
	if i < 0 {
		a.note = "the user didn't answer. " + a.note
		return a
	}
	if err := s.broker.Consents().Answer(a.question.ID, &a.question.Subject, consentAnswers[i].answer, "elicitation"); err != nil {
		s.log.Warn("an answer didn't count", "tool", t.Name, "error", err)
	}
	return s.ask(t)
}

// withdraw takes back what waits about a name.
func (s *Engine) withdraw(name string) {
	if !s.broker.Policy().Asking() {
		return
	}
	if err := s.broker.Consents().Withdraw(name); err != nil {
		s.log.Error("a question can't be withdrawn", "tool", name, "error", err)
	}
}

// awaits has a person asked before a run of a tool that waits, if they weren't, and
// takes in what they answered.
func (s *Engine) awaits(ctx context.Context, t *registry.Tool) {
	switch {
	case t == nil || s.broker.Consents() == nil:
	case taskOf(ctx) != nil: // it can wait for the answer
		s.askHere(elicit.Named(ctx, fmt.Sprintf("consent-%s-%d", t.Name, t.Version)), t)
	default:
		s.ask(t)
	}
}

// question is what a person is asked of a version: what the server knows first,
// the model's words apart from that.
func (s *Engine) question(t *registry.Tool) caps.Question {
	policy := s.broker.Policy()
	subject := registry.SubjectOf(t)
	waits := policy.Asks(t.Held)
	q := caps.Question{
		Tool: t.Name, Version: t.Version, Subject: *subject, Asks: heldTexts(waits),
		Description: t.Description, Code: string(t.ToApprove()),
	}
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			q.Facts = append(q.Facts, title)
			for _, line := range lines {
				q.Facts = append(q.Facts, "  "+line)
			}
		}
	}
	var asked, others, called []string
	for _, h := range t.Held {
		if slices.Contains(waits, h) {
			asked = append(asked, h.Facts()...)
		} else if h.Grant != nil {
			others = append(others, h.Facts()...)
		}
	}
	section("Its writer had been shown what came from", t.MadeUnder)
	reads, does := s.facts.FlowFacts(t)
	section("It would get", asked)
	section("It has without asking", others)
	section("What it reads that you have rules about", reads)
	section("What it does with that", does)
	section("Secrets that it may name", policy.SecretTexts())
	uses := t.Uses()
	for _, b := range slices.Sorted(maps.Keys(uses)) {
		called = append(called, fmt.Sprintf("%s, version %d, which holds %s", wire.Short([]byte(b)), uses[b].Version, cmp.Or(strings.Join(uses[b].Capabilities, ", "), "nothing")))
	}
	if t.Late() {
		called = append(called, "any tool of a name that it works out, with what that tool may do")
	}
	if t.Copies() {
		called = append(called, "the code of any tool of a name that it works out")
	}
	section("It is bound to, and may call or copy", called)
	flags := caps.Annotations(t.Reach())
	if t.Late() {
		flags = caps.Worst(flags, wire.Worst(policy))
	}
	section("At worst, all together", []string{flags.Words()})
	section("Before", s.before(subject))
	return q
}

// before is what was said of the name, or of the code, before.
func (s *Engine) before(subject *caps.Subject) (lines []string) {
	approved, refused := s.broker.Consents().Before(subject)
	d := subject.Since(approved, s.broker.Policy().Kinds())
	say := func(what string, list []string) {
		if len(list) > 0 {
			lines = append(lines, what+" "+strings.Join(list, ", "))
		}
	}
	switch {
	case !d.Before:
		lines = append(lines, "no version of this name was approved")
	case !d.Code && len(d.Wider)+len(d.Gone)+len(d.Calls)+len(d.Rebound) == 0:
		lines = append(lines, "the version approved last had the same code and held the same")
	case d.Code:
		lines = append(lines, "the version approved last had other code")
	}
	say("WIDER than the version approved last by", d.Wider)
	say("narrower by", d.Gone)
	say("WIDER in what it reaches by calls:", d.Calls)
	say("bound to another version of", d.Rebound)
	say("the same code was REFUSED under the name", refused)
	return lines
}
