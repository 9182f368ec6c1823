package host

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/internal/originproxy"
	"github.com/mcp-pif/mcp-pif/plugins/internal/sandbox"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	"google.golang.org/grpc"
)

// maxHandshake is the bytes of the line with which a plugin introduces itself; a
// certificate is in it.
const maxHandshake = 16 << 10

// A launch starts one process and ends it: go-plugin's runner, made so that the
// process inherits nothing. It has
//
//   - no standard input: the host's is the conversation with its client;
//   - the environment that go-plugin needs, TMPDIR and LANG, and nothing of the
//     host's but the variable that its grant names, where it asks for that;
//   - no descriptor but its own output, where the grant is a path the grant's
//     directory, and a pipe with its settings, where it has any;
//   - an empty folder of its own to run in, and until it is connected to one for its
//     socket: in neither can it make files;
//   - a process group of its own, which is killed as a whole;
//   - where it may start others and the system can do that, a keeper, which ends
//     all of them with it (package sandbox);
//   - an end when the host ends, where the system can do that.
type launch struct {
	path    string
	file    *os.File // the program, open; nil: by its path
	plain   bool     // without TLS
	args    []string
	work    string   // its folder
	sockets string   // where it may listen
	addr    net.Addr // where it does
	root    *os.File // the grant's directory, or nil
	state   *os.File // the folder in which the plugin keeps what lasts, or nil
	// settings is what the process reads from a pipe, whose end it has as told; nil:
	// nothing.
	settings []byte
	told     *os.File
	most     int      // bytes of a message
	env      []string // what go-plugin tells it
	more     []string // of an environment: the grant's variable, or a test's
	output   *output
	mapped   *caps.Command // that the plugin starts, or nil
	// proxy is the way out of what it starts, open why that isn't the only one, and refused is
	// told of what the proxy refuses; nil: there is no proxy.
	proxy   *originproxy.Proxy
	open    string
	refused func(what string)
	box     *box            // nil: no sandbox of the system is around it
	layers  Layers          // of the box, once it was started
	kept    *sandbox.Launch // its keeper's, or nil
	// hear is given the line with which the plugin introduces itself, and stray
	// what comes after it on standard output; both may be nil.
	hear  func(line []byte)
	stray io.Writer

	first    *io.PipeReader // the first line of its standard output
	dead     chan struct{}  // closed when it has ended
	drained  chan struct{}  // closed when no more of its output is read; made by Start
	heardOut chan struct{}  // closed when go-plugin has made of that line what it can
	shut     chan struct{}  // closed when it is connected to; made by Start
	shutOnce sync.Once
	// crowded is told that it makes files where its socket is to be.
	crowded func()

	mu      sync.Mutex
	cmd     *exec.Cmd
	pid     int
	doomed  bool // it is to be killed, started or not
	reaped  bool
	outcome error
	// draining is how long it is read on from after its end; 0: as long as any.
	draining time.Duration
}

var _ runner.Runner = (*launch)(nil)

// Start starts the process. It is waited for on the thread that started it,
// which lives as long: Linux ties the signal of the parent's death to that
// thread.
func (l *launch) Start(ctx context.Context) error {
	stdout, stdoutEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	stderr, stderrEnd, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdout.Close(), stdoutEnd.Close())
	}
	tell, err := l.openSettings()
	if err != nil {
		return errors.Join(err, stdout.Close(), stdoutEnd.Close(), stderr.Close(), stderrEnd.Close())
	}
	defer tell()
	cmd, start, done, err := l.command()
	if err != nil {
		return errors.Join(err, stdout.Close(), stdoutEnd.Close(), stderr.Close(), stderrEnd.Close())
	}
	defer done()
	cmd.Stdin = nil
	cmd.Stdout, cmd.Stderr = stdoutEnd, stderrEnd
	prepare(cmd)
	sealDescriptors()
	l.drained, l.shut = make(chan struct{}), make(chan struct{})
	started, heard, read := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		err := start(ctx)
		// The child has its ends; here they would keep the pipes open.
		stdoutEnd.Close()
		stderrEnd.Close()
		if err == nil {
			l.mu.Lock()
			l.cmd, l.pid = cmd, cmd.Process.Pid
			if l.kept != nil {
				l.pid = l.kept.PID
			}
			if l.doomed {
				l.killAll()
			}
			l.mu.Unlock()
		}
		started <- err
		if err != nil {
			return
		}
		l.wait(cmd)
		// What it wrote before its end is still to be read, its handshake first of all;
		// but a grandchild may hold the other ends for ever.
		late, cancel := context.WithTimeout(context.Background(), l.readsOn())
		defer cancel()
		hearOut(late, heard, stdout)
		close(l.dead)
		await(late, read)
		close(l.drained)
		stdout.Close()
		stderr.Close()
	}()
	if err := <-started; err != nil {
		return errors.Join(err, stdout.Close(), stderr.Close())
	}
	go l.count()
	first, firstEnd := io.Pipe()
	l.first = first
	go func() {
		defer close(read)
		var both sync.WaitGroup
		both.Go(func() { l.output.read(stderr) })
		both.Go(func() { l.readOutput(stdout, firstEnd, heard) })
		both.Wait()
	}()
	return nil
}

