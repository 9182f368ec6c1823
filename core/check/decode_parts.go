package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
)

func (d *decoder) list(raw json.RawMessage, t *Type, where string) json.RawMessage {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return raw
	}
	out := []byte{'['}
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, d.value(item, t.Item.or(), fmt.Sprintf("%s/%d", where, i))...)
	}
	return append(out, ']')
}

// A member of an object, in the order of the source.
type member struct {
	key   string
	value json.RawMessage
}

// members reads an object, and false where a key is there twice: data is read
// by a parser that says where.
func members(raw json.RawMessage) ([]member, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if _, err := dec.Token(); err != nil {
		return nil, false
	}
	var all []member
	seen := map[string]bool{}
	for dec.More() {
		k, err := dec.Token()
		key, ok := k.(string)
		if err != nil || !ok || seen[key] {
			return nil, false
		}
		seen[key] = true
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			return nil, false
		}
		all = append(all, member{key, v})
	}
	return all, true
}

// object is a record, or one of the shapes of what JSON can't say. An object
// with one key that looks like such a shape is a record where only that fits.
func (d *decoder) object(raw json.RawMessage, t *Type, where string) json.RawMessage {
	all, ok := members(raw)
	if !ok {
		return raw
	}
	if len(all) == 1 && slices.Contains(wrapped, all[0].key) {
		return d.shape(raw, all[0], t, where)
	}
	if t.Kinds&prim.KindRecord == 0 {
		return raw
	}
	return d.record(all, t, where)
}

func (d *decoder) record(all []member, t *Type, where string) json.RawMessage {
	out := []byte{'{'}
	for i, m := range all {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(text.AppendString(out, m.key), ':')
		of := t.Rest
		for _, f := range t.Fields {
			if f.Key == m.key {
				of = f.Type
			}
		}
		if of == nil {
			of = Any
		}
		out = append(out, d.value(m.value, of, where+"/"+m.key)...)
	}
	return append(out, '}')
}

func (d *decoder) shape(raw json.RawMessage, m member, t *Type, where string) json.RawMessage {
	v := bytes.TrimSpace(m.value)
	first := byte(0)
	if len(v) > 0 {
		first = v[0]
	}
	switch {
	case m.key == "pair" && t.Kinds&prim.KindPair != 0 && first == '[':
		var two []json.RawMessage
		if json.Unmarshal(v, &two) != nil || len(two) != 2 {
			return raw
		}
		a, b := d.value(two[0], t.First.or(), where+"/pair/0"), d.value(two[1], t.Second.or(), where+"/pair/1")
		return json.RawMessage(`{"pair":[` + string(a) + "," + string(b) + "]}")
	case m.key == "dec" && t.Kinds&prim.KindDec != 0 || m.key == "int" && t.Kinds&prim.KindInt != 0:
		return raw
	case m.key == "record" && first == '{' && t.Kinds&prim.KindRecord != 0 && !hasField(t, "record"):
		inner, ok := members(v)
		if !ok {
			return raw
		}
		return json.RawMessage(`{"record":` + string(d.record(inner, t, where+"/record")) + "}")
	case t.Kinds&prim.KindRecord != 0:
		return json.RawMessage(`{"record":` + string(d.record([]member{m}, t, where)) + "}")
	}
	return raw
}

func hasField(t *Type, key string) bool {
	return slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Key == key })
}
