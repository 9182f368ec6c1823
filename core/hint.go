package core

import (
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// longestSnippet is how long code in a hint is, in the text form.
const longestSnippet = 120

// HintInText writes the code in a fault's hint in the text form, where all of it can be: for
// whoever wrote code in that form. A machine shows code as JSON.
func HintInText(hint string) string {
	if !strings.Contains(hint, `{"`) {
		return hint
	}
	var b strings.Builder
	for rest := hint; ; {
		i := strings.Index(rest, `{"`)
		if i < 0 {
			b.WriteString(rest)
			return b.String()
		}
		b.WriteString(rest[:i])
		c := pifjson.Cursor{Src: []byte(rest), At: i}
		if !c.Value() {
			b.WriteString(rest[i:])
			return b.String()
		}
		end := c.At
		if text, ok := snippetInText(rest[i:end]); ok {
			b.WriteString(text)
		} else {
			b.WriteString(rest[i:end])
		}
		rest = rest[end:]
	}
}

// snippetInText is code of a hint in the text form. Words in capitals, and "…", stand
// for code of whoever reads it.
func snippetInText(snippet string) (string, bool) {
	src := placeholdersBound(snippet)
	members, _ := pifjson.Members(src, 1)
	if len(members) == 0 {
		return "", false
	}
	first := members[0].Name
	if _, _, known := prim.Lookup(first); !known && !strings.Contains(first, ".") {
		return "", false
	}
	p, err := CompileTool("", src)
	if err != nil {
		return "", false
	}
	text := strings.ReplaceAll(string(p.Text()), "`…`", "…")
	return text, len(text) <= longestSnippet && !strings.Contains(text, "\n") && strings.IndexFunc(text, hidden) < 0
}

func hidden(r rune) bool { return r >= 0x7f && !display.Seen(r) }

// placeholdersBound writes what stands for code as variables.
func placeholdersBound(snippet string) []byte {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(snippet); {
		c := snippet[i]
		n := 1
		switch {
		case quoted && c == '\\' && i+1 < len(snippet):
			n = 2
		case c == '"':
			quoted = !quoted
		case !quoted && strings.HasPrefix(snippet[i:], "…"):
			n = len("…")
		case !quoted && c >= 'A' && c <= 'Z':
			for i+n < len(snippet) && (snippet[i+n] >= 'A' && snippet[i+n] <= 'Z' || snippet[i+n] == '_') {
				n++
			}
		}
		if word := snippet[i : i+n]; !quoted && (word == "…" || c >= 'A' && c <= 'Z') {
			b.WriteString(`{"var":"` + word + `"}`)
		} else {
			b.WriteString(word)
		}
		i += n
	}
	return []byte(b.String())
}
