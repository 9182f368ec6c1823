//go:build amd64 || arm64

package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
	"golang.org/x/sys/unix"
)

// TestSurroundings: a plugin has the arguments, the environment, the directory
// and the descriptors that were said, and no more.
func TestSurroundings(t *testing.T) {
	t.Setenv("HOST_SECRET", "hunter2")
	read, write, err := os.Pipe()
	must.NoError(t, err)
	defer read.Close()
	defer write.Close()
	// A descriptor that a library of the host's left open for its children.
	leaked, err := unix.FcntlInt(write.Fd(), unix.F_DUPFD, 100)
	must.NoError(t, err)
	defer unix.Close(leaked)
	dir := t.TempDir()
	for _, mode := range []Mode{BestEffort, Off} {
		for extra := range 6 {
			spec := Spec{
				Args: []string{"name", "descriptors", "environment", "arguments", "directory"},
				Env:  []string{"A=1", "B=2"}, Dir: dir, Mode: mode,
			}
			want := "has"
			for i := range extra {
				spec.ExtraFiles = append(spec.ExtraFiles, read)
				want += fmt.Sprintf(" %d", 3+i)
			}
			met := results(t, spec, users()[0], "descriptors", "environment", "arguments", "directory")
			for attempt, want := range map[string]string{
				"descriptors": strings.TrimSpace(want), "environment": "A=1 B=2", "arguments": `"name"`, "directory": dir,
			} {
				if got := strings.TrimSpace(met[attempt]); got != want {
					t.Errorf("%s, %d descriptors: %s: %q, expected %q", mode, extra, attempt, got, want)
				}
			}
		}
	}
}

// TestRootDescriptor: a grant's root, passed as a descriptor, is a rule and is
// open in the plugin; what is above it isn't reached by it.
func TestRootDescriptor(t *testing.T) {
	needs(t, LayerFiles)
	for _, as := range users() {
		s := newScene(t, as)
		root, err := os.Open(s.root)
		must.NoError(t, err)
		defer root.Close()
		// Whatever has its name now.
		must.NoError(t, os.Rename(s.root, s.root+"-moved"))
		must.NoError(t, os.Symlink(s.home, s.root))
		spec := Spec{ExtraFiles: []*os.File{root}, Rules: []Rule{{File: root, Access: Read}}}
		expect(t, []attack{
			{"openat=3,a", "", false}, {"openat=3,../home/secret", "EACCES", false}, {"openat=3,out", "EACCES", false},
			{"read=" + s.root + "/secret", "EACCES", false},
		}, results(t, spec, as, "openat=3,a", "openat=3,../home/secret", "openat=3,out", "read="+s.root+"/secret"))
	}
}

// TestReport: on a system that has the layers each is on, and says how.
func TestReport(t *testing.T) {
	needs(t, LayerFiles, LayerNetwork, LayerSyscalls, LayerSignals)
	for _, as := range users() {
		r := start(t, Spec{}, as, "thread")
		if !r.report.Holds() || len(r.report.Missing()) > 0 || r.report.Mode != Require || r.report.Landlock < leastFiles {
			t.Errorf("%s: %+v", as.name, r.report)
		}
		var names []string
		for _, l := range r.report.Layers {
			names = append(names, l.Name)
			if l.Detail == "" {
				t.Errorf("%s says nothing", l.Name)
			}
		}
		if want := "descriptors limits capabilities no_new_privs files network syscalls signals sockets"; strings.Join(names, " ") != want {
			t.Errorf("%s: the layers are %s", as.name, names)
		}
	}
}

// TestOff: the operator's word, and it is said of every layer that matters.
func TestOff(t *testing.T) {
	r := start(t, Spec{Mode: Off}, users()[0], "read=/etc/passwd")
	if r.report.Holds() || len(r.report.Missing()) < 8 || !r.report.Layer(LayerDescriptors).On {
		t.Errorf("%+v", r.report)
	}
	if _, err := r.next(t); err != "" {
		t.Errorf("reading met %s", err)
	}
}

// underHost runs the attacker from a process in other circumstances. It gives
// what the attacker said, the report and the start's error.
func underHost(t *testing.T, circumstances string, mode Mode, attempts ...string) (out string, report Report, failure string) {
	t.Helper()
	exe, err := os.Executable()
	must.NoError(t, err)
	cmd := exec.Command(exe, attempts...)
	cmd.Env = append(os.Environ(),
		"SANDBOX_TEST_HOST="+circumstances, "SANDBOX_TEST_MODE="+string(mode), "SANDBOX_TEST_PROGRAM="+attacker)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	text, failure, _ := strings.Cut(stderr.String(), "\n")
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatalf("%q: %v", stderr.String(), err)
	}
	return stdout.String(), report, strings.TrimSpace(failure)
}

