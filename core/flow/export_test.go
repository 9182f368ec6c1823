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
