//go:build unix

package stdio

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// surviveSIGPIPE makes a write to a closed pipe on descriptor 1 or 2 fail with
// EPIPE; without it the runtime would end the process by the signal, and with
// it what the server still has to put away. Stderr counts too: a client that
// dies closes both, and the farewell to the log must not be what kills us.
//
// Notify, not Ignore: an ignored signal is inherited by child processes.
var surviveSIGPIPE = sync.OnceFunc(func() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
})
