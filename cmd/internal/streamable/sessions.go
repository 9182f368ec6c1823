package streamable

import (
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessions is when each session was last used, so that there can be room for another.
type sessions struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// begun notes a session that a request has made, until it ends.
func (s *sessions) begun(server *mcp.Server, id string) {
	for session := range server.Sessions() {
		if session.ID() != id {
			continue
		}
		s.mu.Lock()
		if s.last == nil {
			s.last = map[string]time.Time{}
		}
		s.last[id] = time.Now()
		s.mu.Unlock()
		go func() {
			_ = session.Wait()
			s.mu.Lock()
			delete(s.last, id)
			s.mu.Unlock()
		}()
		return
	}
}

// use notes a request of a session. Of one that isn't there nothing is kept.
func (s *sessions) use(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.last[id]; ok {
		s.last[id] = time.Now()
	}
}

// room reports whether one more session of a server fits. Where there are as many as
// may be, the one that was longest idle ends, whose client can begin another, unless
// it was used a moment ago or has a call or a stream under way.
func (h *Handler) room(server *mcp.Server) bool {
	if h.budget.session(server) {
		return true
	}
	busy := h.live.sessions()
	var oldest *mcp.ServerSession
	before := time.Now().Add(-h.o.KeptSession)
	h.sessions.mu.Lock()
	for session := range server.Sessions() {
		if last, ok := h.sessions.last[session.ID()]; ok && !busy[session.ID()] && last.Before(before) {
			oldest, before = session, last
		}
	}
	h.sessions.mu.Unlock()
	if oldest == nil {
		return false
	}
	_ = oldest.Close()
	return h.budget.session(server)
}

// sessions returns those of which a request is under way.
func (l *live) sessions() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	busy := map[string]bool{}
	for one := range l.all {
		busy[one.http.Header.Get(sessionHeader)] = true
	}
	return busy
}

// serveSession answers a request of a session, or one that makes it.
func (h *Handler) serveSession(w http.ResponseWriter, r *http.Request, server *mcp.Server) {
	id := r.Header.Get(sessionHeader)
	h.sessions.use(id)
	h.session.ServeHTTP(w, r)
	h.sessions.use(id)
	if made := w.Header().Get(sessionHeader); id == "" && made != "" {
		h.sessions.begun(server, made)
	}
}
