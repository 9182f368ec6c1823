package json

import (
	"encoding/json"
	"unicode/utf8"
)

// A Cursor goes through JSON without a stack, however deep it nests, and never beyond it. What
// is no JSON it stops at, with false, or takes for a word: whoever reads that refuses it.
type Cursor struct {
	Src []byte
	At  int
}

// Space goes on to what isn't white space, and returns it; 0: there is nothing.
func (c *Cursor) Space() byte {
	for ; c.At < len(c.Src); c.At++ {
		switch b := c.Src[c.At]; b {
		case ' ', '\t', '\n', '\r':
		default:
			return b
		}
	}
	return 0
}

// Text goes past a string, if one begins here.
func (c *Cursor) Text() bool {
	if c.At >= len(c.Src) || c.Src[c.At] != '"' {
		return false
	}
	for c.At++; c.At < len(c.Src); c.At++ {
		switch c.Src[c.At] {
		case '\\':
			c.At++
		case '"':
			c.At++
			return true
		}
	}
	c.At = len(c.Src)
	return false
}

// Word goes past a number, or another value without parts.
func (c *Cursor) Word() bool {
	from := c.At
	for ; c.At < len(c.Src); c.At++ {
		switch c.Src[c.At] {
		case ',', ':', ']', '}', '[', '{', '"', ' ', '\t', '\n', '\r':
			return c.At > from
		}
	}
	return c.At > from
}

// Value goes past a value.
func (c *Cursor) Value() bool {
	for depth := 0; ; {
		switch b := c.Space(); b {
		case '{', '[':
			depth++
			c.At++
		case '}', ']':
			depth--
			c.At++
		case ',', ':':
			if depth == 0 {
				return false
			}
			c.At++
			continue
		case '"':
			if !c.Text() {
				return false
			}
		default:
			if !c.Word() {
				return false
			}
		}
		if depth <= 0 {
			return depth == 0
		}
	}
}

// Array goes past an array. item goes past the item that begins where it is called.
func (c *Cursor) Array(item func() bool) bool { return c.parts('[', ']', item) }

// Object goes past an object. member is given each key as it stands there, in
// quotes, and goes past the value.
func (c *Cursor) Object(member func(key []byte) bool) bool {
	return c.parts('{', '}', func() bool {
		from := c.At
		if !c.Text() {
			return false
		}
		key := c.Src[from:c.At]
		if c.Space() != ':' {
			return false
		}
		c.At++
		c.Space()
		return member(key)
	})
}

// parts goes past an array or an object, part by part.
func (c *Cursor) parts(open, end byte, part func() bool) bool {
	if c.Space() != open {
		return false
	}
	c.At++
	if c.Space() == end {
		c.At++
		return true
	}
	for {
		c.Space()
		if !part() {
			return false
		}
		switch c.Space() {
		case end:
			c.At++
			return true
		case ',':
			c.At++
		default:
			return false
		}
	}
}

// Unquote returns what a string in quotes stands for; false: it is none.
func Unquote(raw []byte) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	for _, b := range raw[1 : len(raw)-1] {
		if b < ' ' || b == '"' || b == '\\' || b >= utf8.RuneSelf {
			return s, json.Unmarshal(raw, &s) == nil
		}
	}
	return string(raw[1 : len(raw)-1]), raw[len(raw)-1] == '"'
}

// A Member is one of an object, its value as it stands there.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members takes an object apart, with nothing after it. Of the members no more than max are
// read, nor what is behind them; ok is true then.
func Members(src []byte, max int) (all []Member, ok bool) {
	c := Cursor{Src: src}
	ok = c.Object(func(key []byte) bool {
		from := c.At
		name, ok := Unquote(key)
		if !ok || !c.Value() {
			return false
		}
		all = append(all, Member{name, src[from:c.At]})
		return len(all) < max
	})
	if len(all) >= max {
		return all, true
	}
	c.Space()
	return all, ok && c.At == len(src)
}
