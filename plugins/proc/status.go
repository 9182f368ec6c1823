package proc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// A state is what there is to say of a session.
type state struct {
	Session string  `doc:"its name"`
	Running bool    `doc:"whether it runs"`
	Age     int64   `doc:"milliseconds since it was started"`
	Unread  places  `doc:"bytes of each stream that weren't read"`
	Written places  `doc:"bytes of each stream ever written"`
	Code    *int64  `doc:"the status that the program exited with"`
	Signal  *string `doc:"the signal that ended it"`
	Why     string  `pif:"why,optional" doc:"where it didn't end by itself: stopped, idle, total, output, memory, processes, capability or lost; or the file that it says it was refused"`
}

const stateWords = "record: session, running, age (ms), unread, written (bytes of stdout and stderr), code?, signal?, why?"

type statusArgs struct {
	Session string `pif:"session,main" doc:"what proc.start gave"`
}

func status(_ context.Context, c *capability, a statusArgs) (state, error) {
	s, err := c.session(a.Session)
	if err != nil {
		return state{}, err
	}
	return s.state(), nil
}

// list gives the sessions of the grant, the oldest first.
func list(_ context.Context, c *capability, _ struct{}) ([]state, error) {
	c.all.mu.Lock()
	var all []*session
	for _, s := range c.all.all {
		if s.grant == c.name {
			all = append(all, s)
		}
	}
	c.all.mu.Unlock()
	slices.SortFunc(all, func(a, b *session) int { return cmp.Compare(a.number, b.number) })
	states := make([]state, len(all))
	for i, s := range all {
		states[i] = s.state()
	}
	return states, nil
}

func (s *session) state() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := state{Session: s.id, Running: !s.over, Age: time.Since(s.begun).Milliseconds()}
	st.Code, st.Signal, st.Why = s.ending()
	st.Written = places{s.streams[stdout].end(), s.streams[stderr].end()}
	st.Unread = places{st.Written.Stdout - s.streams[stdout].read, st.Written.Stderr - s.streams[stderr].read}
	return st
}

// ending is how it ended. The caller holds mu.
func (s *session) ending() (code *int64, signal *string, why string) {
	if !s.over {
		return nil, nil, ""
	}
	switch {
	case !s.last.Ended:
	case s.last.Signal != "":
		name := s.last.Signal
		signal = &name
	default:
		number := int64(s.last.Code)
		code = &number
	}
	return code, signal, s.why
}

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
		select {
		case <-time.After(time.Duration(min(*a.Grace, time.Hour.Milliseconds())) * time.Millisecond):
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

type sendArgs struct {
	Session string  `pif:"session,main" doc:"what proc.start gave"`
	Text    *string `pif:"text" doc:"what to type, with its line feeds"`
	Bytes   *string `pif:"bytes" doc:"in place of text: bytes, in base64"`
	EOF     bool    `pif:"eof,optional" doc:"whether the input ends after it"`
}

type sent struct {
	Sent int64 `doc:"bytes that were taken"`
	Left int64 `doc:"bytes that weren't: the program doesn't read, or has ended"`
}

// endOfInput is what ends the input of a terminal, at the beginning of a line.
const endOfInput = "\x04"

// send types into the session. It waits while the program doesn't read, and no
// longer than the request may.
func send(ctx context.Context, c *capability, a sendArgs) (r sent, err error) {
	s, err := c.session(a.Session)
	if err != nil {
		return r, err
	}
	defer s.use()()
	var b []byte
	switch {
	case a.Text != nil && a.Bytes != nil:
		return r, sdk.Fail("invalid", "both text and bytes are given")
	case a.Text != nil:
		b = []byte(*a.Text)
	case a.Bytes != nil:
		if b, err = base64.StdEncoding.DecodeString(*a.Bytes); err != nil {
			return r, sdk.Fail("invalid", "bytes isn't base64")
		}
	}
	select { // one after the other
	case s.sends <- struct{}{}:
		defer func() { <-s.sends }()
	case <-ctx.Done():
		return r, ctx.Err()
	}
	to, err := s.typing(b)
	if err != nil {
		return r, err
	}
	if a.EOF && s.tty != nil {
		b = append(b, endOfInput...)
	}
	until := time.Now().Add(defaultWait)
	if end, ok := ctx.Deadline(); ok {
		until = end.Add(-spare)
	}
	if err := to.SetWriteDeadline(until); err != nil {
		return r, err
	}
	stop := context.AfterFunc(ctx, func() { _ = to.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	n, err := to.Write(b)
	r.Sent, r.Left = int64(n), int64(len(b)-n)
	if ctx.Err() != nil && r.Left > 0 {
		return r, ctx.Err()
	}
	// A broken pipe is a program that reads no more; what is left says so.
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && n == len(b) {
		return r, err
	}
	if a.EOF && s.tty == nil && r.Left == 0 {
		s.mu.Lock()
		s.input.Close()
		s.input = nil
		s.mu.Unlock()
	}
	return r, nil
}

// typing is where to type, and marks the place of what comes after.
func (s *session) typing(b []byte) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return nil, sdk.Fail("failed", "the session has ended").WithHint("proc.status tells how, proc.read what it wrote.")
	case s.tty == nil && s.input == nil:
		return nil, sdk.Fail("failed", "the input of the session has ended")
	}
	for i := range s.streams {
		s.streams[i].sentAt = s.streams[i].end()
	}
	lines := bytes.ReplaceAll(append([]byte("\n"), b...), []byte("\r\n"), []byte("\n"))
	s.typed = typed{
		lines: bytes.Count(lines, []byte("\n")) - 1,
		empty: bytes.Contains(lines, []byte("\n\n")),
		ended: bytes.HasSuffix(lines, []byte("\n\n")),
	}
	if s.tty != nil {
		return s.tty, nil
	}
	return s.input, nil
}
