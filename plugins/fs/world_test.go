package fs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// A world is a granted directory with a secret beside it.
type world struct {
	testing.TB
	base    string // holds both
	root    string // granted
	outside string
	plugin  sdk.Plugin
	grant   *os.File
}

const secret = "the secret outside"

// worlds runs a test with both kinds of directories, whatever the system uses.
func worlds(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	portable := Plugin()
	portable.Open = func(_ context.Context, c sdk.Capability) (any, error) {
		root, err := openByName(c.Root)
		if err != nil {
			return nil, because(".", err)
		}
		return open(c, root)
	}
	portable.Begin = func(f *os.File) {
		if root, err := openByName(f); err == nil {
			sweepAll(root)
			root.close()
		}
	}
	for name, plugin := range map[string]sdk.Plugin{"system": Plugin(), "osroot": portable} {
		t.Run(name, func(t *testing.T) { test(t, newWorld(t, plugin)) })
	}
}

func newWorld(t testing.TB, plugin sdk.Plugin) *world {
	t.Helper()
	base := t.TempDir()
	w := &world{TB: t, base: base, root: filepath.Join(base, "granted"), outside: filepath.Join(base, "outside"), plugin: plugin}
	w.makeDir(w.root)
	w.makeDir(w.outside)
	w.put(filepath.Join(w.outside, "secret.txt"), secret)
	f, err := os.Open(w.root)
	must.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	w.grant = f
	return w
}

func (w *world) makeDir(path string) {
	w.Helper()
	must.NoError(w, os.MkdirAll(path, 0o755))
}

// put writes a file behind the plugin's back, with the directories above it.
func (w *world) put(path, content string) {
	w.Helper()
	w.makeDir(filepath.Dir(path))
	must.NoError(w, os.WriteFile(path, []byte(content), 0o644))
}

// at is a path below the granted directory.
func (w *world) at(name string) string { return filepath.Join(w.root, filepath.FromSlash(name)) }

func (w *world) link(target, name string) {
	w.Helper()
	if err := os.Symlink(target, w.at(name)); err != nil {
		w.Skipf("no links here: %v", err)
	}
}

func (w *world) content(path string) string {
	w.Helper()
	b, err := os.ReadFile(path)
	must.NoError(w, err)
	return string(b)
}

func (w *world) gone(name string) {
	w.Helper()
	if _, err := os.Lstat(w.at(name)); !errors.Is(err, os.ErrNotExist) {
		w.Errorf("%s is there (%v)", name, err)
	}
}

// A holder invokes operations under a capability.
type holder struct {
	*world
	h *sdk.Handle
}

// hold opens a capability; change may narrow it.
func (w *world) hold(change func(c *sdk.Capability)) *holder {
	w.Helper()
	h, err := w.try(change)
	must.NoError(w, err)
	return h
}

func (w *world) try(change func(c *sdk.Capability)) (*holder, error) {
	c := sdk.Capability{Text: "fs:./granted", Within: ".", Root: w.grant}
	if change != nil {
		change(&c)
	}
	h, err := sdk.Direct(context.Background(), w.plugin, c)
	if err != nil {
		return nil, err
	}
	w.Cleanup(func() { h.Close() })
	return &holder{w, h}, nil
}

// within narrows to a part of the grant.
func within(path string) func(c *sdk.Capability) {
	return func(c *sdk.Capability) { c.Within = path }
}

// denying takes parts out of it: "path" or "verb,verb:path".
func denying(denies ...string) func(c *sdk.Capability) {
	return func(c *sdk.Capability) {
		for _, text := range denies {
			d := sdk.Deny{Within: text}
			if verbs, path, ok := strings.Cut(text, ":"); ok {
				d = sdk.Deny{Verbs: strings.Split(verbs, ","), Within: path}
			}
			c.Denies = append(c.Denies, d)
		}
	}
}

