package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// killAt is the memory at which a server is killed, lest the machine suffers.
const killAt = 2 << 30

// A server is one that is attacked.
type server struct {
	dir, url string
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      io.ReadCloser
	log      *lines

	mu      sync.Mutex
	figures figures
	ended   chan struct{}
	once    sync.Once
}

// lines keeps the log's first lines, and counts all.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text.Len() < 1<<20 {
		l.text.Write(p)
	}
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// token is that of a principal.
func token(name string) string { return strings.Repeat(name+"-", 24/len(name)+1) }

// principals is how many there are besides eve, who does no harm.
const principals = 64

// start starts a server in a folder, over HTTP unless it is to speak on standard input and output.
func start(ctx context.Context, binary, dir string, web, tokens bool, flags ...string) (*server, error) {
	s := &server{dir: dir, log: new(lines), ended: make(chan struct{}), figures: figures{wait: -1, late: -1}}
	for _, d := range []string{"state", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	flags = append([]string{"serve"}, flags...)
	if web {
		flags = append(flags, "--http", "127.0.0.1:0")
	}
	if tokens {
		text := "eve " + token("eve") + "\n"
		for i := range principals {
			text += fmt.Sprintf("p%d %s\n", i, token(fmt.Sprint("p", i)))
		}
		file := filepath.Join(dir, "tokens")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
		flags = append(flags, "--http-tokens", file)
	}
	s.cmd = exec.CommandContext(ctx, binary, flags...)
	s.cmd.Dir = dir
	s.cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "TMPDIR="+filepath.Join(dir, "tmp"))
	errs, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	said := make(chan string, 1)
	go func() {
		in := bufio.NewReader(io.TeeReader(errs, s.log))
		for {
			line, err := in.ReadString('\n')
			if m := regexp.MustCompile(`serves MCP at (\S+)`).FindStringSubmatch(line); m != nil {
				said <- m[1]
			}
			if err != nil {
				close(said)
				return
			}
		}
	}()
	go s.sample()
	if !web {
		return s, nil
	}
	select {
	case url, ok := <-said:
		if !ok {
			s.kill()
			return nil, fmt.Errorf("the server didn't start: %.300s", s.log)
		}
		s.url = url
	case <-time.After(20 * time.Second):
		s.kill()
		return nil, errors.New("the server didn't start in 20 s")
	}
	return s, nil
}

// kill ends the server at once, and waits for that.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	s.wait()
}

// wait waits until it has ended. Of two at once the second waits for the first.
func (s *server) wait() {
	s.once.Do(func() {
		_ = s.cmd.Wait()
		close(s.ended)
	})
}

// stop ends it as an operator would, within some seconds.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	timer := time.AfterFunc(15*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	s.in.Close()
	s.wait()
}

// sample notes the most memory of the server and its children until it ends.
func (s *server) sample() {
	for {
		select {
		case <-s.ended:
			return
		case <-time.After(25 * time.Millisecond):
		}
		bytes := resident(s.cmd.Process.Pid)
		s.mu.Lock()
		s.figures.memory = max(s.figures.memory, bytes)
		if bytes > killAt {
			s.figures.killed = true
			_ = s.cmd.Process.Kill()
		}
		s.mu.Unlock()
	}
}

// note changes the figures.
func (s *server) note(change func(*figures)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.figures)
}

func (s *server) say(format string, args ...any) {
	s.note(func(f *figures) { f.besides = append(f.besides, fmt.Sprintf(format, args...)) })
}

// resident is the memory of a process and its descendants; a page that several have, as of the program, counts for each in part.
func resident(pid int) (total int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	if _, pss, ok := strings.Cut(string(text), "\nPss:"); ok {
		_, _ = fmt.Sscan(pss, &total)
		total <<= 10
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		for _, child := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				total += resident(n)
			}
		}
	}
	return total
}

// size is that of all files in a folder.
func size(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}
