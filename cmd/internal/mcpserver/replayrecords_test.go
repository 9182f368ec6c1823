package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// What the journal couldn't take, and what a killed server left, is replayed as
// far as it goes.
func TestReplayOfWhatIsMissing(t *testing.T) {
	w := newRecordedWorld(t, 5)
	w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store}))
	w.evolve("it", `k => [!toy.get("notes/a"), !toy.get("notes/b")]`, toyGet)
	succeed(t, w.server, "run", `{"tool":"it","input":1}`)
	events, _, err := w.store.Read(journal.Query{Run: w.newest()})
	must.NoError(t, err)
	for n, want := range map[int]string{
		6: run.Identical, // start, request, outcome, request, outcome, end
		5: run.Incomplete, 4: run.Incomplete, 3: run.Incomplete, 2: run.Incomplete, 1: run.Incomplete, 0: run.Impossible,
	} {
		rec, err := run.ParseRecord(w.store, events[:n])
		if n == 0 {
			if err == nil {
				t.Error("no events are a record")
			}
			continue
		}
		must.NoError(t, err)
		if _, v := w.replay(rec); v.Verdict != want {
			t.Errorf("of %d events it is %s: %s", n, v.Verdict, v.Text)
		}
	}
	if _, err := run.ParseRecord(w.store, events[1:]); err == nil || !strings.Contains(err.Error(), "beginning") {
		t.Errorf("without its beginning: %v", err)
	}
	if _, err := run.ReadRecord(w.store, "nosuch-1"); err == nil || !strings.Contains(err.Error(), "no run") {
		t.Errorf("of a run that never was: %v", err)
	}
}

// failing takes every event but one.
type failing struct {
	journal.Journal
	at int
}

func (f *failing) Append(s journal.Stage, k journal.Kind, id, branch string, data []byte) (uint64, error) {
	if id != "" {
		if f.at--; f.at == -1 {
			return 0, errors.New("the disk is full")
		}
	}
	return f.Journal.Append(s, k, id, branch, data)
}

func (f *failing) AppendLater(s journal.Stage, k journal.Kind, id, branch string, data []byte) func() (uint64, error) {
	seq, err := f.Append(s, k, id, branch, data)
	return func() (uint64, error) { return seq, err }
}

// What one event was that the journal didn't take can be told from the others,
// but for a denial's words.
func TestReplayOfWhatTheJournalDidntTake(t *testing.T) {
	w := newRecordedWorld(t, 12)
	w.evolve("it", `k => [try(!toy.get("notes/a")), try(!toy.get("elsewhere")), try(!toy.get("notes/b"))]`, toyGet)
	for i, want := range []string{
		run.Impossible, // the start: nothing is done
		run.Identical,  // a request: it wasn't done
		run.Identical,  // an outcome: nobody knows
		run.Different,  // a denial
		run.Identical, run.Identical,
		run.Incomplete, // the end
		run.Identical,  // nothing
	} {
		w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: &failing{w.store, i}}))
		was := succeed(t, w.server, "run", `{"tool":"it","input":1}`)
		events, _, err := w.store.Read(journal.Query{Kind: "run", Limit: 1, Last: true})
		must.NoError(t, err)
		rec, err := run.ReadRecord(w.store, events[0].Run)
		if err != nil {
			if want != run.Impossible {
				t.Errorf("without event %d: %v", i, err)
			}
			continue
		}
		now, v := w.replay(rec)
		if v.Verdict != want || want == run.Identical && string(now.Structured) != string(was.Structured) {
			t.Errorf("without event %d it is %s: %s; %s", i, v.Verdict, v.Text, now.Structured)
		}
		if want == run.Different && !strings.Contains(strings.Join(v.Notes, ""), "didn't take 1 of its denials") {
			t.Errorf("without event %d the notes are %q", i, v.Notes)
		}
	}
}

