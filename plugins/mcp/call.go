package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdkmcp "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// A trouble is why a request has no answer.
type trouble struct {
	failure error
	// isLost is set if the session is of no use any more.
	isLost bool
	// wasSent is set if the server may have acted on the request.
	wasSent bool
}

// metaHops is the member of a request's _meta by which a chain of these programs knows how
// long it is.
const metaHops = "mcp-pif-hops"

// perform calls a tool.
func (s *session) perform(ctx context.Context, o *operation, text json.RawMessage, most int64) (value.Value, *trouble) {
	if err := s.hold(ctx, o); err != nil {
		return nil, &trouble{failure: err}
	}
	if ctx.Err() != nil {
		return nil, &trouble{failure: notSent("there was no time left for it")}
	}
	c, end := s.under(ctx)
	defer end()
	p := &sdkmcp.CallToolParams{Name: o.tool.Tool, Arguments: text}
	for {
		raw, x, err := s.call(ctx, p, o.tool.Input, most, o)
		if err != nil {
			t := s.fail(ctx, o, x, err)
			t.failure = s.told(c, t.failure)
			return nil, t
		}
		in := needed(raw)
		if in == nil {
			v, failure := s.u.answer(o, raw)
			if failure != nil {
				return nil, &trouble{failure: s.told(c, failure), wasSent: true}
			}
			return v, nil
		}
		responses, failure := s.answers(ctx, c, in)
		if failure != nil {
			return nil, &trouble{failure: s.told(c, failure), wasSent: true}
		}
		p = &sdkmcp.CallToolParams{Name: p.Name, Arguments: text, InputResponses: responses, RequestState: in.State}
	}
}

// call makes one request, and gives the result as it came.
func (s *session) call(ctx context.Context, p *sdkmcp.CallToolParams, schema json.RawMessage, most int64, o *operation) (json.RawMessage, *exchange, error) {
	x := &exchange{most: most}
	p.Meta = sdkmcp.Meta{metaHops: s.u.hops(ctx)}
	token := "p" + strconv.FormatUint(s.u.tokens.Add(1), 10)
	p.SetProgressToken(token)
	if o != nil {
		defer s.hear(ctx, o, token)()
	}
	with := context.WithValue(exchanging(ctx, x), schemaKey{}, schema)
	_, err := s.client.CallTool(with, p)
	raw, why := x.result()
	if err == nil && raw == nil {
		err = errAnswer
	}
	if rpc := (*jsonrpc.Error)(nil); err != nil && why != nil && !errors.As(err, &rpc) {
		err = why
	}
	return raw, x, err
}

// fail makes the failure of a request that has no result.
func (s *session) fail(ctx context.Context, o *operation, x *exchange, err error) *trouble {
	u := s.u
	var (
		status *statusError
		rpc    *jsonrpc.Error
	)
	noRoom, isNoRoom := errors.AsType[sdk.Failure](err)
	switch {
	case isNoRoom:
		return &trouble{wasSent: true, failure: unknown(o, "the server answered, and "+noRoom.Message)}
	case errors.Is(err, errTooLarge):
		f := sdk.Fail("too_large", "the server's answer has more than the %d bytes that are allowed", x.most).WithHint("Ask for less at once, such as a smaller page.")
		if o != nil && !o.repeatable() {
			return &trouble{wasSent: true, failure: unknown(o, f.Message)}
		}
		return &trouble{wasSent: true, failure: f}
	case errors.Is(err, errAnswer):
		return &trouble{wasSent: true, failure: unknown(o, "the server's answer is against the protocol, nested too deep, or made of more than a million values")}
	case errors.As(err, &rpc):
		return &trouble{wasSent: true, failure: s.rpcFailure(o, rpc)}
	case ctx.Err() != nil && x.sent.Load():
		what := "the server didn't answer in time"
		if errors.Is(context.Cause(ctx), context.Canceled) {
			what = "it was stopped before the server answered"
		}
		return &trouble{wasSent: true, failure: unknown(o, what)}
	case ctx.Err() != nil:
		return &trouble{failure: notSent("there was no time left for it")}
	case errors.As(err, &status) && status.status/100 != 4:
		return &trouble{isLost: status.status >= 500, wasSent: true, failure: unknown(o, "the server answered with HTTP status "+strconv.Itoa(status.status))}
	case errors.As(err, &status):
		return &trouble{wasSent: true, isLost: status.isLost, failure: u.refusal(status, "it did nothing")}
	case x.sent.Load():
		return &trouble{isLost: true, wasSent: true, failure: unknown(o, "the connection to the server was lost")}
	}
	return &trouble{isLost: true, failure: notSent("the connection to the server was lost before")}
}

// unknown is the failure of what was sent, and not answered. The host makes an effect_failed of it
// where the operation may be repeated.
func unknown(o *operation, what string) error {
	if o != nil && o.repeatable() {
		return sdk.Fail("unknown", "%s; it may be asked again", what)
	}
	return sdk.Fail("unknown", "%s; nobody knows whether it was done", what).
		WithHint("Find out with an operation that only reads before doing it again.")
}

// notSent is the failure of what never left.
func notSent(why string) error {
	return sdk.Fail("failed", "it wasn't begun: %s", why).WithRetry()
}

// rpcFailure is the failure of a request that the server answered with an error of
// JSON-RPC. Its words are in the value.
func (s *session) rpcFailure(o *operation, e *jsonrpc.Error) error {
	said := &value.Record{Fields: []value.Field{{Key: "code", Value: value.NewInt(e.Code)}, {Key: "text", Value: value.Str(s.u.hide.Load().Text(valid(e.Message)))}}}
	name := s.u.settings.Name
	switch e.Code {
	case jsonrpc.CodeMethodNotFound:
		s.suspect()
		return noLonger(name).WithValue(said)
	case jsonrpc.CodeInvalidParams:
		s.suspect()
		return sdk.Fail("invalid", "the server refuses the arguments, or the tool (JSON-RPC error %d); its words are in the error's value", e.Code).
			WithHint("Write " + o.Example() + ". If that is refused as well, the server isn't as it was accepted: tell the user.").WithValue(said)
	}
	return sdk.Fail("failed", "the server answered with the JSON-RPC error %d; its words are in the error's value", e.Code).WithValue(said)
}

// refusal is the failure of a request that was answered with an HTTP status.
func (u *upstream) refusal(e *statusError, what string) error {
	f := sdk.Fail("failed", "the server answered with HTTP status %d; %s", e.status, what)
	switch {
	case e.isLost && e.status == http.StatusUnauthorized:
		return f.WithRetry().WithHint("It may have been started anew: call again. If that fails as well, tell the user: the operator logs in with " + u.loginCommand() + ".")
	case e.isLost:
		return f.WithRetry() // on another session
	case e.status == http.StatusUnauthorized || e.status == http.StatusForbidden:
		return f.WithHint("Tell the user: the operator logs in with " + u.loginCommand() + ".")
	case e.status == http.StatusTooManyRequests:
		f = f.WithRetry()
		if e.retryAfter > 0 {
			f = f.WithValue(&value.Record{Fields: []value.Field{{Key: "retry_after", Value: value.NewInt(e.retryAfter)}}})
		}
	}
	return f
}

// loginCommand is what the operator runs to log in.
func (u *upstream) loginCommand() string {
	command := "mcp-pif mcp login " + u.settings.Name
	if u.settings.Principal != "" {
		command += " --principal " + u.settings.Principal
	}
	return command
}

// short truncates a stranger's word for a message that quotes it.
func short(s string) string { return display.Truncate(s, 80) }
