package check_test

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A sampler makes terms of values of a type.
type sampler struct {
	draw  gen.Draw
	deep  int
	names map[string]*check.Type
}

var sampled = []prim.Kinds{
	prim.KindInt, prim.KindDec, prim.KindBool, prim.KindString, prim.KindUnit, prim.KindList,
	prim.KindPair, prim.KindRecord, prim.KindFunction, prim.KindQuoted,
}

// term gives JSON for a value of the type, and false where there is none, or
// none that a term can say.
func (s *sampler) term(t *check.Type) (string, bool) {
	if t == nil {
		return "null", false
	}
	if t.Name != "" {
		if s.names == nil {
			s.names = map[string]*check.Type{}
		}
		s.names[t.Name] = t
	}
	if s.deep--; s.deep < -12 {
		return "null", false
	}
	defer func() { s.deep++ }()
	var choices []func() (string, bool)
	for _, v := range t.Vars {
		choices = append(choices, func() (string, bool) {
			if named := s.names[v]; named != nil {
				return s.term(named)
			}
			return s.term(check.Any)
		})
	}
	if t.Dynamic {
		choices = append(choices, func() (string, bool) { return s.term(check.Any) })
	}
	part := t
	if t.Any || t.Deep {
		part = &check.Type{Kinds: t.Kinds, Item: t, First: t, Second: t, Rest: t, Param: check.Nothing, Result: t, Unknown: true}
	}
	for _, k := range sampled {
		if t.Kinds&k != 0 && (s.deep > 0 || k <= prim.KindList || k == prim.KindDec) {
			choices = append(choices, func() (string, bool) { return s.kind(k, part) })
		}
	}
	if len(choices) == 0 {
		for _, k := range sampled {
			if t.Kinds&k != 0 {
				choices = append(choices, func() (string, bool) { return s.kind(k, part) })
			}
		}
	}
	for start, i := s.draw(len(choices)+1), 0; i < len(choices); i++ {
		if src, ok := choices[(start+i)%len(choices)](); ok {
			return src, true
		}
	}
	return "null", false
}

func (s *sampler) kind(k prim.Kinds, t *check.Type) (string, bool) {
	switch k {
	case prim.KindInt:
		return strconv.Itoa(s.draw(7) - 1), true
	case prim.KindDec:
		return `{"dec":"1.5"}`, true
	case prim.KindBool:
		return strconv.FormatBool(s.draw(2) == 0), true
	case prim.KindString:
		return []string{`""`, `"a"`, `"b"`, `"42"`}[s.draw(4)], true
	case prim.KindUnit:
		return "null", true
	case prim.KindList:
		list := "["
		for i := range s.draw(4) {
			item, ok := s.term(t.Item)
			if !ok {
				break
			}
			if i > 0 {
				list += ","
			}
			list += item
		}
		return list + "]", true
	case prim.KindPair:
		a, okA := s.term(t.First)
		b, okB := s.term(t.Second)
		return `{"pair":[` + a + "," + b + `]}`, okA && okB
	case prim.KindRecord:
		return s.record(t)
	case prim.KindFunction:
		body, ok := s.term(t.Result)
		if !ok {
			body = `{"raise":1}`
		}
		return `{"lam":"z","body":` + body + "}", true
	case prim.KindQuoted:
		return []string{`{"quote":1}`, `{"quote":{"add":[1,{"var":"x"}]}}`}[s.draw(2)], t.Unknown
	}
	return "", false
}

func (s *sampler) record(t *check.Type) (string, bool) {
	src, n := `{"record":{`, 0
	field := func(key string, t *check.Type) bool {
		v, ok := s.term(t)
		if !ok {
			return false
		}
		if n++; n > 1 {
			src += ","
		}
		k, _ := json.Marshal(key)
		src += string(k) + ":" + v
		return true
	}
	has := map[string]bool{}
	for _, f := range t.Fields {
		has[f.Key] = true
		if f.Optional && s.draw(2) == 0 {
			continue
		}
		if !field(f.Key, f.Type) && !f.Optional {
			return "", false
		}
	}
	if t.Rest != nil {
		for _, key := range []string{"k", "a", "zz"} {
			if !has[key] && s.draw(3) == 0 {
				field(key, t.Rest)
			}
		}
	}
	return src + "}}", true
}

// misfit says why a value is not of a type; empty: it is.
func misfit(v value.Value, t *check.Type, names map[string]*check.Type) string {
	if t.Name != "" {
		names[t.Name] = t
	}
	if t.Any || t.Dynamic {
		return ""
	}
	for _, name := range t.Vars {
		if named := names[name]; named == nil || misfit(v, named, names) == "" {
			return ""
		}
	}
	part := t
	if t.Deep {
		part = &check.Type{Kinds: t.Kinds, Item: t, First: t, Second: t, Rest: t, Unknown: true}
	}
	if !part.Kinds.Has(v) {
		return fmt.Sprintf("a %s is not of type %s", v.Type(), t)
	}
	of := func(v value.Value, t *check.Type) string {
		if t == nil {
			t = check.Nothing
		}
		return misfit(v, t, names)
	}
	switch v := v.(type) {
	case *value.Cons:
		items, _ := value.Slice(v)
		for _, item := range items {
			if why := of(item, part.Item); why != "" {
				return "in a list: " + why
			}
		}
	case *value.Pair:
		if why := of(v.First, part.First); why != "" {
			return "first: " + why
		}
		if why := of(v.Second, part.Second); why != "" {
			return "second: " + why
		}
	case *value.Continuation:
		if why := of(v.Input, part.Next); why != "" {
			return "next input: " + why
		}
	case *value.Record:
		typed := map[string]*check.Type{}
		for _, f := range part.Fields {
			typed[f.Key] = f.Type
			if _, ok := has(v, f.Key); !ok && !f.Optional {
				return "the field " + f.Key + " is missing"
			}
		}
		for _, f := range v.Fields {
			ft, ok := typed[f.Key]
			if !ok {
				ft = part.Rest
			}
			if why := of(f.Value, ft); why != "" {
				return f.Key + ": " + why
			}
		}
	}
	return ""
}

func has(r *value.Record, key string) (value.Value, bool) {
	for _, f := range r.Fields {
		if f.Key == key {
			return f.Value, true
		}
	}
	return nil, false
}
