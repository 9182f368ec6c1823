package mcp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A stdioConn is a connection to a process, by its standard streams: a message on each
// line.
type stdioConn struct {
	exchanges
	out   *os.File // what the server reads
	end   func()   // ends the process
	log   *logger
	turn  chan struct{} // held by who writes
	heard chan jsonrpc.Message
	done  chan struct{}
	close sync.Once
}

// writeTimeout is how long a server that reads nothing is waited for where the request has
// no deadline.
const writeTimeout = 10 * time.Second

// newStdio makes a connection of the two ends that a server reads and writes.
func newStdio(out, in *os.File, end func(), log *logger, notice func(string, json.RawMessage)) *stdioConn {
	c := &stdioConn{
		out: out, end: end, log: log, turn: make(chan struct{}, 1),
		heard: make(chan jsonrpc.Message), done: make(chan struct{}), exchanges: exchanges{notice: notice},
	}
	go c.listen(in)
	return c
}

// listen reads what the server writes, to its end.
func (c *stdioConn) listen(in *os.File) {
	defer c.Close()
	defer in.Close()
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		f, err := readFrame(r, c.most, c.room)
		if m := c.message(f); m != nil {
			select {
			case c.heard <- m:
			case <-c.done:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// message is what a line says; nil: nothing, or nothing for us. A line that can't be read
// says nothing: many servers write other lines by mistake.
func (c *stdioConn) message(f frame) jsonrpc.Message {
	if f.id.IsValid() && (f.line == nil || f.size > c.mostOf(f.id)) {
		return c.failed(f.id, cmp.Or(f.noRoom, errTooLarge))
	}
	if len(f.line) == 0 {
		if f.size > maxOwn {
			c.log.say("it wrote a line of " + strconv.FormatInt(f.size, 10) + " bytes, which was dropped")
		}
		return nil
	}
	var m jsonrpc.Message
	err := errAnswer
	if !f.isHuge {
		m, err = jsonrpc.DecodeMessage(f.line)
	}
	if err != nil {
		if f.id.IsValid() {
			return c.failed(f.id, errAnswer)
		}
		c.log.quote("it wrote what is no message", string(f.line))
		return nil
	}
	return c.receive(m)
}

// Read gives the next message.
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.heard:
		return m, nil
	case <-c.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message. What ctx ends before its first byte isn't sent; what it ends later
// breaks the connection, since the server would take the rest for another message.
func (c *stdioConn) Write(ctx context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	var x *exchange
	switch m := m.(type) {
	case *jsonrpc.Request:
		if m.IsCall() {
			x = c.begin(ctx, m)
		}
	case *jsonrpc.Response:
		c.answered()
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return io.ErrClosedPipe
	}
	defer func() { <-c.turn }()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	until, ok := ctx.Deadline()
	if !ok {
		until = time.Now().Add(writeTimeout)
	}
	_ = c.out.SetWriteDeadline(until)
	defer context.AfterFunc(ctx, func() { _ = c.out.SetWriteDeadline(time.Unix(1, 0)) })()
	n, err := c.out.Write(append(text, '\n'))
	if x != nil && n > 0 {
		x.sent.Store(true)
	}
	if err != nil && (n > 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
		c.Close()
	}
	return err
}

// Close ends the connection and the process.
func (c *stdioConn) Close() error {
	c.close.Do(func() {
		close(c.done)
		c.out.Close()
		c.end()
	})
	return nil
}

// SessionID is empty: a process is a session.
func (*stdioConn) SessionID() string { return "" }

func (c *stdioConn) ended() <-chan struct{} { return c.done }
