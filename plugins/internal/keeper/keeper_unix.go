//go:build unix

package keeper

import (
	"encoding/json"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Main is a command's keeper where this process was started as one: it doesn't
// return then. The program that serves the plugin calls it first thing, after the
// sandbox's launcher, which it needs too.
func Main() {
	if len(os.Args) != 2 || os.Args[1] != keeperArgument {
		return
	}
	k := &keeper{out: json.NewEncoder(os.NewFile(fdNews, "news"))}
	k.run()
	os.Exit(0)
}

// lookEvery is how often a keeper counts what it keeps.
const lookEvery = 250 * time.Millisecond

// A keeper keeps one command.
type keeper struct {
	out    *json.Encoder
	family *family
	last   News
}

// tell says something to the plugin. Where that is gone nobody is left to hear it.
func (k *keeper) tell(n News) { _ = k.out.Encode(n) }

// run starts the command, looks after it, and returns when nothing of it is left.
func (k *keeper) run() {
	// Signals for a keeper are nobody's to send. Ignoring them would be inherited.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	told := json.NewDecoder(os.NewFile(fdControl, "control"))
	var first instruction
	if err := told.Decode(&first); err != nil || first.Command == nil {
		return
	}
	var err error
	if k.family, err = launch(first.Command); err != nil {
		k.tell(News{Error: err.Error()})
		return
	}
	k.tell(News{Started: true})
	gone := make(chan struct{})
	go k.obey(told, gone)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-k.family.ended:
			over = true
		case <-gone:
			over = true
		case <-tick.C:
			k.last.Why = k.family.over(first.Command)
			over = k.last.Why != ""
		}
	}
	k.last.Ended = true
	how := k.family.end()
	if k.last.Code = how.ExitStatus(); how.Signaled() {
		k.last.Code, k.last.Signal = 0, unix.SignalName(how.Signal())
	}
	k.tell(k.last)
}

// obey does what the plugin says until it says no more.
func (k *keeper) obey(told *json.Decoder, gone chan<- struct{}) {
	defer close(gone)
	for {
		var i instruction
		if told.Decode(&i) != nil {
			return
		}
		if i.Signal > 0 {
			// There is nobody left, or soon won't be.
			_ = syscall.Kill(-k.family.main, syscall.Signal(i.Signal))
		}
	}
}
