package lock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// The bounds of a folder.
const (
	maxFiles  = 50_000
	maxFolder = 1 << 30 // bytes
	maxLevels = 64
)

// listingFormat is the first line of a listing.
const listingFormat = "mcp-pif folder 1\n"

// list gives the canonical listing of a folder: a line for each thing in it,
// sorted by path, with its mode as git has it and the SHA-256 of its content or,
// of a link, its target. It refuses links that lead out, and what is neither file,
// folder nor link. It leaves out the paths in without. visit is called for each, parents
// first; it may be nil.
//
//	40000 "lib"
//	100644 "lib/a.js" 9f86d08…
//	120000 "lib/b.js" "a.js"
func list(dir string, without []string, visit func(root *os.Root, name, mode string) error) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var lines []string
	var size int64
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if slices.Contains(without, name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if len(lines) >= maxFiles || strings.Count(name, "/") >= maxLevels {
			return fmt.Errorf("it has more than %d files or %d levels of folders", maxFiles, maxLevels)
		}
		if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
			return fmt.Errorf("the name %s has control characters or isn't UTF-8", Shown(name, 100))
		}
		mode, content, err := entryOf(root, name, &size)
		if err != nil {
			return err
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %q %s", mode, name, content))+"\n")
		if visit != nil {
			return visit(root, name, mode)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	byPath := func(line string) string { _, rest, _ := strings.Cut(line, " "); return rest }
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(byPath(a), byPath(b)) })
	return []byte(listingFormat + strings.Join(lines, "")), nil
}

// entryOf is one line's mode and content.
func entryOf(root *os.Root, name string, size *int64) (mode, content string, err error) {
	info, err := root.Lstat(name)
	if err != nil {
		return "", "", err
	}
	shown := Shown(name, 200)
	switch {
	case info.IsDir():
		return "40000", "", nil
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := root.Readlink(name)
		if err != nil {
			return "", "", err
		}
		// A root follows no link out of it.
		if _, err := root.Stat(name); err != nil || path.IsAbs(target) || filepath.IsAbs(target) {
			return "", "", fmt.Errorf("%s is a link out of the folder, or to nothing: %s", shown, Shown(target, 200))
		}
		if strings.ContainsFunc(target, unicode.IsControl) {
			return "", "", fmt.Errorf("the target of the link %s has control characters", shown)
		}
		return "120000", strconv.Quote(target), nil
	case !info.Mode().IsRegular():
		return "", "", fmt.Errorf("%s is not a file, folder or link", shown)
	}
	if *size += info.Size(); *size > maxFolder {
		return "", "", fmt.Errorf("it has more than %d bytes", maxFolder)
	}
	f, err := root.Open(name)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return "", "", fmt.Errorf("%s changed while it was read", shown)
	}
	mode = "100644"
	if executableMode(info.Mode()) {
		mode = "100755"
	}
	content, err = hashFile(f)
	return mode, content, err
}

// executableMode reports whether somebody may execute it, where files have that.
func executableMode(m fs.FileMode) bool { return runtime.GOOS == "windows" || m&0o111 != 0 }

// checkFolder holds a folder against the hash of its listing.
func checkFolder(dir, want string) error {
	listing, err := list(dir, nil, nil)
	if err != nil {
		return fmt.Errorf("its folder %s: %w", Shown(dir, 300), err)
	}
	if sum := sha256.Sum256(listing); hex.EncodeToString(sum[:]) != want {
		return fmt.Errorf("its folder %s was changed: something in it isn't what was added", Shown(dir, 300))
	}
	return nil
}

// copying is what the names of copies begin with that aren't whole yet. Who makes one has it locked.
const copying = ".new-"

// sweepCopies removes what was being copied when its process was killed. Where there are no locks it stays.
func sweepCopies(store string) {
	entries, _ := os.ReadDir(store)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), copying) || !e.IsDir() {
			continue
		}
		dir := filepath.Join(store, e.Name())
		f, err := os.Open(dir)
		if err != nil {
			continue
		}
		locked, err := statefile.TryLock(f)
		f.Close()
		if locked && err == nil {
			removeFolder(dir)
		}
	}
}

