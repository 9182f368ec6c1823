package proc

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

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
	timeout time.Duration
}

func (a *sessions) open(c sdk.Capability) *capability {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened++
	return &capability{all: a, name: c.Within, command: c.Command, timeout: c.Timeout}
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
		for _, s := range a.all {
			rest = append(rest, s)
		}
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
