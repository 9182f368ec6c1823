package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// A consenting world is a server with an asked grant of notes, and one of asking.
type consenting struct {
	t        testing.TB
	server   *Server
	policy   *caps.Policy
	consents *caps.Consents
}

func newConsenting(t testing.TB, path, who string) *consenting {
	t.Helper()
	known, err := caps.NewKinds(toy, elicit.Manifest())
	must.NoError(t, err)
	w := &consenting{t: t, policy: caps.NewPolicy(known, time.Now)}
	for text, asked := range map[string]bool{"toy:notes/**": true, "toy.get:free": false, "ask": false} {
		c, err := caps.Parse(text, known)
		must.NoError(t, err)
		g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: known, Asked: asked})
		must.NoError(t, err)
		must.NoError(t, w.policy.Grant(g))
	}
	w.consents = &caps.Consents{Path: path, Who: who, Kinds: known}
	w.server = New(Options{Elicit: true, Broker: run.New(run.Options{
		Policy: w.policy, Handler: elicit.Handler(steady{}), Journal: journal.NewMemory(8<<20, nil), Consents: w.consents,
	})})
	return w
}

const reader = `{"name":"r","code":"k => !toy.get(k)","capabilities":["toy.get:notes/**"]}`

// answers is a client that answers questions, and keeps their texts.
type answers struct {
	mu    sync.Mutex
	texts []string
	give  func(*mcp.ElicitParams) (*mcp.ElicitResult, error)
}

func (a *answers) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		a.mu.Lock()
		a.texts = append(a.texts, r.Params.Message)
		a.mu.Unlock()
		return a.give(r.Params)
	}}
}

func accepting(content map[string]any) func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: content}, nil
	}
}

// TestElicitedConsent: in both eras a client that can puts the question, with what
// the server knows first; the answer decides, and what isn't one leaves it open.
func TestElicitedConsent(t *testing.T) {
	inEras(t, func(t *testing.T, version string) {
		for _, test := range []struct {
			name, state string
			give        func(*mcp.ElicitParams) (*mcp.ElicitResult, error)
		}{
			{"version", "", accepting(map[string]any{"answer": consentAnswers[0].text})},
			{"name", "", accepting(map[string]any{"answer": consentAnswers[1].text})},
			{"no", "blocked", accepting(map[string]any{"answer": consentAnswers[2].text})},
			{"decline", "asking", func(*mcp.ElicitParams) (*mcp.ElicitResult, error) { return &mcp.ElicitResult{Action: "decline"}, nil }},
			{"cancelled with an answer", "asking", func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "cancel", Content: map[string]any{"answer": consentAnswers[0].text}}, nil
			}},
		} {
			t.Run(test.name, func(t *testing.T) {
				w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
				client := &answers{give: test.give}
				cs := speaking(t, w.server, version, client.options())
				_, res := ask(t, cs, "evolve", reader)
				if got, _ := res.StructuredContent.(map[string]any)["state"].(string); got != test.state || len(client.texts) != 1 {
					t.Fatalf("state %q, expected %q, after %d questions", got, test.state, len(client.texts))
				}
				text := client.texts[0]
				if facts, model := strings.Index(text, "It would get\n  toy.get:notes/**"), strings.Index(text, "written by the model"); facts < 0 || model < facts {
					t.Errorf("the question is\n%s", text)
				}
				if !strings.Contains(text, "\n  asked by  p\n") || !strings.Contains(text, "\n  asked at  2") {
					t.Errorf("who asks, and when, isn't in\n%s", text)
				}
				_, res = ask(t, cs, "r", `{"input":"notes/a"}`)
				if res.IsError != (test.state != "") {
					t.Errorf("a run: %+v", res.StructuredContent)
				}
			})
		}
	})
}

// TestElicitationNeedsTheFlag: without --ask-via=elicitation no client is asked.
func TestElicitationNeedsTheFlag(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	w.server = remade(w.server, func(o *Options) { o.Elicit = false })
	client := &answers{give: accepting(map[string]any{"answer": consentAnswers[0].text})}
	_, res := ask(t, speaking(t, w.server, eras[0], client.options()), "evolve", reader)
	if state := res.StructuredContent.(map[string]any)["state"]; state != "asking" || len(client.texts) > 0 {
		t.Errorf("state %v after %d questions", state, len(client.texts))
	}
}

