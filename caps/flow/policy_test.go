package flow_test

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/flow"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check/flows"
	labelled "github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var everything = []string{"fs:DIR/private", "fs:DIR/public", "fs:all=DIR", "kv:**", "fetch:https://api.example", "mail"}

func TestSentences(t *testing.T) {
	t.Parallel()
	p := newPlace(t, everything...)
	f := p.mustCompile(`{"sources":[
		{"of":"mail.read","label":"mail","items":"m => {fields: {id: {}}, label: [\"mail\"]}"},
		{"of":"fs.read:DIR/private","label":"private"}, {"of":"fetch.get","label":"web"}],
	"rules":[
		{"to":"mail.send","argument":"to","not_from":["mail","web"],"else":"ask"},
		{"to":"fetch","not_from":"private","by":"any"},
		{"to":"model","not_from":"mail","else":"seal","except":[{"type":"boolean"},{"type":"integer","minimum":0,"maximum":999}],"bits":64},
		{"to":"openworld","all_of":["private","web"]},
		{"to":"mail.send","argument":"attachments[].url","not_from":"web"},
		{"to":"mail.archive","argument":null,"not_from":"web"},
		{"to":"kv:notes/**","not_from":"mail","else":"taint"}]}`)
	want := strings.Split(strings.TrimSpace(p.at(`
1. The recipient (to) of mail.send may not be made of what is read of mail (mail.read) or web (fetch.get). Otherwise you are asked.
2. Nothing that is made of, or depends on, what is read of private (fs.read:DIR/private) may reach fetch. Otherwise it is denied.
3. What is shown to the model may not depend on what is read of mail (mail.read). Otherwise the result is sealed: the model gets a name for it. It is shown if it is {"type":"boolean"} or {"type":"integer","minimum":0,"maximum":999}, as long as all of that together tells at most 64 bits.
4. Nothing that is made of, or depends on, what is read of private (fs.read:DIR/private) and web (fetch.get) at once may reach anything beyond this machine. Otherwise it is denied.
5. The argument attachments[].url of mail.send may not be made of what is read of web (fetch.get). Otherwise it is denied.
6. Whether mail.archive is asked for may not depend on what is read of web (fetch.get). Otherwise it is denied.
7. Nothing that is made of, or depends on, what is read of mail (mail.read) may reach kv:notes/**. Otherwise the store has their label from then on.`)), "\n")
	if got := f.Sentences(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("it says\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	flags := []string{"mail=mail.read", "private=fs.read:DIR/private", "mail,private>mail.send:to", "private>fetch"}
	g := p.mustCompile("", flags...)
	if got := strings.Join(g.Sentences(), "\n"); got != p.at(strings.TrimSpace(`
1. The recipient (to) of mail.send may not be made of what is read of mail (mail.read) or private (fs.read:DIR/private). Otherwise it is denied.
2. Nothing that is made of, or depends on, what is read of private (fs.read:DIR/private) may reach fetch. Otherwise it is denied.`)) {
		t.Errorf("the flags say\n%s", got)
	}
	if f.Hash == g.Hash || g.Hash != p.mustCompile("", flags...).Hash {
		t.Error("the hash isn't that of what is said")
	}
}

// TestLabelledByFolder: a relative path is another source in another folder.
func TestLabelledByFolder(t *testing.T) {
	p, made := newPlace(t, "fs:all=DIR", "fetch:https://api.example"), []*flow.Policy{}
	var ruled []string
	for _, name := range []string{"private", "public", "private"} {
		t.Chdir(filepath.Join(p.dir, name))
		made = append(made, p.mustCompile("", "mail=fs.read:./mail", "mail>fetch"))
		ruled = append(ruled, p.mustCompile("", "mail=fs.read:DIR/out", "mail>fs.write:./mail").Hash)
	}
	if ruled[0] == ruled[1] || ruled[0] != ruled[2] {
		t.Errorf("in several folders the rules are %s", ruled)
	}
	if made[0].Labelled(made[1].Hash) || !made[0].Labelled(made[2].Hash) {
		t.Errorf("in several folders the policy is %s, %s, and %s", made[0].Hash, made[1].Hash, made[2].Hash)
	}
}

func TestPolicyRefuses(t *testing.T) {
	t.Parallel()
	many := make([]string, 33)
	for i := range many {
		many[i] = "s" + strings.Repeat("x", i) + "=kv.get"
	}
	for name, test := range map[string]struct {
		config string
		flags  []string
		grants []string
		want   string
	}{
		"an unknown member":          {config: `{"rules":[{"to":"fetch","notfrom":["a"]}]}`, want: `unknown field "notfrom"`},
		"an unknown source":          {flags: []string{"mail=mail.read", "web>fetch"}, want: `--no-flow "web>fetch": unknown source "web": the sources are mail`},
		"an unknown kind":            {flags: []string{"mail=imap.read"}, want: `--label "mail=imap.read": "of": capability "imap.read"`},
		"an unknown verb":            {flags: []string{"mail=fs.get", "mail>fetch"}, want: "the kind fs has no verb get"},
		"an option":                  {flags: []string{"mail=fs:DIR/private,ro", "mail>fetch"}, want: "it has options or a name, where only KIND, verbs and a scope can stand"},
		"no rule at all":             {config: `{"rules":[{"to":"fetch"}]}`, want: `flow.rules[0]: it has "not_from" or "all_of"`},
		"an argument nobody has":     {config: `{"sources":[{"of":"mail.read","label":"a"}],"rules":[{"to":"mail.send","argument":"subject","not_from":"a"}]}`, want: `flow.rules[0]: no operation of mail.send has the argument "subject"; the arguments are: attachments, body and to`},
		"a part nobody has":          {config: `{"sources":[{"of":"mail.read","label":"a"}],"rules":[{"to":"mail","argument":"attachments[].ulr","not_from":"a"}]}`, want: `flow.rules[0]: the argument "attachments[]" of mail has no part "ulr"; its parts are: name and url`},
		"a part of the list":         {config: `{"sources":[{"of":"mail.read","label":"a"}],"rules":[{"to":"mail.send","argument":"attachments.url","not_from":"a"}]}`, want: `the argument "attachments" of mail.send has no part "url"; its parts are: []`},
		"a part of a text":           {flags: []string{"a=mail.read", "a>mail.send:to.address"}, want: `the argument "to" of mail.send has no parts: write "to"`},
		"a header":                   {flags: []string{"a=mail.read", "a>fetch:headers.autorization"}, want: `the argument "headers" of fetch has whatever names a program writes, in any spelling: write "headers" for all of it`},
		"an argument of a folder":    {flags: []string{"a=mail.read", "a>fs.write:./out:text"}, grants: []string{"mail", "fs:DIR/out"}, want: `no grant permits fs.write:./out:text; what follows the last colon is an argument if it is one of content and path`},
		"a misspelled member":        {config: `{"sources":[{"of":"mail.read","label":"a"}],"rules":[{"to":"mail.send","not_from":"a"},{"to":"mail.send","not_form":"a"}]}`, want: `unknown field "not_form"; beside it there are to, argument, not_from, all_of,`},
		"a source before any":        {config: `{"rules":[{"to":"fetch","not_from":"web"}]}`, want: `unknown source "web": name one first, with {"of":"CAPABILITY","label":"web"} in flow.sources or --label web=CAPABILITY`},
		"the same by a flag":         {flags: []string{"a=mail.read", "a>mail.send:subject"}, want: `no operation of mail.send has the argument "subject"`},
		"data of what is made":       {config: `{"sources":[{"of":"mail.read","label":"a"}],"rules":[{"to":"mail.send","argument":null,"by":"data","not_from":"a"}]}`, want: "nothing is made of what decides"},
		"a rule nothing can break":   {flags: []string{"a=mail.read", "a>fetch"}, grants: []string{"fetch:https://a.example"}, want: `--no-flow "a>fetch": it can never match: nothing that is granted gives a`},
		"a sink nobody has":          {flags: []string{"a=mail.read", "a>fetch"}, grants: []string{"mail"}, want: `--no-flow "a>fetch": it can never match: no grant permits fetch`},
		"a sink elsewhere":           {flags: []string{"a=mail.read", "a>fetch:https://b.example"}, grants: []string{"mail", "fetch:https://a.example"}, want: "no grant permits fetch:https://b.example"},
		"a rule that always breaks":  {config: `{"sources":[{"of":"mail.read","label":"a"}],"rules":[{"to":"fetch","not_from":"web"}],"session":{"start":["web"]}}`, want: "flow.rules[0]: it always matches"},
		"a start without a rule":     {config: `{"sources":[{"of":"mail.read","label":"a"}],"rules":[{"to":"mail.send","argument":"to","not_from":"a"}],"session":{"start":["web"]}}`, want: "flow.session: no rule is about web"},
		"33 names":                   {flags: append(many, "s>fetch"), want: "at most 32"},
		"a rule about the person":    {config: `{"sources":[{"of":"mail.read","label":"a"}],"rules":[{"to":"user","not_from":"a"}]}`, want: `flow.rules[0]: "to": a person may see everything that is kept; write "model"`},
		"an endless exception":       {config: `{"sources":[{"of":"mail.read","label":"a"}],"rules":[{"to":"model","not_from":"a","except":[{"type":"string"}]}]}`, want: "has no end of values"},
		"a seal for an operation":    {config: `{"sources":[{"of":"mail.read","label":"a"}],"rules":[{"to":"fetch","not_from":"a","else":"seal"}]}`, want: `"else" is`},
		"items that act":             {config: `{"sources":[{"of":"mail.read","label":"a","items":"x => !fs.read(x)"}],"rules":[{"to":"fetch","not_from":"a"}]}`, want: "it can't act"},
		"items that are no code":     {config: `{"sources":[{"of":"mail.read","label":"a","items":"x => ("}]}`, want: `flow.sources[0]: "items": parse_error at code: line 1, column 7`},
		"a report on nothing":        {flags: []string{"report"}, want: "reports on rules, and there are none"},
		"a preset nobody knows":      {flags: []string{"all"}, want: "--flow is designate, report"},
		"a call":                     {flags: []string{"a=call:x", "a>fetch"}, want: "neither a source nor a sink"},
		"what only writes":           {flags: []string{"a=kv.put:notes/**", "a>fetch"}, want: `--label "a=kv.put:notes/**": "of": a source is what is read there: write kv:notes/**, without the verb`},
		"a folder's moves":           {flags: []string{"a=fs.write,move:DIR/out", "a>fetch"}, want: "out, without the verb"},
		"what a process is asked":    {flags: []string{"a=sh.look:x", "a>fetch"}, want: "write sh:x, without the verb"},
		"a taint of the web":         {flags: []string{"a=mail.read"}, config: `{"rules":[{"to":"fetch","not_from":"a","else":"taint"}]}`, want: `flow.rules[0]: "else": "taint" is for what keeps it (fs, kv, proc), which fetch isn't: write deny or ask`},
		"a taint of all beyond":      {flags: []string{"a=mail.read"}, config: `{"rules":[{"to":"openworld","not_from":"a","else":"taint"}]}`, want: "which openworld isn't"},
		"a taint of a server":        {flags: []string{"a=mail.read"}, config: `{"rules":[{"to":"mail.archive","not_from":"a","else":"taint"}]}`, want: "which mail.archive isn't"},
		"a taint of what only reads": {flags: []string{"a=mail.read"}, config: `{"rules":[{"to":"kv.get:notes/**","not_from":"a","else":"taint"}]}`, want: "which kv.get:notes/** isn't"},
		"all that is seen at first":  {config: `{"sources":[{"of":"mail.read","label":"a"}],"rules":[{"to":"model","not_from":["a","web"]}],"session":{"start":["web"]}}`, want: "has seen web from the start, so that every result depends on it"},
		"both seen at first":         {config: `{"sources":[{"of":"mail.read","label":"a"}],"rules":[{"to":"fetch","all_of":["a","web"]}],"session":{"start":["web","a"]}}`, want: "has seen a and web from the start, so that every request of fetch"},
		"a release of nothing":       {config: `{"sources":[{"of":"mail.read","label":"a"}],"rules":[{"to":"fetch","not_from":"a"}],"release":[{"tool":"x@sha256:` + strings.Repeat("0", 64) + `"}]}`, want: `"from" is missing`},
		"a release without a hash":   {config: `{"sources":[{"of":"mail.read","label":"a"}],"rules":[{"to":"fetch","not_from":"a"}],"release":[{"tool":"x","from":["a"]}]}`, want: "flow.release[0]: \"tool\" is NAME@sha256:HASH"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			grants := test.grants
			if grants == nil {
				grants = everything
			}
			if _, err := newPlace(t, grants...).compile(test.config, test.flags...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it is refused with %v, and not with %q", err, test.want)
			}
		})
	}
}

// TestMatching: a request meets a rule, and an outcome a source, by where it lies and not by how it
// is written.
func TestMatching(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "fs:all=DIR", "kv:**", "fetch:https://api.example", "mail")
	must.NoError(t, os.WriteFile(filepath.Join(p.dir, "private", "x"), nil, 0o600))
	must.NoError(t, os.Symlink("../private/x", filepath.Join(p.dir, "public", "link")))
	f := p.mustCompile("", "private=fs.read:DIR/private", "notes=kv:notes/secret/**", "web=fetch:https://api.example/v1",
		"private>fs.write:DIR/out", "private>kv.put:out/**", "private>fetch:https://api.example/v2/**")
	for _, test := range []struct {
		op, args       string
		sources, rules int
		about          string
	}{
		{"fs.read", `{"path":"private/x"}`, 1, 0, "it lies there"},
		{"fs.read", `{"path":"public/x"}`, 0, 0, "it lies elsewhere"},
		{"fs.read", `{"path":"public/link"}`, 1, 0, "a link leads there"},
		{"fs.read", `{"path":"privateer"}`, 0, 0, "a name that begins so"},
		{"fs.list", `{"path":"private"}`, 1, 0, "names tell of what is there, too"},
		{"fs.list", `{"path":"public"}`, 0, 0, "another verb elsewhere"},
		{"fs.write", `{"path":"private/y","content":"x"}`, 1, 0, "and so does whether something could be written"},
		{"fs.write", `{"path":"out/a","content":"x"}`, 0, 1, "the sink"},
		{"fs.write", `{"path":"public/a","content":"x"}`, 0, 0, "no sink"},
		{"kv.get", `{"key":"notes/secret/a"}`, 1, 0, "a key"},
		{"kv.list", `{"prefix":"notes"}`, 1, 0, "a prefix of keys that are"},
		{"kv.list", `{"prefix":"notes/"}`, 1, 0, "the same with a slash"},
		{"kv.list", `{"prefix":"note/"}`, 0, 0, "a name that only begins so"},
		{"kv.list", `{"prefix":""}`, 1, 0, "what all keys begin with"},
		{"kv.list", `{"prefix":"notes/secre"}`, 1, 0, "what keys begin with"},
		{"kv.list", `{"prefix":"notes/secrets"}`, 0, 0, "what none of the keys begins with"},
		{"kv.list", `{}`, 1, 0, "all keys"},
		{"kv.get", `{"key":"notes"}`, 0, 0, "a key is no prefix of keys"},
		{"kv.get", `{"key":"notes/secre"}`, 0, 0, "nor is a part of one"},
		{"kv.put", `{"key":"ou","value":"x"}`, 0, 0, "nor is one that is written"},
		{"kv.get", `{"key":"notes/other"}`, 0, 0, "another key"},
		{"kv.put", `{"key":"out/a","value":"x"}`, 0, 1, "a sink of keys"},
		{"fetch.request", `{"url":"https://api.example/v2/x","method":"post"}`, 1, 1, "a redirect may lead to a source"},
		{"fetch.request", `{"url":"https://api.example/v1/x"}`, 1, 0, "another path is no sink"},
	} {
		permit := p.permit(test.op, test.args)
		if got, rules := f.Sourcing(permit), f.Matching(permit); len(got) != test.sources || len(rules) != test.rules {
			t.Errorf("%s %s (%s): %d sources and %d rules, not %d and %d", test.op, test.args, test.about, len(got), len(rules), test.sources, test.rules)
		}
	}
}

