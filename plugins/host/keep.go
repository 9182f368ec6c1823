package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// maxVariable is the bytes of a variable's value: what systems let a process have
// in its environment, less some room.
const maxVariable = 96 << 10

// KeepsState reports whether the processes of a manifest's plugin are given a folder
// that lasts, and so need [Options.State].
func KeepsState(m *caps.Manifest) bool {
	return slices.Contains(m.Privileges, wire.PrivilegeState)
}

// TakesVariable reports whether the processes of a manifest's plugin are given the
// environment variable that their grant names.
func TakesVariable(m *caps.Manifest) bool {
	return slices.Contains(m.Privileges, wire.PrivilegeVariable)
}

// give adds to a launch what the manifest's privileges ask of the host itself: the
// folder that lasts, and the variable or the command that the grant names. done closes what is
// open, when the process was started.
func (h *Host) give(l *launch, m *caps.Manifest, g *caps.Grant) (done func(), err error) {
	if TakesVariable(m) {
		if value, ok := os.LookupEnv(g.Scope); ok {
			if len(value) > maxVariable {
				return nil, fmt.Errorf("the environment variable %s has %d bytes; at most %d are given to a plugin", g.Scope, len(value), maxVariable)
			}
			l.more = append(l.more, wire.EnvVariable+"="+value)
		}
	}
	if slices.Contains(m.Privileges, wire.PrivilegeCommand) && h.command != nil {
		if c := h.command(g); c != nil {
			if err := l.giveCommand(*c, h.mode(g.Kind)); err != nil {
				return nil, fmt.Errorf("what %s is mapped to: %w", g.Scope, err)
			}
		}
	}
	if !KeepsState(m) {
		return func() {}, nil
	}
	if h.state == nil {
		return nil, errors.New("the plugin keeps state, and this host has no place for any")
	}
	path, err := h.state(m.Kind)
	if err != nil {
		return nil, fmt.Errorf("the folder of a plugin's state: %w", err)
	}
	if l.state, err = keeper(path); err != nil {
		return nil, fmt.Errorf("the folder of a plugin's state: %w", err)
	}
	return func() { l.state.Close() }, nil
}

// keeper makes a folder that only this user can enter, where there is none, and
// opens it. Its name is the one that the system has for it.
func keeper(path string) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%s isn't absolute", path)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is a link or a file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm() != 0o700:
		if err := os.Chmod(path, 0o700); err != nil {
			return nil, err
		}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(real)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return nil, errors.Join(fmt.Errorf("%s changed while it was opened", path), err, f.Close())
	}
	return f, nil
}
