package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What can be wrong with a store. Errors of a [Store] say it in words with the
// path; these are for [errors.Is].
var (
	// ErrFull means that the disk, or the limit on the file, is full.
	ErrFull = errors.New("the disk is full")
	// ErrLocked means that another process held the file's lock for too long.
	ErrLocked = errors.New("another process has it locked")
	// ErrReadOnly means that the store can't be written, or wasn't to be.
	ErrReadOnly = errors.New("it can't be written")
	// ErrDenied means that the operating system doesn't let this user.
	ErrDenied = errors.New("permission denied")
	// ErrFormat means that the file is no store, or one of another format.
	ErrFormat = errors.New("it has another format")
	// ErrDamaged means that what is in the file contradicts itself.
	ErrDamaged = errors.New("it is damaged")
	// ErrUnsafe means that another user could change the file, or it isn't
	// what its path says.
	ErrUnsafe = errors.New("its place is not safe")
	// ErrClosed means that the store was closed before.
	ErrClosed = errors.New("it was closed")
	// ErrCluster means that the cluster that the file belongs to doesn't let it be
	// written, or not now.
	ErrCluster = errors.New("the cluster can't record it")
	// ErrUnknown is an ErrCluster of what will be recorded once the order answers, if the
	// process lives until then.
	ErrUnknown = fmt.Errorf("%w now", ErrCluster)
	// ErrBehind means that the tools have changed since the event that the
	// caller of Change knew of.
	ErrBehind = errors.New("the tools have changed since")
)

// A problem is an error in words that is also one of those above.
type problem struct {
	path  string
	class error
	words string
	cause error // nil, or what the system said
}

func (p *problem) Error() string {
	text := fmt.Sprintf("the store %s: %s", p.path, p.words)
	if p.cause != nil {
		text += " (" + p.cause.Error() + ")"
	}
	return text
}

func (p *problem) Unwrap() []error { return []error{p.class, p.cause} }

// explain puts an error of SQLite or of the operating system into words.
func explain(path string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, known := errors.AsType[*problem](err); known {
		return err
	}
	say := func(class error, words string) error { return &problem{path, class, words, err} }
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		switch {
		case errors.Is(err, sql.ErrConnDone), err.Error() == "sql: database is closed":
			return &problem{path, ErrClosed, "it was closed", nil}
		case errors.Is(err, syscall.ENOSPC):
			return say(ErrFull, "the disk is full; free some space, or name another place with --store")
		case errors.Is(err, syscall.EROFS):
			return say(ErrReadOnly, "the file system is read-only; name another place with --store")
		case errors.Is(err, fs.ErrPermission):
			return say(ErrDenied, "permission denied; run as the user who owns it, or name another place with --store")
		}
		return fmt.Errorf("the store %s: %w", path, err)
	}
	switch code := e.Code(); code & 0xff {
	case sqlite3.SQLITE_FULL:
		return say(ErrFull, "the disk is full, or the file has reached its limit; free some space, or drop old events")
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return say(ErrLocked, "another process has it locked; find out which and end it, or try again")
	case sqlite3.SQLITE_READONLY:
		return say(ErrReadOnly, "the file or its directory can't be written; change that, or name another place with --store")
	case sqlite3.SQLITE_NOTADB:
		return say(ErrFormat, "it is not a journal, or its first bytes are damaged; restore a copy, or name another place with --store")
	case sqlite3.SQLITE_CORRUPT:
		return say(ErrDamaged, "the file is damaged; see what can be read with `mcp-pif journal verify`, then restore a copy or name another place with --store")
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return say(ErrDenied, "it, or the files -wal and -shm beside it, can't be opened; look at who may write the directory, or name another place with --store")
	case sqlite3.SQLITE_IOERR:
		switch code {
		case sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP:
			return say(ErrFull, "the -shm file beside it can't grow: the disk is full, or not a local one")
		case sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_DATA, sqlite3.SQLITE_IOERR_CORRUPTFS:
			return say(ErrDamaged, "the file ends too early or can't be read; restore a copy, or name another place with --store")
		}
		return fmt.Errorf("the store %s: the disk gave an error: %w", path, err)
	}
	return fmt.Errorf("the store %s: %w", path, err)
}
