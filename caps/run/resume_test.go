package run_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/lease"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// notes is a world: what is kept, and how often each key was put.
type notes struct {
	mu   sync.Mutex
	kept map[string]value.Value
	puts map[string]int
}

func (n *notes) perform(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := string(field(a.Args, "key").(value.Str))
	if a.Verb == "put" {
		n.kept[key] = field(a.Args, "value")
		n.puts[key]++
		return value.Unit{}, 1, nil
	}
	if v, ok := n.kept[key]; ok {
		return v, 1, nil
	}
	return value.Str("none"), 1, nil
}

// unrecorded is the number of an event that nobody wrote.
const unrecorded = 1 << 40

// mortal is a journal that takes so many events, and then dies with its process.
type mortal struct {
	journal.Journal
	mu    sync.Mutex
	takes int
}

func (j *mortal) dead() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.takes <= 0
}

func (j *mortal) AppendLater(s journal.Stage, k journal.Kind, id, branch string, data []byte) func() (uint64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.takes--; j.takes < 0 {
		return func() (uint64, error) { return unrecorded, nil }
	}
	seq, err := j.Journal.Append(s, k, id, branch, data)
	return func() (uint64, error) { return seq, err }
}

func (j *mortal) Append(s journal.Stage, k journal.Kind, id, branch string, data []byte) (uint64, error) {
	return j.AppendLater(s, k, id, branch, data)()
}

// drive takes a run to its end, and gives its result as JSON.
func drive(t *testing.T, r *run.Run, made *registry.Tool, input string) (string, *fault.Fault) {
	t.Helper()
	in, err := core.ParseInput([]byte(input), core.InputData)
	must.NoError(t, err)
	m := made.Program().Start(in, core.Budgets{}, r.Tools(made))
	r.Evaluates(run.Evaluation{Tool: made, Program: made.Program(), Input: in})
	defer m.Release()
	for {
		state := m.Run(0)
		if state == core.Suspended {
			m.Resume(r.Answer(t.Context(), time.Now().Add(time.Hour), m.Requests()))
		}
		e := run.End{Steps: m.Steps(), Fault: m.Fault()}
		if !r.Replaying() && r.Halted() != nil {
			e.Fault = r.Halted()
			r.Stopped(run.Running)
		} else if state == core.Suspended {
			continue
		} else if state == core.Done {
			enc, f := m.Encode(1 << 20)
			e.Type, e.Result, e.Fault = string(enc.Type), enc.JSON, f
		}
		e.Answer = sha256.Sum256(e.Result)
		r.End(e)
		return string(e.Result), e.Fault
	}
}

func bounds(made *registry.Tool, id, input string) run.Start {
	return run.Start{ID: id, Lasts: true, Tool: made, Input: []byte(input), As: "data", Call: run.Call{Tool: made.Name, Arguments: []byte(input)},
		Bounds: run.Bounds{MaxSteps: 1 << 40, MaxMemory: 1 << 30, MaxDepth: 1 << 20, Result: 1 << 20, Timeout: time.Minute}}
}

const busy = `k => let a = !toy.get(k ++ "1") in
  let first = try(!toy.put({key: k ++ "1", value: "x"})) in
  let many = par(try(!toy.get(k ++ "1")), try(!toy.put({key: k ++ "2", value: "y"})), try(!toy.get("secret")), try(!toy.get(k ++ "2"))) in
  let p = try(!toy.put({key: k ++ "3", value: length(many)})) in
  [a, has(first, "ok"), map(x => has(x, "ok"), many), has(p, "ok"), !toy.get(k ++ "1"), !toy.get(k ++ "2"), !toy.get(k ++ "3")]`

