package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// toy is a kind of notes, with a name each.
var toy = &caps.Manifest{
	Kind: "toy", Version: "1.0.0", Doc: "notes in memory", Algebra: caps.Segments,
	Verbs: []caps.Verb{{Name: "get", Flags: caps.Flags{ReadOnly: true, Idempotent: true}}},
	Operations: []caps.Operation{
		{Name: "toy.get", Verb: "get", Doc: "gives a note", Result: "string", Params: []caps.Param{{Name: "key", Doc: "its name", Type: "string", Main: true, Designates: true}}},
	},
}

// policy grants what the texts say.
func policy(t testing.TB, grants ...string) *caps.Policy {
	t.Helper()
	kinds, err := caps.NewKinds(toy)
	must.NoError(t, err)
	p := caps.NewPolicy(kinds, time.Now)
	for _, text := range grants {
		must.NoError(t, p.Grant(grant(t, kinds, text)))
	}
	return p
}

func grant(t testing.TB, kinds caps.Kinds, text string) *caps.Grant {
	t.Helper()
	c, err := caps.Parse(text, kinds)
	must.NoError(t, err)
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: kinds})
	must.NoError(t, err)
	return g
}

// open opens a log without problems.
func open(t testing.TB, l Log, p *caps.Policy) *Registry {
	t.Helper()
	r, problems, err := Open(l, p)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return r
}

// def is a definition in the text form.
func def(name, text string, capabilities ...string) Definition {
	return Definition{Name: name, Code: []byte(text), Text: true, Capabilities: capabilities}
}

func evolve(t testing.TB, r *Registry, d Definition) *Tool {
	t.Helper()
	made, err := r.Evolve(d, Edit{})
	if err != nil {
		t.Fatalf("evolve %s: %v", d.Name, err)
	}
	return made
}

// is says what is wrong with an error that should be of a kind and have words.
func is(err error, want fault.Kind, words ...string) error {
	if kind(err) != want {
		return fmt.Errorf("%w: not %s", err, want)
	}
	var f *fault.Fault
	errors.As(err, &f)
	for _, word := range words {
		if !strings.Contains(f.Message+" "+f.Hint, word) {
			return fmt.Errorf("%w (%s) doesn't say %q", err, f.Hint, word)
		}
	}
	return nil
}

func version1(n int) *int { return &n }

// TestVersions: versions count for each name, go on after the tool was retired,
// and a snapshot never changes.
func TestVersions(t *testing.T) {
	r := New(nil)
	before := r.Snapshot()
	for v := 1; v <= 3; v++ {
		if made := evolve(t, r, def("a", fmt.Sprint(v))); made.Version != v || made.Seq != uint64(v) {
			t.Fatalf("version %d: %+v", v, made)
		}
	}
	if made := evolve(t, r, def("b", "1")); made.Version != 1 {
		t.Errorf("%+v", made)
	}
	after := r.Snapshot()
	gone, err := r.Retire("a", Edit{})
	if err != nil || gone.Version != 3 {
		t.Fatal(gone, err)
	}
	if _, err := r.Retire("a", Edit{}); is(err, fault.NoTool, `"a"`) != nil {
		t.Error(err)
	}
	if _, ok := r.Snapshot().Get("a"); ok || r.Snapshot().Len() != 1 || r.Snapshot().Seq() != 5 {
		t.Error("it is still there")
	}
	if made := evolve(t, r, def("a", "4")); made.Version != 4 {
		t.Errorf("after it was retired: version %d", made.Version)
	}
	if before.Len() != 0 || after.Len() != 2 {
		t.Error("a snapshot changed")
	}
	if a, ok := after.Get("a"); !ok || string(a.Program().Canonical()) != "3" {
		t.Errorf("%+v", a)
	}
	changes, more, err := r.History("a", 0, 3)
	if err != nil || !more || len(changes) != 3 || changes[0].Version != 4 || changes[1].Kind != Retired || changes[2].Version != 3 {
		t.Errorf("%+v %v %v", changes, more, err)
	}
	changes, more, err = r.History("a", changes[2].Seq, 3)
	if err != nil || more || len(changes) != 2 || changes[1].Version != 1 {
		t.Errorf("%+v %v %v", changes, more, err)
	}
}

