package streamable

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/cmd/internal/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// conns is the connections there are. There is always room for one more: of those on which
// nobody was admitted the longest idle gives way, of all addresses, or of one that has more
// than its share; where there are no such, the longest idle of the principal that has most, and where none is idle the
// newest of the one that has most, if that is more than its part.
type conns struct {
	most    int           // connections
	share   int           // of one address, on which nobody was admitted
	unknown time.Duration // for which one of these may be idle

	mu  sync.Mutex
	all map[net.Conn]*conn
}

// A conn is a connection.
type conn struct {
	all       *conns
	under     net.Conn // below TLS: closing it doesn't wait
	from      netip.Prefix
	state     http.ConnState
	since     time.Time // of its state
	admitted  bool
	principal string // who was admitted last
	idle      *time.Timer
}

type connKey struct{}

// context implements a [http.Server]'s ConnContext: it begins a connection.
func (cs *conns) context(ctx context.Context, c net.Conn) context.Context {
	one := &conn{all: cs, under: c, from: network(c.RemoteAddr()), since: time.Now()}
	if t, ok := c.(*tls.Conn); ok {
		one.under = t.NetConn()
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.all == nil {
		cs.all = map[net.Conn]*conn{}
	}
	cs.all[c] = one
	cs.makeRoom(c, one)
	return context.WithValue(ctx, connKey{}, one)
}

// network returns the addresses that count as one: those of IPv6 are given out by the
// network.
func network(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	addr := tcp.AddrPort().Addr().Unmap()
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits)
	return p
}

// makeRoom closes one where there is one too many, the new one if there is no other. The caller holds the lock.
func (cs *conns) makeRoom(key net.Conn, one *conn) {
	if len(cs.all) <= min(cs.most, cs.share) {
		return
	}
	same := 0
	has := map[string]int{}
	for _, c := range cs.all {
		if !c.admitted && c.from == one.from {
			same++
		}
		if c.admitted {
			has[c.principal]++
		}
	}
	if full := len(cs.all) > cs.most; !full && same <= cs.share {
		return
	}
	victim := key
	best := one
	for k, c := range cs.all {
		switch {
		case c == one || c.admitted && c.state != http.StateIdle:
		case same > cs.share:
			if !c.admitted && c.from == one.from && (best == one || c.since.Before(best.since)) {
				victim, best = k, c
			}
		case best == one, best.admitted && !c.admitted:
			victim, best = k, c
		case !best.admitted && c.admitted:
		case has[c.principal] > has[best.principal], has[c.principal] == has[best.principal] && c.since.Before(best.since):
			victim, best = k, c
		}
	}
	if best == one && same <= cs.share {
		part := cs.most / (len(has) + 1)
		for k, c := range cs.all {
			if c != one && c.principal != "" && has[c.principal] > part && (best == one || has[c.principal] > has[best.principal] ||
				has[c.principal] == has[best.principal] && c.since.After(best.since)) {
				victim, best = k, c
			}
		}
	}
	cs.drop(victim, best)
}

// drop closes a connection. The caller holds the lock.
func (cs *conns) drop(key net.Conn, c *conn) {
	delete(cs.all, key)
	c.stopIdle()
	_ = c.under.Close()
}

func (c *conn) stopIdle() {
	if c.idle != nil {
		c.idle.Stop()
		c.idle = nil
	}
}

// follow implements a [http.Server]'s ConnState.
func (cs *conns) follow(key net.Conn, state http.ConnState) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.all[key]
	if c == nil {
		return // it gave way
	}
	c.state, c.since = state, time.Now()
	c.stopIdle()
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(cs.all, key)
	case http.StateIdle:
		if !c.admitted {
			c.idle = time.AfterFunc(cs.unknown, func() { cs.closeIdle(key, c) })
		}
	}
}

// closeIdle closes a connection that is still idle.
func (cs *conns) closeIdle(key net.Conn, c *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.all[key] == c && c.state == http.StateIdle && !c.admitted && time.Since(c.since) >= cs.unknown {
		cs.drop(key, c)
	}
}

// admit notes who came in on the connection of a request.
func admit(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.all.mu.Lock()
		defer c.all.mu.Unlock()
		c.admitted, c.principal = true, principalOf(ctx)
	}
}

