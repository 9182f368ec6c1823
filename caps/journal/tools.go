package journal

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"sync"
)

// toolName is the tool an event is about, in SQL. What is no JSON has none, so
// that an edited event doesn't keep the file from being opened.
const toolName = `iif(json_valid(CAST(data AS TEXT)), json_extract(CAST(data AS TEXT), '$.tool'), NULL)`

// aboutTools selects the events about tools.
const aboutTools = `kind IN ('tool.evolved','tool.refused','tool.retired','tool.rolled_back')`

// toolIndex is the index of them. It has so few events that it costs appending
// nothing that can be measured.
const toolIndex = `CREATE INDEX events_tool ON events(` + toolName + `, kind) WHERE ` + aboutTools

// byTool makes SQLite use it, which would rather look at all events of a kind.
const byTool = ` INDEXED BY events_tool`

// newestChange gives the number of the newest event that changed tools.
const newestChange = `SELECT coalesce(max(seq), 0) FROM (` +
	`SELECT max(seq) AS seq FROM events WHERE kind = 'tool.evolved' AND ` + indexedKinds +
	` UNION ALL SELECT max(seq) FROM events WHERE kind = 'tool.retired' AND ` + indexedKinds +
	` UNION ALL SELECT max(seq) FROM events WHERE kind = 'tool.rolled_back' AND ` + indexedKinds + `)`

// EachNewest implements [Journal].
func (s *Store) EachNewest(through uint64, each func(*Event) error) error {
	s.flush()
	by := ""
	if s.indexed {
		by = byTool
	}
	through = cmp.Or(through, 1<<63-1)
	// With + the kind and the number are taken from the index, not looked for.
	text := `SELECT ` + columns + ` FROM events WHERE seq IN (SELECT max(seq) FROM events` + by + ` WHERE ` + aboutTools +
		` AND +kind <> 'tool.refused' AND +seq <= ? AND typeof(` + toolName + `) = 'text' AND ` + toolName + ` <> '' GROUP BY ` + toolName + `) ORDER BY seq`
	args := []driver.NamedValue{{Ordinal: 1, Value: int64(min(through, 1<<63-1))}}
	return s.reader(bg, func(conn *sql.Conn) error { return rows(bg, conn, text, args, each) })
}

// A look asks one question again and again, over a connection of its own.
type look struct {
	mu   sync.Mutex
	conn *sql.Conn
	stmt driver.Stmt
}

// open prepares the question.
func (l *look) open(db *sql.DB, query string) (err error) {
	if l.conn, err = db.Conn(bg); err != nil {
		return err
	}
	return l.conn.Raw(func(c any) error {
		l.stmt, err = c.(driver.ConnPrepareContext).PrepareContext(bg, query)
		return err
	})
}

// number returns the answer. The driver's own statement takes two thirds of the time
// of the one of database/sql.
func (l *look) number(ctx context.Context) (n int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return 0, sql.ErrConnDone
	}
	err = l.conn.Raw(func(any) error {
		rows, err := l.stmt.(driver.StmtQueryContext).QueryContext(ctx, nil)
		if err != nil {
			return err
		}
		var value [1]driver.Value
		if err := rows.Next(value[:]); err != nil && err != io.EOF {
			return errors.Join(err, rows.Close())
		}
		n, _ = value[0].(int64)
		return rows.Close()
	})
	return n, err
}

// close lets go of the connection.
func (l *look) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return nil
	}
	var err error
	if l.stmt != nil {
		err = l.stmt.Close()
	}
	err = errors.Join(err, l.conn.Close())
	l.conn = nil
	return err
}

// changes is what is known of the newest change of the tools.
type changes struct {
	header header // that the file had before seq was read
	seq    uint64
}

// Changed implements [Journal].
func (s *Store) Changed() (uint64, error) {
	h, ok := s.peek.header()
	if known := s.changes.Load(); ok && known != nil && known.header == h {
		return known.seq, nil
	}
	n, err := s.look.number(bg)
	if err != nil {
		return 0, explain(s.path, err)
	}
	if ok {
		// What is committed meanwhile changes the header.
		s.changes.Store(&changes{h, uint64(n)})
	}
	return uint64(n), nil
}
