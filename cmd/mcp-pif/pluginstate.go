package main

import (
	"path/filepath"
)

// stateOfPlugin is the folder in which a kind's plugin keeps what lasts, of a server
// whose tools are kept at path. A profile has its own, so that one client's tools
// see nothing of another's; so has a file that the operator named, wherever that
// is. Where tools are kept in memory it is that of the default profile: a plugin's
// state lasts all the same.
func stateOfPlugin(path, kind string) (string, error) {
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
	return filepath.Join(owner, "plugins", folderName(kind)), nil
}
