package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/queue"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/results"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// large is a call whose result is a string of n characters, é the last of each ten.
func large(n int) string {
	return fmt.Sprintf(`{"code":"join(map(i => \"012345678é\", range(0, %d)), \"\")"}`, n/10)
}

// largeText is that result as JSON.
func largeText(n int) string { return `"` + strings.Repeat("012345678é", n/10) + `"` }

// readAll follows next until there is none, and puts the parts together.
func readAll(t testing.TB, cs *mcp.ClientSession, text string, res *mcp.CallToolResult) string {
	t.Helper()
	all := text
	for range 10_000 {
		next, ok := res.StructuredContent.(map[string]any)["next"].(map[string]any)
		if !ok {
			return all
		}
		arguments, err := json.Marshal(next["arguments"])
		must.NoError(t, err)
		text, res = ask(t, cs, next["name"].(string), string(arguments))
		if res.IsError {
			t.Fatal(text)
		}
		all += text
	}
	t.Fatal("there is always more")
	return ""
}

// TestReadOn: a result that is too large to show can be read whole, by run and as a
// resource, whatever characters are in it.
func TestReadOn(t *testing.T) {
	must.SkipRacing(t)
	inEras(t, func(t *testing.T, version string) {
		cs := speaking(t, New(Options{}), version, nil)
		n := must.Full(1_000_000, 3_000_000)
		text, res := ask(t, cs, "run", large(n))
		shown := res.StructuredContent.(map[string]any)
		if res.IsError || shown["total"].(float64) != float64(n*11/10+2) || shown["preview"] != text || len(text) > preview {
			t.Fatalf("%.300s", text)
		}
		if last := res.Content[len(res.Content)-1].(*mcp.TextContent).Text; !strings.HasPrefix(last, `next: {"name":"run","arguments":{"result":"`) {
			t.Errorf("whoever reads the text alone isn't told how to read on: %.200s", last)
		}
		if all := readAll(t, cs, text, res); all != largeText(n) {
			t.Errorf("read on, it has %d bytes, expected %d", len(all), len(largeText(n)))
		}
		all, uri := "", shown["uri"].(string)
		for uri != "" {
			res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			must.NoError(t, err)
			c := res.Contents[0]
			all += c.Text
			uri, _ = c.Meta["next"].(string)
		}
		if all != largeText(n) {
			t.Errorf("as a resource it has %d bytes, expected %d", len(all), len(largeText(n)))
		}
		// One that fits is JSON, at once.
		_, res = ask(t, cs, "run", large(300_000))
		if c := readText(t, cs, res.StructuredContent.(map[string]any)["uri"].(string)); c.MIMEType != jsonText || c.Text != largeText(300_000) {
			t.Errorf("%s of %d bytes", c.MIMEType, len(c.Text))
		}
	})
}

// TestReadOnText: the result of a tool that gives text is read on as that text, not as
// JSON of it, whichever way it is read; and its run can be replayed.
func TestReadOnText(t *testing.T) {
	w := newRecordedWorld(t, 1)
	s := w.server
	want := strings.Repeat("a \"b\"\n\té€😀\\", 20_000)
	succeed(t, s, "evolve", `{"name":"page","code":"n => join(map(i => \"a \\\"b\\\"\\n\\té€😀\\\\\", range(0, n)), \"\")"}`)
	succeed(t, s, "evolve", `{"name":"hint","as":"prompt","code":"n => @page(n)","capabilities":["call:page"]}`)
	cs := session(t, s, nil)
	for _, call := range [][2]string{{"page", `{"input":20000}`}, {"run", `{"tool":"page","input":20000}`}} {
		text, res := ask(t, cs, call[0], call[1])
		shown := res.StructuredContent.(map[string]any)
		if shown["preview"] != text || shown["total"].(float64) != float64(len(want)) || len(text) > preview {
			t.Errorf("%.200v", shown)
		}
		if all := readAll(t, cs, text, res); all != want {
			t.Errorf("%s: read on, it has %d bytes, expected %d: %.100q", call[0], len(all), len(want), all)
		}
		if c := readText(t, cs, shown["uri"].(string)); c.MIMEType != plainText || c.Text != want {
			t.Errorf("%s of %d bytes", c.MIMEType, len(c.Text))
		}
		if _, v := w.replay(w.record(w.newest())); v.Verdict != run.Identical {
			t.Errorf("%s: its replay: %+v", call[0], v)
		}
	}
	if got := said(t, cs, "hint", map[string]string{"n": "2000"}); got != "user: "+want[:len(want)/10] {
		t.Errorf("a prompt says %.100q", got)
	}
}