// A run whose process died after any of its events goes on in another one. Each effect that
// isn't idempotent is done once at most, and a replay gives the answer that came of it.
func TestResume(t *testing.T) {
	t.Parallel()
	for cut, ended := 1, false; !ended; cut++ {
		for _, done := range []bool{false, true} { // what is under way when the process dies
			n := &notes{kept: map[string]value.Value{}, puts: map[string]int{}}
			j := &mortal{takes: cut}
			once := sync.Once{}
			w := newWorld(t, run.Options{}, nil, "toy:notes/**")
			made := w.evolve("busy", busy, "toy:notes/**")
			j.Journal = w.memory
			dying := run.New(run.Options{Policy: w.policy, Journal: j, Handler: &performer{perform: func(ctx context.Context, a run.Act) (v value.Value, size int64, f *fault.Fault) {
				if !j.dead() {
					return n.perform(ctx, a)
				}
				if done && !strings.HasSuffix(a.Key, fmt.Sprint(unrecorded)) {
					once.Do(func() { n.perform(ctx, a) })
				}
				return value.Str("nobody hears this"), 1, nil
			}}})
			drive(t, dying.Begin(w.tools.Snapshot(), bounds(made, "r", `"notes/"`)), made, `"notes/"`)
			if ended = j.takes >= 0; ended {
				break
			}
			rec, err := run.ReadRecord(w.memory, "r")
			must.NoError(t, err)
			living := run.New(run.Options{Policy: w.policy, Journal: w.memory, Handler: &performer{perform: n.perform}})
			r, err := living.Resume(w.tools.Snapshot(), bounds(made, "r", `"notes/"`), rec)
			must.NoError(t, err)
			got, f := drive(t, r, made, `"notes/"`)
			if f != nil {
				t.Fatalf("cut %d: %v", cut, f)
			}
			for key, times := range n.puts {
				if times > 1 {
					t.Errorf("cut %d, done %v: %s was put %d times", cut, done, key, times)
				}
			}
			if outcomes := w.events(journal.EffectOutcome); len(n.puts) < 3 && !strings.Contains(strings.Join(outcomes, " "), "outcome_unknown") {
				t.Errorf("cut %d, done %v: only %v were put, and nothing is said of the others: %s", cut, done, n.puts, got)
			}
			w.replays(made, got)
		}
		if cut > 100 {
			t.Fatal("it never ends")
		}
	}
}

// What an argument makes no more idempotent isn't done again by a run that goes on: it would find its own work.
func TestResumeOnce(t *testing.T) {
	t.Parallel()
	m := *toy
	m.Verbs = []caps.Verb{m.Verbs[0], {Name: "put", Flags: caps.Flags{Destructive: true, Idempotent: true}}}
	put := m.Operations[1]
	put.Params = append(slices.Clone(put.Params), caps.Param{Name: "create", Type: "string", Optional: true, Enum: []string{"always", "only"}})
	put.Once = [][2]string{{"create", "only"}}
	m.Operations = []caps.Operation{m.Operations[0], put}
	for create, want := range map[string]string{"only": `"outcome_unknown"`, "always": `"done"`} {
		made := 0
		perform := func(context.Context, run.Act) (value.Value, int64, *fault.Fault) {
			if made++; made > 1 && create == "only" {
				return nil, 0, fault.New(fault.EffectFailed, "exists")
			}
			return value.Unit{}, 1, nil
		}
		w := newWorldOf(t, &m, run.Options{}, nil, "toy:notes/**")
		tool := w.evolve("make", `k => let r = try(!toy.put({key: k, value: 1, create: "`+create+`"})) in if has(r, "ok") then "done" else r.error.kind`, "toy:notes/**")
		j := &mortal{Journal: w.memory, takes: 2} // its beginning, and what it asked for
		dying := run.New(run.Options{Policy: w.policy, Journal: j, Handler: &performer{perform: perform}})
		drive(t, dying.Begin(w.tools.Snapshot(), bounds(tool, "r", `"notes/x"`)), tool, `"notes/x"`)
		rec, err := run.ReadRecord(w.memory, "r")
		must.NoError(t, err)
		if n, _ := rec.Unsettled(w.policy); made != 1 || (n > 0) != (create == "only") {
			t.Errorf("%s: it was made %d times, and %d waits for a person", create, made, n)
		}
		if end, err := run.ReadEnd(w.memory, "r"); err != nil || end != nil {
			t.Errorf("it didn't end: %+v, %v", end, err)
		}
		living := run.New(run.Options{Policy: w.policy, Journal: w.memory, Handler: &performer{perform: perform}})
		r, err := living.Resume(w.tools.Snapshot(), bounds(tool, "r", `"notes/x"`), rec)
		must.NoError(t, err)
		if got, f := drive(t, r, tool, `"notes/x"`); f != nil || got != want {
			t.Errorf("%s: gone on with it gives %s, %v; want %s", create, got, f, want)
		}
	}
}

// replays holds a run against its replay.
func (w *world) replays(made *registry.Tool, want string) {
	w.t.Helper()
	t := w.t.(*testing.T)
	rec, err := run.ReadRecord(w.memory, "r")
	must.NoError(t, err)
	if end, err := run.ReadEnd(w.memory, "r"); err != nil || !reflect.DeepEqual(end, rec.End) {
		t.Errorf("its end alone is %+v, %v; in its record %+v", end, err, rec.End)
	}
	p := run.NewReplay(rec, false)
	got, f := drive(t, p.Broker().Begin(w.tools.Snapshot(), bounds(made, "", `"notes/"`)), made, `"notes/"`)
	if v := p.Verdict(f); v.Verdict != run.Identical || got != want {
		t.Errorf("the replay gives %s and %s, not %s: %s\n%s", v.Verdict, got, want, v.Text, strings.Join(w.events("effect"), "\n"))
	}
	if err := w.memory.Verify(); err != nil {
		t.Error(err)
	}
}

