package mcpserver

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A walk through a recorded run comes, forwards and backwards, to the effects and to the
// end that the machine wrote down.
func TestWalksAreAsRecorded(t *testing.T) {
	runs := 40
	if os.Getenv("PIF_FULL") != "" {
		runs = 300
	}
	w := newRecordedWorld(t, 42)
	w.evolveGenerated()
	effects, ends := 0, map[string]int{}
	for i := range runs {
		id, was, begun := w.generated(i)
		if !begun {
			continue
		}
		rec := w.record(id)
		var rounds []step.Round
		Replay(t.Context(), ReplayOptions{Replay: run.NewReplay(rec, false), Tools: w.at(rec.AsOf), Walked: &rounds})
		e, end := w.walk(rec, rounds, was)
		effects += e
		ends[end]++
	}
	t.Logf("%d effects; ends: %v", effects, ends)
	if effects < 2*runs || len(ends) < 6 {
		t.Errorf("these runs show too little: %d effects, ends %v", effects, ends)
	}
}

// A recordedEffect is a request as the journal has it.
type recordedEffect struct {
	N           int
	Op, In, At  string
	Branch      string `json:"-"`
	Asked, Args json.RawMessage
}

// asked reports whether an argument is the one that is on record: as it was given, as it
// is performed, by its digest, or as too large.
func (e *recordedEffect) asked(q *step.Request) bool {
	if e.Args == nil {
		return q.Size > 2000 // only its size is on record
	}
	args, err := journal.AppendValue(nil, q.Arg, 1<<30)
	given := e.Args
	if e.Asked != nil {
		given = e.Asked
	}
	var named map[string]json.RawMessage
	if json.Unmarshal(given, &named) == nil && len(named) == 1 {
		for _, v := range named {
			if string(v) == string(args) {
				return true
			}
		}
	}
	return err == nil && (string(given) == string(args) || strings.Contains(string(given), fmt.Sprintf("%x", sha256.Sum256(args))))
}

// walk goes through a run and holds it to its record.
func (w *recordedWorld) walk(rec *run.Record, rounds []step.Round, was wire.Answer) (effects int, end string) {
	t := w.t
	t.Helper()
	const most = 3000
	walk := step.New(rounds, most)
	var points []step.Point
	if err := walk.Each(t.Context(), func(p *step.Point) bool {
		points = append(points, *p)
		return true
	}); err != nil || len(points) == 0 {
		t.Fatalf("run %s: %d points: %v", rec.ID, len(points), err)
	}
	events, _, err := w.store.Read(journal.Query{Run: rec.ID})
	if err != nil {
		t.Fatal(err)
	}
	var asked []recordedEffect
	for i := range events {
		if k := events[i].Kind; k == journal.EffectRequested || k == journal.EffectDenied {
			var e recordedEffect
			if err := json.Unmarshal(events[i].Data, &e); err != nil {
				t.Fatal(err)
			}
			if e.Branch = events[i].Branch; e.Op != "call" {
				asked = append(asked, e)
			}
		}
	}
	slices.SortFunc(asked, func(a, b recordedEffect) int { return a.N - b.N })
	last := points[len(points)-1]
	for i := range points {
		p := &points[i]
		if p.N != uint64(i) || i > 0 && (p.Steps < points[i-1].Steps || p.Round < points[i-1].Round) {
			t.Fatalf("run %s: point %d is %+v", rec.ID, i, p.View())
		}
		if p.Kind != step.Effect {
			continue
		}
		if effects == len(asked) {
			t.Fatalf("run %s: it asks for %s, which isn't on record, after %d steps: %s; %+v", rec.ID, p.View().Asked, p.Steps, mustJSON(last.View()), rec.End)
		}
		e, q := asked[effects], p.Request
		effects++
		place := p.View().Place.Text()
		if e.Op != q.Op || e.At != string(q.At) || e.In != q.Where || e.Branch != q.Branch || !e.asked(q) || place != e.In+" "+cmp.Or(e.At, "/") {
			t.Errorf("run %s: the effect %s at %s was recorded as %.300s", rec.ID, p.View().Asked, place, mustJSON(e))
		}
	}
	switch e := rec.End; {
	case last.Kind == step.Limit:
		end = "limit"
	case last.Kind != step.End || effects != len(asked):
		t.Errorf("run %s: the walk ends with %+v after %d effects of %d", rec.ID, last.View(), effects, len(asked))
	case last.Steps != e.Steps && !outOf(&last, rounds, e.Steps) || last.Round+1 != max(1, e.Rounds):
		t.Errorf("run %s: the walk ends after %d steps, round %d, with %s; recorded are %d, %d, %v", rec.ID, last.Steps, last.Round, mustJSON(last.View()), e.Steps, e.Rounds, e.Fault)
	default:
		v, f := last.Value()
		end = "done"
		switch {
		case (f == nil) != (e.Fault == nil) || f != nil && (f.Kind != e.Fault.Kind || !strings.HasPrefix(e.Fault.Message, f.Message[:min(200, len(f.Message))])):
			t.Errorf("run %s: the walk fails with %.200v, recorded is %.200v", rec.ID, f, e.Fault)
		case f != nil:
			end = string(f.Kind)
		case v == nil || string(v.Type()) != e.Type:
			t.Errorf("run %s: the walk gives %v, recorded is %s", rec.ID, v, e.Type)
		case v.Type() != value.TypeContinuation && last.Result.Total == e.Result.Bytes && string(last.Result.JSON) != was.Text:
			t.Errorf("run %s: the walk gives %s, the run %s", rec.ID, last.Result.JSON, was.Text)
		}
	}
	w.walkBothWays(rec.ID, step.New(rounds, most), len(points))
	return effects, end
}

