//go:build linux

package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// given is a plugin that asks for what the host gives by itself, and tells of it.
func given() sdk.Plugin {
	type what struct {
		Name string `pif:"name"`
	}
	in := func(do func(path string) error) func(context.Context, sdk.Capability, what) (string, error) {
		return func(_ context.Context, c sdk.Capability, w what) (string, error) {
			err := do(filepath.Join(c.State, w.Name))
			if outside := errors.Unwrap(err); outside != nil && strings.HasPrefix(w.Name, "..") {
				err = outside // without the path, of which the host knows nothing
			}
			if err != nil {
				return "", sdk.Fail("failed", "%s", err)
			}
			return "done", nil
		}
	}
	return sdk.Plugin{
		Kind: "given", Version: "1.0.0", Doc: "Tells what it was given.", Scope: sdk.Exact, Privileges: []string{"state", "variable"},
		Open: func(_ context.Context, c sdk.Capability) (any, error) { return c, nil },
		Operations: []sdk.Operation{
			sdk.Op("variable", "Gives the variable.", sdk.Flags{}, func(_ context.Context, c sdk.Capability, _ struct{}) (*string, error) {
				return c.Variable, nil
			}),
			sdk.Op("environment", "Gives all of its environment.", sdk.Flags{}, func(context.Context, sdk.Capability, struct{}) (string, error) {
				return strings.Join(os.Environ(), "\n"), nil
			}),
			sdk.Op("write", "Writes a file.", sdk.Flags{}, in(func(path string) error { return os.WriteFile(path, nil, 0o600) })),
			sdk.Op("read", "Reads a file.", sdk.Flags{}, in(func(path string) error { _, err := os.ReadFile(path); return err })),
		},
	}
}

// newGiven is a world with that plugin and the state in a folder, or none.
func newGiven(t *testing.T, state func(string) (string, error)) *world {
	t.Helper()
	exe, err := os.Executable()
	must.NoError(t, err)
	manifest, err := given().Manifest()
	must.NoError(t, err)
	kinds, err := caps.NewKinds(manifest)
	must.NoError(t, err)
	w := &world{policy: caps.NewPolicy(kinds, nil), kinds: kinds, log: &wait.Log{}, dir: t.TempDir()}
	var sandbox func(string) Mode
	if !System().Holds() {
		sandbox = unboxed
	}
	w.Host, err = New(Options{Sandbox: sandbox, State: state, Logger: slog.New(slog.NewTextHandler(w.log, nil)), RuntimeDir: w.dir})
	must.NoError(t, err)
	w.patient()
	t.Cleanup(func() { w.Host.Close() })
	must.NoError(t, w.Add(Source{Manifest: manifest, Path: exe, Args: []string{"given"}}))
	return w
}

// TestStateIsGiven: a plugin that keeps state writes to its own folder, which only
// this user can enter, and nowhere else; it lasts, and models don't see where.
func TestStateIsGiven(t *testing.T) {
	base := t.TempDir()
	secret := filepath.Join(base, "secret")
	must.NoError(t, os.WriteFile(secret, nil, 0o600))
	state := filepath.Join(base, "deep", "given")
	must.NoError(t, os.MkdirAll(state, 0o755))
	for range 2 {
		w := newGiven(t, func(kind string) (string, error) { return filepath.Join(base, "deep", kind), nil })
		held := w.grant(t, "given:PIF_TEST_UNSET")
		name := func(s string) value.Field { return arg("name", value.Str(s)) }
		w.do(t, held, "write", name("kept"))
		w.do(t, held, "read", name("kept"))
		if info, err := os.Stat(state); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the folder: %v, %v", info, err)
		}
		if f := w.fails(t, act(t, held, "read", name("none")), fault.EffectFailed, "no such file"); strings.Contains(f.Message, base) {
			t.Errorf("it tells where the folder is: %s", f.Message)
		}
		if System().Holds() {
			w.fails(t, act(t, held, "read", name("../../secret")), fault.EffectFailed, "permission denied")
			w.fails(t, act(t, held, "write", name("../beside")), fault.EffectFailed, "permission denied")
		}
		w.Host.Close()
		if _, err := os.Stat(filepath.Join(state, "kept")); err != nil {
			t.Error(err)
		}
	}
}

