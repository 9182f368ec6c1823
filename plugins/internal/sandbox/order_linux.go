package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// The launcher's descriptors: what to do, where to report, what to execute; then
// the plugin's own, then those of the rules.
const (
	fdOrder = 3 + iota
	fdReport
	fdExecutable
	fdFirst
)

// unlimited stands for a limit that isn't set.
const unlimited = math.MaxUint64

// An order is a spec as the launcher gets it: files are descriptors.
type order struct {
	Args, Env []string
	Extra     int // descriptors of the plugin's own
	Rules     []orderRule
	Network   Network
	Ports     []uint16
	Fork      bool
	Writes    bool
	Terminals bool
	Kept      bool // a keeper starts the launcher
	Isolated  bool // it is in a network of its own
	Mode      Mode
	// Keep is the capabilities that the plugin keeps where it has them.
	Keep uint64

	Memory, Files, FileSize, Processes, AddressSpace uint64

	// Deathsig is the signal for when the host dies, 0 for none; Parent is the
	// host, 0 where it can't be seen.
	Deathsig, Parent int

	// Where the launcher moved its descriptors to.
	exe, report int
}

// An orderRule is a [Rule] on a descriptor.
type orderRule struct {
	FD     int
	Access Access
}

// file is the order in memory that nobody can name, to be read from its start. In
// a sandbox, where there is no such memory, it is a pipe.
func (o *order) file() (*os.File, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err == unix.EPERM {
		return piped(text)
	}
	if err != nil {
		return nil, fmt.Errorf("the launcher's order can't be written: %w", err)
	}
	f := os.NewFile(uintptr(fd), "order")
	if _, err := f.WriteAt(text, 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("the launcher's order can't be written: %w", err)
	}
	return f, nil
}

// piped is a pipe that a text is written to, as it is read.
func piped(text []byte) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("the launcher's order can't be written: %w", err)
	}
	go func() {
		// A launcher that doesn't read to the end says so itself.
		_, _ = write.Write(text)
		write.Close()
	}()
	return read, nil
}

// readOrder is the launcher's side.
func readOrder() (*order, error) {
	f := os.NewFile(fdOrder, "order")
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, errNoOrder
	}
	f.Close()
	o := &order{}
	if err := json.Unmarshal(text, o); err != nil {
		return nil, errNoOrder
	}
	return o, nil
}

// A message is what the launcher says. The first has the report; a second comes
// only where the plugin isn't executed, and the end of the pipe where it is.
type message struct {
	Report *Report `json:",omitempty"`
	PID    int     `json:",omitempty"` // whose report it is
	Error  string  `json:",omitempty"`
}