// TestStores: what is put into a store comes out with its label; moving takes one place's to another.
func TestStores(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "fs:all=DIR", "kv:**", "fetch:https://api.example")
	f := p.mustCompile("", "private=fs.read:DIR/private", "notes=kv:notes/**", "private,notes>fetch")
	for _, test := range []struct {
		op, args     string
		stores       bool
		label, moved string
	}{
		{"fs.write", `{"path":"private/a","content":"x"}`, true, "private", ""},
		{"fs.write", `{"path":"public/a","content":"x"}`, true, "", ""},
		{"fs.move", `{"from":"private/a","to":"public/b"}`, true, "", "private"},
		{"fs.move", `{"from":"private/a","to":"private/b"}`, true, "private", "private"},
		{"kv.put", `{"key":"notes/a","value":"x"}`, true, "notes", ""},
		{"fs.read", `{"path":"private/a"}`, false, "private", ""},
		{"fetch.request", `{"url":"https://api.example/x","method":"post"}`, false, "", ""},
	} {
		permit := p.permit(test.op, test.args)
		label, moved := f.StoreLabel(permit)
		if f.Stores(permit) != test.stores || f.Words(label) != test.label || f.Words(moved) != test.moved {
			t.Errorf("%s %s: stores %v, label %q, moved %q", test.op, test.args, f.Stores(permit), f.Words(label), f.Words(moved))
		}
	}
	// A rule asks nobody about what is denied before, and says so.
	p = newPlace(t, "fs.read:DIR/private", "fs:DIR/out", "kv:**", "fetch:https://api.example")
	for to, asked := range map[string]bool{"fs.write:DIR/out": false, "kv.put:notes/**": true, "kv.put": true, "fetch": true} {
		f := p.mustCompile(`{"sources":[{"of":"fs.read:DIR/private","label":"private"},{"of":"kv:notes/**","label":"private"}],"rules":[{"to":"` + to + `","not_from":["private"],"by":"any","else":"ask"}]}`)
		if s := f.Sentences()[0]; strings.HasSuffix(s, "Otherwise you are asked.") != asked {
			t.Errorf("%s: %s", to, s)
		}
	}
	p = newPlace(t, "fs:all=DIR", "kv:**", "fetch:https://api.example")
	for to, asked := range map[string]bool{"fs.write:DIR/out": false, "fs.write:DIR/private/x": true, "fs.write:DIR": true, "kv.put:other/**": false, "kv.put:notes/a": true} {
		f := p.mustCompile(`{"sources":[{"of":"fs.read:DIR/private","label":"private"},{"of":"kv:notes/**","label":"private"}],"rules":[{"to":"` + to + `","not_from":["private"],"by":"any","else":"ask"}]}`)
		if s := f.Sentences()[0]; strings.HasSuffix(s, "Otherwise you are asked.") != asked {
			t.Errorf("under one grant, %s: %s", to, s)
		}
	}
	// Nor does it where another store, or another label, is taken on.
	for more, asked := range map[string]bool{
		`"to":"kv:notes/**","not_from":"private"`: false, `"to":"fs.write:DIR/out","not_from":"other"`: false, `"to":"fs.write:DIR/out","not_from":"private"`: true,
	} {
		f := p.mustCompile(`{"sources":[{"of":"fs.read:DIR/private","label":"private"},{"of":"fetch","label":"other"}],"rules":[{"to":"fs.write:DIR/out","not_from":"private","else":"ask"},{` + more + `,"else":"taint"}]}`)
		if s := f.Sentences()[0]; strings.HasSuffix(s, "Otherwise you are asked.") != asked {
			t.Errorf("beside %s: %s", more, s)
		}
	}
}

