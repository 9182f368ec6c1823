//go:build linux

package host

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// The plugins of the tests are this test binary, started with a word as its first
// argument.
func TestMain(m *testing.M) {
	Launcher()
	if len(os.Args) > 1 {
		if act, ok := roles[os.Args[1]]; ok {
			act()
			os.Exit(0)
		}
	}
	os.Exit(tidily(m))
}

// tidily runs the tests with a folder for temporary files that goes with them: hosts that are
// killed leave theirs. Its name is short, for sockets.
func tidily(m *testing.M) int {
	dir, err := os.MkdirTemp("", "h")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv("TMPDIR", dir)
	return m.Run()
}

// roles is what the test binary can be besides a test.
var roles = map[string]func(){}

func init() {
	maps.Copy(roles, map[string]func(){
		"toy":        func() { sdk.Serve(toy()) },
		"reach":      func() { sdk.Serve(reacher()) },
		"reachnet":   func() { sdk.Serve(reacher("network")) },
		"files":      func() { sdk.Serve(files()) },
		"given":      func() { sdk.Serve(given()) },
		"hostile":    func() { sdk.Serve(hostile("hostile", sdk.Segments)) },
		"hostilefs":  func() { sdk.Serve(hostile("hostilefs", sdk.Path)) },
		"other":      func() { p := toy(); p.Doc = "Another."; sdk.Serve(p) },
		"tcp":        func() { handshake("tcp", "127.0.0.1:1") },
		"foreign":    func() { handshake("unix", "/var/run/docker.sock") },
		"escape":     func() { handshake("unix", os.Getenv(plugin.EnvUnixSocketDir)+"/../../x.sock") },
		"link":       linked,
		"garbage":    func() { fmt.Println("hello, world"); hang() },
		"old":        func() { fmt.Println("1|99|unix|/x|grpc|"); hang() },
		"brief":      func() { fmt.Println("1|99|unix|/x|grpc|") },
		"silent":     hang,
		"deaf":       deaf,
		"exits":      func() {},
		"endless":    endless,
		"frozen":     func() { syscall.Kill(os.Getpid(), syscall.SIGSTOP); hang() },
		"shouts":     func() { fmt.Fprintln(os.Stderr, `{"@message":1,"@level":[],"@timestamp":{}}`); sdk.Serve(toy()) },
		"raw":        func() { serveRaw(&raw{}) },
		"host":       beHost,
		"grandchild": hang,
		"leaky":      func() { sdk.Serve(leaky()) },
		"unable":     beUnable,
		"litterer":   func() { litter(os.Getenv(plugin.EnvUnixSocketDir), math.MaxInt); hang() },
	})
}

func hang() { time.Sleep(time.Hour) }

// handshake says that the plugin listens somewhere.
func handshake(network, address string) {
	fmt.Printf("1|1|%s|%s|grpc|\n", network, address)
	hang()
}

// linked listens where it may, and says so by a link.
func linked() {
	dir := os.Getenv(plugin.EnvUnixSocketDir)
	l, err := net.Listen("unix", dir+"/real")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	if err := os.Symlink(dir+"/real", dir+"/link"); err != nil {
		panic(err)
	}
	handshake("unix", dir+"/link")
}

// deaf listens, and never answers.
func deaf() {
	at := os.Getenv(plugin.EnvUnixSocketDir) + "/deaf"
	if _, err := net.Listen("unix", at); err != nil {
		panic(err)
	}
	handshake("unix", at)
}

// endless writes a first line that never ends.
func endless() {
	for {
		if _, err := os.Stdout.WriteString(strings.Repeat("x", 1<<16)); err != nil {
			return
		}
	}
}

// What a process has for its output from its beginning: go-plugin puts pipes in its
// place. Another file of the same descriptor would close it when it is collected.
var ownOutput, ownErrors = os.Stdout, os.Stderr

type none struct{}

var performed atomic.Int64

