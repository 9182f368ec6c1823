package mcpserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// pagesOf is the numbers of the events that a call of journal gives with what it says
// to call next, and how many calls that took.
func pagesOf(t *testing.T, s *Server, arguments string) (seqs []uint64, calls int) {
	t.Helper()
	for arguments != "" {
		a := succeed(t, s, "journal", arguments)
		var page struct {
			Events []struct{ Seq uint64 }
			Next   struct{ Arguments json.RawMessage }
		}
		if err := json.Unmarshal(a.Structured, &page); err != nil {
			t.Fatal(a.Text, err)
		}
		for _, e := range page.Events {
			if slices.Contains(seqs, e.Seq) {
				t.Fatalf("%s: event %d comes twice", arguments, e.Seq)
			}
			seqs = append(seqs, e.Seq)
		}
		arguments = string(page.Next.Arguments)
		if calls++; calls > 1000 {
			t.Fatal("there is always another page")
		}
	}
	slices.Sort(seqs)
	return seqs, calls
}

// TestJournalOfTool: the effects of a tool are those of its runs and those it asked
// for in the runs of others, in pages of any size, from the newest or the oldest.
func TestJournalOfTool(t *testing.T) {
	w := newRecordedWorld(t, 1)
	s := w.server
	succeed(t, s, "evolve", `{"name":"inner","code":"k => try(!toy.get(k))","capabilities":["toy.get:notes/**"]}`)
	succeed(t, s, "evolve", `{"name":"outer","code":"k => (@inner(k), try(!toy.say(\"a\")))","capabilities":["call:inner","toy.get:notes/**"]}`)
	succeed(t, s, "evolve", `{"name":"pure","code":"k => k"}`)
	for i := range 12 {
		do(t, s, []string{"inner", "outer", "pure"}[i%3], `{"input":"notes/a"}`)
		do(t, s, "run", `{"code":"n => n","input":1}`)
	}
	// What is expected is worked out from the whole record.
	all, _, err := w.store.Read(journal.Query{})
	must.NoError(t, err)
	ofRun, of := map[string]string{}, map[uint64]string{}
	want := map[string][]uint64{}
	for _, e := range all {
		var d struct {
			Tool    string
			Request uint64
		}
		must.NoError(t, json.Unmarshal(e.Data, &d))
		if e.Kind == journal.RunStarted {
			ofRun[e.Run] = d.Tool
		}
		asker := d.Tool
		if d.Request > 0 {
			asker = of[d.Request]
		}
		of[e.Seq] = asker
		group, _, _ := strings.Cut(string(e.Kind), ".")
		for _, tool := range []string{"inner", "outer", "pure"} {
			if e.Run != "" && (ofRun[e.Run] == tool || group == "effect" && asker == tool) {
				want[tool+" "+group] = append(want[tool+" "+group], e.Seq)
			}
		}
	}
	if len(want["inner effect"]) < 12 || len(want["outer effect"]) <= 8 || len(want["pure run"]) != 8 || want["pure effect"] != nil {
		t.Fatalf("the record is not what is to be tested: %v", want)
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		var tool, kind string
		fmt.Sscan(key, &tool, &kind)
		for _, more := range []string{"", `,"limit":1`, `,"limit":3`, `,"after":0`, `,"after":0,"limit":2`} {
			got, calls := pagesOf(t, s, fmt.Sprintf(`{"tool":%q,"kind":%q%s}`, tool, kind, more))
			if !slices.Equal(got, want[key]) {
				t.Errorf("%s%s: %v, expected %v", key, more, got, want[key])
			}
			if more == "" && calls != 1 {
				t.Errorf("%s: %d pages", key, calls)
			}
		}
	}
	if got, _ := pagesOf(t, s, `{"tool":"pure","kind":"effect"}`); got != nil {
		t.Errorf("what is pure asked for %v", got)
	}
	// Without a kind it is what became of the tool, as before.
	if got, _ := pagesOf(t, s, `{"tool":"inner"}`); len(got) != 1 {
		t.Errorf("inner was evolved once: %v", got)
	}
}

