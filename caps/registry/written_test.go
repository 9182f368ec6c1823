package registry

import (
	"bytes"
	"strings"
	"testing"
)

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
	if err != nil {
		t.Fatal(err)
	}
	doc := Encode(r.Snapshot())
	list, err := Decode(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
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