// arguments makes a record: a name and what it is, in turn.
func arguments(pairs ...any) value.Value {
	var fields []value.Field
	for i := 0; i < len(pairs); i += 2 {
		f := value.Field{Key: pairs[i].(string)}
		switch v := pairs[i+1].(type) {
		case string:
			f.Value = value.Str(v)
		case int:
			f.Value = value.NewInt(int64(v))
		case int64:
			f.Value = value.NewInt(v)
		case bool:
			f.Value = value.Bool(v)
		}
		fields = append(fields, f)
	}
	slices.SortFunc(fields, func(a, b value.Field) int { return strings.Compare(a.Key, b.Key) })
	return &value.Record{Fields: fields}
}

var ofType = plugintest.Types(Plugin())

// invoke performs an operation. Whatever fails, no path of this machine and
// nothing of what is outside may be in what is said.
func (h *holder) invoke(op string, pairs ...any) (value.Value, error) {
	v, err := h.h.Invoke(context.Background(), op, arguments(pairs...))
	if err == nil {
		ofType(h, op, v)
		return v, nil
	}
	f, ok := errors.AsType[sdk.Failure](err)
	if !ok {
		h.Errorf("%s %q: the error is no failure: %v", op, pairs, err)
		return nil, err
	}
	said := fmt.Sprint(pairs...)
	for _, leak := range []string{h.base, secret, "openat", "renameat"} {
		if strings.Contains(f.Message+f.Hint, leak) && !strings.Contains(said, leak) {
			h.Errorf("%s %.80q: the failure tells %q: %s", op, pairs, leak, f.Message+f.Hint)
		}
	}
	return nil, f
}

// ok performs an operation that must succeed.
func (h *holder) ok(op string, pairs ...any) value.Value {
	h.Helper()
	v, err := h.invoke(op, pairs...)
	if err != nil {
		h.Fatalf("%s %q: %v", op, pairs, err)
	}
	return v
}

// refused performs an operation that must fail with one of the codes, separated
// by |.
func (h *holder) refused(codes, op string, pairs ...any) sdk.Failure {
	h.Helper()
	v, err := h.invoke(op, pairs...)
	if err == nil {
		h.Errorf("%s %.80q was done, expected %s; it gave %.80v", op, pairs, codes, v)
		return sdk.Failure{}
	}
	f := err.(sdk.Failure)
	if !slices.Contains(strings.Split(codes, "|"), f.Code) {
		h.Errorf("%s %.80q: %v, expected %s", op, pairs, err, codes)
	}
	return f
}

// reads checks a file's content as fs.read gives it.
func (h *holder) reads(path, want string) {
	h.Helper()
	if got := h.ok("fs.read", "path", path); got != value.Str(want) {
		h.Errorf("read %s: %q, expected %q", path, got, want)
	}
}

// entries gives the paths of a list, each with / for a directory, @ for a link,
// ? for other kinds.
func (h *holder) entries(op string, pairs ...any) string {
	h.Helper()
	items, _ := value.Slice(h.ok(op, pairs...))
	var names []string
	for _, item := range items {
		sign := map[string]string{"file": "", "directory": "/", "link": "@", "other": "?"}[field(item, "kind")]
		names = append(names, field(item, "path")+sign)
	}
	return strings.Join(names, " ")
}

// field is a member of a record as text.
func field(v value.Value, key string) string {
	for _, f := range v.(*value.Record).Fields {
		if f.Key == key {
			switch v := f.Value.(type) {
			case value.Str:
				return string(v)
			case value.Int:
				return v.String()
			}
		}
	}
	return ""
}

// every is each operation on a path, with arguments that would otherwise do.
func every(path string) map[string][]any {
	return map[string][]any{
		"fs.read":   {"path", path},
		"fs.write":  {"path", path, "content", "attack"},
		"fs.append": {"path", path, "content", "attack"},
		"fs.list":   {"path", path},
		"fs.glob":   {"pattern", path},
		"fs.stat":   {"path", path},
		"fs.mkdir":  {"path", path},
		"fs.move":   {"from", path, "to", "moved"},
		"fs.remove": {"path", path, "recursive", true},
	}
}

// text is a string's text.
func text(v value.Value) string {
	s, _ := v.(value.Str)
	return string(s)
}
