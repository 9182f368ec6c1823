//go:build unix

package proc

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// atOnce is how much of an output is read before the other one's turn: more than a
// pipe holds.
const atOnce = 128 << 10

// lookAgain is how often it is looked whether there is a keeper left.
const lookAgain = 250 * time.Millisecond

// collect reads what the session writes, until its end. Both outputs are read until
// neither has more, and added together: whatever was written to one of them before a
// prompt on the other, as interpreters do, is there when the prompt is.
func (s *session) collect(outputs [2]*os.File, gone <-chan struct{}) {
	var fds [2]int
	for i, f := range outputs {
		fds[i] = -1
		if f == nil {
			s.add([2][]byte{}, [2]bool{i == stdout, i == stderr})
			continue
		}
		defer f.Close()
		if raw, err := f.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { fds[i] = int(fd) })
		}
	}
	buffer := [2][]byte{make([]byte, atOnce), make([]byte, atOnce)}
	for fds[stdout] >= 0 || fds[stderr] >= 0 {
		// Asked before it is looked: what it wrote last is there then.
		over, wait := false, lookAgain
		select {
		case <-gone:
			over, wait = true, 0
		default:
		}
		switch ready, err := waiting(fds, wait); {
		case ready || err != nil:
		case over: // somebody holds the other end who isn't ours
			s.add([2][]byte{}, [2]bool{true, true})
			return
		default:
			continue
		}
		var got [2][]byte
		var closed [2]bool
		for more := true; more && max(len(got[stdout]), len(got[stderr])) < atOnce; more, _ = waiting(fds, 0) {
			for _, i := range []int{stderr, stdout} {
				if fds[i] < 0 {
					continue
				}
				at, n := len(got[i]), 0
				if n, closed[i] = drain(fds[i], buffer[i][at:]); closed[i] {
					fds[i] = -1
				}
				got[i] = buffer[i][:at+n]
			}
		}
		s.add(got, closed)
	}
}

// waiting reports whether there is something to read, or an end, and waits for that.
func waiting(fds [2]int, within time.Duration) (bool, error) {
	polled := []unix.PollFd{{Fd: int32(fds[stdout]), Events: unix.POLLIN}, {Fd: int32(fds[stderr]), Events: unix.POLLIN}}
	n, err := unix.Poll(polled, int(within.Milliseconds()))
	return n > 0, err
}

// drain reads what there is, and says whether there never will be more.
func drain(fd int, into []byte) (n int, closed bool) {
	for n < len(into) {
		more, err := unix.Read(fd, into[n:])
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return n, false
		case err != nil || more == 0: // EIO is how a terminal ends
			return n, true
		default:
			n += more
		}
	}
	return n, false
}
