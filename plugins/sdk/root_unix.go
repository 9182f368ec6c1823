//go:build unix

package sdk

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// rootOf is the grant's directory, which the host passed as a descriptor; nil
// where it passed none. The plugin's own children don't inherit it.
func rootOf(number string) (*os.File, error) {
	if number == "" {
		return nil, nil
	}
	fd, err := strconv.Atoi(number)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("the host passed the descriptor %q, which is none", number)
	}
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "root")
	if info, err := f.Stat(); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("the host passed the descriptor %d, which is not a directory", fd)
	}
	return f, nil
}