// manually is a client of the newer protocol that answers questions by hand.
func manually(t testing.TB, s *Server) *mcp.ClientSession {
	client := &answers{}
	options := client.options()
	options.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	return speaking(t, s, eras[0], options)
}

func call(t testing.TB, cs *mcp.ClientSession, tool, arguments, state, answer string) *mcp.CallToolResult {
	t.Helper()
	p := &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments), RequestState: state}
	if state != "" {
		p.InputResponses = mcp.InputResponseMap{elicit.QuestionName: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": answer}}}
	}
	res, err := cs.CallTool(t.Context(), p)
	must.NoError(t, err)
	return res
}

// TestForgedState: what a client brings back counts once, as it was given, to the
// same server and for the same call.
func TestForgedState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "consent.json")
	w, other := newConsenting(t, path, "p"), newConsenting(t, path, "q")
	cs, theirs := manually(t, w.server), manually(t, other.server)
	yes := consentAnswers[0].text
	first := call(t, cs, "evolve", reader, "", "")
	state := first.RequestState
	if state == "" || first.InputRequests[elicit.QuestionName] == nil {
		t.Fatalf("no question: %+v", first)
	}
	if !w.server.Busy() || other.server.Busy() {
		t.Error("the server with a call that waits for an answer may be closed")
	}
	refused := func(what string, cs *mcp.ClientSession, tool, arguments, state string) {
		t.Helper()
		res := call(t, cs, tool, arguments, state, yes)
		if !res.IsError || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, "names no call that waits") {
			t.Errorf("%s: %+v", what, res.Content)
		}
	}
	body, sum, _ := strings.Cut(state, ".")
	flipped := []byte(body)
	flipped[20] ^= 1
	refused("altered", cs, "evolve", reader, string(flipped)+"."+sum)
	refused("unsigned", cs, "evolve", reader, body)
	refused("signed by nothing", cs, "evolve", reader, body+".")
	refused("another's", theirs, "evolve", reader, state)
	refused("other code", cs, "evolve", strings.Replace(reader, "toy.get(k)", "toy.get(\\\"notes/secret\\\")", 1), state)
	refused("another tool", cs, "run", reader, state)
	p, ok := elicit.OpenState(state)
	if !ok {
		t.Fatal("what was sealed can't be opened")
	}
	p.Until = time.Now().Unix() - 1
	refused("expired", cs, "evolve", reader, elicit.SealState(p))
	p.Until += 1000
	p.ID = strings.Repeat("0", 32)
	refused("of no call", cs, "evolve", reader, elicit.SealState(p))
	must.NoError(t, w.consents.Poll())
	if _, given, _ := w.consents.All(); len(given) != 0 {
		t.Errorf("answers: %+v", given)
	}
	// The members of the same arguments may come in another order.
	same := `{"code":"k => !toy.get(k)","capabilities":["toy.get:notes/**"],"name":"r"}`
	if res := call(t, cs, "evolve", same, state, yes); res.IsError || res.StructuredContent.(map[string]any)["state"] != nil {
		t.Errorf("the right one: %+v", res)
	}
	refused("a second time", cs, "evolve", reader, state)
	if w.server.Busy() {
		t.Error("the server is busy afterwards")
	}
}

// TestAnotherVersionMeanwhile: a version evolved between question and answer takes
// the question's place, and the answer approves neither.
func TestAnotherVersionMeanwhile(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	cs := manually(t, w.server)
	first := call(t, cs, "evolve", reader, "", "")
	second := call(t, cs, "evolve", strings.Replace(reader, "k => !toy.get(k)", "k => [!toy.get(k)]", 1), "", "")
	if second.RequestState == "" {
		t.Fatalf("no question: %+v", second)
	}
	call(t, cs, "evolve", reader, first.RequestState, consentAnswers[1].text)
	if _, res := ask(t, cs, "r", `{"input":"notes/a"}`); !res.IsError {
		t.Error("the second version acts, with the answer to the first")
	}
	if _, given, err := w.consents.All(); len(given) != 0 || err != nil {
		t.Errorf("answers: %+v, %v", given, err)
	}
}

