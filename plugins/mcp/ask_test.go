//go:build linux

package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcptest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// A person answers questions, and remembers them.
type person struct {
	mu     sync.Mutex
	asked  []sdk.Question
	answer func(context.Context, sdk.Question) sdk.Answer
}

func (p *person) ask(ctx context.Context, q sdk.Question) sdk.Answer {
	p.mu.Lock()
	p.asked = append(p.asked, q)
	p.mu.Unlock()
	return p.answer(ctx, q)
}

// eachAsking is each, with a server that may ask.
func eachAsking(t *testing.T, test func(t *testing.T, w *world)) {
	for name, o := range map[string]struct {
		era  string
		http bool
	}{"stdio": {}, "http": {http: true}, "stdio 2026": {mcptest.Stateless, false}, "http 2026": {mcptest.Stateless, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, mcptest.Script{Era: o.era}, o.http, func(s *Settings) { s.Elicit = true }))
		})
	}
}

// A server that may ask gets what the user filled in, in every era and over every transport,
// and back the state that it wants back.
func TestAsk(t *testing.T) {
	t.Parallel()
	const params = `{"mode":"form","message":"how many? ` + mcptest.Canary + `","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`
	eachAsking(t, func(t *testing.T, w *world) {
		p := &person{answer: func(context.Context, sdk.Question) sdk.Answer {
			return sdk.Answer{Action: "accept", Content: []byte(`{"n":9007199254740993}`)}
		}}
		ask := func(method string, times int) (value.Value, error) {
			return w.call(sdk.WithAsk(w.context(), p.ask), "ask", fmt.Sprintf(`{"method":%q,"params":%q,"times":%d}`, method, params, times))
		}
		isStateless := w.script.Era == mcptest.Stateless
		for times := 1; times <= 2; times++ {
			p.asked = nil
			v, err := ask(methodElicit, times)
			must.NoError(t, err)
			if len(p.asked) != times || p.asked[0].Message != "how many? "+mcptest.Canary || string(p.asked[0].Schema) != `{"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}` {
				t.Errorf("the user was asked %s", p.asked)
			}
			got, _ := member(v.(*value.Record), "text").(value.Str)
			if strings.Count(string(got), `9007199254740993`) != map[bool]int{true: 1, false: times}[isStateless] || isStateless && !strings.HasSuffix(string(got), fmt.Sprint("with ", times)) {
				t.Errorf("the server was told %s", got)
			}
		}
		v, err := ask(methodElicit, 3)
		if isStateless {
			w.failed(v, err, "failed", "asked for input more than 2 times")
		} else if err != nil || strings.Count(shown(t, v), "accept") != 2 || strings.Count(shown(t, v), "decline") != 1 {
			t.Errorf("a third question: %v, %v", v, err)
		}
		p.asked = nil
		for _, method := range []string{"sampling/createMessage", "roots/list"} {
			if v, err := ask(method, 1); isStateless {
				w.failed(v, err, "failed", "nobody is asked for it")
			} else if err != nil || shown(t, v) != `{"text":"the client said "}` {
				t.Errorf("%s: %v, %v", method, v, err)
			}
		}
		if len(p.asked) > 0 {
			t.Errorf("the user was asked for what isn't theirs: %s", p.asked)
		}
	})
}

// What a server wants back is somebody's session (8 A 8): it goes back with the call that it came
// with, while others are under way on the same session, and into nothing that anybody reads.
func TestAttackRequestState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mcptest.Script{Era: mcptest.Stateless}, true, func(s *Settings) { s.Elicit = true })
	accept := sdk.Answer{Action: "accept", Content: []byte(`{}`)}
	met, asked := make(chan struct{}), atomic.Int32{}
	p := &person{answer: func(ctx context.Context, _ sdk.Question) sdk.Answer {
		if asked.Add(1) == 2 {
			close(met)
		}
		select { // both calls are in the middle of their questions
		case <-met:
		case <-ctx.Done():
		}
		return accept
	}}
	var calls sync.WaitGroup
	for _, line := range []string{"ann", "bob"} {
		calls.Go(func() {
			v, err := w.call(sdk.WithAsk(w.context(), p.ask), "ask", fmt.Sprintf(`{"method":%q,"line":%q}`, methodElicit, line))
			if err != nil || !strings.Contains(shown(t, v), "with 1") || strings.Contains(shown(t, v), mcptest.State) {
				t.Errorf("the call of %s: %v, %v", line, v, err)
			}
		})
	}
	calls.Wait()
	p.answer = func(context.Context, sdk.Question) sdk.Answer { return accept }
	v, err := w.call(sdk.WithAsk(w.context(), p.ask), "ask", fmt.Sprintf(`{"method":%q,"times":9}`, methodElicit))
	f := w.failed(v, err, "failed", "asked for input more than 2 times")
	if all := fmt.Sprint(f, f.Hint, f.Value, w.log.String(), p.asked); strings.Contains(all, mcptest.State) {
		t.Errorf("the state can be read: %s", all)
	}
}

