package run

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
)

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
	// Lost says that the record doesn't have the text.
	Lost bool `json:"-"`
}

// Label is where it comes from: from all sources where the policy doesn't know one of them any more, since it was
// sealed for that.
func (s *Sealed) Label(p *flow.Policy) flow.Label {
	if slices.ContainsFunc(slices.Concat(s.Data, s.Control), func(name string) bool { return p.Known([]string{name}) == 0 }) {
		return flow.Both(p.About(^flow.Atoms(0)))
	}
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
	if data, err = b.appendKept(append(data, `,"value":`...), text); err != nil {
		return nil, err
	}
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
		for i := range slices.Backward(events) {
			if name, read := readSealed(j, &events[i]); name == id {
				return read()
			}
		}
		if !more || len(events) == 0 {
			return nil, fmt.Errorf("there is no sealed result %q", id)
		}
		before = events[0].Seq
	}
}

// SealedOf is what was sealed of a run, the last first, and no more than a hundred.
func SealedOf(j journal.Journal, run string) (list []*Sealed, err error) {
	events, _, err := j.Read(journal.Query{Run: run, Kind: journal.ResultSealed, Limit: 100, Last: true})
	for i := range slices.Backward(events) {
		_, read := readSealed(j, &events[i])
		if one, err := read(); err == nil {
			list = append(list, one)
		}
	}
	return list, err
}

// readSealed gives the name of what an event has, and reads it.
func readSealed(j journal.Journal, e *journal.Event) (id string, read func() (*Sealed, error)) {
	var data struct {
		Sealed string
		Label  []string
		Value  json.RawMessage
	}
	err := json.Unmarshal(e.Data, &data)
	return data.Sealed, func() (*Sealed, error) {
		if err != nil {
			return nil, err
		}
		r := &Record{}
		r.blobs, _ = j.(Blobs)
		text, err := r.readText(data.Value)
		if errors.Is(err, ErrNoRecord) { // that it was too large to be kept isn't told to the model
			return &Sealed{ID: data.Sealed, Data: data.Label, Control: data.Label, Text: "the record doesn't have it: " + err.Error(), Failed: true, Lost: true}, nil
		} else if err != nil {
			return nil, err
		}
		s := new(Sealed)
		return s, json.Unmarshal(text, s)
	}
}
