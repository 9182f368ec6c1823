package caps

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Programs is the paths that decide what a command starts: its program, where links
// on the way to it lie and lead, and where it would be looked for before; and what it
// may execute besides, unless it may write that itself.
func (c *Command) Programs() []string {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return nil
	}
	var paths []string
	if name := c.Args[0]; strings.ContainsAny(name, `/\`) {
		paths = append(paths, name)
	} else {
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			path := filepath.Join(dir, name)
			paths = append(paths, path)
			if info, err := os.Stat(path); err == nil && !info.IsDir() {
				break
			}
		}
	}
	for _, p := range c.Execute {
		if !slices.ContainsFunc(c.Write, func(w string) bool { _, in := inside(w, p); return in }) {
			paths = append(paths, p)
		}
	}
	var all []string
	for _, p := range paths {
		all = append(all, Ways(p)...)
	}
	return all
}

// maxLinks is how many links are followed to a file, as by most systems.
const maxLinks = 40

// Ways gives where each link on the way to a file lies, and the file: what takes the
// place of any of them is what the path names then.
func Ways(path string) []string {
	at, err := filepath.Abs(path)
	if err != nil {
		return []string{path}
	}
	var ways []string
	volume := filepath.VolumeName(at)
	root := volume + string(filepath.Separator)
	at, rest := root, strings.TrimPrefix(at[len(volume):], string(filepath.Separator))
	for links := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, string(filepath.Separator))
		if name == "" || name == "." {
			continue
		}
		next := filepath.Join(at, name) // ".." too: at has no links
		info, err := os.Lstat(next)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		ways = append(ways, next)
		to, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			break
		}
		if filepath.IsAbs(to) {
			at, to = root, to[len(filepath.VolumeName(to)):]
		}
		rest = to + string(filepath.Separator) + rest
	}
	return append(ways, at)
}

// keepsPrograms refuses a folder or file, one of its paths real, in which something
// may be changed where one of the programs lies in it, or it in a folder of them.
func keepsPrograms(roots, programs []string) error {
	for _, root := range roots {
		top, topErr := os.Stat(root)
		for _, p := range programs {
			info, err := os.Lstat(p)
			if _, in := inside(p, root); in && err == nil && info.IsDir() {
				return fmt.Errorf("it lies in %s, from which programs are executed, and could be changed: grant it with ro, or another folder", p)
			}
			_, in := inside(root, p)
			// One folder may be in two places.
			for dir := p; !in && topErr == nil && top.IsDir(); {
				above := filepath.Dir(dir)
				if above == dir {
					break
				}
				dir = above
				other, err := os.Stat(dir)
				in = err == nil && os.SameFile(top, other)
			}
			if in {
				return fmt.Errorf("it contains %s, which is executed, and could be changed: grant it with ro, or another folder", p)
			}
		}
	}
	return nil
}

// CheckWrites refuses what a resolved command may write where one of these programs
// lies in it, besides what it may execute itself.
func (c *Command) CheckWrites(programs []string) error {
	var own []string
	for _, p := range c.Execute {
		own = append(own, Ways(p)...)
	}
	programs = slices.DeleteFunc(slices.Clone(programs), func(p string) bool { return p != c.Path && slices.Contains(own, p) })
	for _, p := range c.Write {
		if err := keepsPrograms([]string{p, realPrefix(p)}, programs); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// maxNames is how many names in a folder are looked at for a program's others.
const maxNames = 100_000

// keepsNames refuses a folder in which a program has another name (a hard link), where
// what is changed by that name is the program.
func keepsNames(root string, programs []string) error {
	top, err := os.Stat(root)
	if err != nil {
		return err
	}
	var several []fs.FileInfo
	for _, p := range programs {
		if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() && namesOf(info) > 1 && sameDevice(info, top) {
			several = append(several, info)
		}
	}
	if len(several) == 0 {
		return nil
	}
	looked := 0
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if looked++; looked > maxNames {
			return fmt.Errorf("it has more than %d names, and one of them may be a program's that has several (hard links): grant it with ro, or without links=ok", maxNames)
		}
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil || namesOf(info) < 2 {
			return nil
		}
		if slices.ContainsFunc(several, func(p fs.FileInfo) bool { return os.SameFile(p, info) }) {
			return errors.New("it contains " + path + ", another name (hard link) of a program that is executed, and could be changed: grant it with ro, or another folder")
		}
		return nil
	})
}
