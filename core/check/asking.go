package check

import (
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// An asking is the demand that what is given to an operation is of the type that it
// takes. The host performs no other, so a failure is certain where the part is.
type asking struct {
	c    *checker
	at   *term.Effect
	seen map[given]bool
}

// test is that of a part, which is there whenever the operation is asked for if
// it is certain.
func (g *asking) test(part string, certain bool, want prim.Kinds) *test {
	k := testKey{t: g.at, part: part}
	if !certain {
		k.inner = "part " + part
	}
	x := g.c.testFor(g.at.Pos(), k, 0, want)
	x.op = g.at.Op
	return x
}

// take demands that a part is of a type.
func (g *asking) take(v *variable, t *Type, part string, sure, certain bool) {
	c := g.c
	if v == nil || t.Any || t.Dynamic || len(t.Vars) > 0 || g.seen[given{v, t}] || !c.spend(1) {
		return
	}
	g.seen[given{v, t}] = true
	x := g.test(part, certain, t.Kinds)
	x.whole = t.Kinds&prim.KindNumber == prim.KindInt
	if t.Deep {
		c.watches(v, prim.KindAny, func(s *shape) {
			if s.unknown != nil {
				s.unknown.deep &= t.Kinds
				x.ok = true
			} else if c.fits(x, s, t.Kinds) && !s.dynamic {
				c.parts(s, func(inner *variable) { g.take(inner, t, part, false, false) })
			}
		})
		return
	}
	c.takeAs(x, v, t.Kinds, func(s *shape) {
		if s.record != nil {
			g.record(s, t, part, sure, certain)
		} else {
			g.parts(s, t, part, certain)
		}
	})
}

// parts demands the types of what is in a list or a pair.
func (g *asking) parts(s *shape, t *Type, part string, certain bool) {
	if s.item != nil {
		g.take(s.item, t.Item.or(), part+"/item", false, false)
	}
	if s.first != nil {
		g.take(s.first, t.First.or(), part+"/first", false, certain)
		g.take(s.second, t.Second.or(), part+"/second", false, certain)
	}
}

// record demands the fields of a record.
func (g *asking) record(s *shape, t *Type, part string, sure, certain bool) {
	all := g.test(part+"/", certain, prim.KindRecord)
	wrong := func(format string, args ...any) {
		all.bad |= prim.KindRecord
		if all.fault == nil {
			all.fault = g.mistake(t, fmt.Sprintf(format, args...))
		}
	}
	named := map[string]bool{}
	for _, f := range t.Fields {
		named[f.Key] = true
		v, there := g.c.lookup(s, f.Key, sure && !f.Optional)
		if there == absent && !f.Optional {
			wrong("the key %s is missing", quoted(f.Key))
		} else if there != absent {
			g.take(v, f.Type, strings.TrimPrefix(part+"/"+keyText(f.Key), "/"), sure && !f.Optional, certain && there == required)
		}
	}
	for _, f := range s.record.fields {
		if f.presence == required && !named[f.key] && t.Rest == nil {
			near := ""
			if best := prim.Closest(short(f.key), fields(t)); best != "" {
				near = "; did you mean " + quoted(best) + "?"
			}
			wrong("unknown key %s%s", quoted(f.key), near)
		}
	}
	all.ok = all.ok || all.bad == 0
	if t.Rest != nil {
		g.c.fieldsOf(s, func(key string, v *variable) {
			if !named[key] {
				g.take(v, t.Rest, part+"/*", false, false)
			}
		})
	}
}

// mistake is what an argument fails with that isn't of the type.
func (g *asking) mistake(t *Type, message string) *fault.Fault {
	return &fault.Fault{
		Kind: fault.TypeError, Message: g.at.Op + ": " + message, Expected: t.brief(),
		Hint: "Give !" + g.at.Op + " what it takes: " + display.Truncate(t.String(), 200) + ".",
	}
}

// mistaken is what an argument fails with that is of another kind.
func mistaken(x *test) *fault.Fault {
	want, got := wanted(x.want), describe(x.bad)
	where, hint := x.part, "Give !"+x.op+" what fits."
	if where == "" {
		where = "its argument"
		if x.want == prim.KindRecord { // in JSON an object with an operation's name for its key is a call of that
			hint = "Give !" + x.op + ` a record of its arguments, {"record":{"NAME":VALUE}}.`
		}
	}
	return &fault.Fault{
		Kind: fault.TypeError, Message: fmt.Sprintf("%s takes %s as %s, not %s", x.op, want, where, got),
		Expected: want, Got: got, Hint: hint,
	}
}
