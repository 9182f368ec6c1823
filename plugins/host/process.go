package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// A process is one run of a plugin's program, from its start to its end. It is
// used once: what comes after it is another.
type process struct {
	seat   *seat
	grant  *caps.Grant
	launch *launch
	since  time.Time

	ready  chan struct{} // closed when it can be used, or failed is set
	failed error
	gone   chan struct{} // closed when nothing of it is left

	client *plugin.Client
	conn   *grpc.ClientConn
	plugin pluginv1.PluginClient
	health grpc_health_v1.HealthClient
	cancel bool // it has the feature
	stream bool // it has the feature
	// These are set where it has the feature.
	secrets, questions, sizes, rooms bool
	trusted                          chan struct{} // held by each answer that takes the room that it says

	lastCall atomic.Uint64
	underway atomic.Int64
	handles  handles

	end    sync.Once
	mu     sync.Mutex
	reason string // why it was killed; empty: it wasn't
	lost   bool   // it was killed because it had ended or was as good as ended
	told   []byte // its settings
}

// errRevoked is of requests whose grant was taken back.
var errRevoked = errors.New("the grant was revoked")

// The words for a start that went wrong. What exactly is in the log.
var (
	errNoStart  = wire.NotSent{Reason: "the plugin doesn't start"}
	errStranger = wire.NotSent{Reason: "the plugin isn't what its manifest says"}
)

func newProcess(s *seat, g *caps.Grant) *process {
	p := &process{seat: s, grant: g, since: time.Now(), ready: make(chan struct{}), gone: make(chan struct{}), trusted: make(chan struct{}, trustedAtOnce)}
	p.handles.open = map[string]*handle{}
	return p
}

// start brings the process up, and takes care of its end.
func (p *process) start() {
	within := p.seat.host.timing.start
	// Everything that waits for the plugin ends when it is killed, so that this
	// deadline holds whatever it does.
	late := time.AfterFunc(within, func() { p.kill("it took too long to start") })
	folder, err := os.MkdirTemp(p.seat.host.dir, "p")
	if err == nil {
		err = p.begin(folder)
	}
	if err == nil {
		err = p.meet(within)
	}
	if why := p.wasKilled(); !late.Stop() || err != nil && why != "" {
		err = errors.Join(errors.New(cmp.Or(why, "it took too long to start")), err)
	}
	if err != nil {
		p.failed = errNoStart
		if errors.Is(err, errStranger) {
			p.failed = errStranger
		}
		p.kill("it didn't start")
		level := slog.LevelError
		if p.seat.isClosed() {
			level = slog.LevelDebug // that is why
		}
		p.seat.log.Log(context.Background(), level, "a plugin doesn't start", "error", err)
	} else {
		p.seat.log.Info("a plugin was started", "pid", p.pid(), "sandbox", p.layers().String())
	}
	close(p.ready)
	p.await(folder, err)
}

// begin starts the program.
func (p *process) begin(folder string) error {
	host, source := p.seat.host, p.seat.source
	l, err := newLaunch(source, folder, host.most, newOutput(p.seat.log))
	if err != nil {
		return err
	}
	l.crowded = func() { p.kill("it made files where its socket is to be") }
	l.refused = func(what string) {
		p.seat.log.Warn("it asked for what isn't among the origins that it may reach", "origin", strconv.QuoteToASCII(what))
	}
	if source.Manifest.Algebra == caps.Path {
		if l.root = p.grant.Root; l.root == nil {
			return errors.New("the grant has no directory")
		}
	}
	if source.Settings != nil {
		p.mu.Lock() // see renew
		l.settings, err = source.Settings(p.grant)
		p.told = l.settings
		p.mu.Unlock()
		if err != nil {
			return fmt.Errorf("its settings: %w", err)
		}
	}
	given, err := host.give(l, source.Manifest, p.grant)
	if l.proxy != nil {
		go func() {
			<-p.gone
			l.proxy.Close()
		}()
	}
	if err != nil {
		return err
	}
	defer given()
	if l.proxy != nil && l.open != "" && host.mode(source.Manifest.Kind) != Require {
		p.seat.log.Warn("what it starts isn't held to its origins: it uses a proxy that permits those, and can go around it", "why", l.open)
	}
	l.box = newBox(host.mode(source.Manifest.Kind), source, p.grant)
	// start's own timeout comes first, and says so.
	client, err := l.newClient(host.socketsFor(folder), 2*host.timing.start,
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(host.most), grpc.MaxCallSendMsgSize(host.most)),
		grpc.WithInitialWindowSize(wire.Window), grpc.WithInitialConnWindowSize(wire.Window),
		grpc.WithMaxHeaderListSize(64<<10))
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.launch, p.client = l, client
	killed := p.reason != ""
	p.mu.Unlock()
	if killed {
		return errors.New("it was stopped before it was started")
	}
	return l.start(client)
}

