package sandbox

import "golang.org/x/sys/unix"

// auditArch is what a filter must see; x32 has the same, and numbers beyond the
// newest.
const auditArch = unix.AUDIT_ARCH_X86_64

// The calls that only this architecture has, by the decisions they belong to.
var (
	archForks    = []int{unix.SYS_FORK, unix.SYS_VFORK}
	archMetadata = []int{
		unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
	}
	archEverywhere = []int{
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE,
		unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE, unix.SYS_SYSFS, unix.SYS_USTAT,
	}
)
