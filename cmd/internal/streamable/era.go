package streamable

import (
	"bytes"
	"encoding/json"
	"net/http"
)

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
