package text

import (
	"strings"
	"testing"
)

// TestParts: the parts are the source, and each has its class, also where the source is none.
func TestParts(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`let x = 1 in x + 2.5 // done`:      `keyword:let operator:= number:1 keyword:in operator:+ number:2.5 comment:// done`,
		"p => @words(!fs.read(p)) ++ \"a\"": `operator:=> tool:@words effect:!fs.read operator:++ string:"a"`,
		`$"n is {n} here"`:                  `string:$"n is  string: here"`,
		"// a\n// b\n1 # 2":                 "comment:// a comment:// b number:1 bad:# number:2",
		`"open`:                             `bad:"open`,
		"":                                  "",
	} {
		var got []string
		whole := ""
		for _, p := range Parts(src) {
			whole += p.Text
			if p.Class != ClassNone {
				got = append(got, string(p.Class)+":"+p.Text)
			}
		}
		if whole != src {
			t.Errorf("%q comes back as %q", src, whole)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q", src, got)
		}
	}
}
