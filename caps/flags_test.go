package caps_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
)

// TestAnnotations: the worst that can be reached.
func TestAnnotations(t *testing.T) {
	w := newWorld(t, "sandbox/")
	w.grant("fs:./sandbox", "fetch:https://h")
	reading := caps.Flags{ReadOnly: true, Idempotent: true}
	for _, c := range []struct {
		declared []string
		want     caps.Flags
	}{
		{nil, reading},
		{[]string{"call:x"}, reading},
		{[]string{"fs.read,list:./sandbox"}, reading},
		{[]string{"fs.read,mkdir:./sandbox"}, caps.Flags{}},
		{[]string{"fs.write:./sandbox"}, caps.Flags{Destructive: true}},
		{[]string{"fetch.get:https://h"}, caps.Flags{ReadOnly: true, Idempotent: true, OpenWorld: true}},
		{[]string{"fetch.get:https://h", "fs:./sandbox"}, caps.Flags{Destructive: true, OpenWorld: true}},
	} {
		if got := caps.Annotations(w.hold(c.declared...)); got != c.want {
			t.Errorf("%q: got %+v, want %+v", c.declared, got, c.want)
		}
	}
}
