package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-pif/mcp-pif/plugins/mcplogin"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// An httpConn is a connection to a URL, by streamable HTTP of both eras: each message is a
// request of its own, whose answer is JSON or a stream of events.
type httpConn struct {
	exchanges
	url     string
	headers map[string]string
	client  *http.Client
	login   *mcplogin.Source // nil: there is none
	log     *logger
	heard   chan jsonrpc.Message
	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc

	mu      sync.Mutex
	version string // of the protocol, as it was negotiated
	session string // the server's name for it; empty: it has none
}

// The headers of the protocol.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerParam   = "Mcp-Param-"
)

// stateless is the first version of the protocol without sessions.
const stateless = "2026-07-28"

// noticeTimeout is how long a server may take to accept a message that has no answer.
const noticeTimeout = 5 * time.Second

func newHTTP(url string, headers map[string]string, login *mcplogin.Source, log *logger, notice func(string, json.RawMessage)) *httpConn {
	c := &httpConn{url: url, headers: headers, login: login, log: log, heard: make(chan jsonrpc.Message), exchanges: exchanges{notice: notice}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.client = &http.Client{
		Transport:     &http.Transport{ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute},
		CheckRedirect: sameOrigin,
	}
	return c
}

// sameOrigin follows no redirect to elsewhere, where the headers would go too, and none
// that makes another request.
func sameOrigin(r *http.Request, via []*http.Request) error {
	if first := via[0]; len(via) > 3 || r.URL.Scheme != first.URL.Scheme || r.URL.Host != first.URL.Host || r.Method != first.Method {
		return http.ErrUseLastResponse
	}
	return nil
}

// Read gives the next message.
func (c *httpConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.heard:
		return m, nil
	case <-c.ctx.Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message. A request is sent aside: others don't wait for its answer.
func (c *httpConn) Write(ctx context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		x := c.begin(ctx, r)
		go c.call(ctx, r, text, x)
		return nil
	}
	var r *jsonrpc.Request
	switch m := m.(type) {
	case *jsonrpc.Request:
		r = m
	case *jsonrpc.Response:
		c.answered()
	}
	ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	// A server that doesn't take it says so at the next request.
	if answer, err := c.post(ctx, r, text); err == nil {
		answer.Body.Close()
	}
	if r != nil && r.Method == "notifications/initialized" {
		go c.listen()
	}
	return nil
}

// post makes one HTTP request.
func (c *httpConn) post(ctx context.Context, m *jsonrpc.Request, text []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	c.address(r, m)
	return c.do(r)
}

// do sends a request with the token of the login, and once more with another if the server
// refuses that one: it did nothing then.
func (c *httpConn) do(r *http.Request) (*http.Response, error) {
	if c.login == nil || r.Header.Get("Authorization") != "" {
		return c.client.Do(r)
	}
	token := c.login.Token(r.Context(), r.Method == http.MethodPost)
	if token == "" {
		return c.client.Do(r)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := c.client.Do(r)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return answer, err
	}
	if token, err = c.login.Rejected(r.Context(), token); err != nil {
		c.log.say("its token was refused: " + err.Error())
		return answer, nil
	}
	answer.Body.Close()
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	again.Header.Set("Authorization", "Bearer "+token)
	return c.client.Do(again)
}

// address sets the headers that every request has: the operator's, and the protocol's.
func (c *httpConn) address(r *http.Request, m *jsonrpc.Request) {
	c.mu.Lock()
	version, session := c.version, c.session
	c.mu.Unlock()
	var said struct {
		Name      string                     `json:"name"`
		Arguments map[string]json.RawMessage `json:"arguments"`
		Meta      struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	if m != nil {
		_ = json.Unmarshal(m.Params, &said) // it is ours
		version = cmp.Or(said.Meta.Version, version)
	}
	if version != "" {
		r.Header.Set(headerVersion, version)
	}
	if session != "" {
		r.Header.Set(headerSession, session)
	}
	if m != nil && version >= stateless {
		r.Header.Set(headerMethod, m.Method)
		if m.Method == "tools/call" {
			r.Header.Set(headerName, said.Name)
			if schema, ok := r.Context().Value(schemaKey{}).(json.RawMessage); ok {
				mirror(r.Header, schema, said.Arguments)
			}
		}
	}
	for name, value := range c.headers {
		r.Header.Set(name, value)
	}
}

// call makes a request, and takes what the server answers.
func (c *httpConn) call(ctx context.Context, m *jsonrpc.Request, text []byte, x *exchange) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { x.sent.Store(true) },
	})
	answer, err := c.post(traced, m, text)
	if err != nil {
		c.deliver(c.failed(m.ID, errLost))
		return
	}
	defer answer.Body.Close()
	if session := answer.Header.Get(headerSession); session != "" && m.Method == "initialize" {
		c.mu.Lock()
		c.session = session
		c.mu.Unlock()
	}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		c.refused(m, answer, kind, x)
	case kind == "application/json":
		body, err := io.ReadAll(io.LimitReader(sdk.Reading(ctx, answer.Body, answer.ContentLength), x.most+1))
		noRoom, isNoRoom := errors.AsType[sdk.Failure](err)
		switch {
		case isNoRoom:
			c.deliver(c.failed(m.ID, noRoom))
		case int64(len(body)) > x.most:
			c.deliver(c.failed(m.ID, errTooLarge))
		case err != nil:
			c.deliver(c.failed(m.ID, errLost))
		case !c.take(m, body):
			c.deliver(c.failed(m.ID, errAnswer))
		}
	case kind == "text/event-stream":
		c.deliver(c.failed(m.ID, c.stream(ctx, m, answer, x.most)))
	default:
		c.deliver(c.failed(m.ID, errAnswer))
	}
}

