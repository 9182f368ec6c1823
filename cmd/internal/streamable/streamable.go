// Package streamable is MCP over HTTP: one URL for clients of the stateless
// protocol and of the older ones with sessions.
//
// It decides who may speak at all: which Host and Origin a request may name,
// which bearer token stands for which principal ([Tokens], [Keys]), how large a
// body may be and how long it may take to arrive, how many requests and sessions
// there may be. Whose tools and journal a request sees is its principal's:
// [Options.Server] gives the server for it, and nothing of one principal's can be
// reached through another's.
//
// It refuses to serve off the machine without tokens ([Options.Check]): a
// listener that others can reach is theirs as well.
//
// guard.go tells the protocols apart, refuses unknown ones and holds who may come in,
// budget.go how much at once, room.go who gives way where there is no room.
// calls.go who waits before the SDK has his call, answers.go bounds how much of answers is held and how slowly they may be read, and
// refuses what is no message; conns.go bounds the connections and decides which session ends
// for another, and live.go ends what would not end by itself. The
// protocol itself is the SDK's.
package streamable

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/stdio"
)

// Path is where MCP is served. The root is, too, since clients are often given
// no more than host and port.
const Path = "/mcp"

// Options is what a [Handler] is made from. The zero value of a field is its
// default, but Server is required.
type Options struct {
	// Server gives the server of a principal, "" where there are no tokens. It
	// is asked for every request, with a context that ends when the request
	// does; until then the server is in use, and as long as it has sessions. A nil
	// server with an error ends the request with status 503; the error goes to
	// the log only.
	Server func(ctx context.Context, principal string) (*mcp.Server, error)
	// Verify knows tokens; nil: everybody may come in, as principal "".
	Verify auth.TokenVerifier
	// Audience is the URL for which tokens are, and Issuer that of who issues them: clients are told both
	// (RFC 9728), unless one is no URL.
	Audience, Issuer string
	// Hosts are names, without port, by which this server may be called besides
	// those of the machine itself; Origins those of web pages that may call it,
	// "https://app.example.com".
	Hosts, Origins []string
	// Ready is why the server should get no requests, for /readyz; nil: it never is so.
	Ready func() error
	// Note is what /readyz says in place of "ok"; nil or "": nothing.
	Note func() string
	// Roams is set where a session that another server began, or this one before it was started
	// again, goes on here, but one that was ended: its name says how it began.
	Roams Endings
	// Metrics is served at /metrics; nil: nothing is there. With tokens it
	// needs one.
	Metrics http.Handler
	// Measure is put around all that is served; nil: nothing.
	Measure func(http.Handler) http.Handler
	// TLS is how connections are secured; nil: they aren't.
	TLS *tls.Config
	Log *slog.Logger // nil discards

	MaxBody int64 // bytes of one request; 8 MiB
	// ArgumentsHeader is where a server finds the arguments of a large call; "": in the call.
	ArgumentsHeader string
	MaxBodies       int64         // bytes of the requests being read or served; 24 MiB, a quarter for each principal
	MaxRequests     int           // at once, streams included; 2,000, a quarter for each principal
	MaxSessions     int           // of the older protocols, for each principal; 1,000
	MaxConns        int           // connections; 4,000, a quarter for those of one address on which nobody was admitted
	IdleUnknown     time.Duration // after which such a connection ends; 5 s
	IdleSession     time.Duration // after which such a session ends; 30 min
	KeptSession     time.Duration // for which one stays that isn't used, though there is no room for another; 1 min
	BodyTime        time.Duration // for a body to arrive; 30 s, a third of it where its request is refused
	WriteTime       time.Duration // for a client to take what is written; 30 s
	Grace           time.Duration // for what is under way when the server ends; 10 s
}

func (o Options) orDefault() Options {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.MaxBody = cmp.Or(o.MaxBody, 8<<20)
	o.MaxBodies = cmp.Or(o.MaxBodies, 24<<20)
	o.MaxRequests = cmp.Or(o.MaxRequests, 2000)
	o.MaxSessions = cmp.Or(o.MaxSessions, 1000)
	o.MaxConns = cmp.Or(o.MaxConns, 4000)
	o.IdleUnknown = cmp.Or(o.IdleUnknown, 5*time.Second)
	o.WriteTime = cmp.Or(o.WriteTime, 30*time.Second)
	o.IdleSession = cmp.Or(o.IdleSession, 30*time.Minute)
	o.KeptSession = cmp.Or(o.KeptSession, time.Minute)
	o.BodyTime = cmp.Or(o.BodyTime, 30*time.Second)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	return o
}

