//go:build unix

// Package pgtest starts PostgreSQL servers for tests: on a unix socket in a temporary
// folder, by an unprivileged user where the test is root's, with fsync on.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// A Server is one that runs, or was stopped.
type Server struct {
	t       testing.TB
	bin     string
	dir     string // with data and socket
	cred    *syscall.Credential
	options []string

	process *exec.Cmd
	life    io.Closer
}

// Start makes a server and starts it. Where PostgreSQL isn't installed the test is skipped,
// or fails if PIF_REQUIRE_POSTGRES is set.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	s := prepare(t, options)
	s.fill()
	s.Start()
	return s
}

// fresh is the archive of a data folder that no server has used: initdb takes half a second of a
// processor, reading this back a tenth.
var fresh struct {
	sync.Mutex
	tar []byte
}

// fill makes the data folder, by initdb for the first server of a process.
func (s *Server) fill() {
	s.t.Helper()
	fresh.Lock()
	defer fresh.Unlock()
	if fresh.tar != nil {
		c := s.command("tar", "-xf", "-")
		c.Stdin = bytes.NewReader(fresh.tar)
		if out, err := c.CombinedOutput(); err != nil {
			s.t.Fatalf("tar: %v\n%s", err, out)
		}
		return
	}
	s.run("initdb", "-D", s.data(), "-U", "pif", "-A", "trust", "--no-locale", "-E", "UTF8", "-N")
	archive, err := s.command("tar", "-cf", "-", filepath.Base(s.data())).Output()
	must.NoError(s.t, err)
	fresh.tar = archive
}

// Standby makes a server that follows s and starts it; it is synchronous from then on.
func (s *Server) Standby() *Server {
	s.t.Helper()
	b := prepare(s.t, append(slices.Clone(s.options), "cluster_name=standby"))
	b.run("pg_basebackup", "-D", b.data(), "-R", "-X", "stream", "-c", "fast", "-d", "user=pif host="+s.dir)
	b.Start()
	s.Exec("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
	s.Exec("SELECT pg_reload_conf()")
	wait.Until(s.t, "a synchronous standby", func() bool {
		return s.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
	})
	return b
}

func prepare(t testing.TB, options []string) *Server {
	t.Helper()
	s := &Server{t: t, options: options, bin: find()}
	if s.bin == "" {
		if os.Getenv("PIF_REQUIRE_POSTGRES") != "" {
			t.Fatal("PostgreSQL isn't installed, and is required")
		}
		t.Skip("PostgreSQL isn't installed (Debian: apt-get install postgresql): the order in it isn't tested")
	}
	parent := ""
	if os.Getuid() == 0 {
		parent = "/tmp" // where another user may come, whatever TMPDIR is
	}
	dir, err := os.MkdirTemp(parent, "pg")
	must.NoError(t, err)
	s.dir = dir
	t.Cleanup(func() {
		s.Signal(syscall.SIGCONT)
		s.Kill()
		s.forget()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if os.Getuid() != 0 {
		return s
	}
	// PostgreSQL refuses to run as root.
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		s.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		must.NoError(t, os.Chown(dir, uid, gid))
		return s
	}
	t.Skip("PostgreSQL refuses to run as root, and there is no other user")
	return nil
}

// find returns the folder of the server's programs, or "".
func find() string {
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Sort(folders)
	slices.Reverse(folders)
	if program, err := exec.LookPath("initdb"); err == nil {
		folders = append(folders, filepath.Dir(program))
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "initdb")); err == nil {
			return folder
		}
	}
	return ""
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// URL returns the server's, for all others that are given too: the first primary among them
// is used.
func (s *Server) URL(others ...*Server) string {
	hosts := []string{s.dir}
	for _, o := range others {
		hosts = append(hosts, o.dir)
	}
	return "postgres://pif@/postgres?sslmode=disable&host=" + strings.Join(hosts, ",")
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = s.dir
	c.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true}
	return c
}