// A run doesn't go on that did what it may not do any more, or is another.
func TestResumeIsRefused(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) (*world, *registry.Tool, *run.Record) {
		n := &notes{kept: map[string]value.Value{}, puts: map[string]int{}}
		w := newWorld(t, run.Options{}, n.perform, "toy:notes/**")
		made := w.evolve("busy", busy, "toy:notes/**")
		j := &mortal{Journal: w.memory, takes: 5}
		drive(t, run.New(run.Options{Policy: w.policy, Journal: j, Handler: &performer{perform: n.perform}}).Begin(w.tools.Snapshot(), bounds(made, "r", `"notes/"`)), made, `"notes/"`)
		rec, err := run.ReadRecord(w.memory, "r")
		must.NoError(t, err)
		return w, made, rec
	}
	t.Run("revoked", func(t *testing.T) {
		t.Parallel()
		w, made, rec := start(t)
		r, err := w.broker.Resume(w.tools.Snapshot(), bounds(made, "r", `"notes/"`), rec)
		must.NoError(t, err)
		w.policy.Revoked([]caps.Revocation{{ID: "1", Text: "toy:notes/**"}})
		_, f := drive(t, r, made, `"notes/"`)
		if f == nil || f.Kind != fault.Denied || !strings.Contains(f.Message, "can't go on") || !strings.Contains(f.Message, "revoked") {
			t.Errorf("it ended with %v", f)
		}
		if got := w.events(journal.EffectRequested); len(got) != 2 {
			t.Errorf("it asked for more: %v", got)
		}
	})
	// What it may not do any more ends the round that this is of, too.
	t.Run("of a round", func(t *testing.T) {
		t.Parallel()
		n := &notes{kept: map[string]value.Value{}, puts: map[string]int{}}
		w := newWorld(t, run.Options{}, n.perform, "toy:notes/**")
		made := w.evolve("both", `k => par(try(!toy.put({key: k ++ "1", value: 1})), try(!toy.put({key: k ++ "2", value: 2})))`, "toy:notes/**")
		dying := run.Options{Policy: w.policy, Journal: &mortal{Journal: w.memory, takes: 2}, Handler: &performer{perform: echo}}
		drive(t, run.New(dying).Begin(w.tools.Snapshot(), bounds(made, "r", `"notes/"`)), made, `"notes/"`)
		rec, err := run.ReadRecord(w.memory, "r")
		must.NoError(t, err)
		r, err := w.broker.Resume(w.tools.Snapshot(), bounds(made, "r", `"notes/"`), rec)
		must.NoError(t, err)
		w.policy.Revoked([]caps.Revocation{{ID: "1", Text: "toy:notes/1"}})
		_, f := drive(t, r, made, `"notes/"`)
		if got := w.events(journal.EffectRequested); f == nil || f.Kind != fault.Denied || len(got) != 1 || len(n.puts) > 0 {
			t.Errorf("it ended with %v, asked for %v and put %v", f, got, n.puts)
		}
	})
	t.Run("another input", func(t *testing.T) {
		t.Parallel()
		w, made, rec := start(t)
		r, err := w.broker.Resume(w.tools.Snapshot(), bounds(made, "r", `"notes/b"`), rec)
		must.NoError(t, err)
		if _, f := drive(t, r, made, `"notes/b"`); f == nil || f.Kind != fault.Internal || !strings.Contains(f.Message, "arguments") {
			t.Errorf("it ended with %v", f)
		}
	})
	t.Run("another version", func(t *testing.T) {
		t.Parallel()
		w, _, rec := start(t)
		if _, err := w.broker.Resume(w.tools.Snapshot(), bounds(w.evolve("busy", `k => k`), "r", `"notes/"`), rec); err == nil {
			t.Error("it goes on")
		}
	})
}