// No link is shown, nobody is asked where the run may not ask, and the failure tells (8 A 9, with
// TestUpstreamAsks).
func TestDecline(t *testing.T) {
	t.Parallel()
	eachAsking(t, func(t *testing.T, w *world) {
		p := &person{answer: func(context.Context, sdk.Question) sdk.Answer {
			return sdk.Answer{Action: "decline", Reason: "the tool may not ask"}
		}}
		for _, params := range []string{
			`{"mode":"url","message":"open","url":"https://evil.example","elicitationId":"1"}`, `{"message":"open","url":"https://evil.example"}`, "",
		} {
			v, err := w.call(sdk.WithAsk(w.context(), p.ask), "ask", fmt.Sprintf(`{"method":%q,"params":%q}`, methodElicit, params))
			if err != nil || !strings.Contains(shown(t, v), `\"action\":\"decline\"`) {
				t.Errorf("%s: %v, %v", params, v, err)
			}
		}
		if len(p.asked) != 1 {
			t.Errorf("the user was asked %s", p.asked)
		}
		if log := w.log.String(); strings.Count(log, "that is declined") != 3 || !strings.Contains(log, "open a link") {
			t.Errorf("the operator reads %s", log)
		}
	})
}

// A call that ends while the user is asked takes the question back.
func TestAskCancelled(t *testing.T) {
	t.Parallel()
	eachAsking(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(w.context())
		gone := make(chan struct{})
		p := &person{answer: func(ctx context.Context, _ sdk.Question) sdk.Answer {
			cancel()
			<-ctx.Done()
			close(gone)
			return sdk.Answer{Action: "cancel"}
		}}
		v, err := w.call(sdk.WithAsk(ctx, p.ask), "ask", fmt.Sprintf(`{"method":%q}`, methodElicit))
		wait.For(t, gone, "the question is taken back")
		if err == nil {
			t.Errorf("it gave %v", v)
		}
		w.gives("note", `{}`, `{"text":"noted"}`) // the session goes on
	})
}

// A status by which a server may say that it forgot the session is one that a tool may give, too: it ends no other call.
func TestStatusEndsNoOtherCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mcptest.Script{}, true, func(s *Settings) { s.Elicit = true })
	for _, status := range []int{400, 401, 404} {
		p := &person{answer: func(context.Context, sdk.Question) sdk.Answer {
			w.fails("status", fmt.Sprintf(`{"status":%d}`, status), "failed", fmt.Sprint("HTTP status ", status))
			return sdk.Answer{Action: "accept", Content: []byte(`{}`)}
		}}
		v, err := w.call(sdk.WithAsk(w.context(), p.ask), "ask", fmt.Sprintf(`{"method":%q}`, methodElicit))
		if err != nil || !strings.Contains(shown(t, v), "accept") {
			t.Errorf("beside the status %d: %v, %v", status, v, err)
		}
	}
	w.until("the sessions are over that nobody uses", func() bool { return w.http.Open() == 0 })
	if made := w.http.Made(); made != 3 {
		t.Errorf("%d sessions were made", made)
	}
	// The probe, which commands use, makes another session as well.
	w = newWorld(t, mcptest.Script{}, true, func(s *Settings) { s.Probe = true })
	args := `{"tool":"note","arguments":"{}"}`
	must.Succeed(t)(w.call(w.context(), "call", args))
	w.http.Forget()
	w.fails("call", args, "failed", "HTTP status 404")
	if _, err := w.call(w.context(), "call", args); err != nil {
		t.Errorf("after the server forgot the session: %v", err)
	}
}
