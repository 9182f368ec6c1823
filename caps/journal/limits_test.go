package journal_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// version is the data of an event that evolves a tool, of some size, bound to
// other versions.
func version(tool string, n, size int, bound ...string) []byte {
	for i, b := range bound {
		name, v, _ := strings.Cut(b, "@")
		bound[i] = fmt.Sprintf(`{"tool":%q,"version":%s}`, name, v)
	}
	return fmt.Appendf(nil, `{"tool":%q,"version":%d,"bound":[%s],"source":%q}`, tool, n, strings.Join(bound, ","), strings.Repeat("x", size))
}

func change(t *testing.T, j journal.Journal, k journal.Kind, data []byte) uint64 {
	t.Helper()
	after, err := j.Changed()
	must.NoError(t, err)
	seq, err := j.Change(after, k, data)
	must.NoError(t, err)
	return seq
}

// The tools and all that was ever done to them stay, however old, without anybody
// asking for it; a journal that says nothing of a tool doesn't.
func TestRetainKeepsTools(t *testing.T) {
	a := newAged(t, 0)
	for i := range 200 {
		switch i % 20 {
		case 3:
			change(t, a.Store, journal.ToolEvolved, about("one", i/20+1))
		case 4:
			change(t, a.Store, []journal.Kind{journal.ToolEvolved, journal.ToolRetired, journal.ToolRolledBack}[i/20%3], about("two", i/20+1))
		case 5:
			add(t, a.Store, journal.Synced, journal.ToolRefused, `{"tool":"one"}`)
		case 6:
			add(t, a.Store, journal.Synced, journal.ToolEvolved, `{}`)
		default:
			appendRun(t, a.Store, fmt.Sprint("r", i), 10)
		}
	}
	a.pass(24 * time.Hour)
	appendRun(t, a.Store, "last", 10)
	changes := all(t, a.Store, journal.Query{Tool: "one", Changes: true})
	changes = append(changes, all(t, a.Store, journal.Query{Tool: "two"})...)
	newest, err := journal.Newest(a, 100)
	must.NoError(t, err)
	r := retain(t, a.Store, journal.RetainOptions{MaxAge: time.Hour})
	if r.Dropped < 400 || r.Kept != 20 || r.Bytes < 100*int64(r.Dropped) {
		t.Errorf("%+v", r)
	}
	left := all(t, a.Store, journal.Query{Tool: "one"})
	left = append(left, all(t, a.Store, journal.Query{Tool: "two"})...)
	if seqs(left) != seqs(changes) {
		t.Errorf("the changes %s are left of %s", seqs(left), seqs(changes))
	}
	if again, err := journal.Newest(a, 100); err != nil || seqs(again) != seqs(newest) {
		t.Errorf("the newest up to 100 are %s, %v; they were %s", seqs(again), err, seqs(newest))
	}
	if n := len(all(t, a.Store, journal.Query{})); n != 20+1+3 {
		t.Errorf("%d events are left", n)
	}
	verified(t, a.Store)
	if r := retain(t, a.Store, journal.RetainOptions{MaxBytes: 1 << 20}); r.Dropped != 0 {
		t.Errorf("%+v", r)
	}
}

// What stays however old doesn't keep what is dropped bit by bit.
func TestRetainGradually(t *testing.T) {
	a := newAged(t, 0)
	for i := range 100 {
		change(t, a.Store, journal.ToolEvolved, about("one", i+1))
	}
	for i := range 100 {
		appendRun(t, a.Store, fmt.Sprint("r", i), 10)
	}
	a.pass(24 * time.Hour)
	appendRun(t, a.Store, "last", 10)
	for tries := 0; retain(t, a.Store, journal.RetainOptions{MaxAge: time.Hour, GradualAge: true}).Older; tries++ {
		if tries == 100 {
			t.Fatal("it never ends")
		}
	}
	if n := len(all(t, a.Store, journal.Query{})); n != 100+1+3 {
		t.Errorf("%d events are left", n)
	}
}

