package sandbox

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newestLandlock is the newest version whose rights are known here. A newer
// kernel is asked for these.
const newestLandlock = 9

// leastFiles is the version from which files are held: before it, any file that
// the user may write can be truncated by its path.
const leastFiles = 3

// The rights of files, by who asks for them.
const (
	rightsOfFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	readRights  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REFER
	terminalRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	executeRights  = readRights | unix.LANDLOCK_ACCESS_FS_EXECUTE
	// go-plugin makes a file with a free name, removes it and makes the socket.
	socketRights = unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
)

// rights is Landlock's for an access.
func (a Access) rights() (r uint64) {
	for _, one := range []struct {
		access Access
		rights uint64
	}{{Read, readRights}, {Write, writeRights}, {Execute, executeRights}, {Sockets, socketRights}, {Terminals, terminalRights}} {
		if a&one.access != 0 {
			r |= one.rights
		}
	}
	return r
}

// ruleset and the rules are what Landlock reads (linux/landlock.h).
type (
	ruleset struct{ files, network, scoped uint64 }
	// beneath is packed: the kernel reads twelve bytes.
	beneath struct {
		rights uint64
		parent int32
	}
	port struct{ rights, port uint64 }
)

const (
	ruleOfPath = 1
	ruleOfPort = 2
)

// landlockVersion asks the kernel for the version it has; 0 with the reason.
func landlockVersion() (int, string) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch errno {
	case 0:
		return int(v), ""
	case unix.ENOSYS:
		return 0, "this kernel has no Landlock (Linux 5.13 and later, where it is built in)"
	case unix.EOPNOTSUPP:
		return 0, "Landlock is built into this kernel and not enabled when it boots (lsm=landlock,…)"
	}
	return 0, "Landlock doesn't say its version: " + errno.Error()
}

// handled is all that a version can hold, and this package asks for: each right
// is either in a rule or refused.
func handled(version int, o *order) ruleset {
	set := ruleset{files: unix.LANDLOCK_ACCESS_FS_REFER - 1} // the rights of version 1
	if version >= 2 {
		set.files |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		set.files |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 4 {
		set.network = unix.LANDLOCK_ACCESS_NET_BIND_TCP
		if o.Network == Listening || len(o.Ports) > 0 {
			set.network |= unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
	}
	if version >= 5 {
		set.files |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		set.scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if version >= newestLandlock {
		set.files |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	return set
}

// domain confines the calling thread, and what it executes, for good.
func domain(version int, o *order) error {
	set := handled(version, o)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&set)), unsafe.Sizeof(set), 0)
	if errno != 0 {
		return fmt.Errorf("a Landlock ruleset can't be made: %w", errno)
	}
	defer unix.Close(int(fd))
	for _, r := range o.Rules {
		if err := addPath(int(fd), r, set.files); err != nil {
			return err
		}
	}
	if set.network != 0 && o.Network != Listening {
		// Listening without binding takes a free port, so binding to one may as
		// well be allowed: Go finds out by it whether there is IPv6.
		if err := addPort(int(fd), 0, unix.LANDLOCK_ACCESS_NET_BIND_TCP); err != nil {
			return err
		}
		for _, p := range o.Ports {
			if err := addPort(int(fd), p, unix.LANDLOCK_ACCESS_NET_CONNECT_TCP); err != nil {
				return err
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("the Landlock domain can't be entered: %w", errno)
	}
	return nil
}

// addPath adds a rule for an open file or folder. A file has only the rights of
// files. A program that is memory has no place in the tree of files: Landlock
// neither refuses it nor takes a rule for it.
func addPath(set int, r orderRule, handled uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(r.FD, &st); err != nil {
		return fmt.Errorf("the file of a rule can't be looked at: %w", err)
	}
	rule := beneath{rights: r.Access.rights() & handled, parent: int32(r.FD)}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rule.rights &= rightsOfFiles
	}
	if rule.rights == 0 {
		return nil
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), ruleOfPath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno == unix.EBADFD && r.Access == Execute {
		return nil
	}
	if errno != 0 {
		return fmt.Errorf("a rule isn't taken by Landlock: %w", errno)
	}
	return nil
}

// addPort adds a rule for a TCP port.
func addPort(set int, number uint16, rights uint64) error {
	rule := port{rights: rights, port: uint64(number)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), ruleOfPort, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("the rule for port %d isn't taken by Landlock: %w", number, errno)
	}
	return nil
}

// held is what a domain and a filter together hold: the layers that depend on
// the version and on what else there is. Each reason is "" where the thing is on.
type held struct {
	version           int
	landlock, seccomp string
	order             *order
}

// files says why files aren't held.
func (h held) files() string {
	if h.landlock == "" && h.version < leastFiles {
		return fmt.Sprintf("Landlock %d can't keep files from being truncated; 3 (Linux 6.2) can", h.version)
	}
	return h.landlock
}

// signals says why signals aren't.
func (h held) signals() string {
	switch {
	case h.landlock == "" && h.version >= 6:
		return ""
	case h.order.Fork && h.landlock == "":
		return fmt.Sprintf("Landlock %d can't hold signals; 6 (Linux 6.12) can", h.version)
	case h.order.Fork:
		return h.landlock
	}
	return h.seccomp // the filter knows the plugin's process
}

// sockets says why unix sockets aren't.
func (h held) sockets() string {
	switch {
	case h.order.Network != Outgoing:
		return h.seccomp // connecting is refused, or making one
	case h.landlock != "":
		return h.landlock
	case h.version >= newestLandlock:
		return ""
	case h.version >= 6:
		return fmt.Sprintf("Landlock %d holds abstract sockets and not those with a path; 9 does", h.version)
	}
	return fmt.Sprintf("Landlock %d holds no unix sockets; 9 does", h.version)
}

// ports says why ports aren't.
func (h held) ports() string {
	switch {
	case h.landlock != "":
		return h.landlock
	case h.version < 4:
		return fmt.Sprintf("Landlock %d can't hold ports; 4 (Linux 6.7) can", h.version)
	}
	return h.seccomp // other protocols reach the same ports
}

// processes says why what it starts isn't ended at once.
func (h held) processes() string {
	switch {
	case os.Getenv(keeperAtOnce) != "":
		return ""
	case h.landlock == "" && h.version < 6:
		return fmt.Sprintf("Landlock %d can't hold signals, so what it starts is ended one by one, which it may outrun, and its keeper may be killed; 6 (Linux 6.12) can", h.version)
	case h.landlock == "":
		return "what it starts is ended one by one, which it may outrun"
	}
	return "what it starts is ended one by one, which it may outrun: " + h.landlock
}

// errNoOrder is a launcher that nobody launched.
var errNoOrder = errors.New("this is the launcher of plugins: only mcp-pif starts it")
