// Package proc is the plugin of the kind proc: programs that go on between calls,
// such as an interpreter of Python that a model types into. It exports [Plugin],
// and [Keeper], which the program that serves the plugin calls first.
//
// A capability names what the operator mapped, proc:python3: its command line,
// folder, environment and sandbox. A program chooses the name and types; it never
// chooses an argument, and there is no shell. What it starts is a session, named
// by 128 random bits, which a tool returns as data and takes again. Whoever holds
// the grant and knows the name may use it; nobody else, and no name comes twice.
//
// Each session has a keeper (package keeper), which starts the command in a sandbox of
// its own and ends with it whatever that started. Output is read
// as it comes and the last of it kept (output.go), so that nothing between two reads
// is lost unless the buffer overflowed, and then it is said how much.
//
// Files: proc.go is an open capability and how one starts; session.go a session's life,
// output.go what it writes, wait.go when a read is over; read.go and status.go the other
// operations.
package proc

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/internal/keeper"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// Plugin returns the plugin of the kind proc. Its sessions are those of this value
// alone.
func Plugin() sdk.Plugin {
	all := newSessions()
	return sdk.Plugin{
		Kind:    "proc",
		Version: "1.0.0",
		Doc:     "drives programs that the operator named, such as python3, in sessions that go on between calls",
		Scope:   sdk.Exact,
		Open:    func(_ context.Context, c sdk.Capability) (any, error) { return all.open(c), nil },
		Operations: []sdk.Operation{
			sdk.Op("start", "starts the program and gives the session's name, which the other operations take", acts, start),
			sdk.Op("send", "types text into the session; a line needs its line feed", acts, send),
			sdk.Op("read", "gives what the session wrote since the last read, once it wrote a pattern or a prompt, is silent, has ended, or the time is over; without a condition that is a prompt", takes, read, sdk.Result(readingWords)),
			sdk.Op("wait_for", "waits as proc.read does, and takes nothing", looks, waitFor),
			sdk.Op("status", "tells whether a session runs, and how it ended", looks, status, sdk.Result(stateWords)),
			sdk.Op("list", "lists the sessions of the capability", looks, list),
			sdk.Op("signal", "sends a signal to the session's programs; INT interrupts what an interpreter does", acts, signalTo),
			sdk.Op("stop", "ends a session with everything that it started, and tells how it ended", ends, stop, sdk.Result(stateWords)),
		},
		Privileges: []string{"command", "processes"},
	}
}

// What the operations can do at worst. What is typed into an interpreter may do
// whatever the operator's mapping lets it: destroy files, and reach the network.
var (
	acts  = sdk.Flags{Destructive: true, OpenWorld: true}
	takes = sdk.Flags{}
	looks = sdk.Flags{ReadOnly: true}
	ends  = sdk.Flags{Destructive: true, Idempotent: true, OpenWorld: true}
)

// Keeper is a session's keeper where this process was started as one: it doesn't
// return then. The program that serves the plugin calls it first thing, after the
// sandbox's launcher, which it needs too.
func Keeper() { keeper.Main() }

// sessions is those of a plugin's process, which serves one grant, and how many
// capabilities of it are open.
type sessions struct {
	mu     sync.Mutex
	all    map[string]*session
	opened int
	last   int
}

func newSessions() *sessions { return &sessions{all: map[string]*session{}} }

// keptEnded is how many sessions that have ended are remembered, with what they
// wrote.
const keptEnded = 16

// A capability is an open one: for a name, and what that is mapped to.
type capability struct {
	all     *sessions
	name    string
	command *sdk.Command // nil: to nothing
}

func (a *sessions) open(c sdk.Capability) *capability {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened++
	return &capability{all: a, name: c.Within, command: c.Command}
}

// settleWithin is how long closing the last capability waits for its sessions to
// be gone. The host waits a little longer.
const settleWithin = 250 * time.Millisecond

// Close ends all sessions with the last capability. What isn't gone in time ends
// without being waited for.
func (c *capability) Close() error {
	a := c.all
	a.mu.Lock()
	a.opened--
	var rest []*session
	if a.opened == 0 {
		rest = slices.Collect(maps.Values(a.all))
	}
	a.mu.Unlock()
	for _, s := range rest {
		s.end("capability")
	}
	late := time.After(settleWithin)
	for _, s := range rest {
		select {
		case <-s.done:
		case <-late:
			return nil
		}
	}
	return nil
}

// session finds one by its name. One of another grant isn't there.
func (c *capability) session(id string) (*session, error) {
	c.all.mu.Lock()
	s := c.all.all[id]
	c.all.mu.Unlock()
	if s == nil || s.grant != c.name {
		return nil, sdk.Fail("not_found", "the capability has no session of that name").
			WithHint("proc.list gives those there are; sessions end with the server, and at their limits. proc.start makes another.")
	}
	s.touch()
	return s, nil
}

// admit puts a session among the others where there is room, and names it.
func (c *capability) admit(s *session) error {
	var random [16]byte
	rand.Read(random[:]) // it never fails
	a := c.all
	a.mu.Lock()
	defer a.mu.Unlock()
	running := 0
	var ended []*session
	for _, other := range a.all {
		if other.hasEnded() {
			ended = append(ended, other)
		} else {
			running++
		}
	}
	if running >= c.command.Sessions {
		return sdk.Fail("conflict", "%d sessions are running, and no more may", running).
			WithHint("End one with proc.stop; proc.list gives them.").WithRetry()
	}
	slices.SortFunc(ended, func(x, y *session) int { return cmp.Compare(x.number, y.number) })
	for len(ended) >= keptEnded {
		delete(a.all, ended[0].id)
		ended = ended[1:]
	}
	a.last++
	s.id, s.number = hex.EncodeToString(random[:]), a.last
	a.all[s.id] = s
	return nil
}

// forget takes out a session that never ran.
func (a *sessions) forget(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, s.id)
}

type startArgs struct {
	Name *string `pif:"name,main,designates" doc:"the program; the capability's if left out"`
}

// start makes a session. What it is of is the operator's alone to say.
func start(ctx context.Context, c *capability, a startArgs) (string, error) {
	switch {
	case a.Name != nil && *a.Name != c.name:
		return "", sdk.Fail("denied", "the capability is for %s alone", strconv.Quote(c.name))
	case c.command == nil:
		return "", sdk.Fail("not_found", "the operator mapped %s to no command", strconv.Quote(c.name)).WithHint("Tell the user.")
	}
	s := &session{
		grant: c.name, begun: time.Now(), most: c.command,
		sends: make(chan struct{}, 1), done: make(chan struct{}), changed: make(chan struct{}),
	}
	for i := range s.streams {
		s.streams[i].most = int(c.command.Buffer)
	}
	if err := c.admit(s); err != nil {
		return "", err
	}
	first, err := s.begin()
	if err != nil {
		c.all.forget(s)
		return "", refused(c, err)
	}
	s.limit()
	var n keeper.News
	select {
	case n = <-first:
	case <-ctx.Done():
		s.end("stopped")
		return "", ctx.Err()
	}
	if !n.Started {
		s.end("stopped")
		c.all.forget(s)
		return "", refused(c, fmt.Errorf("%s", n.Error))
	}
	return s.id, nil
}

// refused is the failure of a start. What exactly is the operator's to know: it
// names paths.
func refused(c *capability, err error) error {
	fmt.Fprintf(os.Stderr, "%s doesn't start: %v\n", c.name, err)
	return sdk.Fail("failed", "%s can't be started", strconv.Quote(c.name)).WithHint("Tell the user: the server's log says why.")
}
