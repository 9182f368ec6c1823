package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

const (
	// defaultTimeout is how long a request takes at most where neither the
	// capability nor the program says.
	defaultTimeout = 30 * time.Second
	// atOnce is how many requests of a capability run at the same time; others
	// wait, within their time.
	atOnce = 32
	// idleTime is how long a connection is kept for the next request. It is
	// short, since a request that isn't idempotent fails where the server
	// closes the connection at the same moment.
	idleTime = 15 * time.Second
	// userAgent is what servers are told where the program says nothing.
	userAgent = "mcp-pif/" + version
)

// A world is what is outside: tests have another.
type world struct {
	resolver resolver
	roots    *x509.CertPool // nil: the system's
	// connect connects to an address that the guard permits; nil: by TCP.
	connect func(ctx context.Context, a netip.AddrPort) (net.Conn, error)
	// head is the head start of an address over the next one; 0: headStart.
	head time.Duration
}

// A client performs the requests of one capability. It has a transport of its
// own: no connection, and so no check that was made for one, is shared with
// another capability. It keeps no cookies and knows of no proxy.
type client struct {
	text      string // the capability, as people write it
	verbs     []string
	within    pattern
	denials   []denial
	max       int64
	timeout   time.Duration
	transport *http.Transport
	running   *semaphore.Weighted
	closed    context.Context
	close     context.CancelCauseFunc
}

