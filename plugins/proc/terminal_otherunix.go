//go:build unix && !linux

package proc

import "errors"

// terminal makes none.
func (e *streamEnds) terminal() error {
	return errors.New("there are no terminals for plugins on this system")
}
