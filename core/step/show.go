package step

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Show returns the beginning of a value in about the text form, of about n bytes: it
// reads no more of the value than it shows.
func Show(v value.Value, n int) string {
	var b strings.Builder
	show(&b, v, n)
	return display.Truncate(b.String(), n)
}

func show(b *strings.Builder, v value.Value, n int) {
	if b.Len() > n {
		return
	}
	if v == nil {
		return
	}
	switch v := value.Force(v).(type) {
	case value.Str:
		s := string(v)
		cut := len(s) > n
		quoted, err := json.Marshal(strings.ToValidUTF8(s[:min(len(s), n)], ""))
		if err == nil {
			b.Write(quoted)
		}
		if cut {
			b.WriteString("…")
		}
	case value.Nil:
		b.WriteString("[]")
	case value.Unit:
		b.WriteString("null")
	case *value.Cons:
		b.WriteString("[")
		for c, first := v, true; b.Len() <= n; first = false {
			if !first {
				b.WriteString(", ")
			}
			show(b, c.Head, n)
			next, ok := value.Force(c.Tail).(*value.Cons)
			if !ok {
				break
			}
			c = next
		}
		b.WriteString("]")
	case *value.Pair:
		b.WriteString("(")
		show(b, v.First, n)
		b.WriteString(", ")
		show(b, v.Second, n)
		b.WriteString(")")
	case *value.Record:
		b.WriteString("{")
		for i := 0; i < len(v.Fields) && b.Len() <= n; i++ {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(v.Fields[i].Key + ": ")
			show(b, v.Fields[i].Value, n)
		}
		b.WriteString("}")
	case *value.Code:
		b.WriteString("'{" + display.Truncate(Term(v.Term), n) + "}")
	case value.Int:
		if v.Words() > 64 {
			b.WriteString("an integer of many digits")
			return
		}
		b.WriteString(v.String())
	case value.Dec:
		b.WriteString(v.String())
	case value.Bool:
		fmt.Fprint(b, bool(v))
	default:
		b.WriteString("a " + string(v.Type()))
	}
}
