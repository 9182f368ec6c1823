package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestResources: what there is to read can be read in both eras, and every address
// of the list is there, and every template.
func TestResources(t *testing.T) {
	inEras(t, func(t *testing.T, version string) {
		s := New(Options{})
		cs := speaking(t, s, version, nil)
		const odd = "ein Würfel/½?#%"
		ask(t, cs, "evolve", `{"name":"square","code":"n => n * n","description":"squares"}`)
		ask(t, cs, "evolve", `{"name":"square","code":"n => n * n + 0"}`)
		ask(t, cs, "evolve", fmt.Sprintf(`{"name":%q,"code":"n => n * n * n","draft":true}`, odd))
		ask(t, cs, "run", `{"tool":"square","input":3}`)
		var uris []string
		for r, err := range cs.Resources(t.Context(), nil) {
			must.NoError(t, err)
			if r.Title == "" || r.MIMEType == "" || r.Name == "" {
				t.Errorf("%s lacks a name, a title or a type: %+v", r.URI, r)
			}
			if c := readText(t, cs, r.URI); c.MIMEType != r.MIMEType {
				t.Errorf("%s has the type %s, and %s is listed", r.URI, c.MIMEType, r.MIMEType)
			}
			uris = append(uris, r.URI)
		}
		want := []string{"pif://capabilities", "pif://language", "pif://server"}
		for _, g := range prim.Groups {
			want = append(want, "pif://language/"+url.PathEscape(g))
		}
		want = append(want, "pif://tools/"+url.PathEscape(odd), "pif://tools/square")
		if !slices.Equal(uris, want) {
			t.Errorf("listed: %v\nexpected: %v", uris, want)
		}
		var templates []string
		for r, err := range cs.ResourceTemplates(t.Context(), nil) {
			must.NoError(t, err)
			templates = append(templates, r.URITemplate)
			if r.Title == "" || r.Description == "" || r.MIMEType == "" {
				t.Errorf("the template %s lacks something: %+v", r.URITemplate, r)
			}
		}
		if len(templates) != len(resourceTemplates) || !slices.IsSorted(templates) {
			t.Errorf("templates: %v", templates)
		}
		for uri, in := range map[string]string{
			"pif://language":                           prim.Card(),
			"pif://language/any%20value":               "type_of",
			"pif://operations/fold":                    "fold (lists)",
			"pif://operations/evolve":                  "Make a tool",
			"pif://tools/square":                       `"version":2`,
			"pif://tools/square/1":                     `"state":"superseded"`,
			"pif://tools/" + url.PathEscape(odd):       `"n => n * n * n"`,
			"pif://journal/" + aRun(t, s):              `"kind":"run.ended"`,
			"pif://journal/" + aRun(t, s) + "?after=1": `"kind":"run.ended"`,
			"pif://capabilities":                       `"grants":[]`,
			"pif://server":                             `"tools":{"ready":`,
		} {
			c := readText(t, cs, uri)
			if !strings.Contains(c.Text, in) {
				t.Errorf("%s lacks %q:\n%.500s", uri, in, c.Text)
			}
			if c.MIMEType == jsonText && !json.Valid([]byte(c.Text)) {
				t.Errorf("%s is no JSON", uri)
			}
		}
		// A retired tool is gone, its versions aren't.
		ask(t, cs, "retire", `{"name":"square"}`)
		if _, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "pif://tools/square"}); err == nil {
			t.Error("a retired tool is there")
		}
		readText(t, cs, "pif://tools/square/2")
	})
}

// aRun is the name of the newest run.
func aRun(t testing.TB, s *Server) string {
	t.Helper()
	runs := s.recentRuns()
	if len(runs) == 0 {
		t.Fatal("no run is on record")
	}
	return runs[0]
}

