package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/wait"
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
	known, err := caps.NewKinds(toy, AskManifest())
	if err != nil {
		t.Fatal(err)
	}
	w := &consenting{t: t, policy: caps.NewPolicy(known, time.Now)}
	for text, asked := range map[string]bool{"toy:notes/**": true, "toy.get:free": false, "ask": false} {
		c, err := caps.Parse(text, known)
		if err != nil {
			t.Fatal(err)
		}
		g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: known, Asked: asked})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.policy.Grant(g); err != nil {
			t.Fatal(err)
		}
	}
	w.consents = &caps.Consents{Path: path, Who: who, Kinds: known}
	w.server = New(Options{Elicit: true, Broker: run.New(run.Options{
		Policy: w.policy, Handler: Asking(steady{}), Journal: journal.NewMemory(8<<20, nil), Consents: w.consents,
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
				got, _ := res.StructuredContent.(map[string]any)["state"].(string)
				if got != test.state || len(client.texts) != 1 {
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
	w.server.opts.Elicit = false
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
		p.InputResponses = mcp.InputResponseMap{questionName: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": answer}}}
	}
	res, err := cs.CallTool(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
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
	if state == "" || first.InputRequests[questionName] == nil {
		t.Fatalf("no question: %+v", first)
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
	p, ok := open(state)
	if !ok {
		t.Fatal("what was sealed can't be opened")
	}
	p.Until = time.Now().Unix() - 1
	refused("expired", cs, "evolve", reader, seal(p))
	p.Until += 1000
	p.ID = strings.Repeat("0", 32)
	refused("of no call", cs, "evolve", reader, seal(p))
	if got := w.consents.Poll(); got != nil {
		t.Fatal(got)
	}
	if _, given, _ := w.consents.All(); len(given) != 0 {
		t.Errorf("answers: %+v", given)
	}
	// The members of the same arguments may come in another order.
	same := `{"code":"k => !toy.get(k)","capabilities":["toy.get:notes/**"],"name":"r"}`
	if res := call(t, cs, "evolve", same, state, yes); res.IsError || res.StructuredContent.(map[string]any)["state"] != nil {
		t.Errorf("the right one: %+v", res)
	}
	refused("a second time", cs, "evolve", reader, state)
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
	for range mostTalks {
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
	wait.Until(t, "no call waits any more", func() bool { return w.server.talks.waiting.Load() == 0 })
}
