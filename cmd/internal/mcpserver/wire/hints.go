package wire

import (
	"bytes"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// longestSnippet is how long code in a hint is, in the text form.
const longestSnippet = 120

// InForm is a fault of code in the text form with a hint that speaks it: faults of a
// run know nothing of how the code was written, and show code as JSON.
func InForm(f *fault.Fault, isText bool) *fault.Fault {
	if f == nil || !isText {
		return f
	}
	g := *f
	g.Hint = HintInText(f.Hint)
	g.More = nil
	for _, more := range f.More {
		g.More = append(g.More, InForm(more, true))
	}
	return &g
}

// HintInText writes the code in a hint in the text form, where all of it can be: for
// whoever wrote code in that form.
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
	members, ok := Split(src)
	if !ok || len(members) == 0 {
		return "", false
	}
	first := members[0].Name
	if _, _, known := prim.Lookup(first); !known && !strings.Contains(first, ".") {
		return "", false
	}
	p, err := core.Compile(src)
	if err != nil {
		return "", false
	}
	text := strings.ReplaceAll(string(p.Text()), "`…`", "…")
	return text, len(text) <= longestSnippet && !strings.Contains(text, "\n") && caps.Visible(text) == text
}

// placeholdersBound writes what stands for code as variables.
func placeholdersBound(snippet string) []byte {
	var b bytes.Buffer
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
			b.Write(Begin().Text("var", word).End())
		} else {
			b.WriteString(word)
		}
		i += n
	}
	return b.Bytes()
}
