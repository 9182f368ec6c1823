package mcpserver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

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