// TestUnbound: a call that is declared is of a tool that there is.
func TestUnbound(t *testing.T) {
	r := New(nil)
	for name, words := range map[string]string{"nobody": "Evolve", "a": "itself"} {
		_, err := r.Evolve(def("a", fmt.Sprintf("x => @%s(x)", name), "call:"+name), Edit{})
		if is(err, fault.Refused, words) != nil {
			t.Error(err)
		}
	}
}

func TestIfVersion(t *testing.T) {
	r := New(nil)
	code := 0
	try := func(n int) error {
		code++ // the same code again makes no version
		_, err := r.Evolve(def("a", fmt.Sprint(code)), Edit{IfVersion: version1(n)})
		return err
	}
	if err := is(try(1), fault.Conflict, "no tool", "if_version 0"); err != nil {
		t.Error(err)
	}
	must.NoError(t, try(0))
	if err := is(try(0), fault.Conflict, "version 1", "if_version 1"); err != nil {
		t.Error(err)
	}
	if err := is(try(7), fault.Conflict, "is 1", "if_version 1"); err != nil {
		t.Error(err)
	}
	if err := try(1); err != nil {
		t.Error(err)
	}
	if _, err := r.Retire("a", Edit{IfVersion: version1(1)}); is(err, fault.Conflict, "if_version 2") != nil {
		t.Error(err)
	}
	if _, err := r.Rollback("a", 1, Edit{IfVersion: version1(1)}); is(err, fault.Conflict, "if_version 2") != nil {
		t.Error(err)
	}
	if _, err := r.Retire("a", Edit{IfVersion: version1(2)}); err != nil {
		t.Error(err)
	}
	if err := try(0); err != nil {
		t.Error(err)
	}
}

// TestCheck: a version that a check refuses isn't there, and a check sees the
// version as it will be. It is asked again if what it saw is another now.
func TestCheck(t *testing.T) {
	r := New(nil)
	evolve(t, r, def("lib", "1"))
	no := &fault.Fault{Kind: fault.Refused, Message: "no"}
	_, err := r.Evolve(def("a", "code_of(\"lib\")"), Edit{Check: func(c *Tool, s *Snapshot) *fault.Fault {
		if c.Version != 1 || c.Bound["lib"].Version != 1 || s.Len() != 1 {
			t.Errorf("it sees %+v", c)
		}
		return no
	}})
	if !errors.Is(err, error(no)) || r.Snapshot().Len() != 1 {
		t.Error(err)
	}
	asked := 0
	elsewhere := open(t, r.log, nil)
	made, err := r.Evolve(def("a", "code_of(\"lib\")"), Edit{Check: func(c *Tool, s *Snapshot) *fault.Fault {
		asked++
		switch asked {
		case 1:
			evolve(t, elsewhere, def("lib", "2"))
			evolve(t, elsewhere, def("other", "1"))
		case 2:
			evolve(t, elsewhere, def("other", "2")) // a doesn't depend on it
		}
		return nil
	}})
	if err != nil || asked != 2 || made.Bound["lib"].Version != 2 {
		t.Errorf("asked %d times: %+v %v", asked, made, err)
	}
}

