package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// Folders of the system's libraries, and what its loaders and libraries read
// besides: OpenSSL, in Node.js, doesn't start where its configuration is refused.
var (
	libraryFolders = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"}
	loaderFiles    = []string{
		"/etc/ld.so.cache", "/etc/ld-musl-x86_64.path", "/etc/ld-musl-aarch64.path",
		"/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf",
	}
)

// Program gives the rules that executing a file needs: the file itself and,
// where it is linked dynamically, the system's loader and libraries. For a
// script that starts with #! it is the script and its interpreter's. Only the
// system's own loaders are accepted: which file a binary calls its loader is its
// author's choice, and no way to have that file opened to it.
func Program(name string) ([]Rule, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rules := []Rule{{Path: name, Access: Execute}}
	interpreter, err := shebang(f)
	if err != nil {
		return nil, err
	}
	if interpreter == "" {
		more, err := libraries(f)
		return append(rules, more...), err
	}
	in, err := os.Open(interpreter)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if second, err := shebang(in); err != nil || second != "" {
		return nil, fmt.Errorf("%s: its interpreter %s is a script itself", name, interpreter)
	}
	more, err := libraries(in)
	return append(append(rules, Rule{Path: interpreter, Access: Execute}), more...), err
}

// shebang is the interpreter that a script names, or "".
func shebang(r io.ReaderAt) (string, error) {
	head := make([]byte, 256)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	line, isScript := bytes.CutPrefix(head[:n], []byte("#!"))
	if !isScript {
		return "", nil
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) == 0 || !path.IsAbs(fields[0]) {
		return "", errors.New("the script names no interpreter")
	}
	return fields[0], nil
}

// libraries is the rules for a binary's loader and libraries; none for a static
// one.
func libraries(r io.ReaderAt) ([]Rule, error) {
	loader, err := loaderOf(r)
	if err != nil || loader == "" {
		return nil, err
	}
	if !systemLoader(loader) {
		return nil, fmt.Errorf("the binary asks for the loader %.100q, which is none of the system's: link it statically", loader)
	}
	rules := []Rule{{Path: loader, Access: Execute}}
	for _, dir := range libraryFolders {
		rules = append(rules, Rule{Path: dir, Access: Read, Optional: true})
	}
	for _, file := range loaderFiles {
		rules = append(rules, Rule{Path: file, Access: Read, Optional: true})
	}
	return rules, nil
}

// systemLoader reports whether a name is a system's dynamic loader: ld-….so… or
// ld.so… in a folder of libraries, or in one folder below (of an architecture).
func systemLoader(name string) bool {
	if base := path.Base(name); path.Clean(name) != name || !strings.Contains(base, ".so") ||
		!strings.HasPrefix(base, "ld-") && !strings.HasPrefix(base, "ld.so") && !strings.HasPrefix(base, "ld64.so") {
		return false
	}
	return slices.ContainsFunc(libraryFolders, func(dir string) bool {
		in := path.Dir(name)
		return in == dir || path.Dir(in) == dir
	})
}

// The parts of the ELF format that are read, by its specification (System V ABI,
// chapters 4 and 5), for 64-bit little-endian files.
const (
	elfHeader      = 64
	elfProgramSize = 56
	elfMaxPrograms = 256
	elfInterpreter = 3 // PT_INTERP
)

// loaderOf is what a binary names as its dynamic loader (PT_INTERP), or "" for a
// static one. Nothing that the file says is believed further than that.
func loaderOf(r io.ReaderAt) (string, error) {
	head := make([]byte, elfHeader)
	if _, err := r.ReadAt(head, 0); err != nil || !bytes.HasPrefix(head, []byte("\x7fELF")) {
		return "", errors.New("the executable is not an ELF binary (a script is started by its interpreter, as an argument)")
	}
	if head[4] != 2 || head[5] != 1 {
		return "", errors.New("the executable is not a 64-bit little-endian binary")
	}
	at := binary.LittleEndian.Uint64(head[32:])
	size, count := binary.LittleEndian.Uint16(head[54:]), binary.LittleEndian.Uint16(head[56:])
	if size != elfProgramSize || count > elfMaxPrograms || at > 1<<40 {
		return "", errors.New("the executable has no valid program headers")
	}
	table := make([]byte, int(size)*int(count))
	if _, err := r.ReadAt(table, int64(at)); err != nil {
		return "", errors.New("the executable ends before its program headers")
	}
	for ; len(table) > 0; table = table[elfProgramSize:] {
		if binary.LittleEndian.Uint32(table) != elfInterpreter {
			continue
		}
		from, length := binary.LittleEndian.Uint64(table[8:]), binary.LittleEndian.Uint64(table[32:])
		if from > 1<<40 || length == 0 || length > 4096 {
			return "", errors.New("the executable has no valid loader entry")
		}
		name := make([]byte, length)
		if _, err := r.ReadAt(name, int64(from)); err != nil {
			return "", errors.New("the executable ends before the name of its loader")
		}
		text, _, _ := strings.Cut(string(name), "\x00")
		return text, nil
	}
	return "", nil
}
