package kv

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

type putArgs struct {
	Key    string      `pif:"key,designates" doc:"the key, whole, such as notes/todo"`
	Value  value.Value `pif:"value" doc:"any value but a function"`
	Create string      `pif:"create,optional,enum=always|never|only" doc:"never: the key must be there; only: it must not; always if left out"`
}

type kept struct {
	Version int64 `pif:"version"`
	Size    int64 `pif:"size" doc:"bytes"`
}

// put keeps a value.
func put(ctx context.Context, s *scope, a putArgs) (kept, error) {
	var k kept
	err := s.update(ctx, "put", a.Key, a.Value, func(tx *sql.Tx, old *row, new []byte) (err error) {
		switch {
		case old == nil && a.Create == "never":
			return notFound(a.Key)
		case old != nil && a.Create == "only":
			return sdk.Fail("exists", "there is a key %s already", quote(a.Key))
		}
		k, err = s.set(ctx, tx, a.Key, old, new)
		return err
	})
	return k, err
}

type casArgs struct {
	Key     string      `pif:"key,designates" doc:"the key, whole, such as notes/todo"`
	Value   value.Value `pif:"value" doc:"what it is to have: any value but a function"`
	Version *int64      `pif:"version" doc:"the version that it must have, from kv.entry or kv.list; 0: there must be none"`
	Expect  value.Value `pif:"expect,optional" doc:"in place of version: the value that it must have, to the last digit"`
}

type swap struct {
	Swapped bool  `pif:"swapped" doc:"whether it was as expected, and was changed"`
	Version int64 `pif:"version" doc:"that it has now; 0: there is none"`
}

// cas keeps a value if the key is as expected.
func cas(ctx context.Context, s *scope, a casArgs) (swap, error) {
	if (a.Version == nil) == (a.Expect == nil) {
		return swap{}, sdk.Fail("invalid", "kv.cas takes either a version or a value to expect").
			WithHint("Give version, as kv.entry says it, or expect.")
	}
	var expect []byte
	if a.Expect != nil {
		var err error
		if expect, err = sdk.Encode(a.Expect, maxValueBytes); err != nil {
			return swap{}, err
		}
	}
	var r swap
	err := s.update(ctx, "cas", a.Key, a.Value, func(tx *sql.Tx, old *row, new []byte) error {
		r = swap{}
		if old != nil {
			r.Version = old.version
		}
		if as := a.Version != nil && *a.Version == r.Version || expect != nil && old != nil && bytes.Equal(expect, old.value); !as {
			return nil
		}
		k, err := s.set(ctx, tx, a.Key, old, new)
		r = swap{true, k.Version}
		return err
	})
	if err != nil {
		return swap{}, err
	}
	return r, nil
}

type deleteArgs struct {
	Key string `pif:"key,main,designates" doc:"the key, whole, such as notes/todo"`
}

type deleted struct {
	Deleted bool `pif:"deleted" doc:"whether it was there"`
}

