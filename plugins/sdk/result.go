package sdk

import (
	"fmt"
	"reflect"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Type says what the values are that an operation gives, in the notation of
// proto/README.md, where its Go type doesn't say it all: "{key: string, *: json}"
// of a [value.Value]. It must be within what the Go type gives, and be true: the
// host gives no program another value, and fails the request in its place.
func Type(notation string) OpOption {
	return func(o *Operation) {
		t, err := check.ParseAnswer(notation)
		switch {
		case o.mistake != nil:
		case err != nil:
			o.mistake = fmt.Errorf("operation %s: the type of its answer, %s: %w", o.Name, short(notation), err)
		default:
			if gives := o.gives; gives != nil {
				if why := check.Within(t, gives); why != "" {
					o.mistake = fmt.Errorf("operation %s: the type of its answer is %s, and its handler gives %s: %s", o.Name, short(notation), short(gives.String()), why)
				}
			}
			o.Type = t
		}
	}
}

// answer is the type of what a plan gives, as a manifest says it; nil: nothing is
// known of it, or it would be too long to be said.
func (p *plan) answer() *check.Type {
	t := p.gives()
	if t == check.Data {
		return nil
	}
	if _, err := check.ParseAnswer(t.String()); err != nil {
		return nil
	}
	return t
}

// gives is the type of what a plan encodes.
func (p *plan) gives() *check.Type {
	switch p.kind {
	case planString:
		return check.String
	case planInt:
		return check.Int
	case planBool:
		return check.Bool
	case planList:
		return check.List(p.elem.gives())
	case planMap:
		return check.Record(nil, p.elem.gives())
	case planPointer:
		return orNull(p.elem.gives())
	case planRecord:
		fields := make([]check.Field, len(p.fields))
		for i, f := range p.fields {
			from := f.plan
			if from.kind == planPointer {
				from = from.elem // nil is left out
			}
			fields[i] = check.Field{Key: f.name, Type: from.gives(), Optional: f.optional}
		}
		return check.Record(fields, nil)
	case planExact:
		return exactly(p.typ)
	}
	return check.Data
}

// orNull is a type, or null.
func orNull(t *check.Type) *check.Type {
	if t.Kinds&prim.KindUnit != 0 {
		return t
	}
	u := *t
	u.Kinds |= prim.KindUnit
	return &u
}

// exactly is the type of one of the language's own, of which a nil pointer is null.
func exactly(t reflect.Type) *check.Type {
	switch t {
	case reflect.TypeFor[value.Int]():
		return check.Int
	case reflect.TypeFor[value.Dec]():
		return check.Dec
	case reflect.TypeFor[value.Str]():
		return check.String
	case reflect.TypeFor[value.Bool]():
		return check.Bool
	case reflect.TypeFor[value.Unit]():
		return check.Unit
	case reflect.TypeFor[*value.Record]():
		return orNull(check.Record(nil, check.Data))
	case reflect.TypeFor[*value.Cons]():
		return orNull(check.List(check.Data))
	case reflect.TypeFor[*value.Pair]():
		return orNull(check.Pair(check.Data, check.Data))
	}
	return check.Data
}