// So do runs that may go on yet: they neither end it nor are what is looked at again and again.
func TestTrimOpenRuns(t *testing.T) {
	a := newAged(t, 0)
	put := func(run string, n int, k journal.Kind) {
		for range n {
			_, err := a.Append(journal.Written, k, run, "", []byte(`{}`))
			must.NoError(t, err)
		}
	}
	put("task", 1, journal.TaskCreated)
	put("task", 9, journal.EffectOutcome)
	put("other", 50, journal.EffectOutcome)
	a.pass(2 * time.Hour)
	put("last", 1, journal.EffectOutcome)
	if r := retain(t, a.Store, journal.RetainOptions{MaxAge: time.Hour, GradualAge: true}); r.Dropped < 6 || r.Dropped > 7 || !r.Older {
		t.Errorf("at first %+v", r)
	}
	if r, err := a.Trim(ctx, journal.Limits{Age: time.Hour}, false); err != nil || r.Dropped < 43 || r.Kept != 10 || r.Older {
		t.Errorf("then %+v, %v", r, err)
	}
	a.pass(2 * time.Hour)
	sqlExec(t, raw(t, a.path), `UPDATE events SET branch='x' WHERE seq=1`) // it would find this
	if r, err := a.Trim(ctx, journal.Limits{Age: time.Hour}, false); err != nil || r != (journal.Retained{}) {
		t.Errorf("nothing but what may go on is too old: %+v, %v", r, err)
	}
}

// Runs that may go on yet stay, whole, as long as they may and there is room for them; all others go.
func TestRetainKeepsOpenRuns(t *testing.T) {
	a := newAged(t, 0)
	put := func(run string, kinds ...journal.Kind) {
		for _, k := range kinds {
			_, err := a.Append(journal.Written, k, run, "", []byte(`{"pad":"0123456789"}`))
			must.NoError(t, err)
		}
	}
	put("begun", journal.RunStarted, journal.PlanMade, journal.PlanStarted)
	put("ended", journal.RunStarted, journal.TaskCreated, journal.RunEnded)
	put("cancelled", journal.RunStarted, journal.TaskCreated, journal.TaskCancelled)
	put("call", journal.RunStarted)
	a.pass(23 * time.Hour)
	put("task", journal.RunStarted, journal.TaskCreated, journal.EffectRequested)
	put("made", journal.RunStarted, journal.PlanMade)
	for i := range 100 {
		appendRun(t, a.Store, fmt.Sprint("r", i), 30)
	}
	put("task", journal.EffectOutcome)
	for kind, data := range map[journal.Kind]string{journal.TaskResumed: `{"owner":"b","after":0,"resumed":1}`, journal.RunEnded: `{"stopped":"late"}`} {
		_, err := a.Append(journal.Written, kind, "task", "", []byte(data)) // by one that another took it over from
		must.NoError(t, err)
	}
	large := bytes.Repeat([]byte("x"), 1000)
	put("large", journal.RunStarted, journal.TaskCreated)
	for range 100 {
		_, err := a.Append(journal.Written, journal.EffectOutcome, "large", "", append(append([]byte(`{"pad":"`), large...), `"}`...))
		must.NoError(t, err)
	}
	left := func() string {
		runs := map[string]int{}
		for _, e := range all(t, a.Store, journal.Query{}) {
			runs[e.Run]++
		}
		delete(runs, "")
		if runs["large"] < 102 { // some of the newest
			delete(runs, "large")
		}
		verified(t, a.Store)
		return fmt.Sprint(runs)
	}
	appendRun(t, a.Store, "last", 30)
	retain(t, a.Store, journal.RetainOptions{MaxBytes: 20_000}) // large has more than a quarter
	if got := left(); got != "map[begun:3 last:3 made:2 task:6]" {
		t.Errorf("of the size that is wanted there are %s", got)
	}
	for i, c := range []struct {
		pass time.Duration
		want string
	}{{30 * time.Minute, "map[begun:3 last:3 made:2 task:6]"}, {time.Hour, "map[last:3 task:6]"}, {24 * time.Hour, "map[last:3]"}} {
		a.pass(c.pass)
		appendRun(t, a.Store, "last", 30)
		retain(t, a.Store, journal.RetainOptions{MaxAge: time.Minute})
		if got := left(); got != c.want {
			t.Errorf("step %d: %s, not %s", i, got, c.want)
		}
	}
}

