package check_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// What an operation answers is told in a word, and as nothing else where other
// values come with it.
func TestDataInAWord(t *testing.T) {
	for src, want := range map[string]string{
		"x => !fs.read(x)":                               "(any) ->{fs.read} data",
		"x => {a: !fs.read(x), b: 1}":                    "(any) ->{fs.read} {a: data, b: int}",
		"x => [!fs.read(x), x]":                          "(a) ->{fs.read} list[data | a]",
		"x => if x > 1 then !fs.read(x) else 1":          "(num) ->{fs.read} data",
		"x => if x > 1 then !fs.read(x) else [1]":        "(num) ->{fs.read} num | bool | string | unit | list[int | ?] | pair[?, ?] | {*: ?} | code",
		"x => if x > 1 then !fs.read(x) else [y => y]":   "(num) ->{fs.read} num | bool | string | unit | list[((a) -> a) | ?] | pair[?, ?] | {*: ?} | code",
		"x => if x > 1 then !fs.read(x) else (y => y)":   "(num) ->{fs.read} num | bool | string | unit | list[?] | pair[?, ?] | {*: ?} | ((a) -> a) | code",
		"x => let r = !fs.read(x) in (r, length(r) + 1)": "(any) ->{fs.read} pair[data, int]",
	} {
		p, f := text.Parse([]byte(src), text.Options{Tool: "tool"})
		if f != nil {
			t.Fatal(f)
		}
		r := check.Infer(p.Term, p.Source, check.Env{Tool: "tool", Result: func(string) (*check.Type, bool) { return check.Data, true }}, check.Budget{})
		if got := r.Type.String(); got != want {
			t.Errorf("%s\nis  %s\nnot %s", src, got, want)
		}
	}
}
