package check

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// rules is the strict rows whose results have parts that the table's kinds
// don't tell, or that demand more of their operands than a kind.
var rules map[string]func(*use) *variable

func init() {
	rules = map[string]func(*use) *variable{
		"ratio": func(u *use) *variable {
			u.rest(0)
			return u.c.fixed(u.c.basic[prim.KindInt].lower[0], u.c.quotient)
		},
		"add": numeric, "sub": numeric, "mul": numeric, "div": dividing,
		"equal": comparing, "compare": comparing,
		"nil":  func(u *use) *variable { return u.c.fixed(u.c.empty) },
		"cons": cons, "head": itemOf, "nth": itemOf, "tail": partOfList, "slice": partOfList,
		"at": indexing, "push": adding, "set_nth": adding, "contains": contains, "index_of": contains, "last_index_of": contains,
		"pair": func(u *use) *variable { return u.c.fixed(u.c.pairOf(u.args[0], u.args[1])) },
		"fst":  partOfPair(func(s *shape) *variable { return s.first }),
		"snd":  partOfPair(func(s *shape) *variable { return s.second }),
		"get":  getting, "put": putting, "del": deleting, "merge": merging,
		"values": values, "entries": entries, "from_entries": fromEntries,
		"add_time": ofKind, "raise": raising, "no_match": func(u *use) *variable { return u.c.variable() },
		"to_json": toJSON, "to_json_indent": toJSON, "to_csv": toCSV, "parse_json": parseJSON,
		"to_data": toData, "to_code": toCode, "analyze": analyze,
		"infer": inferring, "cost": costing, "normalize": normalizing, "equivalent": judging,
	}
}

// numeric gives an integer of two integers, and a decimal where one is one.
func numeric(u *use) *variable {
	c, res := u.c, u.c.variable()
	var has [2]prim.Kinds
	var decs [2][]*shape
	for i := range 2 {
		u.take(i, func(s *shape) {
			k := s.kind
			if s.dynamic {
				k = prim.KindNumber
			}
			has[i] |= k
			if k&prim.KindDec != 0 {
				decs[i] = append(decs[i], s)
			}
			if has[0]&has[1]&prim.KindInt != 0 {
				c.add(res, c.basic[prim.KindInt].lower[0])
			}
			for j := range 2 {
				if has[1-j] == 0 {
					continue
				}
				for _, d := range decs[j] {
					c.add(res, c.decimalOf(d))
				}
				decs[j] = nil
			}
		})
	}
	return res
}

// dividing marks a division where one operand is a decimal: it rounds nothing down.
func dividing(u *use) *variable {
	for _, v := range u.args {
		u.c.watches(v, prim.KindNumber, func(s *shape) {
			if s.kind == prim.KindDec && s.seed == nil && !s.dynamic && s != u.c.quotient {
				u.c.decimals[u.t] = true
			}
		})
	}
	return numeric(u)
}

// decimalOf is the decimal that is computed with another. Where that is a
// caller's, so is the cause of the result: if it fails at a test, the caller
// must not give a decimal.
func (c *checker) decimalOf(d *shape) *shape {
	if d == c.quotient {
		return d
	}
	if d.seed == nil {
		return c.basic[prim.KindDec].lower[0]
	}
	if d.seed.decimal == nil {
		s := c.shape(prim.KindDec)
		s.seed = d.seed
		d.seed.decimal = s
	}
	return d.seed.decimal
}

// letterOf is a character of a string. Where that is a caller's, so is the cause of the result; beside it may
// be an item, if the caller gives a list.
func (c *checker) letterOf(s *shape) *shape {
	if s.seed == nil {
		return s
	}
	if s.seed.letter == nil {
		m := c.shape(prim.KindString)
		m.seed, m.letter = s.seed, true
		s.seed.letter = m
	}
	return s.seed.letter
}

func comparing(u *use) *variable {
	x := u.c.testOf(u.t, u.t.ID, 0, "", prim.KindAny&^notEqual)
	u.c.compares(u.args[0], u.args[1], u.t.ID == compare, x, u.t)
	if u.t.ID == prim.Equal {
		u.c.remark(u.t)
		u.wants()
		p, isPrim := u.t.Args[0].(*term.Prim)
		switch s, literal := u.t.Args[1].(*term.Str); {
		case !isPrim || !literal:
		case p.ID == typeOf:
			u.c.pattern(p, u.c.tested, u.c.named(s), "")
		default:
			u.c.reason(p, s)
		}
	}
	return u.given()
}

