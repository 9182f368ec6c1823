package caps_test

import (
	"strings"
	"testing"
)

// TestShownDenies: what is denied is told by the names that tools see.
func TestShownDenies(t *testing.T) {
	w := newWorld(t, "a/in/", "b/", "c/")
	w.grant("fs:docs="+w.path("a"), "fs:./b", "kv:notes/**")
	w.deny("fs:"+w.path("a/in"), "fs.write:./b", "fs:"+w.path("c/secret"), "fs:"+w.path(""), "kv:notes/x", "call:f")
	got := strings.Join(w.policy.ShownDenies(), " ")
	if want := "call:f fs.write:./b fs:./b fs:docs fs:docs/in fs:secret kv:notes/x"; got != want {
		t.Errorf("it tells %s, not %s", got, want)
	}
}
