//go:build unix

package keeper

import (
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/mcp-pif/mcp-pif/caps"
)

// A Kept command is one that a keeper runs, or ran. It is safe for concurrent use.
type Kept struct {
	control *os.File
	mu      sync.Mutex // one instruction after the other
	out     *json.Encoder
	first   chan News
	gone    chan struct{}
}

// Start starts a keeper, which starts a command with these standard streams; the
// caller closes them. heard, which may be nil, is told how the command ended before
// [Kept.Gone] is closed, unless the keeper itself was killed.
func Start(c *caps.Command, streams [3]*os.File, heard func(News)) (_ *Kept, err error) {
	var opened []*os.File
	defer func() {
		if err != nil {
			for _, f := range opened {
				f.Close()
			}
		}
	}()
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
	cmd.ExtraFiles = []*os.File{control, newsEnd, streams[0], streams[1], streams[2]}
	// It is in no group that the host kills: it outlives the plugin by as long as
	// it takes to end what it keeps.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := startKeeper(cmd); err != nil {
		return nil, err
	}
	control.Close()
	newsEnd.Close()
	k := &Kept{control: controlEnd, out: json.NewEncoder(controlEnd), first: make(chan News, 1), gone: make(chan struct{})}
	k.instruct(instruction{Command: c})
	go func() {
		last := k.hear(told)
		if last.Ended && heard != nil {
			heard(last)
		}
		_ = cmd.Wait() // how it ended is in what it told
		endKeeper(cmd.Process.Pid, last.Ended)
		close(k.gone)
	}()
	return k, nil
}

// hear listens to the keeper until it has gone, and gives the last of its words.
func (k *Kept) hear(from *os.File) (last News) {
	told := json.NewDecoder(from)
	defer from.Close()
	for first := true; ; first = false {
		var n News
		if told.Decode(&n) != nil {
			if first {
				k.first <- News{Error: "the keeper ended"}
			}
			return last
		}
		if last = n; first {
			k.first <- n
		}
	}
}

// instruct tells the keeper something. One that has gone hears nothing.
func (k *Kept) instruct(i instruction) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.out.Encode(i)
}

// First gives the first of the keeper's words when it comes.
func (k *Kept) First() <-chan News { return k.first }

// Gone is closed when nothing of the command is left.
func (k *Kept) Gone() <-chan struct{} { return k.gone }

// Signal sends a signal to the command's process group.
func (k *Kept) Signal(s syscall.Signal) { k.instruct(instruction{Signal: int(s)}) }

// End has the keeper end the command with all that it started, and doesn't wait for
// it.
func (k *Kept) End() { k.control.Close() }