// open makes the client of a capability. It connects to nothing.
func (w world) open(_ context.Context, c sdk.Capability) (*client, error) {
	within, err := parsePattern(c.Within)
	if err != nil {
		return nil, err
	}
	if within.addr.IsValid() {
		if err := grantable(within.addr); err != nil {
			return nil, err
		}
	}
	denials, err := parseDenials(c.Denies)
	if err != nil {
		return nil, err
	}
	g := guard{granted: within.addr, port: within.port}
	for _, d := range denials {
		if d.addr.IsValid() && d.verbs == nil && d.open && len(d.segments) == 0 {
			g.denied = append(g.denied, netip.AddrPortFrom(d.addr, d.port))
		}
	}
	k := &client{
		text: c.Text, verbs: c.Verbs, within: within, denials: denials,
		max: c.Max, timeout: c.Timeout,
		running: semaphore.NewWeighted(atOnce),
	}
	if k.max <= 0 {
		k.max = defaultMax
	}
	if k.timeout <= 0 {
		k.timeout = defaultTimeout
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true) // over TLS only
	k.transport = &http.Transport{
		Proxy:                  nil, // never the environment's: it would see all and be asked to connect
		DialContext:            w.newDialer(g).dial,
		TLSClientConfig:        &tls.Config{RootCAs: w.roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    connectTime,
		DisableCompression:     true, // readBody decompresses, and counts
		MaxIdleConnsPerHost:    atOnce,
		MaxIdleConns:           2 * atOnce,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxResponseHeaders,
		Protocols:              protocols,
	}
	k.closed, k.close = context.WithCancelCause(context.Background())
	return k, nil
}

// Close ends the requests that run, and the connections.
func (k *client) Close() error {
	k.close(errClosed)
	k.transport.CloseIdleConnections()
	return nil
}

// A call is a request of a program, checked for its form.
type call struct {
	method  string // in upper case
	target  target
	headers http.Header // the program's
	secrets []secretHeader
	body    []byte
	// contentType is that of the body where the program names none.
	contentType string
	timeout     time.Duration // 0: the client's
}

// permits checks a request against the capability. It resolves no name.
func (k *client) permits(method string, t target) error {
	verb := strings.ToLower(method)
	if len(k.verbs) > 0 && !slices.Contains(k.verbs, verb) {
		return failf(codeDenied, "%s is not a method that the capability %s allows", method, k.text)
	}
	if !k.within.covers(t) {
		return failf(codeDenied, "%s lies outside the capability %s", show(t), k.text)
	}
	for _, d := range k.denials {
		if d.touches(t) && (d.verbs == nil || slices.Contains(d.verbs, verb)) {
			return failf(codeDenied, "%s is denied to the capability %s", show(t), k.text)
		}
	}
	if isLocal(t.host) {
		t.host = "127.0.0.1"
		return sdk.Fail(codeDenied, "the name localhost stands for this machine, which is reached only where the operator granted its address").
			WithHint("Ask the operator to start the server with --cap 'fetch:" + t.origin.String() + "/**', and request that address.")
	}
	return nil
}

// show names a target in a message: without its query, and not at any length.
func show(t target) string {
	return display.Truncate(t.origin.String()+t.path, 200)
}

// do performs a request, its redirects included.
func (k *client) do(ctx context.Context, c call) (*answer, error) {
	if c.timeout == 0 || c.timeout > k.timeout {
		c.timeout = k.timeout
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(k.closed, func() { stop(context.Cause(k.closed)) })()

	if k.closed.Err() != nil {
		return nil, errClosed
	}
	if err := k.permits(c.method, c.target); err != nil {
		return nil, err
	}
	if err := c.checkSecrets(ctx); err != nil {
		return nil, err
	}
	if err := k.running.Acquire(ctx, 1); err != nil {
		return nil, unsent(ctx, err, c.target.host, sdk.Fail(codeFailed, "it wasn't begun: its time was over before its turn came"))
	}
	defer k.running.Release(1)
	return k.follow(ctx, c)
}

// request makes the request that is sent.
func (k *client) request(ctx context.Context, c call) (*http.Request, error) {
	var body io.Reader
	if c.body != nil {
		body = bytes.NewReader(c.body)
	}
	req, err := http.NewRequestWithContext(ctx, c.method, c.target.String(), body)
	if err != nil || req.URL.String() != c.target.String() || req.URL.Host != c.target.authority() {
		// The library reads another URL than the one that was checked.
		return nil, invalid("the URL can't be requested as it is written")
	}
	maps.Copy(req.Header, c.headers)
	setDefault := func(name, v string) {
		if _, ok := req.Header[name]; !ok && v != "" {
			req.Header[name] = []string{v}
		}
	}
	if err := c.addSecrets(ctx, req.Header); err != nil {
		return nil, err
	}
	setDefault("User-Agent", userAgent)
	setDefault("Content-Type", c.contentType)
	if _, partial := req.Header["Range"]; !partial && c.method != http.MethodHead {
		setDefault("Accept-Encoding", "gzip")
	}
	return req, nil
}

// send performs one request, without following a redirect.
func (k *client) send(ctx context.Context, c call) (*http.Response, error) {
	for tries := 1; ; tries++ {
		req, err := k.request(ctx, c)
		if err != nil {
			return nil, err
		}
		method := http.MethodGet // of what was sent: nothing yet
		trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { method = c.method }}
		resp, err := k.transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
		switch {
		case err == nil && resp.StatusCode == http.StatusSwitchingProtocols:
			resp.Body.Close()
			return nil, failf(openCode(c.method), "%s changed to another protocol, which nobody asked for", c.target.host)
		case err == nil:
			return resp, nil
		case tries == atOnce, !readOnly(c.method), !errors.Is(err, context.Canceled), ctx.Err() != nil:
			if readOnly(method) && !readOnly(c.method) {
				return nil, unsent(ctx, err, c.target.host, sdk.Fail(codeUnreachable, "%s could not be connected to in time", c.target.host))
			}
			return nil, explain(ctx, err, method, c.target.host)
		}
		// net/http gives a connection back before an answer without a body is taken. The
		// cancellation of that request, when it comes in between, ended this one.
	}
}

// read makes an answer of a response, and closes it.
func (k *client) read(ctx context.Context, resp *http.Response, c call) (*answer, error) {
	defer resp.Body.Close()
	text, err := readBody(ctx, resp, k.max)
	noRoom, isNoRoom := errors.AsType[sdk.Failure](err)
	_, closed := errors.AsType[sdk.Failure](context.Cause(ctx))
	switch {
	case isNoRoom && !closed:
		noRoom.Message = fmt.Sprintf("%s answered with status %d, and its answer wasn't read: %s", c.target.host, resp.StatusCode, noRoom.Message)
		if !readOnly(c.method) {
			noRoom.Code = codeUnknown
			noRoom.Hint = "The request was made; find out what came of it before it is made again."
		}
		return nil, noRoom
	case errors.Is(err, errTooLarge):
		if !readOnly(c.method) {
			return nil, failf(codeUnknown, "%s answered with status %d, and the body of that is over the limit of %d bytes", c.target.host, resp.StatusCode, k.max)
		}
		return nil, failf(codeTooLarge, "the body of the answer of %s is over the limit of %d bytes", c.target.host, k.max)
	case err != nil:
		return nil, explain(ctx, err, c.method, c.target.host)
	}
	return &answer{status: resp.StatusCode, headers: resp.Header, body: text, target: c.target}, nil
}
