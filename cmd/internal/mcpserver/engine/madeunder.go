package engine

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// What a model writes after it was shown something of a source comes from there, too: code, descriptions
// and examples of a tool keep that, and whoever is shown them is shown something of it.

// words is a text of a tool's that lists show, of a version that was made under labels: one that this model
// wasn't shown anything of is left to describe.
func (s *Engine) Words(text string, madeUnder []string) string {
	if s.Unseen(madeUnder) {
		return "Its writer had been shown what came from " + conjoin(madeUnder) + "; describe shows it, and from then on you have been."
	}
	return text
}

// Unseen reports whether a version was made under labels of the policy that this model wasn't shown anything of.
func (s *Engine) Unseen(madeUnder []string) bool {
	if len(madeUnder) == 0 || s.broker.Flow() == nil || s.broker.Flow().IgnoreSession {
		return false
	}
	now, err := s.broker.Shown()
	return err != nil || slices.ContainsFunc(madeUnder, func(name string) bool {
		return s.broker.Flow().Known([]string{name}) != 0 && !slices.Contains(now, name)
	})
}

// shape is a schema that lists show, of a version that was made under labels: without texts where they are left to
// describe. Names of members stay, as names of tools do.
func (s *Engine) Shape(schema json.RawMessage, madeUnder []string) json.RawMessage {
	var v any
	if !s.Unseen(madeUnder) || json.Unmarshal(schema, &v) != nil {
		return schema
	}
	var bare func(v any, names bool)
	bare = func(v any, names bool) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				if !names && slices.Contains(schemaTexts, key) {
					delete(v, key)
					continue
				}
				bare(inner, !names && (key == "properties" || key == "$defs"))
			}
		case []any:
			for _, inner := range v {
				bare(inner, false)
			}
		}
	}
	bare(v, false)
	return wire.Encode(v)
}

// schemaTexts is the keywords of a schema that hold what its writer wants to say.
var schemaTexts = slices.Concat(check.Annotations, []string{"default", "examples", "enum", "const", "pattern"})

// Tell records that the model is shown all of some tools, before it is. With a fault it must not be.
func (s *Engine) Tell(tools ...*registry.Tool) *fault.Fault {
	var under []string
	for _, t := range tools {
		under = append(under, t.MadeUnder...)
	}
	err := s.broker.ShowNames(under, "")
	if err == nil {
		return nil
	}
	s.log.Error("recording that tools are shown that were made under labels", "error", err)
	return &fault.Fault{Kind: fault.Internal, Message: "it couldn't be recorded that you are shown a tool whose writer had been shown what has a label", Hint: "Tell the user.", Cause: err}
}

// tellMade is [Engine.Tell] of versions that were just made, which may have words of those before them.
func (s *Engine) tellMade(made ...*registry.Tool) *fault.Fault {
	f := s.Tell(made...)
	if f != nil {
		f.Message += "; what you evolved is made, and stays"
	}
	return f
}

// tellTried is [Engine.Tell] of how a version does in its examples, which is of what that is bound to as well.
func (s *Engine) tellTried(t *registry.Tool) *fault.Fault {
	if t == nil || s.broker.Flow() == nil {
		return nil
	}
	return s.Tell(boundTools(t)...)
}

// boundTools is all that a version is bound to.
func boundTools(t *registry.Tool) (all []*registry.Tool) {
	for todo := []*registry.Tool{t}; len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		for _, b := range next.Bound {
			if !slices.Contains(all, b) && b != t {
				all, todo = append(all, b), append(todo, b)
			}
		}
	}
	return all
}

// secretive is why the model isn't shown the record: how much there is of it tells of what may not be shown.
func (s *Engine) Secretive() *fault.Fault {
	if len(s.broker.Flow().Shown()) == 0 {
		return nil
	}
	return &fault.Fault{Kind: fault.Denied, Message: "the journal isn't shown to you: there are rules about what you may see, and it tells of every run", Hint: "The user sees it with 'mcp-pif journal'."}
}

// redactedMembers is what of a run's events tells of data.
var redactedMembers = []string{"args", "args_blob", "args_hash", "args_measured", "asked", "asked_blob", "asked_hash", "value", "value_blob", "value_hash", "error",
	"input", "inputs", "read", "shown", "key", "result", "type", "steps", "rounds", "effects", "answer", "stopped", "call", "code", "from", "content", "tells"}

// sealing returns which runs might have their results sealed when they were done, where no rules of now keep their events
// from the model: what is sealed stays that.
func (s *Engine) sealing() func(run string) bool {
	sealed, _, err := s.broker.Journal().Read(journal.Query{Kind: journal.ResultSealed, Limit: 1})
	if err == nil && len(sealed) == 0 {
		return func(string) bool { return false }
	}
	known := map[string]bool{"": false}
	return func(id string) bool {
		is, ok := known[id]
		if !ok {
			begun, _, err := s.broker.Journal().Read(journal.Query{Run: id, Kind: journal.RunStarted, Limit: 1})
			is = err != nil || len(begun) == 0 || wire.MemberOf(begun[0].Data, "even") != nil
			if !is { // it may be sealed since it couldn't be recorded that it was shown
				end, err := run.EndEvent(s.broker.Journal(), id)
				is = err != nil || end != nil && wire.MemberOf(end.Data, "sealed") != nil
			}
			known[id] = is
		}
		return is
	}
}

// redacted is an event as a model may see it where there are rules about where data may flow, or were when its run was
// done: without data, which would come from nowhere.
func (s *Engine) redacted(e *journal.Event, sealing func(run string) bool) *journal.Event {
	p := s.broker.Flow()
	if e.Kind == journal.StoreTainted || e.Kind == journal.FlowCleared {
		return without(e, []string{"store", "taints", "moves"}) // paths of the host
	}
	if (p == nil || p.IgnoreSession && len(p.Shown()) == 0) && e.Kind != journal.ResultSealed && !sealing(e.Run) {
		return e
	}
	drop := redactedMembers
	switch e.Kind {
	case journal.RunStarted, journal.RunEnded, journal.RunLost, journal.EffectRequested, journal.EffectDenied, journal.EffectOutcome, journal.EffectAsked, journal.EffectAnswered,
		journal.FlowAsked, journal.FlowAnswered, journal.TaskCreated, journal.PlanMade:
	case journal.ToolRefused:
		drop = []string{"error", "declared"}
	case journal.ResultSealed:
		drop = []string{"value"}
	case journal.ToolEvolved, journal.ToolRolledBack:
		drop = []string{"source", "canonical", "examples", "input_schema", "facts", "description", "declared", "capabilities"}
	default:
		return e
	}
	return without(e, drop)
}

// without is an event without some members of its data.
func without(e *journal.Event, drop []string) *journal.Event {
	members, _ := wire.Split(e.Data)
	o := wire.Begin()
	for _, m := range members {
		if !slices.Contains(drop, m.Name) {
			o = o.Raw(m.Name, m.Value)
		}
	}
	r := *e
	r.Data = []byte(o.End())
	return &r
}

func conjoin(words []string) string { return strings.Join(words, " or ") }
