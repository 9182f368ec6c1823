package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// journals is a journal of each sort.
func journals(t *testing.T) map[string]journal.Journal {
	return map[string]journal.Journal{
		"memory": journal.NewMemory(1<<30, nil),
		"store":  openStore(t, filepath.Join(t.TempDir(), "store.db")),
	}
}

// TestLog: what is recorded of a tool is what is read back, whatever is in it.
func TestLog(t *testing.T) {
	for sort, j := range journals(t) {
		r := openTools(t, j)
		odd := registry.Definition{
			Name: "a \"b\\ <☃>\u2028é", Description: "line\n\"two\"\x00\x1b", Text: true,
			Input: json.RawMessage("{\"type\":\"object\",\"properties\":{\"input\":{\"type\":\"string\",\"pattern\":\"^[<&>\u2028]*$\",\"description\":\"{\\\"}\"}}}"),
			Code:  []byte("// a comment\nx => \"\u2028<&>\\\\\" ++ code_of(\"lib\")"),
			Examples: []registry.Example{{
				Input: json.RawMessage("{ \"b\" : \"<\u2028>\" ,\n \"a\": 1.50 }"), Error: "type_error",
				Effects: []registry.ExampleEffect{{Op: "fs.read", Args: json.RawMessage("null"), Value: json.RawMessage(`"x"`)}, {Op: "x", Error: "denied", Message: "no\n"}},
			}},
		}
		page := definition("page", `"p"`)
		page.As = registry.AsResource
		for _, d := range []registry.Definition{page, definition("lib", `"l"`), odd, definition("lib", `"m"`), definition("gone", "1")} {
			if _, err := r.Evolve(d, registry.Edit{}); err != nil {
				t.Fatal(sort, err)
			}
		}
		must.Succeed(t)(r.Retire("gone", registry.Edit{}))
		must.Succeed(t)(r.Rollback("lib", 1, registry.Edit{}))
		again := openTools(t, j)
		for _, tool := range r.Snapshot().All() {
			if got, _ := again.Snapshot().Get(tool.Name); tool.Time.IsZero() || !got.Time.Equal(tool.Time) {
				t.Errorf("%s: %s was made at %v, then at %v", sort, tool.Name, tool.Time, got.Time)
			}
		}
		if got, want := string(registry.Encode(again.Snapshot())), string(registry.Encode(r.Snapshot())); got != want {
			t.Errorf("%s: read back it is\n%s\nnot\n%s", sort, got, want)
		}
		got, ok := again.Snapshot().Get(odd.Name)
		if !ok || string(got.Source) != string(odd.Code) || !got.Text || got.Description != odd.Description || got.Bound["lib"].Version != 1 {
			t.Errorf("%s: %+v", sort, got)
		}
		if got.Examples[0].Error != "type_error" || len(got.Examples[0].Effects) != 2 || string(got.Examples[0].Effects[0].Args) != "null" ||
			got.Examples[0].Effects[1].Message != "no\n" || !strings.Contains(string(got.Examples[0].Input), "1.50") {
			t.Errorf("%s: %s", sort, got.Examples)
		}
		if again.Snapshot().Seq() != r.Snapshot().Seq() || again.Snapshot().Len() != 3 {
			t.Errorf("%s: %d tools as of %d", sort, again.Snapshot().Len(), again.Snapshot().Seq())
		}
		changes, more, err := again.History("lib", 0, 2)
		if err != nil || !more || len(changes) != 2 || changes[0].Kind != registry.RolledBack || changes[0].From != 1 || changes[0].Version != 3 ||
			changes[0].Time.IsZero() || changes[1].Kind != registry.Evolved || changes[1].Version != 2 {
			t.Errorf("%s: %+v %v %v", sort, changes, more, err)
		}
		if changes, _, err := again.History("gone", 0, 9); err != nil || changes[0].Kind != registry.Retired || changes[0].Version != 1 {
			t.Errorf("%s: %+v %v", sort, changes, err)
		}
		then, err := again.At(got.Seq)
		if lib, _ := then.Get("lib"); err != nil || then.Len() != 3 || lib.Version != 1 {
			t.Errorf("%s: then there were %d tools: %v", sort, then.Len(), err)
		}
		if made, err := again.Evolve(definition("gone", "2"), registry.Edit{}); err != nil || made.Version != 2 {
			t.Errorf("%s: %+v %v", sort, made, err)
		}
	}
}

