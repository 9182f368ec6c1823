package mcpserver

import (
	"context"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/run"
)

// AskFlow puts a request that breaks a rule about where data may flow to the person before the client: all of it,
// with where each argument came from. An error is that nobody answered; then it waits for one at a terminal.
func AskFlow(ctx context.Context, q run.FlowQuestion) (yes bool, err error) {
	e := elicitorOf(ctx)
	if e == nil {
		return false, errors.New("this client can't put a question to its user")
	}
	lines, err := q.Lines(mostMessaged, mostMessage)
	if err != nil {
		return false, err
	}
	res, err := e.elicit(ctx, &mcp.ElicitParams{Mode: "form", Message: strings.Join(lines, "\n"), RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{"allow": map[string]any{"type": "boolean", "title": "Allow this one request"}}, "required": []string{"allow"},
	}})
	if err != nil {
		return false, err
	}
	allowed, _ := res.Content["allow"].(bool)
	return res.Action == "accept" && allowed, nil
}
