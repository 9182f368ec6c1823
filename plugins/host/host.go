// Package host runs capability plugins: it starts their processes, talks to them
// over gRPC, watches them and stops them. It implements the broker's handler
// (package caps/run), and decides nothing about authority: what reaches it was
// permitted.
//
// One process serves one grant, or with [Source.Shared] all that a principal has of a
// kind. It is started when the grant is prepared or first
// used, inherits nothing of the host but the grant's directory (see launch), and
// is killed with its whole group when the grant is revoked, when the host is
// closed, and, on Linux, when the host dies however that comes. A plugin may be
// broken or hostile: whatever it does, [Host.Perform] returns soon after its
// deadline, with the outcome or with a fault that says what is known. An operation
// that isn't repeatable and may have been done is outcome_unknown; it is never
// tried again.
//
// Files: seat.go is one grant and when its process is started again; process.go
// one process from its start to its end; call.go one request; launch.go what a
// process inherits; output.go its log. What isn't confined yet is in
// plugins/README.md.
package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

var _ run.Handler = (*Host)(nil)

// Options of a host. The zero value is ready to use.
type Options struct {
	// Logger hears what plugins write and when processes start and end; nil:
	// [slog.Default].
	Logger *slog.Logger
	// RuntimeDir is where processes have their folders and sockets. Where its
	// path is too long for sockets, they go to a folder of their own. Empty: a new
	// one that only this user can enter, in the system's folder for temporary
	// files, removed by Close, or where that doesn't come by the next host ([Sweep]).
	RuntimeDir string
	// State is where a kind's plugin keeps what lasts, an absolute path, for those
	// whose manifests ask for it. It is asked for before each start, and the folder
	// is made. Nil: such plugins don't start.
	State func(kind string) (string, error)
	// Command is what the operator maps the name of a grant to, for plugins whose
	// manifests ask for it; asked for before each start. Nil, or nil from it:
	// nothing.
	Command func(g *caps.Grant) *caps.Command
	// Sandbox says how the processes of a kind are held by the system; nil:
	// [Require], for all. The program must call [Launcher].
	Sandbox func(kind string) Mode
	// Secrets is the operator's: whatever a plugin gives, fails with or writes is
	// searched for their values, and has the secrets' names in their place. Nil:
	// there are none.
	Secrets *caps.Vault
}

// A Source is how the processes of a kind are started.
type Source struct {
	// Manifest is what the plugin is known to say of itself. A process that says
	// anything else isn't used.
	Manifest *caps.Manifest
	// Path is the program's absolute path, and Args what it is given.
	Path string
	Args []string
	// File is the program, open for reading by whoever checked it: where the
	// system can do that, what was checked is executed, whatever Path leads to by
	// then. Nil: Path is. It is the caller's to close, after the host.
	File *os.File
	// Reads is files and folders, besides the program itself, that a process needs
	// to read: the folder of a program that an interpreter runs.
	Reads []string
	// Writes gives files and folders that a grant's process may read and change besides,
	// such as a login that it renews. Nil: none.
	Writes func(g *caps.Grant) []string
	// Check is asked before each start, and an error of it starts nothing. Nil: no
	// question.
	Check func() error
	// Settings is what a grant's process is told besides its grant, asked for before
	// each start. It may hold secrets: it goes by a pipe that only the process can read
	// (see sdk.ReadSettings). Nil: nothing.
	Settings func(g *caps.Grant) ([]byte, error)
	// Asks reports whether a grant's process may put questions to the user while it
	// performs an operation. Nil: none may.
	Asks func(g *caps.Grant) bool
	// Shared is set where one process serves all grants of the kind that a principal
	// has: a session with somebody else, which they share, lives in it. It ends when
	// all of them are revoked, and a revoked one's requests end at once. Settings and
	// what a grant's name is mapped to are those of whichever grant comes first.
	Shared bool
	// Local is set where what only reads costs nothing to be asked for twice: for little first, and
	// where that is too little for all, when there is room.
	Local bool
	// Says is the manifest that a process has to give where that isn't Manifest,
	// as with flags that nobody has accepted yet. Nil: Manifest.
	Says *caps.Manifest
	// Plain is set for programs that can't make certificates: the connection is
	// the socket's, in a folder that only this user can enter, without TLS.
	Plain bool
}

// says is the manifest that a process has to give.
func (s *Source) says() *caps.Manifest {
	if s.Says != nil {
		return s.Says
	}
	return s.Manifest
}

