package run

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// What a [Verdict] can be.
const (
	// Identical: the whole answer is, byte for byte, what was recorded.
	Identical = "identical"
	// Same: other code, or the same under other rules of counting steps, asked for
	// the same in the same order, and gave the same.
	Same = "same"
	// Different: a request, or the answer, is not what was recorded.
	Different = "different"
	// Incomplete: the record ends before the run does; up to there it was the same.
	Incomplete = "incomplete"
	// Impossible: what is on record isn't enough to do it again.
	Impossible = "impossible"
	// Interrupted: the one who asked for the replay gave up.
	Interrupted = "interrupted"
)

// A Verdict is what a replay found.
type Verdict struct {
	Run     string `json:"run"`
	Verdict string `json:"verdict"`
	// Text says it in a sentence.
	Text string `json:"text"`
	// Same is how many requests were as recorded, of so many on record.
	Same     int `json:"same"`
	Recorded int `json:"recorded"`
	// Steps is what the replayed run took.
	Steps uint64 `json:"steps"`
	// Memory is the most bytes that it held at once; see [core.Machine.Memory].
	Memory int64 `json:"memory"`
	// Difference is the first request that differs; nil: none does.
	Difference *Difference `json:"difference,omitempty"`
	// Notes are what one should know besides.
	Notes []string `json:"notes,omitempty"`
}

// OK reports whether nothing differs and nothing is missing.
func (v *Verdict) OK() bool { return v.Verdict == Identical || v.Verdict == Same }

// NoReplay is the verdict where there was nothing to go by.
func NoReplay(id string, err error) Verdict {
	return Verdict{Run: id, Verdict: Impossible, Text: err.Error()}
}

// Verdict is what was found, after the call was done again. f is what the call
// failed of before its run began; nil: it began.
func (p *Replay) Verdict(f *fault.Fault) Verdict {
	rec := p.rec
	v := Verdict{Run: rec.ID, Same: p.same, Recorded: len(rec.decisions), Difference: p.diff}
	if rec.Semantics != core.Semantics {
		v.note("it was recorded under version %d of what programs mean, and this program has version %d", rec.Semantics, core.Semantics)
	}
	if e := rec.End; e != nil && e.Unrecorded > 0 {
		v.note("the journal didn't take %d of its denials", e.Unrecorded)
	}
	if p.got != nil {
		v.Steps = p.got.Steps
	}
	switch {
	case p.unasked:
		v.say(Interrupted, "it was interrupted after %d requests", p.same)
	case p.broken != nil:
		v.say(Impossible, "%v", p.broken)
	case !p.begun && f != nil:
		v.say(Impossible, "the call fails before it runs: %s", firstLine(f.Error()))
	case p.got == nil:
		v.say(Impossible, "the call began no run that ended")
	case p.diff != nil:
		v.say(Different, "%s", p.diff)
	case p.other:
		p.judgeOther(&v)
	default:
		p.judge(&v)
	}
	return v
}

func (v *Verdict) say(verdict, format string, args ...any) {
	v.Verdict, v.Text = verdict, fmt.Sprintf(format, args...)
}

func (v *Verdict) note(format string, args ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
}

// judge compares the end of a run of the same code.
func (p *Replay) judge(v *Verdict) {
	rec, e, g := p.rec, p.rec.End, p.got
	requests := count(p.same, "request")
	why := "the server ended, or the run is under way"
	switch {
	case rec.planned:
		why = "what it planned isn't done, or not all of it"
	case rec.task:
		why = "a task that isn't done yet, as 'mcp-pif tasks list' shows; it goes on with a server of its profile"
	}
	if p.over {
		v.say(Incomplete, "the record ends after %s, all the same: %s", requests, why)
		return
	}
	if e == nil {
		v.say(Incomplete, "the end is not on record: %s; up to there, %s, all was the same, and this is what it comes to", why, requests)
		return
	}
	switch differs := p.differences(); {
	case len(differs) > 0 && rec.recounted() && g.Fault != nil && g.Fault.Kind == fault.OutOfFuel:
		v.say(Incomplete, "up to there, %s, all was the same, and its steps are used up: they were counted under version %d of what programs mean, and some work takes more under version %d", requests, rec.Semantics, core.Semantics)
	case len(differs) > 0 && rec.recounted() && p.outcome() == "" && e.Rounds == g.Rounds && e.Effects == g.effects:
		v.say(Same, "the same: %s, and the result; it took %d steps, and %d were recorded under version %d of what programs mean", requests, g.Steps, e.Steps, rec.Semantics)
	case len(differs) > 0:
		v.say(Different, "%s", strings.Join(differs, "; "))
	case p.overstated():
		v.say(Same, "the same: %s, and the error; it took %d steps, and all %d were recorded as used, which were not", requests, g.Steps, e.Steps)
	case e.Answer == nil:
		v.say(Incomplete, "no answer is on record; up to there, %s, all was the same", requests)
	case *e.Answer != g.Answer && rec.recounted():
		v.say(Same, "the same: %s, and the result or the kind of error; the answer was worded under version %d of what programs mean", requests, rec.Semantics)
	case *e.Answer != g.Answer:
		v.say(Different, "result, steps and error are the same, and the notes or the next call of the answer differ")
	case e.external():
		v.say(Identical, "identical up to its end by %s after %s and %s", e.Fault.Kind, count(int(e.Steps), "step"), requests)
	default:
		v.say(Identical, "identical: %s, %s", count(int(e.Steps), "step"), requests)
	}
}

