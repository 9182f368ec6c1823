package streamable

import (
	"net"
	"net/http"
	"sync"
)

// unusedConns is the connections on which no request has begun yet. Clients dial more than
// they use; [http.Server.Shutdown] waits for these for five seconds.
type unusedConns struct {
	mu  sync.Mutex
	all map[net.Conn]struct{}
}

// follow is a [http.Server]'s ConnState.
func (u *unusedConns) follow(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state != http.StateNew {
		delete(u.all, c)
		return
	}
	if u.all == nil {
		u.all = map[net.Conn]struct{}{}
	}
	u.all[c] = struct{}{}
}

// close closes them.
func (u *unusedConns) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c := range u.all {
		_ = c.Close()
	}
}
