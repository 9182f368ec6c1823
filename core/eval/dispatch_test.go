package eval

import (
	"bytes"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// TestDispatch: what the loop does between two instructions lies in one line of the
// cache, wherever the linker puts the function. Where it lies in two, loops that call
// take half as long again. Functions begin at multiples of 32 bytes, lines of 64.
func TestDispatch(t *testing.T) {
	if runtime.GOARCH != "amd64" || !strings.HasPrefix(runtime.Version(), "go1.26") {
		t.Skip("the compiler may lay it out otherwise")
	}
	code := unsafe.Slice((*byte)(reflect.ValueOf((*Machine).loop).UnsafePointer()), 128)
	jump := bytes.Index(code, []byte{0xff, 0x24}) // JMP 0(CX)(R9*8), after its prefix
	if jump < 0 {
		t.Skip("instrumented")
	}
	into := bytes.LastIndexByte(code[:jump], 0xeb) // a short jump into the loop, whose top is after it
	if into < 0 {
		t.Skip("instrumented")
	}
	top, end := into+2, jump+3
	if top%32+end-top > 32 {
		t.Errorf("the dispatch is at bytes %d to %d of the loop: move a field that is read first in it, so that it begins at a multiple of 32 or a little after", top, end)
	}
}
