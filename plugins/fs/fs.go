// Package fs is the plugin of the kind fs: files and directories below a
// directory that the operator granted. [Plugin] is all there is to import.
//
// The grant is an open directory, not a path, and stays that directory when it
// is renamed or replaced. Paths of programs are relative to the capability's
// root, with slashes; absolute ones, "..", ".", empty names, a slash at the end,
// control characters, invalid UTF-8 and too long names are refused. A path is
// walked from one open directory to the next, so nothing that is swapped
// meanwhile leads out. Links that lead inside are followed where the capability
// is a whole grant without denials, on the way and to what is read or listed;
// elsewhere, and at the end of a path that is changed, a link is refused. Links
// in /proc ("magic" ones) are never followed. Mounts below the root are part of it.
//
// Only regular files are opened, never a pipe, a device or a socket, and none
// with a second hard link unless the capability says links=ok and nothing is
// denied. What is denied is known by its path and by its identity, which is
// remembered since the capability was opened: neither a link, a new name nor
// other letters' case give it back. It isn't listed where listing it is denied;
// what lies above it is neither moved nor removed. A move counts as every verb.
//
// fs.write replaces a file as a whole or not at all: a temporary file beside it
// (.pif-….tmp, never listed), synced, renamed, the directory synced. The file
// keeps its permission bits; a new one gets 0644 less the umask. fs.append is
// one write at the end, synced, but a crash may leave a part of it.
//
// fs.read counts from and length in bytes; as utf8, a character belongs to the
// part that its first byte is in, so that parts that follow each other are the
// whole. fs.list and fs.glob give entries sorted by path; more than 1000 are a
// failure unless a limit says how many of them are wanted. Names that no
// program can say (invalid UTF-8, control characters) are left out.
//
// fs.go has the table of operations, one file each; scope.go opens and guards,
// walk.go walks, at.go and osroot.go are the two ways to the system.
package fs

import (
	"context"

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
			sdk.Op("write", "makes a file or replaces its content, as a whole or not at all", flags["write"], write),
			sdk.Op("append", "adds to the end of a file", flags["append"], appendTo),
			sdk.Op("list", "lists what is in a directory, sorted by path", flags["list"], list),
			sdk.Op("glob", "lists what matches a pattern, sorted by path", flags["glob"], glob),
			sdk.Op("stat", "tells what there is of a name, without following links", flags["stat"], stat),
			sdk.Op("mkdir", "makes a directory", flags["mkdir"], mkdir),
			sdk.Op("move", "gives a file or directory another name, which must be free", flags["move"], move),
			sdk.Op("remove", "removes a file, a link or an empty directory, with recursive also what is in it", flags["remove"], remove),
		},
	}
}
