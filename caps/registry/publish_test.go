package registry

import (
	"bytes"
	"strings"
	"testing"
)

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
		if err := evolve("hello", want); err != nil {
			t.Fatal(err)
		}
		as(r, "hello", want)
	}
	if _, err := r.Rollback("hello", 1, Edit{}); err != nil {
		t.Fatal(err)
	}
	as(r, "hello", AsPrompt)
	if err := evolve("page", AsResource); err != nil {
		t.Fatal(err)
	}
	again := open(t, log, nil)
	as(again, "hello", AsPrompt)
	as(again, "page", AsResource)

	text := Encode(r.Snapshot())
	list, err := Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	other := New(nil)
	if _, _, _, err := other.Import(list); err != nil {
		t.Fatal(err)
	}
	as(other, "hello", AsPrompt)
	as(other, "page", AsResource)
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