// A record that lies is refused, or differs; it breaks nothing.
func TestRecordsThatLie(t *testing.T) {
	runs := must.Full(120, 20_000)
	w := newRecordedWorld(t, 6)
	w.evolve("helper", term1{"lam": "x", "body": []any{term1{"toy.get": "notes/helper"}, term1{"var": "x"}}}, toyGet)
	w.evolve("it", term1{"lam": "x", "body": []any{term1{"par": []any{term1{"try": term1{"toy.get": "notes/a"}}, term1{"try": term1{"toy.get": "elsewhere"}}}},
		term1{"try": term1{"call": term1{"tool": "helper", "input": 1}}}, term1{"try": term1{"call": term1{"tool": term1{"var": "x"}, "input": 1}}}, term1{"try": term1{"toy.get": "notes/b"}}}}, toyGet, "call:helper")
	do(t, w.server, "run", `{"tool":"it","input":"secret"}`)
	id := w.newest()
	events, _, err := w.store.Read(journal.Query{Run: id})
	must.NoError(t, err)
	tools := w.at(w.record(id).AsOf)
	lies := []string{`null`, `0`, `-1`, `18446744073709551615`, `1e999`, `""`, `"\ud800"`, `[]`, `{}`, `[[[[[[]]]]]]`, `{"kind":""}`, `{"kind":"timeout","message":"m"}`,
		`{"kind":"denied","message":"m","raised":{"pair":[1]}}`, `{"bytes":5,"sha256":"` + strings.Repeat("00", 32) + `"}`, `{"bytes":-1,"sha256":"x"}`,
		`{"quote":{"eval":{"self":true}}}`, `{"quote":5e}`, `{"int":"-"}`, `{"dec":"1.2.3"}`, `{"record":{"b":1,"a":2}}`, `{"pair":[1,2,3]}`, strings.Repeat("[", 3000) + strings.Repeat("]", 3000),
		`{"tool":"evolve","arguments":"{}"}`, `{"tool":"it","arguments":"{"}`, `{"steps":1,"memory":1,"depth":1,"result":1}`}
	for i := range runs {
		forged := make([]journal.Event, 0, len(events)+1)
		for j := range events {
			e := events[j]
			if w.dice.IntN(len(events)) == 0 {
				e.Data = lie(w.dice, e.Data, lies[w.dice.IntN(len(lies))])
			}
			switch w.dice.IntN(30) {
			case 0: // is missing
			case 1:
				forged = append(forged, e, e)
			case 2:
				e.Kind = events[w.dice.IntN(len(events))].Kind
				forged = append(forged, e)
			default:
				forged = append(forged, e)
			}
		}
		rec, err := run.ParseRecord(w.store, forged)
		if err != nil {
			continue
		}
		a, v := engine.Replay(t.Context(), engine.ReplayOptions{Replay: run.NewReplay(rec, i%2 == 1), Tools: tools})
		if a.Fault != nil && a.Fault.Kind == fault.Internal && strings.Contains(a.Fault.Message, "defect") {
			t.Errorf("a panic: %s, of %v", a.Text, forged)
		}
		if v.Verdict == "" || v.Text == "" {
			t.Errorf("no verdict of %v", forged)
		}
	}
}

// lie puts another value in the place of one member, or takes it out.
func lie(dice *rand.Rand, data []byte, with string) []byte {
	members, _ := wire.Split(data)
	if len(members) == 0 {
		return data
	}
	k := dice.IntN(len(members))
	o := wire.Begin()
	for i, m := range members {
		switch {
		case i != k:
			o = o.Raw(m.Name, m.Value)
		case dice.IntN(4) == 0:
		case dice.IntN(3) == 0 && m.Value[0] == '{':
			o = o.Raw(m.Name, lie(dice, m.Value, with))
		default:
			o = o.Raw(m.Name, json.RawMessage(with))
		}
	}
	return o.End()
}

// An event that isn't what was recorded, or is missing, is found before anything
// is replayed, whosever it is.
func TestReplayChecksTheChain(t *testing.T) {
	w := newRecordedWorld(t, 7)
	w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store}))
	w.evolve("it", `k => [!toy.get("notes/a"), !toy.get("notes/b")]`, toyGet)
	succeed(t, w.server, "run", `{"tool":"it","input":1}`)
	id := w.newest()
	events, _, err := w.store.Read(journal.Query{Run: id})
	must.NoError(t, err)
	w.record(id)
	for i := range events {
		seq := events[i].Seq
		for how, edit := range map[string]func(*journal.Event) bool{
			"changed": func(e *journal.Event) bool {
				e.Data = []byte(strings.Replace(string(e.Data), ":", ": ", 1))
				return true
			},
			"sealed anew": func(e *journal.Event) bool {
				e.Data = []byte(strings.Replace(string(e.Data), ":", ": ", 1))
				e.Hash = e.Seal()
				return true
			},
			"missing": func(*journal.Event) bool { return false },
		} {
			if i == len(events)-1 && how != "changed" {
				continue // nothing behind it knows of it
			}
			if i == 0 && how == "missing" {
				continue // then it has no beginning
			}
			if _, err := run.ReadRecord(forging{w.store, seq, edit}, id); err == nil {
				t.Errorf("event %d of the run %s: nothing was found", i, how)
			}
		}
	}
}