// timing is how long things may take. Tests have others.
type timing struct {
	start    time.Duration // from the start of a process to its manifest
	grace    time.Duration // from telling a request to end to killing its process
	watch    time.Duration // from a request's beginning to asking whether the process lives
	health   time.Duration // for the answer to that
	settle   time.Duration // for a handle to be closed before its process is killed
	settled  time.Duration // a process that dies younger counts as a failed start
	backoff  time.Duration // before the second failed start is tried again; doubled each time
	longest  time.Duration // of such a wait
	patience time.Duration // a request waits as long for it, and fails at once if it is longer
}

var defaultTiming = timing{
	start: 30 * time.Second, grace: time.Second, watch: time.Second, health: 3 * time.Second,
	settle: 300 * time.Millisecond, settled: 5 * time.Second, backoff: 100 * time.Millisecond,
	longest: 15 * time.Second, patience: time.Second,
}

// A Host has the processes of all grants. It is safe for concurrent use.
type Host struct {
	log     *slog.Logger
	dir     string
	ours    *Scratch // dir, removed by Close; nil: it is the caller's
	most    int
	state   func(kind string) (string, error)
	command func(g *caps.Grant) *caps.Command
	sandbox func(kind string) Mode
	timing  timing
	secrets *caps.Vault     // may be nil
	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	sockets *Scratch // where sockets go if dir's path is too long for them; or nil

	mu      sync.Mutex
	sources map[string]*Source
	seats   map[string]*seat
	closed  bool
}

// New makes a host without plugins. It starts nothing.
func New(o Options) (*Host, error) {
	h := &Host{
		log: o.Logger, dir: o.RuntimeDir, most: wire.MaxMessage, state: o.State, command: o.Command, sandbox: o.Sandbox, timing: defaultTiming, secrets: o.Secrets,
		sources: map[string]*Source{}, seats: map[string]*seat{},
	}
	h.log = cmp.Or(h.log, slog.Default())
	h.log = hiding(h.log, h.secrets)
	var err error
	if h.dir == "" {
		if h.ours, err = NewScratch(""); err == nil {
			h.dir = h.ours.Path
		}
	} else if h.dir, err = filepath.Abs(h.dir); err == nil {
		err = os.MkdirAll(h.dir, 0o700)
	}
	if err == nil {
		// The same folder by the name the system has for it: sockets are compared.
		h.dir, err = filepath.EvalSymlinks(h.dir)
	}
	if err == nil && len(h.dir) > longestDir {
		h.sockets, err = NewScratch(shortTemp())
	}
	if err != nil {
		return nil, fmt.Errorf("a folder for plugins: %w", err)
	}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h, nil
}

// Dir is the folder where the processes have theirs, by the name the system has
// for it.
func (h *Host) Dir() string { return h.dir }

// Add makes a kind known. Each kind is added once, before it is used.
func (h *Host) Add(s Source) error {
	if s.Manifest == nil {
		return errors.New("a plugin without a manifest")
	}
	if err := wire.CheckManifest(s.Manifest); err != nil {
		return fmt.Errorf("plugin %s: %w", s.Manifest.Kind, err)
	}
	if s.Says != nil {
		if err := wire.CheckManifest(s.Says); err != nil {
			return fmt.Errorf("plugin %s: %w", s.Manifest.Kind, err)
		}
	}
	if !filepath.IsAbs(s.Path) {
		return fmt.Errorf("plugin %s: its program's path must be absolute", s.Manifest.Kind)
	}
	s.Args = slices.Clone(s.Args)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errors.New("the host is closed")
	}
	if _, twice := h.sources[s.Manifest.Kind]; twice {
		return fmt.Errorf("plugin %s: it was added before", s.Manifest.Kind)
	}
	h.sources[s.Manifest.Kind] = &s
	return nil
}

// Prepare starts a grant's process, and doesn't wait for it.
func (h *Host) Prepare(g *caps.Grant) {
	if g == nil {
		return
	}
	s, err := h.seat(g)
	if err != nil {
		return // whoever performs is told
	}
	go func() {
		ctx, cancel := context.WithTimeout(h.ctx, h.timing.start)
		defer cancel()
		// The log has what went wrong, and whoever performs is told.
		_, _ = s.running(ctx, time.Time{})
	}()
}

// Renew ends the processes that would be told other settings now. The next request starts one anew.
func (h *Host) Renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.seats {
		s.mu.Lock()
		p := s.process
		s.mu.Unlock()
		if p != nil {
			p.renew()
		}
	}
}

// mode is how the processes of a kind are held.
func (h *Host) mode(kind string) Mode {
	if h.sandbox == nil {
		return Require
	}
	return h.sandbox(kind)
}

