//lint:file-ignore SA1019 sampling and roots are deprecated, and the suite asks for them.

package conformance

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The tools of this file answer with questions: the client calls again, with the
// answers and with the state it was given.

// A round is one such call.
type round struct {
	answers mcp.InputResponseMap
	state   string // what was sealed; "" at first
	has     *mcp.ClientCapabilities
}

// accepted is what a user filled in, nil if nothing was.
func (r round) accepted(question string) map[string]any {
	res, _ := r.answers[question].(*mcp.ElicitResult)
	if res == nil || res.Action != "accept" {
		return nil
	}
	return res.Content
}

// word is one member of what a user filled in.
func (r round) word(question, member string) string {
	word, _ := r.accepted(question)[member].(string)
	return word
}

// sampled is what the client's model said.
func (r round) sampled(question string) (words string, ok bool) {
	res, ok := r.answers[question].(*mcp.CreateMessageWithToolsResult)
	if !ok || res == nil {
		return "", false
	}
	for _, c := range res.Content {
		if t, is := c.(*mcp.TextContent); is {
			words += t.Text
		}
	}
	return words, true
}

// roots is the client's.
func (r round) roots(question string) (n int, ok bool) {
	res, ok := r.answers[question].(*mcp.ListRootsResult)
	if !ok || res == nil {
		return 0, false
	}
	return len(res.Roots), true
}

// The questions.

func askFor(message, member, kind string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(
		`{"type":"object","properties":{"` + member + `":{"type":"` + kind + `"}},"required":["` + member + `"]}`)}
}

func sample(words string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{{Role: "user", Content: text("%s", words)}}, MaxTokens: 100}
}

// sealKey is what states are signed with: a client that changes one is found out.
var sealKey = []byte("of this process")

func seal(state string) string {
	mac := hmac.New(sha256.New, sealKey)
	mac.Write([]byte(state))
	return state + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func unseal(sealed string) (state string, ok bool) {
	if i := strings.LastIndexByte(sealed, '.'); i >= 0 {
		state = sealed[:i]
	}
	return state, hmac.Equal([]byte(seal(state)), []byte(sealed))
}

// inRounds is a tool that answers, or asks: then it gives questions, and the state to
// come back with.
func inRounds(step func(round) (said string, ask mcp.InputRequestMap, state string)) mcp.ToolHandler {
	return func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := round{answers: req.Params.InputResponses, has: req.ClientCapabilities()}
		if req.Params.RequestState != "" {
			var ok bool
			if r.state, ok = unseal(req.Params.RequestState); !ok {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the requestState is none that this server gave"}
			}
		}
		said, ask, state := step(r)
		if ask == nil {
			return answer("%s", said)
		}
		res := &mcp.CallToolResult{InputRequests: ask}
		if state != "" {
			res.RequestState = seal(state)
		}
		return res, nil
	}
}

// confirming asks for a confirmation and takes it only with its own state.
func confirming(r round) (string, mcp.InputRequestMap, string) {
	if r.state != "" && r.accepted("confirm") != nil {
		return "state-ok: requestState received and confirmation accepted", nil, ""
	}
	return "", mcp.InputRequestMap{"confirm": askFor("Please confirm", "ok", "boolean")}, "confirming"
}

// rounds are the tools that ask.
func rounds() []fixture {
	return []fixture{
		{"test_input_required_result_elicitation", "asks for a name", "", inRounds(func(r round) (string, mcp.InputRequestMap, string) {
			if name := r.word("user_name", "name"); name != "" {
				return "Hello, " + name + "!", nil, ""
			}
			return "", mcp.InputRequestMap{"user_name": askFor("What is your name?", "name", "string")}, ""
		})},
		{"test_input_required_result_sampling", "asks the client's model", "", inRounds(func(r round) (string, mcp.InputRequestMap, string) {
			if words, ok := r.sampled("capital_question"); ok {
				return "Sampling response: " + words, nil, ""
			}
			return "", mcp.InputRequestMap{"capital_question": sample("What is the capital of France?")}, ""
		})},
		{"test_input_required_result_list_roots", "asks for the client's roots", "", inRounds(func(r round) (string, mcp.InputRequestMap, string) {
			if n, ok := r.roots("client_roots"); ok {
				return text("Client exposed %d root(s)", n).Text, nil, ""
			}
			return "", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}}, ""
		})},
		{"test_input_required_result_request_state", "keeps its state with the client", "", inRounds(confirming)},
		{"test_input_required_result_tampered_state", "finds out a changed state", "", inRounds(confirming)},
		{"test_input_required_result_multiple_inputs", "asks three things at once", "", inRounds(func(r round) (string, mcp.InputRequestMap, string) {
			name := r.word("user_name", "name")
			greeting, greeted := r.sampled("greeting")
			n, listed := r.roots("client_roots")
			if name != "" && greeted && listed {
				return text("%s %s, %d root(s)", greeting, name, n).Text, nil, ""
			}
			return "", mcp.InputRequestMap{
				"user_name":    askFor("What is your name?", "name", "string"),
				"greeting":     sample("Generate a greeting"),
				"client_roots": &mcp.ListRootsParams{},
			}, "asked"
		})},
		{"test_input_required_result_multi_round", "asks twice", "", inRounds(func(r round) (string, mcp.InputRequestMap, string) {
			switch name, second := strings.CutPrefix(r.state, "2:"); {
			case second:
				return name + " likes " + r.word("step2", "color"), nil, ""
			case r.state == "1":
				return "", mcp.InputRequestMap{"step2": askFor("Step 2: What is your favorite color?", "color", "string")}, "2:" + r.word("step1", "name")
			}
			return "", mcp.InputRequestMap{"step1": askFor("Step 1: What is your name?", "name", "string")}, "1"
		})},
		{"test_input_required_result_capabilities", "asks what the client can answer", "", inRounds(func(r round) (string, mcp.InputRequestMap, string) {
			ask := mcp.InputRequestMap{}
			if r.has != nil && r.has.Elicitation != nil {
				ask["user_name"] = askFor("What is your name?", "name", "string")
			}
			if r.has != nil && r.has.Sampling != nil {
				ask["greeting"] = sample("Generate a short greeting")
			}
			if r.has != nil && r.has.RootsV2 != nil {
				ask["client_roots"] = &mcp.ListRootsParams{}
			}
			if len(r.answers) > 0 || len(ask) == 0 {
				return "asked what the client can answer", nil, ""
			}
			return "", ask, ""
		})},
	}
}