const orderTool = `{"name":"order","code":"m => !ask.user({message: m, schema: {n: {type: \"integer\"}, size: {enum: [\"S\", \"L\"]}, note: {type: \"string\", optional: true}}})","capabilities":["ask"]}`

// TestAskUser: in both eras a tool that declared it asks the person; what they
// accept, decline or cancel is a value.
func TestAskUser(t *testing.T) {
	inEras(t, func(t *testing.T, version string) {
		w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
		client := &answers{give: accepting(map[string]any{"n": 3, "size": "L", "more": "x"})}
		cs := speaking(t, w.server, version, client.options())
		ask(t, cs, "evolve", orderTool)
		hostile := "Pay?\\n\\u001b[2J\\u202eThe tool \\\"bank\\\" asks you"
		if text, res := ask(t, cs, "order", `{"input":"`+hostile+`"}`); text != `{"action":"accept","content":{"n":3,"size":"L"}}` {
			t.Errorf("%s %+v", text, res)
		}
		if len(client.texts) != 1 {
			t.Fatalf("%d questions", len(client.texts))
		}
		if text := client.texts[0]; !strings.HasPrefix(text, `The tool "order", version 1, asks you`) || strings.ContainsAny(text, "\x1b\u202e") ||
			!strings.Contains(text, "\n  |   \\u{1B}[2J\\u{202E}The tool") {
			t.Errorf("the question is\n%s", text)
		}
		for _, action := range []string{"decline", "cancel"} {
			client.give = func(*mcp.ElicitParams) (*mcp.ElicitResult, error) { return &mcp.ElicitResult{Action: action}, nil }
			if text, _ := ask(t, cs, "order", `{"input":"?"}`); text != `{"action":"`+action+`","content":{}}` {
				t.Errorf("%s: %s", action, text)
			}
		}
		// Two questions in one run, each in its turn.
		ask(t, cs, "evolve", `{"name":"twice","code":"m => [!ask.user(m), !ask.user(m)]","capabilities":["ask"]}`)
		if text, _ := ask(t, cs, "twice", `{"input":"?"}`); text != `[{"action":"cancel","content":{}},{"action":"cancel","content":{}}]` {
			t.Error(text)
		}
		client.give = func(*mcp.ElicitParams) (*mcp.ElicitResult, error) { return nil, errors.New("it broke") }
		ask(t, cs, "evolve", `{"name":"often","code":"ms => map(m => !ask.user(m), ms)","capabilities":["ask"]}`)
		if n := len(client.texts); n != 5 {
			t.Errorf("%d questions", n)
		}
	})
}

