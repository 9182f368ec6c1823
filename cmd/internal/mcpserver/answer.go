package mcpserver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// placed completes the document of a fault: code that ran as a tool's is called
// "tool:NAME@V". Faults are immutable, so it returns a copy.
func placed(f *fault.Fault, running *registry.Tool, tools *registry.Snapshot) *fault.Fault {
	in := running
	if name, ok := strings.CutPrefix(f.In, "tool:"); ok {
		in = versionOf(name, running, tools)
	} else if f.In != "code" {
		return f
	}
	if in == nil {
		return f
	}
	g := *f
	g.In = fmt.Sprintf("tool:%s@%d", in.Name, in.Version)
	return &g
}

// versionOf is the version of a tool that ran by its name in a run of another: a
// call goes to the version that the caller was bound to, which needn't be the one
// there is. It is nil where it can be one of several.
func versionOf(name string, running *registry.Tool, tools *registry.Snapshot) *registry.Tool {
	var found *registry.Tool
	seen := map[*registry.Tool]bool{}
	for todo := []*registry.Tool{running}; len(todo) > 0; {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if t == nil || seen[t] {
			continue
		}
		seen[t] = true
		if t.Name == name {
			if found != nil && found.Version != t.Version {
				return nil
			}
			found = t
		}
		for _, callee := range t.Bound {
			todo = append(todo, callee)
		}
	}
	if found == nil {
		found, _ = tools.Get(name)
	}
	return found
}

// coded gives an error of the SDK's the code that JSON-RPC has for it. The SDK names
// none where it refuses a request of the older protocols for its place in the
// session, and such a refusal would go out as a defect of the server.
func coded(err error) error {
	var known *jsonrpc.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	words := err.Error()
	switch {
	case strings.HasSuffix(words, "is invalid during session initialization"):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: send initialize first; or give each request its protocol version in _meta, as 2026-07-28 has it"}
	case strings.HasPrefix(words, `duplicate "initialize"`):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "invalid request: this session is initialized already"}
	case strings.HasPrefix(words, "handling 'initialize': "):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(`invalid params: initialize takes {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"…","version":"…"}}; %.200s`, words)}
	}
	return err
}
