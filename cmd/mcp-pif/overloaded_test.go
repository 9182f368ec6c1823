package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestOverloaded: calls beyond those that may run and wait fail as calls do, with the
// kind overloaded, and are no errors of the protocol.
func TestOverloaded(t *testing.T) {
	if !full() {
		t.Skip("sends over 10,000 calls: PIF_FULL=1")
	}
	// With so much time none ends for another reason.
	p := start(t, "--store=memory", "--log-level=error", "--timeout=30m").open()
	go func() { // the server is killed at the end
		for i := range 10_500 {
			_, _ = fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run","arguments":{"code":"(x => x(x))(x => x(x))","steps":1000000000}}}`+"\n", i+1)
		}
	}()
	for range 100 {
		m := p.receive()
		if m.Error != nil || !strings.Contains(string(m.Result), `"kind":"overloaded"`) {
			t.Fatalf("%s was answered with %v %.300s", m.ID, m.Error, m.Result)
		}
	}
	if p.peak() > mostMemory && !racing {
		t.Errorf("the server took %d bytes", p.peak())
	}
}