// TestDecodeText: the beginning of a string's JSON holds a text up to the last whole
// character of it.
func TestDecodeText(t *testing.T) {
	const json, text = `"a\u001f\n\"\\é😀"`, "a\x1f\n\"\\é😀"
	if got, ok := wire.ReadText([]byte(json), false); !ok || got != text {
		t.Errorf("%q", got)
	}
	for n := 1; n < len(json); n++ {
		if got, ok := wire.ReadText([]byte(json[:n]), true); !ok || !strings.HasPrefix(text, got) || len(got) < n/6-1 {
			t.Errorf("%q: %q", json[:n], got)
		}
	}
	for _, other := range []string{"", "1", `{"a":"b`} {
		if _, ok := wire.ReadText([]byte(other), true); ok {
			t.Errorf("%q is a string", other)
		}
	}
}

// TestReadOnWrong: what isn't there to be read on is said so, and where a place is
// within a character, that character is read.
func TestReadOnWrong(t *testing.T) {
	s := New(Options{})
	a := succeed(t, s, "run", large(300_000))
	var shown struct {
		Next struct{ Arguments struct{ Result string } }
	}
	must.NoError(t, json.Unmarshal(a.Structured, &shown))
	id := shown.Next.Arguments.Result
	if a := succeed(t, s, "run", fmt.Sprintf(`{"result":%q,"from":"11"}`, id)); !strings.HasPrefix(a.Text, "é0123") || !strings.Contains(string(a.Structured), `"from":10,`) {
		t.Errorf("%.80s %.80s", a.Text, a.Structured)
	}
	for args, kind := range map[string]string{
		`{"result":"absent"}`: "invalid_request",
		`{"result":""}`:       "invalid_request",
		`{"result":5}`:        "invalid_request",
		fmt.Sprintf(`{"result":%q,"from":1000000000}`, id):       "out_of_range",
		fmt.Sprintf(`{"result":%q,"from":-1}`, id):               "invalid_request",
		fmt.Sprintf(`{"result":%q,"code":"1"}`, id):              "invalid_request",
		fmt.Sprintf(`{"result":%q}`, strings.ToLower(id)):        "invalid_request",
		`{"code":"1","from":5}`:                                  "invalid_request",
		fmt.Sprintf(`{"result":%q,"from":"x"}`, id):              "invalid_request",
		fmt.Sprintf(`{"result":%q,"from":9e99}`, id):             "out_of_range",
		fmt.Sprintf(`{"result":%q,"from":1e300,"tool":"x"}`, id): "invalid_request",
	} {
		a := s.Call(t.Context(), Call{Tool: "run", Arguments: json.RawMessage(args)})
		if a.Fault == nil || string(a.Fault.Kind) != kind || a.Fault.Hint == "" {
			t.Errorf("%s: %+v", args, a.Fault)
		}
	}
}

// TestOthersResults: a result is its server's alone, by run and by address, though servers share the room.
func TestOthersResults(t *testing.T) {
	room := results.New(0)
	ann, bob := New(Options{Results: room}), New(Options{Results: room})
	var shown struct{ URI string }
	if a := succeed(t, ann, "run", large(300_000)); json.Unmarshal(a.Structured, &shown) != nil || shown.URI == "" {
		t.Fatalf("%.200s", a.Structured)
	}
	id := strings.TrimPrefix(shown.URI, "pif://results/")
	for s, want := range map[*Server]bool{ann: true, bob: false} {
		k, _, _ := s.Result(t.Context(), id)
		a, c := do(t, s, "run", fmt.Sprintf(`{"result":%q}`, id)), resultContent(id, address{}, k)
		if (a.Fault == nil) != want || (c != nil) != want {
			t.Errorf("run: %v, resource: %v, expected %v", a.Fault, c, want)
		}
	}
}

