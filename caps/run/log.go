package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
)

// Log is a journal as the tools are kept in it: the events tool.evolved,
// tool.retired and tool.rolled_back.
func Log(j journal.Journal) registry.Log { return toolLog{j} }

// NewTools returns a registry without tools whose record ends with the process. What
// they may do is decided by the policy; nil: nothing is granted.
func NewTools(policy *caps.Policy) *registry.Registry {
	r, _, err := registry.Open(Log(journal.NewMemory(math.MaxInt64, nil)), policy)
	if err != nil {
		panic(err) // an empty journal can be read
	}
	return r
}

type toolLog struct{ journal journal.Journal }

// ByName reports whether the journal holds a change against those of the names that it
// was made from alone.
func (l toolLog) ByName() bool {
	s, ok := l.journal.(interface {
		Cluster() (journal.Cluster, bool)
	})
	if !ok {
		return false
	}
	_, in := s.Cluster()
	return in
}

// kinds is how the journal calls what becomes of tools.
var kinds = map[registry.ChangeKind]journal.Kind{
	registry.Evolved:    journal.ToolEvolved,
	registry.Retired:    journal.ToolRetired,
	registry.RolledBack: journal.ToolRolledBack,
}

// Append implements [registry.Log].
func (l toolLog) Append(after uint64, c *registry.Change, read ...string) (uint64, error) {
	data, _, err := appendChange(nil, c, math.MaxUint64)
	if err != nil {
		return 0, err
	}
	seq, err := l.journal.Change(after, kinds[c.Kind], data, read...)
	if errors.Is(err, journal.ErrBehind) {
		return 0, registry.ErrBehind
	}
	return seq, err
}

// AppendAll implements [registry.Log].
func (l toolLog) AppendAll(after uint64, list []registry.Change, read ...string) (uint64, error) {
	parts := make([]journal.Part, len(list))
	for i := range list {
		data, refs, err := appendChange(nil, &list[i], after)
		if err != nil {
			return 0, err
		}
		parts[i] = journal.Part{Kind: kinds[list[i].Kind], Data: data, Refs: refs}
	}
	seq, err := l.journal.ChangeAll(after, parts, read...)
	if errors.Is(err, journal.ErrBehind) {
		return 0, registry.ErrBehind
	}
	return seq, err
}

// Changed implements [registry.Log].
func (l toolLog) Changed() (uint64, error) { return l.journal.Changed() }

// Newest implements [registry.Log]. Events are taken apart while more are read.
func (l toolLog) Newest(through uint64) ([]registry.Change, error) {
	const size = 128
	var parts [][]registry.Change
	var batch []journal.Event
	var workers sync.WaitGroup
	flush := func() {
		events, part := batch, make([]registry.Change, len(batch))
		parts, batch = append(parts, part), make([]journal.Event, 0, size)
		workers.Go(func() {
			for i := range events {
				change(&events[i], &part[i])
			}
		})
	}
	err := l.journal.EachNewest(through, func(e *journal.Event) error {
		if batch = append(batch, *e); len(batch) == size {
			flush()
		}
		return nil
	})
	flush()
	workers.Wait()
	return slices.Concat(parts...), err
}

// Since implements [registry.Log].
func (l toolLog) Since(after uint64, limit int) ([]registry.Change, bool, error) {
	events, more, err := l.journal.Read(journal.Query{Changes: true, After: after, Limit: limit})
	return changes(events), more, err
}

// Of implements [registry.Log].
func (l toolLog) Of(name string, before uint64, limit int) ([]registry.Change, bool, error) {
	events, more, err := l.journal.Read(journal.Query{Changes: true, Tool: name, Before: before, Limit: limit, Last: true})
	list := changes(events)
	slices.Reverse(list)
	return list, more, err
}

// One implements [registry.Log].
func (l toolLog) One(seq uint64) (registry.Change, bool, error) {
	events, _, err := l.journal.Read(journal.Query{Changes: true, After: seq - 1, Before: seq + 1, Limit: 1})
	if err != nil || len(events) == 0 {
		return registry.Change{}, false, err
	}
	return changes(events)[0], true, nil
}

