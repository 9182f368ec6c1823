package streamable

import (
	"net"
	"net/http"
	"testing"
	"time"
)

// Connections that nothing was asked on are closed at the end, and no others.
func TestUnusedConns(t *testing.T) {
	var u unusedConns
	var ends []net.Conn
	for _, states := range [][]http.ConnState{
		{http.StateNew}, {http.StateNew, http.StateActive}, {http.StateNew, http.StateActive, http.StateIdle}, {http.StateNew, http.StateClosed},
	} {
		ours, theirs := net.Pipe()
		defer ours.Close()
		for _, state := range states {
			u.follow(ours, state)
		}
		ends = append(ends, theirs)
	}
	u.close()
	for i, c := range ends {
		// An open pipe has a time by which to read, a closed one has an end.
		_ = c.SetReadDeadline(time.Now())
		_, err := c.Read(make([]byte, 1))
		timeout, ok := err.(net.Error)
		if closed := !ok || !timeout.Timeout(); closed != (i == 0) {
			t.Errorf("connection %d: %v", i, err)
		}
	}
}
