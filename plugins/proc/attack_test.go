//go:build linux

package proc

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/internal/sandbox"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// These are the attackers: they go as far as they are let, and tell how far.
func init() {
	roles["leave"] = leave
	roles["leaf"] = func([]string) { time.Sleep(time.Hour) }
	roles["bomb"] = bomb
	roles["shout"] = func([]string) {
		for line := []byte(strings.Repeat("x", 64<<10)); ; {
			if _, err := os.Stdout.Write(line); err != nil {
				return
			}
			os.Stderr.Write(line)
		}
	}
	roles["reach"] = reach
	roles["holder"] = holdForever
	roles["args"] = func(args []string) { fmt.Printf("%q\n", args) }
}

// detached starts this program again, in a session and group of its own.
func detached(args ...string) *exec.Cmd {
	cmd := again(args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// leave leaves its group by setsid and a double fork.
func leave(args []string) {
	if len(args) > 1 { // in between
		if err := detached("leaf", args[0]).Start(); err != nil {
			fmt.Println(err)
		}
		return
	}
	for range 3 {
		if err := detached("leave", args[0], "between").Run(); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("left")
	time.Sleep(time.Hour)
}

// bomb multiplies, each in a session of its own, to a thousand processes. They end at
// last, should nobody end them.
func bomb(args []string) {
	time.AfterFunc(10*time.Minute, func() { os.Exit(0) })
	n, _ := strconv.Atoi(args[1])
	for range 2 {
		if n > 0 {
			_ = detached("bomb", args[0], strconv.Itoa(n-1)).Start()
		}
	}
	time.Sleep(time.Hour)
}

// eats takes memory, in eight processes that have less than the limit each.
const eats = "import os, time; [os.fork() for _ in range(3)]; b = bytearray(b'x' * (64 << 20)); time.sleep(600)"

// reach tries what it must not, and says what it got.
func reach(args []string) {
	try := func(what string, err error) {
		if err == nil {
			fmt.Println(what, "succeeded")
		}
	}
	secret, victim := args[0], os.Getppid()
	_, err := os.ReadFile(secret)
	try("reading", err)
	_, err = os.ReadDir("/etc")
	try("listing", err)
	try("writing", os.WriteFile(filepath.Join(filepath.Dir(secret), "new"), nil, 0o600))
	try("executing", exec.Command("/bin/sh", "-c", "true").Run())
	_, err = net.DialTimeout("tcp", args[1], time.Minute)
	try("connecting", err)
	_, err = net.Dial("unix", args[2])
	try("connecting to a socket", err)
	for _, pid := range []int{victim, numberOf(args[3])} {
		try("signalling", syscall.Kill(pid, 0))
		// Seizing stops nobody, where it is let.
		err := unix.PtraceSeize(pid)
		try("tracing", err)
		if err == nil {
			_ = unix.PtraceDetach(pid)
		}
		mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
		try("opening memory", err)
		if err == nil {
			mem.Close()
		}
		_, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		try("reading an environment", err)
	}
	for fd := 3; fd < 64; fd++ {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT != 0 {
			if name, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); !strings.Contains(name, "anon_inode") && name != "" {
				fmt.Println("descriptor", fd, "inherited", name)
			}
		}
	}
	fmt.Println("environment", len(os.Environ()))
	fmt.Println("tried")
}

func numberOf(s string) int { n, _ := strconv.Atoi(s); return n }

// TestReach: a session reaches nothing but what is mapped: no file, program, socket,
// and none of the processes that it lives in.
func TestReach(t *testing.T) {
	if mode(t) != sandbox.Require {
		t.Skip("this system has no sandbox")
	}
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	must.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer tcp.Close()
	short, err := os.MkdirTemp("", "pif") // the path of a socket is short
	must.NoError(t, err)
	defer os.RemoveAll(short)
	at := filepath.Join(short, "s")
	socket, err := net.Listen("unix", at)
	must.NoError(t, err)
	defer socket.Close()
	t.Setenv("PROC_TEST_SECRET", "secret")
	h := hold(t, helper(t, "reach", secret, tcp.Addr().String(), at, strconv.Itoa(os.Getpid())))
	out, errs, _ := h.rest(h.start())
	if !strings.HasSuffix(out, "tried\n") || strings.Contains(out, "succeeded") || strings.Contains(out, "inherited") {
		t.Errorf("it got\n%s%s", out, errs)
	}
	if !strings.Contains(out, "environment 5\n") { // LANG PATH HOME TERM GOMAXPROCS
		t.Errorf("it has another environment:\n%s", out)
	}
	// The same attacker does all that where it is let: the test can fail.
	c := helper(t, "reach", secret, tcp.Addr().String(), at, strconv.Itoa(os.Getpid()))
	c.Read, c.Write, c.Network = []string{"/etc"}, []string{dir}, true
	h = hold(t, c)
	out, errs, _ = h.rest(h.start())
	for _, want := range []string{"reading", "listing", "writing", "connecting"} {
		if !strings.Contains(out, want+" succeeded") {
			t.Errorf("%s failed although it is mapped:\n%s%s", want, out, errs)
		}
	}
	if strings.Contains(out, "signalling succeeded") || strings.Contains(out, "memory succeeded") || strings.Contains(out, "executing succeeded") {
		t.Errorf("it got more than is mapped:\n%s", out)
	}
}

// TestLeavingGroups: what left its group, session and parents is ended with the
// session, however that ends.
func TestLeavingGroups(t *testing.T) {
	for name, end := range map[string]func(h holder, s string){
		"stopped":   func(h holder, s string) { h.does("stop", s) },
		"killed":    func(h holder, s string) { h.does("signal", "session", s, "signal", "KILL"); h.rest(s) },
		"closed":    func(h holder, _ string) { h.Close() },
		"with TERM": func(h holder, s string) { h.does("stop", "session", s, "grace", 60_000) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := newMark(t)
			h := hold(t, helper(t, "leave", mark))
			s := h.start()
			h.until(s, "left\n")
			// A program that has just begun has no command line yet.
			wait.Until(t, "not all are there", func() bool { return len(marked(t, mark)) >= 4 })
			end(h, s)
			wait.Until(t, "some are left", func() bool { return len(marked(t, mark)) == 0 })
		})
	}
}

// TestForkBomb: what multiplies is ended, all of it, and the plugin goes on.
func TestForkBomb(t *testing.T) {
	mark := newMark(t)
	c := helper(t, "bomb", mark, "9")
	c.Processes, c.Memory = 40, 16<<30 // forty of this binary may be over the default
	h := hold(t, c)
	s := h.start()
	if _, _, v := h.rest(s); text(v, "why") != "processes" {
		t.Errorf("it ended as %v", v)
	}
	if left := marked(t, mark); len(left) > 0 {
		t.Errorf("%d are left", len(left))
	}
	h.does("stop", h.start())
}

// TestLimits: memory, output and time end a session, and it says which.
func TestLimits(t *testing.T) {
	for why, c := range map[string]sdk.Command{
		"memory": func() sdk.Command {
			c := python(t)
			c.Args = []string{pythonPath, "-c", eats}
			c.Memory = 300 << 20
			return c
		}(),
		"output": func() sdk.Command { c := helper(t, "shout"); c.Output, c.Buffer = 64<<20, 64<<10; return c }(),
		"idle":   func() sdk.Command { c := helper(t, "sleep"); c.Idle = "100ms"; return c }(),
		"total":  func() sdk.Command { c := helper(t, "sleep"); c.Total = "100ms"; return c }(),
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			h := hold(t, c)
			s := h.start()
			var v value.Value
			wait.Until(t, "it doesn't end", func() bool { // naming it would keep it from being idle
				states, _ := value.Slice(h.does("list"))
				v = states[0]
				return !bool(field(v, "running").(value.Bool))
			})
			if text(v, "session") != s || text(v, "why") != why || text(v, "signal") != "SIGKILL" {
				t.Errorf("it ended as %v", v)
			}
		})
	}
}

