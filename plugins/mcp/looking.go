package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdkmcp "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// A Listing is what a server says of itself: a stranger's words.
type Listing struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Protocol     string            `json:"protocol"`
	Instructions string            `json:"instructions"`
	Tools        []json.RawMessage `json:"tools"` // as they came
}

// look performs an operation of a plugin for commands: it gives a person what the server
// says, as JSON in a string.
func (u *upstream) look(ctx context.Context, c *capability, name string, args value.Value) (value.Value, error) {
	s, err := u.session(ctx)
	if err != nil {
		return nil, err
	}
	var lost *trouble
	defer func() { u.release(s, lost) }()
	if name == u.settings.Name+"."+probeTools {
		listed, _, err := s.tools(ctx)
		if err != nil {
			lost = &trouble{isLost: true}
			return nil, sdk.Fail("failed", "its list of tools can't be read: %s", u.said(err))
		}
		hello := s.client.InitializeResult()
		l := Listing{Protocol: hello.ProtocolVersion, Instructions: hello.Instructions, Tools: listed}
		if l.Name = s.called(); hello.ServerInfo != nil {
			l.Version = hello.ServerInfo.Version
		}
		return u.inJSON(l)
	}
	record, _ := args.(*value.Record)
	if record == nil {
		record = &value.Record{}
	}
	tool, _ := member(record, "tool").(value.Str)
	text, _ := member(record, "arguments").(value.Str)
	raw, _, err := s.call(ctx, &sdkmcp.CallToolParams{Name: string(tool), Arguments: json.RawMessage(text)}, nil, c.most, nil)
	if err != nil {
		if status, ok := errors.AsType[*statusError](err); ok {
			lost = &trouble{isLost: status.isLost}
		}
		return nil, sdk.Fail("failed", "the server gives no answer: %s", u.said(err))
	}
	return value.Str(u.hide.Load().Text(valid(string(raw)))), nil
}

// said is an error for a person, with what the server says in quotes.
func (u *upstream) said(err error) string {
	if ours := u.plainly(err); ours != "" {
		return ours
	}
	if rpc := (*jsonrpc.Error)(nil); errors.As(err, &rpc) {
		return fmt.Sprintf("JSON-RPC error %d, %q", rpc.Code, short(rpc.Message))
	}
	return fmt.Sprintf("%q", short(err.Error()))
}

// plainly is why there is no answer, for a person; "": the error may have words of the server's.
func (u *upstream) plainly(err error) string {
	for _, known := range []error{errAnswer, errTooLarge, errLost} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	status := (*statusError)(nil)
	switch {
	case errors.As(err, &status):
		return status.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it gave no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, sdkmcp.ErrConnectionClosed):
		if u.settings.Server.URL != "" {
			return "the connection ended before it answered"
		}
		return "it ended before it answered"
	}
	return ""
}

// inJSON is a listing as a value.
func (u *upstream) inJSON(l Listing) (value.Value, error) {
	b, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("what the server lists: %w", err)
	}
	return value.Str(u.hide.Load().Text(string(b))), nil
}
