package run

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// The events about tools are read when a server starts, thousands of them, so what
// [appendChange] writes is read by hand, in a quarter of the time. Of anything else
// (white space, other members, one twice, rare escapes) read says no, and package
// json reads it.

// read takes over what an event says, as json.Unmarshal does; false: it can't tell.
func (d *evolved) read(b []byte) bool {
	if !json.Valid(b) {
		return false
	}
	return members(b, func(key string, v []byte) (bit uint, ok bool) {
		switch key {
		case "tool":
			return 0, text(v, &d.Tool)
		case "version":
			return 1, integer(v, &d.Version)
		case "hash":
			return 2, text(v, &d.Hash)
		case "from":
			return 3, integer(v, &d.From)
		case "declared":
			return 4, texts(v, &d.Declared)
		case "capabilities":
			return 5, texts(v, &d.Capabilities)
		case "bound":
			return 6, json.Unmarshal(v, &d.Bound) == nil
		case "source":
			return 7, text(v, &d.Source)
		case "form":
			return 8, text(v, &d.Form)
		case "description":
			return 9, text(v, &d.Description)
		case "examples":
			return 10, json.Unmarshal(v, &d.Examples) == nil
		case "as":
			return 11, text(v, &d.As)
		case "facts":
			d.Facts = bytes.Clone(v)
			return 12, true
		case "input_schema":
			d.InputSchema = bytes.Clone(v)
			return 13, true
		case "group":
			return 14, json.Unmarshal(v, &d.Group) == nil
		case "canonical":
			return 15, text(v, &d.Canonical)
		}
		return 0, false
	})
}

// read is that of an event's facts, which are valid JSON. What it takes over is
// still part of b.
func (f *facts) read(b []byte) bool {
	return members(b, func(key string, v []byte) (bit uint, ok bool) {
		switch key {
		case "semantics":
			return 0, integer(v, &f.Semantics)
		case "normal":
			return 1, text(v, &f.Normal)
		case "certificate":
			f.Certificate = v
			return 2, true
		case "input":
			f.Input = v
			return 3, true
		case "output":
			f.Output = v
			return 4, true
		case "answers":
			return 5, json.Unmarshal(v, &f.Answers) == nil
		}
		return 0, false
	})
}

// members gives each member of an object to take, which says the number of the key
// and whether it could use it. b is valid JSON; false: it is no object without white
// space, a member couldn't be used, or a key is there twice.
func members(b []byte, take func(key string, v []byte) (bit uint, ok bool)) bool {
	if b[0] != '{' {
		return false
	}
	seen := uint(0)
	for i := 1; b[i] != '}'; {
		if b[i] == ',' {
			i++
		}
		if b[i] != '"' {
			return false
		}
		colon := after(b, i)
		if b[colon] != ':' {
			return false
		}
		end := after(b, colon+1)
		if end < 0 {
			return false
		}
		bit, ok := take(string(b[i+1:colon-1]), b[colon+1:end:end])
		if !ok || seen&(1<<bit) != 0 {
			return false
		}
		seen |= 1 << bit
		i = end
	}
	return true
}

// after is the offset behind the value at i, in valid JSON; -1: white space is there.
func after(b []byte, i int) int {
	switch b[i] {
	case '"':
		for i++; b[i] != '"'; i++ {
			if b[i] == '\\' {
				i++
			}
		}
		return i + 1
	case '{', '[':
		for depth := 0; ; {
			switch b[i] {
			case '"':
				i = after(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	case ' ', '\t', '\n', '\r':
		return -1
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' {
		if b[i] <= ' ' {
			return -1
		}
		i++
	}
	return i
}

// integer reads an integer.
func integer(v []byte, to *int) bool {
	n, err := strconv.Atoi(string(v))
	*to = n
	return err == nil
}

// texts reads a list of strings.
func texts(v []byte, to *[]string) bool {
	if v[0] != '[' {
		return false
	}
	list := []string{}
	for i := 1; v[i] != ']'; {
		if v[i] == ',' {
			i++
		}
		if v[i] != '"' {
			return false
		}
		end := after(v, i)
		var s string
		if !text(v[i:end], &s) {
			return false
		}
		list = append(list, s)
		i = end
	}
	*to = list
	return true
}

// escaped is what stands for the byte behind a backslash; 0: it isn't one byte.
var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// text reads a string.
func text(v []byte, to *string) bool {
	if v[0] != '"' || !utf8.Valid(v) {
		return false
	}
	v = v[1 : len(v)-1]
	i := bytes.IndexByte(v, '\\')
	if i < 0 {
		*to = string(v)
		return true
	}
	s := append(make([]byte, 0, len(v)), v[:i]...)
	for i < len(v) {
		c := v[i]
		if c == '\\' {
			i++
			if c = escaped[v[i]]; c == 0 {
				return false
			}
		}
		s = append(s, c)
		i++
	}
	*to = string(s)
	return true
}
