// Package fs is the plugin of the kind fs: files and directories below one that
// the operator granted. It exports [Plugin]; fs.go has the table of operations,
// scope.go opens and guards, dir.go walks, at.go and osroot.go are the two ways to the
// system, and turn.go has one change of a content at a time in a folder.
//
// The grant is an open directory and stays that one when it is renamed or
// replaced. Paths are names between slashes, relative to the capability's root;
// "..", absolute and empty names, a slash at the end, control characters and
// invalid UTF-8 are refused. A path is walked from one open directory to the next,
// so nothing that is swapped meanwhile leads out. Links that lead inside are
// followed on the way, and to what is read or listed, where the capability is a
// whole grant without denials; else, and in the place of what is changed, a link
// is refused. Mounts below the root are part of it.
//
// Only regular files are opened, never a pipe, device or socket, nor a file with
// a second hard link, unless the capability says links=ok and nothing is denied.
// What is denied is known by its path and by its identity since the capability
// was opened, so no link, new name or other case of letters gives it back; it
// isn't listed, and what lies above it is neither moved nor removed. A move
// counts as every verb.
//
// fs.write replaces a file as a whole or not at all: a temporary file beside it,
// never listed, is synced and renamed. With was it does so only if the file is what
// the program read: no write or append of the same process comes between, nor
// another process's write with was, where the system has locks. Permission bits stay; a new file has 0644
// less the umask. One that a killed process left is removed when the grant's next
// process starts: its writer would have it locked. fs.append is one synced write; a crash may leave a part of it.
// fs.read counts bytes; as utf8, a character belongs to the part that its first
// byte is in, so parts that follow each other are the whole. fs.list and fs.glob
// sort by path; more than 1000 entries fail unless limit says how many are
// wanted. Names that no program can say are left out.
package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// Plugin returns the plugin of the kind fs.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Kind:    "fs",
		Version: "1.0.0",
		Doc:     "reads and changes files and directories below a directory",
		Scope:   sdk.Path,
		Options: map[string][]string{"links": {"ok"}},
		Begin: func(f *os.File) {
			if root, err := openRoot(f); err == nil {
				sweepAll(root)
				root.close()
			}
		},
		Open: func(_ context.Context, c sdk.Capability) (any, error) {
			if c.Root == nil {
				return nil, sdk.Fail("invalid", "a capability of the kind fs needs a directory")
			}
			root, err := openRoot(c.Root)
			if err != nil {
				return nil, because(".", err)
			}
			return open(c, root)
		},
		Operations: []sdk.Operation{
			sdk.Op("read", "gives the content of a file, or a part of it", flags["read"], read),
			sdk.Op("write", "makes a file or replaces its content, as a whole or not at all", flags["write"], write, sdk.Once("create", "only"), sdk.Once("was", "")),
			sdk.Op("append", "adds to the end of a file", flags["append"], appendTo),
			sdk.Op("list", "lists what is in a directory, sorted by path", flags["list"], list),
			sdk.Op("glob", "lists what matches a pattern, sorted by path", flags["glob"], glob),
			sdk.Op("stat", "returns type, size and modification time, without following symlinks", flags["stat"], stat),
			sdk.Op("mkdir", "makes a directory", flags["mkdir"], mkdir),
			sdk.Op("move", "gives a file or directory another name, which must be free", flags["move"], move),
			sdk.Op("remove", "removes a file, a link or an empty directory, with recursive also what is in it", flags["remove"], remove),
		},
	}
}

const (
	maxPathBytes = 4096 // bytes
	maxNameBytes = 255  // bytes, as on nearly every file system
)

