package proc

import (
	"cmp"
	"context"
	"os"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/internal/keeper"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// A session is a program that runs, or ran. It is safe for concurrent use.
type session struct {
	id     string
	number int    // by which the first are forgotten first
	grant  string // the name that it is of
	begun  time.Time
	most   *sdk.Command
	total  *time.Timer
	idle   *time.Timer
	rest   time.Duration // that it may be idle

	kept  *keeper.Kept
	input *os.File // nil: a terminal, or nothing more can be sent
	tty   *os.File // the terminal's other side, or nil
	sends chan struct{}

	done chan struct{} // closed when nothing of it is left, and all is read

	mu      sync.Mutex
	changed chan struct{} // closed when it changes, and replaced
	streams [2]stream
	wrote   int64 // bytes, ever
	over    bool  // done
	why     string
	last    keeper.News
	busy    int // operations under way
	typed   typed
}

// typed is what there is to know of what was sent last, to tell a prompt.
type typed struct {
	lines int
	empty bool // an empty line is in it, which ends a block
	ended bool // it is the last
}

// A stream is one of the session's outputs.
type stream struct {
	ring
	read   int64 // the place up to which it was taken
	sentAt int64 // where it was when something was last sent
	closed bool
}

// The streams.
const (
	stdout = iota
	stderr
)

var streamNames = [2]string{"stdout", "stderr"}

// change lets those that wait look again. The caller holds mu.
func (s *session) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// end has the keeper end the session. The first reason stays.
func (s *session) end(why string) {
	s.mu.Lock()
	if s.why == "" && !s.over {
		s.why = why
	}
	s.mu.Unlock()
	s.kept.End()
}

// limit begins the times that a session has.
func (s *session) limit() {
	total, err1 := time.ParseDuration(s.most.Total)
	idle, err2 := time.ParseDuration(s.most.Idle)
	if err1 != nil || err2 != nil {
		total, idle = 24*time.Hour, 30*time.Minute // a host that didn't complete it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = idle
	s.total = time.AfterFunc(total, func() { s.end("total") })
	s.idle = time.AfterFunc(idle, s.rested)
}

// rested ends a session that no operation named for as long as it may be idle.
func (s *session) rested() {
	s.mu.Lock()
	if s.busy > 0 {
		s.idle.Reset(s.rest)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.end("idle")
}

// touch says that an operation named the session.
func (s *session) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil && !s.over {
		s.idle.Reset(s.rest)
	}
}

// use keeps a session from being idle until the function that it gives is called.
func (s *session) use() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy++
	return func() {
		s.mu.Lock()
		s.busy--
		s.mu.Unlock()
		s.touch()
	}
}

// heard is told how the command ended.
func (s *session) heard(n keeper.News) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = n
	s.why = cmp.Or(s.why, n.Why)
}

// conclude is when nothing of the session is left, and all is read.
func (s *session) conclude() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if !s.last.Ended && s.why == "" {
		s.why = "lost" // its keeper was killed by somebody else
	}
	if why := s.refusal(); why != "" {
		s.why = why
	}
	if s.total != nil {
		s.total.Stop()
		s.idle.Stop()
	}
	s.kept.End()
	if s.input != nil {
		s.input.Close()
	}
	s.change()
	close(s.done)
}

func (s *session) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// ended waits for the end of a session, or of the context.
func (s *session) ended(ctx context.Context) error {
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
