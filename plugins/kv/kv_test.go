package kv

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestValuesAreExact: every kind of value comes back as it was put, also from a
// store that was closed meanwhile.
func TestValuesAreExact(t *testing.T) {
	dir := t.TempDir()
	values := map[string]value.Value{
		"int":     value.NewInt(-7),
		"big":     bigInt("-123456789012345678901234567890123456789012345678901234567890"),
		"dec":     decimal("1.50"),
		"bool":    value.Bool(true),
		"null":    value.Unit{},
		"string":  value.Str("ein Übel \U0001F600 \x00 \n"),
		"nothing": value.Str(""),
		"list":    value.FromSlice([]value.Value{value.NewInt(1), value.Nil{}, value.Str("x")}),
		"pair":    &value.Pair{First: value.NewInt(1), Second: &value.Pair{First: value.Unit{}, Second: value.Nil{}}},
		"record":  &value.Record{Fields: []value.Field{{Key: "", Value: value.NewInt(1)}, {Key: "pair", Value: value.Nil{}}}},
	}
	h := hold(t, dir, "v/**")
	for name, v := range values {
		h.does("put", "key", "v/"+name, "value", v)
	}
	h.Close()
	h = hold(t, dir, "v/**")
	for name, v := range values {
		if got := h.does("get", "key", "v/"+name); !same(t, got, v) {
			t.Errorf("%s: put %v, got %v", name, v, got)
		}
	}
	h.fails("invalid", "put", "key", "v/f", "value", value.Value(&value.Closure{}))
	h.fails("not_found", "get", "key", "v/f")
}

func TestGetAndEntry(t *testing.T) {
	h := hold(t, t.TempDir(), "a/**")
	h.fails("not_found", "get", "key", "a/x")
	if got := h.does("get", "key", "a/x", "default", value.Value(value.Unit{})); got != (value.Unit{}) {
		t.Errorf("the default null gives %v", got)
	}
	none := h.does("entry", "key", "a/x")
	if number(t, member(none, "version")) != 0 || member(none, "value") != nil || member(none, "size") != nil {
		t.Errorf("no entry is %v", none)
	}
	version := number(t, member(h.does("put", "key", "a/x", "value", 1), "version"))
	there := h.does("entry", "key", "a/x")
	if version == 0 || number(t, member(there, "version")) != version || number(t, member(there, "value")) != 1 {
		t.Errorf("put as %d, the entry is %v", version, there)
	}
}

// TestOnce: of puts those that make what isn't there aren't done again by themselves.
func TestOnce(t *testing.T) {
	m, err := Plugin().Manifest()
	must.NoError(t, err)
	o, _ := m.Operation("kv.put")
	for create, again := range map[string]bool{"always": true, "never": true, "only": false} {
		if f := m.FlagsOf(o, &value.Record{Fields: []value.Field{{Key: "create", Value: value.Str(create)}}}); f.Idempotent != again {
			t.Errorf("create %s: %+v", create, f)
		}
	}
}

// TestPutSaysWhatItFound: create decides between a new key and an old one, and the
// same value changes nothing.
func TestPutSaysWhatItFound(t *testing.T) {
	h := hold(t, t.TempDir(), "a/**")
	h.fails("not_found", "put", "key", "a/x", "value", 1, "create", "never")
	first := number(t, member(h.does("put", "key", "a/x", "value", 1, "create", "only"), "version"))
	h.fails("exists", "put", "key", "a/x", "value", 2, "create", "only")
	if again := number(t, member(h.does("put", "key", "a/x", "value", 1), "version")); again != first {
		t.Errorf("the same value has the version %d, and had %d", again, first)
	}
	if other := number(t, member(h.does("put", "key", "a/x", "value", 2, "create", "never"), "version")); other == first {
		t.Error("another value has the version of the first")
	}
	if got := h.does("delete", "key", "a/x"); member(got, "deleted") != value.Bool(true) {
		t.Errorf("delete gives %v", got)
	}
	if got := h.does("delete", "key", "a/x"); member(got, "deleted") != value.Bool(false) {
		t.Errorf("a second delete gives %v", got)
	}
	if back := number(t, member(h.does("put", "key", "a/x", "value", 1), "version")); back == first {
		t.Error("a key that was deleted came back with its old version")
	}
}

