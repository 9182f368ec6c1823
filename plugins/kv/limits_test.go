package kv

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestFilling is an attacker's program that puts as much as it can.
func TestFilling(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	t.Run("bytes", func(t *testing.T) {
		dir := t.TempDir()
		h := hold(t, dir, "a/**", option("size", "64KiB"))
		var kept, refused atomic.Int64
		var all sync.WaitGroup
		for i := range 64 { // as in one par
			all.Go(func() {
				if _, err := h.try("put", "key", fmt.Sprintf("a/%02d", i), "value", text(4000)); err == nil {
					kept.Add(1)
				} else if f, ok := err.(sdk.Failure); ok && f.Code == "too_large" && strings.Contains(f.Message, "65536") {
					refused.Add(1)
				} else {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if kept.Load() != 16 || refused.Load() != 48 {
			t.Errorf("%d were kept and %d refused of 64 times 4 KB in 64 KiB", kept.Load(), refused.Load())
		}
		// What a grant says is about all of the space, also for a tool with a part of it.
		hold(t, dir, "a/b/c/**", option("size", "64KiB")).fails("too_large", "put", "key", "a/b/c/x", "value", text(4000))
		hold(t, dir, "b/**", option("size", "64KiB")).does("put", "key", "b/x", "value", text(4000))
		// It can be put right: smaller values, and fewer.
		some := h.keys()[0]
		h.does("put", "key", some, "value", "small")
		h.does("put", "key", "a/more", "value", text(3000))
		h.fails("too_large", "put", "key", some, "value", text(4000))
		h.does("delete", "key", "a/more")
		h.does("put", "key", some, "value", text(4000))
	})
	t.Run("keys", func(t *testing.T) {
		h := hold(t, t.TempDir(), "a/**", option("keys", "10"))
		for i := range 10 {
			h.does("put", "key", fmt.Sprintf("a/%d", i), "value", i)
		}
		h.fails("too_large", "put", "key", "a/new", "value", 1)
		h.fails("too_large", "cas", "key", "a/new", "value", 1, "version", 0)
		h.does("put", "key", "a/3", "value", "another")
		h.does("delete", "key", "a/4")
		h.does("put", "key", "a/new", "value", 1)
	})
	t.Run("values", func(t *testing.T) {
		dir := t.TempDir()
		h := hold(t, dir, "a/**")
		h.fails("too_large", "put", "key", "a/x", "value", text(1<<20))
		h.does("put", "key", "a/x", "value", text(1<<20-100))
		small := hold(t, dir, "a/**", func(c *sdk.Capability) { c.Max = 1000 })
		small.fails("too_large", "put", "key", "a/x", "value", text(1000))
		small.fails("too_large", "cas", "key", "a/y", "value", text(1000), "version", 0)
	})
	t.Run("all spaces", func(t *testing.T) {
		dir := t.TempDir()
		h := hold(t, dir, "**")
		h.does("put", "key", "a", "value", 1)
		// As if others had filled the rest.
		must.Succeed(t)(sharedStore(t, dir).writer.Exec(`UPDATE spaces SET bytes = ? WHERE name = ''`, maxSpaceBytes))
		h.fails("too_large", "put", "key", "new/x", "value", 1)
		must.Succeed(t)(sharedStore(t, dir).writer.Exec(`UPDATE spaces SET bytes = 0, keys = ? WHERE name = ''`, maxKeys))
		h.fails("too_large", "put", "key", "new/x", "value", 1)
	})
	t.Run("options", func(t *testing.T) {
		for _, o := range []func(*sdk.Capability){option("size", "2TiB"), option("keys", "0"), option("size", "")} {
			c := sdk.Capability{Within: "a/**", State: t.TempDir()}
			o(&c)
			if _, err := sdk.Direct(t.Context(), Plugin(), c); err == nil {
				t.Errorf("%v was taken", c.Options)
			}
		}
	})
}

// sharedStore is the store that the capabilities of a folder use.
func sharedStore(t testing.TB, dir string) *store {
	t.Helper()
	s, release, err := shared.take(dir)
	must.NoError(t, err)
	t.Cleanup(func() { release() })
	return s
}

// checkCounts holds what is counted of each space against what there is.
func checkCounts(t interface{ Fatalf(string, ...any) }, s *store) {
	var wrong int
	err := s.readers.QueryRow(`
		WITH entry AS (SELECT CASE instr(key, '/') WHEN 0 THEN key ELSE substr(key, 1, instr(key, '/') - 1) END AS space, length(CAST(key AS BLOB)) + length(value) AS weight FROM entries),
		is_so(name, keys, bytes) AS (SELECT space, count(*), sum(weight) FROM entry GROUP BY space UNION ALL SELECT '', count(*), coalesce(sum(weight), 0) FROM entry),
		said(name, keys, bytes) AS (SELECT * FROM spaces UNION SELECT '', 0, 0 WHERE NOT EXISTS (SELECT 1 FROM spaces WHERE name = ''))
		SELECT (SELECT count(*) FROM (SELECT * FROM is_so EXCEPT SELECT * FROM said)) + (SELECT count(*) FROM (SELECT * FROM said EXCEPT SELECT * FROM is_so))`).Scan(&wrong)
	if err != nil || wrong > 0 {
		t.Fatalf("%d spaces are counted wrong (%v)", wrong, err)
	}
}

// TestCounts: whatever is done, what is counted is what there is.
func TestCounts(t *testing.T) {
	dir := t.TempDir()
	h := hold(t, dir, "**", option("size", "64KiB"), option("keys", "10"))
	s := sharedStore(t, dir)
	rapid.Check(t, func(r *rapid.T) {
		key := rapid.SampledFrom([]string{"a", "a/x", "a/y", "b/é", "c/x/y", "c"}).Draw(r, "key")
		v := strings.Repeat("v", rapid.IntRange(0, 70_000).Draw(r, "size"))
		switch rapid.IntRange(0, 3).Draw(r, "what") {
		case 0, 1:
			_, _ = h.try("put", "key", key, "value", v) // may be full
		case 2:
			_, _ = h.try("cas", "key", key, "value", v, "version", 0)
		case 3:
			h.does("delete", "key", key)
		}
		checkCounts(r, s)
	})
}