// A forging journal has one event edited.
type forging struct {
	journal.Journal
	seq  uint64
	edit func(*journal.Event) bool
}

func (f forging) Read(q journal.Query) ([]journal.Event, bool, error) {
	events, more, err := f.Journal.Read(q)
	var list []journal.Event
	for _, e := range events {
		if e.Seq != f.seq || f.edit(&e) {
			list = append(list, e)
		}
	}
	return list, more, err
}

// A file that was edited is refused: what a program was given is what was recorded.
func TestReplayRefusesAnEditedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	w := newRecordedWorldAt(t, 10, path, journal.Options{})
	w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store}))
	w.evolve("it", `k => !toy.get("notes/original")`, toyGet)
	succeed(t, w.server, "run", `{"tool":"it","input":1}`)
	id := w.newest()
	w.record(id)
	must.NoError(t, w.store.Close())
	text, err := os.ReadFile(path)
	must.NoError(t, err)
	outcome := []byte(`"value":{"key":"notes/original"}`)
	if bytes.Count(text, outcome) != 1 {
		t.Fatalf("the file has the outcome %d times", bytes.Count(text, outcome))
	}
	must.NoError(t, os.WriteFile(path, bytes.Replace(text, outcome, []byte(`"value":{"key":"notes/ORIGINAL"}`), 1), 0o600))
	store, err := journal.Open(path, journal.Options{ReadOnly: true})
	must.NoError(t, err)
	defer store.Close()
	var broken *journal.Break
	if _, err := run.ReadRecord(store, id); !errors.As(err, &broken) {
		t.Errorf("reading the record gave %v", err)
	}
}

// A run of which retention dropped a part says so; one that is there is replayed,
// with tools that were made before what was dropped.
func TestReplayAfterRetention(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var later time.Duration
	var mu sync.Mutex
	w := newRecordedWorldAt(t, 11, filepath.Join(t.TempDir(), "journal.db"), journal.Options{Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now.Add(later)
	}})
	w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: slow(func() {
		mu.Lock()
		defer mu.Unlock()
		later += time.Hour
	}), Journal: w.store}))
	w.evolve("it", `k => [!toy.get("notes/a"), !toy.get("notes/b")]`, toyGet)
	succeed(t, w.server, "run", `{"tool":"it","input":1}`)
	gone := w.newest()
	succeed(t, w.server, "run", `{"tool":"it","input":1}`)
	half := w.newest()
	was := succeed(t, w.server, "run", `{"tool":"it","input":1}`)
	there := w.newest()
	// Now 6 hours have passed: the first run took 2, and so on.
	must.Succeed(t)(w.store.Retain(t.Context(), journal.RetainOptions{MaxAge: 3*time.Hour + time.Minute}))
	for id, want := range map[string]string{gone: "there is no run", half: "its beginning is not on record"} {
		if _, err := run.ReadRecord(w.store, id); !errors.Is(err, run.ErrNoRecord) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "dropped by retention") {
			t.Errorf("of %s: %v", id, err)
		}
	}
	w.identical(there, was)
}

// slow is steady, and does something else meanwhile.
type slow func()

func (slow) Prepare(*caps.Grant) {}

func (s slow) Perform(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	s()
	return steady{}.Perform(ctx, a)
}

