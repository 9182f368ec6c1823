package inputs

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Pools are values without parts, the commonest first. A sample of turn n takes those
// from the n-th on.
type pools struct {
	ints, decs, bools, texts, anys [][]byte
	// compared is the words that a variable or a field is compared with, by its name, and
	// param the name of the first parameter.
	compared map[string][][]byte
	param    string
}

func commonPools() *pools {
	return &pools{
		ints:  listed("5", "2", "3", "1", "10", "4", "0", "-1"),
		decs:  listed("1.5", "0.25", "100.0"),
		bools: listed("true", "false"),
		texts: listed(`"abc"`, `"b"`, `"x"`, `"a b c"`, `"b"`, `"5"`, `"2026-01-15"`),
		anys:  listed("[3,1,4,2]", `{"abc":5,"b":[2]}`, "true", "null"),
	}
}

func listed(all ...string) [][]byte {
	values := make([][]byte, len(all))
	for i, s := range all {
		values[i] = []byte(s)
	}
	return values
}

// PoolsFor is pools with what a program compares with.
func PoolsFor(p *core.Program) *pools {
	c := commonPools()
	c.compared = map[string][][]byte{}
	if params := p.Params(); len(params) > 0 {
		c.param = params[0]
	}
	words, numbers := c.literals(p.Term())
	for _, n := range numbers {
		c.ints = append(c.ints, strconv.AppendInt(nil, n, 10), strconv.AppendInt(nil, n+1, 10))
	}
	slices.Reverse(words)
	for _, w := range words {
		at := 1
		if !strings.ContainsFunc(w, unicode.IsLetter) { // a sign
			at = len(c.texts)
		}
		c.texts = slices.Insert(c.texts, at, wire.Encode(w))
	}
	return c
}

// named is texts for what has such a name, or one that ends so. Those of dates are for texts alone: a number is as likely.
var named = map[string][]string{
	"name": people, "customer": people, "author": people, "owner": people, "user": people, "person": people, "player": people,
	"city": {"Paris", "Rome"}, "country": {"France", "Italy"}, "email": {"ann@example.com", "bob@example.com"}, "url": {"https://example.com/a", "https://example.com/b"},
	"path": {"docs/a.txt", "docs/b.txt"}, "file": {"a.txt", "b.txt"}, "title": {"First steps", "More of it"}, "category": {"food", "books"}, "tag": {"work", "home"},
	"date": dates, "start": dates, "from": dates, "since": dates, "end": later, "to": later, "until": later, "due": later, "deadline": later,
}

var people, dates, later = []string{"Ann", "Bob"}, []string{"2026-01-15", "2026-03-02"}, []string{"2026-02-01", "2026-03-09"}

// textNamed is a text for the value of t that has a name; nil: none is known.
func (s *sampler) textNamed(name string, t *check.Type) []byte {
	name = strings.ToLower(name[strings.LastIndexByte(name, '_')+1:])
	of := named[name]
	free := t.Any || t.Kinds == 0 || t.Kinds&prim.KindInt != 0
	if of == nil || s.turn > 3 || t.Kinds != 0 && t.Kinds&prim.KindString == 0 || free && of[0][0] == '2' {
		return nil
	}
	s.names[name]++
	return wire.Encode(of[(s.names[name]-1)%len(of)])
}

// noInput is the operands that are no part of an input where they are written out, and part of
// the rows that give a part of a value by its name.
var noInput, partOf = []string{"pattern", "layout", "key"}, []string{"get", "at"}

// literals is the first strings and integers in code that may be of its input.
func (c *pools) literals(root term.Term) (words []string, numbers []int64) {
	const maxTerms, maxLiterals, maxLength = 2000, 6, 40
	left := maxTerms
	skip := map[term.Term]bool{}
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		if left--; left < 0 {
			return false
		}
		switch t := t.(type) {
		case *term.Str:
			if len(words) < maxLiterals && !skip[t] && strings.TrimSpace(t.Value) != "" && len(t.Value) <= maxLength && !slices.Contains(words, t.Value) {
				words = append(words, t.Value)
			}
		case *term.Int:
			if len(numbers) < maxLiterals && t.Value < 1<<60 && !slices.Contains(numbers, t.Value) {
				numbers = append(numbers, t.Value)
			}
		case *term.Prim:
			row := prim.Get(t.ID)
			for i, x := range t.Args {
				skip[x] = len(row.Params) > 0 && slices.Contains(noInput, row.Params[min(i, len(row.Params)-1)].Name)
			}
			if len(t.Args) == 2 && (row.Name == "equal" || row.Name == "contains") {
				c.compares(t.Args[0], t.Args[1], skip)
				c.compares(t.Args[1], t.Args[0], skip)
			}
		}
		return term.Children(t, walk)
	}
	walk(root)
	return words, numbers
}

