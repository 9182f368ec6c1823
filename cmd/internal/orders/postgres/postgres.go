// Package postgres keeps a cluster's order in a PostgreSQL database.
//
// A table has the proposals by place; the row of another has the last place, and whoever
// adds locks it, so that places are committed in their order and without gaps. NOTIFY wakes
// those who follow. What is asked of the database is no more than that: no isolation level
// but the default, no time, no sequence.
//
// The order lasts as the database does: where a proposal must survive the loss of the
// server, it needs a synchronous standby (synchronous_standby_names). This package sets
// synchronous_commit for its own sessions, and refuses a server with fsync off. It uses the
// primary only, in reading too: a replica may be behind, and may show what is lost later.
// It never cancels a statement that adds, since a commit that waits for its standby would
// become visible by that without being there; who waits for it stops waiting instead.
package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mcp-pif/mcp-pif/caps/journal/order"
)

var (
	connectTimeout = 5 * time.Second
	proposeTimeout = 5 * time.Second
)

const (
	// writeTimeout ends a connection whose commit doesn't come back.
	writeTimeout = 10 * time.Second
	// pollInterval bounds what a lost notification delays.
	pollInterval = time.Second
	maxBackoff   = time.Second
	maxBatch     = 64
)

// Each statement is a transaction.
const (
	schema = `
		CREATE TABLE mcp_pif_order (one boolean PRIMARY KEY DEFAULT true CHECK (one), identity text NOT NULL, first bigint NOT NULL, last bigint NOT NULL);
		CREATE TABLE mcp_pif_proposals (place bigint PRIMARY KEY, p bytea NOT NULL)`
	exists = `SELECT to_regclass('mcp_pif_order') IS NOT NULL AND to_regclass('mcp_pif_proposals') IS NOT NULL`
	create = `INSERT INTO mcp_pif_order (identity, first, last) VALUES ($1, 1, 0) ON CONFLICT DO NOTHING`
	add    = `
		WITH head AS (UPDATE mcp_pif_order SET last = last + cardinality($1::bytea[]) WHERE identity = $2 RETURNING last),
		added AS (
			INSERT INTO mcp_pif_proposals (place, p)
			SELECT head.last - cardinality($1::bytea[]) + x.n, x.p FROM head, unnest($1::bytea[]) WITH ORDINALITY AS x(p, n)
			RETURNING 1)
		SELECT (SELECT count(*) FROM added), pg_notify('mcp_pif_order', '')`
	// At most 256 proposals and, but for the first, 8 MiB; from 0, from the first there is. LIMIT has it planned for the one row
	// that there is, where no statistics say so.
	read = `
		SELECT h.identity, h.first, h.last, pg_is_in_recovery(), x.place, x.p
		FROM (SELECT *, CASE $1::bigint WHEN 0 THEN first ELSE $1 END AS at FROM mcp_pif_order LIMIT 1) h LEFT JOIN LATERAL (
			SELECT place, p, sum(octet_length(p)) OVER (ORDER BY place) - octet_length(p) AS before
			FROM mcp_pif_proposals WHERE place >= h.at AND place < h.at + 256) x ON x.before < 8 << 20
		ORDER BY x.place`
	// Writes, so that a server that lost its standbys can't answer.
	confirm = `UPDATE mcp_pif_order SET last = last WHERE identity = $1 RETURNING last`
	trim    = `UPDATE mcp_pif_order SET first = greatest(first, least($1, last + 1)) WHERE identity = $2 RETURNING first`
	// In parts, beside the head, which who adds waits for.
	remove = `DELETE FROM mcp_pif_proposals WHERE place IN (SELECT place FROM mcp_pif_proposals WHERE place < $1 ORDER BY place LIMIT 5000 FOR UPDATE)`
)

// A database is an order in one.
type database struct {
	config   *pgx.ConnConfig
	identity string
	log      *slog.Logger
	queue    chan *proposal
	life     context.Context
	end      context.CancelCauseFunc
	ended    chan struct{} // closed when the writer is gone
}

// A proposal waits for its place.
type proposal struct {
	p      []byte
	gaveUp atomic.Bool // by who waited for it
	answer chan error
}

// Open opens the order in the database of a URL (postgres://user@host/database; with
// search_path, in that schema), and makes its tables where there are none and the role may.
// What happens to the connection later goes to the log, which may be nil.
func Open(ctx context.Context, url string, log *slog.Logger) (order.Order, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	config.ConnectTimeout = connectTimeout
	// At least: a role's or a database's default may be off.
	config.RuntimeParams["synchronous_commit"] = "on"
	config.RuntimeParams["lock_timeout"] = "4000"
	config.RuntimeParams["application_name"] = "mcp-pif"
	d := &database{config: config, log: log, queue: make(chan *proposal), ended: make(chan struct{})}
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer d.hangUp(conn)
	if err := prepare(ctx, conn); err != nil {
		return nil, err
	}
	if err := conn.QueryRow(ctx, `SELECT identity FROM mcp_pif_order`).Scan(&d.identity); err != nil {
		return nil, err
	}
	d.life, d.end = context.WithCancelCause(context.Background())
	go d.write()
	return order.Share(d), nil
}