func (s *Server) run(program string, args ...string) {
	s.t.Helper()
	if out, err := s.command(filepath.Join(s.bin, program), args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// Start starts a server that was stopped, with further options, and waits until it answers.
func (s *Server) Start(options ...string) {
	s.t.Helper()
	args := []string{"-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "shared_buffers=8MB",
		"-c", "max_connections=50", "-c", "max_wal_senders=4", "-c", "wal_sender_timeout=0", "-c", "wal_receiver_status_interval=1",
		"-c", "logging_collector=off", "-c", "autovacuum=off",
		"-c", "dynamic_shared_memory_type=mmap"} // below its folder, which is removed, and not in /dev/shm
	for _, o := range append(slices.Clone(s.options), options...) {
		args = append(args, "-c", o)
	}
	// The shell ends the server when this process goes, whatever its end.
	const script = `"$@" <&- & server=$!; read -r _; kill -QUIT $server; wait $server`
	s.process = s.command("/bin/sh", append([]string{"-c", script, "sh", filepath.Join(s.bin, "postgres")}, args...)...)
	var log bytes.Buffer
	s.process.Stdout, s.process.Stderr = &log, &log
	life, err := s.process.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.life = life
	defer func() {
		if s.t.Failed() {
			s.Kill()
			s.t.Logf("the server's log: %s", log.String())
		}
	}()
	wait.Until(s.t, "the server answers", func() bool {
		_, err := s.query("SELECT 1")
		return err == nil
	})
}

// Kill ends the server and all its processes at once, as a loss of power does (but for what
// the system wrote).
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	s.Signal(syscall.SIGKILL)
	s.life.Close() // the shell collects the server, whose number is free then
	s.process.Wait()
	s.process = nil
}

// forget removes the segment of System V's shared memory that a killed server leaves, which
// the seventh line of its file of state names.
func (s *Server) forget() {
	text, _ := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if lines := strings.Split(string(text), "\n"); len(lines) > 6 {
		if segment := strings.Fields(lines[6]); len(segment) == 2 {
			_ = exec.Command("ipcrm", "-m", segment[1]).Run() // it may be gone by itself
		}
	}
}

// Signal sends a signal to all processes of the server.
func (s *Server) Signal(sig syscall.Signal) {
	if s.process == nil {
		return
	}
	for _, pid := range s.children() {
		syscall.Kill(pid, sig)
	}
}

// children returns the server's processes, of which each leads a group, the first one last.
func (s *Server) children() (pids []int) {
	first, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return nil
	}
	postmaster, err := strconv.Atoi(strings.SplitN(string(first), "\n", 2)[0])
	if err != nil {
		return nil
	}
	out, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", postmaster))
	if err != nil {
		out, _ = exec.Command("pgrep", "-P", strconv.Itoa(postmaster)).Output()
	}
	for _, f := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(f); err == nil {
			pids = append(pids, pid)
		}
	}
	return append(pids, postmaster)
}

// Promote makes a standby the primary.
func (s *Server) Promote() {
	s.t.Helper()
	s.Exec("ALTER SYSTEM SET synchronous_standby_names = ''")
	s.Exec("SELECT pg_promote(true, 60)")
	s.Exec("SELECT pg_reload_conf()")
}

// Exec runs a statement.
func (s *Server) Exec(statement string) {
	s.t.Helper()
	if _, err := s.query(statement); err != nil {
		s.t.Fatalf("%s: %v", statement, err)
	}
}

func (s *Server) ask(question string) string {
	answer, _ := s.query(question)
	return answer
}

// query returns the first value that a statement gives, as text.
func (s *Server) query(statement string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	results, err := conn.PgConn().Exec(ctx, statement).ReadAll()
	if err == nil && len(results) == 0 {
		err = errors.New("no result")
	}
	if err != nil || len(results[0].Rows) == 0 {
		return "", err
	}
	return string(results[0].Rows[0][0]), nil
}
