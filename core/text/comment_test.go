package text_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestCommentsAsDivisions: // that reads as Python's division is refused, as the first of what is
// wrong; a comment of words stays, and under Semantics 13 all do but a number.
func TestCommentsAsDivisions(t *testing.T) {
	for _, c := range []struct{ src, hint string }{
		{`7 // 2`, "Write 7 / 2, which"},
		{`xs => sum(xs) // len(xs)`, "Write floor(sum(xs) / len(xs));"},
		{`n => n // 10 + n % 10`, "Write n / 10, which"},
		{`(total, n) => total // n + 1`, "Write total / n, which"},
		{"n => { let half = n // 2;\nhalf }", "Write n / 2, which"},
		{"n => { let a = n // 10 * 2;\n a }", "Write n / 10, which"},
		{"n => { const half = n // 2 + 1\nreturn half }", "Write n / 2, which"},
		{"n => { const half = n // 2; return half }", "Write n / 2, which"},
		{"n => { let k = 2;\nlet half = n // k;\nhalf + 1 }", "Write n / k, which"},
		{"let k = 2, n = 7 in n // k", "Write n / k, which"},
		{`n => (n // 10) + 1`, "Write n / 10, which"},
		{`n => [n // 10, n % 10]`, "Write n / 10, which"},
		{`n => f"{n // 60}:{n % 60}"`, "Write n / 60, which"},
		{`xs => [x // 2 for x in xs]`, "Write x / 2, which"},
		{`xs => xs[len(xs) // 2]`, "Write floor(len(xs) / 2);"},
		{`xs => xs.map(x => x.total // x.n)`, "Write floor(x.total / x.n);"},
		{`n => if n // 10 > 3 then 1 else 2`, "Write n / 10, which"},
		{"n => if n // 10 > 3 then\n \"a\"\nelse\n \"b\"", "Write n / 10, which"},
		{"n => { let (a, b) = (n // 10, n % 10);\n a + b }", "Write n / 10, which"},
		{"(a, b) =>\n  (a + 1) // b\n", "Write floor((a + 1) / b);"},
		{`xs => sum(xs) // sum(xs)`, "Write floor(sum(xs) / sum(xs));"},
		{`(a, b, c) => a // b // c`, "Write a / b, which"},
		{`n => n // max(n, 1) // 2`, "Write floor(n / max(n, 1));"},
		{"n => n // (n +\n 1)", "Write n / b, which"},
	} {
		_, f := text.Parse([]byte(c.src), text.Options{})
		if f == nil || !strings.HasPrefix(f.Hint, c.hint) || !strings.Contains(f.Message, "// begins a comment") || len(f.More) > 0 {
			t.Errorf("%s\ngives %v", c.src, f)
		}
	}
	for _, src := range []string{
		"r => r.price // per day", "r => r.price * 2 // total", "xs => { let total = sum(xs) // total\n total }", "n => n // => 7", "n => n // a number",
		"n => n + 1 // n is what is counted", "n => n // 10 items", "n => n // 2024-11-27", "n => n // 100% of n", "n => n // (see help)", "n => n // in cents", "n => n // \"a\"",
		"n => n // http://a.example/b", "n => n // 1, 2, 3", "n => n // -1", "r => {total: r.a // total\n}", "n => n // 10:30", "n => n // 3 of n", "n => n // sum", "n => n //", "n => n // TODO(x): y",
		"n => [n, // 1\n n // the last\n]", "n => f\"{n}//{n}\"", "s => re_match(s, \"a\") // so or not", "n => n // half; see below", "n => n // n, the count",
		"let day = 86400 // 24 * 60 * 60\n day", "let third = 0.3333 // 1/3\n third", "n => { let m = n // 1-12\n m }", "n => n // 0 or 1", "n => n + 1 // n?", "n => n // None",
	} {
		if _, f := text.Parse([]byte(src), text.Options{}); f != nil {
			t.Errorf("%s\ngives %v", src, f)
		}
	}
	_, f := text.Parse([]byte("n => n // 10 + x y"), text.Options{})
	if f != nil {
		t.Errorf("words give %v", f)
	}
	_, f = text.Parse([]byte("def f(n):\n  k = 2\n  while n > 2:\n    n = n // k\n  return n"), text.Options{})
	if f == nil || !strings.Contains(f.Hint, "n / k") || len(f.More) == 0 || !strings.Contains(f.More[0].Hint, "f = ") {
		t.Errorf("def and // give %v", f)
	}
	for _, src := range []string{`xs => sum(xs) // len(xs)`, `n => n // 10 + n % 10`} {
		if _, f := text.Parse([]byte(src), text.Options{Semantics: 13}); f != nil {
			t.Errorf("under Semantics 13 %s gives %v", src, f)
		}
	}
}
