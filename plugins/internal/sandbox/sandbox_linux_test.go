//go:build amd64 || arm64

package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"golang.org/x/sys/unix"
)

// attacker is the hostile program, built statically by TestMain.
var attacker string

// elsewhere is a plugin's name that has the launcher on a thread that isn't the
// process's first.
const elsewhere = "elsewhere"

func init() {
	if os.Args[0] == elsewhere {
		runtime.LockOSThread() // the first is taken, then
	}
}

func TestMain(m *testing.M) {
	if os.Args[0] == elsewhere {
		done := make(chan struct{})
		go func() { Main(); close(done) }()
		<-done
	}
	Main()
	if mode := os.Getenv("SANDBOX_TEST_HOST"); mode != "" {
		asHost(mode)
		return
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "sandbox")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		attacker = filepath.Join(dir, "attacker")
		build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-w", "-o", attacker, "./testdata/attacker")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
			return 1
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// needs skips a test where this system lacks a layer, or fails it where that was
// said to be there.
func needs(t *testing.T, layers ...string) {
	t.Helper()
	for _, name := range layers {
		if l := System().Layer(name); !l.On {
			unavailable(t, "the layer "+name+" is off: "+l.Detail)
		}
	}
}

// needsLandlock is the same for a version.
func needsLandlock(t *testing.T, version int) {
	t.Helper()
	if v, why := landlockVersion(); v < version {
		unavailable(t, fmt.Sprintf("Landlock %d is needed, this kernel has %d %s", version, v, why))
	}
}

func unavailable(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("PIF_REQUIRE_SANDBOX") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// A user is who runs the plugin.
type user struct {
	name       string
	credential *syscall.Credential
}

// users is this one and, as root, somebody unprivileged.
func users() []user {
	us := []user{{name: "self"}}
	if os.Geteuid() == 0 {
		us[0].name = "root"
		us = append(us, user{"nobody", &syscall.Credential{Uid: 65534, Gid: 65534}})
	}
	return us
}

// A running plugin.
type running struct {
	*Launch
	report Report
	out    *bufio.Scanner
	errors *strings.Builder
}

// start starts the attacker, or the spec's program.
func start(t *testing.T, spec Spec, as user, attempts ...string) *running {
	t.Helper()
	r, err := tryStart(t, spec, as, attempts...)
	must.NoError(t, err)
	return r
}

func tryStart(t *testing.T, spec Spec, as user, attempts ...string) (*running, error) {
	t.Helper()
	if spec.Executable == nil && spec.Path == "" {
		spec.Path = attacker
	}
	if spec.Args == nil {
		spec.Args = append([]string{"attacker"}, attempts...)
	}
	if spec.Dir == "" {
		spec.Dir = "/"
	}
	l, err := New(spec)
	if err != nil {
		return nil, err
	}
	r := &running{Launch: l, errors: &strings.Builder{}}
	l.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: as.credential}
	l.Cmd.Stderr = r.errors
	stdout, err := l.Cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewScanner(stdout)
	if r.report, err = l.Start(context.Background()); err != nil {
		return r, err
	}
	t.Cleanup(func() { r.Cmd.Process.Kill(); r.Cmd.Wait() })
	return r, nil
}

// next is the next attempt's name and error.
func (r *running) next(t *testing.T) (attempt, err string) {
	t.Helper()
	if !r.out.Scan() {
		t.Fatalf("the attacker says no more: %v\n%s", r.Cmd.Wait(), r.errors)
	}
	var line struct{ Attempt, Error string }
	if err := json.Unmarshal(r.out.Bytes(), &line); err != nil {
		t.Fatalf("%q: %v", r.out.Text(), err)
	}
	return line.Attempt, line.Error
}

// results runs attempts to the end: each with the error it met.
func results(t *testing.T, spec Spec, as user, attempts ...string) map[string]string {
	t.Helper()
	r := start(t, spec, as, attempts...)
	met := map[string]string{}
	for range attempts {
		attempt, err := r.next(t)
		met[attempt] = err
	}
	if err := r.Cmd.Wait(); err != nil {
		t.Fatalf("the attacker ended with %v\n%s", err, r.errors)
	}
	return met
}

// victim is another process of the same user, outside the sandbox: the attacker,
// waiting.
func victim(t *testing.T, as user) int {
	t.Helper()
	cmd := exec.Command(attacker, "wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as.credential}
	out, err := cmd.StdoutPipe()
	must.NoError(t, err)
	must.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if !bufio.NewScanner(out).Scan() {
		t.Fatal("the victim doesn't start")
	}
	return cmd.Process.Pid
}

// folder is a directory of the user's that nothing is above but what everybody
// may enter.
func folder(t *testing.T, as user) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		must.NoError(t, os.Chmod(d, 0o755))
	}
	give(t, as, dir)
	return dir
}

// give makes the user the owner.
func give(t *testing.T, as user, name string) {
	t.Helper()
	if as.credential != nil {
		must.NoError(t, os.Lchown(name, int(as.credential.Uid), int(as.credential.Gid)))
	}
}

// file is a file of the user's.
func file(t *testing.T, as user, name, content string) string {
	t.Helper()
	must.NoError(t, os.WriteFile(name, []byte(content), 0o644))
	give(t, as, name)
	return name
}

// asHost is a process that starts plugins, in circumstances that this one isn't
// in: a kernel that lacks something, or a host that is about to die.
func asHost(mode string) {
	missing, ok := map[string][]decision{
		"no-landlock": refuseAll(unix.ENOSYS, unix.SYS_LANDLOCK_CREATE_RULESET),
		"disabled":    refuseAll(unix.EOPNOTSUPP, unix.SYS_LANDLOCK_CREATE_RULESET),
		"no-seccomp":  refuseAll(unix.EINVAL, unix.SYS_SECCOMP),
		"no-range":    refuseAll(unix.ENOSYS, unix.SYS_CLOSE_RANGE),
		"dies":        {},
	}[mode]
	if !ok {
		panic(mode)
	}
	if err := lacking(missing); err != nil {
		panic(err)
	}
	name := "attacker"
	if mode == "dies" {
		name = elsewhere
	}
	l, err := New(Spec{
		Path: os.Getenv("SANDBOX_TEST_PROGRAM"), Args: append([]string{name}, os.Args[1:]...), Dir: "/",
		Mode: Mode(os.Getenv("SANDBOX_TEST_MODE")),
	})
	if err != nil {
		panic(err)
	}
	l.Cmd.Stdout, l.Cmd.Stderr = os.Stdout, os.Stderr
	l.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	report, err := l.Start(context.Background())
	text, _ := json.Marshal(report)
	fmt.Fprintf(os.Stderr, "%s\n%v\n", text, err)
	if err == nil {
		l.Cmd.Wait()
	}
}

// lacking makes system calls fail for all of this process, as on a kernel that
// lacks them.
func lacking(missing []decision) error {
	if len(missing) == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	raw, err := assemble(auditArch, newestCall, missing)
	if err != nil {
		return err
	}
	return installRaw(raw, unix.SECCOMP_FILTER_FLAG_TSYNC)
}
