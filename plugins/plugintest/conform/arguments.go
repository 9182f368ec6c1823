package conform

import (
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// record makes a record of fields in any order.
func record(fields ...value.Field) *value.Record {
	slices.SortFunc(fields, func(a, b value.Field) int { return strings.Compare(a.Key, b.Key) })
	return &value.Record{Fields: fields}
}

// with is a record with a field set, or taken out where v is nil.
func with(r *value.Record, key string, v value.Value) *value.Record {
	fields := slices.DeleteFunc(slices.Clone(r.Fields), func(f value.Field) bool { return f.Key == key })
	if v != nil {
		fields = append(fields, value.Field{Key: key, Value: v})
	}
	return record(fields...)
}

// sample is a value of a parameter's type.
func sample(p *caps.Param, n int) value.Value {
	if len(p.Enum) > 0 {
		return value.Str(p.Enum[n%len(p.Enum)])
	}
	if p.Secrets && p.Type == "any" {
		return aSecret
	}
	switch p.Type {
	case "int":
		return value.NewInt(int64(1 + n))
	case "bool":
		return value.Bool(n%2 == 1)
	case "list":
		return value.Nil{}
	case "record":
		return &value.Record{}
	}
	return value.Str("pif" + strings.Repeat("f", n))
}

// arguments makes arguments of an operation that are valid by its manifest. The
// n-th differ from the others; from the second on, optional ones are given too
// where all is set. What designates lies inside the scope.
func (w *world) arguments(o *caps.Operation, n int, all bool) *value.Record {
	var fields []value.Field
	designating := 0
	for i := range o.Params {
		p := &o.Params[i]
		if p.Optional && !all {
			continue
		}
		v := sample(p, n)
		switch {
		case p.Designates:
			v = value.Str(w.designate(designating, n))
			designating++
		case p.Name == o.VerbParam:
			v = value.Str(o.Verb)
		}
		fields = append(fields, value.Field{Key: p.Name, Value: v})
	}
	return record(fields...)
}

// designate is the argument for the i-th parameter that designates, in the n-th
// variant: the first one varies over what there is, the others are new.
func (w *world) designate(i, n int) string {
	if i == 0 {
		return w.inside[n%len(w.inside)]
	}
	return w.fresh[(i+n)%len(w.fresh)]
}

// A request is an operation with arguments for it.
type request struct {
	operation *caps.Operation
	args      *value.Record
	fixture   bool
}

// requests is some for each operation, and those of the fixtures.
func (t *trial) requests(chosen func(*caps.Operation) bool) []request {
	var all []request
	for i := range t.manifest.Operations {
		o := &t.manifest.Operations[i]
		if chosen != nil && !chosen(o) {
			continue
		}
		for n := range t.world.variants(o) {
			all = append(all, request{operation: o, args: t.world.arguments(o, n, false)})
		}
		if slices.ContainsFunc(o.Params, func(p caps.Param) bool { return p.Optional }) {
			all = append(all, request{operation: o, args: t.world.arguments(o, 0, true)})
		}
		for _, c := range t.o.Fixtures.Calls {
			if !c.Slow && c.Operation == o.Name {
				all = append(all, request{operation: o, args: c.record(), fixture: true})
			}
		}
	}
	return all
}

// record is a fixture's arguments.
func (c Call) record() *value.Record {
	r, _ := c.Arguments.(*value.Record)
	if r == nil {
		r = &value.Record{}
	}
	return r
}

// variants is how many kinds of arguments an operation is tried with.
func (w *world) variants(o *caps.Operation) int {
	if slices.ContainsFunc(o.Params, func(p caps.Param) bool { return p.Designates }) {
		return len(w.inside)
	}
	return 2
}

// text finds a text in a value, its keys included.
func contains(v value.Value, found func(string) bool) bool {
	switch v := value.Force(v).(type) {
	case value.Str:
		return found(string(v))
	case *value.Cons:
		items, _ := value.Slice(v)
		return slices.ContainsFunc(items, func(i value.Value) bool { return contains(i, found) })
	case *value.Pair:
		return contains(v.First, found) || contains(v.Second, found)
	case *value.Record:
		return slices.ContainsFunc(v.Fields, func(f value.Field) bool { return found(f.Key) || contains(f.Value, found) })
	}
	return false
}