// changes reads events, in their order.
func changes(events []journal.Event) []registry.Change {
	list := make([]registry.Change, len(events))
	for i := range events {
		change(&events[i], &list[i])
	}
	return list
}

// facts is what was found out of the version when it was made.
type facts struct {
	Semantics   int              `json:"semantics"`
	Normal      string           `json:"normal,omitempty"`
	Certificate json.RawMessage  `json:"certificate,omitempty"`
	Input       json.RawMessage  `json:"input,omitempty"`
	Output      json.RawMessage  `json:"output,omitempty"`
	Answers     registry.Answers `json:"answers,omitempty"`
}

// readFacts reads what was found out of a version; nothing, where a part of it can't be read.
func readFacts(data []byte) registry.Facts {
	var f registry.Facts
	if readMembers(data, func(name []byte) any {
		switch string(name) {
		case "semantics":
			return &f.Semantics
		case "normal":
			return &f.Normal
		case "certificate":
			return &f.Certificate
		case "input":
			return &f.Input
		case "output":
			return &f.Output
		case "answers":
			return &f.Answers
		}
		return nil
	}) != nil {
		return registry.Facts{}
	}
	return f
}

// readMembers reads the members of an object, of which field gives where each belongs; nil: nowhere.
func readMembers(data []byte, field func(name []byte) any) (err error) {
	c := pifjson.Cursor{Src: data}
	whole := c.Object(func(key []byte) bool {
		from := c.At
		if err != nil || !c.Value() {
			return false
		}
		raw := data[from:c.At]
		switch into := field(key[1 : len(key)-1]).(type) {
		case nil:
		case *registry.Facts:
			*into = readFacts(raw)
		case *json.RawMessage:
			if *into = raw; !json.Valid(raw) { // the cursor has passed it, no more
				err = errors.New("it is no JSON")
			}
		case *string:
			var ok bool
			if *into, ok = pifjson.Unquote(raw); !ok {
				err = json.Unmarshal(raw, into)
			}
		case *[]byte:
			text, ok := pifjson.Unquote(raw)
			if *into = []byte(text); !ok {
				err = errors.New("it is no text")
			}
		case *int:
			*into, err = strconv.Atoi(string(raw))
		default:
			if string(raw) != "[]" {
				err = json.Unmarshal(raw, into)
			}
		}
		return err == nil
	})
	c.Space()
	if err == nil && (!whole || c.At < len(data)) {
		err = errors.New("it is no object")
	}
	return err
}

// bound is a version that a name in the code stands for. Event is the number of
// the event that made it.
type bound struct {
	Tool    string `json:"tool"`
	Version int    `json:"version"`
	Hash    string `json:"hash"`
	Event   uint64 `json:"event"`
}

// change reads an event, and whether it is as it was sealed. What can't be read is
// the error of the change: one of them must not keep the others from being read. A server
// reads ten thousand when it starts, so it is done without reflection, in a third of the time.
func change(e *journal.Event, c *registry.Change) {
	c.Seq, c.Time = e.Seq, e.Time
	for kind, name := range kinds {
		if name == e.Kind {
			c.Kind = kind
		}
	}
	form, list := "", []bound(nil)
	err := readMembers(e.Data, func(name []byte) any {
		switch string(name) {
		case "tool":
			return &c.Name
		case "version":
			return &c.Version
		case "hash":
			return &c.Hash
		case "from":
			return &c.From
		case "declared":
			return &c.Definition.Capabilities
		case "capabilities":
			return &c.Capabilities
		case "node":
			return &c.Home
		case "bound":
			return &list
		case "group":
			return &c.Group
		case "source":
			return &c.Code
		case "form":
			return &form
		case "canonical":
			return &c.Canonical
		case "description":
			return &c.Description
		case "examples":
			return &c.Examples
		case "as":
			return &c.As
		case "made_under":
			return &c.MadeUnder
		case "input_schema":
			return &c.Input
		case "facts":
			return &c.Facts
		}
		return nil
	})
	if err != nil {
		*c = registry.Change{Seq: c.Seq, Time: c.Time, Kind: c.Kind, Err: fmt.Errorf("event %d of the journal can't be read: %w", e.Seq, err)}
		c.Name = e.Tool()
		return
	}
	c.Text = form == "text"
	if e.Seal() != e.Hash {
		c.Unsound = fmt.Errorf("event %d of the journal isn't what was recorded", e.Seq)
		if c.Kind == registry.Retired {
			c.Err = c.Unsound
		}
	}
	for _, b := range list {
		c.Bound = append(c.Bound, registry.Binding{Ref: registry.Ref{Name: b.Tool, Version: b.Version}, Hash: b.Hash, Seq: b.Event})
	}
}

