package registry

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check/cert"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestFactsKept: what was found out of a version is on record with it, is there
// again after a restart without being found out anew, and the certificate counts
// once it was checked.
func TestFactsKept(t *testing.T) {
	l := new(memoryLog)
	r := open(t, l, policy(t, "toy:notes/**"))
	evolve(t, r, def("lib", "n => n * 2"))
	evolve(t, r, def("user", `n => call("lib", n) + 1`, "call:lib"))
	evolve(t, r, def("get", `k => !toy.get(k)`, "toy.get:notes/**"))
	evolve(t, r, def("behind", "let k = 2 in n => n * k"))
	evolve(t, r, def("caller", `n => call("behind", n) + 1`, "call:behind"))
	evolve(t, r, def("odd", `x => if eq(type_of(x), "int") then x else self`))
	must.Succeed(t)(r.Rollback("lib", 1, Edit{}))
	for i := range l.changes {
		f := &l.changes[i].Facts
		if f.Normal == "" || len(f.Certificate) == 0 || len(f.Input) == 0 || len(f.Output) == 0 || f.Semantics != semantics {
			t.Errorf("%s has the facts %+v", l.changes[i].Name, f)
		}
	}
	again := open(t, l, policy(t, "toy:notes/**"))
	for _, x := range again.Snapshot().All() {
		before, _ := r.Snapshot().Get(x.Name)
		if string(x.InputSchema()) != string(before.InputSchema()) || string(x.OutputSchema()) != string(before.OutputSchema()) {
			t.Errorf("%s has the schemas %s, %s", x.Name, x.InputSchema(), x.OutputSchema())
		}
		if x.finding.known.have != 0 {
			t.Errorf("%s was looked at when it was loaded", x.Name)
		}
		if p := again.Proof(x); p.Status != ProofChecked || p.Why != "" || p.Typed != (x.Name != "odd") {
			t.Errorf("%s: its certificate is %+v", x.Name, p)
		}
	}
}

// TestFactsForged: what is on record of a version is not believed. A certificate
// that isn't one of its code is void, and the rest is what is found out.
func TestFactsForged(t *testing.T) {
	const code = `n => call("lib", n) + 1`
	l := new(memoryLog)
	r := open(t, l, nil)
	evolve(t, r, def("lib", "n => n * 2"))
	evolve(t, r, def("user", code, "call:lib"))
	evolve(t, r, def("other", `s => s ++ "a"`))
	honest := slices.Clone(l.changes)
	claim := func(edit func(*cert.Certificate)) func(*Facts) {
		return func(f *Facts) {
			var c cert.Certificate
			must.NoError(t, json.Unmarshal(f.Certificate, &c))
			edit(&c)
			f.Certificate = pifjson.MustEncode(&c)
		}
	}
	for what, c := range map[string]struct {
		forge  func(f *Facts)
		status string
	}{
		"nothing":              {func(f *Facts) {}, ProofChecked},
		"none, as in old ones": {func(f *Facts) { *f = Facts{} }, ProofNone},
		"no certificate":       {func(f *Facts) { f.Certificate = nil }, ProofNone},
		"another's":            {func(f *Facts) { f.Certificate = honest[2].Facts.Certificate }, ProofVoid},
		"no effects":           {claim(func(c *cert.Certificate) { c.Effects = nil }), ProofVoid},
		"a lower cost":         {claim(func(c *cert.Certificate) { c.Cost = "1" }), ProofVoid},
		"another class":        {claim(func(c *cert.Certificate) { c.Class = "linear" }), ProofVoid},
		"another dependency":   {claim(func(c *cert.Certificate) { c.Needs[0].Version = 2 }), ProofVoid},
		"no dependency":        {claim(func(c *cert.Certificate) { c.Needs = nil }), ProofVoid},
		"another hash":         {claim(func(c *cert.Certificate) { c.Hash = strings.Repeat("0", 64) }), ProofVoid},
		"of no tool":           {claim(func(c *cert.Certificate) { c.Tool = false }), ProofVoid},
		"a wider input": {claim(func(c *cert.Certificate) {
			c.Table = append(c.Table, &cert.Type{Kinds: 1<<16 - 1})
			c.Table[c.Types[0]].Parts[4] = len(c.Table)
		}), ProofVoid},
		"a narrower result":      {claim(func(c *cert.Certificate) { c.Table[c.Types[0]].Parts[5] = 0 }), ProofVoid},
		"types out of the table": {claim(func(c *cert.Certificate) { c.Types[0] = -1 }), ProofVoid},
		"fewer types":            {claim(func(c *cert.Certificate) { c.Types = c.Types[:0] }), ProofVoid},
		"no JSON":                {func(f *Facts) { f.Certificate = []byte(`{"hash":`) }, ProofVoid},
		"no object":              {func(f *Facts) { f.Certificate = []byte(`[1]`) }, ProofVoid},
		"nested": {func(f *Facts) {
			f.Certificate = []byte(`{"table":[` + strings.Repeat(`{"item":`, 600) + "{}" + strings.Repeat("}", 600) + `]}`)
		}, ProofVoid},
		"too long": {func(f *Facts) {
			f.Certificate = []byte("{" + strings.Repeat(" ", maxCertificate) + string(f.Certificate[1:]))
		}, ProofVoid},
		"schemas": {func(f *Facts) {
			f.Input, f.Output = []byte(`{"type":"object","properties":{"password":{}}}`), []byte(`{"type":"string"}`)
		}, ProofChecked},
		"no schemas":      {func(f *Facts) { f.Input, f.Output = []byte(`7`), []byte(`{`) }, ProofChecked},
		"the normal form": {func(f *Facts) { f.Normal = honest[2].Facts.Normal }, ProofChecked},
		"no hash":         {func(f *Facts) { f.Normal = "zz" }, ProofChecked},
		"other rules":     {func(f *Facts) { f.Semantics = 99 }, ProofChecked},
	} {
		forged := &memoryLog{changes: slices.Clone(honest)}
		c.forge(&forged.changes[1].Facts)
		again := open(t, forged, nil)
		x, _ := again.Snapshot().Get("user")
		for range 2 {
			if p := again.Proof(x); p.Status != c.status || (p.Why != "") != (c.status == ProofVoid) || p.Typed && c.status != ProofChecked {
				t.Errorf("%s: its certificate is %+v", what, p)
			}
		}
		if got := typed(x); got != "(num) ->{call:lib} num" {
			t.Errorf("%s: its type is %s", what, got)
		}
		// Its types are known now: so are its schemas.
		want, _ := r.Snapshot().Get("user")
		x.know(ofSchemas)
		if string(x.InputSchema()) != string(want.InputSchema()) || string(x.OutputSchema()) != string(want.OutputSchema()) {
			t.Errorf("%s: its schemas are %s and %s", what, x.InputSchema(), x.OutputSchema())
		}
		if same := again.Same(x); same != nil {
			t.Errorf("%s: it is said to do the same as %s", what, same.Name)
		}
	}
}

