package examples_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write tasks/README.md")

// operators are the tokens of more than one character that are neither names,
// numbers nor strings, of each language.
var operators = map[string][]string{
	".pif":  {"...", "=>", "|>", "++", "==", "!=", "<=", ">=", "'{", "::"},
	".star": {"//=", "**", "==", "!=", "<=", ">=", "+=", "-=", "*=", "%=", "|=", "//"},
}

var comments = map[string]string{".pif": "//", ".star": "#"}

// tokens counts a program's tokens by one rule for both languages: a name or
// keyword, a number, a string and each operator or punctuation mark count one;
// white space, line ends, indentation and comments nothing.
func tokens(src []byte, lang string) int {
	n := 0
	for s := string(src); ; n++ {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
		for strings.HasPrefix(s, comments[lang]) {
			_, s, _ = strings.Cut(s, "\n")
			s = strings.TrimLeftFunc(s, unicode.IsSpace)
		}
		if s == "" {
			return n
		}
		s = s[tokenLength(s, lang):]
	}
}

// tokenLength is how many bytes the token at the start of s has.
func tokenLength(s, lang string) int {
	first, size := utf8.DecodeRuneInString(s)
	switch {
	case first == '"':
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return len(s)
	case first == '_' || unicode.IsLetter(first) || unicode.IsDigit(first):
		end := strings.IndexFunc(s, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if end < 0 {
			return len(s)
		}
		return end
	}
	for _, op := range operators[lang] {
		if strings.HasPrefix(s, op) {
			return len(op)
		}
	}
	return size
}

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		src, lang string
		want      int
	}{
		{"", ".pif", 0},
		{"// only a comment", ".pif", 0},
		{"xs => xs |> map(x => x * x) |> sum // all", ".pif", 14},
		{`r => r.a ++ "a \" // b" ++ '{x}`, ".pif", 11},
		{"[x, ...rest] => -12", ".pif", 9},
		{"def main(xs):\n    return xs[1:] # not this\n", ".star", 12},
		{"a //= b // 2", ".star", 5},
		{`d["a#b"] += -1`, ".star", 7},
	} {
		if got := tokens([]byte(c.src), c.lang); got != c.want {
			t.Errorf("%s has %d tokens, not %d", c.src, got, c.want)
		}
	}
}

// TestTasks: every task gives what is expected, and in sum the programs are no
// longer than those in Starlark. That those give the same is checked where
// Starlark is, in cmd/internal/peerbench/tokens.
func TestTasks(t *testing.T) {
	all := read(t, "tasks")
	if len(all) != 30 {
		t.Errorf("%d tasks, not 30", len(all))
	}
	var rows []row
	for _, e := range all {
		star := readFile(t, filepath.Join("tasks", e.name+".star"))
		rows = append(rows, row{e, tokens(e.src, ".pif"), tokens(star, ".star")})
		t.Run(e.name, func(t *testing.T) {
			e.check(t)
			if !bytes.HasPrefix(star, []byte("def main(")) {
				t.Error("the Starlark program has another header than the table's")
			}
		})
	}
	page := table(t, rows)
	const file = "tasks/README.md"
	if *update {
		if err := os.WriteFile(file, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(readFile(t, file), page) {
		t.Errorf("%s is not what the programs give: go test ./core/examples -update", file)
	}
}

// A row is a task with the tokens of its two programs.
type row struct {
	example
	pif, star int
}

// The tokens of what a program starts with: x => and def main(x):
const (
	pifHeader  = 2
	starHeader = 6
)

func table(t *testing.T, rows []row) []byte {
	var b bytes.Buffer
	var pif, star int
	longer := 0
	b.WriteString(`# Thirty tasks, in PIF and in Starlark

Each task is a program in PIF's text form (NAME.pif), the same in Starlark as one writes it by hand (NAME.star), and an
input with the result of both (NAME.json). ` + "`go test ./core/examples -update`" + ` wrote this page; the test fails where a
program gives another result, where this page isn't what the programs give, and where the sum of PIF is more than that
of Starlark. That the Starlark programs run, and give these results, is checked in cmd/internal/peerbench/tokens.

A name or keyword, a number, a string and each operator or punctuation mark is a token; white space, line ends,
indentation and comments are none.

| task | what it gives | PIF | Starlark | |
|---|---|--:|--:|---|
`)
	for _, r := range rows {
		line, _, _ := strings.Cut(string(r.src), "\n")
		mark := ""
		if r.pif > r.star {
			mark = "longer"
			longer++
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %s |\n", r.name, strings.TrimSuffix(strings.TrimPrefix(line, "// "), "."), r.pif, r.star, mark)
		pif += r.pif
		star += r.star
	}
	if pif > star {
		t.Errorf("PIF has %d tokens, Starlark %d", pif, star)
	}
	n := len(rows)
	fmt.Fprintf(&b, `| **sum** | | **%d** | **%d** | |

PIF is longer in %d of %d. It says with words or a match what Starlark has signs for: pairs taken apart where they are
bound, comprehensions, slices, formatting; and a loop with two things to remember is a fold over pairs.

Each program starts with %d tokens in PIF (`+"`x =>`"+`) and with %d in Starlark (`+"`def main(x):`"+`). Without those the sums are
%d and %d: there PIF is the longer one, and what makes it shorter is that a program is an expression.

The Starlark programs may recurse and loop with while, which Starlark forbids unless it is told to.
`, pif, star, longer, n, pifHeader, starHeader, pif-n*pifHeader, star-n*starHeader)
	return b.Bytes()
}
