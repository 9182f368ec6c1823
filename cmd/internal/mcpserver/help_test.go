package mcpserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestHelpAnswers: help has something to say of every word that it names itself, of every
// operator, keyword and kind of failure, and of words that other languages have.
func TestHelpAnswers(t *testing.T) {
	s := New(Options{})
	words := slices.Concat(wire.Categories(), text.Operators(), text.Keywords(), topics(), wire.ToolNames())
	for i := range prim.Table {
		words = append(words, prim.Table[i].Name)
	}
	for i := range prim.Topics {
		words = append(words, prim.Topics[i].See...)
	}
	for _, c := range fault.Codes {
		words = append(words, string(c.Kind))
	}
	words = append(words, "for", "while", "import", "return", "class", "print", "async", "await", "null", "None", "undefined", "lambda",
		"function", "switch", "try/catch", "map/reduce", "reduce", "len", "def", "elif", "throw", "const", "dict", "tuple", "float", "&&", "||", "===", "?:", "??", "=>", "...", "|>", "'{", "@", "::", "//", "#", "f-string", "let rec")
	for _, word := range words {
		if a := do(t, s, "help", string(wire.Encode(map[string]string{"name": word}))); a.Fault != nil || a.Text == "" {
			t.Errorf("help %s: %s", word, a.Text)
		}
	}
	for word, want := range map[string]string{
		"while":      "loops: ",
		"len":        "What is len elsewhere is length here.",
		"++":         "concat (strings): ",
		"fold":       "  fold(f, init, list) gives any, in JSON {\"fold\":[f,init,list]}\n  fold(p => fst(p) + snd(p), 0, [1, 2, 3])  → 6\n    {\"fold\":[",
		"match":      "match (1, [2, 3]) { (0, _) => \"zero\"; (1, [x, ...r]) => [x, r] }  → [2,[3]]\n    {\"match\":",
		"lists":      "\n  nth(list, index)  gives",
		"type_error": "it occurs when an operation is given a value of a kind it doesn't take",
	} {
		if a := must(t, s, "help", fmt.Sprintf(`{"name":%q}`, word)); !strings.Contains(a.Text, want) {
			t.Errorf("help %s lacks %q:\n%s", word, want, a.Text)
		}
	}
	if a := do(t, s, "help", `{"name":"recursoin"}`); a.Fault == nil || a.Fault.Near != "recursion" {
		t.Errorf("%s", a.Text)
	}
}

// TestTopicNames: a word leads to one topic, and none to a topic that is the name of an
// operation, which would hide it.
func TestTopicNames(t *testing.T) {
	seen := map[string]string{}
	for _, topic := range prim.Topics {
		for i, name := range topic.Names {
			if of, ok := seen[strings.ToLower(name)]; ok {
				t.Errorf("%q leads to %s and to %s", name, of, topic.Names[0])
			}
			seen[strings.ToLower(name)] = topic.Names[0]
			if near, _ := prim.TopicNamed(strings.ToUpper(name)); near == nil || near.Names[0] != topic.Names[0] {
				t.Errorf("%q doesn't lead to %s", name, topic.Names[0])
			}
			if _, row, ok := prim.Lookup(name); ok && i > 0 && !slices.Contains([]string{"if", "let"}, row.Name) {
				t.Errorf("%s is an operation, and leads to the topic %s", name, topic.Names[0])
			}
		}
	}
}
