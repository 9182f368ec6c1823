package streamable

import (
	"net/http"
	"slices"

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
