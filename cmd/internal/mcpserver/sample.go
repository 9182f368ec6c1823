package mcpserver

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// directCall is a call of a tool by its name, with arguments of its types as far as
// they can be told.
func directCall(t *registry.Tool) []byte {
	params, _ := t.Report().Arguments()
	call, _ := byName(t, params)
	return call
}

// byName is the call of a tool by its name; false: an argument has no value, as
// data, of which its type is known.
func byName(t *registry.Tool, params []check.Parameter) (call []byte, ok bool) {
	args, ok := begin(), true
	for _, p := range params {
		v, told := argument(t, p, &sampler{})
		if !told {
			v, ok = []byte("null"), false
		}
		args = args.raw(p.Name, v)
	}
	return begin().text("name", t.Name).raw("arguments", args.end()).end(), ok
}

// argument is a value of a parameter: one that the declared schema lets through,
// where something was declared.
func argument(t *registry.Tool, p check.Parameter, s *sampler) ([]byte, bool) {
	if v, ok := declaredSample(t, p.Name); ok {
		return v, true
	}
	s.left = mostSampled
	return s.of(p.Type)
}

// mostSampled is how many parts a sample has.
const mostSampled = 50

// A sampler writes a value of a type.
type sampler struct {
	left int
	// term is set where there may be functions and code; code is set inside those.
	term, code bool
	binders    []string // of the types around
	// leaf is the values without parts, by their kinds (KindAny: any value is of
	// the type); nil: the commonest.
	leaf func(prim.Kinds) []byte
}

// atom is a value without parts.
func (s *sampler) atom(k prim.Kinds) []byte {
	if s.leaf != nil {
		return s.leaf(k)
	}
	switch k {
	case prim.KindString:
		return []byte(`"abc"`)
	case prim.KindBool:
		return []byte("true")
	case prim.KindDec:
		return []byte("1.5")
	}
	return []byte("5")
}

// of is a value of the type, the simplest of the commonest kind; false: there is
// none, or none that can be told.
func (s *sampler) of(t *check.Type) ([]byte, bool) {
	if s.left--; s.left < 0 {
		return nil, false
	}
	if t == nil {
		return nil, false
	}
	if t.Any || t.Deep && t.Kinds&prim.KindInt != 0 || t.Dynamic && t.Kinds == 0 {
		return s.atom(prim.KindAny), true
	}
	if t.Kinds == 0 {
		// Of a type of which nothing is known anything is right.
		free := slices.ContainsFunc(t.Vars, func(v string) bool { return !slices.Contains(s.binders, v) })
		if !free {
			return nil, false
		}
		return s.atom(prim.KindAny), true
	}
	if t.Name != "" {
		defer func(n int) { s.binders = s.binders[:n] }(len(s.binders))
		s.binders = append(s.binders, t.Name)
	}
	for _, k := range sampled {
		if t.Kinds&k == 0 {
			continue
		}
		if v, ok := s.kind(k, t); ok {
			return v, true
		}
	}
	return nil, false
}

// sampled is the kinds in the order in which they are tried, the commonest first:
// what is wanted may be several, as the operand of length is.
var sampled = []prim.Kinds{
	prim.KindInt, prim.KindList, prim.KindString, prim.KindBool, prim.KindDec, prim.KindRecord,
	prim.KindPair, prim.KindUnit, prim.KindFunction, prim.KindQuoted,
}

func (s *sampler) kind(k prim.Kinds, t *check.Type) ([]byte, bool) {
	switch k {
	case prim.KindInt, prim.KindString, prim.KindBool, prim.KindDec:
		return s.atom(k), true
	case prim.KindUnit:
		return []byte("null"), true
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
		return append(append(append(append([]byte(`{"pair":[`), a...), ','), b...), `]}`...), ok && ok2
	case prim.KindFunction:
		v, ok := s.inCode(t.Result)
		return append(append([]byte(`{"lam":"n","body":`), v...), '}'), ok && s.term
	case prim.KindQuoted:
		v, ok := s.inCode(t.Gives)
		if t.Unknown || !ok {
			v, ok = []byte(`{"add":[1,2]}`), t.Unknown
		}
		return append(append([]byte(`{"quote":`), v...), '}'), ok && s.term
	}
	return nil, false
}

// inCode is a value that stands in code.
func (s *sampler) inCode(t *check.Type) ([]byte, bool) {
	defer func(was bool) { s.code = was }(s.code)
	s.code = true
	return s.of(t)
}

// list is a list with an item or a few, or none where an item can't be told.
func (s *sampler) list(t *check.Type) []byte {
	if t.Deep {
		return []byte("[1,2,3]")
	}
	item, ok := s.of(t.Item)
	switch {
	case !ok:
		return []byte("[]")
	case string(item) == "5":
		return []byte("[1,2,3]")
	}
	return append(append([]byte{'['}, item...), ']')
}

// record is the fields, also those that may be missing: the code looks at them.
func (s *sampler) record(t *check.Type) ([]byte, bool) {
	o := object(nil)
	wrap := s.code
	for _, f := range t.Fields {
		v, ok := s.of(f.Type)
		switch {
		case !ok && f.Optional:
			continue
		case !ok:
			return nil, false
		}
		if len(o) > 0 {
			o = append(o, ',')
		}
		o = append(append(append(o, encode(f.Key)...), ':'), v...)
	}
	o = append(append([]byte{'{'}, o...), '}')
	if wrap {
		o = append(append([]byte(`{"record":`), o...), '}')
	}
	return o, true
}
