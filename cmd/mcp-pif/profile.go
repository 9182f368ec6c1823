package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// inMemory is the store that doesn't last.
const inMemory = "memory"

// defaultProfile is whose tools those are of a client that doesn't say its name.
const defaultProfile = "default"

// storeOptions are the flags that say where tools and the journal are kept.
type storeOptions struct {
	store, profile string
}

// Where tools are kept without a flag, in words.
const (
	keptByClient = "by default in the file of the client's profile"
	keptNowhere  = "the default"
)

func (o *storeOptions) register(f *pflag.FlagSet, usually string) {
	f.StringVar(&o.store, "store", "", "keep tools and the journal in this `FILE`, or in \"memory\" ("+usually+")")
	f.StringVar(&o.profile, "profile", "", "keep them in the file of this `NAME`, such as a client's, in this user's state directory")
}

// given reports whether the flags say it.
func (o *storeOptions) given() bool { return o.store != "" || o.profile != "" }

func (o *storeOptions) check() error {
	if o.store != "" && o.profile != "" {
		return errors.New("--store and --profile both say where tools are kept: give one of them")
	}
	return nil
}

// path is the file that the flags mean, "" for memory. Where they don't say it,
// it is the file of the profile otherwise, or memory where that is "" too.
func (o *storeOptions) path(otherwise string) (string, error) {
	if err := o.check(); err != nil {
		return "", err
	}
	switch {
	case o.store == inMemory:
		return "", nil
	case o.store != "":
		return o.store, nil
	case o.profile != "":
		if names, err := profiles(); err == nil && slices.Contains(names, o.profile) {
			return folderPath(o.profile) // a folder's name, as messages show it
		}
		return folderPath(folderName(o.profile))
	case otherwise != "":
		return folderPath(folderName(otherwise))
	}
	return "", nil
}

// there is the file that a command about what is kept means: that of the flags,
// or of the only profile there is.
func (o *storeOptions) there() (string, error) {
	path, err := o.path("")
	if err != nil || path != "" {
		if _, missing := os.Stat(path); o.profile != "" && errors.Is(missing, fs.ErrNotExist) {
			names, _ := profiles()
			return "", fmt.Errorf("there is no profile %q ('mcp-pif tools profiles' lists them)%s", o.profile, cli.DidYouMean(cli.Closest(o.profile, names)))
		}
		return path, err
	}
	if o.store == inMemory {
		return "", errors.New("what is in memory is gone with its server, and seen with the server's tools history and journal while it runs: name a file with --store, or a --profile")
	}
	names, err := profiles()
	switch {
	case err != nil:
		return "", err
	case len(names) == 0:
		return "", errors.New("no tools yet: no server has run for this user; read another file with --store FILE")
	case len(names) > 1:
		return "", fmt.Errorf("there are several profiles (%s): choose one with --profile, or a file with --store", cli.Printable(strings.Join(names, ", ")))
	}
	return folderPath(names[0])
}

// journalFile is the name of a profile's store.
const journalFile = "journal.db"

// folderPath is where the store of the profile with this folder is.
func folderPath(folder string) (string, error) {
	state, err := stateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(state, "profiles", folder, journalFile), nil
}

// profiles is the folders of the profiles there are.
func profiles() ([]string, error) {
	state, err := stateDir()
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(globbed(state), "profiles", "*", journalFile))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(found))
	for i, path := range found {
		names[i] = filepath.Base(filepath.Dir(path))
	}
	return names, nil
}

// globbed is a path as a pattern that matches it alone.
func globbed(path string) string {
	if os.PathSeparator == '\\' {
		return path // there a pattern has no escapes, and a path no stars
	}
	return regexp.MustCompile(`[*?\[\\]`).ReplaceAllString(path, `\$0`)
}

var (
	safeName = regexp.MustCompile(`^[a-z0-9_][a-z0-9_.-]{0,63}$`)
	// hashedName is what folderName makes of an unsafe name.
	hashedName = regexp.MustCompile(`-[0-9a-f]{16}$`)
	// deviceName is what no file of Windows may be called.
	deviceName = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)
)

// folderName makes a file's name of a profile's, so that no two profiles share a
// folder: a safe name is itself, of any other what is safe is kept and the hash of
// the whole appended.
func folderName(name string) string {
	if safeName.MatchString(name) && !strings.HasSuffix(name, ".") && !deviceName.MatchString(name) && !hashedName.MatchString(name) {
		return name
	}
	kept := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '-'
	}, name)
	sum := sha256.Sum256([]byte(name))
	kept = strings.Trim(kept[:min(len(kept), 40)], "-")
	if kept == "" {
		kept = "client"
	}
	return kept + "-" + hex.EncodeToString(sum[:8])
}

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