// What is on record of tasks is read back.
func TestTasks(t *testing.T) {
	t.Parallel()
	n := &notes{kept: map[string]value.Value{}, puts: map[string]int{}}
	w := newWorld(t, run.Options{}, n.perform, "toy:notes/**")
	made := w.evolve("busy", busy, "toy:notes/**")
	for _, id := range []string{"a", "b", "c"} {
		must.NoError(t, w.broker.CreateTask(&run.Task{ID: id, Call: run.Call{Tool: "busy", Arguments: []byte(`{"input":"notes/"}`)}, AsOf: 7, Owner: "me"}))
	}
	if mine, err := w.broker.ResumeTask("b", "you", 0, false); err != nil || !mine {
		t.Fatal(mine, err)
	}
	if mine, err := w.broker.ResumeTask("b", "they", 0, false); err != nil || mine { // they come late
		t.Fatal(mine, err)
	}
	must.NoError(t, run.CancelTask(w.memory, "c", "operator"))
	drive(t, w.broker.Begin(w.tools.Snapshot(), bounds(made, "a", `"notes/"`)), made, `"notes/"`)
	all, err := run.Tasks(w.memory, time.Time{})
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	got := ""
	for _, x := range all {
		arguments, err := x.Arguments(w.memory)
		must.NoError(t, err)
		got += fmt.Sprintln(x.ID, x.Call.Tool, string(arguments), x.AsOf, x.Owner, x.Resumed, x.Cancelled.IsZero(), x.Ended.IsZero(), x.Over())
	}
	want := `a busy {"input":"notes/"} 7 me 0 true false true
b busy {"input":"notes/"} 7 you 1 true true false
c busy {"input":"notes/"} 7 me 0 false true true
`
	if got != want {
		t.Errorf("the tasks are\n%s", got)
	}
	if one, err := run.FindTask(w.memory, "b"); err != nil || one == nil || one.Owner != "you" {
		t.Error(one, err)
	}
	if _, err := run.ReadRecord(w.memory, "a"); err != nil {
		t.Error("a run that is a task has no record:", err)
	}
}

// A task is known behind however many newer ones.
func TestTasksBehindOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, run.Options{}, nil)
	must.NoError(t, w.broker.CreateTask(&run.Task{ID: "waits", Call: run.Call{Tool: "one", Arguments: []byte(`{}`)}, Owner: "me"}))
	for range 20_000 {
		must.NoError(t, run.CancelTask(w.memory, "other", "somebody"))
	}
	if all, err := run.Tasks(w.memory, time.Now().Add(-time.Hour)); err != nil || len(all) != 1 || all[0].ID != "waits" {
		t.Errorf("%v, %v", all, err)
	}
}

// unread is a journal whose large texts aren't read.
type unread struct {
	*journal.Store
	read int
}

func (j *unread) Blob(h journal.Hash) ([]byte, error) {
	j.read++
	return j.Store.Blob(h)
}

// What tasks were called with, and failed of, is read of one that is asked for: all together may have more than there is
// memory for.
func TestTasksAreSmall(t *testing.T) {
	t.Parallel()
	j := &unread{Store: openStore(t, filepath.Join(t.TempDir(), "j.db"))}
	w := newWorld(t, run.Options{Journal: j}, nil)
	large := `"` + strings.Repeat("x", 300<<10) + `"`
	for _, id := range []string{"a", "b"} {
		must.NoError(t, w.broker.CreateTask(&run.Task{ID: id, Call: run.Call{Tool: "one", Arguments: []byte(large)}, Owner: "me"}))
	}
	must.NoError(t, w.broker.EndTask("b", "", 0, fault.New(fault.Raised, large)))
	all, err := run.Tasks(j, time.Time{})
	if err != nil || len(all) != 2 || j.read > 0 {
		t.Fatalf("%d tasks, %v, with %d texts", len(all), err, j.read)
	}
	b, err := run.FindTask(j, "b")
	if err != nil || b.Fault.Kind != fault.Raised || len(b.Fault.Message) > 1000 || j.read > 0 {
		t.Fatalf("%+v, %v, with %d texts", b, err, j.read)
	}
	if text, err := all[0].Arguments(j); err != nil || string(text) != large {
		t.Errorf("its arguments are %d bytes, %v", len(text), err)
	}
	if end, err := run.ReadEnd(j, "b"); err != nil || end.Fault.Message != large {
		t.Errorf("it ended with %.100v, %v", end, err)
	}
}

// The newest task of a schedule is found without those before it.
func TestTasksOfReadLittle(t *testing.T) {
	t.Parallel()
	j := &reader{Journal: journal.NewMemory(1<<30, nil), kinds: map[journal.Kind]int{}}
	w := newWorld(t, run.Options{Journal: j}, nil)
	for i := range 1000 {
		id := fmt.Sprint("t", i)
		must.NoError(t, w.broker.CreateTask(&run.Task{ID: id, Call: run.Call{Tool: "one", Arguments: []byte(`{}`)}, Schedule: []string{"s", "other"}[i%2], Owner: "me"}))
		must.NoError(t, w.broker.EndTask(id, "", 0, fault.New(fault.Raised, "x")))
	}
	j.counted()
	for x, err := range run.TasksOf(j, "s", time.Now().Add(-time.Hour)) {
		if err != nil || x.ID != "t998" || x.Ended.IsZero() {
			t.Fatal(x, err)
		}
		break
	}
	if reads, kinds := j.counted(); reads > 5 || kinds[journal.TaskCreated] > 110 {
		t.Errorf("%d reads, of %v", reads, kinds)
	}
	for x, err := range run.TasksOf(j, "s", time.Now().Add(time.Hour)) {
		t.Error("one of the time before:", x, err)
	}
}

