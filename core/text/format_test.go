package text_test

import (
	"bytes"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestFormat lays sources out: comments and pipelines stay, and what is laid out
// already stays as it is.
func TestFormat(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, src, want string }{
		{"one line", "n=>n*  n", "n => n * n\n"},
		{"as printed", "n=>if n<=1 then 1\n else n*self(n-1)", "n => if n <= 1 then 1 else n * self(n - 1)\n"},
		{"pipeline", "xs=>xs|>filter(x=>x>0)|>sum", "xs => xs |> filter(x => x > 0) |> sum\n"},
		{"comments", "// doubles\n\n\n\nn=>n*2 // twice\n", "// doubles\n\nn => n * 2 // twice\n"},
		{"comment inside", "n => (\n// why\nn\n+ 1)", "n => (\n  // why\n  n\n    + 1)\n"},
		{"wide pipeline", "orders => orders |> filter(o => o.paid == true) |> map(o => o.price * o.count) |> sum // all of it",
			"orders => orders\n  |> filter(o => o.paid == true)\n  |> map(o => o.price * o.count)\n  |> sum // all of it\n"},
		{"template", "n => $\"a  {n+1} b\" // x", "n => $\"a  {n + 1} b\" // x\n"},
		{"minus", "n => [-1,n-1,n - -1,-n] |> sum", "n => [-1, n - 1, n - -1, -n] |> sum\n"},
		{"slash in string", "n => \"http://x\"  ++ n |> trim", "n => \"http://x\" ++ n |> trim\n"},
		{"block", "n => {\nlet a = n; // one\n  let b = a\n b+a }", "n => {\n  let a = n; // one\n  let b = a\n  b + a }\n"},
	} {
		got, f := text.Format([]byte(test.src), text.Options{})
		if f != nil || string(got) != test.want {
			t.Errorf("%s: %v\n%s\nnot\n%s", test.name, f, got, test.want)
			continue
		}
		if again, f := text.Format(got, text.Options{}); f != nil || !bytes.Equal(again, got) {
			t.Errorf("%s: laid out again it is %v\n%s", test.name, f, again)
		}
		before, _ := text.Parse([]byte(test.src), text.Options{})
		after, f := text.Parse(got, text.Options{})
		if f != nil || !bytes.Equal(text.Canonical(before.Term), text.Canonical(after.Term)) {
			t.Errorf("%s: it is another term: %v", test.name, f)
		}
	}
	if _, f := text.Format([]byte("n => n +"), text.Options{}); f == nil {
		t.Error("what can't be read is laid out")
	}
}
