package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// AskFlow puts a request that breaks a rule about where data may flow to the person before the client: all of it,
// with where each argument came from. What is longer than a person reads is not asked.
func AskFlow(ctx context.Context, q run.FlowQuestion) (yes bool, err error) {
	e := elicitorOf(ctx)
	if e == nil {
		return false, errors.New("this client can't put a question to its user")
	}
	message, err := flowMessage(q)
	if err != nil {
		return false, err
	}
	res, err := e.elicit(ctx, &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{"allow": map[string]any{"type": "boolean", "title": "Allow this one request"}}, "required": []string{"allow"},
	}})
	if err != nil {
		return false, err
	}
	allowed, _ := res.Content["allow"].(bool)
	return res.Action == "accept" && allowed, nil
}

// flowMessage is what the person reads. What others wrote stands in a margin.
func flowMessage(q run.FlowQuestion) (string, error) {
	lines := []string{
		fmt.Sprintf(`The tool "%s", version %d, wants to do what follows, which breaks a rule of yours. A yes is to this one request.`, caps.PlainASCII(q.Tool), q.Version),
		"", "The rule: " + caps.PlainASCII(q.Rule), "", q.Operation + ":",
	}
	args, _ := q.Args.(*value.Record)
	if args == nil {
		return "", errors.New("the request has no arguments")
	}
	most := mostMessage
	for _, f := range args.Fields {
		text, err := journal.AppendValue(nil, f.Value, int64(most))
		if err != nil {
			return "", errors.New("the request is longer than a person reads")
		}
		most -= len(text)
		from := ""
		if words := q.From[f.Key]; words != "" {
			from = fmt.Sprintf("   (made of %s: written by others)", words)
		}
		lines = append(lines, "  "+f.Key+from)
		lines = append(lines, caps.Margined(string(text), mostMessaged)...)
	}
	if len(lines) > mostMessaged || slices.ContainsFunc(lines, func(s string) bool { return strings.Contains(s, "… and more") }) {
		return "", errors.New("the request is longer than a person reads")
	}
	return strings.Join(lines, "\n"), nil
}
