package journal

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const columns = `seq, prev, hash, time, kind, run, branch, data`

// kinds returns those that a query selects.
func (q *Query) kinds() (kinds []Kind) {
	for _, k := range Kinds {
		if q.kind(k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// isEmpty reports whether no event has the kind.
func (q *Query) isEmpty() bool { return len(q.kinds()) == 0 }

// ranPrefix is what the data of a run's beginning begins with, as package run writes it.
func (q *Query) ranPrefix() []byte {
	return append(AppendString([]byte(`{"tool":`), q.Ran), ',')
}

// anyKind reports whether it selects events of all kinds.
func (q *Query) anyKind() bool { return q.Kind == "" && !q.Changes && q.Tool == "" }

// numbers returns the SQL that gives the numbers of the events a query selects, at
// most limit of them (0: all) from the end that it wants. indexed says that there is
// an index of tools' names.
func (q *Query) numbers(limit int, indexed bool) (text string, args []driver.NamedValue) {
	var b strings.Builder
	add := func(text string, value any) {
		b.WriteString(text)
		args = append(args, driver.NamedValue{Ordinal: len(args) + 1, Value: value})
	}
	// A run has few events, so its index is the better one, and is gone through once; a + says so.
	var ofRun []Kind
	if q.Run != "" && q.Tool == "" && !q.anyKind() {
		ofRun = q.kinds()
	}
	where := func(k Kind) {
		b.WriteString(`SELECT seq FROM events`)
		if q.Tool != "" && indexed {
			b.WriteString(byTool)
		}
		add(` WHERE seq > ?`, int64(min(q.After, 1<<63-1)))
		if q.Before > 0 {
			add(` AND seq < ?`, int64(min(q.Before, 1<<63-1)))
		}
		if q.Run != "" {
			add(` AND run <> '' AND run = ?`, q.Run)
		}
		if q.Tool != "" {
			add(` AND `+aboutTools+` AND `+toolName+` = ?`, q.Tool)
		}
		if q.Ran != "" {
			prefix := q.ranPrefix()
			add(fmt.Sprintf(` AND substr(data, 1, %d) = ?`, len(prefix)), prefix)
		}
		if len(ofRun) > 0 {
			b.WriteString(` AND +kind IN (`)
			for i, k := range ofRun {
				add([]string{`?`, `,?`}[min(i, 1)], string(k))
			}
			b.WriteString(`)`)
		}
		if k != "" {
			add(` AND kind = ?`, string(k))
			if k != RunStarted && k != RunEnded {
				b.WriteString(` AND ` + indexedKinds)
			}
		}
		b.WriteString(` ORDER BY seq`)
		if q.Last {
			b.WriteString(` DESC`)
		}
		if limit > 0 {
			add(` LIMIT ?`, int64(limit))
		}
	}
	if q.anyKind() || len(ofRun) > 0 {
		where("")
		return b.String(), args
	}
	// One search in the index for each kind, so that none reads more than it gives.
	// The kinds that aren't there are looked for in the order of the numbers.
	for i, k := range q.kinds() {
		b.WriteString([]string{`SELECT seq FROM (`, ` UNION ALL SELECT seq FROM (`}[min(i, 1)])
		where(k)
		b.WriteString(`)`)
	}
	b.WriteString(` ORDER BY seq`)
	if q.Last {
		b.WriteString(` DESC`)
	}
	if limit > 0 {
		add(` LIMIT ?`, int64(limit))
	}
	return b.String(), args
}

// scan calls fn for the events that a query selects, at most limit of them, in
// the order of their numbers, the newest first where it wants the last, from one state of the file. fn may keep the event
// but not use the connection.
func (s *Store) scan(ctx context.Context, conn *sql.Conn, q Query, limit int, fn func(*Event) error) error {
	if q.isEmpty() {
		return nil
	}
	inner, args := q.numbers(limit, s.indexed)
	text := `SELECT ` + columns + ` FROM events WHERE seq IN (` + inner + `) ORDER BY seq`
	if q.Last {
		text += ` DESC`
	}
	if q.anyKind() && q.Run == "" && !q.Last {
		text = strings.Replace(inner, `SELECT seq`, `SELECT `+columns, 1)
	}
	return rows(ctx, conn, text, args, fn)
}

// rows calls fn for the events that a query gives.
func rows(ctx context.Context, conn *sql.Conn, text string, args []driver.NamedValue, fn func(*Event) error) error {
	// The driver's own rows cost half of what sql.Rows does, for what is read
	// when a server starts.
	return conn.Raw(func(c any) error {
		rows, err := c.(driver.QueryerContext).QueryContext(ctx, text, args)
		if err != nil {
			return err
		}
		values := make([]driver.Value, 8)
		for n := 0; ; n++ {
			err := rows.Next(values)
			if err == nil && n%1024 == 0 {
				err = ctx.Err()
			}
			if err == io.EOF {
				return rows.Close()
			}
			if err == nil {
				err = fn(event(values))
			}
			if err != nil {
				return errors.Join(err, rows.Close())
			}
		}
	})
}

// event makes an event of a row. The table is strict: the types are those of
// its columns, whoever wrote them. What has another size is no hash of anything.
func event(v []driver.Value) *Event {
	e := &Event{}
	seq, _ := v[0].(int64)
	prev, _ := v[1].([]byte)
	hash, _ := v[2].([]byte)
	micro, _ := v[3].(int64)
	kind, _ := v[4].(string)
	e.Run, _ = v[5].(string)
	e.Branch, _ = v[6].(string)
	e.Data, _ = v[7].([]byte)
	e.Seq, e.Time, e.Kind = uint64(seq), time.UnixMicro(micro).UTC(), known(kind)
	if len(prev) == len(e.Prev) {
		copy(e.Prev[:], prev)
	}
	if len(hash) == len(e.Hash) {
		copy(e.Hash[:], hash)
	}
	return e
}

// known returns a kind's constant, so that not every event has a copy of its text.
func known(kind string) Kind {
	for _, k := range Kinds {
		if string(k) == kind {
			return k
		}
	}
	return Kind(kind)
}

// reader calls fn with a connection that reads.
func (s *Store) reader(ctx context.Context, fn func(*sql.Conn) error) error {
	conn, err := s.readers.Conn(ctx)
	if err != nil {
		return explain(s.path, err)
	}
	defer conn.Close()
	return explain(s.path, fn(conn))
}

// maxReadBytes bounds the data of a page: the event that goes beyond it is the page's last.
const maxReadBytes = 8 << 20

// Read implements [Journal]. What this process appended before is among the
// events, as long as it can be written.
func (s *Store) Read(q Query) (events []Event, more bool, err error) {
	s.flush()
	limit, size := 0, 0
	if q.Limit > 0 {
		limit = q.Limit + 1
	}
	err = s.reader(bg, func(conn *sql.Conn) error {
		return s.scan(bg, conn, q, limit, func(e *Event) error {
			if more = limit > 0 && (len(events) == q.Limit || size > maxReadBytes); more {
				return errPage
			}
			size += len(e.Data)
			events = append(events, *e)
			return nil
		})
	})
	if err != nil && !more {
		return nil, false, err
	}
	if q.Last {
		slices.Reverse(events)
	}
	return events, more, nil
}

// How much Each reads at once.
const (
	pageEvents = 1024
	pageBytes  = 4 << 20
)

var errPage = errors.New("the page is full")

// Each calls fn for every event that a query selects, in the order of Seq; an
// error of fn ends it and is its error. The events are read in pages and nothing
// is held while fn runs, so fn may use the store, and may keep the event.
func (s *Store) Each(ctx context.Context, q Query, fn func(*Event) error) error {
	s.flush()
	if q.isEmpty() {
		return nil
	}
	if q.Last && q.Limit > 0 {
		first := uint64(0)
		err := s.reader(ctx, func(conn *sql.Conn) error {
			text, named := q.numbers(q.Limit, s.indexed)
			args := make([]any, len(named))
			for i := range named {
				args[i] = named[i].Value
			}
			return conn.QueryRowContext(ctx, `SELECT coalesce(min(seq), 0) FROM (`+text+`)`, args...).Scan(&first)
		})
		if err != nil || first == 0 {
			return err
		}
		q.After = max(q.After, first-1)
	}
	q.Last = false
	left := q.Limit
	page := make([]*Event, 0, pageEvents)
	for {
		page = page[:0]
		size, limit := 0, pageEvents
		if q.Limit > 0 {
			limit = min(limit, left)
		}
		err := s.reader(ctx, func(conn *sql.Conn) error {
			return s.scan(ctx, conn, q, limit, func(e *Event) error {
				page = append(page, e)
				if size += len(e.Data); size > pageBytes {
					return errPage
				}
				return nil
			})
		})
		more := errors.Is(err, errPage)
		if err != nil && !more {
			return err
		}
		for _, e := range page {
			if err := fn(e); err != nil {
				return err
			}
			q.After = e.Seq
		}
		left -= len(page)
		if !more && len(page) < limit || q.Limit > 0 && left == 0 {
			return nil
		}
	}
}

// lastEvent returns the newest event; Seq 0: there is none.
func lastEvent(db querier) (*Event, error) {
	return oneEvent(db, `SELECT `+columns+` FROM events ORDER BY seq DESC LIMIT 1`)
}

// oneEvent returns the event a query gives; Seq 0: it gives none.
func oneEvent(db querier, query string, args ...any) (*Event, error) {
	var v [8]any
	var to [8]any
	for i := range v {
		to[i] = &v[i]
	}
	err := db.QueryRowContext(bg, query, args...).Scan(to[:]...)
	if errors.Is(err, sql.ErrNoRows) {
		return &Event{}, nil
	}
	values := make([]driver.Value, 8)
	for i := range v {
		values[i] = v[i]
	}
	return event(values), err
}

// Last returns the number of the newest event that is committed, by any process; 0:
// there is none. It costs some microseconds: ask before every request whether there
// is something to catch up with.
func (s *Store) Last() (seq uint64, err error) {
	err = s.readers.QueryRowContext(bg, `SELECT coalesce(max(seq), 0) FROM events`).Scan(&seq)
	return seq, explain(s.path, err)
}

// glance is how often Watch looks.
const glance = 100 * time.Millisecond

// Watch sends the number of the newest event whenever there is a newer one,
// whoever appended it, within some 100 ms; of several only the last. The channel
// is closed when ctx ends.
func (s *Store) Watch(ctx context.Context) <-chan uint64 {
	out := make(chan uint64, 1)
	seen, _ := s.Last() // an error will be one again
	go func() {
		defer close(out)
		t := time.NewTicker(glance)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			seq, err := s.Last()
			if err != nil || seq <= seen {
				continue
			}
			seen = seq
			select {
			case <-out: // nobody has looked at it
			default:
			}
			out <- seq
		}
	}()
	return out
}
