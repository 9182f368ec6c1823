//go:build unix

package host

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// killGroup kills a process that was not reaped yet, and all of its group.
func killGroup(cmd *exec.Cmd) {
	// The error is that there is nobody left.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}

// unread reports whether a pipe has something to read, or its end.
func unread(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	err = raw.Control(func(fd uintptr) {
		n, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	})
	return err == nil && n > 0
}

// pass has a process inherit files as descriptors from 3 on.
func pass(cmd *exec.Cmd, files []*os.File) error {
	cmd.ExtraFiles = files
	return nil
}

// numberOf is what the process knows one of the files by.
func numberOf(files []*os.File, f *os.File) string {
	return strconv.Itoa(3 + slices.Index(files, f))
}

// systemEnvironment is what processes need on this system: nothing.
func systemEnvironment(string) []string { return nil }

// checkAddress refuses all but a socket right within the folder for it.
func checkAddress(network, address, sockets string) error {
	if network != "unix" {
		return errors.New("the plugin doesn't listen at a unix socket")
	}
	if address != filepath.Clean(address) || filepath.Dir(address) != filepath.Clean(sockets) {
		return errors.New("the plugin listens outside its folder")
	}
	if info, err := os.Lstat(address); err != nil || info.Mode().Type() != os.ModeSocket {
		return errors.New("the plugin listens at what is not a socket")
	}
	return nil
}

// sweeps is set where a lock tells whether a process lives.
const sweeps = true

// ownedByUs reports whether a file is this user's.
func ownedByUs(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