// TestNoSuchResource: what isn't there, or is no address, is the protocol's error
// for that, with the code of its era, and gets nobody out of a name.
func TestNoSuchResource(t *testing.T) {
	inEras(t, func(t *testing.T, version string) {
		cs := speaking(t, New(Options{}), version, nil)
		ask(t, cs, "evolve", `{"name":"square","code":"n => n * n"}`)
		want := int64(-32602)
		if version < "2026" {
			want = -32002
		}
		for _, uri := range []string{
			"pif://", "pif:///", "pif://nothing", "pif://tools", "pif://tools/", "pif://tools/absent", "pif://tools/square/2",
			"pif://tools/..%2f", "pif://tools/..%2Fsquare", "pif://tools/../tools/square", "pif://tools/./square", "pif://tools/square/",
			"pif://tools/square/..", "pif://tools/%73quare%2e", "pif://tools//square", "pif://tools/square/1/2", "pif://tools/square/01", "pif://tools/square/+1",
			"pif://tools/square/-1", "pif://tools/square/1e0", "pif://tools/square/99999999999999999999", "pif://tools/%", "pif://tools/%zz", "pif://tools/%ff%fe",
			"pif://tools/square%00", "pif://tools/square?x=1", "pif://tools/square#f", "pif://tools/" + strings.Repeat("a", 5000), "pif://tools/" + strings.Repeat("%2e", 2000),
			"pif://tools/run", "pif://tools/\u202esquare", "pif://tools/squ\u0430re", "pif://tools/\x01\x7f\"\\", "PIF://tools/square", "pif:tools/square",
			"pif://language/absent", "pif://language/lists/x", "pif://language/..%2fcapabilities", "pif://operations/square", "pif://operations/",
			"pif://journal/", "pif://journal/absent", "pif://journal/absent?after=x", "pif://journal/..%2f..%2fetc%2fpasswd", "pif://results/", "pif://results/absent",
			"pif://results/absent?from=-1", "pif://published/square", "pif://published/absent", "pif://capabilities/x", "file:///etc/passwd", "http://127.0.0.1/", "",
		} {
			_, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err == nil {
				t.Errorf("%.80q can be read", uri)
				continue
			}
			if got := code(err); got != want {
				t.Errorf("%.80q: %d %v, expected %d", uri, got, err, want)
			}
			var e *jsonrpc.Error
			var data struct{ URI string }
			if errors.As(err, &e) && strings.HasPrefix(uri, wire.Scheme) {
				if json.Unmarshal(e.Data, &data) != nil || data.URI == "" || len(data.URI) > mostURI+len("…") || len(data.URI) < mostURI && data.URI != uri {
					t.Errorf("%.80q: the error says %.200s", uri, e.Data)
				}
			}
		}
		if text, _ := ask(t, cs, "square", `{"input":3}`); text != "9" {
			t.Errorf("%s after all that", text)
		}
	})
}

// TestWatching: who watches a tool, or what is granted, hears when it is another,
// and nobody hears of what he doesn't watch.
func TestWatching(t *testing.T) {
	inEras(t, func(t *testing.T, version string) {
		updated := make(chan string, 20)
		s, policy, grant := withToy(t)
		cs := speaking(t, s, version, &mcp.ClientOptions{
			ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
		})
		ask(t, cs, "evolve", `{"name":"a b","code":"n => n","draft":true}`)
		ask(t, cs, "evolve", `{"name":"other","code":"n => n"}`)
		watch := func(uri string) {
			t.Helper()
			if err := cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
				t.Fatalf("%s: %v", uri, err)
			}
		}
		before := ""
		heard := func(uri string) {
			t.Helper()
			for {
				got := wait.For(t, updated, "an update of "+uri)
				if got == before {
					continue // what was made just before it was watched may be told, too
				}
				if before = got; got != uri {
					t.Errorf("%s was updated, not %s", got, uri)
				}
				return
			}
		}
		watch("pif://tools/a%20b")
		watch("pif://capabilities")
		// A client of the newer protocol doesn't wait until it is watching.
		if version > "2026" {
			wait.Until(t, "both are watched", func() bool { return s.listens.count() == 2 })
		}
		if version < "2026" { // a listen is refused later, by itself
			for _, uri := range []string{"pif://tools/absent", "pif://tools/a b", "pif://tools/%61%20b", "pif://language", "pif://journal/x", "file:///etc/passwd"} {
				if err := cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); code(err) == 0 {
					t.Errorf("%s can be watched: %v", uri, err)
				}
			}
		}
		ask(t, cs, "evolve", `{"name":"other","code":"n => n + 1"}`)
		ask(t, cs, "evolve", `{"name":"a b","code":"n => n + 1","draft":true}`)
		heard("pif://tools/a%20b")
		must.NoError(t, policy.Grant(grant))
		heard("pif://capabilities")
		if c := readText(t, cs, "pif://capabilities"); !strings.Contains(c.Text, `"name":"toy.get"`) || !strings.Contains(c.Text, `"toy:notes/**"`) {
			t.Errorf("%s", c.Text)
		}
		ask(t, cs, "retire", `{"name":"a b"}`)
		heard("pif://tools/a%20b")
	})
}

