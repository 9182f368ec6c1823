package mcpserver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/wait"
)

// eras is a protocol of each era that clients speak.
var eras = []string{"2026-07-28", "2025-11-25"}

// inEras runs a test with a client of each era, on a server of its own.
func inEras(t *testing.T, test func(t *testing.T, version string)) {
	for _, version := range eras {
		t.Run(version, func(t *testing.T) { test(t, version) })
	}
}

// speaking connects a client of the SDK's that speaks a version.
func speaking(t testing.TB, s *Server, version string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	theirs, ours := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, theirs) }()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts).Connect(ctx, ours, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		cancel()
		wait.For(t, done, "the end of the session")
	})
	if got := cs.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("the session speaks %s, not %s", got, version)
	}
	return cs
}

// code is the code of a protocol's error; 0: it is none.
func code(err error) int64 {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// readText reads a resource that has one text.
func readText(t testing.TB, cs *mcp.ClientSession, uri string) *mcp.ResourceContents {
	t.Helper()
	res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		t.Fatalf("%s: %v", uri, err)
	}
	if len(res.Contents) != 1 || res.Contents[0].URI != uri || res.Contents[0].Text == "" {
		t.Fatalf("%s: %+v", uri, res.Contents)
	}
	return res.Contents[0]
}

// withToy is a server that knows of notes, and the grant of them, which isn't
// granted yet.
func withToy(t testing.TB) (*Server, *caps.Policy, *caps.Grant) {
	t.Helper()
	known, err := caps.NewKinds(toy)
	if err != nil {
		t.Fatal(err)
	}
	policy := caps.NewPolicy(known, time.Now)
	c, err := caps.Parse("toy:notes/**", known)
	if err != nil {
		t.Fatal(err)
	}
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: known})
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Broker: run.New(run.Options{Policy: policy, Handler: steady{}, Journal: journal.NewMemory(8<<20, nil)})}), policy, g
}
