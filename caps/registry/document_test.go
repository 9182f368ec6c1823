package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"pgregory.net/rapid"
)

// again imports a document into a registry.
func again(t testing.TB, r *Registry, text []byte) string {
	t.Helper()
	tools, err := Decode(strings.NewReader(string(text)))
	must.NoError(t, err)
	added, replaced, same, err := r.Import(tools)
	must.NoError(t, err)
	return fmt.Sprintf("%d added, %d replaced, %d same", added, replaced, same)
}

// TestDocument: what is exported is what is imported, whatever the names and code.
func TestDocument(t *testing.T) {
	p := policy(t, "toy:**")
	r := open(t, new(memoryLog), p)
	deepCode := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for i, code := range []string{
		square, `"<&>\u2028\n"`, `123456789012345678901234567890`, `[]`, `{"nil":true}`, `[[],{"pair":[1,[2]]}]`,
		`{"record":{"a":1,"b":[1,2,3]}}`, deepCode, `{"lam":"` + strings.Repeat("long", 50) + `","body":{"concat":["{[\"","]}\\"]}}`,
	} {
		evolve(t, r, Definition{Name: fmt.Sprintf("t%d \"<☃>\"", i), Code: []byte(code), Description: strings.Repeat("line\n", i)})
	}
	reads := def("reads", `k => !toy.get(k)`, "toy:a/b")
	reads.Examples = []Example{{
		As: "data", Input: json.RawMessage(`{ "a": "<>" }`), Expect: json.RawMessage(`[1,  2]`),
		Effects: []ExampleEffect{{Op: "toy.get", Args: json.RawMessage(`{"key":"a"}`), Error: "denied", Message: "no"}},
	}}
	evolve(t, r, reads)
	// A chain of old versions that only others know.
	evolve(t, r, def("old", "1"))
	evolve(t, r, def("user", `code_of("old")`))
	evolve(t, r, def("old", `code_of("user")`))
	evolve(t, r, def("user", `(code_of("old"), 1)`))
	evolve(t, r, def("caller", `x => @user(x)`, "call:user"))
	evolve(t, r, def("old", `2`))
	must.Succeed(t)(r.Retire("user", Edit{}))

	text := Encode(r.Snapshot())
	if !json.Valid(text) {
		t.Fatalf("not JSON:\n%s", text)
	}
	for line := range strings.Lines(string(text)) {
		if len(line) > 400 && !strings.Contains(line, "code_text") {
			t.Errorf("a line of %d bytes: %.200s", len(line), line)
		}
	}
	back := open(t, new(memoryLog), p)
	if got := again(t, back, text); got != "12 added, 0 replaced, 0 same" {
		t.Error(got)
	}
	if got, want := back.Snapshot().Len(), r.Snapshot().Len(); got != want {
		t.Errorf("%d tools became %d", want, got)
	}
	for _, tool := range r.Snapshot().All() {
		got, ok := back.Snapshot().Get(tool.Name)
		if !ok || got.Hash != tool.Hash || got.Description != tool.Description || !sameBound(got.Bound, tool.Bound) ||
			!sameExamples(got.Examples, tool.Examples) || got.State != StateReady || fmt.Sprint(got.Capabilities) != fmt.Sprint(tool.Capabilities) {
			t.Errorf("%q: %+v\nbecame %+v", tool.Name, tool, got)
		}
	}
	if got := again(t, back, text); got != "0 added, 0 replaced, 12 same" {
		t.Errorf("again: %s", got)
	}
	if got := again(t, r, text); got != "0 added, 0 replaced, 12 same" {
		t.Errorf("where it came from: %s", got)
	}
	// A tool that is only in it for its old versions stays what it is.
	other := open(t, new(memoryLog), p)
	evolve(t, other, def("user", "7"))
	again(t, other, text)
	if got, _ := other.Snapshot().Get("user"); string(got.Source) != "7" {
		t.Errorf("user is %s", got.Source)
	}
	// Without the grant all are there, and those that declare something blocked.
	poor := open(t, new(memoryLog), policy(t))
	again(t, poor, text)
	if got, _ := poor.Snapshot().Get("reads"); got.State != StateBlocked || got.Held != nil || got.Declared[0] != "toy:a/b" {
		t.Errorf("%+v", got)
	}
}

