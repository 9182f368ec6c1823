package streamable

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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
	var message struct {
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &message) != nil {
		return false
	}
	var version string
	return json.Unmarshal(message.Params.Meta[versionMember], &version) == nil && version >= firstStateless
}

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
