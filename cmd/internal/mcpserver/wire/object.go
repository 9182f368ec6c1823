package wire

import (
	"bytes"
	"strconv"

	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// Object is a JSON object being written.
type Object []byte

func Begin() Object { return append(make(Object, 0, 128), '{') }

func (o Object) Key(name string) Object {
	if len(o) > 1 {
		o = append(o, ',')
	}
	return append(text.AppendString(o, name), ':')
}

func (o Object) Raw(name string, json []byte) Object { return append(o.Key(name), json...) }

// Call adds a call, if there is one.
func (o Object) Call(name string, call []byte) Object {
	if call == nil {
		return o
	}
	return o.Raw(name, call)
}

func (o Object) Text(name, s string) Object { return append(o.Key(name), Encode(s)...) }

func (o Object) Number(name string, n uint64) Object {
	return strconv.AppendUint(o.Key(name), n, 10)
}

func (o Object) End() Object { return append(o, '}') }

// Encode gives compact JSON. What it is given always has some.
func Encode(v any) []byte { return pifjson.MustEncode(v) }

// EncodeTexts is a list of strings, never null.
func EncodeTexts(list []string) []byte {
	if len(list) == 0 {
		return []byte("[]")
	}
	return Encode(list)
}

// Array is the items as a list of JSON.
func Array(items [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}
