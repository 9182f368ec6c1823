package caps

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/filename"
)

// canonicalPath is "." for the directory the server was started in, ./a/b below
// it, or an absolute path.
func canonicalPath(s string) (string, error) {
	if strings.Contains(s, "*") {
		return "", errors.New("a path is one directory or one file, never a pattern")
	}
	if runtime.GOOS == "windows" {
		if strings.Contains(s, `\`) {
			return "", errors.New("write the path with / instead of \\")
		}
		if filepath.VolumeName(s) != "" {
			return canonicalAbs(s[:2], strings.TrimPrefix(s[2:], "/"))
		}
	}
	if s == "." || s == "./" {
		return ".", nil
	}
	if s == "/" {
		return "/", nil
	}
	if rest, ok := strings.CutPrefix(s, "/"); ok {
		return canonicalAbs("", rest)
	}
	rest := strings.TrimSuffix(strings.TrimPrefix(s, "./"), "/")
	if err := checkPath(rest); err != nil {
		return "", err
	}
	return "./" + rest, nil
}

func canonicalAbs(volume, rest string) (string, error) {
	rest = strings.TrimSuffix(rest, "/")
	if rest == "" && volume != "" {
		return volume + "/", nil
	}
	if err := checkPath(rest); err != nil {
		return "", err
	}
	return volume + "/" + rest, nil
}

// checkPath refuses what isn't plain names between slashes.
func checkPath(s string) error {
	for name := range strings.SplitSeq(s, "/") {
		switch name {
		case "":
			return errors.New("it has an empty part: write one / between names")
		case ".":
			return errors.New(`it has "." for a part: leave it out`)
		case "..":
			return errors.New(`".." is not allowed`)
		}
	}
	if runtime.GOOS == "windows" {
		return checkWindows(s)
	}
	return nil
}

// checkWindows refuses the names that Windows takes for something else.
func checkWindows(s string) error {
	if strings.ContainsAny(s, `\:`) {
		return errors.New(`it has \ or : in it`)
	}
	for name := range strings.SplitSeq(s, "/") {
		if !filepath.IsLocal(name) || strings.TrimRight(name, ". ") != name {
			return fmt.Errorf("%s is not a name of a file", quoted(name))
		}
	}
	return nil
}

// relative checks a path that a program gave, which is relative to its
// capability, and gives its one spelling: "." or names between slashes.
func relative(s string) (string, error) {
	if s == "" {
		return "", errors.New(`it is empty: "." is the directory itself`)
	}
	if err := plainText(s); err != nil {
		return "", err
	}
	if s == "." || s == "./" {
		return ".", nil
	}
	if absolute(s) {
		return "", errors.New("it is absolute: paths are relative to the capability's directory")
	}
	s = strings.TrimPrefix(s, "./")
	if strings.HasSuffix(s, "/") {
		return "", errors.New("it ends with a slash: leave that out, or write the name in the folder after it")
	}
	if err := checkPath(s); err != nil {
		return "", err
	}
	return s, nil
}

// below gives inner relative to outer, "." where they are the same, and false
// where it isn't in there. Both are canonical, or both relative; one relative
// and one absolute never meet here.
func below(outer, inner string) (string, bool) {
	o, i := bare(outer), bare(inner)
	switch {
	case o == i:
		return ".", true
	case o == ".":
		return i, !absolute(i)
	case strings.HasSuffix(o, "/"):
		rest, ok := strings.CutPrefix(i, o)
		return rest, ok
	}
	rest, ok := strings.CutPrefix(i, o+"/")
	return rest, ok
}

// absolute tells a canonical absolute path.
func absolute(s string) bool {
	return strings.HasPrefix(s, "/") || runtime.GOOS == "windows" && filepath.VolumeName(s) != ""
}

// bare is a path without a leading ./, so that the two spellings of a name are
// the same.
func bare(s string) string {
	if s == "./" {
		return "."
	}
	return strings.TrimPrefix(s, "./")
}

// join puts a path below another, neither with dots that lead anywhere.
func join(dir, name string) string {
	switch {
	case name == ".":
		return dir
	case dir == ".":
		return name
	}
	return path.Join(dir, name)
}

// inside gives the path of inner below outer, both absolute paths of this
// system, with / between names.
func inside(outer, inner string) (string, bool) {
	o, i := filepath.Clean(outer), filepath.Clean(inner)
	if foldsCase {
		o, i = strings.ToLower(o), strings.ToLower(i)
	}
	rel, err := filepath.Rel(o, i)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	if foldsCase && rel != "." {
		// The letters as they were: folding is for comparing only.
		if clean := filepath.Clean(inner); len(clean) == len(i) {
			rel = clean[len(clean)-len(rel):]
		}
	}
	return filepath.ToSlash(rel), true
}

// leads gives the path of inner below outer, absolute paths with links resolved, by all names that folders have: in other
// letters where the file system takes them for the same, or where they are mounted. Of what isn't there, names that some
// file system takes for the same are.
func leads(outer, inner string) (string, bool) {
	if rel, ok := inside(outer, inner); ok {
		return rel, true
	}
	var absent []string // the end of outer
	top, err := os.Lstat(outer)
	for dir := outer; err != nil; top, err = os.Lstat(dir) {
		if dir == filepath.Dir(dir) {
			return "", false
		}
		absent = slices.Insert(absent, 0, filepath.Base(dir))
		dir = filepath.Dir(dir)
	}
	var rest []string // the end of inner
	below := false    // whether its first name is there
	for dir := inner; ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err == nil && os.SameFile(top, info) && len(absent) <= len(rest) && (len(absent) == 0 || !below) && slices.EqualFunc(absent, rest[:len(absent)], filename.Alike) {
			return cmp.Or(path.Join(rest[len(absent):]...), "."), true
		}
		if dir == filepath.Dir(dir) {
			return "", false
		}
		rest, below = slices.Insert(rest, 0, filepath.Base(dir)), err == nil
	}
}

// foldsCase is set where file systems usually take A for a.
const foldsCase = runtime.GOOS == "windows" || runtime.GOOS == "darwin"

// pathInside gives inner below outer where both are relative to one root, and
// letters count as the file system counts them.
func pathInside(outer, inner string) (string, bool) {
	if foldsCase {
		outer, inner = strings.ToLower(outer), strings.ToLower(inner)
	}
	return below(outer, inner)
}

func split(s string) []string { return strings.Split(s, "/") }

// checkSegments refuses empty segments and those that many systems read as
// directions.
func checkSegments(s string) error {
	for i, segment := range split(s) {
		switch segment {
		case "":
			switch {
			case s == "":
			case i == 0:
				return errors.New("it begins with a slash: leave that out")
			case strings.HasSuffix(s, "/") && i == strings.Count(s, "/"):
				return errors.New("it ends with a slash: leave that out")
			}
			return errors.New("it has an empty segment")
		case ".", "..":
			return errors.New(`"." and ".." are no segments`)
		}
	}
	return nil
}

// checkPattern refuses what is no pattern of whole segments.
func checkPattern(s string) error {
	if err := checkSegments(s); err != nil {
		return err
	}
	return checkStars(split(s))
}

// checkStars allows stars as whole segments only, and ** in the last place.
func checkStars(segments []string) error {
	for i, segment := range segments {
		switch {
		case segment == "*", segment == "**" && i == len(segments)-1:
		case segment == "**":
			return errors.New("** comes last: it is all further segments")
		case strings.Contains(segment, "*"):
			return errors.New("a star stands for a whole segment: write * or **, not " + quoted(segment))
		}
	}
	return nil
}

// segmentsContain: everything that narrower matches, the pattern matches. A
// final ** is any number of segments, none too.
func segmentsContain(pattern, narrower []string) bool {
	for i, p := range pattern {
		if p == "**" && i == len(pattern)-1 {
			return true
		}
		if i == len(narrower) || narrower[i] == "**" && i == len(narrower)-1 || p != "*" && p != narrower[i] {
			return false
		}
	}
	return len(pattern) == len(narrower)
}

// segmentsCover: the pattern matches the segments as they are, stars in them
// being letters.
func segmentsCover(pattern, segments []string) bool {
	for i, p := range pattern {
		if p == "**" && i == len(pattern)-1 {
			return true
		}
		if i == len(segments) || p != "*" && p != segments[i] {
			return false
		}
	}
	return len(pattern) == len(segments)
}

// segmentsOverlap: something is matched by both.
func segmentsOverlap(a, b []string) bool {
	for i := 0; ; i++ {
		endA, endB := i == len(a), i == len(b)
		if !endA && a[i] == "**" && i == len(a)-1 || !endB && b[i] == "**" && i == len(b)-1 {
			return true
		}
		if endA || endB {
			return endA && endB
		}
		if a[i] != "*" && b[i] != "*" && a[i] != b[i] {
			return false
		}
	}
}

// segmentsBegin: something that the pattern matches begins, as text, with the segments as they are.
func segmentsBegin(pattern, segments []string) bool {
	for i, s := range segments {
		switch {
		case i == len(pattern):
			return false
		case pattern[i] == "**" && i == len(pattern)-1:
			return true
		case pattern[i] != "*" && pattern[i] != s && (i < len(segments)-1 || !strings.HasPrefix(pattern[i], s)):
			return false
		}
	}
	return true
}
