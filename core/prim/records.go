package prim

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var (
	oneRecord = []Param{{"record", KindRecord}}
	recordKey = []Param{{"record", KindRecord}, {"key", KindString}}
)

// The machine does get, put, del and has in O(log n) on records of its own;
// they cost nothing besides their step.
var records = []Row{
	{
		Name: "record", Group: "records", Form: true, Shape: Members, Result: KindRecord,
		Doc:  "makes a record; the values are evaluated in the order of the keys, sorted by their bytes.",
		Also: []string{"object", "dict"},
		Examples: []Example{
			{Code: `{"record":{"name":"Ada","age":{"add":[30,6]}}}`, Want: `{"age":36,"name":"Ada"}`, Steps: 5},
			{Code: `{"record":{}}`, Want: `{}`, Steps: 1},
			{Code: `{"record":{"a":{"div":[1,0]}}}`, Fault: fault.DivisionByZero},
			{Code: `{"record":[1,2]}`, Fault: fault.ParseError},
		},
	},
	{
		Name: "get", Group: "records", Shape: Array, Min: 2, Result: KindAny,
		Params: []Param{{"record", KindRecord}, {"key", KindString}, {"default", KindAny}},
		Doc:    "gives the value of a record's key, or default where it has no such key.",
		Also:   []string{"map_get", "lookup", "field"},
		Examples: []Example{
			{Code: `{"get":[{"record":{"a":1}},"a"]}`, Want: `1`, Steps: 4},
			{Code: `{"get":[{"record":{"a":1}},"b",0]}`, Want: `0`, Steps: 5},
			{Code: `{"get":[{"record":{"a":1}},"b"]}`, Fault: fault.MissingKey},
			{Code: `{"get":[[1],0]}`, Fault: fault.TypeError},
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			r, key := args[0].(*value.Record), string(args[1].(value.Str))
			v, f := fieldOf(r, key)
			if f != nil && len(args) == 3 {
				return args[2], nil
			}
			return v, f
		},
	},
	{
		Name: "put", Group: "records", Shape: Array, Result: KindRecord,
		Params: []Param{{"record", KindRecord}, {"key", KindString}, {"value", KindAny}},
		Doc:    "gives the record with key set to value, in place of what it had there.",
		Total:  true,
		Also:   []string{"set", "insert", "with", "assoc"},
		Examples: []Example{
			{Code: `{"put":[{"record":{"a":1}},"b",2]}`, Want: `{"a":1,"b":2}`, Steps: 5},
			{Code: `{"put":[{"record":{"a":1}},"a",2]}`, Want: `{"a":2}`, Steps: 5},
			{Code: `{"put":[{"record":{}},1,2]}`, Fault: fault.TypeError},
		},
		Size: func(args []value.Value) int64 { return recordSize(args[0]) + int64(len(args[1].(value.Str))) + 64 },
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			r, key := args[0].(*value.Record), string(args[1].(value.Str))
			fields := slices.Clone(r.Fields)
			if i, ok := find(r, key); ok {
				fields[i].Value = args[2]
			} else {
				fields = slices.Insert(fields, i, value.Field{Key: key, Value: args[2]})
			}
			return &value.Record{Fields: fields}, nil
		},
	},
	{
		Name: "del", Group: "records", Shape: Array, Params: recordKey, Result: KindRecord,
		Doc:   "gives the record without key, which it need not have.",
		Total: true,
		Also:  []string{"delete", "remove"},
		Examples: []Example{
			{Code: `{"del":[{"record":{"a":1,"b":2}},"a"]}`, Want: `{"b":2}`, Steps: 5},
			{Code: `{"del":[{"record":{"a":1}},"z"]}`, Want: `{"a":1}`, Steps: 4},
			{Code: `{"del":["a","a"]}`, Fault: fault.TypeError},
		},
		Size: func(args []value.Value) int64 { return recordSize(args[0]) },
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			r := args[0].(*value.Record)
			i, ok := find(r, string(args[1].(value.Str)))
			if !ok {
				return r, nil
			}
			return &value.Record{Fields: slices.Delete(slices.Clone(r.Fields), i, i+1)}, nil
		},
	},
	{
		Name: "has", Group: "records", Shape: Array, Params: recordKey, Result: KindBool,
		Doc:   "is true if the record has the key.",
		Total: true,
		Also:  []string{"contains_key"},
		Examples: []Example{
			{Code: `{"has":[{"record":{"a":null}},"a"]}`, Want: `true`, Steps: 4},
			{Code: `{"has":[{"record":{}},"a"]}`, Want: `false`, Steps: 3},
			{Code: `{"has":[{"record":{}},null]}`, Fault: fault.TypeError},
		},
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			_, ok := find(args[0].(*value.Record), string(args[1].(value.Str)))
			return value.Bool(ok), nil
		},
	},
	{
		Name: "keys", Group: "records", Shape: Unary, Params: oneRecord, Result: KindList,
		Doc:   "gives the record's keys, sorted by their bytes.",
		Gives: typeStrings,
		Total: true,
		Examples: []Example{
			{Code: `{"keys":{"record":{"b":1,"a":2}}}`, Want: `["a","b"]`, Steps: 4},
			{Code: `{"keys":["a"]}`, Fault: fault.TypeError},
		},
		Cost: fieldsCost, Size: fieldsSize,
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			return fromFields(args[0], m, func(f value.Field) value.Value { return value.Str(f.Key) }), nil
		},
	},
	{
		Name: "values", Group: "records", Shape: Unary, Params: oneRecord, Result: KindList,
		Doc:   "gives the record's values in the order of its keys.",
		Total: true,
		Examples: []Example{
			{Code: `{"values":{"record":{"b":1,"a":2}}}`, Want: `[2,1]`, Steps: 4},
			{Code: `{"values":null}`, Fault: fault.TypeError},
		},
		Cost: fieldsCost, Size: fieldsSize,
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			return fromFields(args[0], m, func(f value.Field) value.Value { return f.Value }), nil
		},
	},
	{
		Name: "entries", Group: "records", Shape: Unary, Params: oneRecord, Pairs: true, Result: KindList,
		Doc:   "gives the pairs (key, value) of the record in the order of its keys.",
		Total: true,
		Also:  []string{"items"},
		Examples: []Example{
			{Code: `{"entries":{"record":{"b":1,"a":2}}}`, Want: `[{"pair":["a",2]},{"pair":["b",1]}]`, Steps: 4},
			{Code: `{"entries":"ab"}`, Fault: fault.TypeError},
		},
		Cost: fieldsCost, Size: fieldsSize,
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			return fromFields(args[0], m, func(f value.Field) value.Value {
				return &value.Pair{First: value.Str(f.Key), Second: f.Value}
			}), nil
		},
	},
	{
		Name: "from_entries", Group: "records", Shape: Unary, Params: oneList, Result: KindRecord,
		Doc:  "makes a record of a list of pairs (key, value), or of lists of these two; of two with one key the later counts.",
		Also: []string{"fromentries"},
		Examples: []Example{
			{Code: `{"from_entries":[{"pair":["a",1]},{"pair":["a",2]}]}`, Want: `{"a":2}`, Steps: 10},
			{Code: `{"from_entries":[["a",1]]}`, Want: `{"a":1}`, Steps: 8},
			{Code: `{"from_entries":[["a"]]}`, Fault: fault.TypeError},
			{Code: `{"from_entries":[{"pair":[1,1]}]}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 { return ItemsCost(count(args[0])) },
		Size: entriesSize,
		Walk: fromEntries,
	},
	{
		Name: "merge", Group: "records", Shape: Array, Params: []Param{{"a", KindRecord}, {"b", KindRecord}}, Result: KindRecord,
		Doc:   "gives a record with the keys of a and b; of one that both have b's value counts.",
		Total: true,
		Also:  []string{"assign"},
		Examples: []Example{
			{Code: `{"merge":[{"record":{"a":1,"b":1}},{"record":{"b":2}}]}`, Want: `{"a":1,"b":2}`, Steps: 6},
			{Code: `{"merge":[{"record":{}},[]]}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 { return fieldsCost(args[:1]) + fieldsCost(args[1:]) },
		Size: func(args []value.Value) int64 { return recordSize(args[0]) + recordSize(args[1]) },
		Walk: func(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
			a, b := args[0].(*value.Record).Fields, args[1].(*value.Record).Fields
			fields := make([]value.Field, 0, len(a)+len(b))
			for len(a) > 0 && len(b) > 0 {
				m.look(1 + min(len(a[0].Key), len(b[0].Key))/bytesPerPart)
				switch c := strings.Compare(a[0].Key, b[0].Key); {
				case c < 0:
					fields, a = append(fields, a[0]), a[1:]
				case c > 0:
					fields, b = append(fields, b[0]), b[1:]
				default:
					fields, a, b = append(fields, b[0]), a[1:], b[1:]
				}
			}
			return &value.Record{Fields: append(append(fields, a...), b...)}, nil
		},
	},
}

// find finds where the record has the key, or would have it.
func find(r *value.Record, key string) (int, bool) {
	return slices.BinarySearchFunc(r.Fields, key, func(f value.Field, key string) int { return strings.Compare(f.Key, key) })
}

// NearKeys is how many of a record's keys a fault looks at for one like the
// key that is missing.
const NearKeys = 32

// fieldOf returns the value of a record's key.
func fieldOf(r *value.Record, key string) (value.Value, *fault.Fault) {
	if i, ok := find(r, key); ok {
		return r.Fields[i].Value, nil
	}
	keys := make([]string, min(len(r.Fields), NearKeys))
	for i := range keys {
		keys[i] = r.Fields[i].Key
	}
	return nil, MissingKey(key, keys)
}

// MissingKey returns the fault of get with a key that the record doesn't have; keys
// are the record's first ones.
func MissingKey(key string, keys []string) *fault.Fault {
	f := &fault.Fault{
		Kind:     fault.MissingKey,
		Message:  "the record has no key " + quoted(key),
		Expected: "a key that the record has",
		Got:      quoted(key),
		Near:     Closest(key, keys),
		Hint:     `Give what stands in for it, {"get":[R,K,DEFAULT]}, or ask first: {"has":[R,K]}.`,
	}
	if f.Near != "" {
		f.Hint = `Did you mean ` + quoted(f.Near) + `? ` + f.Hint
	} else if own := quotedKeys(keys); own != "" {
		f.Hint = "It has " + own + ". " + f.Hint
	}
	return f
}

// quotedKeys lists the keys of a small record; "" where there are many, or none.
func quotedKeys(keys []string) string {
	const most, longest = 8, 120
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = quoted(k)
	}
	if s := strings.Join(all, ", "); len(all) <= most && len(s) <= longest {
		return s
	}
	return ""
}

