package streamable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A guard refuses what a web page makes a browser send. A page can't choose the
// Host of its requests other than by a name of its own that resolves to this
// machine, and can't hide its Origin.
type guard struct {
	hosts   map[string]bool
	origins []string // of the pages that are let in
	origin  *http.CrossOriginProtection
}

func newGuard(hosts, origins []string) (guard, error) {
	g := guard{hosts: map[string]bool{"localhost": true}, origins: origins, origin: http.NewCrossOriginProtection()}
	for _, h := range hosts {
		name := strings.ToLower(strings.TrimSuffix(h, "."))
		if name == "" || strings.ContainsAny(name, ":/@*? ") {
			return g, fmt.Errorf("%q is not a host's name: give it alone, without port, such as pif.example.com", h)
		}
		g.hosts[name] = true
	}
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || strings.Contains(o, "*") {
			return g, fmt.Errorf("%q is not an origin: give scheme and host, such as https://app.example.com", o)
		}
		if err := g.origin.AddTrustedOrigin(o); err != nil {
			return g, err
		}
	}
	return g, nil
}

func (g *guard) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.host(r.Host) {
			http.Error(w, "this server isn't called by that name; the operator's flag is --http-host", http.StatusForbidden)
			return
		}
		if !g.from(r) {
			http.Error(w, "requests of that origin aren't taken; the operator's flag is --http-origin", http.StatusForbidden)
			return
		}
		if g.share(w, r) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// share lets a page of a listed origin read the answer (https://fetch.spec.whatwg.org/#http-cors-protocol). It reports whether
// it has answered: a browser that asks what the page may send, which it does without a token.
func (g *guard) share(w http.ResponseWriter, r *http.Request) bool {
	header := w.Header()
	header.Add("Vary", "Origin")
	if !slices.Contains(g.origins, r.Header.Get("Origin")) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	header.Set("Access-Control-Expose-Headers", sessionHeader+", WWW-Authenticate, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	header.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		header.Set("Access-Control-Allow-Headers", asked) // some are named after a tool's parameters
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// host reports whether the server may be called by a name: one that no other
// name system can have pointed here. Addresses are.
func (g *guard) host(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return g.hosts[host]
}

// from reports whether a request may come from where it says. What net/http lets
// pass because it is only read (GET) opens streams here, so it is asked as if it
// were a POST.
func (g *guard) from(r *http.Request) bool {
	if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && origins[0] == "null" {
		return false
	}
	asked := *r
	asked.Method = http.MethodPost
	return g.origin.Check(&asked) == nil
}

// versions is those of the protocol that are spoken, the newest first.
var versions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// unspoken answers a request whose header names a version of the protocol that there isn't,
// and reports whether it did. The SDK takes what sorts after the newest version for one with
// members that it then misses.
func unspoken(w http.ResponseWriter, r *http.Request, body []byte) bool {
	asked := r.Header.Values(versionHeader)
	if len(asked) == 0 || len(asked) == 1 && (asked[0] == "" || slices.Contains(versions, asked[0])) {
		return false
	}
	if len(asked) > 1 {
		http.Error(w, "the header "+versionHeader+" is there more than once", http.StatusBadRequest)
		return true
	}
	refuse(w, body, mcp.CodeUnsupportedProtocolVersion, "unsupported protocol version",
		mcp.UnsupportedProtocolVersionData{Supported: versions, Requested: asked[0]})
	return true
}

// The headers and the member by which requests say which protocol they speak.
const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	versionMember = "io.modelcontextprotocol/protocolVersion"
	// firstStateless is the first version without sessions.
	firstStateless = "2026-07-28"
)

// modern reports whether a request is of the protocol without sessions. Its
// header says so; where a client left that out, its body does: the SDK then
// answers what is missing in the words of that protocol.
func modern(r *http.Request, body []byte) bool {
	if v := r.Header.Get(versionHeader); v != "" {
		return v >= firstStateless
	}
	if r.Method != http.MethodPost || r.Header.Get(sessionHeader) != "" || !bytes.Contains(body, []byte(versionMember)) {
		return false
	}
	var message struct{ Params map[string]json.RawMessage }
	var meta map[string]json.RawMessage
	if json.Unmarshal(body, &message) != nil || json.Unmarshal(message.Params["_meta"], &meta) != nil {
		return false
	}
	var version string
	return json.Unmarshal(meta[versionMember], &version) == nil && version >= firstStateless
}

// misrouted answers a request about a task whose header names another one, by which it was routed, and reports
// whether it did. The SDK holds the header against the names of tools, prompts and resources; it may be missing,
// since the SDK's own client doesn't send it with methods of extensions.
func misrouted(w http.ResponseWriter, r *http.Request, body []byte, methods []string) bool {
	named := r.Header.Get("Mcp-Name")
	if named == "" || len(methods) != 1 || !strings.HasPrefix(methods[0], "tasks/") {
		return false
	}
	var m struct{ Params map[string]json.RawMessage } // since the fields of a struct match keys in any case
	var id string
	if json.Unmarshal(body, &m) == nil && json.Unmarshal(m.Params["taskId"], &id) == nil && id == named {
		return false
	}
	refuse(w, body, mcp.CodeHeaderMismatch, "header mismatch: Mcp-Name is another task than params.taskId", nil)
	return true
}

// The methods there are: of requests, and of notifications. The list is compared with the SDK's at each update. The SDK answers any other, and one of the wrong kind, in plain text.
var (
	requests = []string{
		"initialize", "ping", "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/templates/list", "resources/read",
		"resources/subscribe", "resources/unsubscribe", "completion/complete", "logging/setLevel", "server/discover", "subscriptions/listen",
		"tasks/get", "tasks/update", "tasks/cancel",
	}
	notifications = []string{"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed"}
)

// unserved answers a message that there is nothing to do for, as over stdio, and reports whether it did: a request
// of a method that there isn't, or that is a notification's, and a notification that means nothing. The protocol
// without sessions has a status for the first.
func unserved(w http.ResponseWriter, r *http.Request, server *mcp.Server, body []byte, stateless bool) bool {
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if r.Method != http.MethodPost || json.Unmarshal(body, &m) != nil || m.Method == "" {
		return false
	}
	isRequest, isNote := slices.Contains(requests, m.Method), slices.Contains(notifications, m.Method)
	switch {
	case len(m.ID) > 0 && isRequest, len(m.ID) == 0 && isNote && (len(m.Params) > 0 || m.Method != "notifications/progress"):
		return false
	case !stateless && !slices.ContainsFunc(slices.Collect(server.Sessions()), func(s *mcp.ServerSession) bool { return s.ID() == r.Header.Get(sessionHeader) }):
		return false // which the SDK says
	case len(m.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
	case isNote:
		refuse(w, body, jsonrpc.CodeInvalidRequest, fmt.Sprintf("invalid request: unexpected id for %q", m.Method), nil)
	default:
		status := http.StatusOK
		if stateless {
			status = http.StatusNotFound
		}
		answerError(w, status, body, jsonrpc.CodeMethodNotFound, fmt.Sprintf("method not found: %q", m.Method), nil)
	}
	return true
}

// unservedOf takes what [unserved] answers out of a batch, for the SDK would refuse all of it. It returns the writer for the
// rest, whose answers come behind; nil: there is no rest.
func unservedOf(w http.ResponseWriter, r *http.Request, server *mcp.Server, body []byte) http.ResponseWriter {
	var all, rest []json.RawMessage
	if r.Method != http.MethodPost || !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) || json.Unmarshal(body, &all) != nil {
		return w
	}
	f := &following{ResponseWriter: w}
	for _, message := range all {
		p := &page{ResponseWriter: &nobody{header: http.Header{}}}
		if !unserved(p, r, server, message, false) {
			rest = append(rest, message)
		} else if p.text.Len() > 0 {
			f.first = fmt.Appendf(f.first, "event: message\ndata: %s\n\n", p.text.Bytes())
		}
	}
	if len(rest) == len(all) {
		return w
	}
	if len(rest) == 0 {
		f.WriteHeader(http.StatusAccepted)
		return nil
	}
	left, _ := json.Marshal(rest)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(left)), int64(len(left))
	return f
}