// TestRollback: what is rolled back to is as it was: its code, its examples, and
// what its names were bound to.
func TestRollback(t *testing.T) {
	p := policy(t, "toy:a/**")
	r := open(t, new(memoryLog), p)
	evolve(t, r, def("lib", "1"))
	d := def("a", `k => (code_of("lib"), !toy.get(k))`, "toy:a/b")
	d.Description, d.Examples = "first", []Example{{Input: json.RawMessage("1"), Error: "denied"}}
	evolve(t, r, d)
	evolve(t, r, def("lib", "2"))
	evolve(t, r, def("a", `k => k`))
	must.Succeed(t)(r.Retire("a", Edit{}))
	back, err := r.Rollback("a", 1, Edit{})
	must.NoError(t, err)
	if back.Version != 3 || back.Description != "first" || back.Bound["lib"].Version != 1 || len(back.Examples) != 1 ||
		back.State != StateReady || len(back.Held) != 1 {
		t.Errorf("%+v", back)
	}
	if now, ok := r.Snapshot().Get("a"); !ok || now != back {
		t.Error("it isn't current")
	}
	changes, _, err := r.History("a", 0, 1)
	if err != nil || changes[0].Kind != RolledBack || changes[0].From != 1 || changes[0].Bound[0].Version != 1 {
		t.Errorf("%+v %v", changes, err)
	}
	if _, err := r.Rollback("a", 9, Edit{}); is(err, fault.OutOfRange, "9", "3") != nil {
		t.Error(err)
	}
	if _, err := r.Rollback("b", 1, Edit{}); is(err, fault.NoTool, `"b"`) != nil {
		t.Error(err)
	}
	// Without the grant it is there, and may do nothing.
	r = open(t, r.log, policy(t))
	blocked, err := r.Rollback("a", 1, Edit{})
	if err != nil || blocked.Version != 4 || blocked.State != StateBlocked || blocked.Held != nil || !strings.Contains(blocked.Why, "isn't granted") && !strings.Contains(blocked.Why, "granted") {
		t.Errorf("%+v %v", blocked, err)
	}
	// A call is bound to today's version where the old one can't be made, and holds.
	evolve(t, r, def("called", "x => x"))
	evolve(t, r, def("kept", "1"))
	evolve(t, r, def("caller", "x => (@called(x), code_of(\"kept\"))", "call:called"))
	evolve(t, r, def("kept", "2"))
	evolve(t, r, def("caller", "1"))
	evolve(t, r, def("called", "x => 2"))
	lost := r.log.(*memoryLog)
	for i := range lost.changes {
		if c := &lost.changes[i]; c.Name == "called" && c.Version == 1 {
			c.Hash = strings.Repeat("0", 64)
		}
	}
	if back, err := open(t, lost, p).Rollback("caller", 1, Edit{}); err != nil || back.State != StateReady || len(back.Held) != 1 || back.Bound["called"].Version != 2 || back.Bound["kept"].Version != 1 {
		t.Errorf("%+v %v", back, err)
	}
	// To a version on record whose own library is gone: bound to today's.
	l := r.log.(*memoryLog)
	l.changes[0].Hash = strings.Repeat("0", 64)
	r, _, err = Open(l, p)
	must.NoError(t, err)
	back, err = r.Rollback("a", 1, Edit{})
	if err != nil || back.Bound["lib"].Version != 2 {
		t.Errorf("%+v %v", back, err)
	}
}

// TestBoundGoesOn: a tool goes on with the version that it was made with.
func TestBoundGoesOn(t *testing.T) {
	l := new(memoryLog)
	r := New(nil)
	r.log = l
	evolve(t, r, def("lib", "1"))
	evolve(t, r, def("a", `code_of("lib")`))
	must.Succeed(t)(r.Retire("lib", Edit{}))
	for _, r := range []*Registry{r, open(t, l, nil)} {
		a, _ := r.Snapshot().Get("a")
		if b := a.Bound["lib"]; b == nil || string(b.Program().Canonical()) != "1" || b.Version != 1 {
			t.Errorf("%+v", a)
		}
		if _, ok := r.Snapshot().Get("lib"); ok || len(r.held.count) != 2 {
			t.Errorf("%d versions are held", len(r.held.count))
		}
	}
	evolve(t, r, def("lib", "2"))
	evolve(t, r, def("a", `code_of("lib")`))
	if len(r.held.count) != 2 || r.held.code != len(`code_of("lib")`)+1 {
		t.Errorf("%d versions, %d bytes are held, though nobody is bound to the old ones", len(r.held.count), r.held.code)
	}
}