// TestStateNeedsAPlace: without one, or where it is a link, nothing starts.
func TestStateNeedsAPlace(t *testing.T) {
	base := t.TempDir()
	must.NoError(t, os.Symlink(t.TempDir(), filepath.Join(base, "link")))
	for name, state := range map[string]func(string) (string, error){
		"none":     nil,
		"relative": func(string) (string, error) { return "given", nil },
		"a link":   func(string) (string, error) { return filepath.Join(base, "link"), nil },
	} {
		w := newGiven(t, state)
		held := w.grant(t, "given:x")
		w.fails(t, act(t, held, "variable"), fault.EffectFailed, "doesn't start")
		if !strings.Contains(w.log.String(), "state") {
			t.Errorf("%s: the log doesn't say why:\n%s", name, w.log.String())
		}
	}
}

// TestVariableIsGiven: the process of a grant has the variable that it names, and
// no other of the host's.
func TestVariableIsGiven(t *testing.T) {
	t.Setenv("PIF_TEST_ONE", "the first=1\n")
	t.Setenv("PIF_TEST_TWO", "the second")
	t.Setenv("PIF_TEST_EMPTY", "")
	w := newGiven(t, func(string) (string, error) { return filepath.Join(t.TempDir(), "given"), nil })
	for name, want := range map[string]value.Value{
		"PIF_TEST_ONE": value.Str("the first=1\n"), "PIF_TEST_EMPTY": value.Str(""), "PIF_TEST_UNSET": value.Unit{},
	} {
		held := w.grant(t, "given:"+name)
		if got := w.do(t, held, "variable"); got != want {
			t.Errorf("%s is %v, not %v", name, got, want)
		}
		if all := string(w.do(t, held, "environment").(value.Str)); strings.Contains(all, "the second") || strings.Contains(all, "PIF_TEST") {
			t.Errorf("%s: its environment is\n%s", name, all)
		}
	}
	t.Setenv("PIF_TEST_LONG", strings.Repeat("x", maxVariable+1))
	w.fails(t, act(t, w.grant(t, "given:PIF_TEST_LONG"), "variable"), fault.EffectFailed, "doesn't start")
}

func init() {
	roles["scratch"] = func() {
		s, err := NewScratch(os.Args[2])
		if err != nil {
			panic(err)
		}
		fmt.Println(s.Path)
		hang()
	}
}

// TestSweep: what a process left that was killed is removed by the next, and nothing
// else is: not what a living one has, nor what only looks like it.
func TestSweep(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.NoError(t, err)
	cmd := exec.Command(os.Args[0], "scratch", dir)
	out, err := cmd.StdoutPipe()
	must.NoError(t, err)
	must.NoError(t, cmd.Start())
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("it made none")
	}
	other := lines.Text()
	// What is like one, and nobody's that has ended.
	stays := []string{"mcp-pif-run-0123456789abcdef", "mcp-pif-run-0123456789abcdeF", "mcp-pif-run-0123456789abcde", "mcp-pif123456789", "mcp-pif-run-fedcba9876543210"}
	for i, name := range stays {
		must.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		if i == 0 { // others may enter it
			must.NoError(t, os.Chmod(filepath.Join(dir, name), 0o755))
		}
	}
	must.NoError(t, os.Remove(filepath.Join(dir, stays[4])))
	must.NoError(t, os.Symlink(stays[3], filepath.Join(dir, stays[4])))
	mine, err := NewScratch(dir)
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(filepath.Join(other, "file"), nil, 0o600))
	Sweep(dir)
	for _, path := range []string{mine.Path, other} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("of a process that lives: %v, %v", info, err)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	second, err := NewScratch(dir)
	must.NoError(t, err)
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("of a process that was killed: %v", err)
	}
	for _, s := range []*Scratch{mine, second} {
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != len(stays) {
		t.Errorf("left are %v, %v; expected %q", left, err, stays)
	}
}
