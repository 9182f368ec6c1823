package sdk

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// An OpOption changes how [Op] makes an operation.
type OpOption func(*Operation)

// VerbFrom says that the verb a request needs is the value of one of its
// arguments, in lower case, and otherwise where the argument is left out. The
// plugin lists its verbs then.
func VerbFrom(param, otherwise string) OpOption {
	return func(o *Operation) { o.VerbParam, o.Verb = param, otherwise }
}

// Result says in words what an operation gives ("record: bytes, hash"), where
// the words made from its type don't.
func Result(words string) OpOption {
	return func(o *Operation) { o.Result = words }
}

// Once says that the operation isn't idempotent where an argument has a value ("": any), whatever
// its verb is. The host knows that of kinds that ship alone.
func Once(param, value string) OpOption {
	return func(o *Operation) { o.Once = append(o.Once, [2]string{param, value}) }
}

// Op makes an operation from a handler. The name is its part after the dot and,
// unless [VerbFrom] is given, the verb a capability needs for it.
//
// S is what the plugin's Open gives; any where there is no Open. A is a struct
// whose exported fields are the arguments:
//
//	Path string   `pif:"path,main,designates" doc:"where it is"`
//	As   string   `pif:"as,optional,enum=utf8|base64" doc:"how it is encoded"`
//	Most *int64   `doc:"named after the field, most; optional, since it is a pointer"`
//
// The types of arguments are string, int, int64, bool, slices, maps from
// strings, structs, pointers to those, [Secret], and [value.Value] for any value; a
// field marked pif:"-" is none. R is one of the same types, and what it holds is what
// the program gets: a struct gives a record, a nil pointer gives null or, as a
// field, nothing, and so does a field marked optional that has its zero value.
// []byte is refused, since a string of PIF is text: say how bytes are encoded. The
// manifest has the type of R, see [Type].
//
// A handler runs in a goroutine of its own for each request, several at once.
// Its context ends when the request is cancelled or out of time, and it has to
// return then: a process that goes on is killed. A panic is a failure of that
// request only. Types that don't fit are reported by [Plugin.Manifest].
func Op[S, A, R any](name, doc string, flags Flags, handle func(ctx context.Context, scope S, args A) (R, error), more ...OpOption) Operation {
	o := Operation{Operation: caps.Operation{Name: name, Doc: doc, Verb: name}, flags: flags}
	arguments, err := planOf(reflect.TypeFor[A]())
	if err == nil && arguments.kind != planRecord {
		err = fmt.Errorf("arguments are the fields of a struct, not %s", reflect.TypeFor[A]())
	}
	if err != nil {
		o.mistake = fmt.Errorf("operation %s: %w", name, err)
		return o
	}
	result, err := planOf(reflect.TypeFor[R]())
	if err == nil && result.hasSecret() {
		err = errors.New("a Secret is an argument, and never given back")
	}
	if err != nil {
		o.mistake = fmt.Errorf("operation %s: its result: %w", name, err)
		return o
	}
	for _, f := range arguments.fields {
		o.Params = append(o.Params, f.param())
	}
	o.Result, o.Type, o.gives = result.words(), result.answer(), result.gives()
	o.handle = func(ctx context.Context, scope any, args value.Value) (value.Value, error) {
		var a A
		if err := arguments.decodeArguments(reflect.ValueOf(&a).Elem(), args); err != nil {
			return nil, err
		}
		var s S
		if scope != nil {
			var ok bool
			if s, ok = scope.(S); !ok {
				return nil, fmt.Errorf("a defect of the plugin: Open gives a %T, the operation takes a %s", scope, reflect.TypeFor[S]())
			}
		}
		r, err := handle(ctx, s, a)
		if err != nil {
			return nil, err
		}
		v, err := result.encode(reflect.ValueOf(&r).Elem())
		if f, ok := errors.AsType[Failure](err); ok && !flags.ReadOnly { // it was done
			f.Code = "unknown"
			err = f
		}
		return v, err
	}
	for _, option := range more {
		option(&o)
	}
	return o
}

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