// toy is a plugin that behaves in every way.
func toy() sdk.Plugin {
	reads, once := sdk.Flags{ReadOnly: true, Idempotent: true}, sdk.Flags{}
	type mark struct {
		Mark string `pif:"mark,main" doc:"a file that a first time leaves"`
	}
	type size struct {
		Bytes int `pif:"bytes,main" doc:"how many"`
	}
	type wait struct {
		MS int `pif:"ms,main" doc:"how long"`
	}
	return sdk.Plugin{
		Kind: "toy", Version: "1.0.0", Doc: "Behaves and misbehaves.", Scope: sdk.Segments,
		Open: func(_ context.Context, c sdk.Capability) (any, error) {
			if c.Within == "refused" {
				return nil, sdk.Fail("denied", "not this one")
			}
			if c.Within == "late" {
				return nil, context.DeadlineExceeded
			}
			if c.Within == "fatal" {
				os.Exit(3)
			}
			return &scope{c: c}, nil
		},
		Operations: []sdk.Operation{
			sdk.Op("echo", "Gives it back.", reads, func(_ context.Context, _ *scope, a struct {
				V value.Value `pif:"v,main" doc:"what"`
			}) (value.Value, error) {
				performed.Add(1)
				return a.V, nil
			}),
			sdk.Op("echo_once", "Gives it back, and isn't repeatable.", once, func(_ context.Context, _ *scope, a struct {
				V value.Value `pif:"v,main" doc:"what"`
			}) (value.Value, error) {
				return a.V, nil
			}),
			sdk.Op("pid", "The process.", reads, func(context.Context, *scope, none) (int, error) { return os.Getpid(), nil }),
			sdk.Op("scope", "What it was opened with.", reads, func(_ context.Context, s *scope, _ none) (string, error) {
				return fmt.Sprintf("%s %s %v max=%d %v", s.c.Text, s.c.Within, s.c.Verbs, s.c.Max, s.c.Denies), nil
			}),
			sdk.Op("key", "The key.", once, func(ctx context.Context, _ *scope, _ none) (string, error) { return sdk.Key(ctx), nil }),
			sdk.Op("sleep", "Waits, or stops when told.", once, func(ctx context.Context, _ *scope, a wait) (string, error) {
				select {
				case <-time.After(time.Duration(a.MS) * time.Millisecond):
					return "slept", nil
				case <-ctx.Done():
					return "", sdk.Fail("failed", "stopped and undone")
				}
			}),
			sdk.Op("runaway", "Goes on whatever it is told.", reads, runaway),
			sdk.Op("runaway_once", "Goes on whatever it is told.", once, runaway),
			sdk.Op("crash", "Ends the process the first time.", reads, func(_ context.Context, _ *scope, a mark) (string, error) {
				return crash(a.Mark), nil
			}),
			sdk.Op("crash_once", "Ends the process the first time.", once, func(_ context.Context, _ *scope, a mark) (string, error) {
				return crash(a.Mark), nil
			}),
			sdk.Op("die", "Ends the process each time.", reads, func(context.Context, *scope, none) (string, error) {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}),
			sdk.Op("freeze", "Stops the process.", reads, func(context.Context, *scope, none) (string, error) {
				syscall.Kill(os.Getpid(), syscall.SIGSTOP)
				time.Sleep(time.Minute) // it takes effect a little later
				return "thawed", nil
			}),
			sdk.Op("panic", "Panics.", once, func(context.Context, *scope, none) (string, error) { panic("at the disco") }),
			sdk.Op("shout", "Writes much.", once, func(_ context.Context, _ *scope, a size) (string, error) {
				line := strings.Repeat("x", 99) + "\n"
				for n := 0; n < a.Bytes; n += 2 * len(line) {
					fmt.Fprint(os.Stdout, line)
					fmt.Fprint(os.Stderr, line)
				}
				return "shouted", nil
			}),
			sdk.Op("stray", "Writes where the handshake was.", once, func(_ context.Context, _ *scope, a struct {
				Words string `pif:"words,main" doc:"what"`
			}) (string, error) {
				_, err := fmt.Fprintln(ownOutput, a.Words)
				return "written", err
			}),
			sdk.Op("large", "Gives much.", reads, func(_ context.Context, _ *scope, a size) (string, error) {
				return strings.Repeat("x", a.Bytes), nil
			}),
			sdk.Op("needs", "Says that its outcome would have so much.", reads, func(ctx context.Context, _ *scope, a size) (string, error) {
				sdk.NeedsOutcome(ctx, int64(a.Bytes))
				return "", sdk.Fail("too_large", "more than %d bytes", sdk.MaxOutcome(ctx, 1<<40))
			}),
			sdk.Op("fork", "Leaves a process that holds the output.", once, func(context.Context, *scope, none) (int, error) {
				cmd := exec.Command(os.Args[0], "grandchild")
				cmd.Stdout, cmd.Stderr = ownOutput, ownErrors
				if err := cmd.Start(); err != nil {
					return 0, err
				}
				return cmd.Process.Pid, nil
			}),
			sdk.Op("inherited", "What the process has.", reads, func(context.Context, *scope, none) (inheritance, error) { return inherit() }),
			sdk.Op("fail", "Fails.", once, func(_ context.Context, _ *scope, a struct {
				Code, Message string
			}) (string, error) {
				return "", sdk.Fail(a.Code, "%s", a.Message).WithHint("Try the other one.")
			}),
			sdk.Op("count", "Counts loudly.", reads, func(ctx context.Context, _ *scope, a struct {
				To int `pif:"to,main" doc:"how far"`
			}) (int, error) {
				for i := range a.To {
					sdk.Progress(ctx, "%d of %d", i+1, a.To)
				}
				return a.To, nil
			}),
		},
	}
}

