package journal

import (
	"context"
	"database/sql"
	"errors"

	"modernc.org/sqlite"
)

// bg is the context of what must not be interrupted: SQLite's interrupt would
// take the connection with it.
var bg = context.Background()

// A querier is a pool of connections, one of them, or a transaction on it.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each calls fn for every row that a query gives.
func each(db querier, query string, fn func(scan func(...any) error) error, args ...any) error {
	rows, err := db.QueryContext(bg, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// transaction runs fn between BEGIN IMMEDIATE, which takes the write lock of the
// file, and COMMIT. Where any of it fails, nothing of it has happened.
func transaction(conn *sql.Conn, fn func() error) error {
	if _, err := conn.ExecContext(bg, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	err := fn()
	if err == nil {
		_, err = conn.ExecContext(bg, `COMMIT`)
	}
	if err != nil {
		return errors.Join(err, rollback(conn))
	}
	return nil
}

// rollback ends a transaction that failed, unless SQLite has done so itself.
func rollback(conn *sql.Conn) error {
	_, err := conn.ExecContext(bg, `ROLLBACK`)
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code() == 1 { // no transaction is active
		return nil
	}
	return err
}
