//lint:file-ignore SA1019 sampling and logging are deprecated, and the suite asks for them.

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A fixture is a tool that the suite calls.
type fixture struct {
	name, about string
	input       string // JSON Schema; "": of an object
	call        mcp.ToolHandler
}

// anyObject is the input schema of tools whose arguments don't matter.
const anyObject = `{"type":"object"}`

// The smallest picture and sound there are.
const (
	picture = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
		"\x00\x00\x00\rIDATx\x9cc\xfc\xcf\xc0\xf0\x1f\x00\x05\x05\x02\x00_\xc8\xf1\xd2\x00\x00\x00\x00IEND\xaeB`\x82"
	sound = "RIFF&\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00\x80>\x00\x00\x02\x00\x10\x00data\x02\x00\x00\x00\x00\x00"
)

// addTools adds the fixtures to a server, and gives their names.
func addTools(s *mcp.Server) (names []string) {
	all := append(append(contents(), conversations()...), changing(s)...)
	for _, f := range append(all, rounds()...) {
		if f.input == "" {
			f.input = anyObject
		}
		s.AddTool(&mcp.Tool{Name: f.name, Description: f.about, InputSchema: json.RawMessage(f.input)}, f.call)
		names = append(names, f.name)
	}
	return names
}

// says is a tool that answers with this content.
func says(content ...mcp.Content) mcp.ToolHandler {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: content}, nil
	}
}

func text(format string, args ...any) *mcp.TextContent {
	return &mcp.TextContent{Text: fmt.Sprintf(format, args...)}
}

// answer is a result of text.
func answer(format string, args ...any) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{text(format, args...)}}, nil
}

// failure is a result that says that the tool failed.
func failure(format string, args ...any) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{text(format, args...)}, IsError: true}, nil
}

func embedded(uri, words string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: words}}
}

// schema2020 uses what is particular to JSON Schema 2020-12; the suite looks whether
// it comes out of tools/list as it went in.
const schema2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},
"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},
"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`

// contents are the tools that answer at once.
func contents() []fixture {
	image := &mcp.ImageContent{Data: []byte(picture), MIMEType: "image/png"}
	return []fixture{
		{"test_simple_text", "answers with text", "", says(text("This is a simple text response for testing."))},
		{"test_image_content", "answers with a picture", "", says(image)},
		{"test_audio_content", "answers with a sound", "", says(&mcp.AudioContent{Data: []byte(sound), MIMEType: "audio/wav"})},
		{"test_embedded_resource", "answers with a resource", "", says(embedded("test://embedded-resource", "This is an embedded resource"))},
		{"test_multiple_content_types", "answers with text, a picture and a resource", "", says(
			text("This is text content"), image, embedded("test://embedded-in-multiple", "This is an embedded resource"))},
		{"test_error_handling", "fails", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return failure("this tool intentionally returns an error for testing")
		}},
		{"json_schema_2020_12_tool", "has a schema of every kind", schema2020, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return answer("called with %s", r.Params.Arguments)
		}},
		{"test_x_mcp_header", "has an argument that is a header, too",
			`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`,
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var in struct{ Region string }
				_ = json.Unmarshal(r.Params.Arguments, &in)
				return answer("region=%s", in.Region)
			}},
		{"test_missing_capability", "needs a client that samples", "", needsSampling},
		{"test_streaming_elicitation", "asks nothing", "", says(text("stream observed: result frames only, no top-level requests"))},
	}
}

func needsSampling(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if has := r.ClientCapabilities(); has != nil && has.Sampling != nil {
		return answer("the client samples")
	}
	data, err := json.Marshal(mcp.MissingRequiredClientCapabilityData{
		RequiredCapabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}},
	})
	if err != nil {
		return nil, err
	}
	return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client doesn't sample", Data: data}
}

// pause is how far apart messages of one call are: the suite looks at their order.
const pause = 50 * time.Millisecond

// conversations are the tools that send more than their answer, as the older
// protocols have it.
func conversations() []fixture {
	return []fixture{
		{"test_tool_with_logging", "logs while it works", "", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for _, words := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
				if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: words}); err != nil {
					return nil, err
				}
				time.Sleep(pause)
			}
			return answer("Tool with logging executed successfully")
		}},
		{"test_logging_tool", "logs once", "", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "test_logging_tool executed"}); err != nil {
				return nil, err
			}
			return answer("logged, if the client asked for it")
		}},
		{"test_tool_with_progress", "tells how far it is", "", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			token := r.Params.GetProgressToken()
			for _, done := range []float64{0, 50, 100} {
				err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
					ProgressToken: token, Progress: done, Total: 100, Message: fmt.Sprintf("Completed step %.0f of 100", done),
				})
				if err != nil {
					return nil, err
				}
				time.Sleep(pause)
			}
			return answer("%v", token)
		}},
		{"test_reconnection", "closes its stream and answers on the next one", "", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if r.Extra != nil && r.Extra.CloseSSEStream != nil {
				r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
			}
			time.Sleep(2 * pause)
			return answer("Reconnection test completed successfully.")
		}},
		{"test_sampling", "asks the client's model", `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`,
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var in struct{ Prompt string }
				_ = json.Unmarshal(r.Params.Arguments, &in)
				res, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{
					Messages:  []*mcp.SamplingMessage{{Role: "user", Content: text("%s", in.Prompt)}},
					MaxTokens: 100,
				})
				if err != nil {
					return failure("sampling failed: %v", err)
				}
				words, _ := res.Content.(*mcp.TextContent)
				if words == nil {
					return failure("the model answered with something else than text")
				}
				return answer("LLM response: %s", words.Text)
			}},
		{"test_elicitation", "asks the user", `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`,
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var in struct{ Message string }
				_ = json.Unmarshal(r.Params.Arguments, &in)
				return elicit(ctx, r, in.Message, `{"type":"object","properties":{"username":{"type":"string","description":"Your preferred username"}},"required":["username"]}`)
			}},
		{"test_elicitation_sep1034_defaults", "asks the user, with defaults", "", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return elicit(ctx, r, "Test defaults for primitives", `{"type":"object","properties":{
				"name":{"type":"string","description":"User name","default":"John Doe"},
				"age":{"type":"integer","description":"User age","default":30},
				"score":{"type":"number","description":"User score","default":95.5},
				"status":{"type":"string","description":"User status","enum":["active","inactive","pending"],"default":"active"},
				"verified":{"type":"boolean","description":"Verification status","default":true}}}`)
		}},
		{"test_elicitation_sep1330_enums", "asks the user to choose", "", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return elicit(ctx, r, "Test enum schemas", `{"type":"object","properties":{
				"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
				"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
				"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
				"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
				"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","anyOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]}}}}`)
		}},
	}
}

// elicit asks the user in the way of the older protocols.
func elicit(ctx context.Context, r *mcp.CallToolRequest, message, schema string) (*mcp.CallToolResult, error) {
	res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(schema)})
	if err != nil {
		return failure("elicitation failed: %v", err)
	}
	return answer("Elicitation result: action=%s, content=%v", res.Action, res.Content)
}

// changing are the tools that change what the server has, so that it says so.
func changing(s *mcp.Server) []fixture {
	return []fixture{
		{"test_trigger_tool_change", "adds a tool", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.AddTool(&mcp.Tool{Name: "test_added", Description: "was added", InputSchema: json.RawMessage(anyObject)}, says())
			return answer("tools_list_changed published")
		}},
		{"test_trigger_prompt_change", "adds a prompt", "", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.AddPrompt(&mcp.Prompt{Name: "test_added", Description: "was added"}, prompt())
			return answer("prompts_list_changed published")
		}},
	}
}