// compares notes what a variable or a field is compared with, and skips the names of types.
func (c *pools) compares(x, with term.Term, skip map[term.Term]bool) {
	literals := []term.Term{with}
	if l, ok := with.(*term.List); ok {
		literals = l.Items
	}
	name := ""
	switch x := x.(type) {
	case *term.Var:
		name = x.Name
	case *term.Prim:
		switch row := prim.Get(x.ID); {
		case row.Name == "type_of":
			for _, l := range literals {
				skip[l] = true
			}
		case slices.Contains(partOf, row.Name):
			if key, ok := x.Args[1].(*term.Str); ok {
				name = key.Value
			}
		}
	}
	for _, l := range literals {
		if s, ok := l.(*term.Str); ok && name != "" && strings.ContainsFunc(s.Value, unicode.IsLetter) && len(c.compared[name]) < maxCompared {
			c.compared[name] = append(c.compared[name], wire.Encode(s.Value))
		}
	}
}

// maxCompared is how many words are tried that one name is compared with.
const maxCompared = 6

// Sample is an input for the parameters, of the schema that the tool declares where
// it declares one; false: a parameter takes what can't be made up.
func Sample(t *registry.Tool, params []check.Parameter, c *pools, turn int) ([]byte, bool) {
	var declared *check.Declared
	if t != nil {
		declared, _ = t.Narrowed()
	}
	s := &sampler{pools: c, turn: turn, taken: map[prim.Kinds]int{}, names: map[string]int{}, left: maxSampled}
	o, v := wire.Begin(), []byte("null")
	for _, p := range params {
		known := false
		if declared != nil {
			v, known = declared.Sample(p.Name)
		}
		if !known {
			s.left, s.name = maxSampled, p.Name
			if len(params) == 1 {
				s.name = c.param
			}
			if v, known = s.of(p.Type); !known {
				return nil, false
			}
		}
		o = o.Raw(p.Name, v)
	}
	if len(params) < 2 {
		return v, true
	}
	return o.End(), true
}

// maxOpen is how deep in a sample records have names that the code doesn't know.
const maxOpen = 4

// maxSampled is how many parts a sample of a parameter has.
const maxSampled = 50

// A sampler writes values of types.
type sampler struct {
	*pools
	turn    int
	name    string             // of the parameter or field whose value comes next
	item    string             // of the items of the list that comes next
	names   map[string]int     // texts, by the names that they are for
	taken   map[prim.Kinds]int // leaves, by their kinds
	left    int
	depth   int
	unions  int      // around
	binders []string // of the types around
	code    bool     // inside functions and code
}

// leaf is a value without parts; KindAny: of any type, but in one turn all of them are
// of one, so that they can be compared.
func (s *sampler) leaf(k prim.Kinds) []byte {
	pool, from := s.anys, s.turn
	switch {
	case k != prim.KindAny:
	case s.turn == 0:
		k = prim.KindInt
	case s.turn == 5: // a smaller one
		k, from = prim.KindInt, 1
	case s.turn != 3 && s.turn != 4:
		k = prim.KindString
	}
	switch k {
	case prim.KindInt:
		pool = s.ints
	case prim.KindDec:
		pool = s.decs
	case prim.KindBool:
		pool = s.bools
	case prim.KindString:
		pool = s.texts
	case prim.KindUnit:
		return []byte("null")
	case prim.KindAny:
		from -= 3
	}
	s.taken[k]++
	return pool[(from+s.taken[k]-1)%len(pool)]
}

// sampled is the kinds in the order in which they are tried, the commonest first.
var sampled = []prim.Kinds{
	prim.KindInt, prim.KindList, prim.KindString, prim.KindBool, prim.KindDec, prim.KindRecord,
	prim.KindPair, prim.KindFunction, prim.KindQuoted,
}

// of is a value of the type; false: there is none, or none that can be made up.
func (s *sampler) of(t *check.Type) ([]byte, bool) {
	if s.left--; s.left < 0 || t == nil {
		return nil, false
	}
	s.depth++
	defer func() { s.depth-- }()
	name, words := s.name, s.compared[s.name]
	s.item = strings.TrimSuffix(name, "s")
	if s.name = ""; len(words) > 0 && (t.Wanted() == prim.KindString || t.Kinds&^prim.KindUnit == prim.KindString && !t.Deep) {
		return words[s.turn%len(words)], true
	}
	k := t.Wanted()
	if k == 0 || k == prim.KindString {
		if text := s.textNamed(name, t); text != nil {
			return text, true
		}
	}
	if k != 0 {
		return s.leaf(k &^ prim.KindDec), true
	}
	if t.Any || t.Deep && t.Kinds&prim.KindInt != 0 || t.Dynamic && t.Kinds == 0 {
		return s.leaf(prim.KindAny), true
	}
	if t.Kinds == 0 {
		// Of a type of which nothing is known anything is right.
		free := slices.ContainsFunc(t.Vars, func(v string) bool { return !slices.Contains(s.binders, v) })
		if !free {
			return nil, false
		}
		return s.leaf(prim.KindAny), true
	}
	if t.Name != "" {
		defer func(n int) { s.binders = s.binders[:n] }(len(s.binders))
		s.binders = append(s.binders, t.Name)
	}
	var kinds []prim.Kinds
	for _, k := range sampled {
		if t.Kinds&k != 0 && !(k == prim.KindDec && t.Kinds&prim.KindInt != 0) {
			kinds = append(kinds, k)
		}
	}
	if t.Kinds == prim.KindAny {
		// What the code looks into comes first.
		var first []prim.Kinds
		if len(t.Fields) > 0 || isKnown(t.Rest) {
			first = append(first, prim.KindRecord)
		}
		if isKnown(t.First) || isKnown(t.Second) {
			first = append(first, prim.KindPair)
		}
		if isKnown(t.Item) {
			first = append(first, prim.KindList)
		}
		kinds = append(first, kinds...)
	}
	from := s.turn
	if len(kinds) > 1 {
		from += s.unions // within a part of another kind, so that recursive ones end
		s.unions++
		defer func() { s.unions-- }()
	}
	for i := range kinds {
		if v, ok := s.kind(kinds[(from+i)%len(kinds)], t); ok {
			return v, true
		}
	}
	if t.Kinds&prim.KindUnit != 0 { // which says the least
		return []byte("null"), true
	}
	return nil, false
}