// appendChange writes the data of an event. "tool" and "version" come first in
// all of them: the journal finds events by them. What is bound to a number larger than
// after is bound to an event of the same whole, by where refs says.
func appendChange(data []byte, c *registry.Change, after uint64) (_ []byte, refs []journal.Ref, _ error) {
	data = appendRef(append(data, '{'), c.Name, c.Version, c.Hash)
	if c.Kind == registry.Retired {
		return append(data, '}'), nil, nil
	}
	if c.Kind == registry.RolledBack {
		data = strconv.AppendInt(append(data, `,"from":`...), int64(c.From), 10)
	}
	data = appendWhole(append(data, `,"declared":`...), c.Definition.Capabilities)
	data = appendWhole(append(data, `,"capabilities":`...), c.Capabilities)
	if c.Home != "" {
		data = journal.AppendString(append(data, `,"node":`...), c.Home)
	}
	if len(c.Bound) > 0 {
		data = append(data, `,"bound":[`...)
		for i, b := range c.Bound {
			if i > 0 {
				data = append(data, ',')
			}
			data = appendRef(append(data, '{'), b.Name, b.Version, b.Hash)
			data = append(data, `,"event":`...)
			if b.Seq > after {
				refs = append(refs, journal.Ref{At: len(data), Part: int(b.Seq - after - 1)})
				b.Seq = 0
			}
			data = append(strconv.AppendUint(data, b.Seq, 10), '}')
		}
		data = append(data, ']')
	}
	if len(c.Group) > 0 {
		members, err := json.Marshal(c.Group)
		if err != nil {
			return nil, nil, fmt.Errorf("writing its group: %w", err)
		}
		data = append(append(data, `,"group":`...), members...)
	}
	data = journal.AppendString(append(data, `,"source":`...), string(c.Code))
	if c.Text {
		data = append(data, `,"form":"text"`...)
	}
	if len(c.Canonical) > 0 {
		data = journal.AppendString(append(data, `,"canonical":`...), string(c.Canonical))
	}
	data = journal.AppendString(append(data, `,"description":`...), c.Description)
	if c.As != registry.AsTool {
		data = journal.AppendString(append(data, `,"as":`...), c.As)
	}
	if len(c.MadeUnder) > 0 {
		data = appendWhole(append(data, `,"made_under":`...), c.MadeUnder)
	}
	if len(c.Input) > 0 {
		data = append(append(data, `,"input_schema":`...), c.Input...)
	}
	if len(c.Examples) > 0 {
		b, err := pifjson.Encode(c.Examples)
		if err != nil {
			return nil, nil, fmt.Errorf("writing its examples: %w", err)
		}
		data = append(append(data, `,"examples":`...), b...)
	}
	if !c.Facts.Empty() {
		b, err := json.Marshal(facts(c.Facts))
		if err != nil {
			return nil, nil, fmt.Errorf("writing what was found out of it: %w", err)
		}
		data = append(append(data, `,"facts":`...), b...)
	}
	return append(data, '}'), refs, nil
}

// appendRef writes the members that name a version of a tool.
func appendRef(b []byte, name string, version int, hash string) []byte {
	b = journal.AppendString(append(b, `"tool":`...), name)
	b = strconv.AppendInt(append(b, `,"version":`...), int64(version), 10)
	return journal.AppendString(append(b, `,"hash":`...), hash)
}

// appendWhole writes all texts as they are: they are read back.
func appendWhole(b []byte, texts []string) []byte {
	b = append(b, '[')
	for i, t := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = journal.AppendString(b, t)
	}
	return append(b, ']')
}
