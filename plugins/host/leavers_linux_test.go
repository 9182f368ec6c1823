package host

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

func init() {
	roles["leaver"] = func() { sdk.Serve(leaver()) }
	roles["leaverhost"] = beLeaversHost
	roles["left"] = func() { time.AfterFunc(10*time.Minute, func() { os.Exit(0) }); hang() }
	roles["between"] = func() {
		if err := departed("left").Start(); err != nil {
			panic(err)
		}
	}
	roles["chain"] = chain
}

// departed starts this program in a session and group of its own, with the mark.
func departed(role string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], role, os.Args[2])
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// The words of a chain: where it has come some way, and where nobody ended it.
var chainOn, chainOver = []byte("chain on\n"), []byte("chain over\n")

// chain is a process that leaves its parent, again and again, each time as another in
// a session of its own: whoever looks for it finds one that was.
func chain() {
	for n := range 10_000_000 {
		if n == 100 {
			syscall.Write(1, chainOn)
		}
		if pid, _, errno := syscall.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0); pid != 0 || errno != 0 {
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	}
	syscall.Write(1, chainOver)
	syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
}

// leaver is a plugin that may start processes, and leaves some behind.
func leaver() sdk.Plugin {
	act := func(do func() error) func(context.Context, sdk.Capability, none) (string, error) {
		return func(context.Context, sdk.Capability, none) (string, error) {
			if err := do(); err != nil {
				return err.Error(), nil
			}
			return "done", nil
		}
	}
	return sdk.Plugin{
		Kind: "leaver", Version: "1.0.0", Doc: "Leaves processes.", Scope: sdk.Segments, Privileges: []string{"processes"},
		Open: func(_ context.Context, c sdk.Capability) (any, error) { return c, nil },
		Operations: []sdk.Operation{
			sdk.Op("leave", "Leaves some, by setsid and a double fork.", sdk.Flags{}, act(func() error {
				for range 3 {
					if err := departed("between").Run(); err != nil {
						return err
					}
				}
				return departed("left").Start()
			})),
			sdk.Op("chain", "Leaves one that nobody catches.", sdk.Flags{}, act(func() error {
				cmd := departed("chain")
				cmd.Stdout = ownOutput
				return cmd.Start()
			})),
			sdk.Op("keeper", "Signals its parent.", sdk.Flags{}, act(func() error { return unix.Kill(os.Getppid(), unix.SIGKILL) })),
			sdk.Op("die", "Ends.", sdk.Flags{}, act(func() error { os.Exit(3); return nil })),
			sdk.Op("status", "Says how it is.", sdk.Flags{}, act(func() error { return nil })),
		},
	}
}

// newLeavers makes a host with that plugin, in its sandbox where the system has one.
func newLeavers(t testing.TB, mark string, o Options) (*world, *caps.Held) {
	exe, err := os.Executable()
	must.NoError(t, err)
	p := leaver()
	m, err := p.Manifest()
	must.NoError(t, err)
	kinds, err := caps.NewKinds(m)
	must.NoError(t, err)
	log := &wait.Log{}
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	h, err := New(o)
	must.NoError(t, err)
	h.patient()
	must.NoError(t, h.Add(Source{Manifest: m, Path: exe, Args: []string{"leaver", mark}}))
	w := &world{Host: h, policy: caps.NewPolicy(kinds, nil), kinds: kinds, log: log}
	return w, w.grant(t, "leaver:a/**")
}

// boxMode is the strictest mode that this system holds.
func boxMode(string) Mode {
	if System().Holds() {
		return Require
	}
	return BestEffort
}

// marked is the processes with a mark in their arguments.
func marked(t testing.TB, mark string) (pids []string) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must.NoError(t, err)
	for _, name := range all {
		if line, err := os.ReadFile(name); err == nil && bytes.Contains(line, []byte(mark)) {
			pids = append(pids, filepath.Base(filepath.Dir(name)))
		}
	}
	return pids
}

func newMark(t testing.TB) string {
	return fmt.Sprintf("mark-%d-%d", os.Getpid(), time.Now().UnixNano())
}

