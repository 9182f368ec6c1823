package text_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/text"
)

// The predecessor's names of effects are calls of them, unless a variable has the
// name, which is printed so that it stays one.
func TestAliases(t *testing.T) {
	for src, want := range map[string]string{
		`readFile("a.txt")`:            `{"fs.read":"a.txt"}`,
		`u => fetch(u)`:                `{"body":{"fetch.request":{"var":"u"}},"lam":"u"}`,
		`writeFile({path: "a"})`:       `{"fs.write":{"record":{"path":"a"}}}`,
		`fetch => fetch(1)`:            `{"body":{"app":{"arg":1,"func":{"var":"fetch"}}},"lam":"fetch"}`,
		"`fetch`(1)":                   `{"app":{"arg":1,"func":{"var":"fetch"}}}`,
		`x => [x, fetch]`:              `{"body":[{"var":"x"},{"var":"fetch"}],"lam":"x"}`,
		`"a" |> readFile`:              `{"app":{"arg":"a","func":{"var":"readFile"}}}`,
		`let readFile = 1 in readFile`: `{"app":{"arg":1,"func":{"body":{"var":"readFile"},"lam":"readFile"}}}`,
	} {
		parsed, f := text.Parse([]byte(src), text.Options{})
		if f != nil {
			t.Errorf("%s: %v", src, f)
			continue
		}
		got := string(text.Canonical(parsed.Term))
		if got != want {
			t.Errorf("%s is %s, not %s", src, got, want)
		}
		again, f := text.Parse(text.Print(parsed.Term), text.Options{})
		if f != nil || string(text.Canonical(again.Term)) != got {
			t.Errorf("%s is printed as %s, which is another term (%v)", src, text.Print(parsed.Term), f)
		}
	}
}
