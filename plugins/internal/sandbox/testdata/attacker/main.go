// Command attacker is a hostile plugin. Each argument is an attempt, NAME or
// NAME=ARGUMENT; PPID in an argument is its parent's process. It writes one JSON
// object a line: the attempt and the error it met, "" where it got its way.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	out := json.NewEncoder(os.Stdout)
	for _, arg := range os.Args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		value = strings.ReplaceAll(value, "PPID", strconv.Itoa(os.Getppid()))
		attempt, ok := attempts[name]
		if !ok {
			panic("no attempt " + name)
		}
		text := ""
		if err := attempt(value); err != nil {
			var errno syscall.Errno
			if text = err.Error(); errors.As(err, &errno) {
				text = unix.ErrnoName(errno)
			}
		}
		out.Encode(map[string]string{"attempt": arg, "error": text})
	}
}

// call makes a system call on the spot.
func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func text(s string) uintptr { p, _ := unix.BytePtrFromString(s); return uintptr(unsafe.Pointer(p)) }

func number(s string) int { n, _ := strconv.Atoi(s); return n }

// pid is the process a number in an argument names.
func pid(s string) uintptr { return uintptr(number(s)) }

// socket tries to make one.
func socket(family, kind, protocol int) func(string) error {
	return func(string) error {
		fd, err := unix.Socket(family, kind, protocol)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

// connect tries a unix stream socket.
func connect(name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: name})
}

func inet(port string) *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Port: number(port), Addr: [4]byte{127, 0, 0, 1}}
}

func read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Read(make([]byte, 1))
	if err == io.EOF {
		err = nil
	}
	return err
}

// executeCopy writes itself where it may, and executes that by every descriptor
// that the launcher might have used.
func executeCopy(dir string) error {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		self, err = os.ReadFile(os.Args[0])
	}
	if err != nil {
		return err
	}
	name := dir + "/copy"
	if err := os.WriteFile(name, self, 0o755); err != nil {
		return err
	}
	fd, err := unix.Open(name, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	argv, _ := syscall.SlicePtrFromStrings([]string{"copy"})
	var last error
	for n := 3; n < 64; n++ {
		var st unix.Stat_t
		if unix.Fstat(n, &st) != nil { // what is open is the runtime's
			if err := unix.Dup3(fd, n, 0); err != nil {
				return err
			}
		}
		err := call(unix.SYS_EXECVEAT, uintptr(n), text(""), uintptr(unsafe.Pointer(&argv[0])), 0, unix.AT_EMPTY_PATH)
		if last == nil || err == unix.EACCES {
			last = err // EACCES: the filter let it pass, Landlock didn't
		}
	}
	return last
}

// eat takes memory until it gets no more, or has n bytes; it touches each page.
func eat(flags int, n int) error {
	for taken := 0; taken < n; taken += 16 << 20 {
		m, err := unix.Mmap(-1, 0, 16<<20, unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_ANON)
		if err != nil {
			return err
		}
		for i := 0; i < len(m); i += 4096 {
			m[i] = 1
		}
	}
	return nil
}

// descriptors is an error that names those it has beyond the standard ones.
func descriptors(string) error {
	var open []string
	for fd := 3; fd < 1024; fd++ {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil {
			continue
		}
		target, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if strings.HasPrefix(target, "anon_inode:") || strings.HasPrefix(target, "/sys/") {
			continue // the runtime's own
		}
		open = append(open, strconv.Itoa(fd))
	}
	return errors.New("has " + strings.Join(open, " "))
}

// capabilities is an error that names them.
func capabilities(string) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	bounding := 0
	for c := range 64 {
		if n, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0); err == nil && n == 1 {
			bounding++
		}
	}
	return fmt.Errorf("effective %x%08x permitted %x%08x bounding %d", data[1].Effective, data[0].Effective,
		data[1].Permitted, data[0].Permitted, bounding)
}

// thread is what must work: a thread of its own.
func thread(string) error {
	done := make(chan error)
	go func() { done <- nil }()
	return <-done
}

// listen is what must work: a socket, and somebody who connects and is echoed.
func listen(path string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Println(`{"attempt":"listening","error":""}`)
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = io.Copy(c, c)
	return err
}

// zeros is what a call that needs a structure gets.
var zeros [4096]byte

func memory() uintptr { return uintptr(unsafe.Pointer(&zeros)) }
