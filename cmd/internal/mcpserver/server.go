package mcpserver

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
)

// Server is an engine behind MCP. It is safe for concurrent use.
type Server struct {
	*engine.Engine
	opts    Options
	limits  Limits
	tools   *registry.Registry
	broker  *run.Broker
	log     *slog.Logger
	mcp     *mcp.Server
	pages   pages // of tools/list
	listens listens
	publish publishing
	talks   elicit.Calls
	extra   map[string]bool // tools that a test added
	started time.Time

	sessions sync.Mutex // guards what follows
	open     int        // sessions
	unwatch  func()     // ends the look for others' changes
}

// What the engine has, by the names of those who serve it.
type (
	Options = engine.Options
	Limits  = engine.Limits
	Call    = engine.Call
)

// Extra is what a test adds to a server beside what is ours: the fixtures of the
// conformance suite, behind our middleware and transports. Programs leave it nil.
type Extra struct {
	// Options changes what the SDK's server is made with.
	Options func(*mcp.ServerOptions)
	// Add adds to the SDK's server, and names the tools that it added: a call of
	// another is one of ours.
	Add func(*mcp.Server) (tools []string)
}

// pages is those that were made last, by cursor.
type pages struct {
	sync.Mutex
	of map[string]weak.Pointer[listPage]
}

// A listPage is a page of tools/list, encoded. The collector may take it where no answer is being made of it.
type listPage struct {
	tools   *registry.Snapshot
	changes uint64   // of the policy
	under   []string // what the model had been shown: texts by others who had been shown more aren't there
	text    []byte
	next    string
}

// extras are the tools among these that a test added.
func (s *Server) extras(tools []*mcp.Tool) (more []*mcp.Tool) {
	for _, t := range tools {
		if s.extra[t.Name] {
			more = append(more, t)
		}
	}
	return more
}

// A request is what a client asks for by a name of ours. The SDK must handle it, since only
// it can say in the newer protocol that a result is complete; but a tool can be called that
// no list shows, and a call sees the tools there were when it arrived. So the SDK knows one
// tool, one prompt and one resource, and the handlers of these find the request in the
// context.
type request struct {
	name string     // of the tool or the prompt, or the address of the resource
	task mcp.Result // the answer in place of what the handler returns; nil: that

	arguments json.RawMessage // those of [ArgumentsHeader]; nil: there were none
}

type requestKey struct{}

// requested is the request that the SDK handles.
func requested(ctx context.Context) *request { return ctx.Value(requestKey{}).(*request) }

// titled is a name as people read it: "word_count" is "Word count".
func titled(name string) string {
	words := strings.TrimSpace(strings.NewReplacer("_", " ", "-", " ", ".", " ").Replace(name))
	if words == "" || words[0] < 'a' || words[0] > 'z' {
		return words
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// The media types of resources.
const (
	plainText = "text/plain"
	jsonText  = "application/json"
)

// with is a request with params like its own, which are changed.
func with[T any, P paramsOf[T]](r *mcp.ServerRequest[P], change func(P)) *mcp.ServerRequest[P] {
	params := P(new(T))
	if r.Params != nil {
		*params = *r.Params
	}
	change(params)
	return &mcp.ServerRequest[P]{Session: r.Session, Params: params, Extra: r.Extra}
}

type paramsOf[T any] interface {
	*T
	mcp.Params
}