// Where the history takes too much of the limit, the tools there are stay, those
// they need, and what runs need that stay; the newest runs have their part.
func TestRetainNeededTools(t *testing.T) {
	s := newStore(t)
	const large = 3000
	stay := map[uint64]string{}
	old := func(why string, seq uint64) {
		if why != "" {
			stay[seq] = why
		}
	}
	old("what leaf@1 was bound to", change(t, s, journal.ToolEvolved, version("deep", 1, large)))
	old("what used@1 is bound to", change(t, s, journal.ToolEvolved, version("leaf", 1, large, "deep@1")))
	old("", change(t, s, journal.ToolEvolved, version("leaf", 2, large)))
	old("what top is bound to", change(t, s, journal.ToolEvolved, version("used", 1, large, "leaf@1")))
	old("", change(t, s, journal.ToolEvolved, version("used", 2, large, "used@1")))
	old("", change(t, s, journal.ToolEvolved, version("top", 1, large, "used@2")))
	old("the newest of top", change(t, s, journal.ToolEvolved, version("top", 2, large, "used@1", "nobody@7")))
	old("", change(t, s, journal.ToolEvolved, version("gone", 1, large)))
	old("that gone was retired", change(t, s, journal.ToolRetired, about("gone", 1)))
	old("the newest of used", change(t, s, journal.ToolEvolved, version("used", 3, large)))
	old("the newest of deep, bound to itself", change(t, s, journal.ToolRolledBack, version("deep", 2, large, "deep@2")))
	for i := range 20 {
		change(t, s, journal.ToolEvolved, version("leaf", 3+i, large))
	}
	old("leaf as runs saw it that stay", change(t, s, journal.ToolEvolved, version("leaf", 23, large)))
	for i := range 200 {
		appendRun(t, s, fmt.Sprint("r", i), 30)
	}
	change(t, s, journal.ToolEvolved, version("leaf", 24, large))
	appendRun(t, s, "last", 30)
	const limit = 90_000
	dry := retain(t, s, journal.RetainOptions{MaxBytes: limit, DryRun: true})
	if n := len(all(t, s, journal.Query{})); n != 11+21+200*3+1+3 {
		t.Fatalf("a dry run left %d events", n)
	}
	r := retain(t, s, journal.RetainOptions{MaxBytes: limit})
	if dry.Through != r.Through || dry.Dropped != r.Dropped || dry.Kept != r.Kept || dry.Bytes != r.Bytes || r.Dropped == 0 {
		t.Errorf("a dry run said %+v, it was %+v", dry, r)
	}
	left := map[uint64]bool{}
	size := 0
	for _, e := range all(t, s, journal.Query{}) {
		left[e.Seq] = true
		size += 160 + len(e.Run) + len(e.Data)
	}
	for seq, why := range stay {
		if !left[seq] {
			t.Errorf("event %d is gone: %s", seq, why)
		}
	}
	if int(r.Kept) != len(stay) {
		t.Errorf("%d events stay of what is old, not only the %d that are needed", r.Kept, len(stay))
	}
	if size > limit+2000 || size < limit*2/3 {
		t.Errorf("%d bytes are left of at most %d", size, limit)
	}
	verified(t, s)
	// Less than the tools need: they stay, and the newest of the rest.
	r = retain(t, s, journal.RetainOptions{MaxBytes: 20_000})
	if runs := len(all(t, s, journal.Query{Kind: "run"})); runs < 4 || r.Dropped == 0 {
		t.Errorf("%+v, %d events of runs are left", r, runs)
	}
	if newest, err := journal.Newest(s, 0); err != nil || len(newest) != 5 {
		t.Errorf("%d tools are left, %v", len(newest), err)
	}
	verified(t, s)
}