// later is a clock of which some time has passed.
type later struct{ passed atomic.Int64 }

func (l *later) Now() time.Time { return time.Now().Add(time.Duration(l.passed.Load())) }

// A task goes on though what was between its events was dropped, and not where one of them isn't what was kept.
func TestResumeBehindRetention(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j.db")
	now := &later{}
	s, err := journal.Open(path, journal.Options{Now: now.Now})
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, s.Close()) })
	n := &notes{kept: map[string]value.Value{}, puts: map[string]int{}}
	dying := &mortal{Journal: s, takes: 8}
	w := newWorld(t, run.Options{Journal: dying}, n.perform, "toy:notes/**")
	made := w.evolve("busy", busy, "toy:notes/**")
	must.NoError(t, w.broker.CreateTask(&run.Task{ID: "r", Call: run.Call{Tool: "busy", Arguments: []byte(`"notes/"`)}, Owner: "a"}))
	others := func() {
		for range 50 {
			_, err := s.Append(journal.Written, journal.EffectOutcome, "other", "", []byte(`{}`))
			must.NoError(t, err)
		}
	}
	r := w.broker.Begin(w.tools.Snapshot(), bounds(made, "r", `"notes/"`))
	others()
	drive(t, r, made, `"notes/"`)
	others()
	now.passed.Store(int64(time.Hour))
	if got, err := s.Retain(t.Context(), journal.RetainOptions{MaxAge: time.Minute}); err != nil || got.Dropped < 99 {
		t.Fatalf("%+v, %v", got, err)
	}
	if x, err := run.FindTask(s, "r"); err != nil || x == nil || x.Over() {
		t.Fatal(x, err)
	}
	rec, err := run.ReadRecord(s, "r")
	must.NoError(t, err)
	if rec.End != nil || rec.Requests() == 0 {
		t.Fatalf("%d requests are on record, and the end %+v", rec.Requests(), rec.End)
	}
	var b *journal.Break
	if _, err := run.ReadRecord(&forged{s, "r"}, "r"); !errors.As(err, &b) {
		t.Errorf("with another event of the same number: %v", err)
	}
	w.broker = run.New(run.Options{Policy: w.policy, Journal: s, Handler: &performer{perform: n.perform}})
	again, err := w.broker.Resume(w.tools.Snapshot(), bounds(made, "r", `"notes/"`), rec)
	must.NoError(t, err)
	_, f := drive(t, again, made, `"notes/"`)
	must.NoFault(t, f)
}

// A record that others are dropped around while it is read is read all the same.
func TestReadRecordWhileRetention(t *testing.T) {
	t.Parallel()
	now := &later{}
	s, err := journal.Open(filepath.Join(t.TempDir(), "j.db"), journal.Options{Now: now.Now})
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, s.Close()) })
	w := newWorld(t, run.Options{Journal: s}, (&notes{}).perform, "toy:notes/**")
	must.NoError(t, w.broker.CreateTask(&run.Task{ID: "r", Call: run.Call{Tool: "run"}, Owner: "a"}))
	w.broker.Begin(w.tools.Snapshot(), bounds(w.evolve("busy", busy, "toy:notes/**"), "r", `"notes/"`))
	for i := range 4000 {
		id := "other"
		if i%1000 == 999 {
			id = "r"
		}
		_, err := s.Append(journal.Noted, journal.PlanAnswered, id, "", []byte(`{}`))
		must.NoError(t, err)
	}
	now.passed.Store(int64(time.Hour))
	j := &cutting{Store: s}
	if _, err := run.ReadRecord(j, "r"); err != nil || j.cuts < 6 {
		t.Errorf("%v, with %d cuts", err, j.cuts)
	}
}

// cutting is a journal of which another process drops a part each time before something is read, and the first list of what it kept.
type cutting struct {
	*journal.Store
	cuts int
}

func (j *cutting) cut() error {
	got, err := j.Retain(context.Background(), journal.RetainOptions{MaxAge: time.Minute, GradualAge: true})
	if got.Dropped > 0 {
		j.cuts++
	}
	return err
}

func (j *cutting) KeptBefore(seq uint64) (uint64, map[uint64]journal.Hash, error) {
	first := j.cuts == 0
	err := j.cut()
	to, kept, failed := j.Store.KeptBefore(seq)
	if first {
		failed = errors.Join(&journal.Break{Seq: to, Reason: "its list is gone"}, j.cut())
	}
	return to, kept, errors.Join(err, failed)
}

func (j *cutting) Read(q journal.Query) ([]journal.Event, bool, error) {
	if q.Run == "" {
		if err := j.cut(); err != nil {
			return nil, false, err
		}
	}
	return j.Store.Read(q)
}