func cons(u *use) *variable {
	item := u.c.variable()
	u.c.flow(u.args[0], item)
	u.take(1, func(s *shape) { u.items(s, item) })
	return u.c.fixed(u.c.listOf(item))
}

// items lets the items of a list, or of what may be one, flow into v.
func (u *use) items(s *shape, v *variable) {
	if s.dynamic {
		u.c.add(v, s)
		return
	}
	u.c.flow(s.item, v)
}

func itemOf(u *use) *variable {
	res := u.c.variable()
	u.take(0, func(s *shape) { u.item(s, res) })
	u.rest(1)
	return res
}

// item lets the item at the place that is written in the code, or that may be any, flow into v.
func (u *use) item(s *shape, v *variable) {
	i, written := 0, true // head
	if len(u.t.Args) > 1 {
		if i, written = intOf(u.t.Args[1]); i < 0 && u.t.ID != prim.At {
			written = false
		}
	}
	among := i
	if i < 0 {
		among += len(s.items)
	}
	switch {
	case written && among >= 0 && among < len(s.items):
		u.c.flow(s.items[among], v)
	case written && u.own && s.seed != nil && s.item != nil:
		u.c.flow(u.c.place(s, i, u.t), v)
	default:
		u.items(s, v)
	}
}

// intOf is the integer that is written in the code as t.
func intOf(t term.Term) (int, bool) {
	n, ok := t.(*term.Int)
	if !ok || n.Value != int64(int(n.Value)) {
		return 0, false
	}
	return int(n.Value), true
}

// rest tests the operands from the i-th on, of which only the kind counts.
func (u *use) rest(i int) {
	for ; i < len(u.args); i++ {
		u.take(i, nil)
	}
}

func partOfList(u *use) *variable {
	res := u.c.variable()
	u.take(0, func(s *shape) { u.c.add(res, u.some(s)) })
	u.rest(1)
	return res
}

// some is a list with some of the items of s, in their order; of a tail, with all but the first.
func (u *use) some(s *shape) *shape {
	c, tail, from := u.c, u.t.ID == prim.Tail, 1
	if s.length == filled {
		s = s.base
	}
	if !tail {
		from, _ = intOf(u.t.Args[1])
	}
	if u.own && from > 0 && s.seed != nil && s.kind == prim.KindList {
		return c.rest(s, from, u.t)
	}
	if s.items == nil {
		return s
	}
	key := fmt.Sprint("some ", tail, " ", s.id)
	m, ok := c.interned[key]
	if !ok {
		m = c.listOf(s.item)
		if c.interned[key] = m; tail && len(s.items) > 1 {
			m.items = s.items[1:]
		}
	}
	return m
}

func adding(u *use) *variable {
	item := u.c.variable()
	u.c.flow(u.args[len(u.args)-1], item)
	u.take(0, func(s *shape) { u.items(s, item) })
	if len(u.args) == 3 {
		u.take(1, nil)
	}
	return u.c.fixed(u.c.listOf(item))
}

func contains(u *use) *variable {
	c := u.c
	x := c.testOf(u.t, u.t.ID, 0, itsItems, prim.KindAny&^notEqual)
	c.remark(u.t)
	u.take(0, func(s *shape) {
		switch {
		case s.kind == prim.KindString:
			c.containsIn(s, u)
		case s.kind == prim.KindList:
			c.compares(s.item, u.args[1], false, x, u.t)
		}
	})
	return u.given()
}

// containsIn demands a string of what is looked for in one. A caller's string is
// none where that can be something else; where it is a caller's, too, that is left
// to the run.
func (c *checker) containsIn(s *shape, u *use) {
	x := c.testOf(u.t, u.t.ID, 1, "what it looks for in a string", prim.KindString)
	accepts := prim.KindString
	if s.seed != nil {
		accepts = prim.KindAny
	}
	why := u.row.Name + " looks for a string in a string, and for anything in a list: which it is is known only when it runs"
	c.watches(u.args[1], accepts, func(item *shape) {
		switch {
		case s.seed == nil:
			c.fits(x, item, prim.KindString)
		case item.kind == prim.KindString:
		case item.unknown != nil || item.seed != nil:
			c.doubts = append(c.doubts, doubt{s, item, u.t, ReasonTested, why})
		case item.dynamic:
			c.unknown(u.t, ReasonTested, "", why)
		default:
			s.seed.dead |= prim.KindString
		}
	})
}