// So does what runs that may go on yet began with, those that saw the newest tools first, up to a quarter of the limit.
func TestRetainToolsOfOpenRuns(t *testing.T) {
	s := newStore(t)
	const large, limit = 3000, 90_000
	begin := func(run, data string) {
		for _, k := range []journal.Kind{journal.TaskCreated, journal.RunStarted} {
			_, err := s.Append(journal.Written, k, run, "", []byte(data))
			must.NoError(t, err)
		}
	}
	stay := []uint64{change(t, s, journal.ToolEvolved, version("leaf", 1, large)), change(t, s, journal.ToolEvolved, version("used", 1, large, "leaf@1"))}
	begin("runs", `{"tool":"used","version":1,"as_of":0}`)
	stay = append(stay, change(t, s, journal.ToolEvolved, version("used", 2, large)))
	var saw []uint64
	for i := range 20 {
		saw = append(saw, change(t, s, journal.ToolEvolved, version("leaf", i+2, large)))
		begin(fmt.Sprint("saw", i), fmt.Sprintf(`{"code":"1","as_of":%d}`, saw[i]))
	}
	for i := range 5 {
		change(t, s, journal.ToolEvolved, version("leaf", i+22, large))
	}
	for i := range 200 {
		appendRun(t, s, fmt.Sprint("r", i), 30)
	}
	if r := retain(t, s, journal.RetainOptions{MaxBytes: limit}); r.Dropped == 0 {
		t.Fatalf("%+v", r)
	}
	left := map[uint64]bool{}
	size := 0
	for _, e := range all(t, s, journal.Query{}) {
		left[e.Seq] = true
		size += 160 + len(e.Run) + len(e.Data)
	}
	for i, seq := range append(stay, saw[18:]...) {
		if !left[seq] {
			t.Errorf("%d: event %d is gone", i, seq)
		}
	}
	if left[saw[0]] || size > limit+2000 {
		t.Errorf("%d bytes are left, with the oldest tools that were seen: %t", size, left[saw[0]])
	}
	verified(t, s)
}

// A store is brought within its limits, says so, and is left alone then.
func TestTrim(t *testing.T) {
	a := newAged(t, 0)
	size := func() int64 {
		all(t, a.Store, journal.Query{Limit: 1, Last: true}) // what is noted is written
		sqlExec(t, raw(t, a.path), `PRAGMA wal_checkpoint(TRUNCATE)`)
		info, err := os.Stat(a.path)
		must.NoError(t, err)
		return info.Size()
	}
	trim := func(l journal.Limits, dry bool) journal.Retained {
		t.Helper()
		r, err := a.Trim(ctx, l, dry)
		must.NoError(t, err)
		return r
	}
	for i := range 200 { // a third of what the limit will be
		change(t, a.Store, journal.ToolEvolved, version("t", i+1, 5000))
	}
	for i := range 2000 {
		appendRun(t, a.Store, fmt.Sprint("r", i), []int{10, 2200, 5000}[i%3])
	}
	before := size()
	limit := before / 3
	for _, l := range []journal.Limits{{}, {Size: before + 1}, {Age: 100 * time.Hour}} {
		if r := trim(l, false); r != (journal.Retained{}) {
			t.Errorf("%+v: %+v", l, r)
		}
	}
	dry := trim(journal.Limits{Size: limit}, true)
	if dry.Dropped == 0 || size() < before {
		t.Errorf("a dry run: %+v", dry)
	}
	reader := openStore(t, a.path, journal.Options{ReadOnly: true})
	if r, err := reader.Trim(ctx, journal.Limits{Size: limit}, true); err != nil || r != dry {
		t.Errorf("a dry run of a reader: %+v, %v", r, err)
	}
	r := trim(journal.Limits{Size: limit}, false)
	if after := size(); after > limit || after < limit*3/4 || r.Dropped != dry.Dropped || r.Kept != 200 {
		t.Errorf("of %d bytes %d are left, the limit is %d; %+v", before, after, limit, r)
	}
	if r := trim(journal.Limits{Size: limit}, false); r != (journal.Retained{}) {
		t.Errorf("again: %+v", r)
	}
	// By age, not before it is worth it.
	a.pass(100 * time.Hour)
	change(t, a.Store, journal.ToolEvolved, version("t", 201, 10))
	a.pass(60 * time.Minute)
	appendRun(t, a.Store, "young", 10)
	if r := trim(journal.Limits{Age: 100*time.Hour + 30*time.Minute}, false); r != (journal.Retained{}) {
		t.Errorf("a little too old: %+v", r)
	}
	if r := trim(journal.Limits{Age: 90 * time.Minute}, false); r.Dropped < 100 || r.Kept != 200 {
		t.Errorf("too old: %+v", r)
	}
	if n := len(all(t, a.Store, journal.Query{})); n != 205 {
		t.Errorf("%d events are left", n)
	}
	verified(t, a.Store)
	// What stays is not looked at again and again: it would find this.
	sqlExec(t, raw(t, a.path), `UPDATE events SET run='x' WHERE seq=1`)
	a.pass(10 * time.Minute)
	if r := trim(journal.Limits{Age: 60 * time.Minute}, false); r != (journal.Retained{}) {
		t.Errorf("nothing but tools is too old: %+v", r)
	}
}

