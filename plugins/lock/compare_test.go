package lock

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	types "github.com/mcp-pif/mcp-pif/core/check"
)

// said is a manifest that uses everything.
func said() *caps.Manifest {
	return &caps.Manifest{
		Kind: "weather", Version: "1.0.0", Doc: "tells <the> weather & more", Algebra: caps.Segments,
		Options:    map[string][]string{"units": {"metric", "us"}, "quiet": {}},
		Privileges: []string{"network"},
		Verbs: []caps.Verb{
			{Name: "get", Flags: caps.Flags{ReadOnly: true, Idempotent: true, OpenWorld: true}},
			{Name: "set", Flags: caps.Flags{Destructive: true}},
		},
		Operations: []caps.Operation{
			{Name: "weather.get", Doc: "tells", Verb: "get", Result: "string", Type: types.String, Params: []caps.Param{
				{Name: "place", Doc: "where", Type: "string", Main: true, Designates: true},
				{Name: "as", Type: "string", Optional: true, Enum: []string{"text", "number"}},
			}},
			{Name: "weather.do", Doc: "does", Verb: "get", VerbParam: "how", Result: "any", Params: []caps.Param{{Name: "how", Type: "string", Optional: true}}},
		},
	}
}

// Every way in which a new version may do more is told, as that.
func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *caps.Manifest)
		says   string
		wider  bool
	}{
		"nothing":          {func(*caps.Manifest) {}, "", false},
		"a version":        {func(m *caps.Manifest) { m.Version = "1.1.0" }, "version: 1.0.0 → 1.1.0", false},
		"a doc":            {func(m *caps.Manifest) { m.Doc = "other" }, "doc: ", false},
		"a privilege more": {func(m *caps.Manifest) { m.Privileges = append(m.Privileges, "processes") }, "privilege: new: processes", true},
		"a privilege less": {func(m *caps.Manifest) { m.Privileges = nil }, "privilege: gone, was: network", false},
		"an operation more": {func(m *caps.Manifest) {
			m.Operations = append(m.Operations, caps.Operation{Name: "weather.make", Doc: "makes", Verb: "get", Result: "any"})
		}, "operation weather.make: new: makes", true},
		"an operation less":       {func(m *caps.Manifest) { m.Operations = m.Operations[:1] }, "operation weather.do: gone", false},
		"a verb more":             {func(m *caps.Manifest) { m.Verbs = append(m.Verbs, caps.Verb{Name: "make"}) }, "verb make: new: changes things", true},
		"a verb less":             {func(m *caps.Manifest) { m.Verbs = m.Verbs[:1] }, "verb set: gone", false},
		"read-only dropped":       {func(m *caps.Manifest) { m.Verbs[0].ReadOnly = false }, "verb get: read-only, idempotent, open-world → idempotent, open-world", true},
		"idempotent dropped":      {func(m *caps.Manifest) { m.Verbs[0].Idempotent = false }, "verb get", true},
		"destructive said":        {func(m *caps.Manifest) { m.Verbs[0].ReadOnly, m.Verbs[0].Destructive = false, true }, "verb get", true},
		"open-world said":         {func(m *caps.Manifest) { m.Verbs[1].OpenWorld = true }, "verb set", true},
		"a better flag":           {func(m *caps.Manifest) { m.Verbs[1].Destructive = false }, "verb set: destructive → changes things", false},
		"under another verb":      {func(m *caps.Manifest) { m.Operations[0].Verb = "set" }, "operation weather.get, verb: get → set", true},
		"another way to its verb": {func(m *caps.Manifest) { m.Operations[1].VerbParam = "" }, "operation weather.do, verb", true},
		"it no longer designates": {func(m *caps.Manifest) { m.Operations[0].Params[0].Designates = false }, "argument place", true},
		"what designated is gone": {func(m *caps.Manifest) { m.Operations[0].Params = m.Operations[0].Params[1:] }, "argument place: gone", true},
		"an argument more": {func(m *caps.Manifest) {
			m.Operations[0].Params = append(m.Operations[0].Params, caps.Param{Name: "more", Type: "int", Optional: true})
		}, "argument more: new: int, optional", false},
		"another type":             {func(m *caps.Manifest) { m.Operations[0].Type = types.List(types.Int) }, "operation weather.get, type: string → list[int]", false},
		"no type":                  {func(m *caps.Manifest) { m.Operations[0].Type = nil }, "operation weather.get, type: string → data", false},
		"another scope":            {func(m *caps.Manifest) { m.Algebra = caps.Exact }, "scope: segments → exact", true},
		"an option":                {func(m *caps.Manifest) { m.Options = nil }, "options", false},
		"another result":           {func(m *caps.Manifest) { m.Operations[0].Result = "int" }, "result: string → int", false},
		"another word for a place": {func(m *caps.Manifest) { m.Operations[0].Params[0].Doc = "which" }, "argument place", false},
	} {
		m := said()
		c.change(m)
		a, b := &Entry{Program: Program{File: "p", SHA256: strings.Repeat("a", 64)}}, &Entry{Program: Program{File: "p", SHA256: strings.Repeat("a", 64)}}
		a.Describe(said(), 1, nil, false)
		b.Describe(m, 1, nil, false)
		changes := Compare(a, b)
		var words []string
		for _, c := range changes {
			words = append(words, c.String())
		}
		if all := strings.Join(words, "\n"); !strings.Contains(all, c.says) || (c.says == "") != (len(changes) == 0) || Wider(changes) != c.wider {
			t.Errorf("%s: wider %v\n%s\nwant %q", name, Wider(changes), all, c.says)
		}
		if strings.HasPrefix(c.says, "verb") == SameFlags(a, b) {
			t.Errorf("%s: the same flags: %v", name, SameFlags(a, b))
		}
	}
	a, b := &Entry{}, &Entry{}
	a.Describe(said(), 1, nil, false)
	b.Describe(said(), 1, nil, true)
	if changes := Compare(a, b); !Wider(changes) || changes[0].What != "transport" {
		t.Errorf("without certificates: %v", changes)
	}
	if changes := Compare(b, a); Wider(changes) {
		t.Errorf("with certificates: %v", changes)
	}
}

func TestShown(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain, äöü 東京", "plain, äöü 東京"},
		{"\x1b[31mred\x1b]0;title\x07", `\x1b[31mred\x1b]0;title\x07`},
		{"a\nb\tc\rd", `a b c\x0dd`},
		{"user\u202etxt.exe", `user\u202etxt.exe`},
		{"\u2066\u200b\ufeff\u2028", `\u2066\u200b\ufeff\u2028`},
		{"\xff\xc3", `\xff\xc3`},
		{"\u0085\u009b31m", `\u0085\u009b31m`},
		{"12345678901", "1234567890…"},
		{"123456789東", "123456789…"},
		{"\x7f", `\x7f`},
		{"", ""},
	} {
		most := 10
		if len(c.want) > 14 || strings.HasPrefix(c.want, `\`) || strings.Contains(c.want, `\`) {
			most = 100
		}
		if got := Shown(c.in, most); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
	if got := Shown(strings.Repeat("\x1b", 1<<20), 100); len(got) > 100*4+len("…") {
		t.Errorf("%d bytes", len(got))
	}
}
