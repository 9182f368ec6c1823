package engine

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// defaultVersions is how many versions an answer has.
const defaultVersions = 20

// history shows what became of a tool, the newest first.
func (s *Engine) history(c Call, in wire.HistoryArguments) wire.Answer {
	name := string(in.Name)
	if in.Version > 0 {
		return s.difference(name, int(in.Version), c.Tools)
	}
	limit, before := cmp.Or(in.Limit, defaultVersions), uint64(in.Before)
	// One more than is shown says whether the oldest one's description is new.
	changes, more, err := s.tools.History(name, before, int(limit)+1)
	if err != nil {
		s.log.Error("reading a tool's history", "tool", name, "error", err)
		return wire.Failed(&fault.Fault{Kind: fault.Internal, Message: "the tool's history can't be read", Hint: "Tell the operator.", Cause: err})
	}
	if len(changes) == 0 && before == 0 {
		return wire.Failed(NoTool(name, c.Tools))
	}
	counted := s.Secretive() != nil
	rows, n := []byte{'['}, 0
	for ; n < min(len(changes), int(limit)); n++ {
		var older *registry.Change
		if n+1 < len(changes) {
			older = &changes[n+1]
		}
		changes[n].Description = s.Words(changes[n].Description, changes[n].MadeUnder)
		row := versionRow(&changes[n], older, counted, s.Unseen(changes[n].MadeUnder))
		if n > 0 {
			if len(rows)+len(row) > s.limits.Result {
				break
			}
			rows = append(rows, ',')
		}
		rows = append(rows, row...)
	}
	o := wire.Begin().Text("name", name).Raw("versions", append(rows, ']'))
	if (n < len(changes) || more) && !counted {
		args := wire.Begin().Text("name", name).Number("before", changes[n-1].Seq)
		if in.Limit > 0 {
			args = args.Number("limit", uint64(limit))
		}
		o = o.Raw("next", wire.Begin().Text("name", "history").Raw("arguments", args.End()).End())
	}
	return wire.Succeeded(o)
}

// difference is how one version of a tool became the current one; how the one before
// became it, where it is that. Of a retired tool the newest counts as the current one.
func (s *Engine) difference(name string, version int, tools *registry.Snapshot) wire.Answer {
	newest := 0
	if t, ok := tools.Get(name); ok {
		newest = t.Version
	} else if changes, _, err := s.tools.History(name, 0, 1); err == nil && len(changes) > 0 {
		newest = changes[0].Version
	}
	from, to := version, newest
	if version == newest && version > 1 {
		from = version - 1
	}
	both := make([]*registry.Tool, 2)
	for i, v := range []int{from, to} {
		var err error
		if both[i], err = s.tools.Version(registry.Ref{Name: name, Version: v}); err != nil {
			return wire.Failed(s.noVersion(name, v, err, tools))
		}
	}
	if f := s.Tell(both...); f != nil {
		return wire.Failed(f)
	}
	o := wire.Begin().Text("name", name).Number("from", uint64(from)).Number("to", uint64(to)).
		Text("diff", display.Truncate(registry.Diff(both[0], both[1]), wire.MaxDescribed))
	if from != to {
		o = o.Raw("next", bringing(name, from))
	}
	return wire.Succeeded(o)
}

// versionRow is a change as a model sees it. What it has in common with the one
// before it isn't told twice. counted is set where the numbers of events are a sign of what it may not see, and
// unseen where what it may do is left to describe.
func versionRow(c, older *registry.Change, counted, unseen bool) []byte {
	o := wire.Begin().
		Number("version", uint64(c.Version)).
		Text("kind", changeWord(c.Kind)).
		Text("time", wire.Instant(c.Time))
	if !counted {
		o = o.Number("seq", c.Seq)
	}
	if c.Err != nil {
		return o.Text("error", "this entry can't be read").End()
	}
	if c.Kind == registry.Retired {
		return o.End()
	}
	if c.Kind == registry.RolledBack {
		o = o.Number("from", uint64(c.From))
	}
	o = o.Text("hash", c.Hash).Number("bytes", uint64(len(c.Code)))
	if !unseen {
		o = o.Raw("capabilities", wire.EncodeTexts(c.Capabilities))
	}
	if len(c.Examples) > 0 {
		o = o.Number("examples", uint64(len(c.Examples)))
	}
	if c.Description != "" && (older == nil || older.Kind == registry.Retired || older.Description != c.Description) {
		o = o.Text("description", wire.Excerpt([]byte(c.Description), wire.MaxShown))
	}
	return o.End()
}

// changeWord is the kind of a change as answers and the journal have it.
func changeWord(k registry.ChangeKind) string {
	switch k {
	case registry.Evolved:
		return "evolved"
	case registry.Retired:
		return "retired"
	case registry.RolledBack:
		return "rolled_back"
	}
	return fmt.Sprintf("kind %d", k)
}

// retire takes a tool off the list.
func (s *Engine) retire(c Call, in wire.RetireArguments) wire.Answer {
	name := string(in.Name)
	t, err := s.tools.Retire(name, registry.Edit{IfVersion: (*int)(in.IfVersion)})
	if err != nil {
		f := s.discreet(name, wire.AsFault(err))
		if f.Kind == fault.NoTool {
			f = s.gone(name, c.Tools)
		}
		return wire.Failed(f)
	}
	callers, named := s.callersNamed(name, nil)
	notes := []string{fmt.Sprintf("to bring it back call %s", bringing(t.Name, t.Version))}
	if named != "" {
		notes = append(notes, "tools that are bound to a version of it go on using that version: "+named)
	}
	return wire.Succeeded(wire.Begin().
		Text("name", t.Name).
		Number("version", uint64(t.Version)).
		Text("state", "retired").
		Raw("callers", wire.EncodeTexts(callers)).
		Raw("notes", wire.Encode(notes)).
		Raw("next", wire.Begin().Text("name", "describe").Raw("arguments", wire.Begin().Text("name", name).Number("version", uint64(t.Version)).End()).End()))
}

// callersNamed is the tools that are bound to a version of a tool, also in words;
// empty: there are none.
func (s *Engine) callersNamed(name string, but *registry.Tool) (callers []string, named string) {
	callers, more := callersOf(name, but, s.tools.Snapshot())
	named = strings.Join(callers, ", ")
	if more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return callers, named
}