// While others append, a store stays within its limits by itself, and says what it
// does; it ends with the context or the store.
func TestKeepWithin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	var mu sync.Mutex
	var log bytes.Buffer
	s, err := journal.Open(path, journal.Options{Log: slog.New(slog.NewTextHandler(locked{&mu, &log}, nil))})
	must.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.KeepWithinEvery(ctx, journal.Limits{Size: 200_000}, time.Millisecond)
	}()
	first := change(t, s, journal.ToolEvolved, version("t", 1, 100))
	for i := 0; ; i++ {
		appendRun(t, s, fmt.Sprint("r", i), 100)
		if i%10 == 0 {
			if cut := all(t, s, journal.Query{Kind: journal.Checkpoint}); len(cut) > 0 && cut[0].Seq > 1500 {
				break
			}
		}
		if i > 100_000 {
			t.Fatal("nothing is dropped")
		}
	}
	verified(t, s)
	if newest, err := journal.Newest(s, 0); err != nil || len(newest) != 1 || newest[0].Seq != first {
		t.Errorf("the tools are %s, %v", seqs(newest), err)
	}
	must.NoError(t, s.Close())
	wait.For(t, ended, "keeping ended")
	mu.Lock()
	if said := log.String(); !strings.Contains(said, "were dropped") || strings.Contains(said, "ERROR") {
		t.Errorf("the log says %s", said)
	}
	mu.Unlock()

	// What stops it is said once.
	sqlExec(t, raw(t, path), `UPDATE events SET run='x' WHERE seq=(SELECT max(seq)-5 FROM events)`)
	var errs bytes.Buffer
	broken := openStore(t, path, journal.Options{Log: slog.New(slog.NewTextHandler(locked{&mu, &errs}, nil))})
	until, cancel := context.WithCancel(ctx)
	defer cancel()
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		broken.KeepWithinEvery(until, journal.Limits{Size: 1000}, time.Millisecond)
	}()
	said := func() int {
		mu.Lock()
		defer mu.Unlock()
		return strings.Count(errs.String(), "can't be dropped")
	}
	for said() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // for it to say so again
	if n := said(); n != 1 {
		t.Errorf("it was said %d times", n)
	}
	cancel()
	wait.For(t, ended, "keeping ended")
}

// locked is a writer that a log and a test may use at once.
type locked struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// appendRun appends three events of a run, from its start to its end.
func appendRun(t *testing.T, j journal.Journal, run string, size int) {
	t.Helper()
	for _, k := range []journal.Kind{journal.RunStarted, journal.EffectRequested, journal.RunEnded} {
		must.Succeed(t)(j.Append(journal.Noted, k, run, "", fmt.Appendf(nil, `{"pad":%q}`, strings.Repeat("x", size))))
	}
}
