package mcpserver

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// The bounds of what is taken from code to make candidates of.
const (
	mostTerms    = 2000
	mostLiterals = 6
	longLiteral  = 40
)

// candidates is values for the leaves of samples, by turns: those that are tried
// first are common, further ones are made of what the code compares with, splits by
// or looks up.
type candidates struct {
	ints, texts, anys, bools, decs [][]byte

	turn         int
	apart        bool // leaves have different values
	inside       bool // what may be a record, and has fields that the code looks at, is one
	placeholders bool
	bound        map[int][]byte
	written      [][]byte // the leaves of the last sample
}

func newCandidates(t *registry.Tool) *candidates {
	c := &candidates{}
	c.vary(0)
	c.bools = listed("true", "false")
	c.decs = listed(`1.5`, `100.0`, `0.5`)
	c.ints = listed("5", "1", "2", "10", "100", "0", "-1")
	words, numbers := literals(t.Program().Term())
	for _, n := range numbers {
		c.ints = append(c.ints, strconv.AppendInt(nil, n, 10))
		if n < 1<<60 {
			c.ints = append(c.ints, strconv.AppendInt(nil, n+1, 10))
		}
	}
	c.texts = listed(`"abc"`)
	add := func(s string) { c.texts = append(c.texts, encode(s)) }
	var keys []string
	for _, w := range words {
		switch {
		case isKey(w):
			keys = append(keys, w)
		case len(w) <= 3:
			add("1" + w + "2" + w + "3")
			add("2026" + w + "01" + w + "15")
			add("abc" + w + "5")
		}
	}
	add("5")
	for _, w := range words {
		add(w)
	}
	if keys != nil {
		for _, v := range []string{"5", `"abc"`} {
			o := begin()
			for _, k := range keys {
				o = o.raw(k, []byte(v))
			}
			add(string(o.end()))
			add("[" + string(o.end()) + "]")
		}
		// What is looked up in what was looked up.
		nested := []byte(`"abc"`)
		for _, k := range slices.Backward(keys) {
			nested = begin().raw(k, nested).end()
		}
		add(string(nested))
	}
	add("[1,2,3]")
	add("a b c")
	add("2026-01-15")
	c.anys = slices.Concat(listed("5", `"abc"`, "[1,2,3]", "true", "null"), c.texts[1:min(len(c.texts), 8)])
	return c
}

func listed(all ...string) [][]byte {
	values := make([][]byte, len(all))
	for i, s := range all {
		values[i] = []byte(s)
	}
	return values
}

// isKey reports whether a literal can be the name of a field.
func isKey(s string) bool {
	return len(s) > 0 && strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	}) < 0
}

// literals is the first strings and integers in code.
func literals(root term.Term) (words []string, numbers []int64) {
	left := mostTerms
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		if left--; left < 0 {
			return false
		}
		switch t := t.(type) {
		case *term.Str:
			if len(words) < mostLiterals && t.Value != "" && len(t.Value) <= longLiteral && !slices.Contains(words, t.Value) {
				words = append(words, t.Value)
			}
		case *term.Int:
			if len(numbers) < mostLiterals && !slices.Contains(numbers, t.Value) {
				numbers = append(numbers, t.Value)
			}
		}
		return term.Children(t, walk)
	}
	walk(root)
	return words, numbers
}

// separate has the leaves of a sample begin apart, with texts where anything may be,
// so that it is seen which of them a tool asks with.
func (c *candidates) separate() {
	c.apart = true
	names := listed(`"abc"`, `"def"`, `"ghi"`, `"jkl"`, `"mno"`, `"pqr"`)
	c.texts = slices.Concat(names, c.texts[1:])
	c.anys = slices.Concat(names, c.anys)
	c.ints = slices.Concat(listed("5", "6", "7", "8", "9"), c.ints[1:])
}

// turns is how many turns there are.
func (c *candidates) turns() int { return max(len(c.ints), len(c.texts), len(c.anys)) }

// vary goes on to a turn.
func (c *candidates) vary(turn int) {
	c.turn = turn
	c.inside = turn%2 == 0
	c.bound = map[int][]byte{}
}

// begin begins a sample.
func (c *candidates) begin() { c.written = nil }

// leaf is the value of the next leaf of a sample.
func (c *candidates) leaf(k prim.Kinds) []byte {
	i := len(c.written)
	v := c.value(i, k)
	c.written = append(c.written, v)
	return v
}

func (c *candidates) value(i int, k prim.Kinds) []byte {
	if c.placeholders {
		return encode("<" + kindName(k) + ">")
	}
	if v := c.bound[i]; v != nil {
		return v
	}
	list := c.ints
	switch k {
	case prim.KindString:
		list = c.texts
	case prim.KindBool:
		list = c.bools
	case prim.KindDec:
		list = c.decs
	case prim.KindAny:
		list = c.anys
	}
	at := c.turn
	if c.apart {
		at += i
	}
	return list[at%len(list)]
}

// bind gives a leaf a value from now on; false: it has it.
func (c *candidates) bind(leaf int, v []byte) bool {
	if bytes.Equal(c.bound[leaf], v) {
		return false
	}
	c.bound[leaf] = v
	return true
}

// named is what is to be said of the names in a call that were chosen to lie within
// the tool's capabilities; "": none was.
func (c *candidates) named() string {
	for i, v := range c.written {
		if c.bound[i] != nil && v[0] == '"' {
			return string(v) + " in next is a name within the tool's capabilities: give one that is meant"
		}
	}
	return ""
}

// kindName is a kind in the notation of types.
func kindName(k prim.Kinds) string {
	switch k {
	case prim.KindString:
		return "string"
	case prim.KindBool:
		return "bool"
	case prim.KindDec:
		return "dec"
	case prim.KindInt:
		return "int"
	}
	return "any"
}