// TestLargerThanKept: of a result larger than what is kept of one, the first part
// can be read on, and the answer says how much that is.
func TestLargerThanKept(t *testing.T) {
	s := New(Options{Limits: Limits{Timeout: time.Hour}})
	a := succeed(t, s, "run", `{"code":"join(map(i => join(map(j => \"0123456789\", range(0, 1000)), \"\"), range(0, 1800)), \"\")","steps":100000000}`)
	if !strings.Contains(strings.Join(a.More, "\n"), fmt.Sprintf("its first %d bytes can be read on", results.MaxKept)) {
		t.Errorf("%q", a.More)
	}
	var shown struct {
		Total int
		Next  struct{ Arguments struct{ Result string } }
	}
	if err := json.Unmarshal(a.Structured, &shown); err != nil || shown.Total != 18_000_002 {
		t.Fatalf("%d %v", shown.Total, err)
	}
	last := succeed(t, s, "run", fmt.Sprintf(`{"result":%q,"from":%d}`, shown.Next.Arguments.Result, results.MaxKept-10))
	if len(last.Text) != 10 || strings.Contains(string(last.Structured), "next") {
		t.Errorf("%q %s", last.Text, last.Structured)
	}
}

// asleep performs nothing until the run ends.
type asleep struct {
	steady
	entered chan struct{}
}

func (s asleep) Perform(ctx context.Context, _ run.Act) (value.Value, int64, *fault.Fault) {
	s.entered <- struct{}{}
	<-ctx.Done()
	return nil, 0, queue.Cancelled()
}

// TestRunsGiveWay: runs of one principal that sleep with all of the memory don't keep another's
// from running; the newest of them ends, and is told why.
func TestRunsGiveWay(t *testing.T) {
	const pool = 16 << 20
	core.SetPool(eval.PoolHeld() + pool)
	defer core.SetPool(eval.DefaultPool)
	w := newRecordedWorld(t, 12)
	s := asleep{entered: make(chan struct{}, 100)}
	limits := Limits{MaxMemory: 4 << 20}
	sleeps := New(Options{Registry: w.server.Registry(), Broker: run.New(run.Options{Policy: w.policy, Handler: s, Journal: w.store}), Limits: limits})
	w.evolve("sleeper", `n => (let l = map(x => x + 1, range(0, 100000)) in [!toy.get("notes/a"), length(l)])`, toyGet)
	ctx, wake := context.WithCancel(t.Context())
	answers := make(chan wire.Answer, 100)
	full := false
	begun := 0
	for ; !full && begun < 50; begun++ {
		go func() {
			answers <- sleeps.Call(ctx, Call{Tool: "run", Arguments: json.RawMessage(`{"tool":"sleeper"}`)})
		}()
		select {
		case <-s.entered:
		case a := <-answers:
			full = true
			if a.Fault == nil || a.Fault.Kind != fault.Overloaded || !strings.Contains(a.Fault.Message, "your own runs") {
				t.Errorf("one too many: %+v", a.Fault)
			}
		case <-time.After(wait.Limit(t)):
			t.Fatal("a run neither began nor was refused")
		}
	}
	if !full {
		t.Fatal("the pool isn't full")
	}
	other := New(Options{Limits: Limits{MaxMemory: limits.MaxMemory, Wait: time.Minute}})
	for range 3 {
		a := other.Call(t.Context(), Call{Tool: "run", Arguments: json.RawMessage(`{"code":"length(map(x => x + 1, range(0, 100000)))"}`)})
		if a.Fault != nil || a.Text != "100000" {
			t.Errorf("another principal: %s %+v", a.Text, a.Fault)
		}
	}
	a := wait.For(t, answers, "a run that gives way")
	if a.Fault == nil || a.Fault.Kind != fault.Overloaded || !strings.Contains(a.Fault.Message, "gave way to one of another principal") {
		t.Errorf("what gave way is told %+v", a.Fault)
	}
	wake()
	for range begun - 2 {
		if a := wait.For(t, answers, "the end of the other runs"); a.Fault == nil || a.Fault.Kind != fault.Cancelled {
			t.Errorf("another gave way, too: %+v", a.Fault)
		}
	}
}

