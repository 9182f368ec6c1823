package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// A tool that was published runs as any tool does: with its own authority, in its
// turn, on record, and can be replayed.

// promptCall is the name by which a run of a prompt is on record. It is no name
// that a client can call a tool by.
const promptCall = "prompts/get"

// mostMessages is how many messages a prompt has.
const mostMessages = 100

// publishedPrompt is a tool as a list of prompts shows it.
func publishedPrompt(t *registry.Tool) *mcp.Prompt {
	p := &mcp.Prompt{Name: t.Name, Title: titled(t.Name), Description: t.Description}
	var declared struct {
		Properties map[string]struct{ Description string }
	}
	if t.Input != nil {
		_ = json.Unmarshal(t.Input, &declared) // it was read when the tool was made
	}
	fields := promptArguments(t)
	for _, f := range fields {
		d := declared.Properties[f.Key].Description
		if d == "" && len(fields) == 1 {
			d = declared.Properties[check.Input].Description
		}
		p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: f.Key, Description: d, Required: !f.Optional})
	}
	return p
}

// promptArguments is what a tool that is published as a prompt is given: its parameters,
// or the fields of the record that the only one is.
func promptArguments(t *registry.Tool) []check.Field {
	if t.Unusable() != nil {
		return nil
	}
	return t.Report().PromptArguments()
}

func argumentNamesOf(fields []check.Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Key
	}
	return names
}

// evolvedPrompt runs a tool that was published as a prompt.
func (s *Server) evolvedPrompt(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	tools := s.latest()
	t, ok := tools.Get(name)
	if !ok || t.As != registry.AsPrompt {
		return nil, badPrompt(noTool(name, tools))
	}
	if f := t.Unusable(); f != nil {
		return nil, promptError(jsonrpc.CodeInternalError, f)
	}
	if f := longArgument(args); f != nil {
		return nil, badPrompt(f)
	}
	call := wire.Begin().Text("name", name).Raw("arguments", wire.Encode(args)).End()
	ctx = context.WithValue(ctx, readKey{}, "a prompt")
	a := s.guarded(promptCall, func() wire.Answer {
		return s.runPrompt(ctx, Call{Tool: promptCall, Arguments: json.RawMessage(call), Tools: tools, ticket: s.tickets.Add(1)})
	})
	if a.Fault != nil {
		if s.tell(t); a.Fault.Kind == fault.InvalidRequest {
			return nil, badPrompt(a.Fault)
		}
		return nil, promptError(jsonrpc.CodeInternalError, a.Fault)
	}
	if a.IsSealed {
		return &mcp.GetPromptResult{Description: t.Description, Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: a.Text}}}}, nil
	}
	s.completed(&a)
	messages, f := messagesOf(&a, name)
	if f != nil {
		return nil, promptError(jsonrpc.CodeInternalError, f)
	}
	return &mcp.GetPromptResult{Description: t.Description, Messages: messages}, nil
}

// runPrompt is the run of a prompt, also of one that is replayed.
func (s *Server) runPrompt(ctx context.Context, c Call) wire.Answer {
	a, f := wire.Read(promptCall, c.Arguments, "name", "arguments")
	if f != nil {
		return wire.Failed(f)
	}
	name, _, f := a.Text("name")
	if f != nil {
		return wire.Failed(f)
	}
	t, ok := c.Tools.Get(name)
	if !ok {
		return wire.Failed(noTool(name, c.Tools))
	}
	args, _ := a.Any("arguments")
	j := s.dataTask(t)
	return s.queued(ctx, c, &j, func() wire.Answer {
		if f := t.Unusable(); f != nil {
			return wire.Failed(f)
		}
		r, f := check.ReadPrompt(args, t.Report())
		if declared, bad := t.Narrowed(); f == nil && declared != nil && bad == nil {
			f = declared.Check(r.Values, true)
		}
		if f != nil {
			return wire.Failed(f)
		}
		if j.take(r); len(r.Values) == len(t.Program().Params()) {
			j.names = t.Program().Params()
		}
		return s.perform(ctx, c, j)
	})
}

// dataTask is a run of a tool by another way than run: with the usual budgets.
func (s *Server) dataTask(t *registry.Tool) task {
	return task{
		tool: t, as: core.InputData, step: 1, rounds: 1,
		budgets: s.budgets(),
	}
}

const messagesShape = `A prompt gives a text, or a list of messages: [{role: "user", text: "…"}, {role: "assistant", text: "…"}]; in place of the text it may be content: {type: "image", data: "…", mimeType: "image/png"}.`