// forged is a journal in which somebody sealed the events of a run anew.
type forged struct {
	*journal.Store
	run string
}

func (j *forged) Read(q journal.Query) ([]journal.Event, bool, error) {
	events, more, err := j.Store.Read(q)
	for i := range events {
		if e := &events[i]; e.Run == j.run && e.Kind == journal.EffectRequested {
			e.Branch = "7"
			e.Hash = e.Seal()
		}
	}
	return events, more, err
}

// raced is a cluster's journal in whose order another node has something on record just before this one.
type raced struct {
	journal.Journal
	first func()
}

func (j *raced) Barrier(context.Context) error {
	j.first()
	return nil
}

func (j *raced) Append(s journal.Stage, k journal.Kind, id, branch string, data []byte) (uint64, error) {
	j.first()
	return j.Journal.Append(s, k, id, branch, data)
}

// A run that began behind many others, and whose server is gone, is on record as lost once; also if two look at once.
func TestLoseRuns(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(b *run.Broker, gone func(string) bool){
		"alone": func(*run.Broker, func(string) bool) {},
		"another first": func(b *run.Broker, gone func(string) bool) {
			_, err := b.LoseRuns(t.Context(), nil, time.Now().Add(-time.Hour), gone)
			must.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, run.Options{}, nil)
			for i := range 1100 {
				owner := "s@lives"
				if i == 0 {
					owner = "s@gone"
				}
				_, err := w.memory.Append(journal.Written, journal.RunStarted, fmt.Sprintf("r%d", i), "", fmt.Appendf(nil, `{"owner":%q}`, owner))
				must.NoError(t, err)
			}
			gone := func(server string) bool { return server == "s@gone" }
			b := run.New(run.Options{Policy: w.policy, Journal: &raced{w.memory, sync.OnceFunc(func() { first(w.broker, gone) })}})
			over, err := b.LoseRuns(t.Context(), nil, time.Now().Add(-time.Hour), gone)
			if lost := w.events(journal.RunLost); err != nil || len(lost) != 1 || !over["r0"] {
				t.Errorf("lost: %v, over: %v, %v", lost, over, err)
			}
		})
	}
}

// asked is a cluster's journal that counts what waits for its order.
type asked struct {
	journal.Journal
	barrier, append   error // nil: it answers
	barriers, appends int
}

func (j *asked) Barrier(ctx context.Context) error {
	j.barriers++
	return cmp.Or(ctx.Err(), j.barrier)
}

func (j *asked) Append(s journal.Stage, k journal.Kind, id, branch string, data []byte) (uint64, error) {
	if j.appends++; j.append != nil {
		return 0, j.append
	}
	return j.Journal.Append(s, k, id, branch, data)
}

// Lost runs wait for the order together, and for one that is silent once; none wait for who has ended.
func TestLoseRunsTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		barrier, append error
		ended           bool
		appends, over   int
	}{
		"it answers": {appends: 3, over: 3}, "it is silent": {barrier: journal.ErrCluster}, "who looks has ended": {ended: true},
		"it falls silent": {append: journal.ErrCluster, appends: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, run.Options{}, nil)
			for _, id := range []string{"a", "b", "c"} {
				_, err := w.memory.Append(journal.Written, journal.RunStarted, id, "", []byte(`{"owner":"s@gone"}`))
				must.NoError(t, err)
			}
			j := &asked{Journal: w.memory, barrier: c.barrier, append: c.append}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.ended {
				cancel()
			}
			over, err := run.New(run.Options{Policy: w.policy, Journal: j}).LoseRuns(ctx, nil, time.Now().Add(-time.Hour), func(string) bool { return true })
			if (err == nil) != (c.over == 3) || len(over) != c.over || j.barriers != 1 || j.appends != c.appends {
				t.Errorf("%d are over, %v, after %d barriers and %d events", len(over), err, j.barriers, j.appends)
			}
		})
	}
}

// silent is a cluster's journal whose order doesn't answer: it takes what is only noted, and refuses the rest or doesn't
// know of it.
type silent struct {
	journal.Journal
	err error
}

func (j *silent) Append(s journal.Stage, k journal.Kind, id, branch string, data []byte) (uint64, error) {
	if s == journal.Noted {
		return j.Journal.Append(s, k, id, branch, data)
	}
	if errors.Is(j.err, journal.ErrUnknown) { // it comes to be recorded
		_, _ = j.Journal.Append(s, k, id, branch, data)
	}
	return 0, j.err
}

