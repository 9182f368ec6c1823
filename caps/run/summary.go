package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
)

// How events are shown to a person, who is better served with a part of one that is damaged
// than with an error; record.go reads them for a replay.

// A Shown is what the data of events has that is shown.
type Shown struct {
	Tool         string
	Version      int
	From         []string
	Code         json.RawMessage
	Input        json.RawMessage
	Inputs       []json.RawMessage
	As           string `json:"input_as"`
	Rounds       int
	Op           string
	In, At       string
	Store        string
	Args         json.RawMessage
	Value        json.RawMessage
	Type         string
	Steps        uint64
	Memory       int64
	Stopped      string
	Result       *struct{ Bytes int64 }
	Error        *fault.Fault
	LookedUp     []Shown `json:"looked_up"`
	Request      uint64
	Dropped      uint64
	Declared     []string
	Grants       []string
	Capability   string
	Capabilities []string
	Question     string
	Answer       string
	Rule         int
	Used         bool
	Plan         string
	Yes          bool
	By           string
	Under        []string
	Entered      []string
	Sealed       string
	UnderWay     []string `json:"under_way"`
	Owner        string
	Schedule     string
	Message      string
	Action       string
	Content      string
	Reason       string
	Label        []string
	Bits         map[string]int
	Taints       map[string][]string
	Moves        map[string][]string
	Only         bool
	ArgsBlob     *journal.Reference `json:"args_blob"`
	ValueBlob    *journal.Reference `json:"value_blob"`
}

// ShowEvent reads the data of an event. What isn't as expected isn't shown.
func ShowEvent(e *journal.Event) (s Shown) {
	_ = json.Unmarshal(e.Data, &s)
	return s
}

// textOf is a string's text, or the JSON that a member is, for a person: with what can be read in place of its escapes.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return escaped.Compiled().ReplaceAllStringFunc(text, func(in string) string {
		var s string
		if json.Unmarshal([]byte(`"`+in+`"`), &s) != nil || strings.ContainsFunc(s, func(c rune) bool { return c == '"' || c == '\\' || !unicode.IsPrint(c) }) {
			return in
		}
		return s
	})
}

// escaped matches escapes in JSON, those of adjacent characters together.
var escaped = lazyregexp.New(`(?:\\u[0-9a-fA-F]{4})+|\\.`)

// Called is what was run: the tool and its version, or the code; "" for neither.
func (s *Shown) Called() string {
	if s.Version == 0 || s.Tool == "" {
		return cmp.Or(s.Tool, textOf(s.Code))
	}
	return fmt.Sprintf("%s@%d", s.Tool, s.Version)
}

func shownFailure(f *fault.Fault) string {
	if f == nil {
		return ""
	}
	return "✗ " + string(f.Kind) + ": " + display.Truncate(firstLine(f.Message), maxShownFailure)
}

const maxShownFailure = 300

