package journal_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/value"
	_ "modernc.org/sqlite" // the driver "sqlite"
	"pgregory.net/rapid"
)

func drawValue(t *rapid.T, depth int) value.Value {
	kinds := 7
	if depth > 0 {
		kinds = 10
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return value.NewInt(rapid.Int64().Draw(t, "int"))
	case 1:
		b := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "big"))
		if rapid.Bool().Draw(t, "negative") {
			b.Neg(b)
		}
		return value.NewBig(b)
	case 2:
		d, ok := value.NewDec(big.NewInt(rapid.Int64().Draw(t, "unscaled")), rapid.IntRange(0, 30).Draw(t, "scale"))
		if !ok {
			t.Fatal("no decimal")
		}
		return d
	case 3:
		return value.Bool(rapid.Bool().Draw(t, "bool"))
	case 4:
		return value.Str(rapid.String().Draw(t, "str"))
	case 5:
		return value.Unit{}
	case 6:
		p, f := parse.Code([]byte(`{"add":[{"var":"x"},{"dec":"1.50"}]}`), parse.Options{})
		must.NoFault(t, f)
		return &value.Code{Term: p.Term, Source: p.Source}
	case 7:
		return value.Nil{}
	case 8:
		return &value.Pair{First: drawValue(t, depth-1), Second: drawValue(t, depth-1)}
	case 9:
		var items []value.Value
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			items = append(items, drawValue(t, depth-1))
		}
		return value.FromSlice(items)
	}
	keys := rapid.SliceOfNDistinct(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"pair", "dec", "int", "record", "quote"})), 0, 4, rapid.ID[string]).Draw(t, "keys")
	slices.Sort(keys)
	r := &value.Record{}
	for _, k := range keys {
		r.Fields = append(r.Fields, value.Field{Key: k, Value: drawValue(t, depth-1)})
	}
	return r
}

// What was recorded is what is read, exactly: written again it is the same.
func TestValuesComeBackExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawValue(t, 4)
		b, err := journal.AppendValue(nil, v, 1<<20)
		must.NoError(t, err)
		back, err := journal.ReadValue(b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if v.Type() != back.Type() {
			t.Fatalf("%s: a %s came back as a %s", b, v.Type(), back.Type())
		}
		again, err := journal.AppendValue(nil, back, 1<<20)
		if err != nil || string(again) != string(b) {
			t.Fatalf("%s came back as %s, %v", b, again, err)
		}
	})
}

func TestValuesThatAreNotRecorded(t *testing.T) {
	if _, err := journal.AppendValue(nil, &value.Closure{}, 1<<20); err == nil {
		t.Error("a function was recorded")
	}
	var deep value.Value = value.Unit{}
	for range journal.MaxNesting + 1 {
		deep = &value.Pair{First: deep, Second: value.Unit{}}
	}
	if _, err := journal.AppendValue(nil, deep, 1<<20); !errors.Is(err, journal.ErrNesting) {
		t.Errorf("a deep value: %v", err)
	}
	for _, src := range []string{"", "1.5", `{"pair":[1]}`, `{"pair":[1,2],"x":3}`, `{"dec":1}`, `{"int":"x"}`, `{"b":1,"a":2}`, `{"record":5}`, `{"a":1`, strings.Repeat("[", 2000)} {
		if v, err := journal.ReadValue([]byte(src)); err == nil {
			t.Errorf("%.20s was read as %v", src, v)
		}
	}
}

// Strings are written as the standard library writes them, whatever character is
// where.
func TestStrings(t *testing.T) {
	for c := range 256 {
		for at := range 17 {
			b := []byte("abcdefghijklmnopq")
			b[at] = byte(c)
			s := strings.ToValidUTF8(string(b), "\uFFFD")
			var want bytes.Buffer
			enc := json.NewEncoder(&want)
			enc.SetEscapeHTML(false)
			must.NoError(t, enc.Encode(s))
			if got := string(journal.AppendString(nil, s)) + "\n"; got != want.String() {
				t.Fatalf("%q is written %s, not %s", s, got, want.String())
			}
		}
	}
}

// raw opens a store's file as somebody else would.
func raw(t testing.TB, path string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	conn, err := db.Conn(context.Background())
	must.NoError(t, err)
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