// count is how many subscriptions there are.
func (ls *listens) count() (n int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, its := range ls.of {
		n += len(its.all)
	}
	return n
}

// TestCompletion: what an argument may go on to, in an order that is always the
// same, a hundred at most.
func TestCompletion(t *testing.T) {
	inEras(t, func(t *testing.T, version string) {
		s := New(Options{})
		cs := speaking(t, s, version, nil)
		for i := range 150 {
			succeed(t, s, "evolve", fmt.Sprintf(`{"name":"tool_%03d","code":"n => n"}`, i))
		}
		succeed(t, s, "evolve", `{"name":"my_tool","code":"n => n"}`)
		succeed(t, s, "evolve", `{"name":"my_tool","code":"n => n + 1"}`)
		succeed(t, s, "evolve", `{"name":"ask_so","as":"prompt","code":"(a, b) => a ++ b"}`)
		succeed(t, s, "run", `{"tool":"my_tool","input":1}`)
		prompt := func(name string) *mcp.CompleteReference {
			return &mcp.CompleteReference{Type: "ref/prompt", Name: name}
		}
		uri := func(uri string) *mcp.CompleteReference { return &mcp.CompleteReference{Type: "ref/resource", URI: uri} }
		for _, c := range []struct {
			ref        *mcp.CompleteReference
			arg, value string
			given      map[string]string
			want       string
			total      int
		}{
			{prompt("repair_tool"), "name", "MY", nil, "my_tool", 1},
			{prompt("review_capabilities"), "name", "_00", nil, "tool_000 tool_001 tool_002 tool_003 tool_004 tool_005 tool_006 tool_007 tool_008 tool_009", 10},
			{prompt("review_capabilities"), "name", "nope", nil, "", 0},
			{prompt("make_tool"), "task", "x", nil, "", 0},
			{prompt("port_function"), "language", "j", nil, "Java JavaScript Clojure", 3},
			{prompt("ask_so"), "b", "", nil, "", 0},
			{uri("pif://language/{category}"), "category", "l", nil, "literals lambda lists library logic control failure any value", 0},
			{uri("pif://operations/{operation}"), "operation", "fold", nil, "fold", 1},
			{uri("pif://operations/{operation}"), "operation", "evol", nil, "evolve", 1},
			{uri("pif://tools/{name}"), "name", "tool", nil, "", 151},
			{uri("pif://tools/{name}/{version}"), "version", "", map[string]string{"name": "my_tool"}, "2 1", 2},
			{uri("pif://tools/{name}/{version}"), "version", "", map[string]string{"name": "my%5Ftool"}, "2 1", 2},
			{uri("pif://tools/{name}/{version}"), "version", "", nil, "", 0},
			{uri("pif://journal/{run}"), "run", "", nil, aRun(t, s), 1},
			{uri("pif://results/{id}"), "id", "", nil, "", 0},
		} {
			params := &mcp.CompleteParams{Ref: c.ref, Argument: mcp.CompleteParamsArgument{Name: c.arg, Value: c.value}}
			if c.given != nil {
				params.Context = &mcp.CompleteContext{Arguments: c.given}
			}
			res, err := cs.Complete(t.Context(), params)
			if err != nil {
				t.Errorf("%s%s %s: %v", c.ref.Name, c.ref.URI, c.arg, err)
				continue
			}
			got := res.Completion
			again, err := cs.Complete(t.Context(), params)
			if err != nil || !slices.Equal(again.Completion.Values, got.Values) {
				t.Errorf("%s%s %s: another order each time", c.ref.Name, c.ref.URI, c.arg)
			}
			if c.total == 151 {
				if got.Total != 151 || !got.HasMore || len(got.Values) != 100 || got.Values[0] != "tool_000" || got.Values[99] != "tool_099" {
					t.Errorf("%d of %d, %v: %v", len(got.Values), got.Total, got.HasMore, got.Values)
				}
				continue
			}
			if c.arg == "category" { // which there are is the table's matter
				if len(got.Values) == 0 || !strings.HasPrefix(got.Values[0], "l") || !slices.Contains(got.Values, "control") {
					t.Errorf("%v", got.Values)
				}
				continue
			}
			if strings.Join(got.Values, " ") != c.want || got.Total != c.total || got.HasMore {
				t.Errorf("%s%s %s %q: %v of %d, expected %s of %d", c.ref.Name, c.ref.URI, c.arg, c.value, got.Values, got.Total, c.want, c.total)
			}
		}
		for _, ref := range []*mcp.CompleteReference{prompt("absent"), prompt("my_tool"), prompt("make_tool"), uri("pif://absent/{x}"), uri("pif://tools/{name}"), uri("file:///{path}")} {
			_, err := cs.Complete(t.Context(), &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: "absent", Value: "x"}})
			if code(err) != -32602 {
				t.Errorf("%s%s: %v", ref.Name, ref.URI, err)
			}
		}
	})
}