// TestExamplesGiveWay: examples of one principal that take all of the memory don't keep another's runs from running.
func TestExamplesGiveWay(t *testing.T) {
	core.SetPool(eval.PoolHeld() + 16<<20)
	defer core.SetPool(eval.DefaultPool)
	s, other := New(Options{}), New(Options{Limits: Limits{MaxMemory: 4 << 20, Wait: time.Minute}})
	ctx, cancel := context.WithCancel(t.Context())
	var evolving sync.WaitGroup
	for range 2 {
		evolving.Go(func() {
			for ctx.Err() == nil {
				s.Call(ctx, Call{Tool: "evolve", Arguments: json.RawMessage(`{"name":"holder","code":"n => let l = map(x => [x, x + 1], range(0, n)) in [fold((a, i) => a + i, 0, range(0, n)), length(l)]","examples":[{"input":70000,"expect":[0,0]}]}`)})
			}
		})
	}
	for range 50 {
		if a := other.Call(t.Context(), Call{Tool: "run", Arguments: json.RawMessage(`{"code":"length(map(x => x + 1, range(0, 90000)))"}`)}); a.Fault != nil {
			t.Errorf("another principal: %v", a.Fault)
		}
	}
	cancel()
	evolving.Wait()
}

// TestExamplesWithoutRoom: that there is no room for an example is nothing that the code is to be corrected for.
func TestExamplesWithoutRoom(t *testing.T) {
	core.SetPool(eval.PoolHeld() + 1<<20)
	defer core.SetPool(eval.DefaultPool)
	a := New(Options{}).Call(t.Context(), Call{Tool: "evolve", Arguments: json.RawMessage(`{"name":"holder","code":"n => length(map(x => [x, x + 1], range(0, n)))","examples":[{"input":70000,"expect":70000}]}`)})
	if a.Fault == nil || a.Fault.Kind != fault.Overloaded || strings.Contains(a.Text, "Correct the code") {
		t.Errorf("it gives %s", a.Text)
	}
}

// TestLongCodeHasTurns: long code waits to be read while others' is, for a second at most; short code doesn't.
func TestLongCodeHasTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cpu := queue.NewProcessors()
		s := New(Options{Processors: cpu})
		for range max(1, runtime.GOMAXPROCS(0)/2) {
			cpu.Read(nil, s.Engine, queue.LongCode)
		}
		long := `"[1` + strings.Repeat(",1", queue.LongCode) + `]"`
		began := time.Now()
		for tool, arguments := range map[string]string{"run": `{"code":`, "evolve": `{"name":"f","code":`} {
			if a := s.Call(t.Context(), Call{Tool: tool, Arguments: json.RawMessage(arguments + `"1"}`)}); a.Fault != nil || time.Since(began) > 0 {
				t.Errorf("%s of short code: %v, after %v", tool, a.Fault, time.Since(began))
			}
		}
		var done atomic.Int32
		for tool, arguments := range map[string]string{"run": `{"code":`, "evolve": `{"name":"g","code":`} {
			go func() {
				if a := s.Call(t.Context(), Call{Tool: tool, Arguments: json.RawMessage(arguments + long + `}`)}); a.Fault != nil {
					t.Errorf("%s: %v", tool, a.Fault)
				}
				done.Add(1)
			}()
		}
		synctest.Wait()
		if n := done.Load(); n != 0 {
			t.Errorf("%d didn't wait", n)
		}
		time.Sleep(2 * queue.LongMaking)
		if n := done.Load(); n != 2 {
			t.Errorf("%d are done", n)
		}
	})
}

// shared is code of a value that takes a kilobyte of memory, and 2^60 times as much
// written out.
const shared = `fold(p => (fst(p), fst(p)), 1, range(0, 60))`