// noBroker refuses go-plugin's broker, by which a plugin could have the host keep
// something for each message it sends.
func noBroker(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, next grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
	if method == "/plugin.GRPCBroker/StartStream" {
		return nil, status.Error(codes.Unimplemented, "there is no broker")
	}
	return next(ctx, d, c, method, o...)
}

// dial connects to where the plugin listens: the address was checked when it was
// advertised, and is again, with whoever answers there.
func (l *launch) dial(ctx context.Context, _ string) (net.Conn, error) {
	at := l.addr
	if err := checkAddress(at.Network(), at.String(), l.sockets); err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, at.Network(), at.String())
	if err != nil {
		return nil, err
	}
	group, _ := strconv.Atoi(l.ID())
	if err := checkPeer(conn, group); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// meet connects, and holds what the plugin says of itself against its manifest.
func (p *process) meet(within time.Duration) error {
	var err error
	if p.conn, err = connect(p.client); err != nil {
		return err
	}
	p.plugin = pluginv1.NewPluginClient(p.conn)
	p.health = grpc_health_v1.NewHealthClient(p.conn)
	ctx, cancel := context.WithTimeout(p.seat.host.ctx, 2*within) // as above
	defer cancel()
	most := wire.MaxManifest
	if p.seat.source.says().Server != "" { // made by us, of a lock of any size
		most = p.seat.host.most
	}
	said, err := p.plugin.Describe(ctx, &pluginv1.DescribeRequest{Protocol: wire.Protocol, Features: wire.Features},
		grpc.MaxCallRecvMsgSize(most))
	if err != nil {
		return err
	}
	p.launch.connected()
	if said.GetProtocol() != wire.Protocol {
		return fmt.Errorf("%w: it speaks protocol %d, the host %d", errStranger, said.GetProtocol(), wire.Protocol)
	}
	if err := p.holdManifest(said.GetManifest()); err != nil {
		return fmt.Errorf("%w: %w", errStranger, err)
	}
	for _, feature := range said.GetFeatures() {
		p.cancel = p.cancel || feature == wire.FeatureCancel
		p.stream = p.stream || feature == wire.FeatureProgress
		p.secrets = p.secrets || feature == wire.FeatureSecrets
		p.questions = p.questions || feature == wire.FeatureQuestions
		p.sizes = p.sizes || feature == wire.FeatureSizes
		p.rooms = p.rooms || feature == wire.FeatureRoom
	}
	return nil
}

// holdManifest holds what the plugin says of itself to what is known of it.
func (p *process) holdManifest(said *pluginv1.Manifest) error {
	says := p.seat.source.says()
	if says.Server != "" {
		if !wire.SaysManifest(said, says) {
			return errOtherManifest
		}
		return nil
	}
	m, err := wire.FromManifest(said)
	if err != nil {
		return err
	}
	if !wire.SameManifest(m, says) {
		return errOtherManifest
	}
	return nil
}

var errOtherManifest = errors.New("its manifest is another one")