// Every part of a record counts: the place of a request, and the whole answer.
func TestReplayComparesAll(t *testing.T) {
	w := newRecordedWorld(t, 13)
	w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store}))
	w.evolve("it", `k => [!toy.get("notes/a")]`, toyGet)
	succeed(t, w.server, "run", `{"tool":"it","input":1}`)
	events, _, err := w.store.Read(journal.Query{Run: w.newest()})
	must.NoError(t, err)
	for _, c := range []struct {
		event    int
		old, new string
		want     string
	}{
		{1, `"at":"1:7"`, `"at":"1:9"`, "differs (place)"},
		{1, `"op":"toy.get"`, `"op":"toy.put"`, "differs (operation)"},
		{3, `"answer":"`, `"answer":"00`, "64 digits"},
		{3, `"answer":`, `"answer":"` + strings.Repeat("00", 32) + `","old":`, "the notes or the next call of the answer differ"},
		{3, `"steps":`, `"steps":9`, "steps: 9"},
		{3, `"type":"list"`, `"type":"pair"`, "the result: pair of"},
	} {
		forged := append([]journal.Event{}, events...)
		text := strings.Replace(string(events[c.event].Data), c.old, c.new, 1)
		if text == string(events[c.event].Data) {
			t.Errorf("event %d has no %s: %s", c.event, c.old, text)
		}
		forged[c.event].Data = []byte(text)
		rec, err := run.ParseRecord(w.store, forged)
		says := ""
		if err != nil {
			says = err.Error()
		} else {
			_, v := w.replay(rec)
			says = v.Text
		}
		if !strings.Contains(says, c.want) {
			t.Errorf("with %s it says %q, not %q", c.new, says, c.want)
		}
	}
}

// unrecorded is a journal that keeps nothing of runs.
type unrecorded struct{ journal.Journal }

func (u unrecorded) Append(s journal.Stage, k journal.Kind, id, branch string, data []byte) (uint64, error) {
	if id != "" {
		return 1, nil
	}
	return u.Journal.Append(s, k, id, branch, data)
}

func (u unrecorded) AppendLater(s journal.Stage, k journal.Kind, id, branch string, data []byte) func() (uint64, error) {
	seq, err := u.Append(s, k, id, branch, data)
	return func() (uint64, error) { return seq, err }
}

// BenchmarkRecorded is runs, and runs with ten effects that cost nothing,
// unrecorded, recorded in memory, and in a file: what the record costs is the
// difference. Unrecorded runs write their events, too, for nobody.
func BenchmarkRecorded(b *testing.B) {
	known, err := caps.NewKinds(toy)
	must.NoError(b, err)
	store, err := journal.Open(filepath.Join(b.TempDir(), "journal.db"), journal.Options{})
	must.NoError(b, err)
	defer store.Close()
	for _, j := range []struct {
		name string
		journal.Journal
	}{
		{"none", unrecorded{journal.NewMemory(1<<20, nil)}}, {"memory", journal.NewMemory(8<<20, nil)}, {"file", store},
	} {
		policy := caps.NewPolicy(known, time.Now)
		c, err := caps.Parse("toy:notes/**,calls=100000000,bytes=1GiB", known)
		must.NoError(b, err)
		g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: known})
		if err == nil {
			err = policy.Grant(g)
		}
		must.NoError(b, err)
		s := New(Options{Broker: run.New(run.Options{Policy: policy, Handler: steady{}, Journal: j.Journal})})
		succeed(b, s, "evolve", `{"name":"square","code":"n => n * n"}`)
		succeed(b, s, "evolve", `{"name":"work","code":"n => sum(map(x => x * x, range(0, n)))"}`)
		succeed(b, s, "evolve", `{"name":"ten","code":"n => map(i => !toy.get(\"notes/a\"), range(0, n))","capabilities":["toy.get:notes/**"]}`)
		for _, c := range []struct {
			name string
			call Call
		}{
			{"square", Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"square","input":7}`)}},
			{"direct", Call{Tool: "square", Arguments: json.RawMessage(`{"input":7}`)}},
			{"code", Call{Tool: "run", Arguments: json.RawMessage(`{"code":` + square + `,"input":7}`)}},
			{"work", Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"work","input":1000}`)}},
			{"effects10", Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"ten","input":10}`)}},
		} {
			b.Run(c.name+"/"+j.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if a := s.Call(context.Background(), c.call); a.Fault != nil {
						b.Fatal(a.Text)
					}
				}
			})
		}
	}
}

// BenchmarkReplay is the replay of a run with ten effects.
func BenchmarkReplay(b *testing.B) {
	w := newRecordedWorld(b, 1)
	w.server = over(w.server, run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store}))
	w.evolve("ten", `n => map(i => !toy.get("notes/a"), range(0, n))`, toyGet)
	succeed(b, w.server, "ten", `{"input":10}`)
	id := w.newest()
	tools := w.at(w.record(id).AsOf)
	for b.Loop() {
		rec, err := run.ReadRecord(w.store, id)
		must.NoError(b, err)
		if _, v := engine.Replay(context.Background(), engine.ReplayOptions{Replay: run.NewReplay(rec, false), Tools: tools}); v.Verdict != run.Identical {
			b.Fatal(v.Text)
		}
	}
}

// The predecessor's vectors and the project's own corpus run on both
// evaluators in package core. Here they go through the server, as a client
// would have them run: what is tested is that nothing is lost on the way.

// byDesign are the features in which ours differs; what they must do is tested
// in package core.
var byDesign = []string{
	"dynamic-self", "reserved-name", "continuation-in-data", "continuation-nontail", "open-tool", "input-context",
	"extension", "duplicate-keys",
}

// same reports whether two JSON texts mean the same, numbers exactly.
func same(a, b []byte) bool {
	decode := func(b []byte) (v any) {
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.UseNumber()
		if dec.Decode(&v) != nil {
			return string(b)
		}
		return v
	}
	x, _ := json.Marshal(decode(a))
	y, _ := json.Marshal(decode(b))
	return bytes.Equal(x, y)
}

// eachLine calls visit with every line of a file.
func eachLine(t *testing.T, path string, visit func(line []byte)) {
	t.Helper()
	f, err := os.Open(path)
	must.NoError(t, err)
	defer f.Close()
	r := bufio.NewScanner(f)
	r.Buffer(nil, 16<<20)
	for r.Scan() {
		if len(bytes.TrimSpace(r.Bytes())) > 0 {
			visit(r.Bytes())
		}
	}
	must.NoError(t, r.Err())
}

// seed is the folder of the predecessor's vectors, beside the repository.
func seed(t *testing.T) string {
	shared := os.Getenv("PIF_SHARED")
	if shared == "" {
		shared = "../../../../shared"
	}
	dir := filepath.Join(shared, "seed")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no ../shared/seed around the repository")
	}
	return dir
}

var number = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?`)