// maxMade is how many files a process may make where its socket is to be: it needs
// one, and go-plugin makes another before.
const maxMade = 16

// count looks after the folder of the socket until that is connected to.
func (l *launch) count() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-l.shut:
			return
		case <-l.dead:
			return
		case <-tick.C:
		}
		dir, err := os.Open(l.sockets)
		if err != nil {
			continue
		}
		made, _ := dir.Readdirnames(maxMade + 1)
		dir.Close()
		if len(made) > maxMade {
			l.crowded()
			return
		}
	}
}

// connected takes from the process the folder of its socket, which nobody else
// connects to: it can make no file any more.
func (l *launch) connected() {
	l.shutOnce.Do(func() {
		close(l.shut)
		if l.sockets != "" {
			os.RemoveAll(l.sockets)
		}
	})
}

// draining is how long a process that has ended is read on from, at most.
const draining = 2 * time.Second

// readsOn is that, or what a test has in its place.
func (l *launch) readsOn() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.draining, draining)
}

func await(ctx context.Context, c <-chan struct{}) {
	select {
	case <-c:
	case <-ctx.Done():
	}
}

// hearOut waits until the first line is heard. Where the time is over it goes on as
// long as there is something to read: a machine may have stood still meanwhile.
func hearOut(ctx context.Context, heard <-chan struct{}, stdout *os.File) {
	await(ctx, heard)
	for unread(stdout) {
		select {
		case <-heard:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// command is what to start, in its sandbox where it has one. Call done when it
// was started.
func (l *launch) command() (cmd *exec.Cmd, start func(context.Context) error, done func(), err error) {
	done = func() {}
	if l.box != nil {
		if cmd, start, err = l.box.command(l); cmd != nil || err != nil {
			return cmd, start, done, err
		}
	}
	cmd = exec.Command(l.path, l.args...)
	if l.file != nil {
		if done, err = execute(cmd, l.file); err != nil {
			return nil, nil, nil, err
		}
	}
	cmd.Dir, cmd.Env = l.work, l.environment()
	if files := l.files(); len(files) > 0 {
		if err := pass(cmd, files); err != nil {
			done()
			return nil, nil, nil, err
		}
	}
	return cmd, func(context.Context) error { return cmd.Start() }, done, nil
}

// openSettings makes the pipe from which the process reads its settings. Call tell
// when it was started: they are written then, until it has read them or has ended.
func (l *launch) openSettings() (tell func(), err error) {
	if l.settings == nil {
		return func() {}, nil
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l.told = theirs
	return func() {
		theirs.Close()
		go func() {
			_, _ = ours.Write(l.settings) // whoever doesn't read them doesn't start
			ours.Close()
		}()
	}, nil
}

// files is those that the process inherits, besides its output.
func (l *launch) files() (files []*os.File) {
	for _, f := range []*os.File{l.root, l.told} {
		if f != nil {
			files = append(files, f)
		}
	}
	return files
}

// wait waits for the process, and takes its group with it.
func (l *launch) wait(cmd *exec.Cmd) {
	awaitExit(cmd.Process.Pid)
	// It is dead, and where the system can do that not yet reaped, so that its
	// number is still its own.
	l.mu.Lock()
	if beforeReaping {
		l.killAll()
	}
	l.reaped = beforeReaping
	l.mu.Unlock()
	err := cmd.Wait()
	l.mu.Lock()
	l.reaped, l.outcome = true, err
	if !beforeReaping {
		l.killAll()
	}
	l.mu.Unlock()
}

// killAll kills the process's group, or has its keeper end all that there is. The
// caller holds mu.
func (l *launch) killAll() {
	if l.kept != nil {
		l.kept.End()
		return
	}
	killGroup(l.cmd)
}

// readOutput gives go-plugin the first line, and logs the others. heard is closed
// when that line is there.
func (l *launch) readOutput(stdout io.Reader, first *io.PipeWriter, heard chan<- struct{}) {
	r := bufio.NewReaderSize(stdout, maxHandshake)
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line = nil // no handshake is as long
	}
	if l.hear != nil {
		l.hear(line)
	}
	close(heard)
	first.Write(line)
	first.Close()
	if l.stray != nil {
		l.output.read(io.TeeReader(r, l.stray))
		return
	}
	l.output.read(r)
}

// environment is all that the process has of one.
func (l *launch) environment() []string {
	env := []string{
		"LANG=C.UTF-8", "TMPDIR=" + l.work,
		wire.EnvMaxMessage + "=" + strconv.Itoa(l.most),
	}
	env = append(env, systemEnvironment(l.work)...)
	for _, e := range l.env {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "PLUGIN_") || name == wire.Handshake.MagicCookieKey {
			env = append(env, e)
		}
	}
	env = append(env, l.more...)
	if l.root != nil {
		env = append(env, wire.EnvRoot+"="+numberOf(l.files(), l.root))
	}
	if l.told != nil {
		env = append(env, wire.EnvSettings+"="+numberOf(l.files(), l.told))
	}
	if l.state != nil {
		env = append(env, wire.EnvState+"="+l.state.Name())
	}
	return env
}

// Kill ends the process and its group, at once and for certain.
func (l *launch) Kill(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.doomed = true; l.cmd != nil && !l.reaped {
		l.killAll()
	}
	return nil
}

// Wait returns when the process has ended, and its introduction is over: of a line and
// an end that are there at once go-plugin may take the end.
func (l *launch) Wait(context.Context) error {
	<-l.dead
	<-l.heardOut
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outcome
}

// Stdout is the first line of the standard output. go-plugin waits for its end.
func (l *launch) Stdout() io.ReadCloser { return l.first }

// Stderr is empty: its lines are read here, since go-plugin can be made to panic
// by what stands in them.
func (l *launch) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name is what the process is called in go-plugin's messages.
func (l *launch) Name() string { return "plugin" }

// ID is the number of the process, empty before it is started.
func (l *launch) ID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pid == 0 {
		return ""
	}
	return strconv.Itoa(l.pid)
}

// started reports whether there is, or was, a process.
func (l *launch) started() bool { return l.ID() != "" }

// Diagnose says nothing: what the plugin wrote is in the log.
func (l *launch) Diagnose(context.Context) string { return "" }

// PluginToHost checks the address that a plugin says it listens at.
func (l *launch) PluginToHost(network, address string) (string, string, error) {
	return network, address, checkAddress(network, address, l.sockets)
}

// HostToPlugin refuses: the host listens to no plugin.
func (l *launch) HostToPlugin(string, string) (string, string, error) {
	return "", "", errors.New("the host has no address for plugins")
}

// newLaunch makes the launch of a program in a folder of its own, with the folder that it runs in.
func newLaunch(s *Source, folder string, most int, out *output) (*launch, error) {
	work := filepath.Join(folder, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return nil, err
	}
	if s.Check != nil {
		if err := s.Check(); err != nil {
			return nil, err
		}
	}
	return &launch{
		path: s.Path, file: s.File, args: s.Args, plain: s.Plain, work: work, most: most, output: out,
		dead: make(chan struct{}), heardOut: make(chan struct{}),
	}, nil
}

// newClient is how go-plugin starts a launch, with its sockets in a folder.
func (l *launch) newClient(folder string, within time.Duration, options ...grpc.DialOption) (*plugin.Client, error) {
	config := &plugin.ClientConfig{
		HandshakeConfig:  wire.Handshake,
		Plugins:          plugin.PluginSet{wire.Service: &contract{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: folder},
		StartTimeout:     within,
		Logger:           hclog.NewNullLogger(), // what matters is in errors, or in the output
		SyncStdout:       l.output.writer(),
		SyncStderr:       l.output.writer(),
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, sockets string) (runner.Runner, error) {
			l.sockets, l.env = sockets, cmd.Env
			return l, nil
		},
		GRPCDialOptions: append(options, grpc.WithContextDialer(l.dial), grpc.WithIdleTimeout(0), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
			grpc.WithStreamInterceptor(noBroker)),
	}
	if l.plain {
		return plugin.NewClient(config), nil
	}
	certificate, err := wire.NewCertificate(x509.ExtKeyUsageClientAuth)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	l.more = append(l.more, "PLUGIN_CLIENT_CERT="+string(text))
	config.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, ServerName: "localhost"}
	return plugin.NewClient(config), nil
}

