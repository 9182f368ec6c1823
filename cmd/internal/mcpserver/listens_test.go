package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
	if err := l.conn.Write(l.ctx, r); err != nil {
		l.t.Fatal(err)
	}
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
			if err := json.Unmarshal(m.Params, &p); err != nil {
				l.t.Fatal(err)
			}
			heard = strings.TrimSpace(fmt.Sprintf("%s %v %s", strings.TrimPrefix(m.Method, "notifications/"), p.Meta[mcp.MetaKeySubscriptionID], p.URI))
		}
		if !left[heard] && !l.asked[heard] {
			l.t.Errorf("heard %s; still to be heard: %v", heard, left)
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
		must(t, s, "evolve", `{"name":"a","code":"n => n"}`)
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
