package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// notes is a kind of capability whose plugin is this test.
var notes = &caps.Manifest{
	Kind: "note", Version: "1", Doc: "notes", Algebra: caps.Segments,
	Verbs: []caps.Verb{{Name: "get", Flags: caps.Flags{ReadOnly: true, Idempotent: true}}, {Name: "put", Flags: caps.Flags{Destructive: true}}},
	Operations: []caps.Operation{
		{Name: "note.get", Verb: "get", Doc: "gives a note", Result: "any", Params: []caps.Param{{Name: "key", Doc: "its name", Type: "string", Main: true, Designates: true}}},
		{Name: "note.put", Verb: "put", Doc: "keeps a note", Result: "unit", Params: []caps.Param{{Name: "key", Doc: "its name", Type: "string", Designates: true}, {Name: "text", Doc: "the note", Type: "any"}}},
	},
}

// kept is the notes.
type kept struct {
	mu    sync.Mutex
	notes map[string]value.Value
}

func (*kept) Prepare(*caps.Grant) {}

func (k *kept) Perform(_ context.Context, a run.Act) (value.Value, int64, *fault.Fault) {
	k.mu.Lock()
	defer k.mu.Unlock()
	args := map[string]value.Value{}
	for _, f := range a.Args.(*value.Record).Fields {
		args[f.Key] = value.Force(f.Value)
	}
	name := string(args["key"].(value.Str))
	if a.Operation.Name == "note.put" {
		k.notes[name] = args["text"]
		return value.Unit{}, 0, nil
	}
	if v, ok := k.notes[name]; ok {
		return v, 5, nil
	}
	return nil, 0, &fault.Fault{Kind: fault.EffectFailed, Message: "there is no note " + name}
}

// A world is a store with a server that writes it, and a page over it.
type world struct {
	t      testing.TB
	dir    string
	server *engine.Engine
	page   *Page
	cookie *http.Cookie
	writes *caps.Policy // the server's
	rules  []string     // of flow: a label, and where it may not go
}

func (w *world) policy() *caps.Policy {
	kinds, err := caps.NewKinds(notes)
	w.fatal(err)
	p := caps.NewPolicy(kinds, nil)
	w.t.Cleanup(func() { p.Close() })
	for _, text := range []string{"note:work/**", "note.get:home/**", "note:spare/**"} {
		c, err := caps.Parse(text, kinds)
		w.fatal(err)
		g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: kinds})
		w.fatal(err)
		w.fatal(p.Grant(g))
	}
	c, err := caps.Parse("note:work/secret/**", kinds)
	w.fatal(err)
	w.fatal(p.Deny(c))
	return p
}

func (w *world) fatal(err error) {
	w.t.Helper()
	must.NoError(w.t, err)
}

func (w *world) open(write bool) (*Store, error) {
	j, err := journal.Open(filepath.Join(w.dir, "journal.db"), journal.Options{ReadOnly: !write})
	if err != nil {
		return nil, err
	}
	policy := w.policy()
	tools, problems, err := registry.Open(run.Log(j), policy)
	if err = errors.Join(append(problems, err)...); err != nil {
		return nil, err
	}
	broker := run.New(run.Options{Policy: policy, Journal: j, Handler: &kept{notes: map[string]value.Value{"work/a": value.Str("hello")}}})
	server := engine.New(engine.Options{Registry: tools, Broker: broker})
	var flows *flow.Policy
	if !write && w.rules != nil {
		var c flow.Config
		w.fatal(errors.Join(c.Label(w.rules[0]), c.NoFlow(w.rules[1])))
		flows, err = flow.Compile(c, policy.Kinds(), policy.Grants())
		w.fatal(err)
	}
	return &Store{Journal: j, Flow: flows, Judge: func(ctx context.Context, id string) ([]run.FlowJudgement, error) {
		rec, err := run.ReadRecord(j, id)
		if err != nil {
			return nil, err
		}
		replay := run.NewReplay(rec, false)
		seen, err := tools.At(rec.AsOf)
		if err = errors.Join(err, replay.TryFlow(flows, policy)); err != nil {
			return nil, err
		}
		engine.Replay(ctx, engine.ReplayOptions{Replay: replay, Tools: seen})
		return replay.Judged(), nil
	}, Tools: tools, Server: server, Policy: policy, Close: func() { j.Close() }, Replay: func(ctx context.Context, id, with string) (a engine.Answer, v run.Verdict, err error) {
		rec, err := run.ReadRecord(j, id)
		if err != nil {
			return a, run.NoReplay(id, err), nil
		}
		seen, err := tools.At(rec.AsOf)
		if name, version, ok := strings.Cut(with, "@"); ok && err == nil {
			var n int
			_, _ = fmt.Sscan(version, &n)
			var t *registry.Tool
			if t, err = tools.Version(registry.Ref{Name: name, Version: n}); err == nil {
				seen = seen.Putting(t)
			}
		}
		if err != nil {
			return a, v, err
		}
		a, v = engine.Replay(ctx, engine.ReplayOptions{Replay: run.NewReplay(rec, with != ""), Tools: seen})
		return a, v, nil
	}, Walk: func(ctx context.Context, id string) (*step.Walk, run.Verdict, error) {
		rec, err := run.ReadRecord(j, id)
		if err != nil {
			return nil, run.NoReplay(id, err), nil
		}
		seen, err := tools.At(rec.AsOf)
		if err != nil {
			return nil, run.Verdict{}, err
		}
		var rounds []step.Round
		_, v := engine.Replay(ctx, engine.ReplayOptions{Replay: run.NewReplay(rec, false), Tools: seen, Walked: &rounds})
		return step.New(rounds, 0), v, nil
	}}, nil
}