func TestDesignate(t *testing.T) {
	t.Parallel()
	p := newPlace(t, everything...)
	f := p.mustCompile("", "designate")
	got := strings.Join(f.Sentences(), "\n")
	from := " may not be made of what is read of fetch or mail. Otherwise it is denied."
	for _, want := range []string{
		"The argument path of fs.write", "The argument from of fs.move", "The argument to of fs.move", "The argument key of kv.put",
		"The argument url of fetch.request", "The recipient (to) of mail.send", "The argument id of mail.archive",
	} {
		if !strings.Contains(got, want+from) {
			t.Errorf("it doesn't say %q:\n%s", want+from, got)
		}
	}
	for _, other := range []string{"body of mail.send", "fs.read", "mail.read may", "content"} {
		if strings.Contains(got, other) {
			t.Errorf("it says %q:\n%s", other, got)
		}
	}
	if got := p.mustCompile(`{"session":{"start":["web"]}}`, "designate").Sentences()[0]; !strings.Contains(got, "web (the session)") {
		t.Errorf("what other tools gave decides: %s", got)
	}
	if len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "each argument of mail.archive") {
		t.Errorf("the notes are %q", f.Notes)
	}
	if n := len(f.Matching(p.permit("fetch.request", `{"url":"https://api.example/x"}`))); n != 0 {
		t.Errorf("a GET meets %d rules", n)
	}
	if n := len(f.Matching(p.permit("fetch.request", `{"url":"https://api.example/x","method":"post"}`))); n != 1 {
		t.Errorf("a POST meets %d rules", n)
	}
	if _, err := newPlace(t, "kv:**").compile("", "designate"); err == nil || !strings.Contains(err.Error(), "nothing that is granted reaches beyond this machine") {
		t.Error(err)
	}
}