// prepare looks at the server, and makes the tables and the order where they aren't there.
func prepare(ctx context.Context, conn *pgx.Conn) error {
	var fsync string
	var there bool
	if err := conn.QueryRow(ctx, `SHOW fsync`).Scan(&fsync); err != nil {
		return err
	}
	if fsync != "on" {
		return errors.New("the server runs with fsync off: what it acknowledges doesn't last")
	}
	if err := conn.QueryRow(ctx, exists).Scan(&there); err != nil {
		return err
	}
	if !there {
		// Another node may make them now.
		if _, err := conn.Exec(ctx, schema); err != nil {
			if again := conn.QueryRow(ctx, exists).Scan(&there); again != nil || !there {
				return fmt.Errorf("the tables of the order can't be made: %w", err)
			}
		}
	}
	_, err := conn.Exec(ctx, create, rand.Text())
	return err
}

// connect opens a connection to the primary. Nothing that is done over it is cancelled.
func (d *database) connect(ctx context.Context) (*pgx.Conn, error) {
	config := d.config.Copy()
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 4}}
	var connected atomic.Bool
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected.Load() {
			return nil, errors.New("no request to cancel is sent")
		}
		return dialer.DialContext(ctx, network, address)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	connected.Store(true)
	return conn, err
}

// hangUp closes a connection.
func (d *database) hangUp(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn.Close(ctx) // the server notices in any case
}