// TestJournalOfToolBounded: where a tool's runs are few among very many an answer
// looks at a part of them, and the next goes on.
func TestJournalOfToolBounded(t *testing.T) {
	w := newRecordedWorld(t, 1)
	s := w.server
	succeed(t, s, "evolve", `{"name":"first","code":"n => n"}`)
	succeed(t, s, "evolve", `{"name":"other","code":"n => n"}`)
	succeed(t, s, "run", `{"tool":"first","input":1}`)
	others := func(n int) {
		t.Helper()
		wait := func() (uint64, error) { return 0, nil }
		for i := range n {
			wait = w.store.AppendLater(journal.Noted, journal.EffectOutcome, "r_other", "", fmt.Appendf(nil, `{"request":%d}`, 100+i))
		}
		_, err := wait()
		must.NoError(t, err)
	}
	others(1000) // each is looked up
	if got, calls := pagesOf(t, s, `{"tool":"first","kind":"run.started"}`); len(got) != 1 || calls != 1 {
		t.Errorf("%d events in %d calls, expected 1 in 1", len(got), calls)
	}
	if got, calls := pagesOf(t, s, `{"tool":"first","kind":"effect"}`); got != nil || calls != 1 {
		t.Errorf("%d events in %d calls, expected none in 1", len(got), calls)
	}
	others(100_000 / 11)
	a := succeed(t, s, "journal", `{"tool":"first","kind":"effect"}`)
	if !strings.HasPrefix(a.Text, `{"note":"only the events `) || !strings.Contains(a.Text, `were looked at, and none is what you ask for: the call in next looks at those before them`) {
		t.Errorf("%s", a.Text)
	}
	if got, calls := pagesOf(t, s, field(t, a, "next/arguments")); got != nil || calls != 1 {
		t.Errorf("%d events in %d calls, expected none in 1", len(got), calls)
	}
}

// TestJournalChain: the events of an answer can be checked one against the other by a
// program; whoever reads the text is spared that.
func TestJournalChain(t *testing.T) {
	s := newRecordedWorld(t, 1).server
	for range 3 {
		succeed(t, s, "run", `{"code":"1 + 1"}`)
	}
	a := succeed(t, s, "journal", `{"limit":5}`)
	var page struct{ Events []journal.Event }
	must.NoError(t, json.Unmarshal(a.Structured, &page))
	if len(page.Events) != 5 {
		t.Fatalf("%d events: %s", len(page.Events), a.Structured)
	}
	for i, e := range page.Events {
		if e.Hash == (journal.Hash{}) || i > 0 && (e.Prev != page.Events[i-1].Hash || e.Seq != page.Events[i-1].Seq+1) {
			t.Errorf("event %d doesn't follow the one before it: %s", e.Seq, a.Structured)
		}
	}
	if strings.Contains(a.Text, `"prev"`) || strings.Contains(a.Text, page.Events[0].Hash.String()) {
		t.Errorf("the text has the chain: %s", a.Text)
	}
	if !strings.Contains(a.Text, `"next"`) || !strings.Contains(string(a.Structured), `"next"`) {
		t.Errorf("next is in one alone: %s\n%s", a.Text, a.Structured)
	}
}