// TestExamples: examples stay with a tool until they are replaced or dropped.
func TestExamples(t *testing.T) {
	r := New(nil)
	ex := func(pairs ...string) (list []Example) {
		list = []Example{}
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, Example{Input: json.RawMessage(pairs[i]), Expect: json.RawMessage(pairs[i+1])})
		}
		return list
	}
	for i, c := range []struct {
		given, want []Example
	}{
		{nil, nil},
		{ex("1", "1", `{"a":1,"b":2}`, "2"), ex("1", "1", `{"a":1,"b":2}`, "2")},
		{nil, ex("1", "1", `{"a":1,"b":2}`, "2")},
		{ex(` { "b" : 2, "a":1 }`, "3", "4", "4"), ex("1", "1", ` { "b" : 2, "a":1 }`, "3", "4", "4")},
		{ex("1.0", "1"), ex("1", "1", ` { "b" : 2, "a":1 }`, "3", "4", "4", "1.0", "1")}, // another literal
		{ex(), nil},
		{nil, nil},
	} {
		d := def("a", fmt.Sprint(i))
		d.Examples = c.given
		made := evolve(t, r, d)
		if got, want := fmt.Sprintf("%s", made.Examples), fmt.Sprintf("%s", c.want); got != want {
			t.Errorf("%d: %s, expected %s", i, got, want)
		}
	}
	d := def("c", "1")
	d.Examples = ex("1", "1", "1", "2")
	if made := evolve(t, r, d); fmt.Sprintf("%s", made.Examples) != fmt.Sprintf("%s", ex("1", "2")) {
		t.Errorf("of two with one input there are %s", made.Examples)
	}
	d = def("a", "1")
	d.Examples = []Example{
		{Input: json.RawMessage("1"), Effects: []ExampleEffect{{Op: "fs.read", Value: json.RawMessage(`"a"`)}}, Expect: json.RawMessage("1")},
		{Input: json.RawMessage("1"), Effects: []ExampleEffect{{Op: "fs.read", Value: json.RawMessage(`"b"`)}}, Expect: json.RawMessage("2")},
	}
	if made := evolve(t, r, d); len(made.Examples) != 2 {
		t.Error("other effects are another example")
	}
	for i := range MaxExamples - 2 {
		d.Examples = ex(fmt.Sprint(i+10), "1")
		evolve(t, r, d)
	}
	d.Examples = ex("1000", "1")
	if _, err := r.Evolve(d, Edit{}); is(err, fault.InvalidRequest, "100", "[]") != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "{", strings.Repeat("[", 1001) + strings.Repeat("]", 1001), `"` + strings.Repeat("x", MaxExampleBytes) + `"`} {
		d := def("b", "1")
		d.Examples = []Example{{Input: json.RawMessage("1"), Expect: json.RawMessage(text)}}
		if _, err := r.Evolve(d, Edit{}); (text == "") != (err == nil) || err != nil && kind(err) != fault.InvalidRequest {
			t.Errorf("%.20s: %v", text, err)
		}
	}
	must.Succeed(t)(r.Retire("a", Edit{}))
	if made := evolve(t, r, def("a", "1")); made.Examples != nil {
		t.Error("examples of a tool that was retired came back")
	}
}