// An early context says that it ends sooner than it does: what is over in the time
// that it says isn't late on a busy machine.
type early struct {
	context.Context
	end time.Time
}

func (e early) Deadline() (time.Time, bool) { return e.end, true }

// TestDeadlines: a request that waits is over before its time, and the session goes
// on; one that is cancelled ends at once.
func TestDeadlines(t *testing.T) {
	h := hold(t, helper(t, "sleep"))
	s := h.start()
	for operation, args := range map[string]value.Value{
		"read": plugintest.Arguments("session", s, "pattern", "never", "wait", 3_600_000),
		"send": plugintest.Arguments("session", s, "text", strings.Repeat("x", 1<<20)),
	} {
		late, cancel := context.WithTimeout(t.Context(), patient*time.Millisecond)
		defer cancel()
		v, err := h.Invoke(early{late, time.Now().Add(time.Second)}, "proc."+operation, args)
		if err != nil || operation == "read" && text(v, "over") != "time" || operation == "send" && number(v, "left") <= 0 {
			t.Errorf("%s: %v, %v", operation, v, err)
		}
	}
	ended, cancelNow := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancelNow)
	if _, err := h.Invoke(ended, "proc.read", plugintest.Arguments("session", s, "pattern", "never", "wait", 3_600_000)); err == nil {
		t.Error("a cancelled read succeeded")
	}
	if v := h.does("status", s); text(v, "why") != "" {
		t.Errorf("%v", v)
	}
}