// A call goes to the version that the caller is bound to, and a failure there is in
// that version, whatever there is by its name now.
func TestFaultOfBoundVersion(t *testing.T) {
	w := newRecordedWorld(t, 1)
	cs := session(t, w.server, nil)
	for _, arguments := range []string{
		`{"name":"inner","code":"n => n + 1"}`,
		`{"name":"outer","code":"n => @inner(n)","capabilities":["call:inner"]}`,
		`{"name":"outermost","code":"n => @outer(n)","capabilities":["call:outer"]}`,
	} {
		if text, res := ask(t, cs, "evolve", arguments); res.IsError {
			t.Fatal(text)
		}
	}
	fails := func(when string) {
		t.Helper()
		for _, tool := range []string{"outer", "outermost"} {
			if text, _ := ask(t, cs, tool, `{"input":"x"}`); !strings.HasPrefix(text, "type_error at tool:inner@1 1:8: ") {
				t.Errorf("%s, %s: %s", when, tool, text)
			}
		}
	}
	fails("at first")
	ask(t, cs, "evolve", `{"name":"inner","code":"n => n ++ \"x\""}`)
	fails("after another version")
	ask(t, cs, "retire", `{"name":"inner"}`)
	fails("after it was retired")
	// One that can have been either is not told as one of them.
	ask(t, cs, "evolve", `{"name":"inner","code":"n => n + 2"}`)
	if text, res := ask(t, cs, "evolve", `{"name":"both","code":"n => @inner(n) + @outer(n)","capabilities":["call:inner","call:outer"]}`); res.IsError {
		t.Fatal(text)
	}
	if text, _ := ask(t, cs, "both", `{"input":"x"}`); !strings.HasPrefix(text, "type_error at tool:inner 1:8: ") {
		t.Error(text)
	}
}

