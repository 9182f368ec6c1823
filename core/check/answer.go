package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// MaxAnswer is how many bytes the type of an answer may have in the notation.
const MaxAnswer = 2000

// ParseAnswer reads the type of what an operation answers: the part of the
// notation that says what data there is. It has
//
//	int dec num bool string unit data json code
//	list[T]  pair[T, T]  {key: T, key?: T, *: T}  T | T
//
// with the keys in their order, and is at most 2,000 bytes long. Functions, names
// and what isn't known are refused: nobody could hold an answer to them.
func ParseAnswer(s string) (*Type, error) {
	return parseAnswer(s, false)
}

// ParseWanted is [ParseAnswer] for a type as somebody writes it who isn't this program:
// the keys of records are in any order.
func ParseWanted(s string) (*Type, error) { return parseAnswer(s, true) }

func parseAnswer(s string, inAnyOrder bool) (*Type, error) {
	if len(s) > MaxAnswer {
		return nil, fmt.Errorf("a type of %d bytes, at most %d", len(s), MaxAnswer)
	}
	t, err := parseType(s, inAnyOrder)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "check: "))
	}
	return t, t.Answerable()
}

// Answerable says why a type can't be that of an operation's answer; nil: it can.
// See [ParseAnswer].
func (t *Type) Answerable() (err error) {
	t.walk(func(u *Type) {
		switch {
		case u.Any:
			err = errors.New("any has functions, which no operation gives: write data")
		case u.Dynamic, len(u.Vars) > 0, u.Name != "":
			err = errors.New("a name, or what isn't known, holds no answer to anything: write data")
		case u.Kinds&^prim.KindData != 0:
			err = errors.New("functions and continuations are no data")
		case u.Kinds&prim.KindQuoted != 0 && !u.Deep && !u.Unknown:
			err = errors.New("of code nothing more is said than code")
		}
	})
	if err == nil && t != nil && t.Kinds == 0 {
		err = errors.New("nothing is the type of no answer")
	}
	return err
}

// The bounds of a value that is held to a type: more than one from a plugin has.
const (
	mostHeld    = 1 << 20
	deepestHeld = 4000
)

// Misfit says where and why data isn't of a type that [ParseAnswer] reads, or "".
// It shows no part of the value but kinds and places, is quick for data of which
// nothing more is said than that it is some, and takes at most about a million
// steps: a value that is larger, however much of it is shared, doesn't fit.
func (t *Type) Misfit(v value.Value) string {
	h := holding{left: mostHeld}
	if h.holds(t, v, 0) {
		return ""
	}
	slices.Reverse(h.at)
	return strings.Join(h.at, "") + h.why
}

// A holding is a value that is being held to a type.
type holding struct {
	left int
	why  string
	at   []string // where, the innermost first
}

func (h *holding) wrong(format string, args ...any) bool {
	h.why = fmt.Sprintf(format, args...)
	return false
}

// within notes where it went wrong, and hands on whether it did.
func (h *holding) within(ok bool, format string, args ...any) bool {
	if !ok && len(h.at) < 8 {
		h.at = append(h.at, fmt.Sprintf(format, args...)+": ")
	}
	return ok
}

func (h *holding) holds(t *Type, v value.Value, depth int) bool {
	t, v = t.or(), value.Force(v)
	if h.left--; h.left < 0 || depth > deepestHeld {
		return h.wrong("it is too large, or nested too deep")
	}
	k := prim.KindOf(v) & prim.KindData
	switch {
	case k == 0:
		return h.wrong("what isn't data where %s was said", t.brief())
	case t.Kinds&k == 0:
		return h.wrong("%s where %s was said", k, t.brief())
	case t.Deep && t.Kinds == prim.KindData:
		return true
	}
	item, first, second, rest := t.Item, t.First, t.Second, t.Rest
	if t.Deep {
		item, first, second, rest = t, t, t, t
	}
	switch v := v.(type) {
	case *value.Cons:
		return h.items(item, v, depth)
	case *value.Pair:
		return h.within(h.holds(first, v.First, depth+1), "the first of a pair") &&
			h.within(h.holds(second, v.Second, depth+1), "the second of a pair")
	case *value.Record:
		return h.members(t.Fields, rest, v.Fields, depth)
	}
	return true
}

func (h *holding) items(t *Type, c *value.Cons, depth int) bool {
	for i := 0; ; i++ {
		if !h.holds(t, c.Head, depth+1) {
			return h.within(false, "item %d", i)
		}
		next, ok := value.Force(c.Tail).(*value.Cons)
		if !ok {
			return true
		}
		c = next
	}
}

// members holds a record's fields, which are in the order of their keys as those of
// the type are.
func (h *holding) members(said []Field, rest *Type, fields []value.Field, depth int) bool {
	for len(said) > 0 || len(fields) > 0 {
		switch {
		case len(fields) == 0 || len(said) > 0 && said[0].Key < fields[0].Key:
			if !said[0].Optional {
				return h.wrong("a record without %s", keyText(said[0].Key))
			}
			said = said[1:]
			continue
		case len(said) > 0 && said[0].Key == fields[0].Key:
			if !h.holds(said[0].Type, fields[0].Value, depth+1) {
				return h.within(false, "%s", keyText(said[0].Key))
			}
			said = said[1:]
		case rest == nil:
			return h.wrong("a record with a member that wasn't said")
		case !h.holds(rest, fields[0].Value, depth+1):
			return h.within(false, "a member")
		}
		fields = fields[1:]
	}
	return true
}

// brief is the notation of a type, as it fits a message.
func (t *Type) brief() string {
	return display.Truncate(t.String(), 100)
}
