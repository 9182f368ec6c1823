package stdio

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/wait"
)

// Requests read are answered before the session ends, however long they take.
func TestDrain(t *testing.T) {
	s := start(t, nil).initialized()
	for i := range 20 {
		s.send(callLine(fmt.Sprint(i), "hold", "held"))
	}
	s.in.Close()
	for range 20 {
		s.reached("held")
	}
	s.free()
	seen := map[string]bool{}
	for range 20 {
		m := s.receive()
		if m.text(t) != "released" {
			t.Errorf("id %s: %s", m.ID, m.Result)
		}
		seen[string(m.ID)] = true
	}
	if len(seen) != 20 {
		t.Errorf("answers to %d requests, want 20", len(seen))
	}
	s.over()
}

// Cancelled calls aren't answered, though their handlers answer late or not
// until the end; nor does the end wait for them.
func TestCancelled(t *testing.T) {
	s := start(t, nil).initialized()
	s.send(callLine("1", "hold", "one"))
	s.reached("one")
	s.send(cancelLine("1"))
	s.reached("cancelled one")
	s.alive()

	s.send(callLine("2", "stubborn", "two"))
	s.reached("two")
	s.send(cancelLine("2"), cancelLine("2"))
	s.alive()
	// Its handler still runs, so its id is taken.
	s.send(callLine("2", "echo", "x"))
	s.refused(-32600, "null", "in use")

	s.send(callLine("3", "stubborn", "three"))
	s.reached("three")
	s.in.Close()
	s.free()
	s.answered("3", "released")
	s.over()
}

// The stateless protocol: no handshake, and cancelled calls aren't answered
// there either.
func TestModern(t *testing.T) {
	s := start(t, nil)
	s.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + modern + `}}`)
	if m := s.receive(); m.Error != nil || !strings.Contains(string(m.Result), "2026-07-28") {
		t.Fatalf("discover: %+v", m)
	}
	call := func(id, tool, x string) string {
		return strings.Replace(callLine(id, tool, x), `"params":{`, `"params":{`+modern+`,`, 1)
	}
	s.send(call("2", "hold", "two"))
	s.reached("two")
	s.send(cancelLine("2"))
	s.reached("cancelled two")
	s.send(call("3", "echo", "x"))
	s.answered("3", "x")

	// A subscription that the client ends has no answer; one that the end of
	// input ends has, after all the others.
	listen := func(id string) {
		s.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{` + modern + `,"notifications":{"toolsListChanged":true}}}`)
		if m := s.receive(); m.Method != "notifications/subscriptions/acknowledged" || !strings.Contains(string(m.Params), `subscriptionId":`+id) {
			t.Fatalf("acknowledgement: %+v %s", m, m.Params)
		}
	}
	for _, id := range []string{"4", "5", "6"} {
		listen(id)
	}
	s.send(cancelLine("4"))
	s.send(call("7", "hold", "seven"))
	s.reached("seven")
	s.in.Close()
	s.free()
	s.answered("7", "released")
	ends := map[string]bool{}
	for range 2 {
		m := s.receive()
		ends[string(m.ID)] = strings.Contains(string(m.Result), `subscriptionId":`+string(m.ID))
	}
	if !ends["5"] || !ends["6"] {
		t.Errorf("ended: %v", ends)
	}
	s.over()
}

// An initialize can't be cancelled, and junk in a cancellation does nothing:
// the SDK alone would take 1.5 for 1.
func TestCancelNonsense(t *testing.T) {
	s := start(t, nil)
	s.send(initializeLine + "\n" + cancelLine(`"init"`))
	if m := s.receive(); string(m.ID) != `"init"` || m.Error != nil {
		t.Fatalf("initialize: %+v", m)
	}
	s.send(callLine("1", "hold", "one"))
	s.reached("one")
	for _, id := range []string{`1.5`, `null`, `{}`, `[1]`, `"1"`, `2`, `true`} {
		s.send(cancelLine(id))
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`)
	s.alive()
	s.free()
	s.answered("1", "released")
}

// A cancellation reaches the call that it names, whatever else is in it: that call's answer is
// dropped, so it mustn't go on.
func TestCancelledOddly(t *testing.T) {
	s := start(t, nil).initialized()
	for i, params := range []string{
		`"requestId":%s,"reason":7`, `"requestId":%s,"_meta":5`, `"requestId":0,"requestId":%s`,
		`"request\u0049d":%s`, `"requestId":0,"request\u0049d":%s`,
	} {
		id := fmt.Sprint(i + 1)
		s.send(callLine(id, "hold", id))
		s.reached(id)
		s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{` + fmt.Sprintf(params, id) + `}}`)
		s.reached("cancelled " + id)
	}
	s.alive()
}

// A second request with the id of one in flight is refused; the first is
// answered. Then the id is free.
func TestDuplicateID(t *testing.T) {
	s := start(t, nil).initialized()
	s.send(callLine("1", "hold", "one"))
	s.reached("one")
	s.send(callLine("1", "echo", "x"))
	s.refused(-32600, "null", "id 1 is in use")
	s.send(`{"jsonrpc":"1.0","id":1,"method":"ping"}`)
	s.refused(-32600, "null", "2.0")
	s.free()
	s.answered("1", "released")
	for range 1000 {
		s.send(callLine("1", "echo", "again"))
		s.answered("1", "again")
	}
}