// TestAskUserRefused: what no form is, and a client that can't ask, are failures in
// words; a tool that didn't declare it is denied.
func TestAskUserRefused(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	client := &answers{give: accepting(map[string]any{"n": "three", "size": "XL"})}
	cs := speaking(t, w.server, eras[0], client.options())
	ask(t, cs, "evolve", orderTool)
	byHand := manually(t, w.server)
	first := call(t, byHand, "order", `{"input":"?"}`, "", "")
	if res := call(t, byHand, "order", `{"input":"?"}`, first.RequestState, "?"); !res.IsError || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, "the answer lacks n") {
		t.Errorf("%+v", res)
	}
	for schema, want := range map[string]string{
		`{n: {type: \"object\"}}`:                                 "type",
		`{n: {type: \"string\", format: \"password\"}}`:           "format",
		`{n: {enum: []}}`:                                         "enum",
		`{n: {enum: [\"a\", \"a\\u202e\"]}}`:                      "plain text",
		`{n: \"string\"}`:                                         "write {type",
		`{\"a b\": {type: \"string\"}}`:                           "a name is",
		`{type: \"object\", properties: {}, additional: 1}`:       "additional",
		`{type: \"array\", properties: {n: {type: \"integer\"}}}`: "object",
	} {
		if text, _ := ask(t, cs, "evolve", `{"name":"odd","code":"m => !ask.user({message: m, schema: `+schema+`})","capabilities":["ask"]}`); strings.HasPrefix(text, "parse_error") {
			t.Fatalf("%s: %s", schema, text)
		}
		if text, res := ask(t, cs, "odd", `{"input":"?"}`); !res.IsError || !strings.HasPrefix(text, "effect_failed") || !strings.Contains(text, want) {
			t.Errorf("%s: %s", schema, text)
		}
	}
	if text, _ := ask(t, cs, "order", `{"input":"`+strings.Repeat("x", 5000)+`"}`); !strings.Contains(text, "5000 bytes") {
		t.Error(text)
	}
	if text, _ := ask(t, cs, "evolve", `{"name":"sly","code":"m => !ask.user(m)"}`); !strings.HasPrefix(text, "refused") {
		t.Error(text)
	}
	unreadable := elicit.With(t.Context(), &elicit.Elicitor{Put: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return nil, fmt.Errorf("calling elicitation/create: %w", json.Unmarshal([]byte(`{"action":"accept","content":[]}`), new(mcp.ElicitResult)))
	}})
	if a := w.server.Call(unreadable, Call{Tool: "order", Arguments: json.RawMessage(`{"input":"?"}`)}); !strings.Contains(a.Text, "the client's answer can't be read") {
		t.Error(a.Text)
	}
	for want, err := range map[string]error{
		`the client doesn't ask the user: "no forms"`:     fmt.Errorf("calling elicitation/create: %w", &jsonrpc.Error{Code: -32601, Message: "no forms"}),
		"the client's answer isn't what was asked for: m": errors.New("elicitation result content does not match requested schema: validating root"),
	} {
		refused := elicit.With(t.Context(), &elicit.Elicitor{Put: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return nil, err }})
		if a := w.server.Call(refused, Call{Tool: "order", Arguments: json.RawMessage(`{"input":"?"}`)}); !strings.Contains(a.Text, want) {
			t.Error(a.Text)
		}
	}
	silent := speaking(t, w.server, eras[0], nil)
	if text, res := ask(t, silent, "order", `{"input":"?"}`); !res.IsError || !strings.Contains(text, "can't put a question to its user") {
		t.Error(text)
	}
}

// TestTalksEnd: calls that wait for an answer end with the session, and there are
// only so many of them.
func TestTalksEnd(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	cs := manually(t, w.server)
	ask(t, cs, "evolve", orderTool)
	for range elicit.MaxCalls {
		if res := call(t, cs, "order", `{"input":"?"}`, "", ""); res.RequestState == "" {
			t.Fatalf("%+v", res)
		}
	}
	if text, _ := ask(t, cs, "order", `{"input":"?"}`); !strings.Contains(text, "too many questions wait") {
		t.Error(text)
	}
	if text, _ := ask(t, cs, "run", `{"code":{"add":[1,2]}}`); text != "3" {
		t.Error(text)
	}
	cs.Close()
	wait.Until(t, "no call waits any more", func() bool { return w.server.talks.Waiting.Load() == 0 })
}

// resumes calls again with what a client brought back, and reports whether the call
// that waits went on.
func resumes(t *testing.T, cs *mcp.ClientSession, tool, arguments, state string, answer *mcp.ElicitResult) bool {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{
		Name: tool, Arguments: json.RawMessage(arguments), RequestState: state,
		InputResponses: mcp.InputResponseMap{elicit.QuestionName: answer},
	})
	must.NoError(t, err)
	text, _ := res.Content[0].(*mcp.TextContent)
	return text == nil || !strings.Contains(text.Text, "names no call that waits")
}