// outOf reports whether a round's budget that isn't of steps was used up: the machine
// counts all its steps as used then.
func outOf(last *step.Point, rounds []step.Round, recorded uint64) bool {
	_, f := last.Value()
	r := rounds[len(rounds)-1]
	return f != nil && f.Kind == fault.OutOfFuel && last.Steps < recorded && recorded == r.Before+r.Budgets.Steps
}

// walkBothWays goes through all points forth, back, and to some from elsewhere, and
// compares all that is shown of them.
func (w *recordedWorld) walkBothWays(id string, walk *step.Walk, points int) {
	t, ctx := w.t, w.t.Context()
	t.Helper()
	forth := make([]string, 0, points)
	at := func(p *step.Point, err error) string {
		if err != nil {
			t.Fatalf("run %s after %d of %d points: %v", id, len(forth), points, err)
		}
		v := p.View()
		if v.Kind != step.End && v.Kind != step.Limit && v.Value == "" && v.Failure == "" && v.Branch == "" && points < 3000 {
			ends := w.record(id).End.Fault
			if ends == nil || ends.Kind.Catchable() && ends.Kind != fault.OutcomeUnknown {
				t.Errorf("run %s: nothing comes of %s", id, mustJSON(v))
			}
		}
		return mustJSON(v)
	}
	forth = append(forth, at(walk.At(ctx, 0)))
	for len(forth) < points {
		forth = append(forth, at(walk.Next(ctx, uint64(len(forth)-1), step.Any)))
	}
	for n := points - 2; n >= 0; n-- {
		if back := at(walk.Previous(ctx, uint64(n+1), step.Any)); back != forth[n] {
			t.Fatalf("run %s: point %d is\n%s\nand on the way back\n%s", id, n, forth[n], back)
		}
	}
	for range 3 {
		n := w.dice.IntN(points)
		if again := at(walk.At(ctx, uint64(n))); again != forth[n] {
			t.Fatalf("run %s: point %d is\n%s\nand from elsewhere\n%s", id, n, forth[n], again)
		}
	}
	sum, err := walk.Summary(ctx)
	if err != nil || sum.Points != uint64(points) || sum.Whole && sum.Profile.Root.Total() != sum.Steps {
		t.Errorf("run %s: %d points of %d, the profile has %d steps of %d: %v", id, sum.Points, points, sum.Profile.Root.Total(), sum.Steps, err)
	}
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