// deliver gives a message to the SDK; nil is none.
func (c *httpConn) deliver(m jsonrpc.Message) {
	if m == nil {
		return
	}
	select {
	case c.heard <- m:
	case <-c.ctx.Done():
	}
}

// take reads a message, and reports whether it is the answer to a request.
func (c *httpConn) take(m *jsonrpc.Request, text []byte) (isAnswer bool) {
	if isHuge(text) {
		return false
	}
	got, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return false
	}
	if answer, ok := got.(*jsonrpc.Response); ok {
		if m == nil || answer.ID != m.ID {
			return false // it is for nobody here
		}
		isAnswer = true
		if m.Method == "initialize" {
			c.mu.Lock()
			c.version = ""
			_ = json.Unmarshal(textOf(answer.Result, "protocolVersion"), &c.version)
			c.mu.Unlock()
		}
	}
	c.deliver(c.receive(got))
	return isAnswer
}

// stream reads events until the answer to a request is among them, and gives why it isn't.
// A stream that breaks off is taken up again where the server says how.
func (c *httpConn) stream(ctx context.Context, m *jsonrpc.Request, answer *http.Response, most int64) error {
	last := ""
	for tries := 0; ; tries++ {
		r, wait := bufio.NewReaderSize(answer.Body, 16<<10), time.Second
		for {
			e, err := readEvent(r, most, func(bytes int64) error { return sdk.Room(ctx, bytes) })
			if errors.Is(err, errTooLarge) || int64(len(e.data)) > most {
				return errTooLarge
			}
			if err != nil {
				break
			}
			if e.noRoom != nil && e.answers == m.ID { // anything else is dropped
				return e.noRoom
			}
			last, wait = cmp.Or(e.id, last), cmp.Or(e.retry, wait)
			if len(e.data) > 0 && (e.name == "" || e.name == "message") && c.take(m, e.data) {
				return nil
			}
		}
		answer.Body.Close()
		if last == "" || tries >= 5 {
			return errLost
		}
		select {
		case <-time.After(min(wait, 30*time.Second)):
		case <-ctx.Done():
			return errLost
		}
		var err error
		if answer, err = c.get(ctx, last); err != nil {
			return errLost
		}
		defer answer.Body.Close()
	}
}

// get opens a stream of events, from one on that came before.
func (c *httpConn) get(ctx context.Context, last string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	c.address(r, nil)
	answer, err := c.do(r)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); answer.StatusCode != http.StatusOK || kind != "text/event-stream" {
		answer.Body.Close()
		return nil, &statusError{status: answer.StatusCode}
	}
	return answer, nil
}

