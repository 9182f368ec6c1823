package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

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
	w := p.word()
	switch w {
	case "int", "dec", "bool", "string", "unit":
		p.kind(t, kindNamed(w))
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
	if w == "" || w[0] < 'a' || w[0] > 'z' {
		return false
	}
	return strings.Trim(w[1:], "0123456789") == ""
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