// start has the client start the program.
func (l *launch) start(c *plugin.Client) (err error) {
	l.addr, err = c.Start()
	close(l.heardOut)
	return err
}

// connect connects to the program's service.
func connect(c *plugin.Client) (*grpc.ClientConn, error) {
	protocol, err := c.Client()
	if err != nil {
		return nil, err
	}
	conn, err := protocol.Dispense(wire.Service)
	if err != nil {
		return nil, err
	}
	return conn.(*grpc.ClientConn), nil
}

// exitReason says how a process ended, for the log.
func (l *launch) exitReason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.outcome == nil {
		return "exit status 0"
	}
	return fmt.Sprint(l.outcome)
}

// mappedFiles is the descriptors of a plugin with many processes: each has its
// streams.
const mappedFiles = 4096

// mappedEnded is how many of them keep their output after their end.
const mappedEnded = 16

// giveCommand has the process know what its grant's name is mapped to, and how
// the system is to hold that.
func (l *launch) giveCommand(c caps.Command, mode Mode) error {
	c.Sandbox = string(mode)
	if len(c.Origins) > 0 && !c.Network {
		var err error
		if c.Proxy, err = l.startProxy(c.Origins, mode); err != nil {
			return err
		}
	}
	l.mapped = &c
	l.more = append(l.more, wire.EnvCommand+"="+c.Text())
	return nil
}

