package host

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// prepare gives a process a group of its own. That it ends when the host does is
// left to the plugin, which hears of the connection's end (see package sdk).
func prepare(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags = syscall.CREATE_NEW_PROCESS_GROUP
}

// execute does nothing: only paths can be executed here.
func execute(*exec.Cmd, *os.File) (done func(), err error) { return func() {}, nil }

// sealDescriptors does nothing: handles are inherited by name only.
func sealDescriptors() {}

// beforeReaping is set where awaitExit leaves the process its number.
const beforeReaping = false

// awaitExit returns at once: waiting reaps nothing that killing needs.
func awaitExit(int) {}

// killGroup kills the process; its children are not reached here.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// unread can't be told here.
func unread(*os.File) bool { return false }

// pass has a process inherit handles of files.
func pass(cmd *exec.Cmd, files []*os.File) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	for _, f := range files {
		handle := syscall.Handle(f.Fd())
		if err := syscall.SetHandleInformation(handle, syscall.HANDLE_FLAG_INHERIT, syscall.HANDLE_FLAG_INHERIT); err != nil {
			return err
		}
		cmd.SysProcAttr.AdditionalInheritedHandles = append(cmd.SysProcAttr.AdditionalInheritedHandles, handle)
	}
	return nil
}

// numberOf is what the process knows one of the files by.
func numberOf(_ []*os.File, f *os.File) string { return strconv.FormatUint(uint64(f.Fd()), 10) }

// systemEnvironment is what processes need on this system.
func systemEnvironment(work string) []string {
	return []string{"SYSTEMROOT=" + os.Getenv("SYSTEMROOT"), "TMP=" + work, "TEMP=" + work}
}

// checkAddress refuses all but loopback: go-plugin has no unix sockets here.
func checkAddress(network, address, _ string) error {
	if at, err := netip.ParseAddrPort(address); network != "tcp" || err != nil || !at.Addr().IsLoopback() {
		return errors.New("the plugin doesn't listen on loopback")
	}
	return nil
}

// checkPeer leaves it at the check of the address and at mutual TLS.
func checkPeer(net.Conn, int) error { return nil }

// sweeps isn't set: there is no lock here that tells whether a process lives.
const sweeps = false

// ownedByUs says that no file is.
func ownedByUs(os.FileInfo) bool { return false }