// TestArgumentNames: what a server calls an argument is a name, also where it has what paths do.
func TestArgumentNames(t *testing.T) {
	t.Parallel()
	p := newPlace(t, everything...)
	odd := []string{"to.address", "ids[]", "a.b[].c", "[]", "."}
	m := &caps.Manifest{Kind: "odd", Server: "odd", Algebra: caps.Exact, Verbs: []caps.Verb{{Name: "send", Flags: tells}}, Operations: []caps.Operation{{Name: "odd.send", Wire: "send", Verb: "send"}}}
	for _, name := range odd {
		m.Operations[0].Params = append(m.Operations[0].Params, caps.Param{Name: name, Type: "string", Optional: true, Designates: name != "."})
	}
	manifests := []*caps.Manifest{m}
	for _, other := range p.kinds {
		manifests = append(manifests, other)
	}
	var err error
	p.kinds, err = caps.NewKinds(manifests...)
	must.NoError(t, err)
	c, err := caps.Parse("odd", p.kinds)
	must.NoError(t, err)
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: p.kinds})
	must.NoError(t, err)
	p.granted = append(p.granted, g)
	designated := p.mustCompile("", "designate")
	for _, name := range odd[:4] {
		for what, f := range map[string]*flow.Policy{
			"--flow=designate": designated,
			"a policy":         p.mustCompile(`{"sources":[{"of":"mail.read","label":"mail"}],"rules":[{"to":"odd.send","argument":` + quote(name) + `,"not_from":"mail"}]}`),
			"--no-flow":        p.mustCompile("", "mail=mail.read", "mail>odd.send:"+name),
		} {
			n := slices.IndexFunc(f.Rules, func(r *flow.Rule) bool { return r.To == "odd.send" && slices.Equal(r.Argument, []string{name}) })
			if n < 0 {
				t.Errorf("%s: no rule is about %s", what, name)
				continue
			}
			arg := &value.Record{Fields: []value.Field{{Key: name, Value: value.Str("x")}}}
			if l := labelled.Whole(1).Label(arg, f.Rules[n].Argument); l != 1 {
				t.Errorf("%s: %s has the label %x", what, name, l)
			}
			code, err := core.CompileText("t", []byte(`i => !odd.send({`+quote(name)+`: !mail.read({id: i})})`))
			must.NoError(t, err)
			found, _ := f.Expect(code.Term(), nil, nil)
			if !slices.ContainsFunc(found, func(e flow.Expectation) bool { return e.Rule == f.Rules[n] && e.Verdict != flows.Never }) {
				t.Errorf("%s: of %s it is expected %v", what, name, found)
			}
		}
	}
	for i := range m.Operations[0].Params {
		m.Operations[0].Params[i].Type, m.Operations[0].Params[i].Designates = "any", false
	}
	for text, want := range map[string]string{"a.b[].c[].d": "a.b[].c [] d", "ids[][]": "ids[] []", "to.address.zip": "to.address zip", "ids[]x": "", "to": ""} {
		f, err := p.compile(`{"sources":[{"of":"mail.read","label":"mail"}],"rules":[{"to":"odd.send","argument":` + quote(text) + `,"not_from":"mail"}]}`)
		got := ""
		if err == nil {
			got = strings.Join(f.Rules[0].Argument, " ")
		}
		if got != want {
			t.Errorf("%s is read as %q, not as %q: %v", text, got, want, err)
		}
	}
}