// TestPages: lists of ten thousand are whole, in order and the same each time, page
// by page; and what is evolved or retired between two pages makes nothing else
// appear twice or not at all.
func TestPages(t *testing.T) {
	n := must.Full(1_200, registry.MaxTools-100)
	s := New(Options{})
	var tools, prompts, published []string
	for i := range n {
		d := registry.Definition{Name: fmt.Sprintf("t%05d", i), Code: []byte("1")}
		switch {
		case i%2 == 1:
			d.As = registry.AsPrompt
			prompts = append(prompts, d.Name)
		case i%20 == 2:
			d.As = registry.AsResource
			published = append(published, wire.PublishedURI(d.Name))
		default:
			tools = append(tools, d.Name)
		}
		must.Succeed(t)(s.tools.Evolve(d, registry.Edit{}))
	}
	var uris []string
	for i := range n {
		uris = append(uris, wire.ToolURI(fmt.Sprintf("t%05d", i)))
	}
	inEras(t, func(t *testing.T, version string) {
		cs := speaking(t, s, version, nil)
		lists := map[string]struct {
			want []string
			page func(cursor string) (names []string, next string, err error)
		}{
			"tools": {append(wire.ToolNames(), tools...), func(cursor string) (names []string, next string, err error) {
				res, err := cs.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: cursor})
				if err != nil {
					return nil, "", err
				}
				for _, tool := range res.Tools {
					names = append(names, tool.Name)
					if tool.Title == "" || tool.Description == "" || tool.Annotations == nil || tool.Annotations.DestructiveHint == nil {
						t.Errorf("%s lacks something", tool.Name)
					}
				}
				if version == "2026-07-28" && (res.CacheScope != "private" || res.TTLMs != 0) {
					t.Errorf("tools: %+v", res.Cacheable)
				}
				return names, res.NextCursor, nil
			}},
			"resources": {append(published, uris...), func(cursor string) (names []string, next string, err error) {
				res, err := cs.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: cursor})
				if err != nil {
					return nil, "", err
				}
				for _, r := range res.Resources {
					if strings.HasPrefix(r.URI, wire.ToolURI("")) || strings.HasPrefix(r.URI, wire.PublishedURI("")) {
						names = append(names, r.URI)
					}
				}
				if version == "2026-07-28" && res.CacheScope != "private" {
					t.Errorf("resources: %+v", res.Cacheable)
				}
				return names, res.NextCursor, nil
			}},
			"prompts": {append([]string{"make_tool", "repair_tool", "review_capabilities", "port_function"}, prompts...), func(cursor string) (names []string, next string, err error) {
				res, err := cs.ListPrompts(t.Context(), &mcp.ListPromptsParams{Cursor: cursor})
				if err != nil {
					return nil, "", err
				}
				for _, p := range res.Prompts {
					names = append(names, p.Name)
				}
				if version == "2026-07-28" && (res.CacheScope != "private" || res.TTLMs != 0) {
					t.Errorf("prompts: %+v", res.Cacheable)
				}
				return names, res.NextCursor, nil
			}},
		}
		for name, list := range lists {
			all := func(between func()) (got []string) {
				cursor := ""
				for range 1 + n/100 {
					names, next, err := list.page(cursor)
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if got = append(got, names...); next == "" {
						return got
					}
					cursor = next
					if between != nil {
						between()
					}
				}
				t.Fatalf("%s: there is always more", name)
				return nil
			}
			if got := all(nil); !slices.Equal(got, list.want) {
				t.Errorf("%s: %d listed, expected %d", name, len(got), len(list.want))
			}
			i := 0
			got := all(func() {
				i++
				extra := registry.Definition{Name: fmt.Sprintf("extra%d", i), Code: []byte("1")} // before all others
				must.Succeed(t)(s.tools.Evolve(extra, registry.Edit{}))
			})
			for j := range i {
				must.Succeed(t)(s.tools.Retire(fmt.Sprintf("extra%d", j+1), registry.Edit{}))
			}
			if !slices.Equal(got, list.want) {
				t.Errorf("%s, changed meanwhile: %d listed, expected %d", name, len(got), len(list.want))
			}
			for _, cursor := range []string{"x", "%", base64.RawURLEncoding.EncodeToString([]byte("x")), strings.Repeat("a", 10_000), writeCursor(strings.Repeat("a", mostURI))} {
				if _, _, err := list.page(cursor); code(err) != -32602 {
					t.Errorf("%s takes the cursor %.20q: %v", name, cursor, err)
				}
			}
		}
		if version == "2026-07-28" {
			res, err := cs.ListResourceTemplates(t.Context(), nil)
			if err != nil || res.CacheScope != "public" || res.TTLMs == 0 {
				t.Errorf("templates: %+v %v", res, err)
			}
			read, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "pif://language"})
			if err != nil || read.CacheScope != "public" || read.TTLMs == 0 {
				t.Errorf("the language: %+v %v", read, err)
			}
			if read, err = cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "pif://tools/t00000"}); err != nil || read.CacheScope != "private" || read.TTLMs != 0 {
				t.Errorf("a tool: %+v %v", read, err)
			}
		}
	})
}

// TestProgressInEras: a long run tells how far it is, and ends when it is cancelled.
func TestProgressInEras(t *testing.T) {
	inEras(t, func(t *testing.T, version string) {
		var told atomic.Int64
		begun := make(chan struct{}, 100)
		s := New(Options{})
		cs := speaking(t, s, version, &mcp.ClientOptions{ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
			told.Add(1)
			select {
			case begun <- struct{}{}:
			default:
			}
		}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			select {
			case <-begun:
			case <-time.After(wait.Limit(t)):
			}
			cancel()
		}()
		params := &mcp.CallToolParams{Name: "run", Arguments: json.RawMessage(`{"code":` + omega + `,"steps":1000000000}`)}
		params.SetProgressToken("p")
		if _, err := cs.CallTool(ctx, params); err == nil {
			t.Error("a run that was cancelled has an answer")
		}
		if told.Load() == 0 {
			t.Error("nobody said how far it is")
		}
		wait.Until(t, "the run's end is on record", func() bool {
			events, _ := ask(t, cs, "journal", `{"kind":"run.ended"}`)
			return strings.Contains(events, `"cancelled"`)
		})
	})
}