// TestNotesHelp: what is told of a free variable is told once.
func TestNotesHelp(t *testing.T) {
	w := newRecordedWorld(t, 1)
	cs := session(t, w.server, nil)
	_, res := ask(t, cs, "evolve", `{"name":"free","code":"x => y + 1","draft":true}`)
	if all := string(wire.Encode(res.StructuredContent)); strings.Count(all, `\"y\"`) != 1 {
		t.Error(all)
	}
	_, res = ask(t, cs, "evolve", `{"name":"fails","code":"x => 1 - \"a\"","draft":true}`)
	if problems := structured(t, res.StructuredContent, "problems"); !strings.Contains(problems, "not a string") {
		t.Error(problems)
	}
}

// TestCallersAreTold: who makes a new version hears which tools stay with the old one.
func TestCallersAreTold(t *testing.T) {
	s := New(Options{})
	succeed(t, s, "evolve", `{"name":"inner","code":"n => n + 1"}`)
	succeed(t, s, "evolve", `{"name":"outer","code":"n => @inner(n)","capabilities":["call:inner"]}`)
	const note = "tools that are bound to an earlier version go on using that one until they are evolved again: outer"
	if a := succeed(t, s, "evolve", `{"name":"inner","code":"n => n + 2"}`); !strings.Contains(string(a.Structured), note) {
		t.Errorf("%s", a.Structured)
	}
	succeed(t, s, "evolve", `{"name":"outer","code":"n => @inner(n) * 2","capabilities":["call:inner"]}`)
	succeed(t, s, "retire", `{"name":"outer"}`)
	if a := succeed(t, s, "evolve", `{"name":"inner","code":"n => n + 3"}`); strings.Contains(string(a.Structured), note[:30]) {
		t.Errorf("nobody calls it: %s", a.Structured)
	}
}

// listener is a client of the newer protocol that speaks in messages.
type listener struct {
	t    *testing.T
	ctx  context.Context
	conn mcp.Connection
	// asked is what subscriptions asked for, and so may be heard at any time: a change
	// is told a little later, and perhaps twice.
	asked map[string]bool
}

func newListener(t *testing.T, s *Server) *listener {
	t.Helper()
	theirs, ours := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // by the clock of a bubble, too
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, theirs) }()
	conn, err := ours.Connect(ctx)
	must.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		<-done
		cancel()
	})
	return &listener{t, ctx, conn, map[string]bool{}}
}