// ofKind gives what the row gives, of the kinds that its first operand has.
func ofKind(u *use) *variable {
	gives, res := u.row.Gives, u.c.variable()
	u.take(0, func(s *shape) {
		of := *gives
		if !s.dynamic {
			of.Kinds &= s.kind
		}
		u.c.flow(u.c.declared(&of), res)
	})
	u.rest(1)
	return res
}

func partOfPair(part func(*shape) *variable) func(*use) *variable {
	return func(u *use) *variable {
		res := u.c.variable()
		u.take(0, func(s *shape) {
			if s.dynamic {
				u.c.add(res, s)
				return
			}
			u.c.flow(part(s), res)
		})
		return res
	}
}

// key is the operand that names a field, where it is written in the code.
func (u *use) key() (string, bool) {
	s, ok := u.t.Args[1].(*term.Str)
	if !ok {
		u.take(1, nil)
		return "", false
	}
	return s.Value, true
}

func getting(u *use) *variable {
	c, res := u.c, u.c.variable()
	key, literal := u.key()
	var x *test
	if len(u.args) == 2 && literal {
		x = c.testOf(u.t, u.t.ID, 1, "", prim.KindString)
		x.key = key
	}
	c.take(u.args[0], u.t, u.t.ID, 0, prim.KindRecord, func(s *shape) {
		switch {
		case s.dynamic:
			if x != nil {
				x.ok = true
			}
			c.add(res, s)
		case !literal:
			c.fieldsOf(s, func(_ string, v *variable) { c.flow(v, res) })
		default:
			v, p := c.lookup(s, key, u.ctx.sure && x != nil)
			if p != absent {
				c.flow(v, res)
			}
			if x != nil {
				x.ok = x.ok || p != absent
				if p == absent && !x.missing {
					x.missing = true
					for _, f := range s.record.fields[:min(len(s.record.fields), prim.NearKeys)] {
						if f.presence != absent {
							x.keys = append(x.keys, f.key)
						}
					}
				}
			}
		}
		if len(u.args) == 3 && !s.dynamic {
			if _, p := lookupOnly(s, key); p != required || !literal {
				c.flow(u.args[2], res)
			}
		}
	})
	if len(u.args) == 3 {
		// Of what is dynamic the default may be given, too.
		c.watches(u.args[0], prim.KindRecord, func(s *shape) {
			if s.dynamic {
				c.flow(u.args[2], res)
			}
		})
	}
	return res
}

// lookupOnly is lookup of the fields that are known without asking.
func lookupOnly(s *shape, key string) (*variable, presence) {
	for _, f := range s.record.fields {
		if f.key == key {
			return f.v, f.presence
		}
	}
	return nil, absent
}

func (u *use) maker() *maker { return &maker{c: u.c, to: u.c.variable()} }

func putting(u *use) *variable {
	c, m := u.c, u.maker()
	key, literal := u.key()
	var rest *variable
	u.take(0, func(s *shape) {
		switch {
		case s.dynamic:
			m.give(c.someOf(prim.KindRecord, s))
			if rest == nil {
				rest = c.variable()
				c.flow(u.args[2], rest)
				c.add(rest, s)
			}
			m.give(c.intern(&record{rest: rest}))
		case literal:
			m.give(c.with(s, field{key, u.args[2], required}))
		default:
			// Which field is set isn't known: any may have the value.
			if rest == nil {
				rest = c.variable()
				c.flow(u.args[2], rest)
			}
			c.fieldsOf(s, func(_ string, v *variable) { c.flow(v, rest) })
			m.give(c.intern(&record{rest: rest}))
		}
	})
	return m.to
}

func deleting(u *use) *variable {
	c, m := u.c, u.maker()
	key, literal := u.key()
	u.take(0, func(s *shape) {
		switch {
		case s.dynamic:
			m.give(c.someOf(prim.KindRecord, s))
		case literal:
			m.give(c.with(s, field{key, nil, absent}))
		default:
			r := &record{rest: s.record.rest, row: s.record.row, fields: slices.Clone(s.record.fields)}
			for i := range r.fields {
				if r.fields[i].presence == required {
					r.fields[i].presence = optional
				}
			}
			m.give(c.intern(r))
		}
	})
	return m.to
}