func isKnown(t *check.Type) bool { return t != nil && !t.Any }

func (s *sampler) kind(k prim.Kinds, t *check.Type) ([]byte, bool) {
	switch k {
	case prim.KindInt, prim.KindString, prim.KindBool, prim.KindDec:
		return s.leaf(k), true
	case prim.KindList:
		return s.list(t), true
	case prim.KindRecord:
		return s.record(t)
	case prim.KindPair:
		if t.Deep {
			return []byte(`{"pair":[1,2]}`), true
		}
		a, ok := s.of(t.First)
		b, ok2 := s.of(t.Second)
		return slices.Concat([]byte(`{"pair":[`), a, []byte{','}, b, []byte(`]}`)), ok && ok2
	case prim.KindFunction:
		if t.Result != nil && (t.Result.Any || t.Result.Kinds == 0 || t.Result.Kinds&prim.KindInt != 0) && s.turn%2 == 0 {
			return []byte(`{"lam":"n","body":{"add":[{"var":"n"},1]}}`), true
		}
		v, ok := s.inCode(t.Result)
		return slices.Concat([]byte(`{"lam":"n","body":`), v, []byte{'}'}), ok
	case prim.KindQuoted:
		v, ok := s.inCode(t.Gives)
		if t.Unknown || !ok {
			v, ok = []byte(`{"add":[1,2]}`), t.Unknown
		}
		return slices.Concat([]byte(`{"quote":`), v, []byte{'}'}), ok
	}
	return nil, false
}

// inCode is a value that stands in code.
func (s *sampler) inCode(t *check.Type) ([]byte, bool) {
	defer func(was bool) { s.code = was }(s.code)
	s.code = true
	return s.of(t)
}

// list is a list with two items or a few, or none where an item can't be made up.
func (s *sampler) list(t *check.Type) []byte {
	free := t.Item == nil || t.Item.Any || t.Item.Kinds == 0 || t.Item.Kinds&prim.KindInt != 0
	item := s.item
	if t.Deep || free && s.turn%2 == 0 && t.Kinds != prim.KindAny && named[item] == nil {
		return []byte("[3,1,4,2]")
	}
	s.name = item
	one, ok := s.of(t.Item)
	s.name = item
	two, ok2 := s.of(t.Item)
	switch {
	case ok && ok2:
	case free && s.turn%4 == 1: // of the type that the list is part of, perhaps a number
		return []byte("[3,1,4,2]")
	default:
		return []byte("[]")
	}
	return slices.Concat([]byte{'['}, one, []byte{','}, two, []byte{']'})
}

// record is the fields, also those that may be missing: the code looks at them. Where
// it knows none, they have the names that texts have, as a key does that is given
// beside the record.
func (s *sampler) record(t *check.Type) ([]byte, bool) {
	o := wire.Begin()
	for _, f := range t.Fields {
		s.name = f.Key
		if v, ok := s.of(f.Type); ok {
			o = o.Raw(f.Key, v)
		} else if !f.Optional {
			return nil, false
		}
	}
	if len(t.Fields) == 0 && t.Rest != nil && s.depth < maxOpen {
		keys := [][]byte{s.texts[s.turn%len(s.texts)], s.texts[0]}
		if s.turn == 0 {
			keys[1] = s.texts[1]
		}
		taken := s.taken[prim.KindString]
		s.taken[prim.KindString] += len(keys) // the values are other texts
		for i, key := range keys {
			var name string
			if v, ok := s.of(t.Rest); ok && json.Unmarshal(key, &name) == nil && (i == 0 || !bytes.Equal(key, keys[0])) {
				o = o.Raw(name, v)
			}
		}
		s.taken[prim.KindString] = taken
	}
	if o = o.End(); s.code {
		o = wire.Begin().Raw("record", o).End()
	}
	return o, true
}
