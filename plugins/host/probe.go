package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/plugins/internal/sandbox"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// ProbeOptions says what a probe starts.
type ProbeOptions struct {
	// Source is the program. It needs no manifest; where there is one its
	// privileges are the process's.
	Source Source
	// Sandbox says how the system holds it: as a grant's process, or as one
	// without a grant where there is no Root. Empty: [Off], and without the
	// launcher.
	Sandbox Mode
	// Root is the directory that the process gets as its grant's; nil: none.
	Root *os.File
	// State is the folder that the process keeps its state in; empty: none.
	State string
	// Env is more of an environment than plugins have, for tests of them.
	Env []string
	// MaxMessage is the bytes of the largest message; 0: 32 MiB.
	MaxMessage int
	// Within is how long the start may take; 0: 10 s.
	Within time.Duration
	// Logger hears what the plugin writes; nil: nobody.
	Logger *slog.Logger
}

// A Probe is one process of a plugin that serves no grant. It is started as a
// grant's is, with nothing of the host's, and spoken to directly: to have it
// describe itself (see [Describe]), and to hold it against the contract (package
// plugintest).
type Probe struct {
	dir    *Scratch
	launch *launch
	client *plugin.Client
	conn   *grpc.ClientConn

	mu    sync.Mutex
	line  string
	stray bytes.Buffer
}

// maxStray is what is kept of a plugin's output where there should be none.
const maxStray = 4 << 10

// Why a probe's plugin isn't one, in words for people. The texts may hold what
// the plugin wrote: they are on one line.
var (
	// ErrPlain is of a plugin that sent no certificate and may be started again
	// with [Source.Plain].
	ErrPlain = errors.New("the plugin has no certificate: it speaks without TLS")
	// ErrProtocol is of a plugin for another major version of the contract.
	ErrProtocol = errors.New("it speaks another version of the contract")
)

// NewProbe starts a process, and returns when it can be spoken to. The caller
// closes it.
func NewProbe(ctx context.Context, o ProbeOptions) (_ *Probe, err error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.MaxMessage = cmp.Or(o.MaxMessage, wire.MaxMessage)
	o.Within = cmp.Or(o.Within, defaultTiming.start)
	p := &Probe{}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if p.dir, err = NewScratch(shortTemp()); err != nil {
		return nil, err
	}
	if p.launch, err = newLaunch(&o.Source, p.dir.Path, o.MaxMessage, newOutput(o.Logger)); err != nil {
		return nil, err
	}
	p.launch.root, p.launch.hear, p.launch.stray, p.launch.crowded = o.Root, p.hear, p, p.Kill
	if o.State != "" {
		if p.launch.state, err = keeper(o.State); err != nil {
			return nil, err
		}
		defer p.launch.state.Close()
	}
	if o.Sandbox != "" {
		p.launch.box = emptyBox(o.Sandbox, &o.Source)
		if o.Root != nil {
			p.launch.box.root = sandbox.Read | sandbox.Write
		}
	}
	// What a plugin sends too much of is for whoever probes it to judge.
	p.client, err = p.launch.newClient(p.dir.Path, o.Within, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(2*o.MaxMessage), grpc.MaxCallSendMsgSize(4*o.MaxMessage)))
	if err != nil {
		return nil, err
	}
	p.launch.more = append(p.launch.more, o.Env...)
	defer context.AfterFunc(ctx, func() { _ = p.launch.Kill(ctx) })()
	late := time.AfterFunc(o.Within, func() { _ = p.launch.Kill(ctx) })
	defer late.Stop()
	if err := p.launch.start(p.client); err != nil {
		return nil, p.noStart(err)
	}
	if !o.Source.Plain && !p.certified() {
		return nil, ErrPlain
	}
	if p.conn, err = connect(p.client); err != nil {
		return nil, fmt.Errorf("the connection to the plugin fails: %s", wire.Line(err.Error(), 300))
	}
	return p, nil
}

// noStart says why a process isn't a plugin, by the line it wrote.
func (p *Probe) noStart(err error) error {
	line := p.Handshake()
	parts := strings.Split(line, "|")
	switch {
	case line == "" && !p.launch.started():
		return fmt.Errorf("the program can't be started: %s", wire.Line(err.Error(), 300))
	case line == "":
		return errors.New("the program wrote no handshake on its standard output: a plugin is served with sdk.Serve, or by the contract in proto/README.md")
	case len(parts) < 5 || parts[0] != "1":
		return fmt.Errorf("the first line on its standard output is not a handshake of a plugin: %q", display.Truncate(line, 200))
	case parts[1] != strconv.Itoa(wire.Protocol):
		return protocolError(parts[1])
	}
	return fmt.Errorf("the handshake %q isn't accepted: %s", display.Truncate(line, 200), wire.Line(err.Error(), 300))
}

