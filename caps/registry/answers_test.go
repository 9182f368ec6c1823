package registry

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// answering is the policy of a toy whose get answers what is of a type; "": it says
// no type.
func answering(t testing.TB, notation string) *caps.Policy {
	t.Helper()
	m := *toy
	m.Operations = slices.Clone(toy.Operations)
	if i := slices.IndexFunc(m.Operations, func(o caps.Operation) bool { return o.Name == "toy.get" }); notation != "" {
		var err error
		if m.Operations[i].Type, err = check.ParseAnswer(notation); err != nil {
			t.Fatal(err)
		}
	}
	kinds, err := caps.NewKinds(&m)
	must.NoError(t, err)
	p := caps.NewPolicy(kinds, time.Now)
	must.NoError(t, p.Grant(grant(t, kinds, "toy:notes/**")))
	return p
}

const lengthOf = `k => length(!toy.get("notes/" ++ k))`

// TestAnswersTyped: what a program does with an answer is typed by what the manifest
// says, through a call as well.
func TestAnswersTyped(t *testing.T) {
	for notation, want := range map[string]string{
		"":                   "(string) ->{toy.get} int false",
		"string":             "(string) ->{toy.get} int true",
		"list[int] | string": "(string) ->{toy.get} int true",
		"string | unit":      "(string) ->{toy.get} int false",
		"data":               "(string) ->{toy.get} int false",
	} {
		r := New(answering(t, notation))
		evolve(t, r, def("length", lengthOf, "toy.get:notes/**"))
		evolve(t, r, def("more", `k => call("length", k) + 1`, "call:length"))
		x, _ := r.Snapshot().Get("length")
		got := typed(x) + map[bool]string{true: " true", false: " false"}[x.Report().Sound()]
		if got != want {
			t.Errorf("%q: %s, expected %s", notation, got, want)
		}
		y, _ := r.Snapshot().Get("more")
		if y.Report().Sound() != x.Report().Sound() {
			t.Errorf("%q: its caller is sound: %t", notation, y.Report().Sound())
		}
		written := notation
		if notation == "list[int] | string" {
			written = "string | list[int]" // as it is always spelled
		}
		if a := y.Answers(); len(a) != 2 || a["toy.get"] != written || a["toy.get("] != "string | {key: string}" {
			t.Errorf("%q: the caller relies on %v", notation, a)
		}
	}
	r := New(answering(t, "{n: int, of?: string}"))
	evolve(t, r, def("whole", `k => !toy.get("notes/" ++ k)`, "toy.get:notes/**"))
	evolve(t, r, def("part", `k => (!toy.get("notes/" ++ k)).n + 1`, "toy.get:notes/**"))
	evolve(t, r, def("plain", `k => k + 1`))
	for name, want := range map[string]string{"whole": "(string) ->{toy.get} {n: int, of?: string}", "part": "(string) ->{toy.get} int"} {
		x, _ := r.Snapshot().Get(name)
		if p := r.Proof(x); typed(x) != want || !x.Report().Sound() || p.Status != ProofChecked || !p.Typed {
			t.Errorf("%s: %s, sound %t, %+v", name, typed(x), x.Report().Sound(), p)
		}
	}
	if x, _ := r.Snapshot().Get("plain"); x.Answers() != nil {
		t.Errorf("what doesn't act relies on %v", x.Answers())
	}
}

// TestAnswersChanged: what was found out of a version is void where an operation
// that it relies on answers something else than then, and else it is as it was.
func TestAnswersChanged(t *testing.T) {
	types := []string{"", "string", "int", "{n: int}"}
	for _, was := range types {
		l := new(memoryLog)
		r := open(t, l, answering(t, was))
		evolve(t, r, def("get", `k => !toy.get("notes/" ++ k)`, "toy.get:notes/**"))
		evolve(t, r, def("caller", `k => [call("get", k)]`, "call:get"))
		evolve(t, r, def("plain", `k => k + 1`))
		for _, now := range types {
			again := open(t, l, answering(t, now))
			fresh := New(answering(t, now))
			evolve(t, fresh, def("get", `k => !toy.get("notes/" ++ k)`, "toy.get:notes/**"))
			evolve(t, fresh, def("caller", `k => [call("get", k)]`, "call:get"))
			evolve(t, fresh, def("plain", `k => k + 1`))
			for _, x := range again.Snapshot().All() {
				want, _ := fresh.Snapshot().Get(x.Name)
				if string(x.OutputSchema()) != string(want.OutputSchema()) || string(x.InputSchema()) != string(want.InputSchema()) {
					t.Errorf("%q to %q: %s has the schemas %s, %s", was, now, x.Name, x.InputSchema(), x.OutputSchema())
				}
				if worked := x.finding.known.have != 0; worked != (was != now && x.Name != "plain") {
					t.Errorf("%q to %q: %s was found out anew: %t", was, now, x.Name, worked)
				}
			}
			for _, x := range again.Snapshot().All() {
				want, _ := fresh.Snapshot().Get(x.Name)
				p := again.Proof(x)
				holds := x.Name == "plain" || was == now || was == ""
				if (p.Status == ProofChecked) != holds || p.Status != ProofChecked && p.Status != ProofVoid {
					t.Errorf("%q to %q: the certificate of %s is %+v", was, now, x.Name, p)
				}
				if typed(x) != typed(want) {
					t.Errorf("%q to %q: %s has the type %s", was, now, x.Name, typed(x))
				}
			}
		}
	}
}

