package mcpserver

import (
	"fmt"
	"math"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// The numbers of versions in an answer.
const (
	defaultVersions = 20
	mostVersions    = 200
)

// history shows what became of a tool, the newest first.
func (s *Server) history(c Call) Answer {
	a, f := readArguments("history", c.Arguments, "name", "limit", "before", "version")
	if f != nil {
		return failed(f)
	}
	name, f := a.toolNamed()
	if f != nil {
		return failed(f)
	}
	if version, ok, f := a.count("version", math.MaxInt32); ok || f != nil {
		if f != nil {
			return failed(f)
		}
		return s.difference(name, int(version), c.Tools)
	}
	limit, given, f := a.count("limit", mostVersions)
	if f != nil {
		return failed(f)
	}
	if !given {
		limit = defaultVersions
	}
	before, _, f := a.number("before")
	if f != nil {
		return failed(f)
	}
	// One more than is shown says whether the oldest one's description is new.
	changes, more, err := s.tools.History(name, before, int(limit)+1)
	if err != nil {
		s.log.Error("reading a tool's history", "tool", name, "error", err)
		return failed(&fault.Fault{Kind: fault.Internal, Message: "the tool's history can't be read", Hint: "Tell the operator.", Cause: err})
	}
	if len(changes) == 0 && before == 0 {
		return failed(noTool(name, c.Tools))
	}
	counted := s.secretive() != nil
	rows, n := []byte{'['}, 0
	for ; n < min(len(changes), int(limit)); n++ {
		var older *registry.Change
		if n+1 < len(changes) {
			older = &changes[n+1]
		}
		changes[n].Description = s.words(changes[n].Description, changes[n].MadeUnder)
		row := versionRow(&changes[n], older, counted)
		if n > 0 {
			if len(rows)+len(row) > s.limits.Result {
				break
			}
			rows = append(rows, ',')
		}
		rows = append(rows, row...)
	}
	o := begin().text("name", name).raw("versions", append(rows, ']'))
	if (n < len(changes) || more) && !counted {
		args := begin().text("name", name).number("before", changes[n-1].Seq)
		if given {
			args = args.number("limit", limit)
		}
		o = o.raw("next", begin().text("name", "history").raw("arguments", args.end()).end())
	}
	return succeeded(o)
}

// difference is how one version of a tool became the current one; how the one before
// became it, where it is that. Of a retired tool the newest counts as the current one.
func (s *Server) difference(name string, version int, tools *registry.Snapshot) Answer {
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
			return failed(s.noVersion(name, v, err, tools))
		}
	}
	o := begin().text("name", name).number("from", uint64(from)).number("to", uint64(to)).
		text("diff", firstOf(registry.Diff(both[0], both[1]), mostDescribed))
	if from != to {
		o = o.raw("next", bringing(name, from))
	}
	return succeeded(o)
}

// bringing is the call that makes a version of a tool anew.
func bringing(name string, version int) object {
	return begin().text("name", "evolve").raw("arguments", begin().text("name", name).number("from_version", uint64(version)).end()).end()
}

// versionRow is a change as a model sees it. What it has in common with the one
// before it isn't told twice. counted is set where the numbers of events are a sign of what it may not see.
func versionRow(c, older *registry.Change, counted bool) []byte {
	o := begin().
		number("version", uint64(c.Version)).
		text("kind", changeWord(c.Kind)).
		text("time", instant(c.Time))
	if !counted {
		o = o.number("seq", c.Seq)
	}
	if c.Err != nil {
		return o.text("error", "this entry can't be read").end()
	}
	if c.Kind == registry.Retired {
		return o.end()
	}
	if c.Kind == registry.RolledBack {
		o = o.number("from", uint64(c.From))
	}
	o = o.text("hash", c.Hash).number("bytes", uint64(len(c.Code))).raw("capabilities", encodeTexts(c.Capabilities))
	if len(c.Examples) > 0 {
		o = o.number("examples", uint64(len(c.Examples)))
	}
	if c.Description != "" && (older == nil || older.Kind == registry.Retired || older.Description != c.Description) {
		o = o.text("description", excerptOf([]byte(c.Description), mostShown))
	}
	return o.end()
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
