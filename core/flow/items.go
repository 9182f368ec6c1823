package flow

import (
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Items reads where the parts of an answer come from. A tree is
//
//	{label: ["tx"]}                        all of it
//	{items: [T, …], label: […]}            of a list: one for each item, the last for the rest; label: how many there are
//	{fields: {subject: T}, label: […]}     of a record; label: the fields that aren't named
//	{}                                     nothing
//
// and atom gives the label of a source's name. It is false for a tree of another form
// or of another shape than the value, or with an unknown name: the answer is of all
// its sources then. The names of a record's fields are taken to be the operation's own:
// where others choose them, the whole record has to be labelled.
func Items(tree, v value.Value, atom func(name string) (Label, bool)) (*Shadow, bool) {
	v = value.Force(v)
	r, ok := value.Force(tree).(*value.Record)
	if !ok {
		return nil, false
	}
	var label Label
	var items []value.Value
	var fields *value.Record
	for _, f := range r.Fields {
		switch part := value.Force(f.Value); f.Key {
		case "label":
			names, ok := list(part)
			for _, name := range names {
				s, isText := value.Force(name).(value.Str)
				l, known := atom(string(s))
				ok = ok && isText && known
				label |= l
			}
			if !ok {
				return nil, false
			}
		case "items":
			if items, ok = list(part); !ok || v.Type() != value.TypeList {
				return nil, false
			}
		case "fields":
			if fields, ok = part.(*value.Record); !ok {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	_, isItems := field(r, "items")
	switch {
	case isItems && fields != nil:
		return nil, false
	case isItems:
		all, _ := list(v)
		if len(items) == 0 && len(all) > 0 {
			return nil, false
		}
		shadows := make([]*Shadow, len(all))
		for i, item := range all {
			if shadows[i], ok = Items(items[min(i, len(items)-1)], item, atom); !ok {
				return nil, false
			}
		}
		return listOf(shadows, label), true
	case fields != nil:
		of, ok := v.(*value.Record)
		if !ok {
			return nil, false
		}
		kids := make([]*Shadow, len(of.Fields))
		for i, f := range of.Fields {
			kids[i] = leaf(label)
			if k, named := field(fields, f.Key); named {
				if kids[i], ok = Items(fields.Fields[k].Value, f.Value, atom); !ok {
					return nil, false
				}
			}
		}
		return node(0, kids...), true
	}
	return leaf(label), true
}

// list returns the items of a list that may be in an evaluator's memory.
func list(v value.Value) (items []value.Value, ok bool) {
	for {
		switch c := value.Force(v).(type) {
		case value.Nil:
			return items, true
		case *value.Cons:
			items = append(items, c.Head)
			v = c.Tail
		default:
			return nil, false
		}
	}
}