// TestAnswersForged: a record that lies about what was relied on has no schemas, and
// a certificate that claims more than the manifest says is void.
func TestAnswersForged(t *testing.T) {
	l := new(memoryLog)
	r := open(t, l, answering(t, "string"))
	evolve(t, r, def("length", lengthOf, "toy.get:notes/**"))
	for what, c := range map[string]struct {
		forge  func(*Facts)
		now    string
		status string
	}{
		"honest":              {func(*Facts) {}, "string", ProofChecked},
		"of another manifest": {func(*Facts) {}, "int", ProofVoid},
		"without the need": {func(f *Facts) {
			f.Certificate = []byte(strings.Replace(string(f.Certificate), `"needs":[`, `"other":[`, 1))
		}, "string", ProofVoid}, // its types need it
		"many answers": {func(f *Facts) {
			f.Answers = Answers{strings.Repeat("x", maxSchema): ""}
		}, "string", ProofChecked},
		"another answer": {func(f *Facts) { f.Answers = Answers{"toy.get": "int"} }, "string", ProofChecked},
		"no answer":      {func(f *Facts) { f.Answers = nil; f.Output = []byte(`{"type":"string"}`) }, "int", ProofVoid},
	} {
		forged := &memoryLog{changes: slices.Clone(l.changes)}
		c.forge(&forged.changes[0].Facts)
		again := open(t, forged, answering(t, c.now))
		x, _ := again.Snapshot().Get("length")
		if p := again.Proof(x); p.Status != c.status {
			t.Errorf("%s: %+v", what, p)
		}
		x.know(ofSchemas)
		if got := string(x.OutputSchema()); what != "of another manifest" && what != "no answer" && got != string(check.OutputSchema(x.Report())) {
			t.Errorf("%s: %s", what, got)
		}
	}
}

// TestArgumentsTyped: what a program gives an operation is typed by the manifest, and
// what was found out is void where it says something else than then.
func TestArgumentsTyped(t *testing.T) {
	taking := func(notation string) *caps.Policy {
		m := *toy
		of, err := check.ParseAnswer(notation)
		must.NoError(t, err)
		m.Operations = []caps.Operation{{Name: "toy.get", Wire: "get", Verb: "get", Params: []caps.Param{
			{Name: "key", Type: "string", Main: true, Designates: true}, {Name: "n", Type: "any", Of: of, Optional: true},
		}}}
		kinds, err := caps.NewKinds(&m)
		must.NoError(t, err)
		p := caps.NewPolicy(kinds, time.Now)
		must.NoError(t, p.Grant(grant(t, kinds, "toy:notes/**")))
		return p
	}
	const code = `n => !toy.get({key: "notes/a", n: n})`
	for _, was := range []string{"int", "string"} {
		l := new(memoryLog)
		r := open(t, l, taking(was))
		evolve(t, r, def("get", code, "toy.get:notes/**"))
		evolve(t, r, def("three", `n => !toy.get({key: "notes/a", n: 3})`, "toy.get:notes/**"))
		x, _ := r.Snapshot().Get("get")
		if want := "(" + was + ") ->{toy.get} data"; typed(x) != want {
			t.Errorf("%s, not %s", typed(x), want)
		}
		if p := r.Proof(x); p.Status != ProofChecked || !p.Typed {
			t.Errorf("%s: its certificate is %+v", was, p)
		}
		if a := x.Answers(); a["toy.get("] != "string | {key: string, n?: "+was+"}" {
			t.Errorf("it relies on %v", a)
		}
		three, _ := r.Snapshot().Get("three")
		if n := len(three.Report().Diagnostics); (n == 0) != (was == "int") {
			t.Errorf("%s: 3 fails at %d places", was, n)
		}
		for _, now := range []string{"int", "string"} {
			again := open(t, l, taking(now))
			y, _ := again.Snapshot().Get("get")
			if want := strings.Contains(string(y.InputSchema()), `"integer"`); want != (now == "int") {
				t.Errorf("%s to %s: %s", was, now, y.InputSchema())
			}
			if old, _ := again.Snapshot().Answering("get", x.Answers()).Get("get"); typed(old) != typed(x) {
				t.Errorf("%s to %s: as it was recorded it is %s", was, now, typed(old))
			}
		}
	}
}

