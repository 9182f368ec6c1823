package check

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// The notation of types, in which every type has one spelling:
//
//	type    = [ "rec" name "." ] ( function | union )
//	function = "(" type ")" "->" [ row ] type
//	union   = [ "any with" ] part { "|" part }
//	part    = "int" | "dec" | "num" | "bool" | "string" | "unit" | "any" | "data" | "json" | "nothing" | "?"
//	        | "list[" type "]" | "pair[" type "," type "]" | record | code | "cont[" type "]"
//	        | name | "(" function ")"
//	record  = "{" [ member { "," member } ] "}"    member = key [ "?" ] ":" type | "*:" type
//	code    = "code" | "code" [ row ] "[" type [ ";" name ":" type { "," … } ] "]"
//	row     = "{" operation { "," operation } "}"   with "*" for operations that aren't known
//	name    = a letter from a to z, and digits
//
// num is an int or a dec. After "any with" stand the parts of which there are
// only such values; of all other kinds there are all. A member with "?" need
// not be there, "*" is all members that aren't named, and a record without it
// has no others. What follows a semicolon is the variables that code expects
// where it is evaluated.

// String gives the type in the notation.
func (t *Type) String() string {
	var b strings.Builder
	t.write(&b)
	return b.String()
}

// MarshalJSON gives the notation as a string.
func (t *Type) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

// UnmarshalJSON reads the notation.
func (t *Type) UnmarshalJSON(src []byte) error {
	var s string
	if err := json.Unmarshal(src, &s); err != nil {
		return err
	}
	u, err := ParseType(s)
	if err == nil {
		*t = *u
	}
	return err
}

func (t *Type) write(b *strings.Builder) {
	if t == nil {
		b.WriteString("nothing")
		return
	}
	if t.Name != "" {
		b.WriteString("rec ")
		b.WriteString(t.Name)
		b.WriteString(". ")
	}
	if t.IsFunction() {
		t.writeFunction(b)
		return
	}
	n := 0
	sep := func() {
		if n++; n > 1 {
			b.WriteString(" | ")
		}
	}
	word := func(s string) {
		sep()
		b.WriteString(s)
	}
	kinds := t.Kinds
	if kinds == prim.KindAny && !t.Any {
		b.WriteString("any with ")
		kinds = t.special()
	}
	switch {
	case t.Any:
		word("any")
		kinds = 0
	case t.Deep && t.Kinds == jsonKinds:
		word("json")
		kinds = 0
	case t.Deep:
		word("data")
		kinds = 0
	case kinds&prim.KindNumber == prim.KindNumber:
		word("num")
		kinds &^= prim.KindNumber
	}
	for _, w := range []prim.Kinds{prim.KindInt, prim.KindDec, prim.KindBool, prim.KindString, prim.KindUnit} {
		if kinds&w != 0 {
			word(w.String())
		}
	}
	if kinds&prim.KindList != 0 {
		word("list[")
		t.Item.write(b)
		b.WriteByte(']')
	}
	if kinds&prim.KindPair != 0 {
		word("pair[")
		t.First.write(b)
		b.WriteString(", ")
		t.Second.write(b)
		b.WriteByte(']')
	}
	if kinds&prim.KindRecord != 0 {
		sep()
		t.writeRecord(b)
	}
	if kinds&prim.KindFunction != 0 {
		word("(")
		t.writeFunction(b)
		b.WriteByte(')')
	}
	if kinds&prim.KindQuoted != 0 {
		sep()
		t.writeCode(b)
	}
	if kinds&prim.KindContinuation != 0 {
		word("cont[")
		t.Next.write(b)
		b.WriteByte(']')
	}
	for _, v := range t.Vars {
		word(v)
	}
	if t.Dynamic {
		word("?")
	}
	if n == 0 {
		b.WriteString("nothing")
	}
}

// special is the kinds of which a type of all kinds has less than any.
func (t *Type) special() prim.Kinds {
	kinds := prim.KindAny &^ plain
	isAny := func(p *Type) bool { return p != nil && p.Any && !p.Dynamic }
	drop := func(k prim.Kinds, trivial bool) {
		if trivial {
			kinds &^= k
		}
	}
	drop(prim.KindList, isAny(t.Item))
	drop(prim.KindPair, isAny(t.First) && isAny(t.Second))
	drop(prim.KindRecord, len(t.Fields) == 0 && isAny(t.Rest))
	drop(prim.KindFunction, t.Param != nil && t.Param.String() == "nothing" && isAny(t.Result) && len(t.Effects.Ops) == 0 && !t.Effects.Open)
	drop(prim.KindQuoted, t.Unknown)
	drop(prim.KindContinuation, isAny(t.Next))
	return kinds
}

func (t *Type) writeFunction(b *strings.Builder) {
	b.WriteByte('(')
	t.Param.write(b)
	b.WriteString(") ->")
	if len(t.Effects.Ops) > 0 || t.Effects.Open {
		t.Effects.write(b)
	}
	b.WriteByte(' ')
	t.Result.write(b)
}

func (r Row) write(b *strings.Builder) {
	b.WriteByte('{')
	for i, op := range r.Ops {
		if i > 0 {
			b.WriteString(", ")
		}
		writeKey(b, op, true)
	}
	if r.Open {
		if len(r.Ops) > 0 {
			b.WriteString(", ")
		}
		b.WriteByte('*')
	}
	b.WriteByte('}')
}

func (t *Type) writeRecord(b *strings.Builder) {
	b.WriteByte('{')
	t.writeFields(b, t.Fields)
	if t.Rest != nil {
		if len(t.Fields) > 0 {
			b.WriteString(", ")
		}
		b.WriteString("*: ")
		t.Rest.write(b)
	}
	b.WriteByte('}')
}

func (t *Type) writeFields(b *strings.Builder, fields []Field) {
	for i, f := range fields {
		if i > 0 {
			b.WriteString(", ")
		}
		writeKey(b, f.Key, false)
		if f.Optional {
			b.WriteByte('?')
		}
		b.WriteString(": ")
		f.Type.write(b)
	}
}

func (t *Type) writeCode(b *strings.Builder) {
	b.WriteString("code")
	if t.Unknown {
		return
	}
	if len(t.Asks.Ops) > 0 || t.Asks.Open {
		t.Asks.write(b)
	}
	b.WriteByte('[')
	t.Gives.write(b)
	if len(t.Expects) > 0 {
		b.WriteString("; ")
		t.writeFields(b, t.Expects)
	}
	b.WriteByte(']')
}

// writeKey writes a key as a word where it is one, and in quotes otherwise.
func writeKey(b *strings.Builder, key string, dots bool) {
	if isWord(key, dots) {
		b.WriteString(key)
		return
	}
	b.WriteString(strconv.Quote(key))
}

// keyText is a key as [writeKey] writes it.
func keyText(key string) string {
	var b strings.Builder
	writeKey(&b, key, false)
	return b.String()
}

func isWord(key string, dots bool) bool {
	for i := 0; i < len(key); i++ {
		if !wordByte(key[i], i == 0, dots) {
			return false
		}
	}
	return key != ""
}

func wordByte(c byte, first, dots bool) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || !first && (c >= '0' && c <= '9' || dots && (c == '.' || c == ':' || c == '-' || c == '*'))
}
