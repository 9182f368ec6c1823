//go:build unix

package fs

import (
	"os"
	"syscall"
)

const (
	// withoutWaiting keeps opening a pipe from waiting for its other end.
	withoutWaiting = syscall.O_NONBLOCK | syscall.O_NOCTTY
	// countsByHandle is set where only an open file tells how many names it has.
	countsByHandle = false
)

func ownership(fi os.FileInfo, _ *os.File) (links uint64, uid, gid int) {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink), int(st.Uid), int(st.Gid)
	}
	return 1, -1, -1
}
