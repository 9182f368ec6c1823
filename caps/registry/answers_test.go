package registry

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
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
	if err != nil {
		t.Fatal(err)
	}
	p := caps.NewPolicy(kinds, time.Now)
	if err := p.Grant(grant(t, kinds, "toy:notes/**")); err != nil {
		t.Fatal(err)
	}
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
		if a := y.Answers(); len(a) != 1 || a["toy.get"] != written {
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
		if err != nil {
			t.Fatal(err)
		}
		m.Operations = []caps.Operation{{Name: "toy.get", Wire: "get", Verb: "get", Params: []caps.Param{
			{Name: "key", Type: "string", Main: true, Designates: true}, {Name: "n", Type: "any", Of: of, Optional: true},
		}}}
		kinds, err := caps.NewKinds(&m)
		if err != nil {
			t.Fatal(err)
		}
		p := caps.NewPolicy(kinds, time.Now)
		if err := p.Grant(grant(t, kinds, "toy:notes/**")); err != nil {
			t.Fatal(err)
		}
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
			old, _ := again.Snapshot().Answering("get", x.Answers()).Get("get")
			if typed(old) != typed(x) {
				t.Errorf("%s to %s: as it was recorded it is %s", was, now, typed(old))
			}
		}
	}
}