// TestItems: parts of an outcome have the labels that the operator's function says; where it fails all of
// it has the source's.
func TestItems(t *testing.T) {
	t.Parallel()
	p := newPlace(t, everything...)
	me := &value.Record{Fields: []value.Field{{Key: "sender", Value: value.Str("me")}}}
	him := &value.Record{Fields: []value.Field{{Key: "sender", Value: value.Str("him")}}}
	all := value.FromSlice([]value.Value{me, him, me})
	for code, want := range map[string]string{
		`v => {items: map(t => if equal(t.sender, "me") then {} else {label: ["tx"]}, v)}`: "tx,tx,",
		`v => {}`:                 "none",
		`v => {label: ["other"]}`: "all",
		`v => head(head(v))`:      "all",
		`v => 1`:                  "all",
		`v => {items: [{}, {fields: {sender: {}}, label: ["tx"]}], label: ["tx"]}`: "tx,tx,tx",
		`v => {labels: ["tx"]}`:                            "all",
		`v => {items: [{label: ["nobody"]}]}`:              "all",
		`v => fold((n, _) => n + 1, 0, range(0, 1000000))`: "all",
	} {
		f := p.mustCompile(`{"sources":[{"of":"fs.read","label":"other"},{"of":"mail.read","label":"tx","items":` + quote(code) + `}],"rules":[{"to":"fetch","not_from":["tx","other"]}]}`)
		any, shadow := f.Sources[1].Shadow(all)
		got := "none"
		switch {
		case shadow == nil:
			got = "all"
		case any != 0:
			var list []string
			for _, path := range [][]string{{"[]"}, {"[]", "sender"}} {
				list = append(list, f.Words(flow.Label(shadow.Label(all, path)).Any()))
			}
			list = append(list, f.Words(flow.Label(shadow.Own()).Any()))
			got = strings.Join(list, ",")
		}
		if got != want {
			t.Errorf("%s gives %s, not %s", code, got, want)
		}
	}
}