func TestCompareAndSet(t *testing.T) {
	h := hold(t, t.TempDir(), "a/**")
	swapped := func(args ...any) bool {
		t.Helper()
		return member(h.does("cas", append([]any{"key", "a/x"}, args...)...), "swapped") == value.Bool(true)
	}
	h.fails("invalid", "cas", "key", "a/x", "value", 1)
	h.fails("invalid", "cas", "key", "a/x", "value", 1, "version", 0, "expect", 1)
	if swapped("value", 1, "version", 5) || swapped("value", 1, "expect", value.Value(value.Unit{})) {
		t.Error("a key that isn't there was as expected")
	}
	if !swapped("value", 1, "version", 0) || swapped("value", 2, "version", 0) {
		t.Error("version 0 isn't: there is none")
	}
	version := number(t, member(h.does("entry", "key", "a/x"), "version"))
	if swapped("value", 2, "version", int(version)+1) || !swapped("value", 2, "version", int(version)) || swapped("value", 3, "version", int(version)) {
		t.Error("the version doesn't decide")
	}
	if swapped("value", 3, "expect", 1) || !swapped("value", 3, "expect", 2) {
		t.Error("the expected value doesn't decide")
	}
	if got := number(t, h.does("get", "key", "a/x")); got != 3 {
		t.Errorf("it is %d", got)
	}
	h.does("put", "key", "a/d", "value", value.Value(decimal("1.50")))
	if got := h.does("cas", "key", "a/d", "value", 1, "expect", value.Value(decimal("1.5"))); member(got, "swapped") != value.Bool(false) {
		t.Error("1.5 was taken for 1.50")
	}
}

// TestVerbs: a capability does what its verbs are, and ro only reads.
func TestVerbs(t *testing.T) {
	dir := t.TempDir()
	hold(t, dir, "a/**").does("put", "key", "a/x", "value", 1)
	writes := map[string][]any{
		"put": {"key", "a/x", "value", 2}, "delete": {"key", "a/x"}, "cas": {"key", "a/x", "value", 2, "expect", 1},
	}
	reads := map[string][]any{"get": {"key", "a/x"}, "entry": {"key", "a/x"}, "list": {}}
	for _, h := range []holder{hold(t, dir, "a/**", option("ro", "")), hold(t, dir, "a/**", verbs("get", "entry", "list"))} {
		for verb, args := range writes {
			h.fails("denied", verb, args...)
		}
		for verb, args := range reads {
			h.does(verb, args...)
		}
	}
	blind := hold(t, dir, "a/**", verbs("put"))
	for verb, args := range reads {
		blind.fails("denied", verb, args...)
	}
	blind.does("put", "key", "a/x", "value", 3)
}

// TestPlace: the file is for this user alone, and no other file is taken for one.
func TestPlace(t *testing.T) {
	dir := t.TempDir()
	h := hold(t, dir, "a/**")
	h.does("put", "key", "a/x", "value", 1)
	entries, err := os.ReadDir(dir)
	must.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		must.NoError(t, err)
		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %o", e.Name(), info.Mode().Perm())
		}
	}
	h.Close()

	for name, spoil := range map[string]func(path string) error{
		"no database": func(path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("this is somebody's letter ", 200)), 0o600)
		},
		"a newer store": func(path string) error {
			s, err := openStore(path)
			if err != nil {
				return err
			}
			_, err = s.writer.Exec(`PRAGMA user_version=2`)
			return joined(err, s.close())
		},
		"another program's": func(path string) error {
			s, err := openStore(path)
			if err != nil {
				return err
			}
			_, err = s.writer.Exec(`PRAGMA application_id=1`)
			return joined(err, s.close())
		},
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must.NoError(t, spoil(filepath.Join(dir, fileName)))
			_, err := sdk.Direct(t.Context(), Plugin(), sdk.Capability{Within: "a/**", State: dir})
			if err == nil {
				t.Fatal("it was opened")
			}
			if name == "a newer store" != strings.Contains(err.Error(), "newer") {
				t.Errorf("%v", err)
			}
			if strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), fileName) {
				t.Errorf("%v tells where the file is", err)
			}
		})
	}
	if _, err := sdk.Direct(t.Context(), Plugin(), sdk.Capability{Within: "a/**"}); err == nil {
		t.Error("a capability without a folder was opened")
	}
}

func joined(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestConforms holds the plugin against the contract that all plugins keep.
func TestConforms(t *testing.T) {
	plugintest.Run(t, Plugin(), plugintest.Fixtures{
		Calls: []plugintest.Call{
			{Operation: "kv.put", Arguments: plugintest.Arguments("key", "conform/a", "value", "a")},
			{Operation: "kv.get", Arguments: plugintest.Arguments("key", "conform/none", "default", 1)},
			{Operation: "kv.entry", Arguments: plugintest.Arguments("key", "conform/none")},
			{Operation: "kv.cas", Arguments: plugintest.Arguments("key", "conform/b", "value", 2, "version", 0)},
			{Operation: "kv.delete", Arguments: plugintest.Arguments("key", "conform/a")},
			{Operation: "kv.list", Arguments: plugintest.Arguments("prefix", "conform")},
		},
	})
}