// TestPagesAreKept: a page is made once until a tool changes, or what is granted.
func TestPagesAreKept(t *testing.T) {
	s := New(Options{})
	evolve := func(name string) {
		t.Helper()
		must.Succeed(t)(s.tools.Evolve(registry.Definition{Name: name, Code: []byte("1"), Description: "<b>"}, registry.Edit{}))
	}
	evolve("a")
	page := func(first bool, after string) *encodedPage { return s.fill(&mcp.ListToolsResult{}, first, after) }
	whole, rest := page(true, ""), page(false, "a")
	if page(true, "").made != whole.made || page(false, "a").made != rest.made || whole.made == rest.made {
		t.Error("a page is made again")
	}
	text, err := json.Marshal(whole)
	var read mcp.ListToolsResult
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if last := len(read.Tools) - 1; err != nil || read.Tools[last].Name != "a" || read.Tools[last].Description != "<b>" {
		t.Errorf("%s %v", text, err)
	}
	evolve("b")
	if now := page(true, ""); now.made == whole.made || !strings.Contains(string(now.made.text), `"b"`) {
		t.Error("the page of before is given")
	}
	runtime.KeepAlive(rest)
}

// A walk through a recorded run comes, forwards and backwards, to the effects and to the
// end that the machine wrote down.
func TestWalksAreAsRecorded(t *testing.T) {
	runs := must.Full(20, 300)
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
		engine.Replay(t.Context(), engine.ReplayOptions{Replay: run.NewReplay(rec, false), Tools: w.at(rec.AsOf), Walked: &rounds})
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
	must.NoError(t, err)
	var asked []recordedEffect
	for i := range events {
		if k := events[i].Kind; k == journal.EffectRequested || k == journal.EffectDenied {
			var e recordedEffect
			must.NoError(t, json.Unmarshal(events[i].Data, &e))
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
			if ends := w.record(id).End.Fault; ends == nil || ends.Kind.Catchable() && ends.Kind != fault.OutcomeUnknown {
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

// TestJournalOfOperations: kind selects by operation, by kind of capability, and what may change something.
func TestJournalOfOperations(t *testing.T) {
	s := newRecordedWorld(t, 1).server
	succeed(t, s, "evolve", `{"name":"reads","code":"k => try(!toy.get(k))","capabilities":["toy.get:notes/**"]}`)
	succeed(t, s, "evolve", `{"name":"both","code":"k => (try(!toy.get(k)), try(!toy.put({key: k, value: 1})))","capabilities":["toy.get:notes/**","toy.put:notes/**"]}`)
	do(t, s, "reads", `{"input":"notes/a"}`)
	do(t, s, "both", `{"input":"notes/b"}`)
	for arguments, want := range map[string][]string{
		`{"kind":"toy.get"}`:               {"toy.get", "", "toy.get", ""},
		`{"kind":"toy"}`:                   {"toy.get", "", "toy.get", "", "toy.put", ""},
		`{"kind":"toy","tool":"reads"}`:    {"toy.get", ""},
		`{"kind":"change"}`:                {"toy.put", ""},
		`{"kind":"change","after":0}`:      {"toy.put", ""},
		`{"kind":"change","tool":"reads"}`: nil,
		`{"kind":"toy.put","tool":"both"}`: {"toy.put", ""},
	} {
		var page struct {
			Events []struct{ Data struct{ Op string } }
		}
		must.NoError(t, json.Unmarshal(succeed(t, s, "journal", arguments).Structured, &page))
		var got []string
		for _, e := range page.Events {
			got = append(got, e.Data.Op)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, expected %q", arguments, got, want)
		}
	}
	if got, calls := pagesOf(t, s, `{"kind":"toy","limit":1}`); len(got) != 6 || calls != 6 {
		t.Errorf("%d events in %d pages", len(got), calls)
	}
	if a := do(t, s, "journal", `{"kind":"toy.write"}`); !strings.Contains(a.Text, `there is no operation "toy.write"`) || !strings.Contains(a.Text, `by the kind "toy", one operation by its name: toy.get`) {
		t.Error(a.Text)
	}
	if a := do(t, s, "journal", `{"kind":"toys"}`); !strings.Contains(a.Text, `no events of kind "toys"`) {
		t.Error(a.Text)
	}
}