func merging(u *use) *variable {
	c, m := u.c, u.maker()
	rest := c.variable()
	both := func(a, b *shape) {
		over := !a.dynamic && !b.dynamic && b.record.row != nil && a.record.row == nil && a.record.rest == nil
		if over && c.final {
			m.give(c.defaults(a, b))
			return
		}
		c.differs = c.differs || over && !c.env.OneKind
		if a.dynamic || b.dynamic || b.record.row != nil || b.record.rest != nil {
			for _, s := range []*shape{a, b} {
				if s.dynamic {
					c.add(rest, s)
				} else {
					c.fieldsOf(s, func(_ string, v *variable) { c.flow(v, rest) })
				}
			}
			m.give(c.intern(&record{rest: rest}))
			return
		}
		fields := slices.Clone(b.record.fields)
		for i, f := range fields {
			if f.presence == optional {
				if v, p := c.lookup(a, f.key, false); p != absent {
					fields[i] = field{f.key, c.joined(v, f.v), p}
				}
			}
		}
		m.give(c.with(a, fields...))
	}
	u.pairs(0, 1, both)
	return m.to
}

// defaults is the fields of a, of which a caller's record b has others in their place, or none.
func (c *checker) defaults(a, b *shape) *shape {
	var fields []field
	for _, f := range a.record.fields {
		if v, p := c.lookup(b, f.key, false); p == absent {
			fields = append(fields, f)
		} else if p == optional {
			fields = append(fields, field{f.key, c.joined(f.v, v), f.presence})
		}
	}
	return c.with(b, fields...)
}

// joined is the one variable into which two flow.
func (c *checker) joined(a, b *variable) *variable {
	k := filterKey{v: a, key: "joined " + b.name()}
	if both, ok := c.filters[k]; ok {
		return both[0]
	}
	v := c.variable()
	c.filters[k] = [2]*variable{v, v}
	c.flow(a, v)
	c.flow(b, v)
	return v
}

// indexing is an item of a list, a character of a string or a record's field, or a
// part of a list or a string. Which index is wanted follows from what it is into: of
// two that a caller gives, which may be anything, the first is taken for a list or a
// string.
func indexing(u *use) *variable {
	c, res := u.c, u.c.variable()
	sliced := len(u.args) == 3
	if _, literal := u.t.Args[1].(*term.Str); literal && !sliced {
		return getting(u)
	}
	x := c.testOf(u.t, u.t.ID, 1, "", u.row.Params[1].Kinds)
	var odd *remark
	n, ok := u.t.Args[1].(*term.Int)
	if ok && !sliced && (n.Value == 0 || n.Value == 1) {
		odd = c.remark(u.t)
	}
	both := func(s, i *shape) {
		switch {
		case odd == nil:
		case s.group:
			odd.message = fmt.Sprintf("[%[1]d] is one character of the text that the group fits: re_find and re_find_all give a list of groups from two on; leave out [%[1]d] for the text", n.Value)
		default:
			odd.dropped = true
		}
		record := s.kind == prim.KindRecord
		fits := i.kind == prim.KindInt && !record && !(sliced && s.kind == prim.KindPair) || i.kind == prim.KindString && record && !sliced || i.kind == prim.KindUnit && sliced && !record && s.kind != prim.KindPair
		switch {
		case s.dynamic || i.dynamic || fits:
			x.ok = true
		case s.seed != nil && i.seed != nil && (sliced || i.kind != prim.KindUnit):
			c.doubts = append(c.doubts, doubt{s, i, u.t, ReasonIndex, "a list is indexed by an integer, and a record by a string: which it is is known only when it runs"})
			return
		case i.seed != nil && (s.seed == nil || i.kind == prim.KindUnit):
			x.unfit(i, i.kind)
			return
		default:
			x.unfit(s, i.kind)
			return
		}
		switch {
		case s.group:
			c.flow(c.basic[s.kind], res)
		case s.dynamic || sliced:
			c.add(res, u.some(s))
		case s.kind == prim.KindString:
			c.add(res, c.letterOf(s))
		case s.kind == prim.KindList:
			u.item(s, res)
		case s.kind == prim.KindPair:
			if !ok || n.Value%2 == 0 {
				c.flow(s.first, res)
			}
			if !ok || n.Value%2 != 0 {
				c.flow(s.second, res)
			}
		case record:
			c.fieldsOf(s, func(_ string, v *variable) { c.flow(v, res) })
		}
	}
	u.pairs(0, 1, both)
	u.rest(2)
	return res
}