// beLeaversHost is a host with that plugin, which says when it has left some.
func beLeaversHost() {
	t := &testing.T{}
	w, held := newLeavers(t, os.Args[2], Options{Sandbox: boxMode, RuntimeDir: os.Args[3]})
	for _, op := range strings.Fields(os.Args[4]) {
		if v, _, f := w.Perform(context.Background(), act(t, held, op)); f != nil || v != value.Str("done") {
			fmt.Println(v, f)
			os.Exit(1)
		}
	}
	fmt.Println("ready")
	hang()
}

// TestAttackLeavers: what a plugin starts, and what leaves its group, session and
// parents, ends with it, however it ends.
func TestAttackLeavers(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, w *world, held *caps.Held){
		"revoked": func(_ *testing.T, w *world, held *caps.Held) { w.policy.Revoke(held.Grant.ID) },
		"closed":  func(_ *testing.T, w *world, _ *caps.Held) { w.Close() },
		"ended":   func(t *testing.T, w *world, held *caps.Held) { w.Perform(t.Context(), act(t, held, "die")) },
		"killed":  func(_ *testing.T, w *world, _ *caps.Held) { syscall.Kill(w.Status()[0].PID, syscall.SIGKILL) },
	} {
		for _, off := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, sandbox off: %v", name, off), func(t *testing.T) {
				t.Parallel()
				mark := newMark(t) + name
				o := Options{Sandbox: boxMode, RuntimeDir: t.TempDir()}
				if off {
					o.Sandbox = unboxed
				}
				w, held := newLeavers(t, mark, o)
				defer w.Close()
				if got := w.do(t, held, "leave"); got != value.Str("done") {
					t.Fatal(got)
				}
				wait.Until(t, "all are there", func() bool { return len(marked(t, mark)) >= 5 })
				end(t, w, held)
				wait.Until(t, "none is left", func() bool { return len(marked(t, mark)) == 0 })
			})
		}
	}
}

// TestAttackLeaversHostIsKilled: also where the host is killed.
func TestAttackLeaversHostIsKilled(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		mark := newMark(t)
		cmd := exec.Command(os.Args[0], "leaverhost", mark, t.TempDir(), "leave")
		out, err := cmd.StdoutPipe()
		must.NoError(t, err)
		must.NoError(t, cmd.Start())
		defer cmd.Process.Kill()
		if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "ready" {
			t.Fatalf("the host says %q", lines.Text())
		}
		wait.Until(t, "all are there", func() bool { return len(marked(t, mark)) >= 6 })
		must.NoError(t, cmd.Process.Signal(sig))
		cmd.Wait()
		wait.Until(t, "none is left", func() bool { return len(marked(t, mark)) == 0 })
	}
}

// TestAttackChain: nor does a process get away that is another at each look, nor a
// plugin that ends its keeper, where the kernel ends all at once.
func TestAttackChain(t *testing.T) {
	needsLayers(t)
	mark := newMark(t)
	w, held := newLeavers(t, mark, Options{Sandbox: boxMode, RuntimeDir: t.TempDir()})
	defer w.Close()
	if got := w.do(t, held, "keeper"); got == value.Str("done") && System().Landlock >= 6 {
		t.Error("it killed its keeper")
	}
	p := w.seats[held.Grant.ID].process
	if l := p.layers().Layer("processes"); l.On != (System().Landlock >= 6) {
		t.Errorf("%+v", l)
	} else if !l.On {
		t.Skip(l.Detail)
	}
	p.launch.mu.Lock()
	p.launch.draining = patience
	p.launch.mu.Unlock()
	for range 4 {
		if got := w.do(t, held, "chain"); got != value.Str("done") {
			t.Fatal(got)
		}
	}
	wait.Until(t, "they are under way", func() bool { return strings.Count(w.log.String(), "chain on") == 4 })
	w.policy.Revoke(held.Grant.ID)
	// Whoever is left holds the plugin's output.
	wait.Until(t, "nobody is left", func() bool { return isClosed(p.launch.drained) })
	if strings.Contains(w.log.String(), "chain over") {
		t.Error("a chain went on to its end")
	}
}