// TestFactsOfDependency: the certificate of a version is void where what it is bound
// to isn't what it was.
func TestFactsOfDependency(t *testing.T) {
	l := new(memoryLog)
	r := open(t, l, nil)
	evolve(t, r, def("lib", "n => n * 2"))
	evolve(t, r, def("user", `n => call("lib", n) + 1`, "call:lib"))
	evolve(t, r, def("lib", "n => n * 3"))
	forged := &memoryLog{changes: slices.Clone(l.changes)}
	last := &forged.changes[2]
	forged.changes[1].Bound = []Binding{{Ref: Ref{"lib", 1}, Hash: forged.changes[0].Hash, Seq: 1}}
	if x, _ := open(t, forged, nil).Snapshot().Get("user"); open(t, forged, nil).Proof(x).Status != ProofChecked {
		t.Error("it doesn't hold of what it is of")
	}
	// The same version 1 of lib with other code: as where somebody rewrote the record.
	forged.changes[0].Code, forged.changes[0].Hash = last.Code, last.Hash
	forged.changes[1].Bound = []Binding{{Ref: Ref{"lib", 1}, Hash: last.Hash, Seq: 1}}
	again := open(t, forged, nil)
	x, _ := again.Snapshot().Get("user")
	if p := again.Proof(x); p.Status != ProofVoid || !strings.Contains(p.Why, "lib") {
		t.Errorf("%+v", p)
	}
}