// TestForgedEvents: events that nobody's evolve wrote are left out and do no harm.
func TestForgedEvents(t *testing.T) {
	for sort, j := range journals(t) {
		r := openTools(t, j)
		good, err := r.Evolve(definition("good", "1"), registry.Edit{})
		must.NoError(t, err)
		forged := []string{
			`{"tool":"odd","version":1,"hash":"` + good.Hash + `","source":"1","facts":{"semantics":6,"input":{"a" 1},"output":{}}}`, // no JSON: what was found out of it is found out again
			`{"tool":"x","version":"one"}`, `{"tool":"y","version":1,"source":{"bytes":9,"sha256":"ab"}}`, `{"tool":7,"version":1}`, `{"version":1}`,
			`{"tool":"z","version":1e99,"source":"1"}`, `{"tool":"v","version":1,"hash":"","source":"1"}`,
			`{"tool":"w","version":1,"hash":"` + strings.Repeat("0", 64) + `","source":"x => !fs.read(x)","form":"text","declared":["fs:."],"capabilities":["fs:/"]}`,
			`{"tool":"w2","version":1,"hash":"` + strings.Repeat("0", 64) + `","source":"1","bound":[{"tool":"good","version":18446744073709551615,"event":-1}]}`,
			`{"tool":"big","version":1,"hash":"` + strings.Repeat("0", 64) + `","source":"` + strings.Repeat("x", 2<<20) + `"}`,
			`{"tool":"deep","version":1,"hash":"` + strings.Repeat("0", 64) + `","source":"1","examples":[{"input":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}]}`,
		}
		for i, data := range forged {
			if _, err := j.Append(journal.Written, journal.ToolEvolved, "", "", []byte(data)); (err != nil) != (i == 0 && sort == "store") { // which takes JSON alone
				t.Fatal(sort, err)
			}
		}
		if _, err := r.Refresh(); err != nil {
			t.Error(sort, err)
		}
		opened, problems, err := registry.Open(run.Log(j), nil)
		if err != nil || len(problems) == 0 {
			t.Fatal(sort, err, problems)
		}
		for _, r := range []*registry.Registry{r, opened} {
			for _, tool := range r.Snapshot().All() {
				if !json.Valid(tool.InputSchema()) {
					t.Errorf("%s: %s has the schema %s", sort, tool.Name, tool.InputSchema())
				}
				if tool.Name != "good" && tool.Name != "odd" && (len(tool.Held) > 0 || tool.State == registry.StateReady && tool.Problem() == nil) {
					t.Errorf("%s: %+v is there", sort, tool)
				}
			}
			if _, ok := r.Snapshot().Get("good"); !ok {
				t.Errorf("%s: another tool is gone", sort)
			}
		}
		for _, name := range []string{"x", "w", "w2", "big", "new"} {
			if made, err := opened.Evolve(definition(name, "1"), registry.Edit{}); err != nil || made.Version < 1 {
				t.Errorf("%s: %s: %+v %v", sort, name, made, err)
			}
		}
	}
}

