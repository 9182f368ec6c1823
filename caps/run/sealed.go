package run

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

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
func FindSealed(ctx context.Context, j journal.Journal, id string) (one *Sealed, err error) {
	err = EachSealed(ctx, j, []string{id}, func(_ string, s *Sealed) { one = s })
	if err == nil && one == nil {
		err = fmt.Errorf("there is no sealed result %q", id)
	}
	return one, err
}

// EachSealed calls fn with those of some sealed results that are on record, reading it once.
func EachSealed(ctx context.Context, j journal.Journal, ids []string, fn func(id string, one *Sealed)) error {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for e, err := range newest(j, journal.ResultSealed, time.Time{}, math.MaxInt) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		rest, _ := bytes.CutPrefix(e.Data, []byte(`{"sealed":"`)) // as Seal writes it
		name, _, _ := bytes.Cut(rest, []byte(`"`))
		i, wanted := slices.BinarySearch(ids, string(name))
		if !wanted {
			continue
		}
		one, err := readSealed(j, e)
		if err != nil {
			return err
		}
		fn(ids[i], one)
		if ids = slices.Delete(ids, i, i+1); len(ids) == 0 {
			break
		}
	}
	return nil
}

// SealedOf is what was sealed of a run, the last first, and no more than a hundred.
func SealedOf(j journal.Journal, run string) (list []*Sealed, err error) {
	events, _, err := j.Read(journal.Query{Run: run, Kind: journal.ResultSealed, Limit: 100, Last: true})
	for i := range slices.Backward(events) {
		if one, err := readSealed(j, &events[i]); err == nil {
			list = append(list, one)
		}
	}
	return list, err
}

func readSealed(j journal.Journal, e *journal.Event) (*Sealed, error) {
	var data struct {
		Sealed string
		Label  []string
		Value  json.RawMessage
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
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
