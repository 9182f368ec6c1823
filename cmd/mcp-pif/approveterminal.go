package main

import (
	"errors"
	"io"
	"os"
	"runtime"

	"golang.org/x/term"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// A controlling is the terminal that controls this process.
type controlling struct {
	in, out *os.File
	shown   cli.TerminalWriter // over out
}

func (c *controlling) Read(b []byte) (int, error)  { return c.in.Read(b) }
func (c *controlling) Write(b []byte) (int, error) { return c.shown.Write(b) }

// Close closes it.
func (c *controlling) Close() error {
	err := c.in.Close()
	if c.out != c.in {
		err = errors.Join(err, c.out.Close())
	}
	return err
}

// errNoTerminal is that nobody sits here.
var errNoTerminal = errors.New("an approval is typed by a person, at a terminal: run 'mcp-pif approve' in one, with nothing piped into it")

// openTerminal opens the terminal that controls this process, which a process that
// a server or a model's client started has not. What is piped in is no person
// either, so that standard input must be a terminal, too.
func openTerminal(stdin io.Reader) (*controlling, error) {
	if !cli.IsTerminal(stdin) {
		return nil, errNoTerminal
	}
	if runtime.GOOS == "windows" {
		in, err := os.OpenFile("CONIN$", os.O_RDWR, 0)
		if err != nil {
			return nil, errNoTerminal
		}
		out, err := os.OpenFile("CONOUT$", os.O_RDWR, 0)
		if err != nil {
			in.Close()
			return nil, errNoTerminal
		}
		return isTerminal(&controlling{in: in, out: out})
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errNoTerminal
	}
	return isTerminal(&controlling{in: tty, out: tty})
}

func isTerminal(c *controlling) (*controlling, error) {
	if !term.IsTerminal(int(c.in.Fd())) || !term.IsTerminal(int(c.out.Fd())) {
		c.Close()
		return nil, errNoTerminal
	}
	c.shown.Out = c.out
	return c, nil
}