// A scope is what a capability of the toy is.
type scope struct{ c sdk.Capability }

// Close leaves a mark where the scope names a file.
func (s *scope) Close() error {
	if strings.HasPrefix(s.c.Within, "closing") {
		return os.WriteFile(filepath.Join(os.TempDir(), "..", "..", "closed"), nil, 0o600)
	}
	return nil
}

func runaway(context.Context, *scope, none) (string, error) {
	for n := uint64(1); ; n++ {
		if n == 0 {
			return "all numbers", nil
		}
	}
}

// crash ends the process unless there is a mark already; it writes one more each
// time.
func crash(path string) string {
	before, _ := os.ReadFile(path)
	if err := os.WriteFile(path, append(before, 'x'), 0o600); err != nil {
		return err.Error()
	}
	if len(before) == 0 {
		os.Exit(7)
	}
	return "the second time"
}

// An inheritance is what a process was given.
type inheritance struct {
	Environment []string
	Descriptors []string
	Input       string
	Folder      []string
	Args        []string
	Group       bool
}

func inherit() (in inheritance, err error) {
	in.Environment, in.Args = os.Environ(), os.Args[1:]
	in.Group = syscall.Getpgrp() == os.Getpid()
	if input, err := io.ReadAll(os.Stdin); err == nil {
		in.Input = string(input)
	}
	here, err := os.ReadDir(".")
	if err != nil {
		return in, err
	}
	for _, e := range here {
		in.Folder = append(in.Folder, e.Name())
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return in, err
	}
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil {
			in.Descriptors = append(in.Descriptors, target)
		}
	}
	return in, nil
}

// files is a plugin whose scopes are paths.
func files() sdk.Plugin {
	return sdk.Plugin{
		Kind: "files", Version: "1.0.0", Doc: "Has a directory.", Scope: sdk.Path,
		Open: func(_ context.Context, c sdk.Capability) (any, error) { return &scope{c: c}, nil },
		Operations: []sdk.Operation{
			sdk.Op("names", "What is in the directory.", sdk.Flags{ReadOnly: true}, func(_ context.Context, s *scope, _ none) ([]string, error) {
				if _, err := s.c.Root.Seek(0, io.SeekStart); err != nil {
					return nil, err
				}
				return s.c.Root.Readdirnames(-1)
			}),
			sdk.Op("inherited", "What the process has.", sdk.Flags{ReadOnly: true}, func(context.Context, *scope, none) (inheritance, error) {
				return inherit()
			}),
			sdk.Op("leak", "Tells where things are.", sdk.Flags{}, func(_ context.Context, _ *scope, a struct {
				Path string `pif:"path,main" doc:"what"`
			}) (string, error) {
				return "", sdk.Fail("failed", "in %s and %s", a.Path, os.TempDir())
			}),
		},
	}
}