// split takes a path of a program apart into names: none for "." and "./". It
// refuses whatever a system could take for something else than names below a
// directory: absolute paths, "..", a slash at the end, empty names, control
// characters, and on Windows devices, drives, streams and backslashes.
func split(path string) ([]string, error) {
	bad := func(why string) error {
		return sdk.Fail("invalid", "the path %s %s", quote(path), why)
	}
	switch {
	case path == "":
		return nil, sdk.Fail("invalid", "the path is empty").WithHint(`Write "." for the capability's root.`)
	case len(path) > maxPathBytes:
		return nil, sdk.Fail("invalid", "the path %s has %d bytes; at most %d are possible", quote(path), len(path), maxPathBytes)
	case !utf8.ValidString(path):
		return nil, bad("isn't UTF-8")
	case strings.ContainsFunc(path, unicode.IsControl):
		return nil, bad("has a control character in it")
	}
	rest := strings.TrimPrefix(path, "./")
	if path == "." || rest == "" {
		return nil, nil
	}
	if strings.HasPrefix(path, "/") || filepath.VolumeName(path) != "" {
		return nil, sdk.Fail("invalid", "the path %s is absolute", quote(path)).WithHint("Paths are relative to the capability's root.")
	}
	if strings.HasSuffix(path, "/") {
		return nil, bad("ends in a slash: leave it out")
	}
	names := strings.Split(rest, "/")
	for _, name := range names {
		switch {
		case name == "":
			return nil, bad("has an empty name in it")
		case name == ".." || name == ".":
			return nil, bad("has the name " + name + " in it: paths go down only")
		case len(name) > maxNameBytes:
			return nil, sdk.Fail("invalid", "the name %s has %d bytes; at most %d are possible", quote(name), len(name), maxNameBytes)
		case isTemporary(name):
			return nil, bad("has a name in it that is kept for writing files")
		case runtime.GOOS == "windows" && odd(name):
			return nil, bad("has a name in it that Windows takes for something else")
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(rest)) {
		return nil, bad("isn't below the capability's root")
	}
	return names, nil
}

// odd reports names that Windows doesn't take literally: streams of a file,
// patterns, and ends that it drops.
func odd(name string) bool {
	return strings.ContainsAny(name, `<>:"|?*\`) || strings.TrimRight(name, ". ") != name
}

// quote returns a path as messages show it: as the program said it, bounded, and
// without anything that acts on a terminal.
func quote(path string) string {
	const most = 200
	if len(path) > most {
		return strconv.Quote(display.Prefix(path, most)) + "…"
	}
	return strconv.Quote(path)
}

// because turns an error of the system into a failure about a path. No text of
// the system's but its words for an error number gets through: the others hold
// paths of this machine.
func because(path string, err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[sdk.Failure](err); ok {
		return f
	}
	name := quote(path)
	for _, c := range reasons {
		if errors.Is(err, c.err) {
			f := sdk.Fail(c.code, "%s", strings.ReplaceAll(c.says, "PATH", name))
			f.Hint, f.Retryable = c.hint, c.passes
			return f
		}
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return sdk.Fail("failed", "%s: the system says: %s", name, number.Error())
	}
	return sdk.Fail("failed", "%s: the system refused for a reason it doesn't name", name)
}

// inPart is because of what was done in part, where some was, with words for that.
func inPart(path string, err error, some bool, format string, args ...any) error {
	err = because(path, err)
	if f, ok := errors.AsType[sdk.Failure](err); ok && some {
		return sdk.Fail("unknown", "%s"+format, append([]any{f.Message}, args...)...)
	}
	return err
}

// reasons is the errors that have a failure of their own, the first that fits.
var reasons = []struct {
	err        error
	code, says string
	hint       string
	passes     bool
}{
	{context.Canceled, "timeout", "PATH: stopped before it was done", "", false},
	{context.DeadlineExceeded, "timeout", "PATH: not done in time", "", true},
	{errClosed, "failed", "PATH: the capability is closed", "", false},
	{errLink, "denied", "PATH is a link, or lies behind one; links aren't followed here", "Use the path that the link leads to, if it is within the capability's root.", false},
	{errEscapes, "denied", "PATH lies behind a link that leads out of the capability's root", "", false},
	{errChanging, "conflict", "PATH is being replaced again and again", "", true},
	{errLoop, "denied", "PATH lies behind too many links", "", false},
	{syscall.ELOOP, "denied", "PATH lies behind too many links", "", false},
	{errIrregular, "not_a_file", "PATH is neither a file nor a directory; only files can be opened", "", false},
	{syscall.EISDIR, "not_a_file", "PATH is a directory", "", false},
	{syscall.ENOTEMPTY, "conflict", "PATH is a directory that isn't empty", "Set recursive to remove what is in it, too.", false},
	{iofs.ErrNotExist, "not_found", "PATH not found", "", false},
	{iofs.ErrExist, "exists", "PATH exists already", "", false},
	{syscall.ENOTDIR, "not_a_directory", "PATH is not a directory, or goes through a file", "", false},
	{iofs.ErrPermission, "denied", "PATH: the operating system doesn't permit it", "", false},
	{syscall.EROFS, "denied", "PATH is on a read-only file system", "", false},
	{syscall.ENAMETOOLONG, "invalid", "PATH has too long a name for this file system", "", false},
	{syscall.EILSEQ, "invalid", "PATH has a name that this file system can't hold", "", false},
	{syscall.EXDEV, "failed", "PATH: the two places are on different file systems", "Write the content at the new place and remove the old one.", false},
	{syscall.ENOSPC, "failed", "PATH: there is no space left", "", false},
	{syscall.EDQUOT, "failed", "PATH: the disk quota is used up", "", false},
	{syscall.EFBIG, "failed", "PATH: larger than a file may be here", "", false},
	{syscall.EBUSY, "conflict", "PATH is in use by the operating system", "", true},
	{syscall.ETXTBSY, "conflict", "PATH is a program that is running", "", true},
	{syscall.EMFILE, "failed", "PATH: too many files are open", "", true},
	{syscall.ENFILE, "failed", "PATH: too many files are open", "", true},
}
