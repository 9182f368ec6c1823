// Package fs is the plugin of the kind fs: files and directories below one that
// the operator granted. It exports [Plugin]; fs.go has the table of operations,
// scope.go opens and guards, walk.go walks, at.go and osroot.go are the two ways to the
// system.
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
// never listed, is synced and renamed. Permission bits stay; a new file has 0644
// less the umask. One that a killed process left is removed when the grant's next
// process starts: its writer would have it locked. fs.append is one synced write; a crash may leave a part of it.
// fs.read counts bytes; as utf8, a character belongs to the part that its first
// byte is in, so parts that follow each other are the whole. fs.list and fs.glob
// sort by path; more than 1000 entries fail unless limit says how many are
// wanted. Names that no program can say are left out.
package fs

import (
	"context"
	"os"

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
