package kv

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

type listArgs struct {
	Prefix *string `pif:"prefix,main,designates,prefix" doc:"what the keys begin with, such as notes/ or notes/2026; all that the capability has if left out"`
	After  *string `pif:"after" doc:"a key: those that come after it, to go on from the last of a list"`
	Limit  *int    `pif:"limit" doc:"at most so many, from 1 to 10000; if left out, more than 1000 are a failure"`
}

type listed struct {
	Key     string `pif:"key"`
	Version int64  `pif:"version"`
	Size    int64  `pif:"size"`
}

const (
	usualLimit = 1000
	maxListed  = 10_000
	// batch is how many rows are read at once: between batches others can write
	// what is in the -wal to the file.
	batch = 2000
)

// list lists keys that lie within the capability. Keys outside are never told,
// not even by a failure.
func list(ctx context.Context, s *scope, a listArgs) ([]listed, error) {
	limit := usualLimit
	if a.Limit != nil {
		limit = *a.Limit
	}
	if limit < 1 || limit > maxListed {
		return nil, sdk.Fail("invalid", "limit is %d; from 1 to %d can be listed at once", limit, maxListed)
	}
	prefix, after := "", ""
	if a.Prefix != nil {
		prefix = *a.Prefix
		key := strings.TrimSuffix(prefix, "/")
		if err := checkKey(key); err != nil {
			return nil, err
		}
		if !s.has("list", key) {
			return nil, outside(prefix, s.pattern)
		}
	}
	if a.After != nil {
		after = *a.After
		if err := checkKey(after); err != nil {
			return nil, err
		}
	}
	if err := s.begin("list"); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	found := []listed{}
	for _, r := range s.ranges(prefix) {
		from := max(r.from, after)
		for {
			rows, err := s.store.batch(ctx, r, from, after)
			if err != nil {
				return nil, because(err)
			}
			for _, row := range rows {
				if !s.has("list", row.Key) {
					continue
				}
				if len(found) == limit {
					return nil, sdk.Fail("too_large", "there are more than %d keys", limit).
						WithHint("Say how many with limit, and go on with after, the last key of the list; or give a prefix.")
				}
				if found = append(found, row); a.Limit != nil && len(found) == limit {
					return found, nil
				}
			}
			if len(rows) < batch {
				break
			}
			from = rows[len(rows)-1].Key
			after = from
		}
	}
	return found, nil
}

// A span is the keys from one to before another; without to, the one key.
type span struct{ from, to string }

// ranges finds where keys of the capability with a prefix can be, in order: no key
// that only looks like one of a scope is read, notes2 for notes.
func (s *scope) ranges(prefix string) []span {
	head, whole := literal(s.pattern)
	var all []span
	if head != "" && within(s.pattern, head) {
		all = append(all, span{from: head})
	}
	if !whole {
		below := ""
		if head != "" {
			below = head + "/"
		}
		all = append(all, span{below, below + "\xff"})
	}
	if prefix == "" {
		return all
	}
	var narrowed []span
	for _, r := range all {
		to := prefix + "\xff"
		switch {
		case r.to == "":
			if r.from >= prefix && r.from < to {
				narrowed = append(narrowed, r)
			}
		case r.from < to && prefix < r.to:
			narrowed = append(narrowed, span{max(r.from, prefix), min(r.to, to)})
		}
	}
	return narrowed
}

// batch reads rows of a span, from a key on and after another.
func (s *store) batch(ctx context.Context, r span, from, after string) (found []listed, err error) {
	query, args := `SELECT key, version, size FROM entries WHERE key >= ? AND key > ? AND key < ? ORDER BY key LIMIT ?`, []any{from, after, r.to, batch}
	if r.to == "" {
		query, args = `SELECT key, version, size FROM entries WHERE key = ? AND key > ?`, []any{r.from, after}
	}
	err = retry(ctx, func() error {
		found = nil
		rows, err := s.readers.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var l listed
			if err := rows.Scan(&l.Key, &l.Version, &l.Size); err != nil {
				return err
			}
			found = append(found, l)
		}
		return rows.Err()
	})
	return found, err
}

type getArgs struct {
	Key     string      `pif:"key,main,designates" doc:"the key, whole, such as notes/todo"`
	Default value.Value `pif:"default,optional" doc:"what to give where there is none; without it that is a failure"`
}

// get gives a value.
func get(ctx context.Context, s *scope, a getArgs) (value.Value, error) {
	found, err := s.look(ctx, "get", a.Key)
	switch {
	case err != nil:
		return nil, err
	case found.Version != 0:
		return found.Value, nil
	case a.Default != nil:
		return a.Default, nil
	}
	return nil, notFound(a.Key)
}

// notFound returns the failure of a key that isn't there.
func notFound(key string) error {
	return sdk.Fail("not_found", "there is no key %s", quote(key)).WithHint(`Give a "default", or look with kv.list.`)
}

type entryArgs struct {
	Key string `pif:"key,main,designates" doc:"the key, whole, such as notes/todo"`
}

type entryOf struct {
	Version int64       `pif:"version" doc:"0: there is none"`
	Size    int64       `pif:"size,optional"`
	Value   value.Value `pif:"value,optional"`
}

// entry gives a value with its version.
func entry(ctx context.Context, s *scope, a entryArgs) (entryOf, error) {
	return s.look(ctx, "entry", a.Key)
}

// look reads a key.
func (s *scope) look(ctx context.Context, verb, key string) (e entryOf, err error) {
	if err := s.on(verb, key); err != nil {
		return e, err
	}
	defer s.mu.RUnlock()
	var b []byte
	err = retry(ctx, func() error {
		return s.store.readers.QueryRowContext(ctx, `SELECT version, size, value FROM entries WHERE key = ?`, key).Scan(&e.Version, &e.Size, &b)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return entryOf{}, nil
	case err != nil:
		return entryOf{}, because(err)
	}
	if e.Value, err = sdk.Decode(b); err != nil {
		return entryOf{}, sdk.Fail("failed", "what is kept for %s is damaged", quote(key))
	}
	return e, nil
}
