package run

import (
	"strconv"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
)

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

// PollConsents takes in what was answered, and puts on record what is new.
func (b *Broker) PollConsents() error {
	if err := b.consents.Poll(); err != nil {
		return err
	}
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
