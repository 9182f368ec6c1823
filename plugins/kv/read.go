package kv

import (
	"context"
	"database/sql"
	"errors"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

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
	return nil, missing(a.Key)
}

// missing returns the failure of a key that isn't there.
func missing(key string) error {
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
