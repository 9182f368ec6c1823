//go:build unix

package proc

import (
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
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
func (s *session) begin() (first <-chan news, err error) {
	var e streamEnds
	opened := []*os.File{}
	defer func() {
		if err != nil {
			for _, f := range append(opened, e.closeOnError...) {
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
	control, controlEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	opened = append(opened, control, controlEnd)
	told, newsEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	opened = append(opened, told, newsEnd)
	program, err := program()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, keeperArgument)
	cmd.Args[0] = os.Args[0]
	// One processor is enough to look after others.
	cmd.Env = []string{"GOMAXPROCS=1"}
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{control, newsEnd, e.theirs[0], e.theirs[1], e.theirs[2]}
	// It is in no group that the host kills: it outlives the plugin by as long as
	// it takes to end what it keeps.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := startKeeper(cmd); err != nil {
		return nil, err
	}
	control.Close()
	newsEnd.Close()
	for _, f := range e.closeTheirs {
		f.Close()
	}
	s.control, s.keeper, s.input, s.tty = controlEnd, json.NewEncoder(controlEnd), e.input, e.tty
	s.instruct(instruction{Command: s.most})

	started := make(chan news, 1)
	gone, read := make(chan struct{}), make(chan struct{})
	go func() {
		s.hear(told, started)
		_ = cmd.Wait() // how it ended is in what it told
		endKeeper(cmd.Process.Pid, s.orderly())
		close(gone)
	}()
	go func() {
		s.collect(e.outputs, gone)
		close(read)
	}()
	go func() {
		<-gone
		<-read
		s.conclude()
	}()
	return started, nil
}

// signals is those that may be sent, by the names that programs use.
var signals = map[string]syscall.Signal{
	"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "WINCH": syscall.SIGWINCH,
}
