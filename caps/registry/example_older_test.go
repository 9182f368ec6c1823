package registry

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
)

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
		if _, err := l.Append(uint64(len(l.changes)), &Change{Kind: Evolved, Stored: Stored{Definition: d, Version: 1, Hash: o.hash}}); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if _, err := r.EvolveAll([]Definition{def2("even", "odd", "true"), def2("odd", "even", "false")}, make([]Edit, 2)); err != nil {
		t.Fatal(err)
	}
	for i := range l.changes { // as it was written when == was eq
		c := &l.changes[i]
		c.Code, c.Canonical = bytes.Replace(c.Code, []byte("eq(n, 0)"), []byte("n == 0"), 1), nil
	}
	r = open(t, l, nil)
	odd, _ := r.Snapshot().Get("odd")
	if err := odd.Problem(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Evolve(def2("even", "odd", "(true)"), Edit{}); err != nil {
		t.Fatal(err)
	}
	now, _ := r.Snapshot().Get("odd")
	if now.Problem() != nil || now.Program().Hash() != odd.Program().Hash() {
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
