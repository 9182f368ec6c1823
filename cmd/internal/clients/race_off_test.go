//go:build !race

package clients

// racing reports whether the race detector is on.
const racing = false