// Words says what an event tells of.
func (s *Shown) Words(e *journal.Event) string {
	failed := shownFailure(s.Error)
	var parts []string
	switch e.Kind {
	case journal.ServerStarted, journal.PolicyGranted:
		parts = []string{"grants " + cmp.Or(strings.Join(s.Grants, " "), "nothing")}
	case journal.RunStarted:
		parts = []string{cmp.Or(s.Called(), "-"), (&Summary{Inputs: s.inputs()}).Input(", ")}
	case journal.EffectRequested, journal.EffectDenied:
		parts = []string{s.Op, string(s.Args), failed}
	case journal.EffectOutcome:
		parts = []string{cmp.Or(failed, string(s.Value))}
	case journal.EffectAsked: // a server's words are in quotes
		parts = []string{fmt.Sprintf("the server asked the user %q", s.Message), failed}
	case journal.EffectAnswered:
		parts = []string{s.Action, s.Content, s.Reason}
	case journal.RunLost:
		parts = []string{failed}
	case journal.RunEnded:
		parts = []string{s.gave(), count(int(s.Steps), "step")}
	case journal.ToolEvolved, journal.ToolRefused, journal.ToolRetired, journal.ToolRolledBack:
		parts = []string{s.Called(), strings.Join(s.Declared, " "), failed}
	case journal.TaskCreated, journal.TaskResumed, journal.TaskCancelled:
		for _, said := range []struct{ what, who string }{{"by schedule", s.Schedule}, {"done by", s.Owner}, {"by", s.By}} {
			if said.who != "" {
				parts = append(parts, said.what+" "+said.who)
			}
		}
	case journal.PolicyRevoked, journal.PolicyRestored:
		if parts = []string{s.Capability}; len(s.UnderWay) > 0 {
			parts = append(parts, "under way: "+strings.Join(s.UnderWay, "; "))
		}
	case journal.ConsentAsked:
		parts = []string{s.Called(), "asks for " + strings.Join(s.Capabilities, " "), s.Question}
	case journal.ConsentAnswered:
		parts = []string{s.Called(), s.Answer, "by " + s.By, s.Question}
	case journal.PlanMade, journal.PlanAnswered, journal.PlanStarted:
		parts = []string{PlanStage(e.Kind, s.Yes, s.By), s.Plan}
	case journal.FlowAsked:
		parts = []string{s.Op, string(s.Args), fmt.Sprintf("rule %d", s.Rule), s.Question}
	case journal.FlowAnswered:
		answer := "no"
		if s.Used {
			answer = "the yes is used"
		} else if s.Yes {
			answer = "yes"
		}
		parts = []string{s.Question, answer}
	case journal.FlowCleared:
		if parts = []string{"forgotten"}; s.Only {
			parts[0] = "only this was forgotten"
		}
		if len(s.Label) > 0 {
			parts = append(parts, "shown: "+strings.Join(s.Label, ", "))
		}
		for _, name := range slices.Sorted(maps.Keys(s.Bits)) {
			parts = append(parts, count(s.Bits[name], "bit")+" of "+name)
		}
		for _, store := range slices.Sorted(maps.Keys(s.Taints)) {
			parts = append(parts, store+" holds "+strings.Join(s.Taints[store], ", "))
		}
		for _, key := range slices.Sorted(maps.Keys(s.Moves)) {
			parts = append(parts, "run "+key+" moves between "+strings.Join(s.Moves[key], " and "))
		}
	case journal.SessionLabelled:
		parts = []string{"the model was shown data of " + strings.Join(s.Label, ", ")}
	case journal.StoreTainted:
		parts = []string{s.Store + " holds data of " + strings.Join(s.From, ", ")}
	case journal.ResultSealed:
		parts = []string{s.Sealed + " is sealed: it has data of " + strings.Join(s.Label, ", ")}
	case journal.Checkpoint:
		parts = []string{fmt.Sprintf("%d of the events up to %d were dropped", s.Dropped, e.Seq)}
	default:
		parts = []string{string(e.Data)}
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "  ")
}

// inputs is what a run was given, for each parameter.
func (s *Shown) inputs() []json.RawMessage {
	if s.Input != nil {
		return []json.RawMessage{s.Input}
	}
	return s.Inputs
}

// gave is the result that a run ended with.
func (s *Shown) gave() string {
	switch {
	case s.Error != nil:
		return shownFailure(s.Error)
	case s.Result != nil:
		return "✓ " + s.Type + ", " + count(int(s.Result.Bytes), "byte")
	}
	return "✓ " + s.Type
}

// A ShownEffect is a request of a run, with what came of it.
type ShownEffect struct {
	Seq        uint64
	Op, In, At string
	Branch     string
	Capability string
	Args       json.RawMessage
	Value      json.RawMessage
	Blob       int64 // bytes of arguments or outcome that are kept apart
	Failure    *fault.Fault
	Denied     bool
	Done       bool     // its outcome is on record
	Asked      []string // what a server asked the user meanwhile, and was answered
	Began      time.Time
	Took       time.Duration
}

// Place is where the program asked for it.
func (e *ShownEffect) Place() string { return strings.TrimSpace(e.In + " " + e.At) }

// State is how the effect stands, in a word.
func (e *ShownEffect) State() string {
	switch {
	case e.Denied:
		return "denied"
	case e.Failure != nil:
		return "failed"
	case !e.Done:
		return "running"
	}
	return "ok"
}

