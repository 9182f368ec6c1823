//go:build unix

package proc

import (
	"os"
	"syscall"

	"github.com/mcp-pif/mcp-pif/plugins/internal/keeper"
)

// A streamEnds is the two ends of the session's streams: the plugin's and the command's.
type streamEnds struct {
	input        *os.File    // the plugin's, or nil
	tty          *os.File    // the plugin's side of the terminal, or nil
	outputs      [2]*os.File // the plugin's; of a terminal there is one
	theirs       [3]*os.File // standard input, output and errors
	closeTheirs  []*os.File
	closeOnError []*os.File
}

// pipes makes three pipes.
func (e *streamEnds) pipes() error {
	for i := range e.theirs {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		e.closeOnError = append(e.closeOnError, r, w)
		if i == 0 {
			e.theirs[0], e.input = r, w
			e.closeTheirs = append(e.closeTheirs, r)
			continue
		}
		e.theirs[i], e.outputs[i-1] = w, r
		e.closeTheirs = append(e.closeTheirs, w)
	}
	return nil
}

// begin starts the keeper, and gives the first of its words when it comes.
func (s *session) begin() (first <-chan keeper.News, err error) {
	var e streamEnds
	defer func() {
		if err != nil {
			for _, f := range e.closeOnError {
				f.Close()
			}
		}
	}()
	if s.most.PTY {
		err = e.terminal()
	} else {
		err = e.pipes()
	}
	if err != nil {
		return nil, err
	}
	k, err := keeper.Start(s.most, e.theirs, s.heard)
	if err != nil {
		return nil, err
	}
	for _, f := range e.closeTheirs {
		f.Close()
	}
	s.kept, s.input, s.tty = k, e.input, e.tty
	gone, read := k.Gone(), make(chan struct{})
	go func() {
		s.collect(e.outputs, gone)
		close(read)
	}()
	go func() {
		<-gone
		<-read
		s.conclude()
	}()
	return k.First(), nil
}

// signals is those that may be sent, by the names that programs use.
var signals = map[string]syscall.Signal{
	"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "WINCH": syscall.SIGWINCH,
}
