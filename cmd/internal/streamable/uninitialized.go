package streamable

import (
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// outside answers a request of the older protocols that belongs to a session and names
// none, or that would begin one and can't, and reports whether it did. The SDK would
// make a session for it and answer with an error that has no code.
func outside(w http.ResponseWriter, body []byte) bool {
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if json.Unmarshal(body, &m) != nil || len(m.ID) == 0 || m.Method == "" || m.Method == "ping" {
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
