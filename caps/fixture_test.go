package caps_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var (
	reads  = caps.Flags{ReadOnly: true, Idempotent: true}
	ruins  = caps.Flags{Destructive: true}
	asks   = caps.Flags{ReadOnly: true, Idempotent: true, OpenWorld: true}
	tells  = caps.Flags{OpenWorld: true, Destructive: true}
	path   = caps.Param{Name: "path", Type: "string", Main: true, Designates: true}
	both   = []string{"utf8", "base64"}
	fsKind = &caps.Manifest{
		Kind: "fs", Algebra: caps.Path, Options: map[string][]string{"links": {"ok"}},
		Verbs: []caps.Verb{
			{Name: "read", Flags: reads}, {Name: "list", Flags: reads}, {Name: "glob", Flags: reads}, {Name: "stat", Flags: reads},
			{Name: "write", Flags: ruins}, {Name: "append"}, {Name: "mkdir"}, {Name: "move", Flags: ruins}, {Name: "remove", Flags: ruins},
		},
		Operations: []caps.Operation{
			{Name: "fs.read", Verb: "read", Params: []caps.Param{
				path, {Name: "encoding", Type: "string", Optional: true, Enum: both},
				{Name: "from", Type: "int", Optional: true}, {Name: "length", Type: "int", Optional: true},
			}},
			{Name: "fs.write", Verb: "write", Params: []caps.Param{
				{Name: "path", Type: "string", Designates: true}, {Name: "content", Type: "string"},
				{Name: "encoding", Type: "string", Optional: true, Enum: both},
				{Name: "create", Type: "string", Optional: true, Enum: []string{"always", "never", "only"}},
			}},
			{Name: "fs.append", Verb: "append", Params: []caps.Param{
				{Name: "path", Type: "string", Designates: true}, {Name: "content", Type: "string"},
			}},
			{Name: "fs.list", Verb: "list", Params: []caps.Param{
				{Name: "path", Type: "string", Main: true, Designates: true, Optional: true}, {Name: "recursive", Type: "bool", Optional: true},
			}},
			{Name: "fs.glob", Verb: "glob", Params: []caps.Param{{Name: "pattern", Type: "string", Main: true, Designates: true}}},
			{Name: "fs.stat", Verb: "stat", Params: []caps.Param{path}},
			{Name: "fs.mkdir", Verb: "mkdir", Params: []caps.Param{path}},
			{Name: "fs.move", Verb: "move", Params: []caps.Param{
				{Name: "from", Type: "string", Designates: true}, {Name: "to", Type: "string", Designates: true},
			}},
			{Name: "fs.remove", Verb: "remove", Params: []caps.Param{path, {Name: "recursive", Type: "bool", Optional: true}}},
		},
	}
	fetchKind = &caps.Manifest{
		Kind: "fetch", Algebra: caps.URL, Options: map[string][]string{"private": {"ok"}, "plain": nil},
		Verbs: []caps.Verb{
			{Name: "get", Flags: asks}, {Name: "head", Flags: asks}, {Name: "options", Flags: asks},
			{Name: "post", Flags: tells}, {Name: "put", Flags: tells}, {Name: "patch", Flags: tells}, {Name: "delete", Flags: tells},
		},
		Operations: []caps.Operation{{Name: "fetch.request", Verb: "get", VerbParam: "method", Params: []caps.Param{
			{Name: "url", Type: "string", Main: true, Designates: true}, {Name: "method", Type: "string", Optional: true},
			{Name: "headers", Type: "record", Optional: true}, {Name: "body", Type: "string", Optional: true}, {Name: "json", Type: "any", Optional: true},
		}}},
	}
	kvKind = &caps.Manifest{
		Kind: "kv", Algebra: caps.Segments,
		Verbs: []caps.Verb{{Name: "get", Flags: reads}, {Name: "put", Flags: ruins}, {Name: "keys", Flags: reads}},
		Operations: []caps.Operation{
			{Name: "kv.get", Verb: "get", Params: []caps.Param{{Name: "key", Type: "string", Main: true, Designates: true}}},
			{Name: "kv.keys", Verb: "keys", Params: []caps.Param{{Name: "prefix", Type: "string", Main: true, Designates: true, Prefix: true, Optional: true}}},
			{Name: "kv.put", Verb: "put", Params: []caps.Param{{Name: "key", Type: "string", Designates: true}, {Name: "value", Type: "any"}}},
		},
	}
	procKind = &caps.Manifest{
		Kind: "proc", Algebra: caps.Exact, Verbs: []caps.Verb{{Name: "send", Flags: tells}},
		Operations: []caps.Operation{{Name: "proc.send", Verb: "send", Params: []caps.Param{{Name: "text", Type: "string", Main: true}}}},
	}
)

func testKinds(t testing.TB) caps.Kinds {
	t.Helper()
	kinds, err := caps.NewKinds(fsKind, fetchKind, kvKind, procKind)
	must.NoError(t, err)
	return kinds
}

// A clock is moved by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// A world is a directory of its own with a policy.
type world struct {
	t      testing.TB
	dir    string
	kinds  caps.Kinds
	clock  *clock
	policy *caps.Policy
}