// protocolError says what to do about a plugin of another major version.
func protocolError(spoken string) error {
	return fmt.Errorf("%w: %s, and this mcp-pif speaks %d: use an mcp-pif that speaks it, or a build of the plugin for %d",
		ErrProtocol, display.Truncate(spoken, 20), wire.Protocol, wire.Protocol)
}

// hear keeps the line of the handshake.
func (p *Probe) hear(line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = strings.TrimSpace(string(line))
}

// Write keeps what comes after it.
func (p *Probe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if room := maxStray - p.stray.Len(); room > 0 {
		p.stray.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// Handshake is the line with which the plugin introduced itself.
func (p *Probe) Handshake() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.line
}

// certified reports whether that line has a certificate.
func (p *Probe) certified() bool {
	parts := strings.Split(p.Handshake(), "|")
	return len(parts) > 5 && len(parts[5]) > 50
}

// Stray is the beginning of what the process wrote on its standard output besides
// that line: as far as it was read, and all after Close.
func (p *Probe) Stray() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stray.String()
}

// Conn is the connection to the plugin's service.
func (p *Probe) Conn() *grpc.ClientConn { return p.conn }

// Layers is what of the system's sandbox holds the process, and what doesn't.
func (p *Probe) Layers() Layers { return p.launch.layers }

// Dir is the folder with all that the process may leave behind, and Work the one in
// it that the process runs in.
func (p *Probe) Dir() string { return p.dir.Path }

// Work is the folder that the process runs in, and that is its TMPDIR.
func (p *Probe) Work() string { return filepath.Join(p.dir.Path, "work") }

// Done is closed when the process has ended.
func (p *Probe) Done() <-chan struct{} { return p.launch.dead }

// Exit says how the process ended.
func (p *Probe) Exit() string { return p.launch.exitReason() }

// Kill ends the process and its group with SIGKILL.
func (p *Probe) Kill() { _ = p.launch.Kill(context.Background()) }

// Close ends the process and removes its folder. What the process wrote is read
// then.
func (p *Probe) Close() {
	if p.launch != nil {
		p.Kill()
		if p.launch.started() {
			<-p.launch.dead
			<-p.launch.drained
		}
	}
	if p.conn != nil {
		p.conn.Close()
	}
	if p.client != nil {
		p.client.Kill()
	}
	if p.dir != nil {
		p.dir.Remove()
	}
}

// A Description is what a plugin says of itself.
type Description struct {
	Manifest *caps.Manifest
	Protocol int
	Features []string
	// Plain is set where it speaks without TLS.
	Plain bool
}

// Describe starts a program to have it describe itself, and ends it: it gets no
// grant, an empty folder and no environment. What it says is checked, and every
// text of it bounded; an error may quote it and is for people. The system holds it
// as mode says.
func Describe(ctx context.Context, s Source, mode Mode) (*Description, error) {
	p, err := NewProbe(ctx, ProbeOptions{Source: s, Sandbox: mode})
	if errors.Is(err, ErrPlain) && !s.Plain {
		s.Plain = true
		p, err = NewProbe(ctx, ProbeOptions{Source: s, Sandbox: mode})
	}
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Describe(ctx, s.Plain)
}

// Describe has the process describe itself.
func (p *Probe) Describe(ctx context.Context, plain bool) (*Description, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultTiming.start)
	defer cancel()
	said, err := pluginv1.NewPluginClient(p.conn).Describe(ctx, &pluginv1.DescribeRequest{Protocol: wire.Protocol, Features: wire.Features},
		grpc.MaxCallRecvMsgSize(wire.MaxManifest))
	if err != nil {
		return nil, fmt.Errorf("the plugin doesn't describe itself: %s", wire.Line(err.Error(), 300))
	}
	p.launch.connected()
	if said.GetProtocol() != wire.Protocol {
		return nil, protocolError(strconv.FormatUint(uint64(said.GetProtocol()), 10))
	}
	m, err := wire.FromManifest(said.GetManifest())
	if err != nil {
		return nil, fmt.Errorf("its manifest is refused: %w", err)
	}
	d := &Description{Manifest: m, Protocol: wire.Protocol, Plain: plain}
	for _, f := range said.GetFeatures() {
		// What isn't known is ignored, so that newer plugins go on working.
		if f == wire.FeatureCancel || f == wire.FeatureProgress {
			d.Features = append(d.Features, f)
		}
	}
	return d, nil
}
