package app

import (
	"log/slog"
	"path/filepath"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

// Installed is the plugins of a lock file, each hashed and open. Nil has none.
type Installed struct {
	Lock     *lock.Lock
	programs map[string]*lock.Executable // by kind
}

// OpenInstalled reads a plugin lock and hashes every program in it. One that isn't
// as it was added is an error: which plugins there are is for the operator to say,
// not for who could change a file. Nothing is started. An empty path is no lock.
func OpenInstalled(path string, log *slog.Logger) (*Installed, error) {
	if path == "" {
		return nil, nil
	}
	l, err := lock.Read(path)
	if err != nil {
		return nil, err
	}
	n := &Installed{Lock: l, programs: map[string]*lock.Executable{}}
	for i := range l.Entries {
		e := &l.Entries[i]
		x, err := l.Open(e)
		if err != nil {
			n.Close()
			return nil, err
		}
		n.programs[e.Kind] = x
		log.Info("a third-party plugin can be granted", "plugin", e.Name, "kind", e.Kind, "version", e.Version,
			"program", x.Identity[:12], "flags accepted", e.Accepted)
	}
	return n, nil
}

// Manifests is what decisions about their kinds are made by.
func (n *Installed) Manifests() []*caps.Manifest {
	if n == nil {
		return nil
	}
	all := make([]*caps.Manifest, len(n.Lock.Entries))
	for i := range n.Lock.Entries {
		all[i] = n.Lock.Entries[i].Counted()
	}
	return all
}

// Sources is how they are started: what was hashed, hashed again before each
// start.
func (n *Installed) Sources() []host.Source {
	if n == nil {
		return nil
	}
	all := make([]host.Source, len(n.Lock.Entries))
	for i := range n.Lock.Entries {
		e := &n.Lock.Entries[i]
		all[i] = SourceOf(n.programs[e.Kind])
		all[i].Manifest, all[i].Says, all[i].Plain = e.Counted(), e.Said(), e.Transport == lock.Unix
	}
	return all
}

// SourceOf is how a program is started that was hashed.
func SourceOf(x *lock.Executable) host.Source {
	s := host.Source{Path: x.Path, Args: x.Args, File: x.File, Check: x.Check}
	if folder := x.Folder(); folder != "" {
		s.Reads = []string{folder}
	}
	return s
}

// protected is the paths that no grant may reach.
func (n *Installed) protected() []string {
	if n == nil {
		return nil
	}
	return n.Lock.Protected()
}

// Identity is what a kind's program is, for the identity of grants; empty for the
// plugins that ship.
func (n *Installed) Identity(kind string) string {
	if n == nil || n.programs[kind] == nil {
		return ""
	}
	return n.programs[kind].Identity
}

// Close closes what is open.
func (n *Installed) Close() {
	if n == nil {
		return
	}
	for _, x := range n.programs {
		x.Close()
	}
}

// StateOfPlugin is the folder in which a kind's plugin keeps what lasts, of a server
// whose tools are kept at path. A profile has its own, so that one client's tools
// see nothing of another's; so has a file that the operator named, wherever that
// is. Where tools are kept in memory it is that of the default profile: a plugin's
// state lasts all the same.
func StateOfPlugin(path, kind string) (string, error) {
	owner, err := stateOfStore(path)
	return filepath.Join(owner, "plugins", FolderName(kind)), err
}

// stateOfStore is the folder of what belongs to a store beside it; of that in memory, those
// of the default profile.
func stateOfStore(path string) (string, error) {
	state, err := StateDir()
	if err != nil {
		return "", err
	}
	owner := filepath.Join(state, "profiles", DefaultProfile)
	if path != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		// One file by two names is one.
		if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
			abs = filepath.Join(dir, filepath.Base(abs))
		}
		all := filepath.Join(state, "profiles")
		if dir, err := filepath.EvalSymlinks(all); err == nil {
			all = dir
		}
		if owner = filepath.Dir(abs); filepath.Dir(owner) != all {
			owner = filepath.Join(state, "stores", FolderName(abs))
		}
	}
	return owner, nil
}
