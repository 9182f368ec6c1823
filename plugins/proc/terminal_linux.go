package proc

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// terminal makes a terminal in place of pipes.
func (e *streamEnds) terminal() error {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	ours := os.NewFile(uintptr(fd), "terminal")
	e.closeOnError = append(e.closeOnError, ours)
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 200}); err != nil {
		return err
	}
	theirs, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	e.closeOnError = append(e.closeOnError, theirs)
	if err := silent(theirs); err != nil {
		return err
	}
	e.tty, e.outputs[stdout] = ours, ours
	e.theirs = [3]*os.File{theirs, theirs, theirs}
	e.closeTheirs = []*os.File{theirs}
	return nil
}

// silent has a terminal not repeat what is typed.
func silent(tty *os.File) error {
	raw, err := tty.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		t, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		if err == nil {
			t.Lflag &^= unix.ECHO
			t.Oflag &^= unix.ONLCR
			err = unix.IoctlSetTermios(int(fd), unix.TCSETS, t)
		}
		failed = err
	})
	if err != nil {
		return err
	}
	return failed
}
