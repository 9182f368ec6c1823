package flow

import (
	"strings"

	"github.com/mcp-pif/mcp-pif/core/value"
)

// Project shows what somebody sees of a value who may see unlabelled parts only.
func Project(v value.Value, s *Shadow, show func(value.Value) string) string {
	switch {
	case s.own != 0:
		return "?"
	case s.deep == 0:
		return show(v)
	}
	switch x := v.(type) {
	case *value.Pair:
		return "(" + Project(x.First, s.kid(0), show) + " " + Project(x.Second, s.kid(1), show) + ")"
	case *value.Cons:
		return "[" + Project(x.Head, s.kid(0), show) + "|" + Project(x.Tail, s.kid(1), show) + "]"
	case *value.Record:
		var b strings.Builder
		for i, f := range x.Fields {
			b.WriteString(f.Key + ":" + Project(f.Value, s.kid(i), show) + ",")
		}
		return "{" + b.String() + "}"
	case *value.Continuation:
		return "continue " + Project(x.Input, s.kid(0), show)
	case *value.Closure:
		return "function"
	}
	return "a " + string(v.Type()) + " with parts"
}

// Inside returns the shadow of a value all parts of which have a label, but which is
// itself of none; nil if it has no parts.
func Inside(v value.Value, l Label) *Shadow {
	switch x := value.Force(v).(type) {
	case *value.Cons:
		items, _ := value.Slice(x)
		kids := make([]*Shadow, len(items))
		for i := range kids {
			kids[i] = leaf(l)
		}
		return listOf(kids, 0)
	case *value.Pair:
		return two(0, leaf(l), leaf(l))
	case *value.Record:
		kids := make([]*Shadow, len(x.Fields))
		for i := range kids {
			kids[i] = leaf(l)
		}
		if len(kids) > 0 {
			return node(0, kids...)
		}
	case *value.Closure:
		return &Shadow{own: 0, deep: l}
	}
	return nil
}

// ListOf returns the shadow of a list of parts.
func ListOf(items []*Shadow) *Shadow { return listOf(items, 0) }

// First returns the shadow of the first part of a value.
func First(s *Shadow) *Shadow { return s.kid(0) }
