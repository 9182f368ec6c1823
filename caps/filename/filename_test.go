package filename_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/filename"
)

// TestAlike: letters, composition and what isn't seen make no other name; anything else does.
func TestAlike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"private", "PRIVATE", true},
		{"café", "CAFE\u0301", true},
		{"straße", "STRASSE", true},
		{".github", ".gi\u00adthub\ufe0f", true},
		{"file", "\ufb01le", true},
		{"cafe", "café", false},
		{"private", "private2", false},
	} {
		if filename.Alike(c.a, c.b) != c.want || filename.Alike(c.b, c.a) != c.want {
			t.Errorf("%+q and %+q are alike: want %v", c.a, c.b, c.want)
		}
	}
}