func (v *variable) name() string { return strconv.Itoa(v.id) }

func values(u *use) *variable {
	item := u.c.variable()
	u.take(0, func(s *shape) { u.fields(s, item) })
	return u.c.fixed(u.c.listOf(item))
}

// fields lets the values of a record, or of what may be one, flow into v.
func (u *use) fields(s *shape, v *variable) {
	if s.dynamic {
		u.c.add(v, s)
		return
	}
	u.c.fieldsOf(s, func(_ string, f *variable) { u.c.flow(f, v) })
}

func entries(u *use) *variable {
	c, item := u.c, u.c.variable()
	u.take(0, func(s *shape) { u.fields(s, item) })
	return c.fixed(c.listOf(c.fixed(c.pairOf(c.basic[prim.KindString], item))))
}

func fromEntries(u *use) *variable {
	c, rest := u.c, u.c.variable()
	u.take(0, func(s *shape) {
		if s.dynamic {
			c.add(rest, s)
			return
		}
		x := c.testOf(u.t, u.t.ID, 0, "each item of the list", prim.KindPair)
		c.watch(s.item, watcher{accepts: prim.KindPair | prim.KindList, last: prim.KindList, test: x, run: func(s *shape) {
			key, of := s.first, s.second
			switch {
			case s.dynamic:
				c.add(rest, s)
				return
			case s.kind == prim.KindPair:
			case len(s.items) == 2:
				key, of = s.items[0], s.items[1]
			default: // it may be of another length, and begin with no string
				c.unknown(u.t, ReasonIndex, "entries", "whether each list of the list is a key and a value is tested when it runs")
				c.flow(s.item, rest)
				return
			}
			c.takeInner(key, u.t, u.t.ID, 0, "each pair's first part", prim.KindString, nil)
			c.flow(of, rest)
		}})
	})
	return c.fixed(c.intern(&record{rest: rest}))
}

func raising(u *use) *variable {
	u.c.flow(u.args[0], u.ctx.raised)
	return u.c.variable()
}

func toJSON(u *use) *variable {
	u.c.deep(u.args[0], jsonKinds, u.t, u.t.ID, 0)
	u.rest(1)
	return u.given()
}

// toCSV demands cells of the records: where columns are named, in these; where they are worked out that is tested when it runs.
func toCSV(u *use) *variable {
	c, cell := u.c, u.c.variable()
	demand := func(r *shape) {
		if !r.dynamic {
			c.fieldsOf(r, func(_ string, v *variable) { c.flow(v, cell) })
		}
	}
	if len(u.args) > 1 {
		u.operand(1)
		if list, ok := u.t.Args[1].(*term.List); ok && !slices.ContainsFunc(list.Items, func(t term.Term) bool { _, ok := t.(*term.Str); return !ok }) {
			demand = func(r *shape) {
				for _, t := range list.Items {
					if r.dynamic {
						return
					}
					if v, p := c.lookup(r, t.(*term.Str).Value, false); p != absent {
						c.flow(v, cell)
					}
				}
			}
		} else {
			c.unknown(u.t, ReasonTested, "cells", "whether each record has text, numbers, truth values or null in the columns is tested when it runs")
			demand = nil
		}
	}
	u.take(0, func(s *shape) {
		if !s.dynamic && s.item != nil {
			c.takeInner(s.item, u.t, u.t.ID, 0, "each item of the list", prim.KindRecord, demand)
		}
	})
	c.takeInner(cell, u.t, u.t.ID, 0, "each cell", prim.KindCell, nil)
	return u.given()
}

func parseJSON(u *use) *variable {
	u.take(0, nil)
	u.c.unknown(u.t, ReasonJSON, "", "what parse_json gives depends on the text; it is some data")
	return u.c.fixed(u.c.dynData)
}

// toData gives a node: a record with parts that are nodes. What a node has
// besides "op" and "args" depends on its operation.
func toData(u *use) *variable {
	u.take(0, nil)
	return u.c.fixed(u.c.codeData())
}