// count adds one to a tool that gives a number, so many times, and each time only
// if nobody else did meanwhile; it makes versions of another without asking. Any
// error but a conflict is one.
func count(r *registry.Registry, times int, who string) error {
	for done := 0; done < times; {
		if _, err := r.Refresh(); err != nil {
			return err
		}
		n, version := 0, 0
		if t, ok := r.Snapshot().Get("counter"); ok {
			version = t.Version
			n, _ = strconv.Atoi(string(t.Source))
		}
		_, err := r.Evolve(definition("counter", strconv.Itoa(n+1)), registry.Edit{IfVersion: &version})
		if f, ok := errors.AsType[*fault.Fault](err); ok && f.Kind == fault.Conflict && strings.Contains(f.Hint, "if_version") {
			continue
		}
		if err == nil {
			done++
			_, err = r.Evolve(definition("shared", strconv.Quote(fmt.Sprint(who, done))), registry.Edit{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// counted checks that nothing of what so many did was lost.
func counted(t *testing.T, r *registry.Registry, total int) {
	t.Helper()
	must.Succeed(t)(r.Refresh())
	counter, _ := r.Snapshot().Get("counter")
	shared, _ := r.Snapshot().Get("shared")
	if counter == nil || shared == nil || string(counter.Source) != strconv.Itoa(total) || counter.Version != total || shared.Version != total {
		t.Fatalf("%+v\n%+v\nafter %d", counter, shared, total)
	}
	for _, name := range []string{"counter", "shared"} {
		changes, more, err := r.History(name, 0, 10*total)
		if err != nil || more || len(changes) != total {
			t.Fatalf("%s has %d changes, not %d: %v", name, len(changes), total, err)
		}
		for i, c := range changes {
			if c.Version != total-i {
				t.Fatalf("%s: version %d where %d should be", name, c.Version, total-i)
			}
		}
	}
}

// TestWriters: of eight writers, two to a server, on one store no update is lost,
// and no lock is seen.
func TestWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	const writers, times = 8, 15
	var wg sync.WaitGroup
	var last *registry.Registry
	for s := range writers / 2 {
		r := openTools(t, openStore(t, path))
		last = r
		for w := range 2 {
			wg.Go(func() {
				if err := count(r, times, fmt.Sprint(s, w)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	counted(t, last, writers*times)
	counted(t, openTools(t, openStore(t, path)), writers*times)
}

const writerStore, writerTimes = "MCP_PIF_TEST_WRITER_STORE", 10

// TestWriterProcess is what a process of TestWriterProcesses does.
func TestWriterProcess(t *testing.T) {
	path := os.Getenv(writerStore)
	if path == "" {
		t.Skip("it is started by TestWriterProcesses")
	}
	must.NoError(t, count(openTools(t, openStore(t, path)), writerTimes, fmt.Sprint(os.Getpid())))
}

// TestWriterProcesses is TestWriters with processes.
func TestWriterProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	r := openTools(t, openStore(t, path))
	self, err := os.Executable()
	must.NoError(t, err)
	const writers = 8
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			cmd := exec.Command(self, "-test.run=^TestWriterProcess$", "-test.count=1")
			cmd.Env = append(os.Environ(), writerStore+"="+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	counted(t, r, writers*writerTimes)
}

// refusing refuses one request for an effect.
type refusing struct {
	journal.Journal
	nth, seen int
}

func (j *refusing) AppendLater(s journal.Stage, k journal.Kind, id, branch string, data []byte) func() (uint64, error) {
	if k == journal.EffectRequested {
		if j.seen++; j.seen == j.nth {
			return func() (uint64, error) { return 0, errors.New("the disk is full") }
		}
	}
	return j.Journal.AppendLater(s, k, id, branch, data)
}

// Of a round's effects, the one that can't be recorded isn't performed; the others
// are, each when its request has its number.
func TestRoundWithoutItsRecord(t *testing.T) {
	for _, name := range []string{"memory", "file"} {
		for nth := 1; nth <= 4; nth++ {
			var j journal.Journal = journal.NewMemory(1<<20, nil)
			if name == "file" {
				store, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"), journal.Options{})
				must.NoError(t, err)
				defer store.Close()
				j = store
			}
			var performed, unnumbered atomic.Int64
			w := newWorld(t, run.Options{Journal: &refusing{Journal: j, nth: nth}}, func(ctx context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
				performed.Add(1)
				events, _, err := j.Read(journal.Query{Kind: journal.EffectRequested, Limit: 10, Last: true})
				if err != nil || len(events) != 3 {
					unnumbered.Add(1)
				}
				return echo(ctx, a)
			}, "toy:notes/**")
			w.evolve("four", `k => map(x => has(x, "ok"), par(try(!toy.get(k ++ "1")), try(!toy.get(k ++ "2")), try(!toy.get(k ++ "3")), try(!toy.get(k ++ "4"))))`, "toy.get:notes/**")
			want := []string{"true", "true", "true", "true"}
			want[nth-1] = "false"
			if got, f := w.run(context.Background(), "four", `"notes/a"`); f != nil || got != "["+strings.Join(want, ",")+"]" || performed.Load() != 3 || unnumbered.Load() != 0 {
				t.Errorf("%s, without request %d: %s, %v; %d were performed, %d of them before the record", name, nth, got, f, performed.Load(), unnumbered.Load())
			}
		}
	}
}