// TestLacking: on a kernel that lacks a layer, require refuses with the reason,
// and best effort starts and tells the truth.
func TestLacking(t *testing.T) {
	needs(t, LayerFiles, LayerSyscalls)
	for _, c := range []struct {
		circumstances, layer, reason string
		attempt                      string // what works then
	}{
		{"no-landlock", LayerFiles, "this kernel has no Landlock", "read=/etc/passwd"},
		{"disabled", LayerFiles, "not enabled", "read=/etc/passwd"},
		{"no-seccomp", LayerNetwork, "doesn't filter system calls", "tcpsocket"},
	} {
		out, report, failure := underHost(t, c.circumstances, Require, c.attempt)
		if out != "" || !strings.Contains(failure, c.layer+": ") || !strings.Contains(failure, c.reason) {
			t.Errorf("%s: required: it said %q; %q doesn't name %s and %q", c.circumstances, out, failure, c.layer, c.reason)
		}
		if report.Layer(c.layer).On || report.Holds() {
			t.Errorf("%s: required: %+v", c.circumstances, report)
		}
		out, report, failure = underHost(t, c.circumstances, BestEffort, c.attempt, "start="+attacker, "signal=PPID")
		if failure != "<nil>" || !strings.Contains(out, `"attempt":"`+c.attempt+`","error":""`) {
			t.Errorf("%s: best effort: %s: %s", c.circumstances, failure, out)
		}
		if l := report.Layer(c.layer); l.On || !strings.Contains(l.Detail, c.reason) || report.Holds() {
			t.Errorf("%s: best effort: %+v", c.circumstances, report)
		}
		// The other layers hold, and so do the signals, by whichever is there.
		other := LayerSyscalls
		if c.layer == LayerNetwork {
			other = LayerFiles
		}
		version, _ := landlockVersion()
		signals := c.layer == LayerFiles || version >= 6
		if !report.Layer(other).On || report.Layer(LayerSignals).On != signals {
			t.Errorf("%s: best effort: %+v", c.circumstances, report)
		}
		if signals && !strings.Contains(out, `signal=PPID","error":"EPERM"`) {
			t.Errorf("%s: best effort: %s", c.circumstances, out)
		}
	}
	// Descriptors are closed on old kernels, too.
	if out, report, failure := underHost(t, "no-range", Require, "descriptors"); failure != "<nil>" || !report.Holds() ||
		!strings.Contains(out, `"error":"has "`) {
		t.Errorf("without close_range: %s: %s", failure, out)
	}
}

// TestDiesWithHost: a plugin doesn't outlive its host, however that ends.
func TestDiesWithHost(t *testing.T) {
	exe, err := os.Executable()
	must.NoError(t, err)
	host := exec.Command(exe, "deathsig", "wait")
	host.Env = append(os.Environ(), "SANDBOX_TEST_HOST=dies", "SANDBOX_TEST_MODE=best-effort", "SANDBOX_TEST_PROGRAM="+attacker)
	out, err := host.StdoutPipe()
	must.NoError(t, err)
	must.NoError(t, host.Start())
	lines := bufio.NewScanner(out)
	var waiting struct{ Attempt, Error string }
	for waiting.Attempt != "waiting" {
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &waiting) != nil {
			t.Fatalf("the plugin doesn't start: %s", lines.Text())
		}
	}
	host.Process.Kill()
	// The pipe ends when the plugin, which has its other end, does. A plugin that
	// lives on is ended here.
	must.NoError(t, out.(*os.File).SetReadDeadline(time.Now().Add(4*time.Minute)))
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("the plugin lives on: %q, %v", lines.Text(), lines.Err())
		if pid, err := strconv.Atoi(waiting.Error); err == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	host.Wait()
}

// TestSwappedExecutable: what was opened is executed, whatever has its name.
func TestSwappedExecutable(t *testing.T) {
	for _, as := range users() {
		dir := folder(t, as)
		name := filepath.Join(dir, "plugin")
		copyFile(t, attacker, name)
		exe, err := os.Open(name)
		must.NoError(t, err)
		defer exe.Close()
		spec := Spec{Executable: exe, Mode: BestEffort, Args: []string{"plugin", "thread"}, Dir: "/"}
		l, err := New(spec)
		must.NoError(t, err)
		defer l.Close()
		copyFile(t, "/bin/false", dir+"/other")
		must.NoError(t, os.Rename(dir+"/other", name))
		if met := results(t, spec, as, "thread"); met["thread"] != "" {
			t.Error(met)
		}
	}
}