// older is tools as a server of before Semantics 6 recorded them.
var older = []struct {
	name, source string
	text         bool
	hash         string
}{
	{"same", `(a, b) => a == b`, true, "7e7da75c7cab356011a23300803628334b08e1d93acaae850ded172a61f97d8d"},
	{"differ", `// not equal
n => if n != 3 then 1 else 2`, true, "4f317f16c3ef9e2116114153d64207c613c4cb8d70523212f9c9223aa21fa428"},
	{"curried", `xs => fold((a, b) => a, x => x, xs)`, true, "dcd9b28df014bf296e9b7d612cd87ebd507321b09d1a1a0074a1cf582b853933"},
	{"shadow", `n => let f = x => x + 1 in let f = x => f(x) * 2 in f(n)`, true, "18f6cfd48505d267ce577bcba7e6c49fa49abb97fd803e1f345551cd8e26ccf9"},
	{"prims", `xs => let length = x => length(x) + 1 in length(xs)`, true, "5a37a8ec2dc8f887f2ff229f431dac663ffc5df1c3f62611429ae7099e8ac7c7"},
	{"later", `n => let g = x => x + 1 in let f = x => g(x), g = x => x * 2 in f(n) + g(n)`, true, "9346141a3c10595c70f4875749ca060ee599664d43d7c59d12ab8f0ff2486f9e"},
	{"lines", `length(lines)`, true, "aeff454bb0f62c587dc5e5b0fd97aae74173ae2d7219df34c3b1ca8ed1bf043d"},
	{"quoted", `n => eval('{ if 1 == 1 then 10 else 20 })`, true, "f76fa8f3037ce0a87e611f3fd6962f967bff2a310a5b0b91d09d26477d684826"},
	{"caller", `n => @same({a: n, b: 7})`, true, "431f4a213b029c6d6ab89edf7149a98cff651022793d5f611a144494b3287205"},
	{"arms", `v => match v { 0 => 1; [x, ...rest] => if x == 1 then 2 else 3; {k: k} => k; _ => 4 }`, true, "ea051ef154bf721c6d37351e225a760403294a278b6ed01cc991aaa80d3d63f4"},
	{"jlet", `{"lam": "f", "body": {"let": [["f", {"lam": "x", "body": {"app": {"func": {"var": "f"}, "arg": {"var": "x"}}}}]], "in": 5}}`, false, "86630c0b2dc4c13329d24765a88c5989c65879b40ce4f682c9579a2161f8af66"},
	{"sumeq", `xs => fold(p => if snd(p) == 2 then fst(p) + 1 else fst(p), 0, xs)`, true, "3f39cf741c00b786c4c51b4a7d5fb6d1d18f999a4ec9d48db6d584e9ef2cd05c"},
}

// TestOlderSource: code that older servers recorded is what its hash says, though its
// source is read otherwise today, or not at all; other code isn't taken for it.
func TestOlderSource(t *testing.T) {
	l := new(memoryLog)
	rounded := &code{name: "t", source: []byte(`{"lam":"n","body":2.5}`)}
	for p := range core.Older("t", rounded.source, false) {
		rounded.hash = p.Hash() // the last: when numbers were rounded
	}
	if p, err := rounded.program(); err != nil || string(p.Canonical()) != `{"body":2,"lam":"n"}` {
		t.Errorf("a rounded number: %v", err)
	}
	for _, o := range older {
		d := Definition{Name: o.name, Code: []byte(o.source), Text: o.text}
		must.Succeed(t)(l.Append(uint64(len(l.changes)), &Change{Kind: Evolved, Stored: Stored{Definition: d, Version: 1, Hash: o.hash}}))
	}
	r := open(t, l, nil)
	for i, o := range older {
		was, _ := r.Snapshot().Get(o.name)
		if err := was.Problem(); err != nil || was.Program().Hash() != o.hash {
			t.Errorf("%s: %v", o.source, err)
			continue
		}
		// What is shown is what runs.
		if p, err := core.CompileText(o.name, was.Shown()); o.text && (err != nil || p.Hash() != o.hash) {
			t.Errorf("%s is printed as other code, %v", o.source, err)
		}
		back, err := r.Rollback(o.name, 1, Edit{})
		if err != nil || back.Hash != o.hash || string(back.Source) != o.source {
			t.Errorf("rolled back, %s is %+v, %v", o.source, back, err)
		}
		other := &code{name: o.name, source: []byte(o.source), text: o.text, hash: older[(i+1)%len(older)].hash}
		if _, err := other.program(); err == nil {
			t.Errorf("%s is taken for other code", o.source)
		}
	}
	list, err := Decode(bytes.NewReader(Encode(r.Snapshot())))
	must.NoError(t, err)
	in := open(t, new(memoryLog), nil)
	if _, _, _, err := in.Import(list); err != nil {
		t.Fatal(err)
	}
	for _, o := range older {
		if got, _ := in.Snapshot().Get(o.name); got == nil || got.Hash != o.hash {
			t.Errorf("%s isn't imported as it was", o.source)
		}
	}
}

