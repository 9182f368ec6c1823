package run

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
)

// Show records that the model is shown something of sources, before it is: from then on what it writes
// comes from there, too. With an error it must not be shown.
func (b *Broker) Show(a flow.Atoms, run string) error {
	if b.flow == nil || a == 0 {
		return nil
	}
	changed, err := b.session.Show(a)
	if err != nil || !changed {
		return err
	}
	data := appendTexts([]byte(`{"label":`), b.flow.Names(b.session.Label()))
	_, err = b.journal.Append(journal.Written, journal.SessionLabelled, run, "", append(data, '}'))
	return err
}

// Entered is the sources that came into the run.
func (r *Run) Entered() flow.Atoms {
	if r.flows == nil {
		return 0
	}
	return r.flows.entered
}

// Sealed notes that the model was given a name for what the run gave.
func (r *Run) Sealed(id string) { r.sealed = id }

// ShowNames is [Broker.Show] by names.
func (b *Broker) ShowNames(names []string, run string) error {
	if b.flow == nil || len(names) == 0 {
		return nil
	}
	return b.Show(b.flow.Known(names), run)
}

// MadeUnder is what whoever writes a tool now has been shown; empty: nothing that counts.
func (b *Broker) MadeUnder() []string {
	if b.flow == nil {
		return nil
	}
	return b.flow.Names(b.session.Label())
}

// A Sealed result is one that the model was given a name for.
type Sealed struct {
	ID string `json:"id"`
	// Data and Control are the sources of it.
	Data    []string `json:"data,omitempty"`
	Control []string `json:"control,omitempty"`
	Type    string   `json:"type,omitempty"` // static
	// Result is its JSON, or a record with the error.
	Result json.RawMessage `json:"result,omitempty"`
	// Text is what the model would have been shown.
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
	Run    string `json:"run,omitempty"`
}

// Label is where it comes from.
func (s *Sealed) Label(p *flow.Policy) flow.Label {
	return flow.Label(p.Known(s.Data)) | flow.Label(p.Known(s.Control))<<32
}

// Seal keeps a result, and gives it a name: it is on record before the model has that.
func (b *Broker) Seal(s Sealed, l flow.Label) (*Sealed, error) {
	s.ID = "s_" + strings.ToLower(rand.Text())
	s.Data, s.Control = b.flow.Names(l.Data()), b.flow.Names(flow.Label(l>>32).Data())
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	data := journal.AppendString([]byte(`{"sealed":`), s.ID)
	data = appendTexts(append(data, `,"label":`...), b.flow.Names(l.Any()))
	data = b.appendText(append(data, `,"value":`...), text)
	_, err = b.journal.Append(journal.Written, journal.ResultSealed, s.Run, "", append(data, '}'))
	return &s, err
}

// FindSealed finds a sealed result on record.
func FindSealed(j journal.Journal, id string) (*Sealed, error) {
	before := uint64(0)
	for {
		events, more, err := j.Read(journal.Query{Kind: journal.ResultSealed, Before: before, Limit: 1000, Last: true})
		if err != nil {
			return nil, err
		}
		for i := len(events) - 1; i >= 0; i-- {
			var data struct {
				Sealed string
				Value  json.RawMessage
			}
			if json.Unmarshal(events[i].Data, &data) != nil || data.Sealed != id {
				continue
			}
			r := &Record{}
			r.blobs, _ = j.(Blobs)
			text, err := r.readText(data.Value)
			if err != nil {
				return nil, err
			}
			s := new(Sealed)
			return s, json.Unmarshal(text, s)
		}
		if !more || len(events) == 0 {
			return nil, fmt.Errorf("there is no sealed result %q", id)
		}
		before = events[0].Seq
	}
}
