package kv

import (
	"context"
	"database/sql"
	"errors"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// because turns an error of the store into a failure. No text of the system's or
// of SQLite's gets through: they hold paths of this machine.
func because(err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[sdk.Failure](err); ok {
		return f
	}
	switch {
	case errors.Is(err, context.Canceled):
		return sdk.Fail("timeout", "stopped before it was done")
	case errors.Is(err, context.DeadlineExceeded):
		return sdk.Fail("timeout", "not done in time").WithRetry()
	case errors.Is(err, errClosed), errors.Is(err, sql.ErrConnDone):
		return sdk.Fail("failed", "the capability is closed")
	case errors.Is(err, errUnknown):
		return sdk.Fail("unknown", "%s: it may have been kept, or not", errUnknown).WithHint("Look with kv.entry before doing it again.")
	case errors.Is(err, errForeign), errors.Is(err, errNewer), errors.Is(err, errNoWAL):
		return sdk.Fail("failed", "%s", first(err, errForeign, errNewer, errNoWAL)).WithHint("Tell the user: only the operator can mend that.")
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return errFull
	}
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return sdk.Fail("failed", "the file of the store can't be used").WithHint("Tell the user: the server's log says more.")
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return errFull
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return sdk.Fail("conflict", "other servers write to the store all the time").WithRetry()
	case sqlite3.SQLITE_INTERRUPT:
		return sdk.Fail("timeout", "stopped before it was done")
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return sdk.Fail("failed", "the file of the store is damaged").WithHint("Tell the user: only the operator can mend that, with a copy.")
	}
	return sdk.Fail("failed", "the file of the store can't be used").WithHint("Tell the user: the server's log says more.")
}

// first returns the first of some errors that err is.
func first(err error, of ...error) error {
	for _, one := range of {
		if errors.Is(err, one) {
			return one
		}
	}
	return err
}

// errFull is of a disk, or a file, that holds no more.
var errFull = sdk.Fail("failed", "there is no space left on the disk").WithHint("Tell the user; delete what isn't needed.")