// following is a writer of a stream behind events that come first, or of no answers, in whose place they are one.
type following struct {
	http.ResponseWriter
	first []byte
}

// Write implements [http.ResponseWriter].
func (f *following) Write(b []byte) (int, error) {
	if first := f.first; first != nil && f.Header().Get("Content-Type") == "text/event-stream" {
		f.first = nil
		if _, err := f.ResponseWriter.Write(first); err != nil {
			return 0, err
		}
	}
	return f.ResponseWriter.Write(b)
}

// WriteHeader implements [http.ResponseWriter].
func (f *following) WriteHeader(status int) {
	if status != http.StatusAccepted || f.first == nil {
		f.ResponseWriter.WriteHeader(status)
		return
	}
	f.Header().Set("Content-Type", "text/event-stream")
	_, _ = f.Write(nil)
}

// Unwrap serves [http.ResponseController].
func (f *following) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// outside answers a request of the older protocols that belongs to a session and names
// none, or that would begin one and can't, and reports whether it did; a batch without a session is refused, too. The SDK would
// make a session for it and answer with an error that has no code.
func outside(w http.ResponseWriter, body []byte) bool {
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if one := json.Unmarshal(body, &m) == nil; one && (len(m.ID) == 0 || m.Method == "" || m.Method == "ping") {
		return false
	}
	refusal := jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: send initialize first, and the session that its answer names; or give each request its protocol version in _meta, as 2026-07-28 has it"}
	if m.Method == "initialize" {
		if len(m.Params) > 0 && json.Unmarshal(m.Params, new(mcp.InitializeParams)) == nil {
			return false
		}
		refusal = jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: `invalid params: initialize takes {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"…","version":"…"}}`}
	}
	refuse(w, body, refusal.Code, refusal.Message, nil)
	return true
}
