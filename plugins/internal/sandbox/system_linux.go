package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System says which layers this system could hold a plugin with that listens
// only, without starting anything. It is for an operator to read; what holds a
// plugin is in the report of its start.
func System() Report {
	version, landlock := landlockVersion()
	seccomp := reason(canFilter())
	h := held{version: version, landlock: landlock, seccomp: seccomp, order: &order{}}
	byLandlock := fmt.Sprintf("Landlock %d", version)
	r := Report{Mode: Require, Landlock: version}
	r.add(LayerDescriptors, "closed, all but the listed ones", "")
	r.add(LayerLimits, "set, and can't be raised", "")
	r.add(LayerCapabilities, "given up", "")
	r.add(LayerNoNewPrivs, "set", "")
	r.add(LayerFiles, byLandlock, h.files())
	r.add(LayerNetwork, networkDetail(h.order), seccomp)
	r.add(LayerSyscalls, "filtered for "+runtime.GOARCH, seccomp)
	r.add(LayerSignals, "only to itself", h.signals())
	r.add(LayerSockets, "only its own", h.sockets())
	return r
}

// canFilter asks whether the kernel knows the action that the filters use.
func canFilter() error {
	if _, err := filter(surrounding{pid: os.Getpid()}); err != nil {
		return err
	}
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return fmt.Errorf("this kernel doesn't filter system calls (CONFIG_SECCOMP_FILTER): %w", errno)
	}
	return nil
}