// TestStateIsSigned: a state names a call only with this process's signature of
// all of it, and to the one whose call it is: knowing what it says isn't enough.
func TestStateIsSigned(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	cs := manually(t, w.server)
	yes := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": consentAnswers[0].text}}
	state := call(t, cs, "evolve", reader, "", "").RequestState
	p, ok := elicit.OpenState(state)
	if !ok {
		t.Fatal(state)
	}
	body, sum, _ := strings.Cut(state, ".")
	other := p
	other.Until++
	another := p
	another.Who = "q"
	_, othersSum, _ := strings.Cut(elicit.SealState(other), ".")
	zeros := strings.Repeat("A", len(sum))
	for what, forged := range map[string]string{
		"no signature": body + ".", "zeros": body + "." + zeros, "the beginning of it": body + "." + sum[:len(sum)-4],
		"more than it": body + "." + sum + "AAAA", "twice": body + "." + sum + "." + sum, "that of another state": body + "." + othersSum,
		"one bit of it is another": body + "." + string(sum[0]^1) + sum[1:], "padded": state + "=",
		"another principal's": elicit.SealState(another), "nothing": ".",
	} {
		if resumes(t, cs, "evolve", reader, forged, yes) {
			t.Errorf("%s: it counts", what)
		}
	}
	if _, given, _ := w.consents.All(); len(given) != 0 {
		t.Errorf("answers: %+v", given)
	}
	if !resumes(t, cs, "evolve", reader, state, yes) {
		t.Error("the state itself doesn't count any more")
	}
}

// TestStateOfAnotherSession: in the stateless protocol a call is the principal's, not
// a session's: another of the same server goes on with it, once, and another server's
// can't, though it is the same person's.
func TestStateOfAnotherSession(t *testing.T) {
	path := filepath.Join(t.TempDir(), "consent.json")
	w, elsewhere := newConsenting(t, path, "p"), newConsenting(t, path, "p")
	first, second, third := manually(t, w.server), manually(t, w.server), manually(t, elsewhere.server)
	yes := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": consentAnswers[0].text}}
	state := call(t, first, "evolve", reader, "", "").RequestState
	if resumes(t, third, "evolve", reader, state, yes) {
		t.Error("another server's call goes on")
	}
	if !resumes(t, second, "evolve", reader, state, yes) || !w.acts("r") {
		t.Error("another session of the same server doesn't go on with it")
	}
	if resumes(t, first, "evolve", reader, state, yes) {
		t.Error("it counts twice")
	}
}

// TestMeanwhile: what happened between question and answer decides what a yes comes
// to: none gives a tool more than the person saw.
func TestMeanwhile(t *testing.T) {
	yes := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": consentAnswers[1].text}}
	for what, test := range map[string]struct {
		meanwhile func(w *consenting)
		code      string
		acts      bool // made again as it was, after the yes
	}{
		"nothing": {func(*consenting) {}, "", true},
		"retired": {func(w *consenting) { succeed(w.t, w.server, "retire", `{"name":"r"}`) }, "", false},
		"retired and made anew": {func(w *consenting) {
			succeed(w.t, w.server, "retire", `{"name":"r"}`)
			succeed(w.t, w.server, "evolve", reader)
		}, "", false},
		"refused in the terminal": {func(w *consenting) { w.approves("r", caps.No) }, "", false},
		"cleared": {func(w *consenting) {
			w.approves("r", caps.No)
			must.Succeed(w.t)(w.consents.Clear("r"))
		}, "", false},
		"the grant taken back": {func(w *consenting) {
			for _, g := range w.policy.Grants() {
				if g.Asked {
					w.policy.Revoke(g.ID)
				}
			}
		}, "", false},
		"denied since": {func(w *consenting) {
			c, err := caps.Parse("toy:notes/**", w.policy.Kinds())
			must.NoError(w.t, err)
			must.NoError(w.t, w.policy.Deny(c))
		}, "", false},
	} {
		t.Run(what, func(t *testing.T) {
			w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
			cs := manually(t, w.server)
			state := call(t, cs, "evolve", reader, "", "").RequestState
			test.meanwhile(w)
			resumes(t, cs, "evolve", reader, state, yes)
			if _, ok := w.server.tools.Snapshot().Get("r"); !ok {
				w.state("r", "k => !toy.get(k)", "toy.get:notes/**")
			}
			if acts := w.acts("r"); acts != test.acts {
				t.Errorf("it acts: %v", acts)
			}
		})
	}
}

