package cli

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
)

// When progress is shown first, and how often then.
const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

// A progress says on a terminal what takes long, and how much of it is done.
type progress struct {
	Done  atomic.Int64
	end   chan struct{}
	ended sync.WaitGroup
}

// StartProgress begins to say so after a second, on standard error if that is a
// terminal. The caller calls stop before it prints anything else.
func StartProgress(cmd *cobra.Command, what string) *progress {
	p := &progress{end: make(chan struct{})}
	out := Underlying(cmd.ErrOrStderr()).(io.Writer)
	if !IsTerminal(out) {
		return p
	}
	started := time.Now()
	p.ended.Go(func() {
		shown := false
		for wait := progressAfter; ; wait = progressEvery {
			select {
			case <-p.end:
				if shown {
					fmt.Fprint(out, "\r"+ansi.EraseEntireLine)
				}
				return
			case <-time.After(wait):
			}
			shown = true
			line := fmt.Sprintf("%s, %s", what, time.Since(started).Round(time.Second))
			if n := p.Done.Load(); n > 0 {
				line = fmt.Sprintf("%s, %d done, %s", what, n, time.Since(started).Round(time.Second))
			}
			fmt.Fprint(out, "\r"+ansi.EraseEntireLine+line)
		}
	})
	return p
}

// Stop ends it and clears its line.
func (p *progress) Stop() {
	select {
	case <-p.end:
	default:
		close(p.end)
	}
	p.ended.Wait()
}
