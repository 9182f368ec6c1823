package sandbox

import "golang.org/x/sys/unix"

// auditArch is what a filter must see; 32-bit programs have another.
const auditArch = unix.AUDIT_ARCH_AARCH64

// The calls that only this architecture has, by the decisions they belong to: none.
var archForks, archMetadata, archEverywhere []int
