package fs

import (
	"path/filepath"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

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

// nameable reports whether a program could say the name of an entry.
func nameable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}