// newCopy makes the folder of a copy, which no other process sweeps away while held is open.
func (f *File) newCopy() (temp string, held *os.File, err error) {
	err = f.Alone(func() error {
		if err := os.MkdirAll(f.Store(), 0o755); err != nil {
			return err
		}
		sweepCopies(f.Store())
		if temp, err = os.MkdirTemp(f.Store(), copying+"*"); err != nil {
			return err
		}
		if held, err = os.Open(temp); err != nil {
			return err
		}
		_, err = statefile.TryLock(held)
		return err
	})
	return temp, held, err
}

// copyFolder copies a folder into the store, read-only. What was copied is what is
// hashed; isNew is not set if the copy was there before.
func (f *File) copyFolder(from string) (dir, sum string, isNew bool, err error) {
	// The lock may lie in the folder: it and its copies aren't copied.
	var own []string
	resolved, err := filepath.EvalSymlinks(from)
	if err != nil {
		return "", "", false, err
	}
	for _, name := range []string{f.Store(), f.Path, f.Path + ".lock"} {
		rel, err := filepath.Rel(resolved, name)
		if rel == "." {
			return "", "", false, fmt.Errorf("%s is the lock's own folder of copies", Shown(from, 300))
		}
		if err == nil && filepath.IsLocal(rel) {
			own = append(own, filepath.ToSlash(rel))
		}
	}
	temp, held, err := f.newCopy()
	defer func() {
		held.Close()
		if !isNew {
			_ = f.Alone(func() error { removeFolder(temp); return os.Remove(f.Store()) }) // if it is empty
		}
	}()
	if err != nil {
		return "", "", false, err
	}
	listing, err := list(from, own, func(root *os.Root, file, mode string) error { return copyEntry(root, file, mode, temp) })
	if err != nil {
		return "", "", false, fmt.Errorf("the folder %s: %w", Shown(from, 300), err)
	}
	copied, err := list(temp, nil, nil)
	if err != nil {
		return "", "", false, err
	}
	if !bytes.Equal(listing, copied) {
		return "", "", false, fmt.Errorf("the folder %s changed while it was copied", Shown(from, 300))
	}
	if err := freeze(temp); err != nil {
		return "", "", false, err
	}
	hash := sha256.Sum256(listing)
	sum = hex.EncodeToString(hash[:])
	dir = filepath.Join(f.Store(), sum[:24])
	err = f.Alone(func() error {
		if checkFolder(dir, sum) == nil {
			return nil
		}
		removeFolder(dir) // something that was changed
		held.Close()      // not every system renames what is open
		// Its own bits don't matter but on some systems.
		err := errors.Join(os.Chmod(temp, 0o755), os.Rename(temp, dir), os.Chmod(dir, 0o555))
		isNew = err == nil
		return err
	})
	return dir, sum, isNew, err
}

func copyEntry(root *os.Root, name, mode, to string) error {
	target := filepath.Join(to, filepath.FromSlash(name))
	switch mode {
	case "40000":
		return os.Mkdir(target, 0o755)
	case "120000":
		link, err := root.Readlink(name)
		if err != nil {
			return err
		}
		return os.Symlink(link, target)
	}
	in, err := root.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	bits := fs.FileMode(0o444)
	if mode == "100755" {
		bits = 0o555
	}
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, bits)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(bits), out.Close())
}

// freeze takes the right to write from every folder.
func freeze(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(name, 0o555)
	})
}

// removeFolder removes a copy, read-only as it is.
func removeFolder(dir string) {
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(name, 0o755)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// Discard removes a copy, unless an entry of the file names it, as it is now and folders reads
// it. What it removes lies right in the store, whatever the file says.
func (f *File) Discard(folder string, folders func() ([]string, error)) {
	if dir := f.Absolute(folder); filepath.Dir(dir) == f.Store() {
		_ = f.Alone(func() error {
			used, err := folders()
			if err == nil && !slices.Contains(used, folder) && notLinked(dir) == nil {
				removeFolder(dir)
				err = os.Remove(f.Store()) // if it is empty
			}
			return err
		})
	}
}

// Discard removes the copy of an entry's folder, if it has one and nothing in the file uses it.
func (l *Lock) Discard(p Program) { l.File.Discard(p.Folder, l.folders) }

// folders is the copies that the file names now.
func (l *Lock) folders() (all []string, err error) {
	now, err := ReadOrNew(l.Path)
	if err == nil {
		for _, e := range now.Entries {
			all = append(all, e.Program.Folder)
		}
	}
	return all, err
}
