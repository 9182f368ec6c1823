//go:build !linux

package caps

// madeUp is the directories that hold the system's view of itself; elsewhere than
// on Linux no list is complete.
var madeUp []string
