package normal

import (
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// key names a computation by its row and its operands; it is not there where
// an operand is a function or large.
func (n *normaliser) key(id term.ID, args []val) (string, bool) {
	var w strings.Builder
	w.WriteString(strconv.Itoa(int(id)))
	left := 64
	for _, a := range args {
		w.WriteByte(' ')
		if !n.keyOf(&w, a, &left) {
			return "", false
		}
	}
	return w.String(), true
}

func (n *normaliser) keyOf(w *strings.Builder, v val, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	switch v := v.(type) {
	case lit:
		w.WriteString(string(v.v.Type()))
		switch x := v.v.(type) {
		case value.Str:
			if !n.spend(len(x) / 64) {
				return false
			}
			w.WriteString(strconv.Quote(string(x)))
		case value.Int:
			w.WriteString(x.String())
		case value.Dec:
			w.WriteString(x.String())
		case value.Bool:
			w.WriteString(strconv.FormatBool(bool(x)))
		}
		return true
	case empty:
		w.WriteString("[]")
		return true
	case *cons:
		w.WriteString("(: ")
		ok := n.keyOf(w, v.head, left)
		w.WriteByte(' ')
		ok = ok && n.keyOf(w, v.tail, left)
		w.WriteByte(')')
		return ok
	case *pair:
		w.WriteString("(, ")
		ok := n.keyOf(w, v.a, left)
		w.WriteByte(' ')
		ok = ok && n.keyOf(w, v.b, left)
		w.WriteByte(')')
		return ok
	case *record:
		w.WriteString("{")
		for i, key := range v.keys {
			w.WriteString(strconv.Quote(key))
			if !n.keyOf(w, v.vals[i], left) {
				return false
			}
		}
		w.WriteString("}")
		return true
	case *atom:
		w.WriteString("#" + strconv.Itoa(v.id))
		return true
	}
	return false
}