// closeUnused closes those on which no request has begun yet. Clients dial more than they use;
// [http.Server.Shutdown] waits for these for five seconds.
func (cs *conns) closeUnused() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for key, c := range cs.all {
		if c.state == http.StateNew {
			cs.drop(key, c)
		}
	}
}

// sessions is when each session was last used, so that there can be room for another.
type sessions struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// begun notes a session that a request has made, until it ends; over, if not nil, is called then.
func (s *sessions) begun(server *mcp.Server, id string, over func()) {
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
			if over != nil {
				over()
			}
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

// endSession ends the requests of a principal's session, but those that end it: the SDK waits for its calls.
func (l *live) endSession(principal, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for one := range l.all {
		if one.http.Method != http.MethodDelete && one.http.Header.Get(sessionHeader) == id && principalOf(one.http.Context()) == principal {
			one.over.Store(true)
			one.cancel()
		}
	}
}

// takeStream ends the stream that a principal's session has, and waits for that: its client may be back before it is known
// to have gone. The protocol lets a server end one at any time, and not refuse another.
func (l *live) takeStream(ctx context.Context, id string) {
	mine, _ := ctx.Value(requestKey{}).(*request)
	var earlier []*request
	l.mu.Lock()
	for one := range l.all {
		if one.listens == id && principalOf(one.http.Context()) == principalOf(ctx) {
			one.cancel()
			earlier = append(earlier, one)
		}
	}
	mine.listens = id
	l.mu.Unlock()
	for _, one := range earlier {
		select {
		case <-one.ended:
		case <-ctx.Done():
		}
	}
}

// streams reports whether the headers of a GET are those that get a stream. An earlier stream isn't given again.
func streams(header http.Header) bool {
	return len(header.Values("Last-Event-Id")) == 0 && slices.ContainsFunc(strings.Split(strings.Join(header.Values("Accept"), ","), ","), func(one string) bool {
		kind, _, _ := strings.Cut(one, ";")
		return slices.Contains([]string{"text/event-stream", "text/*", "*/*"}, strings.ToLower(strings.TrimSpace(kind)))
	})
}

// serveSession answers a request of a session, or one that makes it.
func (h *Handler) serveSession(w http.ResponseWriter, r *http.Request, server *mcp.Server) {
	id := r.Header.Get(sessionHeader)
	h.sessions.use(id)
	if r.Method == http.MethodDelete && id != "" {
		h.live.endSession(principalOf(r.Context()), id)
	}
	if r.Method == http.MethodGet && id != "" && streams(r.Header) { // another is refused
		h.live.takeStream(r.Context(), id)
	}
	h.session.ServeHTTP(w, r)
	h.sessions.use(id)
	if made, _, _ := strings.Cut(w.Header().Get(sessionHeader), "."); id == "" && made != "" {
		h.sessions.begun(server, made, nil)
	}
}

// roaming is the sessions that go on at whichever of several servers a request comes to: a
// client knows each by a name that says, after the session's own, which process began it and
// by what. What a session was doing stays where it was. A name isn't signed: one that somebody made up begins a session of
// their own, as initialize does.
type roaming struct {
	ends Endings
	boot string
	mu   sync.Mutex
	here map[roamer]*reopened // sessions of other processes
}

// Endings is what servers share between which sessions roam.
type Endings interface {
	// End has it known to all that a session has ended.
	End(ctx context.Context, session string) error
	Ended(session string) bool
}

// A roamer is a session of another process: whose it is, and its name.
type roamer struct{ principal, name string }

// A reopened session is begun here by the first request of it that comes, for which the others wait.
type reopened struct {
	once sync.Once
	id   string // what it is called here; "": it can't be
}

const (
	// maxOpening is how many bytes of a session's beginning its name may hold.
	maxOpening = 1500
	// maxName is how long a session's name may be that roams.
	maxName = maxOpening*4/3 + 128
)

// roam has a request be one of a session of this process, and its answer tell the name that the
// client knows; nil: it has answered. A DELETE ends the session everywhere: others end what they
// have of it when it is idle, and no longer answer for it.
func (h *Handler) roam(w http.ResponseWriter, one *request, server *mcp.Server, principal string, body []byte) http.ResponseWriter {
	s := h.roaming
	name := one.http.Header.Get(sessionHeader)
	if name == "" {
		var packed bytes.Buffer
		z, _ := flate.NewWriter(&packed, flate.BestCompression)
		if _, err := z.Write(body); err != nil || z.Close() != nil || packed.Len() > maxOpening {
			return w // it stays where it is
		}
		return &named{ResponseWriter: w, more: "." + s.boot + "." + base64.RawURLEncoding.EncodeToString(packed.Bytes())}
	}
	id, more, roams := strings.Cut(name, ".")
	if len(name) > maxName {
		http.Error(w, "session not found", http.StatusNotFound)
		return nil
	}
	boot, opening, _ := strings.Cut(more, ".")
	if roams {
		session := principal + "\x00" + id + "." + boot // what it was opened by can be written in other ways
		if s.ends.Ended(session) {
			http.Error(w, "session not found", http.StatusNotFound)
			return nil
		}
		if one.http.Method == http.MethodDelete && (boot == s.boot || opened(opening) != nil) {
			if err := s.ends.End(one.http.Context(), session); err != nil {
				http.Error(w, "the cluster doesn't answer", http.StatusServiceUnavailable)
				return nil
			}
		}
	}
	if roams && boot != s.boot {
		key := roamer{principal, id + "." + boot}
		s.mu.Lock()
		again := s.here[key]
		if again == nil {
			if one.http.Method == http.MethodDelete && opened(opening) != nil {
				s.mu.Unlock()
				w.WriteHeader(http.StatusNoContent) // there is nothing of it to end
				return nil
			}
			again = &reopened{}
			s.here[key] = again
		}
		s.mu.Unlock()
		over := func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.here[key] == again {
				delete(s.here, key)
			}
		}
		again.once.Do(func() {
			defer func() {
				if again.id == "" {
					over()
				}
			}()
			again.id = h.reopen(one.http, server, opening, over)
		})
		id = cmp.Or(again.id, id)
	}
	if roams {
		h.live.mu.Lock()
		one.http.Header.Set(sessionHeader, cmp.Or(id, name)) // without an id a session would begin
		h.live.mu.Unlock()
	}
	return &named{ResponseWriter: w, name: name}
}