// The end of a task is recorded once when the journal can again, and a task that its client was told isn't one ends.
func TestTasksInSilence(t *testing.T) {
	t.Parallel()
	for _, failed := range []error{journal.ErrUnknown, journal.ErrCluster} {
		w := newWorld(t, run.Options{}, nil)
		made := w.evolve("one", `x => 1`)
		for _, id := range []string{"a", "b"} {
			must.NoError(t, w.broker.CreateTask(&run.Task{ID: id, Call: run.Call{Tool: "one", Arguments: []byte(`{}`)}, Owner: "me"}))
		}
		b := run.New(run.Options{Policy: w.policy, Journal: &silent{w.memory, failed}})
		drive(t, b.Begin(w.tools.Snapshot(), bounds(made, "a", `1`)), made, `1`)
		if err := b.EndTask("b", "", 0, fault.New(fault.Cancelled, "it can't go on")); err != nil && !errors.Is(err, journal.ErrUnknown) {
			t.Error(err)
		}
		if err := b.CreateTask(&run.Task{ID: "c", Call: run.Call{Tool: "one", Arguments: []byte(`{}`)}, Owner: "me"}); !errors.Is(err, failed) {
			t.Error(err)
		}
		all, err := run.Tasks(w.memory, time.Time{})
		must.NoError(t, err)
		for _, x := range all {
			if ends, _, err := w.memory.Read(journal.Query{Run: x.ID, Kind: journal.RunEnded}); err != nil || !x.Over() || len(ends) != 1 && x.ID != "c" {
				t.Errorf("%v: %s is over: %v, and has %d ends, %v", failed, x.ID, x.Over(), len(ends), err)
			}
		}
	}
}

// What a run read before its process died has its label afterwards, too.
func TestResumeKeepsFlow(t *testing.T) {
	t.Parallel()
	p := newPosted(t, `{"sources":[{"of":"toy.get:secret/**","label":"secret"}],"rules":[{"to":"toy.send","not_from":"secret"},{"to":"toy.get:open/**","not_from":"secret"}]}`, run.Options{})
	made := p.evolve("leak", `x => !toy.send({to: !toy.get("secret/a")})`, "toy:**")
	read := &performer{perform: func(context.Context, run.Act) (value.Value, int64, *fault.Fault) { return value.Str("S"), 1, nil }}
	// A request that was under way when other rules held isn't made again either.
	asks := p.evolve("asks", `x => let s = !toy.get("secret/a") in [!toy.get("open/" ++ s)]`, "toy:**")
	for i, made := range []*registry.Tool{made, asks} {
		id := "r" + strconv.Itoa(i)
		dying := run.New(run.Options{Policy: p.policy, Journal: &mortal{Journal: p.memory, takes: 3 + i}, Handler: read})
		drive(t, dying.Begin(p.tools.Snapshot(), bounds(made, id, "null")), made, "null")
		rec, err := run.ReadRecord(p.memory, id)
		if err != nil || rec.Requests() != 1+i {
			t.Fatal(rec, err)
		}
		r, err := p.broker.Resume(p.tools.Snapshot(), bounds(made, id, "null"), rec)
		must.NoError(t, err)
		if _, f := drive(t, r, made, "null"); f == nil || f.Kind != fault.Denied && (i == 0 || r.Halted() == nil) || len(p.sent) > 0 {
			t.Errorf("it ended with %v, and sent %v", f, p.sent)
		}
	}
}