// TestImport: only what differs gets a new version.
func TestImport(t *testing.T) {
	doc := func(tools ...string) []byte {
		return fmt.Appendf(nil, `{"format":"mcp-pif tools 1","tools":[%s]}`, strings.Join(tools, ","))
	}
	r := New(nil)
	for _, c := range []struct {
		doc  []byte
		want string
	}{
		{doc(`{"name":"a","code":1}`, `{"name":"b","code":2}`), "2 added, 0 replaced, 0 same"},
		{doc(`{"name":"a","code":1}`, `{"name":"b","code":3}`), "0 added, 1 replaced, 1 same"},
		{doc(`{"name":"b","code":3,"description":"three"}`), "0 added, 1 replaced, 0 same"},
		{doc(`{"name":"b","code":3,"description":"three","examples":[{"input":1,"expect":3}]}`), "0 added, 1 replaced, 0 same"},
		{doc(`{"name":"b","code":3,"description":"three","examples":[{"expect": 3,"input": 1}]}`), "0 added, 0 replaced, 1 same"},
		// Written by hand, callers first: a call is bound to the tool of the document.
		{doc(`{"name":"a1","code":{"code_of":"z1"}}`, `{"name":"z1","code":{"code_of":"b"}}`), "2 added, 0 replaced, 0 same"},
		{doc(`{"name":"a1","code":{"code_of":"z1"}}`, `{"name":"z1","code":4}`), "0 added, 2 replaced, 0 same"},
		{doc(`{"name":"x","code":{"code_of":"y"}}`, `{"name":"y","code":{"code_of":"x"}}`), "2 added, 0 replaced, 0 same"},
		// Code edited by hand: who was bound to it is bound to what it is now.
		{doc(`{"name":"e","hash":"old","code":5}`, `{"name":"d","code":{"code_of":"e"},"bound":{"e":"old"}}`), "2 added, 0 replaced, 0 same"},
	} {
		if got := again(t, r, c.doc); got != c.want {
			t.Errorf("%s: %s, expected %s", c.doc, got, c.want)
		}
	}
	for user, lib := range map[string]string{"a1": "z1", "d": "e", "y": ""} {
		got, _ := r.Snapshot().Get(user)
		now, _ := r.Snapshot().Get(lib)
		if got.Bound[lib] != now {
			t.Errorf("%s is bound to %+v", user, got.Bound)
		}
	}

	// Nothing is changed unless all of it can be.
	before := r.Snapshot()
	for text, want := range map[string]string{
		string(doc(`{"name":"a","code":9}`, `{"name":"c","code":{"code_of":"b"},"bound":{"b":"0000"}}`)):                                                   "neither in the document",
		string(doc(`{"name":"a","code":9}`, `{"name":"c","code":{"lam":"x","body":{"call":{"tool":"nobody","input":1}}},"capabilities":["call:nobody"]}`)): "no tool",
		string(doc(`{"name":"p","hash":"1","code":{"code_of":"q"},"bound":{"q":"2"}}`,
			`{"name":"q","hash":"2","code":{"code_of":"p"},"bound":{"p":"1"}}`)): "in turn",
	} {
		tools, err := Decode(strings.NewReader(text))
		must.NoError(t, err)
		if _, _, _, err := r.Import(tools); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", text, err, want)
		}
	}
	if r.Snapshot() != before {
		t.Error("something was changed")
	}
}

