package cost

import "github.com/mcp-pif/mcp-pif/core/prim"

// grown returns what a row gives, and its steps, by what it declares of its growth.
func (a *analyser) grown(r *prim.Row, of *prim.Type, g *prim.Growth, args []*aval) (v *aval, steps poly, ok bool) {
	read := size{}
	for _, x := range args {
		if x.kind == isString {
			read = read.plus(x.n)
		} else {
			read = read.plus(a.total(x))
		}
	}
	bytes, items := a.boundSize(g.Bytes, args), a.boundSize(g.Items, args)
	if of == nil {
		of = &prim.Type{Kinds: r.Result}
	}
	v = a.ofType(of, func(k prim.Kinds) *aval {
		switch k {
		case prim.KindString:
			return aText(bytes)
		case prim.KindInt, prim.KindDec:
			n := &aval{kind: isNumber, abs: a.boundSize(g.Value, args), words: a.boundSize(g.Words, args)}
			if len(g.Value) == 0 {
				n.abs = infinite
			} else if len(g.Words) == 0 {
				n.words = infinite
			}
			if k == prim.KindDec {
				n.frac = n.words
			}
			return n
		case prim.KindList:
			return list(items, nothing)
		case prim.KindRecord:
			return &aval{kind: isRecord, n: items, abs: bytes, item: nothing, fields: map[string]*aval{}}
		}
		return &aval{kind: isWithin, n: bytes}
	})
	if r.Result == prim.KindString {
		read = read.plus(bytes)
	}
	steps, ok = perBytes(read, 512)
	for _, s := range []struct {
		size
		many uint64
	}{{items, 16}, {a.boundSize(g.Steps, args), 1}} {
		p, finite := perBytes(s.size, s.many)
		steps, ok = steps.plus(p), ok && finite
	}
	return v, steps, ok
}

// ofType returns the values of a type, of kinds that make gives.
func (a *analyser) ofType(t *prim.Type, make func(prim.Kinds) *aval) *aval {
	if t.Kinds&prim.KindData == prim.KindData {
		return make(prim.KindData)
	}
	v := nothing
	for k := prim.KindInt; k < prim.KindName; k <<= 1 {
		switch {
		case t.Kinds&k == 0:
		case k == prim.KindBool:
			v = a.join(v, aBool)
		case k == prim.KindUnit:
			v = a.join(v, aUnit)
		default:
			x := make(k)
			if k == prim.KindList && t.Item != nil {
				x.item = a.ofType(t.Item, make)
			}
			if k == prim.KindRecord && t.Rest != nil {
				x.item = a.ofType(t.Rest, make)
			}
			for _, f := range t.Fields {
				if k == prim.KindRecord {
					x.fields[f.Key] = a.ofType(f.Type, make)
				}
			}
			v = a.join(v, x)
		}
	}
	return v
}

// boundSize returns a bound whose measures are those of operands.
func (a *analyser) boundSize(b prim.Bound, args []*aval) size {
	sum := size{}
	for _, p := range b {
		s := exactly(p.Times)
		for _, m := range p.Of {
			s = s.times(a.measureOf(m, args))
		}
		if p.Per > 1 && !s.inf {
			c, rest := s.flat().split()
			if c == over {
				return infinite
			}
			s = exactly(c / p.Per)
			if len(rest) > 0 {
				s = exactly(c/p.Per + 1).plus(sizeOf(rest.part(1, p.Per)))
			}
		}
		sum = sum.plus(s)
	}
	return sum
}

func (a *analyser) measureOf(m prim.Measure, args []*aval) size {
	if m.Operand >= len(args) {
		return size{}
	}
	x := args[m.Operand]
	switch m.What {
	case prim.BytesOf:
		return a.asBytes(x)
	case prim.ItemsOf:
		n, _ := a.asList(x)
		fields, _ := a.fields(x)
		return n.max(fields)
	case prim.ValueOf:
		return a.asNumber(x).abs
	case prim.WordsOf:
		return a.wordsOf(a.asNumber(x)).plus(exactly(1))
	}
	return a.total(x)
}
