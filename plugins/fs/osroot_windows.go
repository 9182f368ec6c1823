package fs

import (
	"os"
	"syscall"
)

const (
	withoutWaiting = 0
	// countsByHandle is set where only an open file tells how many names it has.
	countsByHandle = true
)

func ownership(_ os.FileInfo, f *os.File) (links uint64, uid, gid int) {
	var d syscall.ByHandleFileInformation
	if f == nil || syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &d) != nil {
		return 1, -1, -1
	}
	return uint64(d.NumberOfLinks), -1, -1
}