// maxSmallBody is how many bytes the body of a request may have that doesn't take a turn to be
// parsed, checked and compiled, which takes about a hundred times its size.
const maxSmallBody = 32 << 10

// Handler answers the requests of MCP clients, /healthz and /readyz.
type Handler struct {
	o        Options
	guard    guard
	metadata string // where it is said who issues tokens, "": nowhere
	budget   budget
	live     live
	answers  room
	turns    turns
	parsing  turns // of requests with large bodies
	calls    calls
	sessions sessions
	roaming  *roaming // nil: sessions don't
	modern   *mcp.StreamableHTTPHandler
	session  *mcp.StreamableHTTPHandler
	mux      http.Handler
}

// New makes a handler.
func New(o Options) (*Handler, error) {
	o = o.orDefault()
	if o.Server == nil {
		return nil, errors.New("no server was given")
	}
	h := &Handler{
		o: o, budget: newBudget(o), answers: room{size: answerRoom, own: ownAnswers},
		turns: turns{most: max(2, runtime.GOMAXPROCS(0))}, parsing: turns{most: max(2, runtime.GOMAXPROCS(0))},
	}
	var err error
	if h.guard, err = newGuard(o.Hosts, o.Origins); err != nil {
		return nil, err
	}
	server := func(r *http.Request) *mcp.Server { s, _ := r.Context().Value(serverKey{}).(*mcp.Server); return s }
	log := slog.New(quiet{o.Log.Handler()})
	h.modern = mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		Stateless: true, Logger: log, MaxRequestBodyBytes: -1, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // guard.go has it, for every address
	})
	h.session = mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		Logger: log, MaxRequestBodyBytes: -1, SessionTimeout: o.IdleSession, DisableLocalhostProtection: true,
	})
	if o.Roams != nil {
		h.roaming = &roaming{ends: o.Roams, boot: rand.Text()[:8], here: map[roamer]*reopened{}}
	}
	mux := http.NewServeMux()
	h.describe(mux)
	protocol := greet(h.authorize(http.HandlerFunc(h.serve)))
	mux.Handle(Path, protocol)
	mux.Handle("/{$}", protocol)
	mux.HandleFunc("/healthz", health)
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if o.Ready != nil && o.Ready() != nil {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		if o.Note != nil {
			if note := o.Note(); note != "" && r.Method == http.MethodGet {
				fmt.Fprintln(w, note)
				return
			}
		}
		health(w, r)
	})
	if o.Metrics != nil {
		mux.Handle("GET /metrics", h.authorize(http.HandlerFunc(h.metrics)))
	}
	h.mux = boundArrival(o.BodyTime/3, paceAnswers(o.WriteTime, h.recoverPanics(h.guard.handler(mux))))
	if o.Measure != nil {
		h.mux = o.Measure(h.mux)
	}
	return h, nil
}

// Check refuses a listener that others than the operator's own programs can
// reach as it is: without tokens, off the machine, or with grants.
func (o *Options) Check(addr net.Addr, granted bool) error {
	if o.Verify != nil {
		return nil
	}
	if tcp, ok := addr.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return fmt.Errorf("%s can be reached from other machines, so it needs tokens: give --http-tokens FILE or --http-jwks FILE, or listen on 127.0.0.1", addr)
	}
	if granted {
		return errors.New("any program on this machine can reach it, and something is granted, so it needs tokens: give --http-tokens FILE or --http-jwks FILE")
	}
	return nil
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// greet tells a person who opens the address in a browser what it is.
func greet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !strings.Contains(r.Header.Get("Accept"), "text/html") {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "This is an MCP server: give this address to an MCP client. To look at its tools and runs in a browser, run: mcp-pif ui")
	})
}

// health answers that the process runs. It tells nothing else to whoever asks.
func health(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "ok")
}

// metrics makes the page in turn, and writes it at once.
func (h *Handler) metrics(w http.ResponseWriter, r *http.Request) {
	leave, err := h.turns.enter(r.Context(), principalOf(r.Context()))
	if err != nil {
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	p := &page{ResponseWriter: w}
	h.o.Metrics.ServeHTTP(p, r)
	_, _ = w.Write(p.text.Bytes())
}

// A page gathers what is written.
type page struct {
	http.ResponseWriter
	text bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) { return p.text.Write(b) }

// recoverPanics keeps a panic from ending more than its request, and from being
// printed by net/http.
func (h *Handler) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p)
			default:
				h.o.Log.Error("recovered from a panic", "in", "http", "panic", fmt.Sprint(p))
				http.Error(w, "internal error; see the server log", http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// authorize lets in who has a token, where tokens are asked for.
func (h *Handler) authorize(next http.Handler) http.Handler {
	entered := next
	next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		admit(r.Context())
		entered.ServeHTTP(w, r)
	})
	if h.o.Verify == nil {
		return next
	}
	known := auth.RequireBearerToken(h.o.Verify, &auth.RequireBearerTokenOptions{
		AllowMissingExpiration: true, // of the tokens in a file; Keys wants one
		ClockSkew:              leeway,
	})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Del("WWW-Authenticate")
		next.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.challenge(w, r)
		known.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), changesKey{}, h.live.changes.Load())))
	})
}