// Beyond the limits requests are refused at once, while cancellations, and
// answers, get through.
func TestOverload(t *testing.T) {
	limits := map[string]func(*Transport){
		"calls": func(tr *Transport) { tr.MaxCalls = 2 },
		"bytes": func(tr *Transport) { tr.MaxCallBytes = 2 * len(callLine("1", "stubborn", "1")) },
	}
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			s := start(t, limit)
			s.send(initializeLine) // larger than the limit of bytes, but alone
			s.receive()
			s.send(callLine("1", "hold", "1"))
			s.reached("1")
			s.send(callLine("2", "stubborn", "2"))
			s.reached("2")
			for _, id := range []string{"3", `"four"`, "5.0"} {
				s.send(callLine(id, "echo", "x"))
				s.refused(-32000, id, "overloaded: ")
			}
			s.send(cancelLine("2")) // not heeded: it still occupies the server
			s.send(callLine("6", "echo", "x"))
			s.refused(-32000, "6", "overloaded: ")
			s.send(cancelLine("1"))
			s.reached("cancelled 1")
			// Its slot is free when the SDK has dropped it, which nobody hears of.
			for {
				s.send(callLine("7", "echo", "x"))
				m := s.receive()
				if m.Error == nil {
					break
				}
				if m.Error.Code != -32000 {
					t.Fatal(m.Error)
				}
			}
			s.in.Close()
			s.free() // the SDK waits for a handler whose call was cancelled
			s.over()
		})
	}
}

// More short calls than the limit, all at once, are slowed down, not refused.
func TestPatience(t *testing.T) {
	s := startTuned(t, func(tr *Transport) { tr.MaxCalls = 2 }, func(c *conn) { c.patience = time.Minute }).initialized()
	go func() {
		for i := range 500 {
			io.WriteString(s.in, callLine(fmt.Sprint(i), "echo", "x")+"\n")
		}
		s.in.Close()
	}()
	for range 500 {
		if m := s.receive(); m.Error != nil {
			t.Fatal(m.Error)
		}
	}
	s.over()
}

// Notifications come faster than the SDK handles them; all that are dropped, if
// any, are those for which there is no room.
func TestManyNotifications(t *testing.T) {
	s := start(t, nil).initialized()
	note := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}` + "\n"
	for range 100 {
		s.send(strings.Repeat(note, 100))
		s.alive() // and the pings in between stay between us and the SDK
	}
	s.send(pingLine(`"\u0000notifications handled"`))
	s.refused(-32600, "null", "in use")
	s.in.Close()
	s.over()
}

// When the SDK is stuck in a notification, those after it are dropped, and the
// rest of what the client says is heard.
func TestStuckNotification(t *testing.T) {
	var log wait.Log
	s := start(t, func(tr *Transport) {
		tr.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}).initialized()
	s.send(callLine("1", "hold", "one"))
	s.reached("one")
	s.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"hold"}}`)
	s.reached("held up")
	for range 3 * maxNotes {
		s.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
	}
	s.send(cancelLine("1"))
	s.reached("cancelled one")
	s.send(`{}`)
	s.refused(-32600, "null", "2.0")
	if n := strings.Count(log.String(), "notification dropped"); n != maxNotes+2 { // of 3, 2 fit, and two others came before
		t.Errorf("%d dropped", n)
	}
	s.free()
	s.alive()
}

// A handler that asks the client gets its answer; one that asks, or waits,
// when the client has closed its end gets an error, and the call is answered.
func TestAsking(t *testing.T) {
	s := start(t, nil)
	s.send(strings.Replace(initializeLine, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1))
	s.receive()
	s.send(initializedLine, callLine("1", "ask", "one"))
	s.reached("one")
	ask := s.receive()
	if ask.Method != "elicitation/create" {
		t.Fatalf("got %+v", ask)
	}
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`, ask.ID))
	s.answered("1", "answered")

	s.send(callLine("2", "ask", "two"))
	s.reached("two")
	ask = s.receive()
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"won't say"}}`, ask.ID))
	if m := s.receive(); !strings.Contains(m.text(t), "won't say") {
		t.Errorf("got %s", m.Result)
	}
	for i, fault := range []string{`"nonsense"`, "null"} {
		s.send(callLine("3", "ask", fmt.Sprint("three", i)))
		s.reached(fmt.Sprint("three", i))
		ask = s.receive()
		s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`, ask.ID, fault))
		if m := s.receive(); !strings.Contains(m.text(t), "malformed error") {
			t.Errorf("got %s", m.Result)
		}
	}

	s.send(callLine("4", "ask", "four"))
	s.reached("four")
	s.receive()
	s.in.Close()
	if m := s.receive(); string(m.ID) != "4" || !strings.Contains(m.text(t), "closed its end") {
		t.Errorf("got %+v", m)
	}
	s.over()
}

// The same for a question asked after the end of input.
func TestAskingTooLate(t *testing.T) {
	s := start(t, nil)
	conn := &conn{stopped: make(chan struct{})}
	conn.calls.end()
	if err := conn.Write(t.Context(), request(t, 1, "elicitation/create")); !errors.Is(err, errInputEnded) {
		t.Errorf("got %v", err)
	}
	s.in.Close()
	s.over()
}
