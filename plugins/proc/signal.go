package proc

import (
	"context"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

type signalArgs struct {
	Session string `pif:"session,main" doc:"what proc.start gave"`
	Signal  string `pif:"signal" doc:"its name: INT, TERM, KILL, HUP, QUIT, USR1, USR2, STOP, CONT or WINCH, also as SIGINT"`
}

// signalTo sends a signal to the process group of the session's command.
func signalTo(_ context.Context, c *capability, a signalArgs) (bool, error) {
	s, err := c.session(a.Session)
	if err != nil {
		return false, err
	}
	number, ok := signals[strings.TrimPrefix(strings.ToUpper(a.Signal), "SIG")]
	if !ok {
		return false, sdk.Fail("invalid", "there is no signal of that name to send").
			WithHint("INT, TERM, KILL, HUP, QUIT, USR1, USR2, STOP, CONT and WINCH there are.")
	}
	if s.hasEnded() {
		return false, nil
	}
	s.mu.Lock()
	s.typed = typed{}
	for i := range s.streams { // a prompt from before is none
		s.streams[i].sentAt = s.streams[i].end()
	}
	s.mu.Unlock()
	s.kept.Signal(number)
	return true, nil
}

type stopArgs struct {
	Session string `pif:"session,main" doc:"what proc.start gave"`
	Grace   *int64 `pif:"grace" doc:"milliseconds that it has to end by itself, after the signal TERM; 0 if left out"`
}

// stop ends a session with all that it started.
func stop(ctx context.Context, c *capability, a stopArgs) (state, error) {
	s, err := c.session(a.Session)
	if err != nil {
		return state{}, err
	}
	defer s.use()()
	if a.Grace != nil && *a.Grace < 0 {
		return state{}, sdk.Fail("invalid", "grace must not be negative, got %d", *a.Grace)
	}
	if a.Grace != nil && *a.Grace > 0 && !s.hasEnded() {
		s.kept.Signal(signals["TERM"])
		timer := time.NewTimer(time.Duration(min(*a.Grace, time.Hour.Milliseconds())) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.done:
		case <-ctx.Done():
		}
	}
	s.end("stopped")
	if err := s.ended(ctx); err != nil {
		return state{}, err
	}
	return s.state(), nil
}