// TestTakenOver: a run that another server took over while it was silent records nothing more, and what it
// recorded all the same, since it didn't know, isn't part of the record.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	for name, knows := range map[string]bool{"known": true, "known, though its beginning is dropped": true, "late": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &notes{kept: map[string]value.Value{}, puts: map[string]int{}}
			w := newWorld(t, run.Options{}, nil, "toy:notes/**")
			made := w.evolve("busy", busy, "toy:notes/**")
			j := &dropping{Journal: w.memory}
			j.drops.Store(strings.HasSuffix(name, "dropped"))
			o := run.Options{Policy: w.policy, Journal: j, Handler: &performer{perform: func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
				if a.Verb == "put" {
					if mine, err := w.broker.ResumeTask("r", "b", 0, false); err != nil || !mine && knows {
						t.Error(mine, err)
					}
					return value.Unit{}, 1, nil
				}
				return n.perform(ctx, a)
			}}}
			if knows {
				o.Act = func(context.Context) (lease.Time, error) { return lease.Now().Add(time.Hour), nil }
			}
			must.NoError(t, w.broker.CreateTask(&run.Task{ID: "r", Call: run.Call{Tool: "busy", Arguments: []byte(`"notes/"`)}, Owner: "a"}))
			start := bounds(made, "r", `"notes/"`)
			start.Owner = "a"
			r := run.New(o).Begin(w.tools.Snapshot(), start)
			drive(t, r, made, `"notes/"`)
			if got := len(w.events(journal.EffectOutcome)); r.Taken() != knows || knows && got != 1 || len(w.events(journal.RunEnded)) > 0 == knows {
				t.Fatalf("taken: %v, %d outcomes", r.Taken(), got)
			}
			rec, err := run.ReadRecord(w.memory, "r")
			if err != nil || rec.End != nil || rec.Requests() != 2 {
				t.Fatal(rec, err)
			}
			start.Owner, start.Resumed = "b", 1
			o.Handler = &performer{perform: n.perform}
			o.Journal = w.memory
			r, err = run.New(o).Resume(w.tools.Snapshot(), start, rec)
			must.NoError(t, err)
			got, f := drive(t, r, made, `"notes/"`)
			if one, err := run.FindTask(w.memory, "r"); f != nil || err != nil || one.Ended.IsZero() || one.Fault != nil {
				t.Error(f, one, err)
			}
			w.replays(made, got)
			_, err = w.memory.Append(journal.Noted, journal.RunEnded, "r", "", []byte(`{"stopped":"late","error":{"error":"timeout","message":"late"}}`))
			must.NoError(t, err)
			if end, err := run.EndEvent(w.memory, "r"); err != nil || strings.Contains(string(end.Data), "late") {
				t.Errorf("it ended by %s: %v", end.Data, err)
			}
			events, _, err := w.memory.Read(journal.Query{Run: "r"})
			if s := run.Summarize(events); err != nil || !s.Ended || s.Failure != nil || s.Stopped != "" {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

// An end by a server is none where another one had begun the plan again that the run of a task does.
func TestPlanTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, run.Options{}, nil)
	must.NoError(t, w.broker.CreateTask(&run.Task{ID: "r", Call: run.Call{Tool: "busy"}, Owner: "a"}))
	for _, e := range []struct {
		kind journal.Kind
		data string
	}{
		{journal.PlanStarted, `{"plan":"p_r","owner":"a"}`}, {journal.PlanStarted, `{"plan":"p_r","owner":"b","after":1,"resumed":1}`},
		{journal.RunEnded, `{"stopped":"late"}`}, {journal.RunEnded, `{"resumed":1,"steps":5}`},
	} {
		one, err := run.FindTask(w.memory, "r")
		if err != nil || !one.Ended.IsZero() {
			t.Errorf("before %s it has ended: %v", e.data, err)
		}
		_, err = w.memory.Append(journal.Written, e.kind, "r", "", []byte(e.data))
		must.NoError(t, err)
	}
	if one, err := run.FindTask(w.memory, "r"); err != nil || one.Ended.IsZero() {
		t.Errorf("it hasn't ended: %v", err)
	}
}

// An end of a task by a server that another has taken it over from is none.
func TestTaskEndsLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, run.Options{}, nil)
	must.NoError(t, w.broker.CreateTask(&run.Task{ID: "r", Call: run.Call{Tool: "busy"}, Owner: "a"}))
	if mine, err := w.broker.ResumeTask("r", "b", 0, false); err != nil || !mine {
		t.Fatal(mine, err)
	}
	for resumed, kind := range []fault.Kind{fault.Cancelled, fault.Raised} {
		if one, err := run.FindTask(w.memory, "r"); err != nil || !one.Ended.IsZero() {
			t.Errorf("before the end by server %d it has ended: %+v, %v", resumed, one, err)
		}
		must.NoError(t, w.broker.EndTask("r", "", resumed, fault.New(kind, "it ended")))
	}
	if one, err := run.FindTask(w.memory, "r"); err != nil || one.Fault == nil || one.Fault.Kind != fault.Raised {
		t.Errorf("it ended with %+v, %v", one, err)
	}
}

// Whose a task is is known with each event read once.
func TestTaskReadsLittle(t *testing.T) {
	t.Parallel()
	e := newEntries(9)
	j := &reader{Journal: journal.NewMemory(1<<30, nil), kinds: map[journal.Kind]int{}}
	w := newWorldOf(t, ledger, run.Options{Journal: j, Act: func(context.Context) (lease.Time, error) { return lease.Now().Add(time.Hour), nil }}, e.perform, "led:**")
	made := w.evolve("act", `k => map(i => try(!led.put({key: "k", value: i})), range(0, 10))`, "led:**")
	must.NoError(t, w.broker.CreateTask(&run.Task{ID: "r", Call: run.Call{Tool: "act", Arguments: []byte(`"k"`)}, Owner: "a"}))
	start := bounds(made, "r", `"k"`)
	start.Owner = "a"
	drive(t, w.broker.Begin(w.tools.Snapshot(), start), made, `"k"`)
	if reads, kinds := j.counted(); reads == 0 || len(e.puts) != 10 || kinds[journal.TaskCreated] > 1 || kinds[journal.EffectRequested] > 10 {
		t.Errorf("while it did %d effects %d reads were of %v", len(e.puts), reads, kinds)
	}
}
