//go:build linux && !amd64 && !arm64

package sandbox

import (
	"errors"
	"runtime"

	"golang.org/x/net/bpf"
)

// filter says that there is none.
func filter(surrounding) ([]bpf.RawInstruction, error) {
	return nil, errors.New("there is no filter of system calls for " + runtime.GOARCH)
}
