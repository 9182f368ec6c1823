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
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// An Executable is a program that was hashed and is as its entry says. It is safe
// for concurrent use.
type Executable struct {
	// File is what is executed, open; what was hashed. Close it after the last
	// process was started.
	File *os.File
	// Path is its path, and Args what it is given.
	Path string
	Args []string
	// Identity is one hash over all that it is.
	Identity string

	sum     string
	folder  string // absolute; "" for a file alone
	listing string
}

// Check hashes the program again: the open file, and what is in the folder now.
func (x *Executable) Check() error {
	sum, err := hashFile(x.File)
	if err != nil {
		return err
	}
	if sum != x.sum {
		return errors.New("its executable was changed since it was checked")
	}
	if x.folder == "" {
		return nil
	}
	return checkFolder(x.folder, x.listing)
}

// Folder is the folder that it is run in, absolute; empty for a file alone.
func (x *Executable) Folder() string { return x.folder }

// Close closes the file.
func (x *Executable) Close() error { return x.File.Close() }

// Open finds an entry's program and hashes it. Anything else than what was added
// is an error that says what is wrong and what can be done.
func (l *Lock) Open(e *Entry) (*Executable, error) {
	x, err := l.OpenProgram(&e.Program)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w; if you changed it, run `mcp-pif plugin upgrade %s`; otherwise find out who did", e.Name, err, e.Name)
	}
	return x, nil
}

// OpenProgram is [Lock.Open] of a program that needn't be in the lock.
func (f *File) OpenProgram(p *Program) (_ *Executable, err error) {
	x := &Executable{sum: p.SHA256, listing: p.Listing}
	if p.Folder != "" {
		x.folder = f.Absolute(p.Folder)
		if filepath.Dir(x.folder) != f.Store() {
			return nil, errors.New("its folder isn't one of those beside the lock")
		}
		if err := notLinked(x.folder); err != nil {
			return nil, err
		}
		if err := checkFolder(x.folder, p.Listing); err != nil {
			return nil, err
		}
	}
	args := p.Command
	if p.File != "" {
		x.Path = f.Absolute(p.File)
	} else {
		x.Path = filepath.Join(x.folder, filepath.FromSlash(p.Command[0]))
		args = args[1:]
	}
	if err := notLinked(x.Path); err != nil {
		return nil, err
	}
	if x.File, err = openRegular(x.Path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			x.File.Close()
		}
	}()
	sum, err := hashFile(x.File)
	if err != nil {
		return nil, err
	}
	if x.sum == "" {
		x.sum = sum // the listing had it
	}
	if sum != x.sum {
		return nil, fmt.Errorf("its executable %s was changed: its SHA-256 is %s…, and %s… was added", Shown(x.Path, 300), sum[:12], x.sum[:12])
	}
	x.Args = InFolder(x.folder, args)
	all := sha256.Sum256([]byte(x.sum + "\x00" + x.listing))
	x.Identity = hex.EncodeToString(all[:])
	return x, nil
}

// InFolder gives arguments, those that name something in a folder as its path.
func InFolder(folder string, args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = arg
		if name := filepath.FromSlash(arg); filepath.IsLocal(name) {
			if _, err := os.Lstat(filepath.Join(folder, name)); err == nil {
				out[i] = filepath.Join(folder, name)
			}
		}
	}
	return out
}

// InPath gives a command for a folder, its first word found as a shell does: a bare one that is no file of the
// folder is a program of PATH.
func InPath(folder string, command []string) []string {
	if command[0] == filepath.Base(command[0]) {
		if _, err := os.Lstat(filepath.Join(folder, command[0])); errors.Is(err, fs.ErrNotExist) {
			if found, err := exec.LookPath(command[0]); err == nil && filepath.IsAbs(found) {
				return append([]string{found}, command[1:]...)
			}
		}
	}
	return command
}

// notLinked refuses a path that links lead elsewhere.
func notLinked(path string) error {
	real, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is missing", Shown(path, 300))
	case err != nil:
		return err
	case real != path:
		return fmt.Errorf("%s is reached by a link now, to %s", Shown(path, 300), Shown(real, 300))
	}
	return nil
}

