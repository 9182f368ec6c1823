//go:build !unix

package proc

import (
	"errors"
	"runtime"
	"syscall"

	"github.com/mcp-pif/mcp-pif/plugins/internal/keeper"
)

// begin refuses: there are neither groups of processes here nor a sandbox.
func (s *session) begin() (<-chan keeper.News, error) {
	return nil, errors.New("there are no sessions of processes on " + runtime.GOOS)
}

// signals is none.
var signals = map[string]syscall.Signal{}
