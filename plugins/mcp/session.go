package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	sdkmcp "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// A session is one conversation with the server, from its beginning to its end. It is used
// once: what comes after it is another.
type session struct {
	u   *upstream
	key string

	// Of the upstream's mu.
	users int
	idle  *time.Timer

	ctx    context.Context // ends with it
	cancel context.CancelFunc
	ready  chan struct{} // closed when it can be used, or failed is set
	failed error
	client *sdkmcp.ClientSession
	conn   connection

	mu         sync.Mutex
	hears      map[string]func(numbers string) // of progress, by token
	callings   []*calling
	difference mcplock.Difference
	gone       map[string]bool // tools that the server has no longer, by word
	unreadable error           // why the list can't be read
	listed     time.Time
	relisted   time.Time     // when the list was last read again
	ttl        time.Duration // how long it is good; 0: until the server says
	isStale    bool
	listing    chan struct{} // closed when the list was read; nil: nobody reads it
	read       func(context.Context)
}

// connectTimeout is how long a server may take from its start to its list of tools.
const connectTimeout = 60 * time.Second

func newSession(u *upstream, key string) *session {
	s := &session{u: u, key: key, ready: make(chan struct{}), hears: map[string]func(string){}, gone: map[string]bool{}}
	s.read = s.list
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// connect begins the conversation and reads the list. Requests wait for it, and none of
// them ends it: the next needs it too.
func (s *session) connect() {
	ctx, cancel := context.WithTimeout(s.ctx, connectTimeout)
	defer cancel()
	err := s.begin(ctx)
	if err == nil && !s.u.settings.Probe {
		s.list(ctx)
	}
	if err != nil {
		if why := s.u.plainly(err); why != "" {
			s.u.log.say("no session with it can be made: " + why)
		} else {
			s.u.log.quote("no session with it can be made", err.Error())
		}
		s.failed = s.u.noSession(err)
		s.u.rejected(s, s.failed)
		s.end()
	}
	close(s.ready)
}

// begin connects, and agrees on a version of the protocol.
func (s *session) begin(ctx context.Context) (err error) {
	u := s.u
	u.mu.Lock()
	command := u.command
	u.mu.Unlock()
	version := u.settings.Server.Protocol
	for {
		if url := u.settings.Server.URL; url != "" {
			s.conn = newHTTP(url, u.settings.Headers, u.login, u.log, s.notice)
		} else if s.conn, err = u.start(ctx, command, s.notice); err != nil {
			return err
		}
		within, cancel := ctx, context.CancelFunc(func() {})
		if version == "" {
			within, cancel = context.WithTimeout(ctx, connectTimeout/4)
		}
		s.client, err = s.newClient().Connect(within, ready{s.conn}, &sdkmcp.ClientSessionOptions{ProtocolVersion: version})
		isLate := within.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !isLate {
			return err
		}
		// It says nothing to the question of today's version. Older servers may.
		s.conn.Close()
		version = lastWithSessions
	}
}

// lastWithSessions is the last version of the protocol before [stateless].
const lastWithSessions = "2025-11-25"

// newClient makes the client of one session. A server can ask it for nothing but, where the
// operator lets it, for a form that the user fills in.
func (s *session) newClient() *sdkmcp.Client {
	can := &sdkmcp.ClientCapabilities{}
	if s.u.settings.Elicit {
		can.Elicitation = &sdkmcp.ElicitationCapabilities{Form: &sdkmcp.FormElicitationCapabilities{}}
	}
	c := sdkmcp.NewClient(&sdkmcp.Implementation{Name: "mcp-pif", Version: "1"}, &sdkmcp.ClientOptions{
		Capabilities:   can,
		MultiRoundTrip: &sdkmcp.MultiRoundTripOptions{Disabled: true},
		Logger:         slog.New(slog.DiscardHandler),
		// It is told of all notices by the transport, in order; with a handler it asks for
		// this one.
		ToolListChangedHandler: func(context.Context, *sdkmcp.ToolListChangedRequest) {},
	})
	c.AddReceivingMiddleware(func(next sdkmcp.MethodHandler) sdkmcp.MethodHandler {
		return func(ctx context.Context, method string, r sdkmcp.Request) (sdkmcp.Result, error) {
			if method == "ping" {
				return next(ctx, method, r)
			}
			return s.answerRequest(ctx, method, r)
		}
	})
	return c
}

// notice takes what the server says without being asked. Nothing else is of interest.
func (s *session) notice(method string, params json.RawMessage) {
	switch method {
	case "notifications/tools/list_changed":
		s.suspect()
	case "notifications/message":
		var p struct {
			Data json.RawMessage `json:"data"`
		}
		_ = json.Unmarshal(params, &p)
		words := string(p.Data)
		_ = json.Unmarshal(p.Data, &words) // a string, or anything
		s.u.log.quote("it logs", words)
	case "notifications/progress":
		var p struct {
			Token           string `json:"progressToken"`
			Progress, Total float64
		}
		if json.Unmarshal(params, &p) != nil {
			return
		}
		s.mu.Lock()
		hear := s.hears[p.Token]
		s.mu.Unlock()
		if hear != nil {
			hear(numbers(p.Progress, p.Total))
		}
	}
}

// called is what the server calls itself.
func (s *session) called() string {
	if hello := s.client.InitializeResult(); hello != nil && hello.ServerInfo != nil {
		return hello.ServerInfo.Name
	}
	return ""
}

// numbers is how far something is, as 3/10; the server's words for it aren't passed on.
func numbers(done, total float64) string {
	text := func(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
	if total == 0 || math.IsInf(total, 0) || math.IsNaN(total) {
		return text(done)
	}
	return text(done) + "/" + text(total)
}

// hear has a function told of a request's progress, until stop is called.
func (s *session) hear(ctx context.Context, o *operation, token string) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hears[token] = func(numbers string) { sdk.Progress(ctx, "%s %s", o.Name, numbers) }
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.hears, token)
	}
}

// hasEnded reports whether it is of no use any more.
func (s *session) hasEnded() bool {
	select {
	case <-s.ready:
	default:
		return false
	}
	if s.failed != nil {
		return true
	}
	select {
	case <-s.conn.ended():
		return true
	default:
		return false
	}
}

// end ends the conversation, and the server's process. One that is still being begun is
// given up, and ends when that is noticed.
func (s *session) end() {
	s.cancel()
	select {
	case <-s.ready:
		s.close()
	default:
		go func() {
			<-s.ready
			s.close()
		}()
	}
}

// close closes what connect opened.
func (s *session) close() {
	if s.conn != nil {
		s.conn.Close()
	}
	if s.client != nil {
		s.client.Close() // the SDK's own goroutines end
	}
}

// noSession is the failure of a request for which no session could be made: nothing of it
// was sent.
func (u *upstream) noSession(err error) error {
	if status := (*statusError)(nil); errors.As(err, &status) {
		return u.refusal(status, "nothing was asked of it")
	}
	what := "doesn't start, or doesn't speak MCP"
	if u.settings.Server.URL != "" {
		what = "can't be reached, or doesn't speak MCP"
	}
	return sdk.Fail("unreachable", "the server %s; nothing was asked of it", what).
		WithHint("Tell the user: the operator's log says why, and mcp-pif mcp test " + u.settings.Name + " tries it.").WithRetry()
}