// challenge tells whoever is refused by what they would come in (RFC 6750 section 3), and where it is said who has that
// (RFC 9728 section 5.1).
func (h *Handler) challenge(w http.ResponseWriter, r *http.Request) {
	how := `Bearer realm="mcp-pif"`
	if h.metadata != "" {
		how += fmt.Sprintf(", resource_metadata=%q", h.metadata)
	}
	if r.Header.Get("Authorization") != "" {
		how += `, error="invalid_token"`
	}
	w.Header().Set("WWW-Authenticate", how)
}

// unanswered answers a request that was ended before anything of its answer was written: by who ended it, since a client
// that is gone reads nothing. One that had begun is neither said to be unavailable for now nor to need another token: whoever
// sends it again repeats what it did. Of a session that its client has ended none is there any more.
func (h *Handler) unanswered(w http.ResponseWriter, r *http.Request, one *request, begun bool) {
	switch {
	case one.over.Load():
		http.Error(w, "the session has ended", http.StatusNotFound)
		return
	case begun:
		http.Error(w, "the call was ended; what it had begun may be done", http.StatusInternalServerError)
		return
	}
	status := http.StatusServiceUnavailable
	if h.o.Verify != nil && (r.Context().Err() == context.DeadlineExceeded || !h.stands(context.WithoutCancel(r.Context()), one)) {
		h.challenge(w, r)
		status = http.StatusUnauthorized
	}
	http.Error(w, http.StatusText(status), status)
}

// errEnds is why a request ends that the server doesn't wait for any longer.
var errEnds = errors.New("the server ends")

// ErrFull is what [Options.Server] fails with where there is no room for one more principal.
// Whoever makes servers logs it, not each of the requests.
var ErrFull = errors.New("there is no room for one more principal")

type serverKey struct{}

// principalOf returns whose request it is, "" where there are no tokens.
func principalOf(ctx context.Context) string {
	if info := auth.TokenInfoFromContext(ctx); info != nil {
		return info.UserID
	}
	return ""
}

