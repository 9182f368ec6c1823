package check

import (
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

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
		c.takeInner(s.item, u.t, u.t.ID, 0, "each item of the list", prim.KindPair, func(s *shape) {
			if s.dynamic {
				c.add(rest, s)
				return
			}
			c.takeInner(s.first, u.t, u.t.ID, 0, "each pair's first part", prim.KindString, nil)
			c.flow(s.second, rest)
		})
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

// inferring, normalizing and judging give records of which all is known but the
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