// TestKeptAnew: what a new version leaves out it has of the one before, and what is the
// same already makes none.
func TestKeptAnew(t *testing.T) {
	r := New(nil)
	keep := Keep{Description: true, As: true, Input: true}
	of := func(code string, change func(*Definition)) *Tool {
		t.Helper()
		d := def("a", code)
		d.Description, d.Keep = "", keep
		if change != nil {
			change(&d)
		}
		return evolve(t, r, d)
	}
	first := of("x => x + 1", func(d *Definition) {
		d.Description, d.Input = "adds one", json.RawMessage(`{"type":"object","properties":{"input":{"type":"integer"}}}`)
		d.Examples = []Example{{Input: json.RawMessage("1"), Expect: json.RawMessage("2")}}
	})
	for _, c := range []struct {
		code   string
		change func(*Definition)
	}{
		{"x => x + 1", nil}, {"x  =>\nx + 1", nil}, {"x => x + 1", func(d *Definition) { d.Description = "adds one" }},
		{`{"lam":"x","body":{"add":[{"var":"x"},1]}}`, func(d *Definition) { d.Text = false }},
	} {
		if same := of(c.code, c.change); same != first {
			t.Errorf("%s is version %d", c.code, same.Version)
		}
	}
	second := of("x => x + 2", nil)
	if second.Version != 2 || second.Description != "adds one" || second.Input == nil || len(second.Examples) != 1 {
		t.Errorf("%+v", second)
	}
	if commented := of("x => x + 2 // two", nil); commented.Version != 3 {
		t.Errorf("a comment is lost: version %d", commented.Version)
	}
	if shown := of(`{"lam":"x","body":{"add":[{"var":"x"},2]}}`, func(d *Definition) { d.Text = false }); string(shown.Shown()) != "x => x + 2 // two" {
		t.Errorf("JSON of the same code takes the place of %q", shown.Shown())
	}
	bare := of("x => x + 2", func(d *Definition) { d.Keep, d.Examples = Keep{}, []Example{} })
	if bare.Version != 4 || bare.Description != "x => x + 2" || bare.Input != nil || len(bare.Examples) != 0 {
		t.Errorf("%+v", bare)
	}
	if other := of("x => x + 3", nil); other.Description != "x => x + 3" {
		t.Errorf("the code of another version is its description: %q", other.Description)
	}
	evolve(t, r, def("b", "x => code_of(\"a\")"))
	of("x => x + 4", nil)
	if again := evolve(t, r, def("b", "x => code_of(\"a\")")); again.Version != 2 || again.Bound["a"].Version != 6 {
		t.Errorf("version %d, bound to %d", again.Version, again.Bound["a"].Version)
	}
}

// TestPublished: what a tool is published as is a version's own: it is in the log,
// in a document, and comes back with a rollback.
func TestPublished(t *testing.T) {
	log := new(memoryLog)
	r := open(t, log, nil)
	evolve := func(name, as string) error {
		_, err := r.Evolve(Definition{Name: name, Code: []byte(`"hi"`), As: as}, Edit{})
		return err
	}
	as := func(r *Registry, name, want string) {
		t.Helper()
		if tool, ok := r.Snapshot().Get(name); !ok || tool.As != want {
			t.Errorf("%s: %+v, expected to be published as %q", name, tool, want)
		}
	}
	for _, want := range []string{AsPrompt, AsTool} {
		must.NoError(t, evolve("hello", want))
		as(r, "hello", want)
	}
	must.Succeed(t)(r.Rollback("hello", 1, Edit{}))
	as(r, "hello", AsPrompt)
	must.NoError(t, evolve("page", AsResource))
	must.Succeed(t)(r.Evolve(Definition{Name: "told", Code: []byte(`"hi"`), MadeUnder: []string{"mail"}}, Edit{}))
	again := open(t, log, nil)
	as(again, "hello", AsPrompt)
	as(again, "page", AsResource)

	text := Encode(r.Snapshot())
	list, err := Decode(bytes.NewReader(text))
	must.NoError(t, err)
	other := New(nil)
	if _, _, _, err := other.Import(list); err != nil {
		t.Fatal(err)
	}
	as(other, "hello", AsPrompt)
	as(other, "page", AsResource)
	if told, ok := other.Snapshot().Get("told"); !ok || !slices.Equal(told.MadeUnder, []string{"mail"}) {
		t.Errorf("what its writer had been shown doesn't come along: %+v", told)
	}
	if got := Encode(other.Snapshot()); !bytes.Contains(got, []byte(`"as": "resource"`)) {
		t.Errorf("%s", got)
	}

	for _, c := range []struct{ name, as string }{{"x", "page"}, {"a name", AsPrompt}, {strings.Repeat("x", 65), AsResource}} {
		if err := evolve(c.name, c.as); err == nil || !strings.HasPrefix(err.Error(), "invalid_request") {
			t.Errorf("%s as %s: %v", c.name, c.as, err)
		}
	}
	hostile := bytes.Replace(text, []byte(`"as": "prompt"`), []byte(`"as": "root"`), 1)
	if _, err := Decode(bytes.NewReader(hostile)); err == nil {
		t.Error("a document may publish tools as anything")
	}
}