// await waits for the end of the process, and removes what is left of it.
func (p *process) await(folder string, failed error) {
	why := failed
	if p.launch != nil && p.launch.ID() != "" {
		<-p.launch.dead
		if p.conn != nil {
			p.conn.Close()
		}
		// go-plugin's own goroutines end, and its folder goes.
		p.client.Kill()
		if failed == nil {
			if why = fmt.Errorf("the process ended: %s", p.launch.exitReason()); p.wanted() {
				why = errors.New(p.reason) // which doesn't change any more
				p.seat.log.Info("a plugin was stopped", "reason", p.reason, "pid", p.pid())
			} else {
				p.seat.log.Warn("a plugin ended by itself", "how", p.launch.exitReason(), "pid", p.pid())
			}
		}
	}
	if folder != "" {
		os.RemoveAll(folder)
	}
	p.end.Do(func() { p.seat.ended(p, why) })
	close(p.gone)
}

// kill ends the process with its group, whatever it is doing.
func (p *process) kill(reason string) { p.finish(reason, false) }

// renew kills a process that was told other settings than it would be now.
func (p *process) renew() {
	p.mu.Lock()
	told := p.told
	p.mu.Unlock()
	if told == nil { // it has none, or will ask for them
		return
	}
	if now, err := p.seat.source.Settings(p.grant); err == nil && !bytes.Equal(told, now) {
		p.kill("its settings have changed")
	}
}

// ending makes one error of those that a process's end can show itself in: the
// connection broke, or was closed because of it. The process is of no use then,
// dead or not. A plugin can answer with either status, too: only UNAVAILABLE is taken for an end then.
func (p *process) ending(err error) error {
	switch code := status.Code(err); {
	case code == codes.Unavailable, code == codes.Canceled && p.conn.GetState() == connectivity.Shutdown:
	default:
		return err
	}
	p.finish("the connection broke", true)
	return fmt.Errorf("%w: %w", wire.ErrEnded, err)
}

func (p *process) finish(reason string, lost bool) {
	p.mu.Lock()
	if p.reason == "" {
		p.reason, p.lost = reason, lost
	}
	l := p.launch
	p.mu.Unlock()
	if l != nil {
		// It can't fail: either there is a process, or there was one.
		_ = l.Kill(context.Background())
	}
}

// wasKilled says why it was, or nothing.
func (p *process) wasKilled() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reason
}

// wanted reports whether the host wanted the end.
func (p *process) wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reason != "" && !p.lost
}

// ended reports whether it is of no use any more.
func (p *process) ended() bool {
	if p.isReady() && p.failed != nil {
		return true
	}
	p.mu.Lock()
	l, killed := p.launch, p.reason != ""
	p.mu.Unlock()
	if killed {
		return true
	}
	return l != nil && isClosed(l.dead)
}

func (p *process) isReady() bool { return isClosed(p.ready) }

// isClosed reports whether a channel that nobody sends on is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// layers is what holds the process.
func (p *process) layers() Layers {
	p.mu.Lock()
	l := p.launch
	p.mu.Unlock()
	if l == nil {
		return Layers{}
	}
	return l.layers
}

func (p *process) pid() int {
	p.mu.Lock()
	l := p.launch
	p.mu.Unlock()
	if l == nil {
		return 0
	}
	n, _ := strconv.Atoi(l.ID())
	return n
}

// lives asks the process whether it still answers.
func (p *process) lives(within time.Duration) bool {
	ctx, cancel := context.WithTimeout(p.seat.host.ctx, within)
	defer cancel()
	_, err := p.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
	code := status.Code(err)
	return err == nil || code == codes.Unimplemented || code == codes.NotFound
}

// A contract is the plugin's service as go-plugin's client hands it out: the
// connection.
type contract struct {
	plugin.NetRPCUnsupportedPlugin
}

// GRPCServer is the plugin's side, which is elsewhere.
func (*contract) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("this is the host's side")
}

// GRPCClient gives the connection.
func (*contract) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}
