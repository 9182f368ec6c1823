package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A performer is a handler that is a function.
type performer func(a run.Act) value.Value

func (performer) Prepare(*caps.Grant) {}

func (p performer) Perform(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	return p(a), 10, nil
}

// toyOf is the toy whose get answers what is of a type; "": it says none.
func toyOf(t *testing.T, notation string) *caps.Manifest {
	t.Helper()
	m := *toy
	m.Operations = slices.Clone(toy.Operations)
	if notation != "" {
		var err error
		if m.Operations[0].Type, err = check.ParseAnswer(notation); err != nil {
			t.Fatal(err)
		}
	}
	return &m
}

// TestReplayAnswers: a run whose answer depended on what operations answer is done
// again the same, without a plugin and whatever that says now.
func TestReplayAnswers(t *testing.T) {
	for _, c := range []struct{ typ, arguments, want string }{
		{"int", `{"input":"42"}`, "42"},      // read as the number that it has to be
		{"string", `{"input":"42"}`, `"42"`}, // and as the string
		{"", `{"input":"42"}`, ""},
		{"int", `{"input":7.0}`, "9"},
	} {
		var answer value.Value = value.NewInt(9)
		if c.typ == "string" {
			answer = value.Str("1")
		}
		s, store := answering(t, toyOf(t, c.typ), performer(func(run.Act) value.Value { return answer }))
		must(t, s, "evolve", `{"name":"larger","code":"x => max([x, !toy.get(\"notes/a\")])","capabilities":["toy.get:notes/**"]}`)
		must(t, s, "evolve", `{"name":"outer","code":"x => @larger(x)","capabilities":["call:larger"]}`)
		for _, tool := range []string{"larger", "outer"} {
			was := do(t, s, tool, c.arguments)
			if c.want != "" && was.Text != c.want {
				t.Errorf("%s by %s gives %s, expected %s", tool, c.typ, was.Text, c.want)
			}
			events, _, err := store.Read(journal.Query{Kind: journal.RunStarted, Limit: 1, Last: true})
			if err != nil || len(events) != 1 {
				t.Fatal(err)
			}
			if says := strings.Contains(string(events[0].Data), `"answers":{"toy.get":"`+c.typ+`"}`); says != (c.typ != "") {
				t.Errorf("%s by %s: the record is %s", tool, c.typ, events[0].Data)
			}
			rec, err := run.ReadRecord(store, events[0].Run)
			if err != nil {
				t.Fatal(err)
			}
			for _, now := range []*caps.Policy{nil, s.broker.Policy()} {
				tools, _, err := registry.Open(run.Log(store), now)
				if err != nil {
					t.Fatal(err)
				}
				then, err := tools.At(rec.AsOf)
				if err != nil {
					t.Fatal(err)
				}
				again, v := Replay(t.Context(), ReplayOptions{Replay: run.NewReplay(rec, false), Tools: then})
				if v.Verdict != run.Identical || again.Text != recorded(was).Text {
					t.Errorf("%s by %q %s gave %s, and again %s: %s", tool, c.typ, c.arguments, was.Text, again.Text, v.Text)
				}
			}
		}
	}
}

// TestExamplesHeld: an example's outcome is one that the operation can give.
func TestExamplesHeld(t *testing.T) {
	m := toyOf(t, "{n: int, of?: string}")
	s, _ := answering(t, m, performer(func(run.Act) value.Value { return value.Unit{} }))
	evolve := func(outcome string) wire.Answer {
		return do(t, s, "evolve", `{"name":"n","code":"k => (!toy.get(k)).n","capabilities":["toy.get:notes/**"],
			"examples":[{"input":"notes/a","expect":1,"effects":[{"op":"toy.get",`+outcome+`}]}]}`)
	}
	for _, outcome := range []string{`"value":{"n":1}`, `"value":{"n":1,"of":"x"}`} {
		if a := evolve(outcome); a.Fault != nil {
			t.Errorf("%s: %s", outcome, a.Text)
		}
	}
	for outcome, says := range map[string]string{
		`"value":{"n":1,"x":2}`:       "a record with a member that wasn't said",
		`"value":{"n":{"dec":"1.5"}}`: "n: dec where int was said",
		`"value":{"of":"x"}`:          "a record without n",
		`"value":{"n":1,"of":1}`:      "of: int where string was said",
		`"value":"it is no note"`:     "string where {n: int, of?: string} was said",
	} {
		a := evolve(outcome)
		if a.Fault == nil || a.Fault.Kind != fault.Refused || !strings.Contains(a.Text, says) || !strings.Contains(a.Text, "toy.get gives {n: int, of?: string}") {
			t.Errorf("%s: %s", outcome, a.Text)
		}
	}
	if a := evolve(`"error":"effect_failed"`); a.Fault == nil || !strings.Contains(a.Text, "effect_failed") {
		t.Errorf("a failure: %s", a.Text)
	}
}

// TestAnswersShown: the type stands where an operation is explained, and a tool's
// type and schema are made of it.
func TestAnswersShown(t *testing.T) {
	s, _ := answering(t, toyOf(t, "{n: int}"), performer(func(run.Act) value.Value { return value.Unit{} }))
	if a := must(t, s, "help", `{"name":"toy.get"}`); !strings.Contains(a.Text, "of the type {n: int}") {
		t.Errorf("help: %s", a.Text)
	}
	if got := string(s.capabilities()); !strings.Contains(got, "of the type {n: int}") {
		t.Errorf("pif://capabilities: %s", got)
	}
	a := must(t, s, "evolve", `{"name":"note","code":"k => !toy.get(k)","capabilities":["toy.get:notes/**"]}`)
	var made struct{ Type string }
	if err := json.Unmarshal(a.Structured, &made); err != nil || !strings.HasSuffix(made.Type, "->{toy.get} {n: int}") {
		t.Errorf("%+v, %v", made, err)
	}
	note, _ := s.tools.Snapshot().Get("note")
	if got := string(note.OutputSchema()); !strings.Contains(got, `"properties":{"n":{"type":"integer"}}`) || !strings.Contains(got, `"required":["n"]`) {
		t.Errorf("its schema is %s", got)
	}
	if a := must(t, s, "describe", `{"name":"note","detail":true}`); !strings.Contains(string(a.Structured), `"certificate":"checked"`) {
		t.Errorf("%s", a.Structured)
	}
}

// TestFilledIn: what a person fills in is a record of what they wrote, of the type that
// is said, whatever the form's fields are called.
func TestFilledIn(t *testing.T) {
	o := AskManifest().Operations[0]
	for content, want := range map[string]string{
		`{}`:                        "",
		`{"dec":"2.5"}`:             "dec string",
		`{"z":"42","a":1,"b":2.5}`:  "a int, b dec, z string",
		`{"pair":true,"quote":"x"}`: "pair bool, quote string",
	} {
		v, ok := filledIn(wire.Object(content))
		r, isRecord := v.(*value.Record)
		if !ok || !isRecord {
			t.Fatalf("%s is %v", content, v)
		}
		var got []string
		for _, f := range r.Fields {
			got = append(got, f.Key+" "+string(f.Value.Type()))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s is %v, expected %s", content, got, want)
		}
		answer := &value.Record{Fields: []value.Field{{Key: "action", Value: value.Str("accept")}, {Key: "content", Value: v}}}
		if why := o.Type.Misfit(answer); why != "" {
			t.Errorf("%s: %s", content, why)
		}
	}
}