// messages are what a prompt's tool gave: a text, or a list of role and text.
func messagesOf(a *wire.Answer, name string) ([]*mcp.PromptMessage, *fault.Fault) {
	bad := func(format string, args ...any) ([]*mcp.PromptMessage, *fault.Fault) {
		return nil, &fault.Fault{
			Kind: fault.RuntimeError, In: "tool:" + name,
			Message:  "the tool gave no messages: " + fmt.Sprintf(format, args...),
			Expected: "a text, or a list of records with role and text", Got: wire.Short([]byte(a.Text)), Hint: messagesShape,
		}
	}
	if !a.Whole {
		return bad("its result is too large or too deep")
	}
	var text string
	if json.Unmarshal([]byte(a.Text), &text) == nil && a.Text[0] == '"' {
		return []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}, nil
	}
	var items []json.RawMessage
	if json.Unmarshal([]byte(a.Text), &items) != nil || a.Text[0] != '[' {
		return bad("it gave something else")
	}
	if len(items) == 0 || len(items) > mostMessages {
		return bad("a prompt has 1 to %d of them, and these are %d", mostMessages, len(items))
	}
	var list []*mcp.PromptMessage
	for i, item := range items {
		var said struct {
			Role    *string
			Text    *string
			Content json.RawMessage
		}
		if !wire.ReadStrictly(item, &said) || said.Role == nil || (said.Text == nil) == (said.Content == nil) {
			return bad("message %d isn't a record of role and text, or of role and content", i+1)
		}
		role := mcp.Role(*said.Role)
		if role != "user" && role != "assistant" {
			return bad(`the role of message %d is "user" or "assistant", not %q`, i+1, wire.Short([]byte(role)))
		}
		if said.Text != nil {
			list = append(list, &mcp.PromptMessage{Role: role, Content: &mcp.TextContent{Text: *said.Text}})
			continue
		}
		if said.Content[0] == '{' {
			said.Content = slices.Concat([]byte("["), said.Content, []byte("]"))
		}
		parts := wire.Contents(wire.Begin().Raw("content", said.Content).End())
		if parts == nil {
			return bad(`the content of message %d is no content item, such as {type: "text", text: "…"}`, i+1)
		}
		for _, part := range parts {
			list = append(list, &mcp.PromptMessage{Role: role, Content: part})
		}
	}
	return list, nil
}

// publishedContent runs a tool that was published as a resource, on null.
func (s *Server) publishedContent(ctx context.Context, name string) ([]*mcp.ResourceContents, error) {
	tools := s.latest()
	t, ok := tools.Get(name)
	if !ok || t.As != registry.AsResource {
		return nil, nil
	}
	a := s.Call(context.WithValue(ctx, readKey{}, "a resource"), Call{Tool: name, Arguments: json.RawMessage(`{}`), Tools: tools})
	if a.Fault != nil {
		return nil, promptError(jsonrpc.CodeInternalError, a.Fault)
	}
	if a.IsSealed {
		return []*mcp.ResourceContents{{MIMEType: plainText, Text: a.Text}}, nil
	}
	if s.completed(&a); !a.Whole {
		return nil, promptError(jsonrpc.CodeInternalError, &fault.Fault{
			Kind: fault.ResultTooLarge, In: "tool:" + name, Message: "what the tool gave is too large, or nests too deep, to be read as a resource",
			Hint: fmt.Sprintf("Call the tool, and read on in its result; a resource has at most %d bytes.", mostPublished),
		})
	}
	var text string
	if a.Text[0] == '"' && json.Unmarshal([]byte(a.Text), &text) == nil {
		return []*mcp.ResourceContents{{MIMEType: plainText, Text: text}}, nil
	}
	if own := wire.ResourceContents([]byte(a.Text)); own != nil {
		return own, nil
	}
	return []*mcp.ResourceContents{{MIMEType: jsonText, Text: a.Text}}, nil
}

// mostPublished is how many bytes a resource, or the messages of a prompt, may have:
// more than is shown of a result, since whoever reads them asked for them whole.
const mostPublished = 256 << 10

// completed has an answer be all of a result that is too large to be shown, where a
// prompt or a resource may have it.
func (s *Server) completed(a *wire.Answer) {
	var shown struct{ URI string }
	if a.Whole || a.Fault != nil || s.results == nil || json.Unmarshal(a.Structured, &shown) != nil {
		return
	}
	k, ok := s.results.Get(s, strings.TrimPrefix(shown.URI, resultURI("")))
	switch {
	case !ok || k.Total > mostPublished || k.Total != int64(len(k.Shown)):
	case k.Text:
		a.Text, a.Whole = string(wire.Encode(string(k.Shown))), true
	case json.Valid(k.Shown):
		a.Text, a.Whole = string(k.Shown), true
	}
}

// sortedKeys goes through a map in the order of its keys.
func sortedKeys[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
