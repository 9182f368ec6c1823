package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"strconv"
	"strings"
	"syscall"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

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