// send sends a request, or without an id a notification.
func (l *listener) send(id, method, params string) {
	l.t.Helper()
	var key jsonrpc.ID
	if id != "" {
		key, _ = jsonrpc.MakeID(id)
	}
	const meta = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`
	r := &jsonrpc.Request{ID: key, Method: method, Params: json.RawMessage(meta + params + "}")}
	must.NoError(l.t, l.conn.Write(l.ctx, r))
}

// hears expects these messages, in any order, and none besides that nobody asked for:
// "answer ID", or a notification's last words, the subscription that it is for, and of what.
func (l *listener) hears(want ...string) {
	l.t.Helper()
	left := map[string]bool{}
	for _, w := range want {
		left[w] = true
	}
	for len(left) > 0 {
		m, err := l.conn.Read(l.ctx)
		if err != nil {
			l.t.Fatalf("%v: still to be heard: %v", err, left)
		}
		heard := ""
		switch m := m.(type) {
		case *jsonrpc.Response:
			heard = fmt.Sprint("answer ", m.ID.Raw())
		case *jsonrpc.Request:
			var p struct {
				URI  string         `json:"uri"`
				Meta map[string]any `json:"_meta"`
			}
			must.NoError(l.t, json.Unmarshal(m.Params, &p))
			heard = strings.TrimSpace(fmt.Sprintf("%s %v %s", strings.TrimPrefix(m.Method, "notifications/"), p.Meta[mcp.MetaKeySubscriptionID], p.URI))
		}
		if !left[heard] && !l.asked[heard] {
			l.t.Fatalf("heard %s; still to be heard: %v", heard, left)
		}
		delete(left, heard)
	}
}

func (l *listener) evolve(code string) {
	l.t.Helper()
	l.send("e", "tools/call", `"name":"evolve","arguments":{"name":"a","code":"`+code+`"}`)
}

// TestListens: each of several subscriptions on one connection is told what it asked for,
// whichever of the others begin or end.
func TestListens(t *testing.T) {
	l := newListener(t, New(Options{}))
	for _, may := range []string{
		"tools/list_changed one", "resources/list_changed one", "resources/updated one pif://tools/a",
		"tools/list_changed two", "resources/updated two pif://tools/a", "tools/list_changed three", "resources/list_changed four", "tools/list_changed five",
	} {
		l.asked[may] = true
	}
	l.evolve("n => n")
	l.hears("answer e")
	const listen, ack = "subscriptions/listen", "subscriptions/acknowledged "
	l.send("one", listen, `"notifications":{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["pif://tools/a"]}`)
	l.hears(ack + "one")
	l.send("two", listen, `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["pif://tools/a"]}`)
	l.hears(ack + "two")
	l.evolve("n => n + 1")
	l.hears("answer e", "tools/list_changed one", "tools/list_changed two", "resources/list_changed one",
		"resources/updated one pif://tools/a", "resources/updated two pif://tools/a")
	end := func(id string) {
		l.send("", "notifications/cancelled", `"requestId":"`+id+`"`)
		l.hears("answer " + id) // and by then the others go on
	}
	end("two")
	l.evolve("n => n + 2")
	l.hears("answer e", "tools/list_changed one", "resources/list_changed one", "resources/updated one pif://tools/a")
	l.send("three", listen, `"notifications":{"promptsListChanged":true,"toolsListChanged":true}`)
	l.hears(ack + "three")
	l.send("four", listen, `"notifications":{"resourcesListChanged":true}`)
	l.hears(ack + "four")
	end("one")
	l.evolve("n => n + 3")
	l.hears("answer e", "tools/list_changed three", "resources/list_changed four")
	end("four")
	end("three")
	l.evolve("n => n + 4")
	l.hears("answer e")
	l.send("five", listen, `"notifications":{"toolsListChanged":true}`)
	l.hears(ack + "five")
	l.evolve("n => n + 5")
	l.hears("answer e", "tools/list_changed five")
}

// TestListensToWhatThereIs: a subscription goes without a resource that there isn't, but for one that asks for nothing else.
func TestListensToWhatThereIs(t *testing.T) {
	l := newListener(t, New(Options{}))
	l.asked["tools/list_changed one"], l.asked["resources/updated one pif://tools/a"] = true, true // may be told twice
	l.evolve("n => n")
	l.hears("answer e")
	l.send("one", "subscriptions/listen", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["pif://tools/gone","pif://tools/a"]}`)
	l.hears("subscriptions/acknowledged one")
	l.evolve("n => n + 1")
	l.hears("answer e", "tools/list_changed one", "resources/updated one pif://tools/a")
	l.send("two", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["pif://tools/gone"]}`)
	l.hears("answer two")
}

// TestListensTakeTurns: one that begins while another ends is told of what comes after,
// whichever of the two the server gets to first.
func TestListensTakeTurns(t *testing.T) {
	l := newListener(t, New(Options{}))
	l.evolve("n => n")
	l.hears("answer e")
	const listen = "subscriptions/listen"
	const wants = `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["pif://tools/a"]}`
	before := ""
	for i := range 60 {
		id := fmt.Sprint("turn", i)
		for _, may := range []string{"tools/list_changed ", "resources/updated "} {
			l.asked[strings.TrimSpace(may+id)] = true
			l.asked[may+id+" pif://tools/a"] = true
		}
		want := []string{"subscriptions/acknowledged " + id}
		l.send(id, listen, wants)
		if before != "" {
			l.send("", "notifications/cancelled", `"requestId":"`+before+`"`)
			want = append(want, "answer "+before)
		}
		l.hears(want...)
		l.evolve(fmt.Sprintf("n => n + %d", i))
		l.hears("answer e", "tools/list_changed "+id, "resources/updated "+id+" pif://tools/a")
		before = id
	}
}

// TestListensCatchUp: what changed since the session began and before a subscription was
// acknowledged is told right after the acknowledgement, to each that wants it, and what
// changed before the session isn't.
func TestListensCatchUp(t *testing.T) {
	const listen, ack = "subscriptions/listen", "subscriptions/acknowledged "
	const tools = `"notifications":{"toolsListChanged":true}`
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		succeed(t, s, "evolve", `{"name":"a","code":"n => n"}`)
		l := newListener(t, s)
		l.send("zero", listen, tools)
		l.hears(ack + "zero")
		time.Sleep(time.Minute)
		l.send("", "notifications/cancelled", `"requestId":"zero"`)
		l.hears("answer zero")

		l.evolve("n => n + 1")
		l.hears("answer e")
		time.Sleep(time.Minute) // long after the SDK told of it to nobody
		l.send("one", listen, tools)
		l.hears(ack+"one", "tools/list_changed one")
		l.send("two", listen, `"notifications":{"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["pif://tools/a","pif://capabilities"]}`)
		l.hears(ack+"two", "resources/list_changed two", "resources/updated two pif://tools/a")
		time.Sleep(time.Minute)
		l.send("three", listen, `"notifications":{"promptsListChanged":true}`)
		l.hears(ack + "three")
		time.Sleep(time.Minute)
		l.send("four", "tools/list", `"cursor":""`)
		l.hears("answer four") // and nothing was told twice

		// One that the SDK tells of while a subscription ends, and so to nobody.
		s.listens.note(toolsChanged)
		l.send("", "notifications/cancelled", `"requestId":"three"`)
		l.hears("answer three", "tools/list_changed one")
	})
}

