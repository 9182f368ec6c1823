package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// keepable is the capabilities that a plugin with rules about files keeps where
// its host has them: reading and writing what belongs to other users, within the
// rules. Without them a server run by root couldn't serve a user's folder.
const keepable = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH

// dropCapabilities gives up the thread's capabilities but those to keep, now and
// by what it executes.
func dropCapabilities(keep uint64) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	if err := unix.Capget(&header, &now[0]); err != nil {
		return fmt.Errorf("capabilities can't be read: %w", err)
	}
	effective := uint64(now[0].Effective) | uint64(now[1].Effective)<<32
	// What executing can give to root is bounded first. That takes a capability
	// itself: without it, no_new_privs is what keeps executing from giving any.
	if effective&(1<<unix.CAP_SETPCAP) != 0 {
		for c := uintptr(0); c <= 63; c++ {
			if keep&(1<<c) != 0 {
				continue
			}
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
				break // beyond the last that the kernel has
			} else if err != nil {
				return fmt.Errorf("the capability %d can't be given up: %w", c, err)
			}
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && err != unix.EINVAL {
		return fmt.Errorf("ambient capabilities can't be given up: %w", err)
	}
	stay := effective & keep
	var next [2]unix.CapUserData
	for i := range next {
		half := uint32(stay >> (32 * i))
		next[i] = unix.CapUserData{Effective: half, Permitted: half}
	}
	if err := unix.Capset(&header, &next[0]); err != nil {
		return fmt.Errorf("capabilities can't be given up: %w", err)
	}
	return nil
}

// A resourceLimit is one that is set as the most and as what holds.
type resourceLimit struct {
	name     string
	resource int
	value    unix.Rlimit
}

// limitsOf is the limits to set: never above what the process has already. Those
// of memory are apart: they are set last, when the launcher needs none itself.
func limitsOf(o *order) (memory, others []resourceLimit, err error) {
	for _, l := range []struct {
		name     string
		resource int
		most     uint64
		into     *[]resourceLimit
	}{
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0, &others},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, o.Files, &others},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, o.FileSize, &others},
		{"RLIMIT_NPROC", unix.RLIMIT_NPROC, o.Processes, &others},
		{"RLIMIT_DATA", unix.RLIMIT_DATA, o.Memory, &memory},
		{"RLIMIT_AS", unix.RLIMIT_AS, o.AddressSpace, &memory},
	} {
		if l.most == unlimited {
			continue
		}
		var now unix.Rlimit
		if err := unix.Prlimit(0, l.resource, nil, &now); err != nil {
			return nil, nil, fmt.Errorf("%s can't be read: %w", l.name, err)
		}
		most := min(l.most, now.Max)
		*l.into = append(*l.into, resourceLimit{l.name, l.resource, unix.Rlimit{Cur: most, Max: most}})
	}
	return memory, others, nil
}

// setLimits sets limits.
func setLimits(limits []resourceLimit) error {
	for _, l := range limits {
		if err := unix.Prlimit(0, l.resource, &l.value, nil); err != nil {
			return fmt.Errorf("%s can't be set to %d: %w", l.name, l.value.Max, err)
		}
	}
	return nil
}

// firstToEnd makes the plugin what the system ends first when memory is short.
// Where that can't be said the limits hold all the same.
func firstToEnd() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0)
}
