package sdk

import (
	"os"

	"google.golang.org/grpc"

	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// NewServer makes the gRPC server that a plugin's process has, in this one: for
// tests of plugins that go by the wire and need no program, such as package
// plugintest's. The root is the grant's directory where the scope is a path; most
// is the bytes of the largest message, 0 for the default. Serve is what a plugin
// calls.
func NewServer(p Plugin, root *os.File, most int) (*grpc.Server, error) {
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	if most == 0 {
		most = wire.MaxMessage
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(wire.Codec), grpc.MaxRecvMsgSize(most), grpc.MaxSendMsgSize(most))
	s.RegisterService(describeService(), newServer(p, m, root, most, func() {}))
	return s, nil
}