// TestImportFull: what has no room isn't begun.
func TestImportFull(t *testing.T) {
	r := open(t, fullLog(t, MaxTools-1, nil), nil)
	tools, err := Decode(strings.NewReader(`{"format":"mcp-pif tools 1","tools":[{"name":"a","code":1},{"name":"t1","code":2},{"name":"z","code":1}]}`))
	must.NoError(t, err)
	before := r.Snapshot()
	if _, _, _, err := r.Import(tools); is(errors.Unwrap(err), fault.Refused, "10000 tools") != nil {
		t.Error(err)
	}
	if r.Snapshot() != before {
		t.Error("something was changed")
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                                   "not a file of tools",
		`{}`:                                 "format",
		`{"format":"mcp-pif tools 2"}`:       "format",
		`{"format":"mcp-pif tools 1"} {}`:    "after it",
		`{"format":"mcp-pif tools 1","x":1}`: "unknown field",
		`{"format":"mcp-pif tools 1","tools":[{"name":"a","code":1,"version":1.5}]}`:                               "tools: tools.version can't be number 1.5",
		`{"format":"mcp-pif tools 1","tools":[{"name":7,"code":1}]}`:                                               "tools: tools.name can't be number",
		`{"format":"mcp-pif tools 1","tools":[{"name":"a","code":1},{"name":"a","code":2}]}`:                       "duplicate",
		`{"format":"mcp-pif tools 1","bound_versions":[{"name":"a","code":1}]}`:                                    "without a version",
		`{"format":"mcp-pif tools 1","tools":[{"name":"a","code":{"add":[1]}},{"name":"","code":2}]}`:              "parse_error",
		`{"format":"mcp-pif tools 1","tools":[{"name":"a"}]}`:                                                      "parse_error",
		`{"format":"mcp-pif tools 1","tools":[{"name":"run","code":1}]}`:                                           "reserved",
		`{"format":"mcp-pif tools 1","tools":[{"name":"a","code":1,"examples":[{"input":1,"expct":1}]}]}`:          "unknown field",
		`{"format":"mcp-pif tools 1","tools":[{"name":"a","code":1,"Code":2}]}`:                                    "unknown field",
		`{"format":"mcp-pif tools 1","tools":[],"TOOLS":[{"name":"a","code":1}]}`:                                  "unknown field",
		`{"format":"mcp-pif tools 1","tools":[{"name":"a","code":1,"capabilitieſ":["fs:."]}]}`:                     "unknown field",
		`{"format":"mcp-pif tools 1","tools":[{"name":"a","code":1,"code_text":"2"}]}`:                             "both code and code_text",
		`{"format":"mcp-pif tools 1","tools":[{"name":"a","code_text":"` + strings.Repeat(" ", MaxCode+1) + `"}]}`: "bytes",
	} {
		if _, err := Decode(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, expected %q", text, err, want)
		}
	}
}

// TestDiff: a difference shows the code in the text form, and what else differs.
func TestDiff(t *testing.T) {
	r := New(nil)
	a := evolve(t, r, Definition{Name: "square", Code: []byte(square), Description: "n squared"})
	if got := Diff(a, a); got != nil {
		t.Errorf("a version and itself differ:\n%s", got)
	}
	evolve(t, r, def("lib", "1"))
	d := def("square", `x => let y = x * x in [y, code_of("lib"), "\u202e"]`)
	d.Description = "n squared,\x1b[2J\nand more\u202e"
	d.Examples = []Example{{Input: json.RawMessage("2"), Expect: json.RawMessage("4")}}
	b := evolve(t, r, d)
	got := string(Diff(a, b))
	lib, _ := r.Snapshot().Get("lib")
	want := `diff square@1 square@2
--- square@1
+++ square@2
@@ -1,3 +1,6 @@
-// n squared
+// n squared,\x1b[2J
+// and more\u202e
+// lib is lib@1 ` + lib.Hash[:12] + `
+// example {"input":2,"expect":4}
 
-{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}
+x => let y = x * x in [y, code_of("lib"), "\u202e"]
`
	if strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("%s\nexpected\n%s", got, want)
	}
	// Long code is laid out, so that a small change is a small difference.
	long := `[` + strings.Repeat(`"some words in a row",`, 3000)
	a = evolve(t, r, Definition{Name: "long", Code: []byte(long + `1]`), Description: "d"})
	b = evolve(t, r, Definition{Name: "long", Code: []byte(long + `2]`), Description: "d"})
	if got := Diff(a, b); len(got) > 1000 || !strings.Contains(string(got), "\n-  1\n+  2\n") {
		t.Errorf("%d bytes: %.2000s", len(got), got)
	}
}

