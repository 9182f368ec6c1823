package journal_test

import (
	"context"
	"database/sql"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// raw opens a store's file as somebody else would.
func raw(t testing.TB, path string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	sqlExec(t, conn, `PRAGMA busy_timeout=10000`)
	return conn
}

func sqlExec(t testing.TB, conn *sql.Conn, query string, args ...any) {
	t.Helper()
	if _, err := conn.ExecContext(context.Background(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// lock holds a store's write lock until unlock is called.
func lock(t testing.TB, path string) (unlock func()) {
	t.Helper()
	conn := raw(t, path)
	sqlExec(t, conn, `BEGIN IMMEDIATE`)
	return func() {
		sqlExec(t, conn, `ROLLBACK`)
		conn.Close()
	}
}