// joined returns a context that ends with ctx and with the order.
func (d *database) joined(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(d.life, func() { cancel(order.ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// why returns the reason of an error: the order was closed, the caller's context ended, or
// the error itself.
func (d *database) why(ctx context.Context, err error) error {
	switch {
	case d.life.Err() != nil:
		return order.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// Propose hands p to the writer, and waits for its place.
func (d *database) Propose(ctx context.Context, p []byte) error {
	if len(p) > order.MaxProposal {
		return order.ErrTooLarge
	}
	if err := d.why(ctx, nil); err != nil {
		return err
	}
	patience := time.After(proposeTimeout)
	x := &proposal{p: append([]byte{}, p...), answer: make(chan error, 1)}
	queue := d.queue
	for {
		select {
		case queue <- x:
			queue = nil
		case err := <-x.answer:
			return err
		case <-ctx.Done():
			x.gaveUp.Store(true)
			return ctx.Err()
		case <-d.life.Done():
			return order.ErrClosed
		case <-patience:
			x.gaveUp.Store(true)
			return errors.New("the database doesn't answer")
		}
	}
}

// write adds what is proposed, all that waits at once in one transaction.
func (d *database) write() {
	defer close(d.ended)
	var conn *pgx.Conn
	defer func() { d.hangUp(conn) }()
	for {
		var batch []*proposal
		select {
		case x := <-d.queue:
			if x.gaveUp.Load() {
				continue
			}
			batch = append(batch, x)
		case <-d.life.Done():
			return
		}
		bytes := len(batch[0].p)
	more:
		for len(batch) < maxBatch && bytes < 4*order.MaxProposal {
			select {
			case x := <-d.queue:
				if !x.gaveUp.Load() {
					batch = append(batch, x)
					bytes += len(x.p)
				}
			default:
				break more
			}
		}
		err := d.addAll(&conn, batch)
		for _, x := range batch {
			x.answer <- err
		}
	}
}

// addAll adds a batch over a connection, which it makes where there is none. After an error
// there is none.
func (d *database) addAll(conn **pgx.Conn, batch []*proposal) (err error) {
	if *conn != nil && (*conn).IsClosed() {
		*conn = nil
	}
	if *conn == nil {
		ctx, cancel := context.WithTimeout(d.life, connectTimeout)
		defer cancel()
		if *conn, err = d.connect(ctx); err != nil {
			*conn = nil
			return err
		}
	}
	all := make([][]byte, len(batch))
	for i, x := range batch {
		all[i] = x.p
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	n := 0
	if err := (*conn).QueryRow(ctx, add, all, d.identity).Scan(&n, nil); err != nil {
		d.log.Warn("the order's database didn't take a proposal; it is proposed again", "error", err)
		d.hangUp(*conn)
		*conn = nil
		return err
	}
	if n != len(all) {
		return order.ErrOther
	}
	return nil
}

// Follow reads ranges, and waits for notifications between them.
func (d *database) Follow(ctx context.Context, from uint64, fn func(uint64, []byte) error) error {
	outer := ctx
	ctx, done := d.joined(ctx)
	defer done()
	f := follower{database: d, from: from, fn: fn}
	for backoff := time.Duration(0); ; {
		progress, err := f.run(ctx)
		if ended := d.why(outer, nil); ended != nil {
			return ended
		}
		if f.final != nil {
			return f.final
		}
		if progress {
			backoff = 0
		}
		d.log.Warn("following the order's database was interrupted", "error", err)
		backoff = min(max(2*backoff, 50*time.Millisecond), maxBackoff)
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
	}
}

// A follower is at a place.
type follower struct {
	*database
	from  uint64
	seen  order.Seen
	fn    func(uint64, []byte) error
	final error // ends it
}

// run follows over one connection, and reports whether it saw anything.
func (f *follower) run(ctx context.Context) (progress bool, err error) {
	conn, err := f.connect(ctx)
	if err != nil {
		return false, err
	}
	defer f.hangUp(conn)
	if _, err := conn.Exec(ctx, "LISTEN mcp_pif_order"); err != nil {
		return false, err
	}
	f.from = f.seen.From(f.from)
	for {
		some, err := f.read(ctx, conn)
		if err != nil || f.final != nil {
			return progress, err
		}
		progress = true
		for _, p := range some {
			isNew, err := f.seen.Check(f.from, p)
			if f.final = err; err == nil && isNew {
				f.final = f.fn(f.from, p)
			}
			if f.final != nil || ctx.Err() != nil {
				return true, ctx.Err()
			}
			f.from++
		}
		if len(some) > 0 {
			continue
		}
		waiting, cancel := context.WithTimeout(ctx, pollInterval)
		_, err = conn.WaitForNotification(waiting)
		cancel()
		if err != nil && (ctx.Err() != nil || conn.IsClosed()) {
			return progress, err
		}
	}
}

// read returns the proposals from the follower's place on, some at a time.
func (f *follower) read(ctx context.Context, conn *pgx.Conn) (some [][]byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	rows, err := conn.Query(ctx, read, int64(f.from))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	identity, first, last, replica := "", uint64(0), uint64(0), false
	for rows.Next() {
		var place *uint64
		var p []byte
		if err := rows.Scan(&identity, &first, &last, &replica, &place, &p); err != nil {
			return nil, err
		}
		f.from = cmp.Or(f.from, first)
		if place != nil && *place == f.from+uint64(len(some)) {
			some = append(some, p)
		} else if place != nil && f.from >= first {
			f.final = fmt.Errorf("%w: place %d isn't there, place %d is", order.ErrEnds, f.from+uint64(len(some)), *place)
		}
	}
	rows.Close()
	switch err := rows.Err(); {
	case err != nil:
		return nil, err
	case replica:
		return nil, errors.New("the server is a replica now")
	case identity != f.identity:
		f.final = order.ErrOther
	case f.from < first:
		f.final = order.ErrTrimmed
	case len(some) == 0 && f.from <= last:
		f.final = fmt.Errorf("%w: place %d isn't there, and %d is the last", order.ErrEnds, f.from, last)
	case f.from > last+1:
		if err := conn.QueryRow(ctx, confirm, f.identity).Scan(&last); errors.Is(err, pgx.ErrNoRows) {
			f.final = order.ErrOther
		} else if err != nil {
			return nil, err
		} else if f.from > last+1 {
			f.final = fmt.Errorf("%w: its last place is %d", order.ErrEnds, last)
		}
	}
	return some, nil
}

// Identity returns the order's, if it still is the one that was opened.
func (d *database) Identity(ctx context.Context) (identity string, err error) {
	err = d.do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT identity FROM mcp_pif_order`).Scan(&identity)
	})
	if err == nil && identity != d.identity {
		return "", order.ErrOther
	}
	return identity, err
}

// Trim deletes what is before a place. Where it is interrupted the next one deletes the rest.
func (d *database) Trim(ctx context.Context, before uint64) error {
	return d.do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		first := int64(0)
		err := conn.QueryRow(ctx, trim, int64(before), d.identity).Scan(&first)
		if errors.Is(err, pgx.ErrNoRows) {
			return order.ErrOther
		}
		for gone := int64(1); err == nil && gone > 0; {
			var tag pgconn.CommandTag
			tag, err = conn.Exec(ctx, remove, first)
			gone = tag.RowsAffected()
		}
		return err
	})
}

// do runs something over a connection of its own.
func (d *database) do(ctx context.Context, what func(context.Context, *pgx.Conn) error) error {
	outer := ctx
	ctx, done := d.joined(ctx)
	defer done()
	if err := d.why(outer, nil); err != nil {
		return err
	}
	conn, err := d.connect(ctx)
	if err == nil {
		defer d.hangUp(conn)
		err = what(ctx, conn)
	}
	if err != nil {
		return d.why(outer, err)
	}
	return nil
}

// Close waits for what the writer has begun, for some seconds at most.
func (d *database) Close() error {
	d.end(order.ErrClosed)
	select {
	case <-d.ended:
	case <-time.After(writeTimeout):
	}
	return nil
}