// remove takes a key away.
func remove(ctx context.Context, s *scope, a deleteArgs) (d deleted, err error) {
	if err := s.on("delete", a.Key); err != nil {
		return d, err
	}
	defer s.mu.RUnlock()
	err = s.store.change(ctx, func(tx *sql.Tx) error {
		d = deleted{}
		old, err := find(ctx, tx, a.Key)
		if err != nil || old == nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM entries WHERE key = ?`, a.Key); err != nil {
			return err
		}
		d.Deleted = true
		return count(ctx, tx, spaceOf(a.Key), -1, -weight(a.Key, old.value))
	})
	return d, because(err)
}

// A row is what is kept for a key.
type row struct {
	version int64
	value   []byte
}

// find gives the row of a key; nil: there is none.
func find(ctx context.Context, tx *sql.Tx, key string) (*row, error) {
	r := &row{}
	err := tx.QueryRowContext(ctx, `SELECT version, value FROM entries WHERE key = ?`, key).Scan(&r.version, &r.value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return r, err
}

// update makes a transaction about a key that is to have a value. do is given what
// there is and the value's bytes, and may be called again.
func (s *scope) update(ctx context.Context, verb, key string, v value.Value, do func(tx *sql.Tx, old *row, new []byte) error) error {
	b, err := sdk.Encode(v, s.value)
	if f, ok := errors.AsType[sdk.Failure](err); ok && f.Code == "too_large" {
		return f.WithHint("Keep it in parts, under several keys.")
	}
	if err == nil {
		err = s.on(verb, key)
	}
	if err != nil {
		return err
	}
	defer s.mu.RUnlock()
	return because(s.store.change(ctx, func(tx *sql.Tx) error {
		old, err := find(ctx, tx, key)
		if err != nil {
			return err
		}
		return do(tx, old, b)
	}))
}

// set gives a key a value, if there is room. The same value changes nothing.
func (s *scope) set(ctx context.Context, tx *sql.Tx, key string, old *row, new []byte) (kept, error) {
	k := kept{Size: int64(len(new))}
	keys, bytesMore := int64(1), weight(key, new)
	if old != nil {
		if bytes.Equal(old.value, new) {
			k.Version = old.version
			return k, nil
		}
		keys, bytesMore = 0, bytesMore-weight(key, old.value)
	}
	if err := s.room(ctx, tx, spaceOf(key), keys, bytesMore); err != nil {
		return kept{}, err
	}
	// A number that JSON's readers take exactly, and never 0 or the old one.
	for k.Version == 0 || old != nil && k.Version == old.version {
		k.Version = rand.Int64N(1 << 53)
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO entries(key, version, size, value) VALUES(?1, ?2, ?3, ?4)
		ON CONFLICT(key) DO UPDATE SET version = ?2, size = ?3, value = ?4`, key, k.Version, k.Size, new)
	if err == nil {
		err = count(ctx, tx, spaceOf(key), keys, bytesMore)
	}
	return k, err
}

// weight returns what a key counts.
func weight(key string, value []byte) int64 { return int64(len(key) + len(value)) }

// room refuses what doesn't fit any more. What gets smaller always does.
func (s *scope) room(ctx context.Context, tx *sql.Tx, space string, keys, size int64) error {
	for _, limit := range []struct {
		name         string
		count, bytes int64
		says         string
	}{
		{space, s.count, s.size, "everything below " + quote(space)},
		{"", maxKeys, maxSpaceBytes, "everything that is kept"},
	} {
		var hasKeys, hasBytes int64
		err := tx.QueryRowContext(ctx, `SELECT keys, bytes FROM spaces WHERE name = ?`, limit.name).Scan(&hasKeys, &hasBytes)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		switch {
		case keys > 0 && hasKeys+keys > limit.count:
			return sdk.Fail("too_large", "it is full: %s may have at most %d keys", limit.says, limit.count).
				WithHint("Delete what isn't needed, or keep several things in one value.")
		case size > 0 && hasBytes+size > limit.bytes:
			return sdk.Fail("too_large", "it is full: %s may have at most %d bytes of keys and values", limit.says, limit.bytes).
				WithHint("Delete what isn't needed; kv.list says how large things are.")
		}
	}
	return nil
}

// count adds to what a space has, and all of them.
func count(ctx context.Context, tx *sql.Tx, space string, keys, size int64) error {
	for _, name := range []string{space, ""} {
		_, err := tx.ExecContext(ctx, `INSERT INTO spaces(name, keys, bytes) VALUES(?1, ?2, ?3)
			ON CONFLICT(name) DO UPDATE SET keys = keys + ?2, bytes = bytes + ?3`, name, keys, size)
		if err != nil {
			return err
		}
	}
	if keys >= 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM spaces WHERE name = ? AND keys = 0 AND name <> ''`, space)
	return err
}