func quote(s string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`) + `"`
}

// violates is the decision as the design says it, one source at a time.
func violates(r *flow.Rule, made, argument flow.Label) bool {
	found := map[int]bool{}
	for i := range 32 {
		low, high := flow.Label(1)<<i, flow.Label(1)<<(i+32)
		switch {
		case r.MadeOnly:
			found[i] = made&(low|high) != 0
		case r.Any:
			found[i] = made&(low|high) != 0 || argument&(low|high) != 0
		default:
			found[i] = argument&low != 0
		}
	}
	if r.AllOf != 0 {
		for i := range 32 {
			if r.AllOf&(1<<i) != 0 && !found[i] {
				return false
			}
		}
		return true
	}
	for i := range 32 {
		if r.NotFrom&(1<<i) != 0 && found[i] {
			return true
		}
	}
	return false
}

// TestViolation holds the decision against its reference, on random rules and labels.
func TestViolation(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	sparse := func() uint64 { return r.Uint64() & r.Uint64() & r.Uint64() }
	broken := 0
	for range 100_000 {
		rule := &flow.Rule{MadeOnly: r.IntN(4) == 0, Any: r.IntN(2) == 0}
		if r.IntN(3) == 0 {
			for rule.AllOf = 0; bits.OnesCount32(uint32(rule.AllOf)) != 2; {
				one, other := r.IntN(32), r.IntN(32)
				rule.AllOf = flow.Atoms(1<<one | 1<<other)
			}
		} else {
			rule.NotFrom = flow.Atoms(sparse())
		}
		made, argument := flow.Label(sparse()&^0xffffffff), flow.Label(sparse())
		got, want := rule.Violation(made, argument), violates(rule, made, argument)
		if (got != 0) != want || got&^rule.Forbidden() != 0 {
			t.Fatalf("%+v of %x and %x: %x, and the reference says %v", rule, made, argument, got, want)
		}
		if want {
			broken++
			// Tier 1 never allows what tier 2 denies.
			if entered := flow.Both(made.Any() | argument.Any()); rule.Violation(entered, entered) == 0 {
				t.Fatalf("%+v of %x and %x: all that entered is allowed", rule, made, argument)
			}
		}
	}
	if broken < 10_000 {
		t.Errorf("only %d rules were broken", broken)
	}
}