// allocated is the bytes that the process has allocated in all.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// At no place where a value leaves a machine is it written out beyond the run's memory:
// whoever asks is told of a fault, its replay comes to the same, and the server goes on.
func TestSharedValuesAreBoundedWhereverTheyLeave(t *testing.T) {
	const memory, most = 1 << 20, 64 << 20
	w := newRecordedWorld(t, 14)
	w.server = New(Options{
		Limits: Limits{MaxMemory: memory}, Trace: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Broker: run.New(run.Options{Policy: w.policy, Handler: steady{}, Journal: w.store}),
	})
	plain := New(Options{Limits: Limits{MaxMemory: memory}, Broker: w.server.broker})
	bounded := func(place string, give func() string, want string) {
		t.Helper()
		before := allocated()
		said := give()
		if took := allocated() - before; took > most || len(said) > 64<<10 || !strings.Contains(said, want) {
			t.Errorf("%s: allocates %d MiB and gives %d bytes, which lack %q: %.500s", place, took>>20, len(said), want, said)
		}
		if a := do(t, w.server, "run", `{"code":"1 + 1"}`); a.Text != "2" {
			t.Errorf("after %s 1 + 1 is %s", place, a.Text)
		}
	}
	w.evolve("denied", `k => !toy.put({key: "elsewhere", value: `+shared+`})`, toyPut)
	w.evolve("permitted", `k => !toy.put({key: "notes/a", value: [k, `+shared+`]})`, toyPut)
	empty := strings.NewReplacer(", 1,", `, "",`, "60", "26").Replace(shared) // as a text it is nothing at all
	w.evolve("empty", `k => !toy.put({key: "notes/a", value: `+empty+`})`, toyPut)
	w.evolve("some", `k => !toy.put({key: "notes/a", value: `+strings.Replace(shared, "60", "14", 1)+`})`, toyPut)
	w.evolve("unrecordable", `k => !toy.put({key: "notes/a", value: (x => x, `+empty+`)})`, toyPut)
	w.evolve("nested", `k => !toy.put({key: "notes/a", value: fold((p, i) => [p, p], k, range(0, 1100))})`, toyPut)
	w.evolve("below", `k => !toy.put({key: "notes/a", value: fold((p, i) => [p], `+shared+`, range(0, 1100))})`, toyPut)
	w.evolve("only_deep", `k => !toy.put({key: "notes/a", value: fold((p, i) => [p], k, range(0, 1100))})`, toyPut)
	w.evolve("branches", `k => par(!toy.put({key: "notes/a", value: `+shared+`}), !toy.put({key: "notes/b", value: `+shared+`}))`, toyPut)
	w.evolve("next", `k => continue(`+shared+`)`)
	w.evolve("gives", `k => `+shared)
	w.evolve("takes", `k => @gives(`+shared+`)`, "call:gives")
	for place, c := range map[string]struct{ arguments, want string }{
		"a result":                 {`{"code":"` + shared + `"}`, "result_too_large"},
		"a tool's result":          {`{"tool":"gives","input":1}`, "result_too_large"},
		"a callee's input":         {`{"tool":"takes","input":1}`, "out_of_fuel"},
		"a raised value":           {`{"code":"raise(` + shared + `)"}`, "raised"},
		"a raised value, caught":   {`{"code":"try(raise(` + shared + `))"}`, "result_too_large"},
		"a text":                   {`{"code":"length(to_text(` + shared + `))"}`, "out_of_"},
		"a wrong operand":          {`{"code":"1 + ` + shared + `"}`, "type_error"},
		"a pattern":                {`{"code":"no_match(` + shared + `)"}`, "runtime_error"},
		"a wrong argument":         {`{"code":"try(!toy.get(` + shared + `))"}`, "denied"},
		"a denied argument":        {`{"tool":"denied","input":1}`, "denied"},
		"a permitted argument":     {`{"tool":"permitted","input":1}`, "out_of_memory"},
		"an argument of nothing":   {`{"tool":"empty","input":1}`, "out_of_memory"},
		"after a function":         {`{"tool":"unrecordable","input":1}`, "a function can't be recorded"},
		"an argument of lists":     {`{"tool":"nested","input":1}`, "out_of_memory"},
		"below many lists":         {`{"tool":"below","input":1}`, "out_of_memory"},
		"a deep argument":          {`{"tool":"only_deep","input":1}`, "it nests deeper than 1000"},
		"arguments of branches":    {`{"tool":"branches","input":1}`, "out_of_memory"},
		"a continuation":           {`{"tool":"next","input":1}`, "result_too_large"},
		"a continuation, driven":   {`{"tool":"next","input":1,"drive":true,"rounds":3}`, "result_too_large"},
		"quoted code":              {`{"code":"to_code({op: \"var\", name: ` + shared + `})"}`, "type_error"},
		"a key that is a value":    {`{"code":"get({a: 1}, ` + shared + `)"}`, "type_error"},
		"a result of few steps":    {`{"code":"` + shared + `","steps":500}`, "_"},
		"a function's environment": {`{"code":"let v = ` + shared + ` in x => v"}`, "result_too_large"},
	} {
		bounded(place, func() string {
			was := do(t, w.server, "run", c.arguments)
			w.identical(w.newest(), was)
			return was.Text + string(was.Structured)
		}, c.want)
	}
	w.evolve("unknown", `k => let a = !toy.put({key: "notes/a", value: 1}) in let v = `+strings.Replace(shared, ", 1,", ", [a],", 1)+` in !toy.put({key: "notes/b", value: if k == 1 then v else to_text(v)})`, toyPut)
	w.evolve("deep", `k => let a = !toy.put({key: "notes/a", value: 1}) in !toy.put({key: "notes/b", value: fold((p, i) => (p, i), a, range(0, 10003))})`, toyPut)
	for place, c := range map[string]struct{ arguments, want string }{
		"a plan's unknowns":   {`{"tool":"unknown","input":1,"plan":true}`, "depends on what step 1 answers"},
		"what is made of one": {`{"tool":"unknown","input":2,"plan":true}`, "notes/b"},
		"a deep unknown":      {`{"tool":"deep","input":2,"plan":true}`, "takes too long to plan now"},
		"a task's result":     {`{"code":"` + shared + `","background":true}`, "result_too_large"},
		"a task's fault":      {`{"code":"raise(` + shared + `)","background":true}`, "raised"},
		"a plan's step":       {`{"tool":"permitted","input":1,"plan":true}`, "out_of_memory"},
		"a plan's result":     {`{"tool":"gives","input":1,"plan":true}`, "result_too_large"},
		"a plan's denied act": {`{"tool":"denied","input":1,"plan":true}`, "denied"},
		"a plan's answer":     {`{"tool":"some","input":1,"plan":true}`, `"args_bytes":`},
	} {
		bounded(place, func() string {
			a := do(t, w.server, "run", c.arguments)
			var later struct{ Task string }
			if json.Unmarshal(a.Structured, &later) == nil && later.Task != "" {
				a = do(t, w.server, "run", `{"task":"`+later.Task+`"}`)
			}
			return a.Text + string(a.Structured)
		}, c.want)
	}
	bounded("an example", func() string {
		a := do(t, plain, "evolve", `{"name":"shown","code":"k => `+shared+`","examples":[{"input":1,"expect":2}]}`)
		return a.Text + string(a.Structured)
	}, "example")

	asking := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	asking.server = remade(asking.server, func(o *Options) { o.Limits.MaxMemory = memory })
	asking.state("asks", `k => !ask.user({message: k, schema: {a: {type: "string", default: `+shared+`}}})`, "ask")
	asking.state("consents", `k => !toy.put({key: k, value: `+shared+`})`, toyPut)
	for place, want := range map[string]string{"asks": "out_of_memory", "consents": "denied"} {
		bounded(place, func() string {
			a := do(t, asking.server, place, `{"input":"notes/a"}`)
			return a.Text + string(a.Structured)
		}, want)
	}

	cs := speaking(t, plain, eras[len(eras)-1], nil)
	ask(t, cs, "evolve", `{"name":"says","as":"prompt","code":"who => `+shared+`","draft":true}`)
	ask(t, cs, "evolve", `{"name":"page","as":"resource","code":"x => `+shared+`","draft":true}`)
	bounded("a prompt", func() string {
		_, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "says", Arguments: map[string]string{"who": "a"}})
		return fmt.Sprint(err)
	}, "result_too_large")
	bounded("a resource", func() string {
		_, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "pif://published/page"})
		return fmt.Sprint(err)
	}, "result_too_large")
}

