package check

import (
	"encoding/json"
	"fmt"
	"slices"
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

// The bounds of a type that is read.
const (
	maxTypeBytes = 1 << 20
	maxTypeDepth = 1_000
)

// ParseType reads a type in the notation: t.String() gives t, of at most a
// megabyte and a thousand parts inside each other.
func ParseType(s string) (*Type, error) { return parseType(s, false) }

func parseType(s string, inAnyOrder bool) (*Type, error) {
	if len(s) > maxTypeBytes {
		return nil, fmt.Errorf("check: a type of %d bytes, more than %d", len(s), maxTypeBytes)
	}
	p := &typeParser{src: s, inAnyOrder: inAnyOrder}
	t := p.whole()
	if p.space(); p.err == nil && p.pos < len(p.src) {
		p.fail("the end")
	}
	if p.err != nil {
		return nil, p.err
	}
	return t, nil
}

type typeParser struct {
	src   string
	pos   int
	depth int
	err   error
	// inAnyOrder is set where the keys of records may be.
	inAnyOrder bool
}

func (p *typeParser) fail(want string) {
	if p.err == nil {
		p.err = fmt.Errorf("check: byte %d of the type: expected %s", p.pos, want)
	}
}

func (p *typeParser) space() {
	for p.pos < len(p.src) && p.src[p.pos] == ' ' {
		p.pos++
	}
}

// eat takes what comes next, if it is s.
func (p *typeParser) eat(s string) bool {
	p.space()
	if p.err != nil || !strings.HasPrefix(p.src[p.pos:], s) {
		return false
	}
	p.pos += len(s)
	return true
}

// next takes s where it stands without a space before it.
func (p *typeParser) next(s string) bool {
	return p.err == nil && strings.HasPrefix(p.src[p.pos:], s) && p.eat(s)
}

func (p *typeParser) want(s string) {
	if !p.eat(s) {
		p.fail(strconv.Quote(s))
	}
}

// word takes a word, or gives "" where there is none.
func (p *typeParser) word() string {
	p.space()
	start := p.pos
	for p.pos < len(p.src) && wordByte(p.src[p.pos], p.pos == start, false) {
		p.pos++
	}
	return p.src[start:p.pos]
}

// whole reads a type: one with a name, a function, or a union.
func (p *typeParser) whole() *Type {
	if p.depth++; p.depth > maxTypeDepth {
		p.fail("a type that is less deep")
	}
	defer func() { p.depth-- }()
	if p.err != nil {
		return Nothing
	}
	p.space()
	start := p.pos
	if p.word() == "rec" {
		name := p.word()
		if !isName(name) {
			p.fail("a name")
		}
		p.want(".")
		t := p.whole()
		if t.Name != "" {
			p.fail("one name")
		}
		named := *t
		named.Name = name
		return &named
	}
	p.pos = start
	all := p.word() == "any" && p.word() == "with"
	if !all {
		p.pos = start
	}
	t := &Type{}
	parts := 0
	for {
		alone := p.part(t)
		parts++
		if alone && parts == 1 && !all {
			// A function without parentheses around it is all there is.
			return t
		}
		if alone || p.err != nil {
			p.fail("parentheses around a function among others")
			return t
		}
		if !p.eat("|") {
			break
		}
	}
	slices.Sort(t.Vars)
	if all {
		t.fillUp()
	}
	return t
}

// fillUp makes a type that of all values, but for the kinds that it has.
func (t *Type) fillUp() {
	missing := prim.KindAny &^ t.Kinds
	t.Kinds = prim.KindAny
	if missing&prim.KindList != 0 {
		t.Item = Any
	}
	if missing&prim.KindPair != 0 {
		t.First, t.Second = Any, Any
	}
	if missing&prim.KindRecord != 0 {
		t.Rest = Any
	}
	if missing&prim.KindFunction != 0 {
		t.Param, t.Result = Nothing, Any
	}
	if missing&prim.KindQuoted != 0 {
		t.Unknown = true
	}
	if missing&prim.KindContinuation != 0 {
		t.Next = Any
	}
}

// part reads one part of a union into t, and says whether it was a function
// without parentheses.
func (p *typeParser) part(t *Type) (alone bool) {
	p.space()
	switch {
	case p.eat("?"):
		t.Dynamic = true
		return false
	case p.eat("{"):
		p.kind(t, prim.KindRecord)
		p.record(t)
		return false
	case p.eat("("):
		return p.function(t)
	}
	start := p.pos
	switch w := p.word(); w {
	case "int", "dec", "bool", "string", "unit":
		p.kind(t, prim.KindNamed(w))
	case "num":
		p.kind(t, prim.KindNumber)
	case "any", "data", "json":
		p.kind(t, map[string]prim.Kinds{"any": prim.KindAny, "data": prim.KindData, "json": jsonKinds}[w])
		t.Any, t.Deep = w == "any", w != "any"
	case "nothing":
	case "list":
		p.kind(t, prim.KindList)
		p.want("[")
		t.Item = p.whole()
		p.want("]")
	case "pair":
		p.kind(t, prim.KindPair)
		p.want("[")
		t.First = p.whole()
		p.want(",")
		t.Second = p.whole()
		p.want("]")
	case "cont":
		p.kind(t, prim.KindContinuation)
		p.want("[")
		t.Next = p.whole()
		p.want("]")
	case "code":
		p.kind(t, prim.KindQuoted)
		p.code(t)
	default:
		if !isName(w) {
			p.pos = start
			p.fail("a type")
			return false
		}
		t.Vars = append(t.Vars, w)
	}
	return false
}

// kind adds a kind that isn't there yet.
func (p *typeParser) kind(t *Type, k prim.Kinds) {
	if t.Kinds&k != 0 {
		p.fail("each kind once")
	}
	t.Kinds |= k
}

func isName(w string) bool {
	return w != "" && w[0] >= 'a' && w[0] <= 'z' && strings.Trim(w[1:], "0123456789") == ""
}

// function reads what follows an opening parenthesis: a parameter and what
// comes of it, or a function within.
func (p *typeParser) function(t *Type) (alone bool) {
	inner := p.whole()
	p.want(")")
	if !p.eat("->") {
		if !inner.IsFunction() || inner.Name != "" {
			p.fail(`"->"`)
			return false
		}
		p.kind(t, prim.KindFunction)
		t.Param, t.Result, t.Effects = inner.Param, inner.Result, inner.Effects
		return false
	}
	p.kind(t, prim.KindFunction)
	t.Param = inner
	if p.next("{") {
		t.Effects = p.row()
	}
	t.Result = p.whole()
	return true
}

func (p *typeParser) row() Row {
	var r Row
	for p.err == nil {
		if p.eat("*") {
			r.Open = true
			p.want("}")
			break
		}
		r.Ops = append(r.Ops, p.key(true))
		if p.eat("}") {
			break
		}
		p.want(",")
	}
	if !slices.IsSorted(r.Ops) {
		p.fail("operations in their order")
	}
	return r
}

// key reads a word, or a string in quotes.
func (p *typeParser) key(dots bool) string {
	p.space()
	if p.pos < len(p.src) && p.src[p.pos] == '"' {
		q, err := strconv.QuotedPrefix(p.src[p.pos:])
		if err != nil {
			p.fail("a key in quotes")
			return ""
		}
		p.pos += len(q)
		s, _ := strconv.Unquote(q)
		return s
	}
	start := p.pos
	for p.pos < len(p.src) && wordByte(p.src[p.pos], p.pos == start, dots) {
		p.pos++
	}
	if p.pos == start {
		p.fail("a key")
	}
	return p.src[start:p.pos]
}

func (p *typeParser) record(t *Type) {
	if p.eat("}") {
		return
	}
	for p.err == nil {
		if p.eat("*") {
			p.want(":")
			t.Rest = p.whole()
			p.want("}")
			return
		}
		t.Fields = p.field(t.Fields)
		if p.eat("}") {
			return
		}
		p.want(",")
	}
}

// field reads a field behind those that are there.
func (p *typeParser) field(fields []Field) []Field {
	f := Field{Key: p.key(false)}
	f.Optional = p.eat("?")
	p.want(":")
	at, isTwice := slices.BinarySearchFunc(fields, f.Key, func(g Field, key string) int { return strings.Compare(g.Key, key) })
	switch {
	case isTwice && p.inAnyOrder:
		p.fail("each key once")
	case isTwice, at < len(fields) && !p.inAnyOrder:
		p.fail("keys in their order")
	}
	f.Type = p.whole()
	return slices.Insert(fields, at, f)
}

func (p *typeParser) code(t *Type) {
	t.Unknown = true
	effects := p.next("{")
	if effects {
		t.Asks = p.row()
	}
	if !p.next("[") {
		if effects {
			p.fail(`"["`)
		}
		return
	}
	t.Unknown = false
	t.Gives = p.whole()
	if p.eat("]") {
		return
	}
	p.want(";")
	for p.err == nil {
		t.Expects = p.field(t.Expects)
		if p.eat("]") {
			return
		}
		p.want(",")
	}
}
