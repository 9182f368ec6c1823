// Command figures makes a store of many tools and events and measures the page over it:
//
//	go run ./cmd/internal/ui/figures [-tools 10000] [-events 1000000]
//
// It prints how long each view takes, the first time and in the median, and its bytes. The
// time includes all that the page does: reading the store, the template, what hides.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/ui"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

func main() {
	tools := flag.Int("tools", 10_000, "how many tools there are")
	events := flag.Int("events", 1_000_000, "how many events there are")
	flag.Parse()
	debug.SetGCPercent(400) // as the command does
	if err := measure(*tools, *events); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// code is what tools are made of.
var code = []string{
	"n => n * n + %d",
	"xs => sum(map(x => x * %d, xs))",
	"o => {net: o.net, tax: o.net * %d / 100}",
	"s => length(split(s, \" \")) + %d",
	"xs =>\n  // the largest first\n  let sorted = sort(xs) in\n  take(%d, reverse(sorted))",
}

// populate makes the store.
func populate(path string, tools, events int) error {
	j, err := journal.Open(path, journal.Options{Queue: 64 << 20})
	if err != nil {
		return err
	}
	defer j.Close()
	r, _, err := registry.Open(run.Log(j), nil)
	if err != nil {
		return err
	}
	list := make([]registry.Definition, tools)
	for i := range list {
		list[i] = registry.Definition{Name: fmt.Sprintf("tool_%05d", i), Description: "One of many tools, which does what its code says.", Code: fmt.Appendf(nil, code[i%len(code)], i), Text: true}
	}
	portable, err := registry.Portables(list)
	if err == nil {
		_, _, _, err = r.Import(portable)
	}
	if err != nil {
		return err
	}
	last, err := j.Last()
	if err != nil {
		return err
	}
	all := r.Snapshot().All()
	for n, id := int(last), 0; n < events; id++ {
		t := all[id*7919%len(all)]
		name := fmt.Sprintf("figures-%d", id)
		end := `{"steps":12,"effects":1,"type":"int","result":{"bytes":3,"sha256":"` + strings.Repeat("5e", 32) + `"},"answer":"` + strings.Repeat("3e", 32) + `"}`
		if id%10 == 0 {
			end = `{"steps":9,"effects":1,"error":{"kind":"type_error","message":"mul takes a number as its first operand","in":"code","line":1,"col":6},"answer":"` + strings.Repeat("3e", 32) + `"}`
		}
		for _, e := range []struct {
			kind journal.Kind
			data string
		}{
			{journal.RunStarted, fmt.Sprintf(`{"tool":%q,"version":%d,"hash":%q,"input":"12","input_as":"data","steps":10000000,"memory":67108864,"depth":1000000,"call":{"tool":"run","arguments":"{\"tool\":\"square\",\"input\":12}"},"as_of":3,"semantics":6,"limits":{"steps":1000000000,"memory":67108864,"depth":1000000,"result":16384,"timeout_ms":60000,"effects":100000,"bytes":268435456}}`, t.Name, t.Version, t.Hash)},
			{journal.EffectRequested, fmt.Sprintf(`{"n":1,"op":"fs.read","tool":%q,"version":1,"in":"tool:words","at":"1:22","capability":"fs.read:./notes","grant":"d8347e6777708886","args":{"path":"monday.txt"}}`, t.Name)},
			{journal.EffectOutcome, fmt.Sprintf(`{"request":%d,"value":"ship the parser\n"}`, n+2)},
			{journal.RunEnded, end},
		} {
			if _, err := j.Append(journal.Noted, e.kind, name, "", []byte(e.data)); err != nil {
				return err
			}
			n++
		}
	}
	return nil
}

func open(path string) (*ui.Store, error) {
	j, err := journal.Open(path, journal.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	policy := caps.NewPolicy(nil, nil)
	tools, problems, err := registry.Open(run.Log(j), policy)
	if err = errors.Join(append(problems, err)...); err != nil {
		return nil, err
	}
	server := engine.New(engine.Options{Registry: tools, Broker: run.New(run.Options{Policy: policy, Journal: j})})
	return &ui.Store{
		Journal: j, Tools: tools, Server: server, Policy: policy, Close: func() { j.Close() },
		Walk: func(context.Context, string) (*step.Walk, run.Verdict, error) {
			program, err := core.CompileText("", []byte(million))
			if err != nil {
				return nil, run.Verdict{}, err
			}
			return step.New([]step.Round{{Program: program, Budgets: core.Budgets{Steps: 1e7, Memory: 256 << 20, Depth: 1e5}}}, 0), run.Verdict{Verdict: run.Identical}, nil
		},
		Replay: func(context.Context, string, string) (engine.Answer, run.Verdict, error) {
			return engine.Answer{}, run.Verdict{}, errors.New("there is nothing to replay")
		},
	}, nil
}

// million is a run of a million steps: lists of records, made, filtered and added up, with an effect here and there.
const million = `range(0, 15000) |> map(x => {a: x, b: [x, x + 1], c: if mod(x, 5000) == 0 then try(!fs.read(to_text(x))) else 0}) |> filter(r => r.a > 10) |> map(r => r.b[0] * 2) |> sum`

// rounds is how often each view is asked for.
const rounds = 9

func measure(tools, events int) error {
	dir, err := os.MkdirTemp("", "mcp-pif-figures-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "journal.db")
	began := time.Now()
	if err := populate(path, tools, events); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d tools and %d events were made in %v\n", tools, events, time.Since(began).Round(time.Second))
	page := ui.New(ui.Options{
		Profiles:  func() ([]string, error) { return []string{"figures"}, nil },
		Open:      func(string, bool) (*ui.Store, error) { return open(path) },
		Questions: &caps.Consents{Path: filepath.Join(dir, "consent.json")}, Revocations: caps.Revocations{Path: filepath.Join(dir, "revoked.json")},
		Servers: func() (*mcplock.Lock, error) { return mcplock.ReadOrNew(filepath.Join(dir, "mcp.lock.json")) },
		Problem: func(*mcplock.Lock, string) string { return "" },
	}, 4242)
	defer page.Close()
	link := page.Link()
	host, _, _ := strings.Cut(strings.TrimPrefix(link, "http://"), "/")
	var cookies []*http.Cookie
	get := func(path string) (*httptest.ResponseRecorder, time.Duration) {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = host
		for _, c := range cookies {
			r.AddCookie(c)
		}
		a := httptest.NewRecorder()
		began := time.Now()
		page.ServeHTTP(a, r)
		return a, time.Since(began)
	}
	a, _ := get(strings.TrimPrefix(link, "http://"+host))
	cookies = a.Result().Cookies()
	_, opened := get("/p/figures/servers")
	fmt.Printf("| view | first | median | kB |\n|---|---|---|---|\n| opening the store | %d ms | | |\n", opened.Milliseconds())
	for _, v := range []struct{ name, path string }{
		{"overview", ""}, {"tools", "tools"}, {"tools, the last page", fmt.Sprintf("tools?from=%d", tools-100)}, {"tools with a word", "tools?q=tool_0123"}, {"a tool", "tool?name=tool_00042"},
		{"runs", "runs"}, {"runs of one tool", "runs?tool=tool_00042"}, {"runs that failed", "runs?outcome=failed"}, {"runs in the middle", fmt.Sprintf("runs?before=%d", events/2)},
		{"a run", "run?id=figures-1234"}, {"authority", "authority"}, {"journal", "events"}, {"denials in the journal", "events?kind=effect.denied"}, {"an old event", "events?seq=5"},
		{"a point among a million", "steps?id=figures-1234&at=%d"}, {"the effect before it", "steps?id=figures-1234&at=%d&do=back-effect"}, {"from there out of the function", "steps?id=figures-1234&at=%d&do=out"},
	} {
		var took []time.Duration
		bytes := 0
		for i := range rounds {
			path := "/p/figures/" + v.path
			if strings.Contains(path, "%d") { // in another part of the run each time, from a point that is shown
				path = fmt.Sprintf(path, (i*390_000+999_000)%1_000_000)
				if from, _, ok := strings.Cut(path, "&do="); ok {
					get(from)
				}
			}
			a, d := get(path)
			if a.Code != http.StatusOK {
				return fmt.Errorf("%s: %d %s", v.name, a.Code, a.Body)
			}
			took, bytes = append(took, d), a.Body.Len()
		}
		first := took[0]
		slices.Sort(took)
		fmt.Printf("| %s | %.0f ms | %.0f ms | %d |\n", v.name, first.Seconds()*1000, took[rounds/2].Seconds()*1000, (bytes+500)/1000)
	}
	for _, asset := range []string{"app.js", "style.css"} {
		a, _ := get("/assets/" + asset)
		fmt.Printf("| %s | | | %.1f |\n", asset, float64(a.Body.Len())/1000)
	}
	return nil
}