// startProxy makes the proxy that is the command's way out. Where the plugin will be in a network
// of its own, the proxy is served once it is; elsewhere at once, at any port of this machine.
func (l *launch) startProxy(origins []string, mode Mode) (at string, err error) {
	if l.proxy, err = originproxy.New(originproxy.Options{Origins: origins, Refused: l.refused}); err != nil {
		return "", err
	}
	if l.open = "the operator turned the sandbox off"; mode != Off {
		l.open = sandbox.Isolation()
	}
	if l.open == "" {
		return "http://" + sandbox.ProxyAddress, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go l.proxy.Serve(listener)
	return "http://" + listener.Addr().String(), nil
}

// addCommand lets a plugin reach what the command does: no layer is ever taken
// off, so what a plugin starts can do no more than the plugin.
func addCommand(spec *sandbox.Spec, c *caps.Command) error {
	rules, err := sandbox.Command(c.Path, c.Dir, c.Read, c.Write, c.Execute)
	if err != nil {
		return err
	}
	// Who watches over processes reads there which there are; what it starts
	// doesn't.
	spec.Rules = append(spec.Rules, sandbox.Rule{Path: "/proc", Access: sandbox.Read, Optional: true})
	spec.Rules = append(spec.Rules, rules...)
	if c.PTY {
		spec.Rules = append(spec.Rules,
			sandbox.Rule{Path: "/dev/ptmx", Access: sandbox.Terminals}, sandbox.Rule{Path: "/dev/pts", Access: sandbox.Terminals})
	}
	if c.Network {
		spec.Network = sandbox.Outgoing
		spec.Rules = append(spec.Rules, sandbox.Resolver()...)
	}
	if c.Proxy != "" {
		// The plugin listens besides; what it starts has connections to the proxy alone.
		spec.Network, spec.Isolate = sandbox.Outgoing, true
	}
	spec.Limits.Memory = max(sandbox.DefaultMemory, c.Memory) + 4*c.Buffer*int64(c.Sessions+mappedEnded)
	spec.Limits.Files = mappedFiles
	return nil
}

// CheckCommand says why a command can't be started, as far as that is known
// before.
func CheckCommand(c *caps.Command) error {
	_, err := sandbox.Command(c.Path, c.Dir, c.Read, c.Write, c.Execute)
	return err
}

// Libraries is what the system reads, besides the file itself, when it executes a
// program: an interpreter that it names, the loader and folders of libraries.
func Libraries(program string) []string {
	rules, err := sandbox.Program(program)
	if err != nil {
		return nil // it can't be executed here
	}
	var paths []string
	for _, r := range rules {
		if r.Path != program {
			paths = append(paths, r.Path)
		}
	}
	return paths
}

// TakesCommand reports whether the processes of a manifest's plugin start what the
// operator maps the names of their grants to.
func TakesCommand(m *caps.Manifest) bool {
	return slices.Contains(m.Privileges, wire.PrivilegeCommand)
}