// TestExecutableInMemory: a sealed copy that no file system has is executed, too.
func TestExecutableInMemory(t *testing.T) {
	fd, err := unix.MemfdCreate("plugin", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	must.NoError(t, err)
	f := os.NewFile(uintptr(fd), "plugin")
	defer f.Close()
	text, err := os.ReadFile(attacker)
	must.NoError(t, err)
	must.Succeed(t)(f.Write(text))
	must.NoError(t, f.Chmod(0o755))
	must.Succeed(t)(unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK))
	for _, as := range users() {
		if met := results(t, Spec{Executable: f, Mode: BestEffort}, as, "thread", "own"); met["thread"]+met["own"] != "" {
			t.Errorf("%s: %v", as.name, met)
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(to, text, 0o755))
}

// TestRefusals: a spec that can't be meant is refused before anything starts, and
// an executable that can't be executed with the reason.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	must.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755))
	plain := filepath.Join(dir, "plain")
	copyFile(t, attacker, plain)
	must.NoError(t, os.Chmod(plain, 0o644))
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Path: attacker, Mode: "strict"}, "none of require"},
		{Spec{Path: attacker, Network: 7}, "network mode"},
		{Spec{Path: attacker, Ports: []uint16{80}}, "may connect"},
		{Spec{Path: attacker, Limits: Limits{Memory: 1 << 20}}, "memory"},
		{Spec{Path: attacker, Limits: Limits{Files: 4}}, "descriptors"},
		{Spec{Path: attacker, Limits: Limits{FileSize: -1}}, "negative"},
		{Spec{Path: dir + "/none"}, "no such file"},
		{Spec{Path: script}, "is not an ELF binary"},
		{Spec{Path: attacker, Rules: []Rule{{Path: dir + "/none", Access: Read}}}, "no such file"},
		{Spec{Path: plain, Mode: BestEffort}, "permission denied"},
		{Spec{Path: attacker, Mode: BestEffort, Args: []string{"a\x00b"}}, "zero byte"},
		{Spec{Path: attacker, Mode: BestEffort, Env: []string{"A=\x00"}}, "zero byte"},
	} {
		if _, err := tryStart(t, c.spec, users()[0], "thread"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, expected %q", c.spec, err, c.want)
		}
	}
	if _, err := New(Spec{}); err == nil {
		t.Error("no executable is started")
	}
	t.Setenv(launcherEnv, "1")
	if _, err := New(Spec{Path: attacker}); err == nil || !strings.Contains(err.Error(), "main function") {
		t.Errorf("a program that is its own launcher starts plugins: %v", err)
	}
}

// TestGivenUp: a start that is given up leaves no process.
func TestGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l, err := New(Spec{Path: attacker, Args: []string{"attacker", "wait"}, Mode: BestEffort})
	must.NoError(t, err)
	if _, err := l.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the start gives %v", err)
	}
	if l.Cmd.ProcessState == nil {
		t.Error("the process wasn't waited for")
	}
}

// TestNoMain: a launcher that doesn't launch is told from one that does.
func TestNoMain(t *testing.T) {
	l, err := New(Spec{Path: attacker})
	must.NoError(t, err)
	l.Cmd.Path, l.Cmd.Args = "/bin/true", []string{"true"} // a program whose main doesn't call Main
	if _, err := l.Start(context.Background()); err == nil || !strings.Contains(err.Error(), "before it reported") {
		t.Errorf("the start gives %v", err)
	}
}

// TestByHand: the launcher that nobody launched says so.
func TestByHand(t *testing.T) {
	exe, err := os.Executable()
	must.NoError(t, err)
	out, err := exec.Command(exe, launcherArg).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 || !strings.Contains(string(out), "only mcp-pif starts it") {
		t.Errorf("%v: %s", err, out)
	}
}

// BenchmarkStart compares a start through the launcher with a plain one, to the
// plugin's first words.
func BenchmarkStart(b *testing.B) {
	first := func(b *testing.B, cmd *exec.Cmd, start func() error) {
		out, err := cmd.StdoutPipe()
		must.NoError(b, err)
		must.NoError(b, start())
		if !bufio.NewScanner(out).Scan() {
			b.Fatal("it says nothing")
		}
		must.NoError(b, cmd.Wait())
	}
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command(attacker, "thread")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			first(b, cmd, cmd.Start)
		}
	})
	b.Run("sandboxed", func(b *testing.B) {
		for b.Loop() {
			l, err := New(Spec{Path: attacker, Args: []string{"attacker", "thread"}, Mode: BestEffort})
			must.NoError(b, err)
			first(b, l.Cmd, func() error { _, err := l.Start(context.Background()); return err })
		}
	})
}