// TestLayout: laid-out JSON means the same, and its size is in proportion.
func TestLayout(t *testing.T) {
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
			case kind == 0:
				return rapid.Int().Draw(t, "int")
			case kind == 1:
				return rapid.String().Draw(t, "string") + rapid.SampledFrom([]string{"", `"`, `\`, `[`, `}`}).Draw(t, "odd")
			case kind == 2 || depth == 0:
				return nil
			case kind == 3:
				return rapid.MapOfN(rapid.String(), value(depth-1), 0, 5).Draw(t, "object")
			}
			return rapid.SliceOfN(value(depth-1), 0, 8).Draw(t, "list")
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		code, err := json.Marshal(value(5).Draw(t, "value"))
		must.NoError(t, err)
		out := layout(nil, code, rapid.IntRange(0, 80).Draw(t, "indent"))
		var back bytes.Buffer
		if err := json.Compact(&back, out); err != nil || !bytes.Equal(back.Bytes(), code) {
			t.Fatalf("%s\nbecame\n%s\n%v", code, out, err)
		}
	})
	deep := strings.Repeat(`{"a":[`, 2000) + strings.Repeat(`]}`, 2000)
	if out := layout(nil, []byte(deep), 0); len(out) > 4*len(deep) {
		t.Errorf("%d bytes became %d", len(deep), len(out))
	}
}

// TestDecodeTwice: a key that an object has twice is refused and named, wherever it
// is: the reader would take the last, and whoever looks at the document the first.
func TestDecodeTwice(t *testing.T) {
	const id = `{"lam":"x","body":{"var":"x"}}`
	for tools, want := range map[string]string{
		`{"name":"a","code":1,"code":2}`:                                                    `duplicate key "code" in /tools/0`,
		`{"name":"b","code":1},{"name":"a","code":1,"n\u0061me":"b"}`:                       `duplicate key "name" in /tools/1`,
		`{"name":"a","code":{"add":[1,2],"add":[1,3]}}`:                                     `duplicate key "add" in /tools/0/code`,
		`{"name":"a","code":1,"bound":{"x":"1","x":"2"}}`:                                   `duplicate key "x" in /tools/0/bound`,
		`{"name":"a","code":1,"input_schema":{"type":"object","type":"object"}}`:            `duplicate key "type" in /tools/0/input_schema`,
		`{"name":"a","code":` + id + `,"examples":[{"input":1,"expect":1,"expect":2}]}`:     `duplicate key "expect" in /tools/0/examples/0`,
		`{"name":"a","code":` + id + `,"examples":[{"input":{"k":[{"a":1,"a":2}]}}]}`:       `duplicate key "a" in /tools/0/examples/0/input/k/0`,
		`{"name":"a","code":` + id + `,"examples":[{"input":1,"EXPECT":2,"expect":1}]}`:     `unknown field "EXPECT"`,
		`{"name":"a","code":1,"examples":[{"effects":[{"op":"a.b","value":1,"Value":2}]}]}`: `unknown field "Value"`,
		"{\"name\":\"a\",\"description\":\"\xff\",\"code\":1}":                              "UTF-8",
	} {
		if _, err := Decode(strings.NewReader(`{"format":"mcp-pif tools 1","tools":[` + tools + `]}`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", tools, err, want)
		}
	}
	if _, err := Decode(strings.NewReader(`{"format":"mcp-pif tools 1","tools":[],"tools":[]}`)); err == nil || !strings.Contains(err.Error(), `duplicate key "tools" in the document itself`) {
		t.Error(err)
	}
	for _, tools := range []string{
		`{"name":"a","code":["name","code","name"]}`, `{"name":"a","code":{"add":[{"add":[1,2]},{"add":[1,2]}]}}`,
		`{"name":"name","description":"name","code":"name"},{"name":"code","code":[{"nil":true},{"nil":true},{"nil":true}]}`,
	} {
		if _, err := Decode(strings.NewReader(`{"format":"mcp-pif tools 1","tools":[` + tools + `]}`)); err != nil {
			t.Errorf("%s: %v", tools, err)
		}
	}
}

// TestTwiceBounded: the place of a key is worked out where one is a duplicate,
// and no more of it than can be read: deep objects with long keys have long places.
func TestTwiceBounded(t *testing.T) {
	const deep = 4000
	object := strings.Repeat(`{"`+strings.Repeat("k", 1000)+`":`, deep)
	whole := object + "1" + strings.Repeat("}", deep)
	spent := testing.AllocsPerRun(1, func() {
		must.NoError(t, statefile.UniqueKeys([]byte(whole), false, 0))
	})
	if spent > 20*deep {
		t.Errorf("%.0f allocations for %d levels", spent, deep)
	}
	again := object + `{"a":1,"a":2}` + strings.Repeat("}", deep)
	if err := statefile.UniqueKeys([]byte(again), false, 0); err == nil || len(err.Error()) > 400 {
		t.Errorf("%.500s", err)
	}
}

// TestWritten: a source is kept byte for byte, through the journal's form, a document
// and a rollback, and it is what is shown; the hash is that of the code alone.
func TestWritten(t *testing.T) {
	const source = "// the sign of n,\r\n// in words\nn =>\n  match n { 0 => \"zero\"; _ => if n < 0 then \"less\" else \"more\" }  // done \n"
	const json = `{ "lam": ["a","b"], "body": {"let": [["s", {"add":[{"var":"a"},{"var":"b"}]}]], "in": {"var":"s"}} }`
	r := open(t, new(memoryLog), nil)
	text := evolve(t, r, def("sign", source))
	d := def("total", json)
	d.Text = false
	total := evolve(t, r, d)
	evolve(t, r, def("sign", "n => n"))
	back, err := r.Rollback("sign", 1, Edit{})
	must.NoError(t, err)
	doc := Encode(r.Snapshot())
	list, err := Decode(bytes.NewReader(doc))
	must.NoError(t, err)
	other := open(t, new(memoryLog), nil)
	if added, _, _, err := other.Import(list); err != nil || added != 2 {
		t.Fatalf("%d were added: %v", added, err)
	}
	if _, _, same, err := other.Import(list); err != nil || same != 2 {
		t.Errorf("%d are the same: %v", same, err)
	}
	signIn, _ := other.Snapshot().Get("sign")
	totalIn, _ := other.Snapshot().Get("total")
	for _, c := range []struct {
		tool, was *Tool
		source    string
	}{{text, text, source}, {back, text, source}, {signIn, text, source}, {total, total, json}, {totalIn, total, json}} {
		if string(c.tool.Shown()) != c.source || string(c.tool.ToApprove()) != c.source || c.tool.Hash != c.was.Hash || c.tool.Text != c.was.Text {
			t.Errorf("%s@%d is shown as %q, with the hash %s", c.tool.Name, c.tool.Version, c.tool.Shown(), c.tool.Hash)
		}
	}
	if again := Encode(other.Snapshot()); len(again) == 0 || !strings.Contains(string(again), `"form": "text"`) {
		t.Errorf("%s", again)
	}
}

// TestWrittenOtherwise: the source in a document is for people, and its code is what
// runs. A source that says something else, or nothing, is not shown.
func TestWrittenOtherwise(t *testing.T) {
	r := open(t, new(memoryLog), nil)
	made := evolve(t, r, def("double", "n => n * 2 // twice"))
	doc := string(Encode(r.Snapshot()))
	for _, source := range []string{`n => n * 3 // twice`, `n => (`, `{\"lam\":\"n\",\"body\":1}`, ``} {
		list, err := Decode(strings.NewReader(strings.Replace(doc, "n => n * 2 // twice\",\n      \"code\"", source+"\",\n      \"code\"", 1)))
		must.NoError(t, err)
		other := open(t, new(memoryLog), nil)
		if _, _, _, err := other.Import(list); err != nil {
			t.Fatal(err)
		}
		in, _ := other.Snapshot().Get("double")
		if in.Hash != made.Hash || strings.Contains(string(in.Shown()), "twice") || in.Text || !strings.Contains(string(in.Shown()), `"mul"`) {
			t.Errorf("with the source %q it is shown as %q", source, in.Shown())
		}
	}
}

// TestHiddenCode: who approves a tool sees its code, however long the comment is that
// stands before it.
func TestHiddenCode(t *testing.T) {
	r := open(t, new(memoryLog), nil)
	made := evolve(t, r, def("quiet", "// nothing to see\n"+strings.Repeat("\n", 5000)+"n => n * 2"))
	if got := string(made.ToApprove()); got != "n => n * 2" {
		t.Errorf("%.100q", got)
	}
}

const positive = `{"type":"object","properties":{"input":{"type":"integer","minimum":1}}}`

// TestDeclaredInput: a declared schema is a version's own: it is in the log, in a
// document and in a difference, and comes back with a rollback.
func TestDeclaredInput(t *testing.T) {
	log := new(memoryLog)
	r := open(t, log, nil)
	evolve := func(code, input string) error {
		_, err := r.Evolve(Definition{Name: "half", Code: []byte(code), Text: true, Input: json.RawMessage(input)}, Edit{})
		return err
	}
	is := func(r *Registry, want bool) {
		t.Helper()
		tool, ok := r.Snapshot().Get("half")
		if !ok || (tool.Input != nil) != want || strings.Contains(string(tool.InputSchema()), `"minimum":1`) != want {
			t.Errorf("it takes %s, declared is %s", tool.InputSchema(), tool.Input)
		}
		d, f := tool.Narrowed()
		if f != nil || (d != nil) != want || d != nil && (d.Check([]json.RawMessage{json.RawMessage("0")}, true) == nil || d.Check([]json.RawMessage{json.RawMessage("1")}, true) != nil) {
			t.Errorf("%v %v", d, f)
		}
	}
	must.NoError(t, evolve(`n => shift(n, -1)`, positive))
	is(r, true)
	is(open(t, log, nil), true)
	must.NoError(t, evolve(`n => shift(n, -1)`, ""))
	is(r, false)
	is(open(t, log, nil), false)
	v1, _ := r.Version(Ref{"half", 1})
	v2, _ := r.Version(Ref{"half", 2})
	if got := Diff(v1, v2); !bytes.Contains(got, []byte("-// input schema "+positive)) {
		t.Errorf("%s", got)
	}
	must.Succeed(t)(r.Rollback("half", 1, Edit{}))
	is(r, true)
	is(open(t, log, nil), true)

	text := Encode(r.Snapshot())
	list, err := Decode(bytes.NewReader(text))
	must.NoError(t, err)
	other := New(nil)
	for want := range 2 {
		if added, _, same, err := other.Import(list); err != nil || added != 1-want || same != want {
			t.Fatal(added, same, err)
		}
		is(other, true)
	}
	if got := Encode(other.Snapshot()); !bytes.Contains(got, []byte(`"input_schema": {`)) {
		t.Errorf("%s", got)
	}
	// Another schema is a change.
	list, err = Decode(bytes.NewReader(bytes.Replace(text, []byte(`"minimum":1`), []byte(`"minimum":2`), 1)))
	must.NoError(t, err)
	if _, replaced, _, err := other.Import(list); err != nil || replaced != 1 {
		t.Fatal(replaced, err)
	}
	for _, c := range []struct{ old, new, refused string }{
		{`"type":"integer"`, `"type":"string"`, "can't take"},
		{`"minimum":1`, `"$ref":"http://127.0.0.1:1/"`, "$ref"},
	} {
		list, err := Decode(bytes.NewReader(bytes.Replace(text, []byte(c.old), []byte(c.new), 1)))
		if err == nil {
			_, _, _, err = New(nil).Import(list)
		}
		if err == nil || !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v", c.new, err)
		}
	}
}

// TestDeclaredInputRefused: what isn't narrower isn't kept, and nor is what is too
// large, as what it is published as, or no object.
func TestDeclaredInputRefused(t *testing.T) {
	r := New(nil)
	for _, c := range []struct{ code, as, input string }{
		{`n => shift(n, -1)`, "", `{"type":"object","properties":{"input":{"type":"number"}}}`},
		{`n => shift(n, -1)`, "", `{"type":"object","properties":{"n":{"type":"integer"}}}`},
		{`n => shift(n, -1)`, "", `[]`},
		{`n => shift(n, -1)`, "", `{`},
		{`n => shift(n, -1)`, "", `{"type":"object","description":"` + strings.Repeat("x", check.MaxDeclared) + `"}`},
		{`"x"`, AsResource, `{"type":"object","properties":{}}`},
	} {
		_, err := r.Evolve(Definition{Name: "t", Code: []byte(c.code), Text: true, As: c.as, Input: json.RawMessage(c.input)}, Edit{})
		if kind(err) != fault.InvalidRequest || r.Snapshot().Len() > 0 {
			t.Errorf("%s %.80s: %v", c.code, c.input, err)
		}
	}
	// What was changed on record is never taken for what was declared.
	log := new(memoryLog)
	kept := open(t, log, nil)
	must.Succeed(t)(kept.Evolve(Definition{Name: "half", Code: []byte(`n => shift(n, -1)`), Text: true, Input: json.RawMessage(positive)}, Edit{}))
	log.changes[0].Input = json.RawMessage(`{"type":"object","properties":{"input":{"$ref":"x"}}}`)
	tool, ok := open(t, log, nil).Snapshot().Get("half")
	if !ok {
		t.Fatal("it is gone")
	}
	if d, f := tool.Narrowed(); d != nil || f == nil || f.Kind != fault.Refused {
		t.Errorf("%v %v", d, f)
	}
}
