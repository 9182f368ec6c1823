package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdkmcp "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// A server may ask the user while a call is under way, if the operator lets it
// (Settings.Elicit). In versions of the protocol with sessions it sends a request; since
// 2026-07-28 its result asks for input, and the call is made again with what came of it. It
// may fill in a form and nothing else: no link is shown, and no model is asked.

// maxRounds is how often one call may ask.
const maxRounds = 2

// methodElicit is the request for input that a client of ours may be asked for.
const methodElicit = "elicitation/create"

// A calling is a call that is under way and may ask.
type calling struct {
	ctx      context.Context
	rounds   int    // of a session's mu
	declined string // of a session's mu: why the user wasn't asked; empty: they were, or nobody asked
}

// under notes a call as under way, until end is called.
func (s *session) under(ctx context.Context) (c *calling, end func()) {
	c = &calling{ctx: ctx}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callings = append(s.callings, c)
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.callings = slices.DeleteFunc(s.callings, func(o *calling) bool { return o == c })
	}
}

// asked answers a request of the server for input. It doesn't say which call it is for: where
// several are under way nobody is asked.
func (s *session) asked(ctx context.Context, p *sdkmcp.ElicitParams) *sdkmcp.ElicitResult {
	s.mu.Lock()
	if len(s.callings) != 1 {
		s.mu.Unlock()
		s.u.log.say("it asks the user, and that is declined: there isn't one call alone that it can be for")
		return &sdkmcp.ElicitResult{Action: "decline"}
	}
	c := s.callings[0]
	c.rounds++
	isLast := c.rounds > maxRounds
	s.mu.Unlock()
	if isLast {
		return s.decline(c, "the server asked more often than a call may")
	}
	// The call may end before the answer comes, and the server may take its question back.
	asking, cancel := context.WithCancel(c.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	return s.put(asking, c, p)
}

// decline notes why the user isn't asked.
func (s *session) decline(c *calling, reason string) *sdkmcp.ElicitResult {
	s.u.log.quote("it asks the user, and that is declined", reason)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.declined = cmp.Or(c.declined, reason)
	return &sdkmcp.ElicitResult{Action: "decline"}
}

// put puts a question to the user.
func (s *session) put(ctx context.Context, c *calling, p *sdkmcp.ElicitParams) *sdkmcp.ElicitResult {
	if p == nil || p.Mode == "url" || p.URL != "" {
		return s.decline(c, "the server wanted the user to open a link")
	}
	var schema []byte
	if p.RequestedSchema != nil {
		var err error
		if schema, err = json.Marshal(p.RequestedSchema); err != nil {
			return s.decline(c, "the form can't be read")
		}
	}
	answer := sdk.Ask(ctx, sdk.Question{Message: valid(p.Message), Schema: schema})
	if answer.Reason != "" {
		s.decline(c, answer.Reason)
	}
	result := &sdkmcp.ElicitResult{Action: answer.Action}
	if answer.Action == "accept" {
		var content map[string]json.RawMessage
		if json.Unmarshal(answer.Content, &content) != nil {
			return s.decline(c, "the answer can't be read")
		}
		result.Content = map[string]any{}
		for name, value := range content {
			result.Content[name] = value
		}
	}
	return result
}

// An inputNeeded is a result that asks for input: what is asked, by the server's names, and
// what it wants back with the answers. It may stand for a session: it goes nowhere else.
type inputNeeded struct {
	Requests map[string]struct {
		Method string               `json:"method"`
		Params *sdkmcp.ElicitParams `json:"params"`
	} `json:"inputRequests"`
	State string `json:"requestState"`
}

// needed reads a result that asks for input; nil: it is another one.
func needed(raw json.RawMessage) *inputNeeded {
	var in inputNeeded
	var kind string
	if _ = json.Unmarshal(textOf(raw, "resultType"), &kind); kind != "input_required" || json.Unmarshal(raw, &in) != nil {
		return nil
	}
	return &in
}

// answers asks the user for what a result needs; a failure if nobody may be asked for that.
func (s *session) answers(ctx context.Context, c *calling, in *inputNeeded) (sdkmcp.InputResponseMap, error) {
	s.mu.Lock()
	c.rounds++
	isLast := c.rounds > maxRounds
	s.mu.Unlock()
	if isLast {
		return nil, sdk.Fail("failed", "the server asked for input more than %d times before it does anything", maxRounds)
	}
	all := sdkmcp.InputResponseMap{}
	for _, name := range slices.Sorted(maps.Keys(in.Requests)) {
		r := in.Requests[name]
		if !s.u.settings.Elicit || r.Method != methodElicit {
			return nil, sdk.Fail("failed", "the server asks for input before it does anything, and nobody is asked for it").
				WithHint("Give it all that it needs with the arguments, or tell the user.")
		}
		all[name] = s.put(ctx, c, r.Params)
	}
	if len(all) == 0 {
		return nil, sdk.Fail("failed", "the server isn't ready for the call, and asks for nothing").WithRetry()
	}
	return all, nil
}

// told adds to a call's failure that the server asked the user, and why that came to nothing.
func (s *session) told(c *calling, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := err.(sdk.Failure)
	if c.declined == "" || !ok {
		return err
	}
	return f.WithHint("The server asked the user for input, and was declined: " + c.declined + ".")
}

// answerRequest answers what a server asks of its client.
func (s *session) answerRequest(ctx context.Context, method string, r sdkmcp.Request) (sdkmcp.Result, error) {
	if p, ok := r.GetParams().(*sdkmcp.ElicitParams); ok && method == methodElicit && s.u.settings.Elicit {
		return s.asked(ctx, p), nil
	}
	// The SDK answers more than it offers.
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client has no such method"}
}