// listen hears what the server says outside of answers, as versions with sessions have it.
// A server that has nothing to say refuses.
func (c *httpConn) listen() {
	for wait := time.Second; ; wait = min(2*wait, 30*time.Second) {
		answer, err := c.get(c.ctx, "")
		if status := (*statusError)(nil); errors.As(err, &status) && status.status < 500 {
			return
		}
		if err == nil {
			r := bufio.NewReaderSize(answer.Body, 16<<10)
			for {
				e, err := readEvent(r, maxOwn, nil)
				if err != nil {
					break
				}
				wait = time.Second
				if len(e.data) > 0 {
					c.take(nil, e.data)
				}
			}
			answer.Body.Close()
		}
		select {
		case <-time.After(wait):
		case <-c.ctx.Done():
			return
		}
	}
}

// refused takes an answer with a status that isn't one of success. Its text is read only
// where it is an error of the protocol.
func (c *httpConn) refused(m *jsonrpc.Request, answer *http.Response, kind string, x *exchange) {
	status := &statusError{status: answer.StatusCode}
	if seconds, err := strconv.ParseInt(answer.Header.Get("Retry-After"), 10, 32); err == nil && seconds > 0 {
		status.retryAfter = seconds
	}
	// A server that was started anew knows no session of before: it says 404 by the protocol, many say 400, and some 401.
	isBad := answer.StatusCode == http.StatusBadRequest
	status.isLost = c.SessionID() != "" && (isBad || answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusUnauthorized)
	if kind == "application/json" && answer.StatusCode/100 == 4 && answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusForbidden {
		if body, err := io.ReadAll(io.LimitReader(answer.Body, maxOwn)); err == nil {
			got, _ := jsonrpc.DecodeMessage(body)
			e, ok := got.(*jsonrpc.Response)
			if rpc := (*jsonrpc.Error)(nil); ok && isBad && errors.As(e.Error, &rpc) && (rpc.Code == jsonrpc.CodeInvalidParams || rpc.Code == jsonrpc.CodeMethodNotFound) {
				status.isLost = false // it is about the call
			}
			if ok && e.Error != nil && !status.isLost {
				x.fail(e.Error)
				if _, ok := c.forget(m.ID); ok {
					c.deliver(&jsonrpc.Response{ID: m.ID, Error: e.Error})
				}
				return
			}
		}
	}
	c.deliver(c.failed(m.ID, status))
	// The next request makes another session. A tool may give such a status of its own: the calls beside it go on.
	if status.isLost && m.Method != "tools/call" {
		c.cancel()
	}
}

// Close ends the connection, and tells a server that has a session.
func (c *httpConn) Close() error {
	if c.ctx.Err() == nil && c.SessionID() != "" {
		ctx, cancel := context.WithTimeout(c.ctx, noticeTimeout)
		defer cancel()
		if r, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.url, nil); err == nil {
			c.address(r, nil)
			if answer, err := c.do(r); err == nil {
				answer.Body.Close()
			}
		}
	}
	c.cancel()
	c.client.CloseIdleConnections()
	return nil
}

// SessionID is the server's name of the session.
func (c *httpConn) SessionID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

func (c *httpConn) ended() <-chan struct{} { return c.ctx.Done() }

type schemaKey struct{}

// mirror puts arguments into headers, where the schema of a tool says so (SEP-2243).
func mirror(h http.Header, schema json.RawMessage, arguments map[string]json.RawMessage) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(schema, &s)
	for name, property := range s.Properties {
		var p struct {
			Header string `json:"x-mcp-header"`
		}
		raw, isGiven := arguments[name]
		if json.Unmarshal(property, &p) != nil || !isGiven {
			continue
		}
		if p.Header == "" {
			var inner map[string]json.RawMessage
			if json.Unmarshal(raw, &inner) == nil {
				mirror(h, property, inner)
			}
			continue
		}
		text := string(raw)
		var s string
		switch err := json.Unmarshal(raw, &s); {
		case err == nil && raw[0] == '"':
			text = headerText(s)
		case raw[0] == '{' || raw[0] == '[' || raw[0] == 'n':
			continue
		}
		h.Set(headerParam+p.Header, text)
	}
}

// headerText is a text as a header has it: base64 where it couldn't stand by itself.
func headerText(s string) string {
	plain := strings.TrimSpace(s) == s && !strings.HasPrefix(s, "=?")
	for _, c := range []byte(s) {
		plain = plain && c >= ' ' && c < 0x7f
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}