// newWorld makes a store with some tools and runs, and a page that somebody has entered.
func newWorld(t testing.TB, change func(*Options)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	writer, err := w.open(true)
	w.fatal(err)
	t.Cleanup(writer.Close)
	w.server, w.writes = writer.Server, writer.Policy
	o := Options{
		Profiles:  func() ([]string, error) { return []string{"test"}, nil },
		Open:      func(_ string, write bool) (*Store, error) { return w.open(write) },
		Questions: &caps.Consents{Path: filepath.Join(w.dir, "consent.json")}, Revocations: caps.Revocations{Path: filepath.Join(w.dir, "revoked.json")},
		Servers: func() (*mcplock.Lock, error) { return mcplock.ReadOrNew(filepath.Join(w.dir, "mcp.lock.json")) },
		Problem: func(*mcplock.Lock, string) string { return "" },
	}
	if change != nil {
		change(&o)
	}
	w.page = New(o, 4242)
	t.Cleanup(w.page.Close)
	w.enter()
	return w
}

func profileFlags(name string) string { return "--profile " + name }

// enter comes in with a link.
func (w *world) enter() {
	w.t.Helper()
	link, err := url.Parse(w.page.Link())
	w.fatal(err)
	a := w.send(httptest.NewRequest(http.MethodGet, "/enter?"+link.RawQuery, nil))
	cookies := a.Result().Cookies()
	if a.Code != http.StatusOK || len(cookies) != 1 {
		w.t.Fatalf("the link opens nothing: %d %s", a.Code, a.Body)
	}
	w.cookie = cookies[0]
}

// send sends a request as the browser that entered does, but for what it says itself.
func (w *world) send(r *http.Request) *httptest.ResponseRecorder {
	if r.Host == "example.com" {
		r.Host = w.page.door.host
	}
	if w.cookie != nil && r.Header.Get("Cookie") == "" {
		r.AddCookie(w.cookie)
	}
	a := httptest.NewRecorder()
	w.page.ServeHTTP(a, r)
	return a
}

// get gets a page of the profile's.
func (w *world) get(path string) (int, string) {
	a := w.send(httptest.NewRequest(http.MethodGet, "/p/test/"+path, nil))
	return a.Code, a.Body.String()
}

// post sends a form of the session's.
func (w *world) post(path string, form url.Values) (int, string) {
	form.Set("token", w.page.door.token(w.cookie.Value))
	r := httptest.NewRequest(http.MethodPost, "/p/test/"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://"+w.page.door.host)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	a := w.send(r)
	return a.Code, a.Body.String()
}

// call calls a tool of the server's; fails says whether it must fail.
func (w *world) call(fails bool, tool string, arguments any) {
	w.t.Helper()
	text, err := json.Marshal(arguments)
	w.fatal(err)
	a := w.server.Call(context.Background(), engine.Call{Tool: tool, Arguments: text})
	if (a.Fault != nil) != fails {
		w.t.Fatalf("%s %s: %s %v", tool, text, a.Text, a.Fault)
	}
}

type object = map[string]any

// populate has tools made and run.
func (w *world) populate() {
	w.call(false, "evolve", object{"name": "square", "code": "n => n * n", "description": "Squares.", "examples": []object{{"input": 3, "expect": 9}}})
	w.call(false, "evolve", object{"name": "look", "code": "k => !note.get({key: k})", "capabilities": []string{"note.get:work/**"},
		"examples": []object{{"input": "work/x", "expect": 7, "effects": []object{{"op": "note.get", "value": 7}}}}})
	w.call(false, "evolve", object{"name": "keep", "code": "(k, v) => !note.put({key: k, text: [!note.get({key: k}), v]})", "capabilities": []string{"note:work/**"}, "draft": true})
	w.call(false, "evolve", object{"name": "both", "code": "ks => map(k => @look(k), ks)", "capabilities": []string{"call:look"}})
	w.call(false, "evolve", object{"name": "square", "code": "n => n * n + 0", "description": "Squares."})
	w.call(false, "evolve", object{"name": "gone", "code": "n => n"})
	w.call(false, "retire", object{"name": "gone"})
	w.call(false, "square", object{"input": 12})
	w.call(false, "look", object{"input": "work/a"})
	w.call(true, "look", object{"input": "work/none"})
	w.call(true, "look", object{"input": "home/a"})
	w.call(false, "both", object{"input": []string{"work/a", "work/a"}})
	w.call(false, "run", object{"code": "xs => sum(xs)", "input": []int{1, 2}})
}

// runs is the names of the runs, the newest first.
func (w *world) runs(tool string) (ids []string) {
	w.t.Helper()
	s, err := w.page.open("test")
	w.fatal(err)
	l, err := s.find(runFilter{Tool: tool}, 0, 100)
	w.fatal(err)
	for i := range l.Runs {
		ids = append(ids, l.Runs[i].ID)
	}
	return ids
}

// read reads lines of a stream until one has the words, within the test's time.
func (w *world) until(body io.Reader, words string) string {
	w.t.Helper()
	buf, all := make([]byte, 4096), ""
	for !strings.Contains(all, words) {
		n, err := body.Read(buf)
		if all += string(buf[:n]); err != nil {
			w.t.Fatalf("the stream ended with %q: %v", all, err)
		}
	}
	return all
}