// opened is what a session's name says that it was begun by; nil: nothing.
func opened(opening string) []byte {
	packed, err := base64.RawURLEncoding.Strict().DecodeString(opening)
	rest := bytes.NewReader(packed)
	body, failed := io.ReadAll(io.LimitReader(flate.NewReader(rest), 64<<10))
	if m := methodsOf(body); errors.Join(err, failed) != nil || rest.Len() > 0 || stdio.Refusal(body, false) != nil || len(m) != 1 || m[0] != "initialize" {
		return nil
	}
	return body
}

// reopen begins a session as another began, and gives its name; "": it can't be. over is called at its end.
func (h *Handler) reopen(r *http.Request, server *mcp.Server, opening string, over func()) (id string) {
	body := opened(opening)
	if body == nil || !h.room(server) {
		return ""
	}
	send := func(body []byte) {
		again := r.Clone(context.WithValue(context.WithoutCancel(r.Context()), serverKey{}, server))
		again.Method, again.Body, again.ContentLength = http.MethodPost, io.NopCloser(bytes.NewReader(body)), int64(len(body))
		again.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if id != "" {
			again.Header.Set(sessionHeader, id)
		}
		answer := &nobody{header: http.Header{}}
		h.session.ServeHTTP(answer, again)
		id = answer.header.Get(sessionHeader)
	}
	if send(body); id == "" {
		return ""
	}
	made := id
	send([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	h.sessions.begun(server, made, over)
	return made
}

// named is an answer of a session that its client knows by another name: this one, or its own
// with more.
type named struct {
	http.ResponseWriter
	name, more string
	told       bool
}

func (n *named) head() {
	if id := n.Header().Get(sessionHeader); id != "" && !n.told {
		n.told = true
		n.Header().Set(sessionHeader, cmp.Or(n.name, id+n.more))
	}
}

func (n *named) WriteHeader(status int)      { n.head(); n.ResponseWriter.WriteHeader(status) }
func (n *named) Write(p []byte) (int, error) { n.head(); return n.ResponseWriter.Write(p) }
func (n *named) Unwrap() http.ResponseWriter { return n.ResponseWriter }
func (n *named) FlushError() error {
	n.head()
	return http.NewResponseController(n.ResponseWriter).Flush()
}
