package kv

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// maxKeyBytes is in bytes.
const maxKeyBytes = 512

// quote returns a key as messages show it: as the program said it, bounded, and
// without anything that acts on a terminal.
func quote(key string) string {
	const most = 120
	if len(key) > most {
		return strconv.Quote(display.Prefix(key, most)) + "…"
	}
	return strconv.Quote(key)
}

// checkKey refuses what isn't names between slashes: empty names, "." and "..",
// what isn't UTF-8, and what can't be seen or turns the direction of what follows.
// A star would be taken for a pattern.
func checkKey(key string) error {
	bad := func(why string) error {
		return sdk.Fail("invalid", "the key %s %s", quote(key), why).WithHint("A key is names between slashes, such as notes/todo.")
	}
	switch {
	case key == "":
		return bad("is empty")
	case len(key) > maxKeyBytes:
		return sdk.Fail("invalid", "the key %s has %d bytes; at most %d are possible", quote(key), len(key), maxKeyBytes).
			WithHint("Put what is long into the value.")
	case !utf8.ValidString(key):
		return bad("isn't UTF-8")
	case strings.ContainsFunc(key, unseen):
		return bad("has a character in it that can't be seen")
	case strings.Contains(key, "*"):
		return bad("has a star in it, which is for scopes")
	}
	for name := range strings.SplitSeq(key, "/") {
		switch name {
		case "":
			return bad("has an empty name in it")
		case ".", "..":
			return bad("has the name " + name + " in it, which leads nowhere")
		}
	}
	return nil
}

// unseen reports control characters, separators of lines, and the characters that
// change the direction of writing, with which one key can be shown as another.
func unseen(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' || unicode.Is(unicode.Bidi_Control, r)
}

// spaceOf returns the first name of a key.
func spaceOf(key string) string {
	space, _, _ := strings.Cut(key, "/")
	return space
}

// within reports whether a key lies in a pattern, as the host decides it.
func within(pattern, key string) bool { return sdk.Segments.Covers(pattern, key) == nil }

// literal returns the part of a pattern before its first star, and whether that is
// all of it: every key of the pattern is that, or begins with that and a slash.
func literal(pattern string) (head string, whole bool) {
	names := strings.Split(pattern, "/")
	for i, name := range names {
		if strings.Contains(name, "*") {
			return strings.Join(names[:i], "/"), false
		}
	}
	return pattern, true
}

var errClosed = errors.New("the capability is closed")

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