// openRegular opens a regular file that is no link, without waiting for what
// isn't one.
func openRegular(path string) (*os.File, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", Shown(path, 300))
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err != nil || !os.SameFile(before, after) {
		return nil, errors.Join(fmt.Errorf("%s changed while it was opened", Shown(path, 300)), err, f.Close())
	}
	if err := everybodys(path, after); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// everybodys refuses what every user can change: a lock says which programs are
// started, and a program may be written between its hash and its start. In a folder
// with the sticky bit nobody replaces what is another's.
func everybodys(path string, info fs.FileInfo) error {
	if info.Mode()&0o002 == 0 || info.IsDir() && info.Mode()&fs.ModeSticky != 0 || runtime.GOOS == "windows" {
		return nil
	}
	return fmt.Errorf("every user can write to %s (its mode is %#o): chmod o-w it", Shown(path, 300), info.Mode().Perm())
}

// hashFile is the SHA-256 of an open file, whatever its offset.
func hashFile(f *os.File) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, 1<<62)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Locate finds a program that is to be added: an executable, or a folder with the
// command that runs its files, whose first word is a file in the folder, a program of PATH
// or an absolute path. A folder is copied beside the lock. The entry's program is what it gives;
// undo takes the copy back, unless an entry names it by then.
func (l *Lock) Locate(path string, command []string) (_ Program, undo func(), err error) {
	return l.File.Locate(path, command, l.folders)
}

// Locate is [Lock.Locate] for a file whose entries name the folders.
func (f *File) Locate(path string, command []string, folders func() ([]string, error)) (_ Program, undo func(), err error) {
	undo = func() {}
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return Program{}, undo, err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return Program{}, undo, err
	}
	if !info.IsDir() {
		if len(command) > 0 {
			return Program{}, undo, errors.New("a command is for a folder; a file is executed as it is")
		}
		p, err := f.executable(abs)
		return p, undo, err
	}
	if len(command) == 0 {
		return Program{}, undo, errors.New("a folder needs the command that runs its files: FOLDER INTERPRETER [FILE…], such as ./weather node main.js")
	}
	p := Program{Command: command}
	command = InPath(abs, command)
	if filepath.IsAbs(command[0]) {
		interpreter, err := filepath.EvalSymlinks(command[0])
		if err != nil {
			return Program{}, undo, err
		}
		if p, err = f.executable(interpreter); err != nil {
			return Program{}, undo, err
		}
		p.Command = command[1:]
	} else {
		p.Command = append([]string{filepath.ToSlash(filepath.Clean(filepath.FromSlash(command[0])))}, command[1:]...)
		if !filepath.IsLocal(filepath.FromSlash(p.Command[0])) {
			return Program{}, undo, fmt.Errorf("%s isn't in the folder; name an interpreter elsewhere by its absolute path", Shown(command[0], 100))
		}
		program, err := openRegular(filepath.Join(abs, filepath.FromSlash(p.Command[0])))
		if err != nil {
			return Program{}, undo, err
		}
		err = errors.Join(runnable(program), program.Close())
		if err != nil {
			return Program{}, undo, err
		}
	}
	folder, listing, isNew, err := f.copyFolder(abs)
	if err != nil {
		return Program{}, undo, err
	}
	p.Folder, p.Listing = f.rel(folder), listing
	if isNew {
		undo = func() { f.Discard(p.Folder, folders) }
	}
	return p, undo, nil
}

// executable is a program that is one file.
func (f *File) executable(path string) (Program, error) {
	program, err := openRegular(path)
	if err != nil {
		return Program{}, err
	}
	defer program.Close()
	if err := runnable(program); err != nil {
		return Program{}, err
	}
	sum, err := hashFile(program)
	return Program{File: f.rel(path), SHA256: sum}, err
}

// runnable refuses what isn't executed as it is, or as somebody else.
func runnable(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	name := Shown(f.Name(), 300)
	if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return fmt.Errorf("%s runs as somebody else (setuid)", name)
	}
	if !executableMode(info.Mode()) {
		return fmt.Errorf("%s isn't executable", name)
	}
	head := make([]byte, 2)
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if bytes.Equal(head, []byte("#!")) {
		return fmt.Errorf("%s is a script: what is executed is its interpreter, which wouldn't be hashed; name the interpreter itself, after your program's folder: ./weather /usr/bin/python3 main.py", name)
	}
	return nil
}