// A reading journal tells of each read of a run's events, and has it wait.
type readingJournal struct {
	*journal.Memory
	run           string
	begun, goesOn chan struct{}
}

func (j *readingJournal) Read(q journal.Query) ([]journal.Event, bool, error) {
	if q.Run == j.run {
		j.begun <- struct{}{}
		<-j.goesOn
	}
	return j.Memory.Read(q)
}

// alone is the only node of a cluster.
type alone struct{}

func (alone) Name() string      { return "n1" }
func (alone) Alive(string) bool { return true }
func (alone) Lost() int         { return 0 }
func (alone) Before() int       { return 0 }
func (alone) Unlike() []string  { return nil }

// TestResultsTakeNoTurn: while the run of another node is done again for a result, lists and help keep their turns.
func TestResultsTakeNoTurn(t *testing.T) {
	t.Parallel()
	j := &readingJournal{journal.NewMemory(1<<20, nil), "r", make(chan struct{}, 100), make(chan struct{})}
	s := New(Options{Broker: run.New(run.Options{Policy: caps.NewPolicy(nil, time.Now), Journal: j}), Node: alone{}})
	cs := speaking(t, s, firstStateless, nil)
	read := make(chan error, 1)
	go func() {
		_, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "pif://results/r.result"})
		read <- err
	}()
	wait.For(t, j.begun, "the record is read")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var leaves []func()
	for i := range 2 {
		leave, f := s.Turn(gone, 0)
		if f != nil {
			t.Errorf("turn %d is taken: %v", i, f)
			continue
		}
		leaves = append(leaves, leave)
	}
	for _, leave := range leaves {
		leave()
	}
	close(j.goesOn)
	if err := wait.For(t, read, "an answer"); err == nil {
		t.Error("what is no run has a result")
	}
}