// raw is a server that answers against the contract: by the operation it is asked
// for.
type raw struct {
	pluginv1.UnimplementedPluginServer
	plugin.NetRPCUnsupportedPlugin
}

func serveRaw(r *raw) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: wire.Handshake, Plugins: plugin.PluginSet{wire.Service: r}, GRPCServer: plugin.DefaultGRPCServer,
		Logger: hclog.NewNullLogger(),
	})
}

func (r *raw) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	pluginv1.RegisterPluginServer(s, r)
	return nil
}

func (r *raw) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

func (r *raw) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	m, err := toy().Manifest()
	if err != nil {
		return nil, err
	}
	return &pluginv1.DescribeResponse{Protocol: wire.Protocol, Manifest: wire.ToManifest(m), Features: []string{wire.FeatureProgress, wire.FeatureRoom, "telepathy"}}, nil
}

func (r *raw) Open(context.Context, *pluginv1.OpenRequest) (*pluginv1.OpenResponse, error) {
	return &pluginv1.OpenResponse{Outcome: &pluginv1.OpenResponse_Handle{Handle: 0}}, nil
}

func (r *raw) Invoke(_ context.Context, q *pluginv1.InvokeRequest) (*pluginv1.InvokeResponse, error) {
	value := func(b []byte) (*pluginv1.InvokeResponse, error) {
		return &pluginv1.InvokeResponse{Outcome: &pluginv1.InvokeResponse_Value{Value: b}}, nil
	}
	switch q.Operation {
	case "toy.echo":
		return value(q.Arguments)
	case "toy.large":
		return value(make([]byte, 100<<20))
	case "toy.pid":
		return value([]byte("\xff\xff\xff"))
	case "toy.scope":
		return value(nil)
	case "toy.key":
		return &pluginv1.InvokeResponse{}, nil
	case "toy.fail":
		return &pluginv1.InvokeResponse{Outcome: &pluginv1.InvokeResponse_Failure{Failure: &pluginv1.Failure{Code: "root", Message: strings.Repeat("\x1b", 1<<20) + "m"}}}, nil
	case "toy.die":
		return nil, status.Error(codes.Canceled, "it was given up")
	}
	return nil, fmt.Errorf("at %s", os.TempDir())
}

func (r *raw) Answer(context.Context, *pluginv1.AnswerRequest) (*pluginv1.AnswerResponse, error) {
	return &pluginv1.AnswerResponse{}, nil
}

func (r *raw) InvokeStream(q *pluginv1.InvokeRequest, s grpc.ServerStreamingServer[pluginv1.InvokeStreamResponse]) error {
	if q.Operation == "toy.scope" || q.Operation == "toy.pid" {
		room := &pluginv1.InvokeStreamResponse{Event: &pluginv1.InvokeStreamResponse_Room{Room: 100 << 10}}
		if q.Operation == "toy.pid" { // it doesn't ask
			room.Event = &pluginv1.InvokeStreamResponse_Progress{Progress: "soon"}
		}
		if err := s.Send(room); err != nil {
			return err
		}
		large, err := wire.EncodeValue(value.Str(strings.Repeat("x", 1<<20)), 2<<20)
		if err != nil {
			return err
		}
		outcome := &pluginv1.InvokeResponse{Outcome: &pluginv1.InvokeResponse_Value{Value: large}}
		return s.Send(&pluginv1.InvokeStreamResponse{Event: &pluginv1.InvokeStreamResponse_Outcome{Outcome: outcome}})
	}
	for range 100_000 {
		if err := s.Send(&pluginv1.InvokeStreamResponse{Event: &pluginv1.InvokeStreamResponse_Progress{Progress: strings.Repeat("n", 1000)}}); err != nil {
			return err
		}
	}
	return nil // and never an outcome
}