// TestSame: a tool whose code does the same is found, and no other.
func TestSame(t *testing.T) {
	l := new(memoryLog)
	r := open(t, l, nil)
	evolve(t, r, def("lib", "n => n * 2"))
	evolve(t, r, def("square", "n => n * n"))
	evolve(t, r, def("a", `n => call("lib", n)`, "call:lib"))
	evolve(t, r, def("lib", "n => n * 3"))
	evolve(t, r, def("secret", `x => code_of("square")`))
	evolve(t, r, def("own", `x => code_of("self")`))
	evolve(t, r, def("ten", "n => self(n)"))
	for _, c := range []struct{ name, code, same string }{
		{"sq", "m => let x = m in x * x", "square"},
		{"cube", "m => m * m * m", ""},
		{"b", `m => call("lib", m)`, ""}, // of another lib
		{"secret2", `y => code_of("square")`, "secret"},
		{"own2", `x => code_of("self")`, ""},
		{"ten2", "m => self(m)", "ten"},
		{"square", "m => m * m", "sq"}, // a new version; what it replaces isn't meant
	} {
		var calls []string
		if c.name == "b" {
			calls = []string{"call:lib"}
		}
		made := evolve(t, r, def(c.name, c.code, calls...))
		for i, from := range []*Registry{r, open(t, l, nil)} {
			x, _ := from.Snapshot().Get(c.name)
			got := ""
			if same := from.Same(x); same != nil {
				got = same.Name
			}
			if got != c.same || x.Version != made.Version {
				t.Errorf("%s (%d) does the same as %q, expected %q", c.name, i, got, c.same)
			}
		}
	}
	// A hash on record that isn't that of the normal form.
	forged := &memoryLog{changes: slices.Clone(l.changes)}
	for i := range forged.changes {
		if c := &forged.changes[i]; c.Name == "cube" {
			c.Facts.Normal = forged.changes[1].Facts.Normal
		}
	}
	liar := open(t, forged, nil)
	for _, name := range []string{"cube", "sq"} {
		x, _ := liar.Snapshot().Get(name)
		if same := liar.Same(x); same != nil && (name == "cube" || same.Name == "cube") {
			t.Errorf("%s is said to do the same as %s", name, same.Name)
		}
	}
	evolve(t, r, def("caller", `x => call("sq", x)`, "call:sq")) // holds it still
	must.Succeed(t)(r.Retire("sq", Edit{}))
	x, _ := r.Snapshot().Get("square")
	if same := r.Same(x); same != nil {
		t.Errorf("it does the same as %s, which was retired", same.Name)
	}
	n := 0
	for _, list := range r.same.by {
		n += len(list)
	}
	kept := 0
	for x := range r.held.count {
		if x.kept != nil && x.kept.compared {
			kept++
		}
	}
	if n != kept {
		t.Errorf("%d are in the index, %d are held", n, kept)
	}
	// Very many that do the same: few are looked at.
	for i := range 50 {
		evolve(t, r, def(fmt.Sprint("same", i), fmt.Sprintf("x%d => (x%d, 1)", i, i)))
	}
	last, _ := r.Snapshot().Get("same49")
	if same := r.Same(last); same == nil || same.Name != "same0" {
		t.Errorf("%v", same)
	}
}

// TestExamplesWiden: what a version's examples prove wrong of its types is wider in its
// schemas, for those that call it, and after a restart.
func TestExamplesWiden(t *testing.T) {
	l := new(memoryLog)
	r := open(t, l, policy(t))
	add := func(d Definition, input, expect, fails string) {
		t.Helper()
		e := Example{As: "data", Input: json.RawMessage(input), Error: fails}
		if fails == "" {
			e.Expect = json.RawMessage(expect)
		}
		d.Examples = []Example{e}
		evolve(t, r, d)
	}
	add(def("fits", `n => n * 2`), `3`, `6`, "")
	add(def("fails", `n => n * 2`), `"x"`, ``, "type_error")
	add(def("proven", `n => n * 2`), `["x"]`, `[1]`, "")
	evolve(t, r, def("caller", `n => call("proven", n)`, "call:proven"))
	any, num := `{"additionalProperties":false,"properties":{"input":{}},"type":"object"}`, `{"additionalProperties":false,"properties":{"input":{"type":"number"}},"required":["input"],"type":"object"}`
	for name, want := range map[string][2]string{"fits": {num, `{"type":"number"}`}, "fails": {num, `{"type":"number"}`}, "proven": {any, `{"type":"number"}`}} {
		for what, of := range map[string]*Registry{"made": r, "restarted": open(t, l, policy(t))} {
			x, ok := of.Snapshot().Get(name)
			if !ok {
				t.Fatal(name)
			}
			check := func(when string) {
				t.Helper()
				if in, out := string(x.InputSchema()), string(x.OutputSchema()); in != want[0] && in != strings.Replace(want[0], `"required":["input"],`, "", 1) || out != want[1] {
					t.Errorf("%s, %s, %s: %s and %s", name, what, when, in, out)
				}
			}
			check("on record")
			x.know(ofTypes | ofSchemas)
			check("worked out")
		}
	}
	x, _ := r.Snapshot().Get("caller")
	if got := typed(x); got != "(data) ->{call:proven} num" {
		t.Errorf("a caller of a tool that was proven wide has the type %s", got)
	}
}