// holdForever is a plugin's process with a session that left its group, and one that
// didn't.
func holdForever(args []string) {
	exe, _ := os.Executable()
	p := Plugin()
	for _, act := range []string{"leave", "leaf"} {
		c, err := sdk.Command{Args: []string{exe, "act", act, args[0]}}.Resolve(nil, nil)
		if err != nil {
			panic(err)
		}
		c.Sandbox = args[1]
		h, err := sdk.Direct(context.Background(), p, sdk.Capability{Within: act, Command: &c})
		if err != nil {
			panic(err)
		}
		s, err := h.Invoke(context.Background(), "proc.start", plugintest.Arguments())
		if err != nil {
			panic(err)
		}
		if act == "leave" {
			if _, err := h.Invoke(context.Background(), "proc.wait_for", plugintest.Arguments("session", s, "pattern", "left\n", "wait", patient)); err != nil {
				panic(err)
			}
		}
	}
	fmt.Println("held")
	time.Sleep(time.Hour)
}

// TestKilledPlugin: kill -9 of the plugin, with its group, leaves no process behind.
func TestKilledPlugin(t *testing.T) {
	mark := newMark(t)
	cmd := again("holder", mark, string(mode(t)))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must.NoError(t, err)
	must.NoError(t, cmd.Start())
	defer cmd.Process.Kill()
	if n, err := out.Read(make([]byte, 5)); n == 0 {
		t.Fatal(err)
	}
	wait.Until(t, "not all are there", func() bool { return len(marked(t, mark)) >= 6 })
	must.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
	_ = cmd.Wait()
	wait.Until(t, "some are left", func() bool { return len(marked(t, mark)) == 0 })
}

// TestKilledKeeper: where a keeper is killed from outside, the plugin ends what it
// kept.
func TestKilledKeeper(t *testing.T) {
	mark := newMark(t)
	h := hold(t, helper(t, "leave", mark))
	s := h.start()
	h.until(s, "left\n")
	c := &sandbox.Census{}
	killed := false
	for _, m := range c.Take(os.Getpid(), true) {
		if m.Parent == os.Getpid() && slices.ContainsFunc(c.Take(m.PID, true), func(m sandbox.Member) bool { return slices.Contains(marked(t, mark), strconv.Itoa(m.PID)) }) {
			killed = syscall.Kill(m.PID, syscall.SIGKILL) == nil
		}
	}
	if !killed {
		t.Fatal("there is no keeper")
	}
	wait.Until(t, "some are left", func() bool { return len(marked(t, mark)) == 0 })
	if _, _, v := h.rest(s); text(v, "why") != "lost" {
		t.Errorf("%v", v)
	}
}