func (c *checker) codeData() *shape {
	if c.codeNode == nil {
		str := c.basic[prim.KindString]
		args := c.variable()
		value := c.fixed(c.basic[prim.KindInt].lower[0], c.basic[prim.KindDec].lower[0], c.basic[prim.KindBool].lower[0], str.lower[0])
		s := c.shape(prim.KindRecord)
		s.node = true
		s.record = &record{fields: []field{
			{"args", c.fixed(c.listOf(args)), required},
			{"keys", c.fixed(c.listOf(str)), optional},
			{"name", str, optional},
			{"op", str, required},
			{"param", str, optional},
			{"value", value, optional},
		}}
		c.add(args, s)
		c.codeNode = s
	}
	return c.codeNode
}

// toCode makes code of a record: what to_data gave is sure to be code.
func toCode(u *use) *variable {
	u.take(0, func(s *shape) {
		if !s.node && !isNode(u.c, s) {
			u.c.unknown(u.t, ReasonCode, "", "whether the record is code, and which, is known only when it runs")
		}
	})
	return u.c.fixed(u.c.shape(prim.KindQuoted))
}

// isNode reports whether a shape is a node of which only its presence among
// optional fields is known better.
func isNode(c *checker, s *shape) bool {
	if c.codeNode == nil || s.record == nil || s.record.row != nil || s.record.rest != nil {
		return false
	}
	for _, f := range c.codeNode.record.fields {
		if f.presence != required {
			continue
		}
		if v, p := lookupOnly(s, f.key); p != required || v != f.v {
			return false
		}
	}
	for _, f := range s.record.fields {
		if f.presence == absent {
			continue
		}
		if v, p := lookupOnly(c.codeNode, f.key); p == absent || v != f.v {
			return false
		}
	}
	return true
}

func analyze(u *use) *variable {
	u.take(0, nil)
	c := u.c
	num, strs := c.basic[prim.KindInt], c.fixed(c.listOf(c.basic[prim.KindString]))
	counts := c.fixed(c.intern(&record{rest: num}))
	return c.fixed(c.intern(&record{fields: []field{
		{"count", num, required}, {"depth", num, required}, {"effects", strs, required}, {"free", strs, required},
		{"operations", counts, required}, {"parameters", strs, required}, {"size", num, required},
	}}))
}

// inferring, costing, normalizing and judging give records of which all is known but the
// inputs that show a difference, which are some data.
func inferring(u *use) *variable {
	u.take(0, nil)
	c := u.c
	str, strs := c.basic[prim.KindString], c.fixed(c.listOf(c.basic[prim.KindString]))
	list := func(keys ...string) *variable {
		var fields []field
		for _, key := range keys {
			fields = append(fields, field{key, str, required})
		}
		return c.fixed(c.listOf(c.fixed(c.intern(&record{fields: fields}))))
	}
	return c.fixed(c.intern(&record{fields: []field{
		{"effects", strs, required}, {"expects", c.fixed(c.intern(&record{rest: str})), required}, {"params", list("name", "type"), required},
		{"problems", list("at", "kind", "message"), required}, {"result", str, required}, {"sound", c.basic[prim.KindBool], required},
		{"type", str, required}, {"unknown", list("at", "message", "reason"), required},
	}}))
}

func costing(u *use) *variable {
	u.take(0, nil)
	c := u.c
	str := c.basic[prim.KindString]
	place := c.fixed(c.intern(&record{fields: []field{{"at", str, required}, {"message", str, required}}}))
	return c.fixed(c.intern(&record{fields: []field{
		{"class", str, required}, {"exact", c.basic[prim.KindBool], required}, {"memory", str, required}, {"steps", str, required},
		{"why", c.fixed(c.listOf(place)), required},
	}}))
}

func normalizing(u *use) *variable {
	u.take(0, nil)
	c := u.c
	str := c.basic[prim.KindString]
	return c.fixed(c.intern(&record{fields: []field{
		{"code", c.fixed(c.shape(prim.KindQuoted)), required}, {"hash", str, required}, {"normal", c.basic[prim.KindBool], required}, {"reason", str, required},
	}}))
}

func judging(u *use) *variable {
	u.rest(0)
	c := u.c
	str := c.basic[prim.KindString]
	return c.fixed(c.intern(&record{fields: []field{
		{"answer", str, required}, {"inputs", c.fixed(c.listOf(c.fixed(c.dynData))), required}, {"left", str, required},
		{"reason", str, required}, {"right", str, required},
	}}))
}