// Gave is what came of it, in words; "": that isn't on record.
func (e *ShownEffect) Gave() string {
	switch {
	case e.Failure != nil:
		return shownFailure(e.Failure)
	case e.Done:
		return "✓ " + string(e.Value)
	}
	return ""
}

// A Summary is a run by its events.
type Summary struct {
	ID      string
	Seq     uint64 // of its start; 0: that isn't among them
	Time    time.Time
	Tool    string
	Version int
	Code    string // of inline code
	Inputs  []json.RawMessage
	Budget  Shown // steps and memory
	Ended   bool
	Failure *fault.Fault
	Stopped string
	Type    string
	Bytes   int64 // of the result
	Steps   uint64
	Took    time.Duration
	Effects []ShownEffect
	Used    []Shown  // tools that it looked up
	Plan    string   // the last one; "": it wasn't planned
	Stage   string   // what became of that
	Under   []string // the labels of what the model had been shown when it asked for it
	Entered []string // those of all that came in
	Sealed  string   // the name that the model was given for what it gave; "": it was shown that
	Events  int
	// Result is what became of it, or of its task or plan, in words.
	Result string
}

// Input is what it was given, joined.
func (s *Summary) Input(between string) string {
	texts := make([]string, len(s.Inputs))
	for i, in := range s.Inputs {
		texts[i] = textOf(in)
	}
	return strings.Join(texts, between)
}

// Called is the tool or the code; see [Shown.Called].
func (s *Summary) Called() string { return s.Budget.Called() }

// Summarize is a run by its events, in their order.
func Summarize(events []journal.Event) (s Summary) {
	s.Events, s.Result = len(events), "running"
	at := map[uint64]int{}
	effect := func(request uint64) *ShownEffect {
		if n, ok := at[request]; ok {
			return &s.Effects[n]
		}
		return &ShownEffect{}
	}
	end := endOf(events)
	for i := range events {
		e := &events[i]
		d := ShowEvent(e)
		s.ID = e.Run
		switch e.Kind {
		case journal.RunStarted:
			s.Seq, s.Time, s.Tool, s.Version, s.Code, s.Inputs, s.Budget, s.Under = e.Seq, e.Time, d.Tool, d.Version, textOf(d.Code), d.inputs(), d, d.Under
		case journal.EffectRequested, journal.EffectDenied:
			x := ShownEffect{Seq: e.Seq, Op: d.Op, In: d.In, At: d.At, Branch: e.Branch, Capability: d.Capability, Args: d.Args, Began: e.Time, Failure: d.Error, Denied: e.Kind == journal.EffectDenied}
			if d.ArgsBlob != nil {
				x.Blob = d.ArgsBlob.Bytes
			}
			at[e.Seq] = len(s.Effects)
			s.Effects = append(s.Effects, x)
		case journal.EffectAsked, journal.EffectAnswered:
			x := effect(d.Request)
			x.Asked = append(x.Asked, d.Words(e))
		case journal.EffectOutcome:
			x := effect(d.Request)
			if x.Done { // the first counts
				break
			}
			x.Done, x.Value, x.Failure, x.Took = true, d.Value, d.Error, e.Time.Sub(x.Began)
			if d.ValueBlob != nil {
				x.Blob += d.ValueBlob.Bytes
			}
		case journal.TaskCreated:
			s.Result = "task, not done yet"
		case journal.TaskCancelled:
			s.Result = "cancelled"
		case journal.PlanMade, journal.PlanStarted, journal.PlanAnswered:
			s.Plan, s.Stage = d.Plan, PlanStage(e.Kind, d.Yes, d.By)
			s.Result = s.Stage
		case journal.RunLost:
			if !s.Ended {
				s.Ended, s.Failure, s.Result, s.Took = true, d.Error, d.gave(), e.Time.Sub(s.Time)
			}
		case journal.RunEnded:
			if e != end {
				break
			}
			s.Ended, s.Failure, s.Type, s.Steps, s.Took, s.Used, s.Stopped = true, d.Error, d.Type, d.Steps, e.Time.Sub(s.Time), d.LookedUp, d.Stopped
			if s.Entered, s.Sealed, s.Result = d.Entered, d.Sealed, d.gave(); d.Result != nil {
				s.Bytes = d.Result.Bytes
			}
		}
	}
	return s
}