// rounded is code with each number rounded half to even, as the predecessor read it:
// also inside a string of JSON.
func rounded(t *testing.T, code json.RawMessage) json.RawMessage {
	var s string
	if json.Unmarshal(code, &s) == nil && code[0] == '"' {
		if !json.Valid([]byte(s)) {
			return code
		}
		return json.RawMessage(quoteJSON(string(rounded(t, json.RawMessage(s)))))
	}
	return number.ReplaceAllFunc(code, func(n []byte) []byte {
		if n[0] == '"' || !bytes.ContainsAny(n, ".eE") {
			return n
		}
		return []byte(do(t, New(Options{}), "run", `{"code":"x => to_int(x, \"half_even\")","input":`+string(n)+`}`).Text)
	})
}

func TestSeedVectors(t *testing.T) {
	count := 0
	eachLine(t, filepath.Join(seed(t), "public.jsonl"), func(line []byte) {
		var v struct {
			ID    string
			Tags  []string
			Setup []struct {
				Name, Description string
				Code              json.RawMessage
			}
			Code, Input, Result json.RawMessage
			Type                string
			Steps               json.Number
			Error               *struct {
				Kind      string
				InnerKind string `json:"inner_kind"`
			}
			Nonterminating bool
		}
		must.NoError(t, json.Unmarshal(line, &v))
		if slices.ContainsFunc(v.Tags, func(tag string) bool { return slices.Contains(byDesign, tag) }) {
			return
		}
		count++
		s := New(Options{Limits: Limits{Result: 1 << 20}})
		for _, tool := range v.Setup {
			a := do(t, s, "evolve", fmt.Sprintf(`{"name":%s,"description":%s,"code":%s,"draft":true}`, quoteJSON(tool.Name), quoteJSON(tool.Description), rounded(t, tool.Code)))
			if a.Fault != nil {
				t.Errorf("%s: evolve %s: %s", v.ID, tool.Name, a.Text)
				return
			}
		}
		a := do(t, s, "run", fmt.Sprintf(`{"code":%s,"input":%s,"input_as":"auto"}`, rounded(t, v.Code), v.Input))
		switch {
		case v.Nonterminating:
			if a.Fault == nil || !slices.Contains([]string{"out_of_fuel", "out_of_memory", "too_deep"}, string(a.Fault.Kind)) {
				t.Errorf("%s: %s, expected a budget to stop it", v.ID, a.Text)
			}
		case v.Error != nil:
			want := v.Error.Kind
			if v.Error.InnerKind != "" {
				want = v.Error.InnerKind
			}
			if a.Fault == nil || string(a.Fault.Kind) != want {
				t.Errorf("%s: %s, expected %s", v.ID, a.Text, want)
			}
		case a.Fault != nil:
			t.Errorf("%s: %s, expected %s", v.ID, a.Text, v.Result)
		case v.Type == "continuation":
			var want struct {
				NextInput json.RawMessage `json:"next_input"`
				Tool      string
			}
			must.NoError(t, json.Unmarshal(v.Result, &want))
			if got := field(t, a, "result/next_input"); !same([]byte(got), want.NextInput) || field(t, a, "result/tool") != quoteJSON(want.Tool) {
				t.Errorf("%s: %s, expected %s", v.ID, a.Text, v.Result)
			}
		default:
			if !same([]byte(a.Text), v.Result) || !same([]byte(field(t, a, "result")), v.Result) || field(t, a, "type") != quoteJSON(v.Type) || field(t, a, "steps") != string(v.Steps) {
				t.Errorf("%s: %s, expected %s, %s, %s steps", v.ID, a.Structured, v.Result, v.Type, v.Steps)
			}
		}
	})
	if count < 900 {
		t.Errorf("only %d vectors were run", count)
	}
}

