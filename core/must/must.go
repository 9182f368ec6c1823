// Package must ends a test at an error that it didn't expect, in one line. Only tests
// import it; what a test is about it compares itself, with words.
package must

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// NoError ends the test if there is an error.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NoFault is [NoError] of what packages of core return.
func NoFault(t testing.TB, f *fault.Fault) {
	t.Helper()
	if f != nil {
		t.Fatal(f)
	}
}
