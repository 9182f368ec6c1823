package proc

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

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
