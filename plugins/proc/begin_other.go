//go:build !unix

package proc

import (
	"errors"
	"syscall"
)

// Keeper returns: this system has no sessions.
func Keeper() {}

// begin refuses: there are neither groups of processes here nor a sandbox.
func (s *session) begin() (<-chan news, error) {
	return nil, errors.New("this system has no sessions of processes")
}

// signals is none.
var signals = map[string]syscall.Signal{}