// TestExpect says before a program runs what a rule about a folder comes to: by what the tool holds.
func TestExpect(t *testing.T) {
	p := newPlace(t, "fs.read,list:DIR/private", "fs:DIR/public", "fs.write:DIR/out", "fetch:https://a.example")
	f := p.mustCompile("", "private=fs.read:DIR/private", "private>fs.write:DIR/out", "private>fetch:https://a.example/in/**")
	for _, c := range []struct{ code, held, want string }{
		{`(path, p) => let content = !fs.read(p) in !fs.write({path, content})`, "private out", "must"},
		{`(path, p) => let content = !fs.read(p) in !fs.write({path, content})`, "public out", "never"},
		{`(path, p) => let content = !fs.read(p) in !fs.write({path, content})`, "private public out", "may"},
		{`(path, p) => let content = !fs.read(p) in !fs.write({path, content})`, "private public", "may keep"},
		{`(path, p) => let content = !fs.list(p) in !fs.write({path, content})`, "private out", "may"},
		{`(path, p) => let content = @reads(p) in !fs.write({path, content})`, "public out", "may"},
		{`u => !fetch.request(!fs.read("x"))`, "private fetch", "may"},
		{`u => !fetch.request(!fs.read("x"))`, "public fetch", "never"},
		{`u => !fetch.request(1)`, "private fetch", "never"},
	} {
		var held []*caps.Held
		for _, g := range p.granted {
			if !slices.ContainsFunc(strings.Fields(c.held), func(s string) bool { return g.Kind == s || strings.HasSuffix(g.Scope, "/"+s) }) {
				continue
			}
			h := &caps.Held{Capability: g.Shown(), Grant: g, Within: "."}
			if g.Kind == "fetch" {
				h.Within = h.Scope
			}
			held = append(held, h)
		}
		reads, err := core.CompileText("reads", []byte(`x => !fs.read(x)`))
		must.NoError(t, err)
		code, err := core.CompileText("t", []byte(c.code))
		must.NoError(t, err)
		found, ok := f.Expect(code.Term(), held, func(string) (term.Term, bool) { return reads.Term(), true })
		got := flows.Never
		for _, e := range found {
			if e.Verdict != flows.Never {
				got = e.Verdict
			}
			if e.Rule.N == 0 {
				got += " keep"
			}
		}
		if !ok || string(got) != c.want {
			t.Errorf("%s under %s: %s, want %s", c.code, c.held, got, c.want)
		}
	}
}

// TestCame: what a server says of its answer adds labels, and takes its source's away only where that trusts it.
func TestCame(t *testing.T) {
	p := newPlace(t, "mail", "fs:DIR/private")
	says := func(marks ...value.Value) value.Value {
		return &value.Record{Fields: []value.Field{{Key: "ifc", Value: value.FromSlice(marks)}, {Key: "text", Value: value.Str("t")}}}
	}
	silent := &value.Record{Fields: []value.Field{{Key: "text", Value: value.Str("t")}}}
	untrusted, private := value.Str("untrusted"), value.Str("private")
	for _, c := range []struct {
		trust, op string
		answer    value.Value
		want      string
	}{
		{"", "mail.read", silent, "inbox"},
		{"", "mail.read", says(), "inbox"},
		{"", "mail.read", says(untrusted), "inbox mail.untrusted"},
		{"", "mail.read", says(untrusted, private), "inbox mail.untrusted mail.private"},
		{`,"trust":"labels"`, "mail.read", says(), ""},
		{`,"trust":"labels"`, "mail.read", says(private), "inbox mail.private"},
		{`,"trust":"labels"`, "mail.read", silent, "inbox"},
		{`,"trust":"labels"`, "mail.read", value.Str("t"), "inbox"},
		{"", "mail.archive", says(untrusted), "mail.untrusted"},
		{"", "fs.read", says(untrusted), ""}, // what a file says isn't a server's word
	} {
		f := p.mustCompile(`{"sources":[{"of":"mail.read","label":"inbox"` + c.trust + `}],"rules":[
			{"to":"mail.send","argument":"to","not_from":["inbox","mail.untrusted"]},{"to":"mail.send","not_from":"mail.private"}]}`)
		args := `{"id":"1"}`
		if c.op == "fs.read" {
			args = `{"path":"x"}`
		}
		all, _, _ := f.Came(p.permit(c.op, args), c.answer)
		if got := strings.Join(f.Names(all), " "); got != c.want {
			t.Errorf("%s%s answers %v: %q, want %q", c.op, c.trust, c.answer, got, c.want)
		}
		if bad := f.Rules[0].Violation(0, flow.Label(all)); (bad != 0) != (strings.Contains(c.want, "inbox") || strings.Contains(c.want, "untrusted")) {
			t.Errorf("%s%s answers %v: breaks the rule for %v", c.op, c.trust, c.answer, f.Names(bad))
		}
	}
}

