package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// stateDir is where this user's state is: what the operator took back. It need
// not exist.
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mcp-pif"), nil
	}
	if runtime.GOOS == "windows" {
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "mcp-pif"), nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("there is no home directory for the state of mcp-pif: set XDG_STATE_HOME")
	}
	return filepath.Join(home, ".local", "state", "mcp-pif"), nil
}

// heads is the folder in which the newest event of each store is noted, so that it
// is noticed when a store lacks it later; "" where there is none.
func heads() string {
	state, err := stateDir()
	if err != nil {
		return ""
	}
	return filepath.Join(state, "heads")
}
