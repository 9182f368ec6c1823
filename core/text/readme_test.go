package text_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestReadme: the table of the README says what the parser does, everything in
// it that looks like a program is one, and it names all keywords and operators.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	must.NoError(t, err)
	readme := string(b)
	spans := regexp.MustCompile("`` (.+?) ``|`([^`]+)`")
	code := func(cell string) (out []string) {
		for _, m := range spans.FindAllStringSubmatch(cell, -1) {
			out = append(out, strings.ReplaceAll(m[1]+m[2], `\|`, "|"))
		}
		return out
	}
	rows := 0
	for line := range strings.Lines(readme) {
		cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|")
		if len(cells) != 4 {
			continue
		}
		left, right := code(strings.ReplaceAll(cells[1], "\x00", "|")), code(cells[2])
		if len(left) == 0 || len(left) != len(right) {
			continue
		}
		for i := range left {
			rows++
			if _, _, ok := prim.Lookup("get"); !ok && left[i] == "r.name" {
				continue
			}
			p, err := core.Parse([]byte(left[i]))
			must.NoError(t, err)
			if got, want := string(text.Canonical(p)), string(text.Canonical(mustParse(t, right[i]).Term)); got != want {
				t.Errorf("%s is %s, not %s", left[i], got, want)
			}
		}
	}
	if rows < 35 {
		t.Errorf("only %d examples in the table", rows)
	}
	legal := map[string]bool{}
	prose := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(readme, "")
	for line := range strings.Lines(prose) {
		for _, s := range code(line) {
			_, f := text.Parse([]byte(s), text.Options{})
			legal[s] = f == nil
		}
	}
	for s, want := range map[string]bool{
		"length(xs)": true, "length": true, "x => length(x)": true, "(a, b) => add(a, b)": true, "`a b` => `a b`": true, "`length`": true, "`if`": true, "length => ::length([1]) + length": true,
		"a < b and b < c": true, "xs |> fold(f, 0)": true, "f()": false, "f(null)": true,
		`{"add": [1, 2,]}`: false, "{add: 1}": true, "({a = 5}) => a": false, `r => r.a ?? 5`: true,
	} {
		if got, ok := legal[s]; !ok || got != want {
			t.Errorf("%s: in the README %v, legal %v", s, ok, got)
		}
	}
	last := strings.LastIndex(readme, "```pif\n") + len("```pif\n")
	roundTrip(t, mustRead(t, readme[last:last+strings.Index(readme[last:], "```")]).Term)
	program := regexp.MustCompile("(?s)```pif\n(.*?)```").FindStringSubmatch(readme)
	if got := roundTrip(t, mustRead(t, program[1]).Term); got != strings.TrimSpace(program[1]) {
		t.Errorf("%s is printed %s", program[1], got)
	}
	if !strings.Contains(readme, "`"+strings.Join(text.Keywords(), " ")+"`") {
		t.Errorf("the keywords are %s", strings.Join(text.Keywords(), " "))
	}
	for _, op := range text.Operators() {
		if !strings.Contains(readme, `"`+op+`"`) {
			t.Errorf("the grammar lacks %s", op)
		}
	}
}

// A pattern is a rule of a TextMate grammar.
type pattern struct {
	Name, Match, Begin, End, Include string
	Captures                         map[string]pattern
	Patterns                         []pattern
}

// TestTextMate: the grammar is JSON whose expressions compile and match each
// keyword, operator and other token of the lexer as the scope it should have.
func TestTextMate(t *testing.T) {
	b, err := os.ReadFile("pif.tmLanguage.json")
	must.NoError(t, err)
	var g struct {
		ScopeName  string
		FileTypes  []string
		Patterns   []pattern
		Repository map[string]pattern
	}
	must.NoError(t, json.Unmarshal(b, &g))
	if g.ScopeName != "source.pif" || !slices.Contains(g.FileTypes, "pif") {
		t.Errorf("scope %s of %s", g.ScopeName, g.FileTypes)
	}
	compile := func(s string) *regexp.Regexp {
		re, err := regexp.Compile(`^(?:` + s + `)`)
		must.NoError(t, err)
		return re
	}
	// scope is that of the first rule, in order, that matches the whole token.
	var scope func(p pattern, token string, deep int) string
	scope = func(p pattern, token string, deep int) string {
		if deep > 3 {
			return ""
		}
		for _, re := range []string{p.Match, p.Begin} {
			if re == "" {
				continue
			}
			if m := compile(re).FindStringSubmatch(token); m != nil {
				for i := 1; i < len(m); i++ {
					if c, ok := p.Captures[string(rune('0'+i))]; ok && m[i] == strings.TrimSpace(strings.TrimRight(token, "=>(: 1")) {
						return c.Name
					}
				}
				if m[0] == token || p.Begin != "" {
					return p.Name
				}
			}
		}
		if p.End != "" {
			compile(p.End)
			for _, q := range p.Patterns {
				scope(q, token, deep+1)
			}
			return ""
		}
		if p.Include != "" {
			rule, ok := g.Repository[strings.TrimPrefix(p.Include, "#")]
			if !ok {
				t.Fatalf("no rule %s", p.Include)
			}
			return scope(rule, token, deep+1)
		}
		for _, q := range p.Patterns {
			if s := scope(q, token, deep+1); s != "" {
				return s
			}
		}
		return ""
	}
	of := func(token string) string { return scope(g.Repository["expression"], token, 0) }
	for _, k := range text.Keywords() {
		if s := of(k); !strings.HasPrefix(s, "keyword.") && !strings.HasPrefix(s, "constant.language") && !strings.HasPrefix(s, "variable.language") {
			t.Errorf("the keyword %s is %q", k, s)
		}
	}
	for _, op := range text.Operators() {
		if s := of(op); !strings.HasPrefix(s, "keyword.operator") {
			t.Errorf("the operator %s is %q", op, s)
		}
	}
	for token, want := range map[string]string{
		"=>": "storage.type.function.arrow.pif", "// x": "comment.line.double-slash.pif", `"a"`: "string.quoted.double.pif", "12": "constant.numeric.pif", "3.14": "constant.numeric.pif", "1e5": "constant.numeric.pif",
		"!fs.read": "support.function.effect.pif", "!`a b.c`": "support.function.effect.pif", "@my-tool.2": "entity.name.function.tool.pif", "::length": "support.function.pif",
		"x =>": "variable.parameter.pif", "é": "variable.other.pif", "`a \\` b`": "variable.other.pif", "f(": "entity.name.function.pif", "name: 1": "variable.other.property.pif", "'{": "meta.quote.pif", ",": "punctuation.separator.pif", "nil": "constant.language.pif",
	} {
		if s := of(token); s != want {
			t.Errorf("%s is %q, want %q", token, s, want)
		}
	}
}
