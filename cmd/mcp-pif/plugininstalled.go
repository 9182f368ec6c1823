package main

import (
	"log/slog"
	"path/filepath"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

// installed is the plugins of a lock file, each hashed and open. Nil has none.
type installed struct {
	lock     *lock.Lock
	programs map[string]*lock.Executable // by kind
}

// openInstalled reads a plugin lock and hashes every program in it. One that isn't
// as it was added is an error: which plugins there are is for the operator to say,
// not for who could change a file. Nothing is started. An empty path is no lock.
func openInstalled(path string, log *slog.Logger) (*installed, error) {
	if path == "" {
		return nil, nil
	}
	l, err := lock.Read(path)
	if err != nil {
		return nil, err
	}
	n := &installed{lock: l, programs: map[string]*lock.Executable{}}
	for i := range l.Entries {
		e := &l.Entries[i]
		x, err := l.Open(e)
		if err != nil {
			n.close()
			return nil, err
		}
		n.programs[e.Kind] = x
		log.Info("a third-party plugin can be granted", "plugin", e.Name, "kind", e.Kind, "version", e.Version,
			"program", x.Identity[:12], "flags accepted", e.Accepted)
	}
	return n, nil
}

// manifests is what decisions about their kinds are made by.
func (n *installed) manifests() []*caps.Manifest {
	if n == nil {
		return nil
	}
	all := make([]*caps.Manifest, len(n.lock.Entries))
	for i := range n.lock.Entries {
		all[i] = n.lock.Entries[i].Counted()
	}
	return all
}

// sources is how they are started: what was hashed, hashed again before each
// start.
func (n *installed) sources() []host.Source {
	if n == nil {
		return nil
	}
	all := make([]host.Source, len(n.lock.Entries))
	for i := range n.lock.Entries {
		e := &n.lock.Entries[i]
		all[i] = sourceOf(n.programs[e.Kind])
		all[i].Manifest, all[i].Says, all[i].Plain = e.Counted(), e.Said(), e.Transport == lock.Unix
	}
	return all
}

// sourceOf is how a program is started that was hashed.
func sourceOf(x *lock.Executable) host.Source {
	s := host.Source{Path: x.Path, Args: x.Args, File: x.File, Check: x.Check}
	if folder := x.Folder(); folder != "" {
		s.Reads = []string{folder}
	}
	return s
}

// protected is the paths that no grant may reach.
func (n *installed) protected() []string {
	if n == nil {
		return nil
	}
	return n.lock.Protected()
}

// identity is what a kind's program is, for the identity of grants; empty for the
// plugins that ship.
func (n *installed) identity(kind string) string {
	if n == nil || n.programs[kind] == nil {
		return ""
	}
	return n.programs[kind].Identity
}

// close closes what is open.
func (n *installed) close() {
	if n == nil {
		return
	}
	for _, x := range n.programs {
		x.Close()
	}
}

// stateOfPlugin is the folder in which a kind's plugin keeps what lasts, of a server
// whose tools are kept at path. A profile has its own, so that one client's tools
// see nothing of another's; so has a file that the operator named, wherever that
// is. Where tools are kept in memory it is that of the default profile: a plugin's
// state lasts all the same.
func stateOfPlugin(path, kind string) (string, error) {
	owner, err := stateOfStore(path)
	return filepath.Join(owner, "plugins", folderName(kind)), err
}

// stateOfStore is the folder of what belongs to a store beside it; of that in memory, those
// of the default profile.
func stateOfStore(path string) (string, error) {
	state, err := stateDir()
	if err != nil {
		return "", err
	}
	owner := filepath.Join(state, "profiles", defaultProfile)
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
			owner = filepath.Join(state, "stores", folderName(abs))
		}
	}
	return owner, nil
}