// TestOlderGroup: the code of a group is held by what it means, too, and carried along.
func TestOlderGroup(t *testing.T) {
	l := new(memoryLog)
	r := open(t, l, nil)
	def2 := func(name, other, last string) Definition {
		return def(name, fmt.Sprintf("n => if eq(n, 0) then %s else @%s(n - 1)", last, other), "call:"+other)
	}
	must.Succeed(t)(r.EvolveAll([]Definition{def2("even", "odd", "true"), def2("odd", "even", "false")}, make([]Edit, 2)))
	for i := range l.changes { // as it was written when == was eq
		c := &l.changes[i]
		c.Code, c.Canonical = bytes.Replace(c.Code, []byte("eq(n, 0)"), []byte("n == 0"), 1), nil
	}
	r = open(t, l, nil)
	odd, _ := r.Snapshot().Get("odd")
	must.NoError(t, odd.Problem())
	must.Succeed(t)(r.Evolve(def2("even", "odd", "(true)"), Edit{}))
	if now, _ := r.Snapshot().Get("odd"); now.Problem() != nil || now.Program().Hash() != odd.Program().Hash() {
		t.Errorf("odd is carried along as %s: %v", now.Shown(), now.Problem())
	}
}

// TestCanonicalKept: code in the text form is kept as canonical JSON as well, and a text
// that is no code any more leaves the tool what it was; its hash is that of the JSON.
func TestCanonicalKept(t *testing.T) {
	l := new(memoryLog)
	made := evolve(t, open(t, l, nil), def("twice", "n => n * 2"))
	l.changes[0].Code = []byte("n => n ** 2")
	was, _ := open(t, l, nil).Snapshot().Get("twice")
	if err := was.Problem(); err != nil || was.Program().Hash() != made.Hash || string(was.Shown()) != string(Printed(made.Program())) {
		t.Errorf("%v: %s", err, was.Shown())
	}
	r := open(t, l, nil)
	if back, err := r.Rollback("twice", 1, Edit{}); err != nil || back.Hash != made.Hash || back.Problem() != nil {
		t.Errorf("rolled back: %v", err)
	}
	l.changes = l.changes[:1]
	l.changes[0].Canonical = []byte(`{"body":3,"lam":"n"}`)
	if was, _ = open(t, l, nil).Snapshot().Get("twice"); was.Problem() == nil {
		t.Error("other code is taken for it")
	}
}

// TestWholeIsKnown: nobody can say which code a tool runs that takes that of tools whose names it works out, itself or in
// a version that it is bound to; so none is released, and an approval of it covers no other version.
func TestWholeIsKnown(t *testing.T) {
	r := open(t, new(memoryLog), nil)
	for i, c := range []struct {
		name, code string
		known      bool
	}{
		{"plain", `x => x + 1`, true},
		{"named", `x => eval(code_of("plain"))(x)`, true},
		{"computed", `x => eval(code_of(x))`, false},
		{"quoted", `x => eval('{code_of(x)})`, false},
		{"later", `x => eval(code_of("never"))(x)`, false},
		{"own", `x => code_of("own")`, true},
		{"self_too", `x => code_of("self")`, false}, // that of a tool of that name, when there is one
		{"over", `x => code_of("computed")`, false},
		{"over2", `x => [code_of("plain"), code_of("over")]`, false},
	} {
		made := evolve(t, r, def(c.name, c.code))
		if (made.Whole() != "") != c.known || SubjectOf(made).Late == c.known {
			t.Errorf("%s: %q, %v", c.code, made.Whole(), SubjectOf(made).Late)
		}
		for range mostBelow { // many below it
			if i == 8 {
				made = evolve(t, r, def(fmt.Sprint("chain", made.Seq), fmt.Sprintf(`x => code_of(%q)`, made.Name)))
			}
		}
		if i == 8 && made.Whole() != "" {
			t.Error("a long chain is known")
		}
	}
}
