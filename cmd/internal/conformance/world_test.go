//lint:file-ignore SA1019 logging is deprecated, and the suite asks for it.

package conformance

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
)

// watched is a resource that changes all the time.
const watched = "test://watched-resource"

// extra is the fixtures as our server takes them.
func extra() *mcpserver.Extra {
	return &mcpserver.Extra{
		Options: func(o *mcp.ServerOptions) {
			o.Capabilities = &mcp.ServerCapabilities{
				Logging:     &mcp.LoggingCapabilities{},
				Completions: &mcp.CompletionCapabilities{},
				Tools:       &mcp.ToolCapabilities{ListChanged: true},
				Prompts:     &mcp.PromptCapabilities{ListChanged: true},
				Resources:   &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			}
			o.CompletionHandler = func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
				return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
			}
			o.SubscribeHandler = func(context.Context, *mcp.SubscribeRequest) error { return nil }
			o.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
		},
		Add: func(s *mcp.Server) []string {
			addResources(s)
			addPrompts(s)
			return addTools(s)
		},
	}
}

// change changes the watched resource until the context ends.
func change(ctx context.Context, s *mcp.Server) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: watched})
		}
	}
}

// contains is a resource whose content is made from its address.
func contains(content func(uri string) *mcp.ResourceContents) mcp.ResourceHandler {
	return func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		c := content(r.Params.URI)
		c.URI = r.Params.URI
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
	}
}

func addResources(s *mcp.Server) {
	s.AddResource(&mcp.Resource{Name: "static-text", Description: "a text", MIMEType: "text/plain", URI: "test://static-text"},
		contains(func(string) *mcp.ResourceContents {
			return &mcp.ResourceContents{MIMEType: "text/plain", Text: "This is the content of the static text resource."}
		}))
	s.AddResource(&mcp.Resource{Name: "static-binary", Description: "a picture", MIMEType: "image/png", URI: "test://static-binary"},
		contains(func(string) *mcp.ResourceContents {
			return &mcp.ResourceContents{MIMEType: "image/png", Blob: []byte(picture)}
		}))
	s.AddResource(&mcp.Resource{Name: "watched-resource", Description: "a text that changes", MIMEType: "text/plain", URI: watched},
		contains(func(string) *mcp.ResourceContents {
			return &mcp.ResourceContents{MIMEType: "text/plain", Text: "Watched resource content"}
		}))
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "template", Description: "one for each id", MIMEType: "application/json", URITemplate: "test://template/{id}/data"},
		contains(func(uri string) *mcp.ResourceContents {
			id := strings.TrimSuffix(strings.TrimPrefix(uri, "test://template/"), "/data")
			data, _ := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
			return &mcp.ResourceContents{MIMEType: "application/json", Text: string(data)}
		}))
}

// prompt is a prompt of these messages.
func prompt(contents ...mcp.Content) mcp.PromptHandler {
	return func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return messages(contents...)
	}
}

func messages(contents ...mcp.Content) (*mcp.GetPromptResult, error) {
	res := &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}
	for _, c := range contents {
		res.Messages = append(res.Messages, &mcp.PromptMessage{Role: "user", Content: c})
	}
	return res, nil
}

func addPrompts(s *mcp.Server) {
	s.AddPrompt(&mcp.Prompt{Name: "test_simple_prompt", Title: "Simple", Description: "has no arguments"},
		prompt(text("This is a simple prompt for testing.")))
	s.AddPrompt(&mcp.Prompt{Name: "test_prompt_with_arguments", Title: "Arguments", Description: "has two arguments",
		Arguments: []*mcp.PromptArgument{
			{Name: "arg1", Description: "the first", Required: true},
			{Name: "arg2", Description: "the second", Required: true},
		}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return messages(text("Prompt with arguments: arg1='%s', arg2='%s'", r.Params.Arguments["arg1"], r.Params.Arguments["arg2"]))
		})
	s.AddPrompt(&mcp.Prompt{Name: "test_prompt_with_embedded_resource", Title: "Resource", Description: "has a resource in it",
		Arguments: []*mcp.PromptArgument{{Name: "resourceUri", Description: "which", Required: true}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return messages(embedded(r.Params.Arguments["resourceUri"], "Embedded resource content for testing."),
				text("Please process the embedded resource above."))
		})
	s.AddPrompt(&mcp.Prompt{Name: "test_prompt_with_image", Title: "Picture", Description: "has a picture in it"},
		prompt(&mcp.ImageContent{Data: []byte(picture), MIMEType: "image/png"}, text("Please analyze the image above.")))
	s.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "asks for its context"},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			r := round{answers: req.Params.InputResponses}
			if words := r.word("user_context", "context"); words != "" {
				return messages(text("Context: %s", words))
			}
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{
				"user_context": askFor("Please provide context for the prompt", "context", "string"),
			}}, nil
		})
}
