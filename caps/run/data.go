package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// How the data of a run's events is written; record.go reads it.

// appendTool writes the members that name a tool's version.
func appendTool(b []byte, t *registry.Tool) []byte {
	b = journal.AppendString(append(b, `"tool":`...), t.Name)
	b = strconv.AppendInt(append(b, `,"version":`...), int64(t.Version), 10)
	return journal.AppendString(append(b, `,"hash":`...), t.Hash)
}

// whole is how many bytes of code, input, arguments or outcome are recorded as
// they are; of more there is a digest, and a blob.
const whole = 256 << 10

// appendText writes what was given as text: as a string, since it may be
// anything, or as its digest.
func (b *Broker) appendText(data, text []byte) []byte {
	if len(text) > whole || !utf8.Valid(text) {
		b.keep(text)
	}
	return appendPart(data, text)
}

// appendPart writes a text that is part of another one on record: where it is
// large its digest will do.
func appendPart(data, text []byte) []byte {
	if len(text) <= whole && utf8.Valid(text) {
		return journal.AppendString(data, string(text))
	}
	return appendDigest(data, text)
}

// appendValue writes a member with a value, or, where that is large, a member of
// the name with _blob behind it and its digest: a digest in the value's own
// place could be a value. It fails past most bytes.
func (b *Broker) appendValue(data []byte, name string, v value.Value, most int64) ([]byte, error) {
	before := len(data)
	data = append(append(append(data, `,"`...), name...), `":`...)
	start := len(data)
	data, err := journal.AppendValue(data, v, most)
	if err != nil || len(data)-start <= whole {
		return data, err
	}
	return b.appendBlob(data[:before:before], name, data[start:]), nil
}

// appendBlob writes the member in place of one that is large. Where the journal
// didn't take it, the name has _hash behind it: nobody looks for the bytes.
func (b *Broker) appendBlob(data []byte, name string, text []byte) []byte {
	ending := `_blob":`
	if !b.keep(text) {
		ending = `_hash":`
	}
	return appendDigest(append(append(append(data, `,"`...), name...), ending...), text)
}

// keep has a journal that can keep what is too large for an event, and reports whether
// it has it; one in memory isn't asked.
func (b *Broker) keep(text []byte) bool {
	store, ok := b.journal.(interface {
		PutBlob(context.Context, []byte) (journal.Hash, error)
	})
	if !ok {
		return true
	}
	_, err := store.PutBlob(context.Background(), text)
	if err != nil {
		b.log.Error("the journal took only the hash of a large text", "bytes", len(text), "error", err)
	}
	return err == nil
}

// appendDigest writes size and hash.
func appendDigest(b, text []byte) []byte {
	return appendHashed(b, int64(len(text)), sha256.Sum256(text))
}

func appendHashed(b []byte, size int64, sum journal.Hash) []byte {
	b = strconv.AppendInt(append(b, `{"bytes":`...), size, 10)
	return append(appendHash(append(b, `,"sha256":`...), sum), '}')
}

func appendHash(b []byte, h journal.Hash) []byte {
	return append(hex.AppendEncode(append(b, '"'), h[:]), '"')
}

// appendFault writes all of a fault that a program or its caller can see, as
// [fault.Fault] has it in JSON, with the value that was raised as "raised".
func (b *Broker) appendFault(data []byte, f *fault.Fault) []byte {
	start := len(data)
	data = appendFault(data, f)
	if v, ok := f.Raised.(value.Value); ok {
		before := len(data) - 1
		raised, err := journal.AppendValue(append(data[:before], `,"raised":`...), v, journal.MaxBlob)
		if err == nil {
			data = append(raised, '}')
		} else {
			data = append(data[:before], '}')
		}
	}
	if len(data)-start <= whole {
		return data
	}
	// What a reader of events wants, and the rest for a replay.
	short := fault.Fault{Kind: f.Kind, Message: display.Prefix(f.Message, 1000)}
	text := data[start:]
	data = appendFault(data[:start:start], &short)
	return append(b.appendBlob(data[:len(data)-1], "whole", text), '}')
}

// appendFault writes a fault, without what was raised.
func appendFault(b []byte, f *fault.Fault) []byte {
	text := func(name, s string) {
		if s != "" {
			b = journal.AppendString(append(append(append(b, `,"`...), name...), `":`...), s)
		}
	}
	number := func(name string, n int) {
		if n != 0 {
			b = strconv.AppendInt(append(append(append(b, `,"`...), name...), `":`...), int64(n), 10)
		}
	}
	b = journal.AppendString(append(b, `{"kind":`...), string(f.Kind))
	b = journal.AppendString(append(b, `,"message":`...), f.Message)
	text("at", string(f.At))
	text("in", f.In)
	number("line", f.Line)
	number("col", f.Col)
	text("expected", f.Expected)
	text("got", f.Got)
	text("hint", f.Hint)
	text("fragment", f.Fragment)
	text("near", f.Near)
	number("eval_depth", f.EvalDepth)
	for i, more := range f.More {
		b = append(b, [...]string{`,"more":[`, `,`}[min(i, 1)]...)
		b = appendFault(b, more)
	}
	if len(f.More) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

// spelled is the fault with words that are recorded as they are: what isn't
// UTF-8 would come back from the record as something else.
func spelled(f *fault.Fault) *fault.Fault {
	if utf8.ValidString(f.Message) && utf8.ValidString(f.Hint) {
		return f
	}
	g := *f
	g.Message, g.Hint = strings.ToValidUTF8(f.Message, "\uFFFD"), strings.ToValidUTF8(f.Hint, "\uFFFD")
	return &g
}

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
