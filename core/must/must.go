// Package must ends a test at an error that it didn't expect, in one line. Only tests
// import it; what a test is about it compares itself, with words.
package must

import "testing"

// NoError ends the test if there is an error.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
