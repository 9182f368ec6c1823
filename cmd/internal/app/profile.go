package app

import (
	"cmp"
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
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
)

// InMemory is the store that doesn't last.
const InMemory = "memory"

// DefaultProfile is whose tools those are of a client that doesn't say its name.
const DefaultProfile = "default"

// StoreOptions are the flags that say where tools and the journal are kept.
type StoreOptions struct {
	Store, Profile string
}

// Where tools are kept without a flag, in words.
const (
	KeptByClient = "by default in the file of the client's profile"
	KeptNowhere  = "the default"
)

func (o *StoreOptions) Register(f *pflag.FlagSet, usually string) {
	f.StringVar(&o.Store, "store", "", "the `FILE` of the tools and the journal, or \"memory\" ("+usually+")")
	f.StringVar(&o.Profile, "profile", "", "use the profile of this `NAME`, such as a client's, in this user's state directory")
}

// Given reports whether the flags say it.
func (o *StoreOptions) Given() bool { return o.Store != "" || o.Profile != "" }

func (o *StoreOptions) Check() error {
	if o.Store != "" && o.Profile != "" {
		return errors.New("--store and --profile both say where tools are kept: give one of them")
	}
	return nil
}

// Path is the file that the flags mean, "" for memory. Where they don't say it,
// it is the file of the profile otherwise, or memory where that is "" too.
func (o *StoreOptions) Path(otherwise string) (string, error) {
	if err := o.Check(); err != nil {
		return "", err
	}
	switch {
	case o.Store == InMemory:
		return "", nil
	case o.Store != "":
		if _, err := os.Stat(filepath.Dir(o.Store)); errors.Is(err, fs.ErrNotExist) { // a typo would begin anew without a word
			return "", fmt.Errorf("--store: there is no folder %s: correct the path, or make the folder", cli.Printable(filepath.Dir(o.Store)))
		}
		return o.Store, nil
	case o.Profile != "":
		if names, err := Profiles(); err == nil && slices.Contains(names, o.Profile) {
			return FolderPath(o.Profile) // a folder's name, as messages show it
		}
		return FolderPath(FolderName(o.Profile))
	case otherwise != "":
		return FolderPath(FolderName(otherwise))
	}
	return "", nil
}

// There is the file that a command about what is kept means: that of the flags,
// or of the only profile there is.
func (o *StoreOptions) There() (string, error) {
	path, err := o.Path("")
	if err != nil || path != "" {
		if _, missing := os.Stat(path); o.Profile != "" && errors.Is(missing, fs.ErrNotExist) {
			names, _ := Profiles()
			return "", fmt.Errorf("there is no profile %q ('mcp-pif tools profiles' lists them)%s", o.Profile, cli.DidYouMean(cli.Closest(o.Profile, names)))
		}
		return path, err
	}
	if o.Store == InMemory {
		return "", errors.New("what is in memory is gone with its server, and seen with the server's tools history and journal while it runs: name a file with --store, or a --profile")
	}
	names, err := Profiles()
	switch {
	case err != nil:
		return "", err
	case len(names) == 0:
		return "", errors.New("nothing is kept yet: no server has run for this user; --store FILE reads another file")
	case len(names) > 1:
		return "", fmt.Errorf("there are several profiles (%s): choose one with --profile, or a file with --store", cli.Printable(strings.Join(names, ", ")))
	}
	return FolderPath(names[0])
}

// JournalFile is the name of a profile's store.
const JournalFile = "journal.db"

// FolderPath is where the store of the profile with this folder is.
func FolderPath(folder string) (string, error) {
	state, err := StateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(state, "profiles", folder, JournalFile), nil
}

// Profiles is the folders of the profiles there are.
func Profiles() ([]string, error) {
	state, err := StateDir()
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(globbed(state), "profiles", "*", JournalFile))
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
	SafeName = lazyregexp.New(`^[a-z0-9_][a-z0-9_.-]{0,63}$`)
	// hashedName is what folderName makes of an unsafe name.
	hashedName = lazyregexp.New(`-[0-9a-f]{16}$`)
	// DeviceName is what no file of Windows may be called.
	DeviceName = lazyregexp.New(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)
)

// FolderName makes a file's name of a profile's, so that no two profiles share a
// folder: a safe name is itself, of any other what is safe is kept and the hash of
// the whole appended.
func FolderName(name string) string {
	if SafeName.MatchString(name) && !strings.HasSuffix(name, ".") && !DeviceName.MatchString(name) && !hashedName.MatchString(name) {
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
	kept = cmp.Or(kept, "client")
	return kept + "-" + hex.EncodeToString(sum[:8])
}

// StateDir is where this user's state is: what the operator took back. It need
// not exist.
func StateDir() (string, error) {
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

// Heads is the folder in which the newest event of each store is noted, so that it
// is noticed when a store lacks it later; "" where there is none.
func Heads() string {
	state, err := StateDir()
	if err != nil {
		return ""
	}
	return filepath.Join(state, "heads")
}