// TestNameApproved: a yes to a name is to what is made of it later, by whatever way,
// while it gets no wider: a version that goes back to something wider asks.
func TestNameApproved(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	want := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, expected %v", what, got, want)
		}
	}
	want("a wide version", w.state("r", "k => [!toy.get(k), !toy.put({key: k, value: 1})]", "toy:notes/**"), "asking")
	want("a narrower one", w.state("r", "k => !toy.get(k)", "toy.get:notes/**"), "asking")
	w.approves("r", caps.YesName)
	want("the narrower one acts", w.acts("r"), true)
	must.Succeed(t)(w.server.tools.Rollback("r", 1, registry.Edit{}))
	want("rolled back to the wide one", w.acts("r"), false)
	must.Succeed(t)(w.server.tools.Rollback("r", 2, registry.Edit{}))
	want("and back to the one approved", w.acts("r"), true)
	succeed(t, w.server, "retire", `{"name":"r"}`)
	want("made anew as it was", w.state("r", "k => !toy.get(k)", "toy.get:notes/**"), "ready")
	want("made anew, other code", w.state("r", "k => [!toy.get(k)]", "toy.get:notes/a"), "ready")
	want("and wider", w.state("r", "k => [!toy.get(k), !toy.put({key: k, value: 1})]", "toy:notes/a"), "asking")
	want("it acts", w.acts("r"), false)
	want("the same under another name", w.state("s", "k => !toy.get(k)", "toy.get:notes/**"), "asking")
	// Another profile on the same file was asked nothing.
	other := newConsenting(t, w.consents.Path, "q")
	want("another profile's", other.state("r", "k => !toy.get(k)", "toy.get:notes/**"), "asking")
	want("another profile's acts", other.acts("r"), false)
}

// TestRetiredElsewhere: what waits about a tool goes also where something else than
// this server's tool took it away; the yes comes too late.
func TestRetiredElsewhere(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	w.state("r", "k => !toy.get(k)", "toy.get:notes/**")
	questions, _, err := w.consents.All()
	if err != nil || len(questions) != 1 {
		t.Fatal(questions, err)
	}
	must.Succeed(t)(w.server.tools.Retire("r", registry.Edit{}))
	if left, _, _ := w.consents.All(); len(left) != 0 {
		t.Errorf("it waits still: %+v", left)
	}
	elsewhere := &caps.Consents{Path: w.consents.Path}
	if err := elsewhere.Answer(questions[0].ID, &questions[0].Subject, caps.YesName, "terminal"); err == nil {
		t.Error("a question about a retired tool is answered")
	}
}

// TestQuestionTooLong: a tool that declares more than a person would read isn't asked
// about, and the model learns why.
func TestQuestionTooLong(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	a := w.server.Call(t.Context(), Call{Tool: "evolve", Arguments: wire.Encode(map[string]any{
		"name": "r", "code": "k => !toy.get(k)", "capabilities": []string{"toy.get:notes/" + strings.Repeat("x", 4080)},
	})})
	if a.Fault != nil || !strings.Contains(string(a.Structured), "would be too long") {
		t.Errorf("%.300s", a.Structured)
	}
	if questions, _, _ := w.consents.All(); len(questions) != 0 || w.acts("r") {
		t.Errorf("%d questions wait", len(questions))
	}
}

// TestChoiceOutsideTheForm: an answer that isn't one of the choices is no value, over
// the protocol, too; the tool learns of it and can go on.
func TestChoiceOutsideTheForm(t *testing.T) {
	w := newConsenting(t, filepath.Join(t.TempDir(), "consent.json"), "p")
	cs := manually(t, w.server)
	ask(t, cs, "evolve", `{"name":"size","code":"m => match try(!ask.user({message: m, schema: {size: {enum: [\"S\", \"L\"]}}})) { {ok: v} => v; {error: e} => e.message }","capabilities":["ask"]}`)
	for given, want := range map[string]string{"L": `{"action":"accept","content":{"size":"L"}}`, "XL": "isn't what was asked for", "": "isn't what was asked for"} {
		state := call(t, cs, "size", `{"input":"?"}`, "", "").RequestState
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{
			Name: "size", Arguments: map[string]any{"input": "?"}, RequestState: state,
			InputResponses: mcp.InputResponseMap{elicit.QuestionName: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"size": given}}},
		})
		must.NoError(t, err)
		if text := res.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, want) {
			t.Errorf("%q: %s", given, text)
		}
	}
}

// consentAnswers is what a form lets a user say to a question of evolve.
var consentAnswers = []struct{ text string }{{"yes, for this version alone"}, {"yes, for this name while it gets no wider"}, {"no"}}
