package mcpserver

import (
	"slices"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// example is a call of a tool that can be made at once, with inputs of its types. A
// tool of one parameter is run, which every client can do before it has read the
// list of tools again; one of several is called by its name with each by its own.
// Where no input can be told the call shows the tool.
func example(t *registry.Tool) []byte {
	params, _ := t.Report().Arguments()
	if len(params) > 1 && registry.Listed(t.Name) && t.As == registry.AsTool {
		if call, ok := byName(t, params); ok {
			return call
		}
	}
	args := begin().text("tool", t.Name)
	if len(params) > 0 {
		s := sampler{left: mostSampled, term: true}
		input, ok := s.of(params[0].Type)
		if v, found := declaredSample(t, params[0].Name); found {
			input, ok = v, true
		}
		if !ok {
			return begin().text("name", "describe").raw("arguments", begin().text("name", t.Name).end()).end()
		}
		args = args.raw("input", input)
	}
	return begin().text("name", "run").raw("arguments", args.end()).end()
}

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
		s := sampler{left: mostSampled}
		v, told := s.of(p.Type)
		if sample, found := declaredSample(t, p.Name); found {
			v, told = sample, true
		}
		if !told {
			v, ok = []byte("null"), false
		}
		args = args.raw(p.Name, v)
	}
	return begin().text("name", t.Name).raw("arguments", args.end()).end(), ok
}

// mostSampled is how many parts a sample has.
const mostSampled = 50

// A sampler writes a value of a type.
type sampler struct {
	left int
	// term is set for an input that is read as a term, in which there may be
	// functions and code; without it, it is data. code is set inside quotes.
	term, code bool
	binders    []string // of the types around
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
		return []byte("5"), true
	}
	if t.Kinds == 0 {
		// Of a type of which nothing is known anything is right.
		free := slices.ContainsFunc(t.Vars, func(v string) bool { return !slices.Contains(s.binders, v) })
		return []byte("5"), free
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
	case prim.KindInt:
		return []byte("5"), true
	case prim.KindString:
		return []byte(`"abc"`), true
	case prim.KindBool:
		return []byte("true"), true
	case prim.KindDec:
		return []byte(`{"dec":"1.5"}`), true
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
		v, ok := s.of(t.Result)
		return append(append([]byte(`{"lam":"n","body":`), v...), '}'), ok && s.term
	case prim.KindQuoted:
		was := s.code
		s.code = true
		v, ok := s.of(t.Gives)
		s.code = was
		if t.Unknown || !ok {
			v, ok = []byte(`{"add":[1,2]}`), t.Unknown
		}
		return append(append([]byte(`{"quote":`), v...), '}'), ok && s.term
	}
	return nil, false
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
		_, _, operation := prim.Lookup(f.Key)
		wrap = wrap || s.term && operation
	}
	o = append(append([]byte{'{'}, o...), '}')
	if wrap {
		o = append(append([]byte(`{"record":`), o...), '}')
	}
	return o, true
}