func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("../../../core/testdata/corpus/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	count := 0
	for _, file := range files {
		eachLine(t, file, func(line []byte) {
			var c struct {
				Name    string
				Term    json.RawMessage
				Tool    string
				Input   json.RawMessage
				InputAs string `json:"input_as"`
				Tools   map[string]json.RawMessage
				Budgets map[string]json.RawMessage
				Effects []json.RawMessage
				Calls   bool
				Want    json.RawMessage
				Type    string
				Fault   *struct {
					Kind string
					At   *string
				}
				Steps json.Number
			}
			must.NoError(t, json.Unmarshal(line, &c))
			if len(c.Effects) > 0 || c.Calls || c.Budgets["depth"] != nil {
				return // not for a client to say
			}
			count++
			name := strings.TrimSuffix(filepath.Base(file), ".jsonl") + ": " + c.Name
			s := New(Options{})
			var a wire.Answer
			for tool, code := range c.Tools {
				if a = do(t, s, "evolve", fmt.Sprintf(`{"name":%s,"code":%s}`, quoteJSON(tool), code)); a.Fault != nil {
					break
				}
			}
			if a.Fault == nil {
				call := map[string]any{}
				if c.Tool != "" {
					call["tool"] = c.Tool
				} else {
					call["code"] = c.Term
				}
				if c.Input != nil {
					call["input"] = c.Input
				}
				if call["input_as"] = c.InputAs; c.InputAs == "" {
					call["input_as"] = "auto"
				}
				for _, budget := range []string{"steps", "memory"} {
					if n := c.Budgets[budget]; n != nil {
						call[budget] = n
					}
				}
				arguments, err := json.Marshal(call)
				must.NoError(t, err)
				a = do(t, s, "run", string(arguments))
			}
			switch {
			case c.Fault != nil:
				if a.Fault == nil || string(a.Fault.Kind) != c.Fault.Kind && !(c.Fault.Kind != "refused" && a.Fault.Kind == "refused") {
					t.Errorf("%s: %s, expected %s", name, a.Text, c.Fault.Kind)
				} else if c.Fault.At != nil && a.Fault.Kind != "refused" && string(a.Fault.At) != *c.Fault.At && a.Fault.Kind.Catchable() {
					t.Errorf("%s: at %s, expected %s", name, a.Fault.At, *c.Fault.At)
				}
			case a.Fault != nil && a.Fault.Kind == "refused": // a tool with an effect
			case a.Fault != nil:
				t.Errorf("%s: %s, expected %s", name, a.Text, c.Want)
			case field(t, a, "result") != "" && field(t, a, "type") != `"continuation"` && !same([]byte(a.Text), c.Want):
				t.Errorf("%s: %s, expected %s", name, a.Text, c.Want)
			case c.Steps != "" && field(t, a, "steps") != string(c.Steps):
				t.Errorf("%s: %s steps, expected %s", name, field(t, a, "steps"), c.Steps)
			}
		})
	}
	if count < 100 {
		t.Errorf("only %d cases were run", count)
	}
}
