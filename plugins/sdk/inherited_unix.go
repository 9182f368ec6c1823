//go:build unix

package sdk

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// inherited is a file that the host passed as a descriptor. The plugin's own
// children don't inherit it.
func inherited(number, name string) (*os.File, error) {
	fd, err := strconv.Atoi(number)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("the host passed the descriptor %q, which is none", number)
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), name), nil
}
