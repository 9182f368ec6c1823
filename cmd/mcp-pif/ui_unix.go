//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// ignoreBackgroundReads has a read of the terminal fail while the process is in the background: it would be stopped.
func ignoreBackgroundReads() { signal.Ignore(syscall.SIGTTIN) }