// newWorld makes the directories (names that end in a slash) and files.
func newWorld(t testing.TB, files ...string) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.NoError(t, err)
	w := &world{t: t, dir: dir, kinds: testKinds(t), clock: newClock()}
	w.policy = caps.NewPolicy(w.kinds, w.clock.now)
	t.Cleanup(func() { w.policy.Close() })
	for _, name := range files {
		w.make(name)
	}
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

func (w *world) make(name string) {
	w.t.Helper()
	p := w.path(name)
	var err error
	if strings.HasSuffix(name, "/") {
		err = os.MkdirAll(p, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(p), 0o755); err == nil {
		err = os.WriteFile(p, []byte("x"), 0o600)
	}
	must.NoError(w.t, err)
}

func (w *world) link(name, to string) {
	w.t.Helper()
	if err := os.Symlink(to, w.path(name)); err != nil {
		w.t.Skip("no symbolic links here:", err)
	}
}

func (w *world) rename(from, to string) {
	w.t.Helper()
	must.NoError(w.t, os.Rename(w.path(from), w.path(to)))
}

func (w *world) remove(name string) {
	w.t.Helper()
	must.NoError(w.t, os.RemoveAll(w.path(name)))
}

func (w *world) parse(text string) caps.Capability {
	w.t.Helper()
	c, err := caps.Parse(text, w.kinds)
	must.NoError(w.t, err)
	return c
}

func (w *world) resolve(text string, protected ...string) (*caps.Grant, error) {
	w.t.Helper()
	g, err := caps.Resolve(w.parse(text), caps.ResolveOptions{Kinds: w.kinds, Dir: w.dir, Protected: protected})
	if err == nil {
		w.t.Cleanup(func() { g.Close() })
	}
	return g, err
}

func (w *world) grant(texts ...string) []*caps.Grant {
	w.t.Helper()
	var grants []*caps.Grant
	for _, text := range texts {
		g, err := w.resolve(text)
		if err == nil {
			err = w.policy.Grant(g)
		}
		must.NoError(w.t, err)
		grants = append(grants, g)
	}
	return grants
}

// revocation is what takes a grant back.
func (w *world) revocation(g *caps.Grant) caps.Revocation {
	w.t.Helper()
	e, err := caps.RevocationOf(g.Capability.String(), w.kinds, w.dir, g.Principal)
	must.NoError(w.t, err)
	return e
}

func (w *world) ask(text string) *caps.Grant {
	w.t.Helper()
	g, err := caps.Resolve(w.parse(text), caps.ResolveOptions{Kinds: w.kinds, Dir: w.dir, Asked: true})
	if err == nil {
		err = w.policy.Grant(g)
	}
	must.NoError(w.t, err)
	return g
}

func (w *world) deny(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		must.NoError(w.t, w.policy.DenyIn(w.dir, w.parse(text)))
	}
}

// hold gives a tool's capabilities: everything declared counts as used.
func (w *world) hold(declared ...string) []*caps.Held {
	w.t.Helper()
	d, f := w.policy.Decide(declared, caps.Needs{Withs: []caps.With{{Texts: declared}}}, caps.DecideOptions{})
	must.NoFault(w.t, f)
	return d.Held
}

// permit asks for one effect of the tool "t".
func (w *world) permit(l *caps.Ledger, held []*caps.Held, op string, arg value.Value) (*caps.Permit, *fault.Fault) {
	return w.policy.Permit(l, held, caps.Request{Operation: op, Arg: arg, Tool: "t"})
}

// allowed reports a permit, and fails the test for a fault that is no denial.
func (w *world) allowed(held []*caps.Held, op string, arg value.Value) bool {
	w.t.Helper()
	_, f := w.permit(caps.NewLedger(), held, op, arg)
	if f != nil && f.Kind != fault.Denied {
		w.t.Fatal(f)
	}
	return f == nil
}

func str(s string) value.Value { return value.Str(s) }

// rec makes a record of name, value, name, value.
func rec(pairs ...any) value.Value {
	r := &value.Record{}
	for i := 0; i < len(pairs); i += 2 {
		var v value.Value
		switch x := pairs[i+1].(type) {
		case string:
			v = value.Str(x)
		case int:
			v = value.NewInt(int64(x))
		case bool:
			v = value.Bool(x)
		case value.Value:
			v = x
		}
		r.Fields = append(r.Fields, value.Field{Key: pairs[i].(string), Value: v})
	}
	slices.SortFunc(r.Fields, func(a, b value.Field) int { return strings.Compare(a.Key, b.Key) })
	return r
}

// ops is needs of operations, one after another.
func ops(names ...string) caps.Needs {
	var n caps.Needs
	for i, name := range names {
		op, in, _ := strings.Cut(name, " in ")
		n.Ops = append(n.Ops, caps.Need{Name: op, In: in, At: fault.Pointer("/body").Index(i)})
	}
	return n
}

// wantFault fails unless f is of the kind and says all the words.
func wantFault(t *testing.T, f *fault.Fault, kind fault.Kind, words ...string) {
	t.Helper()
	if f == nil {
		t.Fatalf("nothing was refused, expected %s with %q", kind, words)
	}
	if f.Kind != kind {
		t.Errorf("kind %s, expected %s: %v", f.Kind, kind, f)
	}
	for _, word := range words {
		if !strings.Contains(f.Error(), word) {
			t.Errorf("expected %q in: %v", word, f)
		}
	}
}
