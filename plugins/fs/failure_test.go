package fs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestNoPathsOfTheMachine: whatever error the system gives, only the program's
// own path is in the failure.
func TestNoPathsOfTheMachine(t *testing.T) {
	const host = "/home/operator/granted"
	var errs []error
	for n := syscall.Errno(1); n < 134; n++ {
		errs = append(errs, n)
	}
	errs = append(errs, os.ErrNotExist, os.ErrExist, os.ErrPermission, os.ErrClosed, errLink, errEscapes, errLoop, errChanging,
		errClosed, errIrregular, errors.New("something in "+host))
	for _, err := range errs {
		for _, err := range []error{
			err,
			&os.PathError{Op: "openat", Path: host + "/a", Err: err},
			&os.LinkError{Op: "renameat2", Old: host + "/a", New: host + "/b", Err: err},
			&os.SyscallError{Syscall: "fsync", Err: err},
			fmt.Errorf("%s: %w", host, err),
			errors.Join(err, errors.New(host)),
		} {
			f, ok := errors.AsType[sdk.Failure](because("a", err))
			if !ok || f.Code == "" || !strings.Contains(f.Message, `"a"`) || strings.Contains(f.Message+f.Hint, host) || strings.Contains(f.Message, "PATH") {
				t.Errorf("%v: %+v", err, f)
			}
		}
	}
	for err, code := range map[error]string{
		syscall.ENOENT: "not_found", syscall.EEXIST: "exists", syscall.EISDIR: "not_a_file", syscall.ENOTDIR: "not_a_directory",
		syscall.ELOOP: "denied", syscall.EACCES: "denied", syscall.EPERM: "denied", syscall.EROFS: "denied", syscall.ENOTEMPTY: "conflict",
		syscall.EXDEV: "failed", syscall.ENAMETOOLONG: "invalid", syscall.EIO: "failed", errLink: "denied",
	} {
		if f, _ := errors.AsType[sdk.Failure](because("a", err)); f.Code != code {
			t.Errorf("%v: %s, expected %s", err, f.Code, code)
		}
	}
	if because("a", nil) != nil {
		t.Error("a failure of nothing")
	}
}

// TestQuotedPaths: a path in a message is bounded and does nothing to a terminal.
func TestQuotedPaths(t *testing.T) {
	for path, want := range map[string]string{
		"a b": `"a b"`, "\x1b[2J\n\u202e\xff": `"\x1b[2J\n\u202e\xff"`,
		strings.Repeat("x", 201): `"` + strings.Repeat("x", 200) + `"…`,
		strings.Repeat("é", 101): `"` + strings.Repeat("é", 100) + `"…`,
		strings.Repeat("日", 70):  `"` + strings.Repeat("日", 66) + `"…`,
	} {
		if got := quote(path); got != want {
			t.Errorf("%q: %s, expected %s", path, got, want)
		}
	}
}
