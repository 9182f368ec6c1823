package mcpserver

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/run"
)

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
	bounded("an example", func() string {
		a := do(t, plain, "evolve", `{"name":"shown","code":"k => `+shared+`","examples":[{"input":1,"expect":2}]}`)
		return a.Text + string(a.Structured)
	}, "example")

	asking := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	asking.server.limits.MaxMemory = memory
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
