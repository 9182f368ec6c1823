//go:build !linux

package journal

// A peek is for systems where it is known how to tell without a query whether
// anything was committed.
type peek struct{}

type header struct{}

func (g *peek) open(string) {}

func (g *peek) header() (header, bool) { return header{}, false }

func (g *peek) close() error { return nil }