// TestSessionFresh: whether what the model is shown is new is of what a cluster has, and not of what this node had.
func TestSessionFresh(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "kv:**", "fetch:https://api.example").mustCompile("", "notes=kv:notes/**", "notes>fetch")
	path := filepath.Join(t.TempDir(), "flow.json")
	s, err := flow.NewSession(path, p)
	must.NoError(t, err)
	must.Succeed(t)(s.Show(1))
	s.Fresh = func() error { return os.Remove(path) } // it was cleared elsewhere
	if isNew, err := s.Show(1); err != nil || !isNew || s.Label() != 1 {
		t.Errorf("it is new: %v, %v, label %v", isNew, err, s.Label())
	}
	s.Fresh = func() error { return os.ErrDeadlineExceeded }
	if _, err := s.Show(1); err == nil {
		t.Error("it is shown though nobody knows what there is")
	}
}

// TestSessionClear: a person forgets what was shown to him, and of a file with more by then nothing; what was forgotten is known.
func TestSessionClear(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "fs:all=DIR", "kv:**", "fetch:https://api.example").mustCompile("", "notes=kv:notes/**", "other=kv:other/**", "notes,other>fetch")
	open := func(name string) *flow.Session {
		s, err := flow.NewSession(filepath.Join(t.TempDir(), name), p)
		must.NoError(t, err)
		return s
	}
	s := open("flow.json")
	s.Stores = open("stores.json")
	show := func(a flow.Atoms) {
		_, err := s.Show(a)
		must.NoError(t, err)
	}
	show(1)
	_, err := s.Taint("fs:/x", 1)
	must.NoError(t, err)
	shown, err := s.State()
	must.NoError(t, err)
	show(2)
	if err := s.Clear(&shown); !errors.Is(err, flow.ErrMore) || s.Label() != 3 || fmt.Sprint(shown) != "{[] map[] map[fs:/x:[notes]] map[]}" {
		t.Errorf("with more by then: %v, label %v, forgotten %v", err, s.Label(), shown)
	}
	shown, err = s.State()
	must.NoError(t, err)
	if err := s.Clear(&shown); err != nil || s.Label() != 0 || fmt.Sprint(shown) != "{[notes other] map[] map[] map[]}" {
		t.Errorf("%v, label %v, forgotten %v", err, s.Label(), shown)
	}
}

// TestSessionMoves: what a place takes on while something is moved has the other place, too, through others that are under
// way, and also where that never ends; not what lies elsewhere, nor once it has ended.
func TestSessionMoves(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "fs:all=DIR", "kv:**", "fetch:https://api.example")
	f := p.mustCompile(`{"sources":[{"of":"kv:notes/**","label":"notes"}],"rules":[{"to":"fetch","not_from":"notes"},{"to":"fs.write:DIR/out","not_from":"notes","else":"taint"}]}`)
	path := filepath.Join(t.TempDir(), "flow.json")
	open := func() *flow.Session {
		s, err := flow.NewSession(filepath.Join(filepath.Dir(path), "own.json"), f)
		must.NoError(t, err)
		s.Stores, err = flow.NewSession(path, f)
		must.NoError(t, err)
		return s
	}
	s := open()
	for key, ends := range map[string]string{
		"1": `{"from":"out/a, b%","to":"public/b"}`, "2": `{"from":"public","to":"third"}`, "3": `{"from":"fourth","to":"fifth"}`,
	} {
		must.NoError(t, s.Move(p.permit("fs.move", ends), key, true))
	}
	taint := func() {
		_, err := open().Taint(p.at("fs:DIR/out"), 1)
		must.NoError(t, err)
	}
	tainted := func(want string) {
		t.Helper()
		got := ""
		for _, name := range []string{"out/x", "public/b", "public/x", "third/x", "fourth", "fifth"} {
			if read, _ := open().Tainted(p.permit("fs.read", `{"path":"`+name+`"}`)); read == 1 {
				got += name + " "
			}
		}
		if got != want {
			t.Errorf("%q has the label, not %q", got, want)
		}
	}
	taint()
	tainted("out/x public/b public/x third/x ")
	shown, err := open().State()
	if err != nil || len(shown.Moves) != 3 {
		t.Errorf("%v are under way: %v", shown.Moves, err)
	}
	must.NoError(t, s.Clear(&shown))
	tainted("")
	must.NoError(t, s.Move(p.permit("fs.move", `{"from":"out/a","to":"public/b"}`), "4", true))
	must.NoError(t, s.Move(p.permit("fs.move", `{"from":"out/a","to":"public/b"}`), "4", false))
	taint()
	tainted("out/x ")
}
