// Command mcpgo drives the client of github.com/mark3labs/mcp-go for package clients:
// see drive.mjs, which does the same for others. It is started as
//
//	mcpgo ERA --http URL TOKEN
//	mcpgo ERA COMMAND ARGUMENTS…
//
// It is a module of its own, so that mcp-go is no dependency of the server.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

func main() {
	if err := drive(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "mcpgo:", err)
		os.Exit(1)
	}
}

// An order is a line of input.
type order struct {
	Do        string          `json:"do"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
	URI       string          `json:"uri"`
}

func drive(ctx context.Context, era string, server []string) error {
	c, err := connect(era, server)
	if err != nil {
		return err
	}
	defer c.Close()
	var changes, updates atomic.Int64
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		switch n.Method {
		case string(mcp.MethodNotificationToolsListChanged):
			changes.Add(1)
		case string(mcp.MethodNotificationResourceUpdated):
			updates.Add(1)
		}
	})
	if err := c.Start(ctx); err != nil {
		return err
	}
	hello := mcp.InitializeRequest{}
	hello.Params.ProtocolVersion = c.ProtocolVersion()
	hello.Params.ClientInfo = mcp.Implementation{Name: "drive-mcp-go", Version: "1.0.0"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		return err
	}
	if era == "modern" {
		stop, err := c.ListenAsync(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, func(err error) {
			fmt.Fprintln(os.Stderr, "mcpgo: listening:", err)
		})
		if err != nil {
			return err
		}
		defer stop()
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(map[string]string{"version": c.ProtocolVersion()}); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var o order
		if err := json.Unmarshal(in.Bytes(), &o); err != nil {
			return err
		}
		var result any
		var err error
		switch o.Do {
		case "list":
			result, err = c.ListTools(ctx, mcp.ListToolsRequest{})
		case "call":
			req := mcp.CallToolRequest{}
			req.Params.Name, req.Params.Arguments = o.Tool, o.Arguments
			result, err = c.CallTool(ctx, req)
		case "changed":
			result = changes.Load()
		case "ask":
			result, err = ask(ctx, c, &o)
		case "watch":
			result, err = true, watch(ctx, c, era, o.URI)
		case "updated":
			result = updates.Load()
		default:
			err = fmt.Errorf("unknown order %q", o.Do)
		}
		answer := map[string]any{"result": result}
		if err != nil {
			answer = map[string]any{"failed": err.Error()}
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	return in.Err()
}

// ask sends what isn't about tools.
func ask(ctx context.Context, c *client.Client, o *order) (any, error) {
	switch o.Method {
	case "resources/list":
		return asked(ctx, c.ListResources, o.Params)
	case "resources/templates/list":
		return asked(ctx, c.ListResourceTemplates, o.Params)
	case "resources/read":
		return asked(ctx, c.ReadResource, o.Params)
	case "prompts/list":
		return asked(ctx, c.ListPrompts, o.Params)
	case "prompts/get":
		return asked(ctx, c.GetPrompt, o.Params)
	case "completion/complete":
		return asked(ctx, c.Complete, o.Params)
	}
	return nil, fmt.Errorf("unknown method %q", o.Method)
}

// asked sends a request with these params.
func asked[R, A any](ctx context.Context, send func(context.Context, R) (A, error), params json.RawMessage) (any, error) {
	var req R
	wrapped, err := json.Marshal(map[string]json.RawMessage{"params": params})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(wrapped, &req); err != nil {
		return nil, err
	}
	return send(ctx, req)
}

// watch asks to be told when a resource changes.
func watch(ctx context.Context, c *client.Client, era, uri string) error {
	if era == "modern" {
		_, err := c.ListenAsync(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}}, func(err error) {
			fmt.Fprintln(os.Stderr, "mcpgo: watching:", err)
		})
		return err
	}
	req := mcp.SubscribeRequest{}
	req.Params.URI = uri
	//lint:ignore SA1019 it is how one watches in the older protocol
	return c.Subscribe(ctx, req)
}

// connect makes a client of a server's command, or of its URL.
func connect(era string, server []string) (*client.Client, error) {
	version := client.WithProtocolVersion(mcp.ProtocolVersion20260728)
	if era != "modern" {
		version = client.WithProtocolVersion("2025-11-25")
	}
	if server[0] != "--http" {
		return client.NewClient(transport.NewStdioWithOptions(server[0], os.Environ(), server[1:]), version), nil
	}
	options := []transport.StreamableHTTPCOption{transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + server[2]})}
	if era != "modern" {
		//lint:ignore SA1019 it is how one listens in the older protocol
		options = append(options, transport.WithContinuousListening())
	}
	wire, err := transport.NewStreamableHTTP(server[1], options...)
	if err != nil {
		return nil, err
	}
	return client.NewClient(wire, version), nil
}
