package sdk

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// inherited is a file that the host passed as a handle. The plugin's own children
// don't inherit it.
func inherited(number, name string) (*os.File, error) {
	handle, err := strconv.ParseUint(number, 10, 64)
	if err != nil || handle == 0 {
		return nil, fmt.Errorf("the host passed the handle %q, which is none", number)
	}
	if err := syscall.SetHandleInformation(syscall.Handle(handle), syscall.HANDLE_FLAG_INHERIT, 0); err != nil {
		return nil, fmt.Errorf("the host passed the handle %d, which is none", handle)
	}
	return os.NewFile(uintptr(handle), name), nil
}