// seat finds or makes the place of a grant.
func (h *Host) seat(g *caps.Grant) (*seat, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, wire.NotSent{Reason: "the server is ending"}
	}
	source, ok := h.sources[g.Kind]
	key := g.ID
	switch {
	case ok && source.Shared:
		key = g.Kind + "\x00" + g.Principal // no grant's identity
	case key == "":
		key = fmt.Sprintf("%p", g)
	}
	if s, ok := h.seats[key]; ok {
		s.adopt(g)
		return s, nil
	}
	if !ok {
		return nil, wire.NotSent{Reason: "there is no plugin for " + g.Kind}
	}
	s := newSeat(h, source, g)
	h.seats[key] = s
	return s, nil
}

// longestDir is the bytes of a folder's path below which the path of a process's
// socket has less than the 104 that every system takes:
// /p1234567890/plugin-dir1234567890/plugin1234567890 is the rest.
const longestDir = 52

// shortTemp is a folder for temporary files with a short name.
func shortTemp() string {
	if dir := os.TempDir(); len(dir) <= 20 || runtime.GOOS == "windows" {
		return dir
	}
	return "/tmp"
}

// socketsFor is where a process with this folder has its socket.
func (h *Host) socketsFor(folder string) string {
	if h.sockets != nil {
		return h.sockets.Path
	}
	return folder
}

// Close closes what is open, kills every process and removes the folders. It
// returns soon, whatever plugins do; requests under way end with faults.
func (h *Host) Close() error {
	h.mu.Lock()
	again := h.closed
	h.closed = true
	seats := slices.Collect(maps.Values(h.seats))
	h.mu.Unlock()
	if again {
		return nil
	}
	var all sync.WaitGroup
	for _, s := range seats {
		all.Go(s.close)
	}
	all.Wait()
	h.stop()
	var failed error
	if h.ours != nil {
		failed = h.ours.Remove()
	}
	if h.sockets != nil {
		failed = errors.Join(failed, h.sockets.Remove())
	}
	return failed
}

// maxVariable is the bytes of a variable's value: what systems let a process have
// in its environment, less some room.
const maxVariable = 96 << 10

// KeepsState reports whether the processes of a manifest's plugin are given a folder
// that lasts, and so need [Options.State].
func KeepsState(m *caps.Manifest) bool {
	return slices.Contains(m.Privileges, wire.PrivilegeState)
}

// TakesVariable reports whether the processes of a manifest's plugin are given the
// environment variable that their grant names.
func TakesVariable(m *caps.Manifest) bool {
	return slices.Contains(m.Privileges, wire.PrivilegeVariable)
}

// give adds to a launch what the manifest's privileges ask of the host itself: the
// folder that lasts, and the variable or the command that the grant names. done closes what is
// open, when the process was started.
func (h *Host) give(l *launch, m *caps.Manifest, g *caps.Grant) (done func(), err error) {
	if TakesVariable(m) {
		if value, ok := os.LookupEnv(g.Scope); ok {
			if len(value) > maxVariable {
				return nil, fmt.Errorf("the environment variable %s has %d bytes; at most %d are given to a plugin", g.Scope, len(value), maxVariable)
			}
			l.more = append(l.more, wire.EnvVariable+"="+value)
		}
	}
	if slices.Contains(m.Privileges, wire.PrivilegeCommand) && h.command != nil {
		if c := h.command(g); c != nil {
			if err := l.giveCommand(*c, h.mode(g.Kind)); err != nil {
				return nil, fmt.Errorf("what %s is mapped to: %w", g.Scope, err)
			}
		}
	}
	if !KeepsState(m) {
		return func() {}, nil
	}
	if h.state == nil {
		return nil, errors.New("the plugin keeps state, and this host has no place for any")
	}
	path, err := h.state(m.Kind)
	if err != nil {
		return nil, fmt.Errorf("the folder of a plugin's state: %w", err)
	}
	if l.state, err = keeper(path); err != nil {
		return nil, fmt.Errorf("the folder of a plugin's state: %w", err)
	}
	return func() { l.state.Close() }, nil
}

// keeper makes a folder that only this user can enter, where there is none, and
// opens it. Its name is the one that the system has for it.
func keeper(path string) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%s isn't absolute", path)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is a link or a file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm() != 0o700:
		if err := os.Chmod(path, 0o700); err != nil {
			return nil, err
		}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(real)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return nil, errors.Join(fmt.Errorf("%s changed while it was opened", path), err, f.Close())
	}
	return f, nil
}