// TestMadeUnder: a version carries what its writer had been shown, joined over all that it keeps of the one before, and
// those that are made at once, or carried along, over all of them.
func TestMadeUnder(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"input":{"type":"integer"}}}`)
	example := func(input string) Example { return Example{As: "data", Input: json.RawMessage(input)} }
	for _, c := range []struct {
		what        string
		first, next Definition
		joined      bool
	}{
		{"nothing", Definition{}, Definition{Keep: Keep{Description: true, As: true, Input: true}}, false},
		{"a schema", Definition{Input: schema}, Definition{Keep: Keep{Input: true}}, true},
		{"a schema that is replaced", Definition{Input: schema}, Definition{Input: json.RawMessage(`{"type":"object"}`), Keep: Keep{Input: true}}, false},
		{"that it is a prompt", Definition{As: AsPrompt}, Definition{Keep: Keep{As: true}}, true},
		{"an example", Definition{Examples: []Example{example("1")}}, Definition{}, true},
		{"an example beside one given twice", Definition{Examples: []Example{example("1")}}, Definition{Examples: []Example{example("2"), example("2")}}, true},
		{"an example that is replaced", Definition{Examples: []Example{example("1")}}, Definition{Examples: []Example{example("1"), example("2")}}, false},
		{"examples that are dropped", Definition{Examples: []Example{example("1")}}, Definition{Examples: []Example{}}, false},
	} {
		r := open(t, new(memoryLog), nil)
		c.first.Name, c.first.Text, c.first.Code, c.first.Description, c.first.MadeUnder = "t", true, []byte("x => 1"), "", []string{"mail"}
		c.next.Name, c.next.Text, c.next.Code, c.next.MadeUnder = "t", true, []byte("x => 2"), []string{"web"}
		evolve(t, r, c.first)
		if got := evolve(t, r, c.next).MadeUnder; slices.Contains(got, "mail") != c.joined || !slices.Contains(got, "web") {
			t.Errorf("a version that keeps %s is made under %v", c.what, got)
		}
	}

	r := open(t, new(memoryLog), nil)
	under := func(when string, want ...string) {
		t.Helper()
		for _, name := range []string{"is_even", "is_odd"} {
			if now, _ := r.Snapshot().Get(name); !slices.Equal(now.MadeUnder, want) {
				t.Errorf("%s, %s is made under %v", when, name, now.MadeUnder)
			}
		}
	}
	ds := evenOdd()
	ds[1].MadeUnder = []string{"mail"}
	together(t, r, ds...)
	under("made at once", "mail")
	ds[0].Code, ds[0].MadeUnder = []byte("n => if n == 0 then (true) else @is_odd(n - 1)"), []string{"web"}
	evolve(t, r, ds[0])
	under("carried along", "mail", "web")
	ds[0].Code, ds[0].MadeUnder = evenOdd()[0].Code, nil
	evolve(t, r, ds[0])
	must.Succeed(t)(r.Rollback("is_even", 1, Edit{}))
	under("rolled back", "mail", "web")
}