// serve finds whose request it is, and in which protocol.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	principal := principalOf(r.Context())
	if h.o.ArgumentsHeader != "" {
		r.Header[h.o.ArgumentsHeader] = []string{""} // no client has it; nor is the map changed once others look at it
	}
	r, one, end := h.live.begin(r)
	defer end()
	if h.o.Verify != nil && one.seen != h.live.changes.Load() && !h.stands(r.Context(), one) { // they changed meanwhile
		h.challenge(w, r)
		http.Error(w, http.StatusText(http.StatusUnauthorized), http.StatusUnauthorized)
		return
	}
	place, status := h.budget.enter(principal, one.cancel)
	if status != 0 {
		if r.Body != nil && r.Body != http.NoBody { // which isn't waited for long
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.o.BodyTime / 30))
		}
		http.Error(w, http.StatusText(status), status)
		return
	}
	defer place.leave()
	server, err := h.o.Server(r.Context(), principal)
	if errors.Is(err, ErrFull) {
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
		return
	}
	if err != nil || server == nil {
		h.o.Log.Error("there is no server for a principal", "principal", principal, "error", err)
		http.Error(w, "not available now; the operator's log says why", http.StatusServiceUnavailable)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), serverKey{}, server))
	body, status := place.read(w, r)
	switch {
	case status == http.StatusRequestEntityTooLarge:
		h.tooLarge(w, r)
		return
	case status != 0:
		http.Error(w, http.StatusText(status), status)
		return
	case r.Method == http.MethodPost && refuseMalformed(w, r, body), unspoken(w, r, body):
		return
	}
	answer := &answering{ResponseWriter: w, room: &h.answers, principal: principal, ctx: r.Context(), cancel: one.cancel}
	w = answer
	begun := false // the SDK has it
	defer func() {
		if r.Context().Err() != nil && !answer.wrote {
			h.unanswered(w, r, one, begun)
		}
	}()
	methods := methodsOf(body)
	if !place.fits(len(methods)) {
		http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
		return
	}
	stateless := modern(r, body)
	if stateless {
		if unserved(w, r, server, body, true) || misrouted(w, r, body, methods) {
			return
		}
		if slices.Contains(methods, "tools/call") { // a session's could be cancelled by another message while it waits
			leave, err := h.calls.enter(r.Context(), principal)
			if err != nil {
				return
			}
			defer leave()
		}
	}
	switch n := lists(methods); {
	case n > maxLists:
		refuse(w, body, jsonrpc.CodeInvalidRequest, fmt.Sprintf("invalid request: a batch of over %d lists", maxLists), nil)
		return
	case n > 0:
		leave, err := h.turns.enter(r.Context(), principal)
		if err != nil {
			return
		}
		defer leave()
		answer.begun = leave
	case len(body) > maxSmallBody:
		leave, err := h.parsing.enter(r.Context(), principal)
		if err != nil {
			return
		}
		defer leave()
	}
	if r.Method == http.MethodGet || slices.Contains(methods, "subscriptions/listen") {
		if len(body) > maxStreamBytes {
			http.Error(w, http.StatusText(http.StatusRequestEntityTooLarge), http.StatusRequestEntityTooLarge)
			return
		}
		h.live.streams(one)
		place.streams()
	}
	if stateless {
		h.moveArguments(r, body, methods)
		begun = true
		h.modern.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "" && outside(w, body) {
		return
	}
	if r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "" && !h.room(server) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many sessions", http.StatusServiceUnavailable)
		return
	}
	if h.roaming != nil {
		if w = h.roam(w, one, server, principal, body); w == nil {
			return
		}
	}
	if w = unservedOf(w, r, server, body); w == nil || unserved(w, r, server, body, false) {
		return
	}
	begun = true
	h.serveSession(w, r, server)
	if r.Context().Err() != nil && r.Method == http.MethodPost && r.Header.Get(sessionHeader) != "" {
		h.cancelRun(r, body)
	}
}

// moveArguments hands the arguments of a large call on in a header of ours: to compare the tool's name with Mcp-Name,
// the SDK would make Go values of them all.
func (h *Handler) moveArguments(r *http.Request, body []byte, methods []string) {
	if h.o.ArgumentsHeader == "" || len(body) <= maxSmallBody || len(methods) != 1 || methods[0] != "tools/call" {
		return
	}
	rest, arguments := stdio.MoveArguments(body)
	if arguments == nil {
		return
	}
	r.Header[h.o.ArgumentsHeader][0] = string(arguments)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(rest)), int64(len(rest))
}

// Serve answers what comes in on a listener until ctx ends, and then what is
// under way, for half as long as [Options.Grace]; the rest of that is for calls to be
// cancelled. The error is nil after ctx ended.
func (h *Handler) Serve(ctx context.Context, ln net.Listener) error {
	base, end := context.WithCancelCause(context.WithoutCancel(ctx))
	cancel := func() { end(errEnds) }
	defer cancel()
	open := conns{most: h.o.MaxConns, share: max(1, h.o.MaxConns/part), unknown: h.o.IdleUnknown}
	srv := &http.Server{
		Handler:           h,
		ConnContext:       open.context,
		ConnState:         open.follow,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(quiet{h.o.Log.Handler()}, slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	ended := make(chan error, 1)
	if h.o.TLS != nil {
		config := h.o.TLS.Clone()
		config.NextProtos = []string{"http/1.1"} // a connection of HTTP/2 would have hundreds of requests, and a mebibyte of their bodies, before one is admitted
		ln = tls.NewListener(ln, config)
	}
	go func() { ended <- srv.Serve(ln) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	h.o.Log.Info("the server ends when the calls under way have their answers", "at_most", h.o.Grace)
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), h.o.Grace)
	defer stop()
	// Streams don't end by themselves, and calls may take longer than that.
	h.live.endStreams()
	closing := time.AfterFunc(h.o.Grace/2, cancel)
	defer closing.Stop()
	// What was dialled for later would be waited for, too.
	defer time.AfterFunc(min(h.o.Grace/2, 250*time.Millisecond), open.closeUnused).Stop()
	if err := srv.Shutdown(grace); err != nil {
		cancel()
		return srv.Close()
	}
	return nil
}

// quiet is a log one level down: what the libraries call an error is a request
// that they refused.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool { return q.Handler.Enabled(ctx, l-4) }

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level -= 4
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }
