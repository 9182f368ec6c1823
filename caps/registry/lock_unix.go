//go:build unix

package registry

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Lock claims a file of tools for this process until release is called or the
// process ends. It fails at once where another process has it, so that two
// never overwrite each other's tools. The claim is on path + ".lock", which
// stays behind, empty.
func Lock(path string) (release func(), err error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s is in use by another mcp-pif", path)
		}
		return nil, fmt.Errorf("claiming %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
