// Command served is a plugin that only shakes hands: go-plugin's own server, with
// its gRPC health service and nothing else.
package main

import (
	"context"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

type nothing struct{ plugin.NetRPCUnsupportedPlugin }

func (nothing) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (nothing) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

func main() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "COOKIE", MagicCookieValue: "crumbs"},
		Plugins:         plugin.PluginSet{"nothing": nothing{}},
		GRPCServer:      plugin.DefaultGRPCServer,
	})
}