func fieldsCost(args []value.Value) uint64 { return ItemsCost(len(args[0].(*value.Record).Fields)) }

func fieldsSize(args []value.Value) int64 {
	n := int64(0)
	for _, f := range args[0].(*value.Record).Fields {
		n += 64 + int64(len(f.Key))
	}
	return n
}

// recordSize returns what a copy of a record's fields takes.
func recordSize(v value.Value) int64 { return 16 + 16*int64(len(v.(*value.Record).Fields)) }

func fromFields(v value.Value, m *Meter, item func(value.Field) value.Value) value.Value {
	fields := v.(*value.Record).Fields
	all := make([]value.Value, len(fields))
	for i, f := range fields {
		m.look(1)
		all[i] = item(f)
	}
	return value.FromSlice(all)
}

// entriesSize bounds the record that from_entries makes, whose keys are copied,
// shared or not.
func entriesSize(args []value.Value) int64 {
	size := int64(0)
	for item := range items(args[0]) {
		size += 64
		key, _, ok := entry(item)
		if !ok {
			break // it fails there
		}
		if t, n := value.Measure(key); t == value.TypeString {
			size += int64(n)
		}
	}
	return size
}

// entry returns the parts of a pair, or of a list of two.
func entry(item value.Value) (key, of value.Value, ok bool) {
	item = value.Force(item)
	if p, ok := item.(*value.Pair); ok {
		return p.First, p.Second, true
	}
	parts := make([]value.Value, 0, 3)
	if KindList.Has(item) {
		for part := range items(item) {
			if parts = append(parts, part); len(parts) > 2 {
				break
			}
		}
	}
	if len(parts) != 2 {
		return nil, nil, false
	}
	return parts[0], parts[1], true
}

func fromEntries(args []value.Value, m *Meter) (value.Value, *fault.Fault) {
	var fields []value.Field
	i := 0
	for item := range items(args[0]) {
		first, of, ok := entry(item)
		if !ok {
			return nil, badItem("from_entries", i, "a pair (key, value), or a list of these two", item)
		}
		first = value.Force(first)
		key, ok := first.(value.Str)
		if !ok {
			f := badItem("from_entries", i, "a pair whose first part is a string", first)
			f.Hint = `Make a string of the key: {"to_text":K}.`
			return nil, f
		}
		fields = append(fields, value.Field{Key: string(key), Value: of})
		i++
	}
	return recordOf(fields, m), nil
}

// recordOf sorts fields and keeps the last of those with one key.
func recordOf(fields []value.Field, m *Meter) *value.Record {
	slices.SortStableFunc(fields, func(a, b value.Field) int {
		m.look(1 + min(len(a.Key), len(b.Key))/bytesPerPart)
		return strings.Compare(a.Key, b.Key)
	})
	kept := fields[:0]
	for i, f := range fields {
		if i+1 == len(fields) || fields[i+1].Key != f.Key {
			kept = append(kept, f)
		}
	}
	return &value.Record{Fields: kept}
}
