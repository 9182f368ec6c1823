//go:build !unix

package keeper

import (
	"errors"
	"os"
	"syscall"

	"github.com/mcp-pif/mcp-pif/caps"
)

// Main returns: this system has no keepers.
func Main() {}

// A Kept command is one that a keeper runs, or ran.
type Kept struct{}

// Start refuses: there are neither groups of processes here nor a sandbox.
func Start(*caps.Command, [3]*os.File, func(News)) (*Kept, error) {
	return nil, errors.New("this system can't keep the processes that a plugin starts")
}

// First gives nothing.
func (*Kept) First() <-chan News { return nil }

// Gone is never closed.
func (*Kept) Gone() <-chan struct{} { return nil }

// Signal does nothing.
func (*Kept) Signal(syscall.Signal) {}

// End does nothing.
func (*Kept) End() {}
