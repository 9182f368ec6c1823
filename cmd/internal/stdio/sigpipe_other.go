//go:build !unix

package stdio

// surviveSIGPIPE does nothing where there is no such signal.
func surviveSIGPIPE() {}
