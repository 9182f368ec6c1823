package journal

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
)

// atOnce is how many events the statements insert. One by one, over
// database/sql, they would cost half as much again.
var atOnce = [...]int{64, 8, 1}

// An inserter inserts events over the connection that it was prepared for.
type inserter struct {
	stmts [len(atOnce)]driver.Stmt
	args  []driver.NamedValue
}

func (in *inserter) prepare(conn *sql.Conn) error {
	in.args = make([]driver.NamedValue, 8*atOnce[0])
	for i := range in.args {
		in.args[i].Ordinal = i + 1
	}
	return conn.Raw(func(c any) error {
		for i, n := range atOnce {
			// Where one of them fails the transaction is rolled back, so SQLite
			// needn't be ready to undo a part of it: OR FAIL.
			const row = `(?,?,?,?,?,?,?,?)`
			stmt, err := c.(driver.ConnPrepareContext).PrepareContext(bg, `INSERT OR FAIL INTO events VALUES`+row+strings.Repeat(`,`+row, n-1))
			if err != nil {
				return err
			}
			in.stmts[i] = stmt
		}
		return nil
	})
}

// events inserts what is sealed. The caller has a transaction.
func (in *inserter) events(conn *sql.Conn, list ...*Event) error {
	return conn.Raw(func(any) error {
		for i, n := range atOnce {
			for ; len(list) >= n; list = list[n:] {
				if err := in.some(in.stmts[i], list[:n]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (in *inserter) some(stmt driver.Stmt, list []*Event) error {
	args := in.args[:8*len(list)]
	for i, e := range list {
		for j, v := range [...]driver.Value{int64(e.Seq), e.Prev[:], e.Hash[:], e.Time.UnixMicro(), string(e.Kind), e.Run, e.Branch, []byte(e.Data)} {
			args[8*i+j].Value = v
		}
	}
	_, err := stmt.(driver.StmtExecContext).ExecContext(bg, args)
	for i := range args {
		args[i].Value = nil // it may be large
	}
	return err
}

func (in *inserter) close(conn *sql.Conn) error {
	return conn.Raw(func(any) (err error) {
		for _, stmt := range in.stmts {
			if stmt != nil {
				err = errors.Join(err, stmt.Close())
			}
		}
		return err
	})
}
