package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// pattern notes where a pattern of the text form never fits: its test t asks whether v is of
// a kind, or has a key, and it never is.
func (c *checker) pattern(t term.Term, v *variable, kind prim.Kinds, key string) {
	if c.src == nil || c.src.Form != term.PIF || t.Pos() >= len(c.src.Text) || strings.IndexByte("([{", c.src.Text[t.Pos()]) < 0 {
		return
	}
	x := c.remark(t)
	if x == nil {
		return
	}
	x.right = kind
	c.watches(v, prim.KindAny, func(s *shape) {
		if s.unknown != nil {
			x.unknown = append(x.unknown, s.unknown)
			return
		}
		fits := s.dynamic || s.kind == kind
		if fits && !s.dynamic && key != "" && s.record.row == nil {
			_, is := c.lookup(s, key, false)
			fits = is != absent
		}
		if fits {
			x.dropped = true
			return
		}
		x.given, x.group = x.given || s.seed != nil, x.group || s.group
		x.left |= s.kind
		x.message = c.unfit(x, s, key)
	})
}

// named is the kind that a literal compared with a type_of names; 0, with a note, for none.
func (c *checker) named(s *term.Str) prim.Kinds {
	kind := prim.KindNamed(s.Value)
	if kind&prim.KindAny == 0 {
		if x := c.remark(s); x != nil {
			x.message = fmt.Sprintf(`type_of never gives %s, but one of int, dec, bool, string, unit (of null), list, pair, record, function; of any number write contains(["int", "dec"], type_of(x))`, quoted(s.Value))
		}
	}
	return kind
}

// unfit is what is said of a pattern that doesn't fit s.
func (c *checker) unfit(x *remark, s *shape, key string) string {
	pattern := prim.PatternAt(c.src.Text, x.pos)
	inner := pattern[1:max(1, len(pattern)-1)]
	said := fmt.Sprintf("the pattern %s never fits %s", pattern, describe(x.left))
	switch given := x.left &^ prim.KindUnit; {
	case key != "":
		said = fmt.Sprintf("the pattern %s never fits: there is no key %s", pattern, quoted(key))
		if s.kind != prim.KindRecord {
			break
		} else if _, ok := c.lookup(s, "error", false); ok != absent {
			said += "; try gives {ok: v} or {error: e}"
		}
	case given == prim.KindPair:
		said += "; write (a, b)"
	case given == prim.KindList:
		said += "; write [a, b]"
	case x.group && x.right == prim.KindList:
		said += "; one group gives its text alone: write " + inner
	case strings.HasPrefix(inner, "ok") || strings.HasPrefix(inner, "error"):
		said += "; try gives it: match try(…) { {ok: x} => …; {error: e} => … }"
	}
	return said
}

// turned is the patterns [a, b] and (a, b) of a text that only fit what there is as the
// other of the two.
func turned(p *text.Parsed, steps *int) map[int]bool {
	c := openChecker(p.Term, p.Source, steps)
	c.run(false)
	*steps += c.steps
	at := map[int]bool{}
	for _, x := range c.remarked {
		given := x.left &^ prim.KindUnit
		other := given == prim.KindPair && x.right == prim.KindList || given == prim.KindList && x.right == prim.KindPair
		if x.stands() && !x.given && other && slices.Contains(p.Twos, x.pos) {
			at[x.pos] = true
		}
	}
	return at
}

// Reasons is what effects fail with, as their messages say.
var Reasons = []string{"not_found", "exists", "not_a_file", "not_a_directory", "unreachable", "too_large"}

// reason notes that a kind of failure is compared with the reason why an effect failed.
func (c *checker) reason(of *term.Prim, s *term.Str) {
	if of.ID != get || !slices.Contains(Reasons, s.Value) {
		return
	}
	if key, ok := of.Args[1].(*term.Str); ok && key.Value == "kind" {
		if x := c.remark(s); x != nil {
			x.message = fmt.Sprintf(`an effect that fails has the kind "effect_failed", and its message says %[1]s: write contains(e.message, %[2]s)`, s.Value, quoted(s.Value))
		}
	}
}