const (
	hello   = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`
	newMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`
)

// TestRefusals: what can't be done in this place of a session, or at all, is refused
// with the code that says so and in words that help; no client's slip is a warning
// in the log.
func TestRefusals(t *testing.T) {
	var log bytes.Buffer
	for _, test := range []struct {
		name     string
		requests []string // method and params; the last one's answer is looked at
		code     int64
		words    string
	}{
		{"a call before initialize", []string{"tools/call", `{"name":"list"}`}, jsonrpc.CodeInvalidRequest, "send initialize first"},
		{"initialize that isn't one", []string{"initialize", `{"protocolVersion":5}`}, jsonrpc.CodeInvalidParams, `"clientInfo"`},
		{"a call after it", []string{"initialize", `{"protocolVersion":5}`, "tools/list", `{}`}, jsonrpc.CodeInvalidRequest, "send initialize first"},
		{"initialize twice", []string{"initialize", hello, "initialize", hello}, jsonrpc.CodeInvalidRequest, "already"},
		{"an unknown method", []string{"initialize", hello, "tools/cal", `{}`}, jsonrpc.CodeMethodNotFound, "tools/cal"},
		{"params of the wrong kind", []string{"initialize", hello, "tools/call", `{"name":5}`}, jsonrpc.CodeInvalidParams, "name"},
		{"discover in the older protocol", []string{"initialize", hello, "server/discover", `{}`}, jsonrpc.CodeMethodNotFound, "server/discover"},
		{"a resource that isn't there", []string{"initialize", hello, "resources/read", `{"uri":"pif://nope"}`}, -32002, "not found"},
		{"the same, by whom no version was agreed with", []string{"initialize", strings.Replace(hello, "2025-11-25", "zzz", 1), "resources/read", `{"uri":"pif://nope"}`}, -32002, "not found"},
		{"ping in the newer protocol", []string{"ping", `{` + newMeta + `}`}, jsonrpc.CodeMethodNotFound, "ping"},
		{"initialize in the newer protocol", []string{"initialize", `{` + newMeta + `}`}, jsonrpc.CodeMethodNotFound, "initialize"},
		{"an unknown method, newer", []string{"nope", `{` + newMeta + `}`}, jsonrpc.CodeMethodNotFound, "nope"},
		{"a resource that isn't there, newer", []string{"resources/read", `{"uri":"pif://nope",` + newMeta + `}`}, jsonrpc.CodeInvalidParams, "not found"},
		{"a prompt that isn't there", []string{"prompts/get", `{"name":"x",` + newMeta + `}`}, jsonrpc.CodeInvalidParams, "x"},
		{"a cursor that isn't ours", []string{"tools/list", `{"cursor":"x",` + newMeta + `}`}, jsonrpc.CodeInvalidParams, "cursor"},
		{"no capabilities in _meta", []string{"tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`}, jsonrpc.CodeInvalidParams, "clientCapabilities"},
	} {
		s := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		theirs, ours := mcp.NewInMemoryTransports()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, theirs) }()
		conn, err := ours.Connect(ctx)
		must.NoError(t, err)
		var last *jsonrpc.Response
		for i := 0; i < len(test.requests); i += 2 {
			id, _ := jsonrpc.MakeID(float64(i + 1))
			must.NoError(t, conn.Write(ctx, &jsonrpc.Request{ID: id, Method: test.requests[i], Params: json.RawMessage(test.requests[i+1])}))
			m, err := conn.Read(ctx)
			must.NoError(t, err)
			last, _ = m.(*jsonrpc.Response)
		}
		var got *jsonrpc.Error
		if last == nil || !errors.As(last.Error, &got) || got.Code != test.code || !strings.Contains(strings.ToLower(got.Message), strings.ToLower(test.words)) {
			t.Errorf("%s: %+v", test.name, last)
		}
		conn.Close()
		wait.For(t, done, "the end of the session")
		cancel()
	}
	if strings.Contains(log.String(), "level=WARN") || strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("the log:\n%s", log.String())
	}
	// What isn't a client's slip is still told.
	for message, want := range map[string]int{"ping": 0, "server connect failed": 1} {
		log.Reset()
		l := slog.New(quieter{slog.NewTextHandler(&log, nil)})
		if message == "ping" {
			message = "method removed in the new protocol"
		}
		l.Error(message, "method", "ping")
		if n := strings.Count(log.String(), "level=WARN"); n != want {
			t.Errorf("%s: %s", message, log.String())
		}
	}
}

// TestNoToolNamed: who names no tool is told how to find one, not one that may not be.
func TestNoToolNamed(t *testing.T) {
	for _, tool := range []string{"describe", "history", "retire"} {
		if a := do(t, New(Options{}), tool, `{}`); a.Fault == nil || strings.Contains(a.Text, "square") || !strings.Contains(a.Text, `{"name":"list","arguments":{}}`) {
			t.Errorf("%s: %s", tool, a.Text)
		}
	}
}