// recounted reports whether a run was recorded when steps may have been counted in
// another way.
func (r *Record) recounted() bool { return r.Semantics != core.Semantics }

// differences is in what the end differs from the recorded one.
func (p *Replay) differences() (list []string) {
	e, g := p.rec.End, p.got
	differs := func(what string, recorded, now any) {
		if recorded != now {
			list = append(list, fmt.Sprintf("%s: %v were recorded, and it is %v", what, recorded, now))
		}
	}
	if what := p.outcome(); what != "" {
		list = append(list, what)
	}
	if !p.overstated() {
		differs("steps", e.Steps, g.Steps)
	}
	differs("rounds", e.Rounds, g.Rounds)
	differs("effects and calls", e.Effects, g.effects)
	return list
}

// overstated reports whether the record has all steps as used of a run that the budget of effects or of their outcomes
// ended, as such ends were recorded once.
func (p *Replay) overstated() bool {
	e, g := p.rec.End, p.got
	return g.Fault != nil && g.Fault.Kind == fault.OutOfFuel && e.Steps == p.steps && g.Steps < e.Steps && p.outcome() == ""
}

// outcome is in what the result, or the error, differs from the recorded one; "":
// in nothing that is on record of it.
func (p *Replay) outcome() string {
	e, g := p.rec.End, p.got
	show := func(f *fault.Fault, typ string, d Digest) string {
		if f != nil {
			return fmt.Sprintf("%s (%s)", f.Kind, firstLine(f.Message))
		}
		return fmt.Sprintf("%s of %s with the hash %.12s", typ, count(int(d.Bytes), "byte"), d.SHA256)
	}
	same := (e.Fault == nil) == (g.Fault == nil)
	switch {
	case same && e.Fault != nil:
		same = e.Fault.Kind == g.Fault.Kind && (e.Fault.Message == g.Fault.Message || p.rec.recounted())
	case same:
		same = e.Type == g.Type && e.Result == g.result
	}
	if same {
		return ""
	}
	return fmt.Sprintf("the result: %s was recorded, and it is %s", show(e.Fault, e.Type, e.Result), show(g.Fault, g.Type, g.result))
}

// judgeOther compares the end of a run of other code.
func (p *Replay) judgeOther(v *Verdict) {
	requests := count(p.same, "request")
	if p.next < len(p.rec.decisions) && !p.over {
		d := p.rec.decisions[p.next]
		p.differs(d.n, "a request fewer", d.shown(), nil)
		v.Difference = p.diff
		v.say(Different, "%s", p.diff)
		if f := p.got.Fault; f != nil {
			v.Text += "; it failed before: " + firstLine(f.Error())
		}
		return
	}
	e := p.rec.End
	switch {
	case p.over || e == nil || e.external():
		v.say(Incomplete, "the record ends after %s, all the same", requests)
	case p.outcome() != "":
		v.say(Different, "%s, all the same; %s", requests, p.outcome())
	default:
		v.say(Same, "the same: %s, and the result", requests)
		if e.Steps != p.got.Steps {
			v.note("it took %d steps, and %d were recorded", p.got.Steps, e.Steps)
		}
	}
}

// String says in what a request differs.
func (d *Difference) String() string {
	switch {
	case d.Recorded == nil:
		return fmt.Sprintf("request %d: no more was recorded, and it asked for %s", d.N, d.Asked)
	case d.Asked == nil:
		return fmt.Sprintf("request %d: %s was recorded, and it ended without asking for that", d.N, d.Recorded)
	}
	return fmt.Sprintf("request %d differs (%s): %s was recorded, and it asked for %s", d.N, d.What, d.Recorded, d.Asked)
}

// mostArgs is how much of a request's arguments a sentence has.
const mostArgs = 300

// String is a request as a person reads it.
func (a *Asked) String() string {
	var b strings.Builder
	b.WriteString(a.Op)
	if a.Of != "" {
		fmt.Fprintf(&b, " in %q", a.Of)
	}
	switch {
	case len(a.Args) > mostArgs:
		fmt.Fprintf(&b, " %s…", display.Prefix(string(a.Args), mostArgs))
	case a.Args != nil:
		fmt.Fprintf(&b, " %s", a.Args)
	case a.Digest != nil:
		fmt.Fprintf(&b, " (%d bytes with the hash %.12s)", a.Digest.Bytes, a.Digest.SHA256)
	}
	if a.In != "" || a.At != "" {
		fmt.Fprintf(&b, " at %s %s", a.In, cmp.Or(a.At, "/"))
	}
	if a.Branch != "" {
		fmt.Fprintf(&b, " in branch %s", a.Branch)
	}
	return b.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
