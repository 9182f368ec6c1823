package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// commands is the repl's own words, for completion.
var commands = []string{":t", ":s", ":evolve", ":drive", ":next", ":tools", ":help", ":quit"}

// fieldAccess is a name with fields behind it, the last of which is being written.
var fieldAccess = regexp.MustCompile(`([\pL_][\pL\pN_]*)((?:\.[\pL_][\pL\pN_]*)*)\.([\pL\pN_]*)$`)

// complete gives the words that the word before the cursor may become: commands, the
// session's names and tools, primitives, and after a point fields.
func (r *repl) complete(before string) (word string, candidates []string) {
	if strings.HasPrefix(before, ":") && !strings.Contains(before, " ") {
		return before, starting(commands, before)
	}
	if m := fieldAccess.FindStringSubmatch(before); m != nil {
		if b, ok := r.bound[m[1]]; ok {
			return m[3], starting(fieldKeys(b.typ, strings.Split(m[2], ".")[1:]), m[3])
		}
	}
	start := strings.LastIndexFunc(before, func(c rune) bool { return strings.ContainsRune(" {}[](),\"'@+-*/%=<>", c) }) + 1
	word = before[start:]
	own := r.names()
	for _, t := range r.server.Registry().Snapshot().All() {
		own = append(own, t.Name)
	}
	// What the session made goes first where an entry begins.
	if own = starting(own, word); start == 0 && len(own) > 0 {
		return word, own
	}
	for i := range prim.Table {
		if prim.Table[i].Operation() {
			own = append(own, prim.Table[i].Name)
		}
	}
	return word, starting(own, word)
}

// starting is the words that begin so, sorted.
func starting(words []string, prefix string) []string {
	found := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, prefix) })
	slices.Sort(found)
	return slices.Compact(found)
}

// fieldKeys is the keys of a record's type, within the fields of the path.
func fieldKeys(t *check.Type, path []string) (keys []string) {
	if t == nil {
		return nil
	}
	for _, f := range t.Fields {
		if len(path) == 0 {
			keys = append(keys, f.Key)
		} else if f.Key == path[0] {
			return fieldKeys(f.Type, path[1:])
		}
	}
	return keys
}
