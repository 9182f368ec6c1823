package flow_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var (
	reads = caps.Flags{ReadOnly: true, Idempotent: true}
	asks  = caps.Flags{ReadOnly: true, OpenWorld: true}
	tells = caps.Flags{Destructive: true, OpenWorld: true}
	path  = caps.Param{Name: "path", Type: "string", Main: true, Designates: true}

	attachments = check.List(check.Record([]check.Field{{Key: "name", Type: check.String, Optional: true}, {Key: "url", Type: check.String}}, check.Data))
)

// kinds is files, values, the web and a mail server.
func kinds(t testing.TB) caps.Kinds {
	t.Helper()
	k, err := caps.NewKinds(
		&caps.Manifest{
			Kind: "fs", Algebra: caps.Path, Verbs: []caps.Verb{{Name: "read", Flags: reads}, {Name: "list", Flags: reads}, {Name: "write"}, {Name: "move"}},
			Operations: []caps.Operation{
				{Name: "fs.read", Verb: "read", Params: []caps.Param{path}},
				{Name: "fs.list", Verb: "list", Params: []caps.Param{{Name: "path", Type: "string", Main: true, Designates: true, Optional: true}}},
				{Name: "fs.write", Verb: "write", Params: []caps.Param{{Name: "path", Type: "string", Designates: true}, {Name: "content", Type: "string"}}},
				{Name: "fs.move", Verb: "move", Params: []caps.Param{{Name: "from", Type: "string", Designates: true}, {Name: "to", Type: "string", Designates: true}}},
			},
		},
		&caps.Manifest{
			Kind: "kv", Algebra: caps.Segments, Verbs: []caps.Verb{{Name: "get", Flags: reads}, {Name: "list", Flags: reads}, {Name: "put"}},
			Operations: []caps.Operation{
				{Name: "kv.get", Verb: "get", Params: []caps.Param{{Name: "key", Type: "string", Main: true, Designates: true}}},
				{Name: "kv.list", Verb: "list", Params: []caps.Param{{Name: "prefix", Type: "string", Main: true, Designates: true, Prefix: true, Optional: true}}},
				{Name: "kv.put", Verb: "put", Params: []caps.Param{{Name: "key", Type: "string", Designates: true}, {Name: "value", Type: "any"}}},
			},
		},
		&caps.Manifest{
			Kind: "fetch", Algebra: caps.URL, Verbs: []caps.Verb{{Name: "get", Flags: asks}, {Name: "post", Flags: tells}},
			Operations: []caps.Operation{{Name: "fetch.request", Verb: "get", VerbParam: "method", Params: []caps.Param{
				{Name: "url", Type: "string", Main: true, Designates: true}, {Name: "method", Type: "string", Optional: true}, {Name: "body", Type: "string", Optional: true}, {Name: "headers", Type: "record", Optional: true}, {Name: "json", Type: "any", Optional: true},
			}}},
		},
		&caps.Manifest{
			Kind: "sh", Algebra: caps.Exact, Verbs: []caps.Verb{{Name: "look", Flags: caps.Flags{ReadOnly: true}}, {Name: "say", Flags: tells}}, Privileges: []string{"command"},
			Operations: []caps.Operation{{Name: "sh.look", Verb: "look"}, {Name: "sh.say", Verb: "say", Params: []caps.Param{{Name: "text", Type: "string"}}}},
		},
		&caps.Manifest{
			Kind: "mail", Server: "mail", Algebra: caps.Exact, Verbs: []caps.Verb{{Name: "read", Flags: asks}, {Name: "send", Flags: tells}, {Name: "archive", Flags: tells}},
			Operations: []caps.Operation{
				{Name: "mail.read", Wire: "read", Verb: "read", Params: []caps.Param{{Name: "id", Type: "string"}}},
				{Name: "mail.send", Wire: "send", Verb: "send", Params: []caps.Param{
					{Name: "to", Type: "string", Designates: true}, {Name: "body", Type: "string"}, {Name: "attachments", Type: "list", Of: attachments, Optional: true},
				}},
				{Name: "mail.archive", Wire: "archive", Verb: "archive", Params: []caps.Param{{Name: "id", Type: "string"}}},
			},
		},
	)
	must.NoError(t, err)
	return k
}

// A place is a folder of its own with grants in it.
type place struct {
	t       testing.TB
	dir     string
	kinds   caps.Kinds
	granted flow.Granted
	policy  *caps.Policy
}

func newPlace(t testing.TB, grants ...string) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.NoError(t, err)
	p := &place{t: t, dir: dir, kinds: kinds(t)}
	for _, name := range []string{"private", "public", "out"} {
		must.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	p.policy = caps.NewPolicy(p.kinds, time.Now)
	t.Cleanup(func() { p.policy.Close() })
	for _, text := range grants {
		c, err := caps.Parse(p.at(text), p.kinds)
		must.NoError(t, err)
		g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: p.kinds, Dir: dir})
		must.NoError(t, err)
		must.NoError(t, p.policy.Grant(g))
		p.granted = append(p.granted, g)
	}
	return p
}

// at is a text with DIR for the folder.
func (p *place) at(text string) string { return strings.ReplaceAll(text, "DIR", p.dir) }

func (p *place) compile(config string, flags ...string) (*flow.Policy, error) {
	p.t.Helper()
	c := flow.Config{}
	if config != "" {
		var err error
		if c, err = flow.ParseConfig([]byte(p.at(config))); err != nil {
			return nil, err
		}
	}
	for _, f := range flags {
		var err error
		switch f = p.at(f); {
		case strings.Contains(f, ">"):
			err = c.NoFlow(f)
		case strings.Contains(f, "="):
			err = c.Label(f)
		default:
			err = c.Preset(f)
		}
		if err != nil {
			return nil, err
		}
	}
	return flow.Compile(c, p.kinds, p.granted)
}

func (p *place) mustCompile(config string, flags ...string) *flow.Policy {
	p.t.Helper()
	f, err := p.compile(config, flags...)
	must.NoError(p.t, err)
	return f
}

// permit permits a request under all that is granted.
func (p *place) permit(op, args string) *caps.Permit {
	p.t.Helper()
	m, _, ok := p.kinds.Operation(op)
	if !ok {
		p.t.Fatalf("there is no %s", op)
	}
	var held []*caps.Held
	for _, g := range p.granted {
		if g.Kind == m.Kind {
			c := g.Shown()
			within := "."
			if m.Algebra != caps.Path {
				within = c.Scope
			}
			held = append(held, &caps.Held{Capability: c, Grant: g, Within: within})
		}
	}
	var fields map[string]string
	must.NoError(p.t, json.Unmarshal([]byte(args), &fields))
	r := &value.Record{}
	for _, param := range []string{"body", "content", "from", "id", "key", "method", "path", "prefix", "to", "url", "value"} {
		if s, ok := fields[param]; ok {
			r.Fields = append(r.Fields, value.Field{Key: param, Value: value.Str(s)})
		}
	}
	permit, f := p.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: op, In: fields["in"], Arg: r, Tool: "t"})
	if f != nil {
		p.t.Fatalf("%s %s: %v", op, args, f)
	}
	return permit
}
