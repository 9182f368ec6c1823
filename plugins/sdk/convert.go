package sdk

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// decodeArguments sets the fields of a struct from a record. What doesn't fit is
// a failure that names the argument.
func (p *plan) decodeArguments(into reflect.Value, args value.Value) error {
	if args == nil {
		args = &value.Record{}
	}
	record, ok := args.(*value.Record)
	if !ok {
		return Fail("invalid", "the arguments are a record, not %s", describe(args))
	}
	return p.decodeRecord(into, record, "")
}

// decode sets a Go value from one of the language; place names it.
func (p *plan) decode(into reflect.Value, v value.Value, place string) error {
	wrong := func(want string) error {
		return Fail("invalid", "%s must be %s, not %s", place, want, describe(v))
	}
	switch p.kind {
	case planAny:
		into.Set(reflect.ValueOf(v))
		return nil
	case planSecret:
		s, more, ok := SecretIn(v)
		if !ok || len(more) > 0 {
			return wrong(`a record such as {"secret": "NAME"}, which names a secret of the operator's`)
		}
		into.Set(reflect.ValueOf(s))
		return nil
	case planExact:
		if reflect.TypeOf(v) != p.typ {
			return wrong("another type of value")
		}
		into.Set(reflect.ValueOf(v))
		return nil
	case planPointer:
		if _, ok := v.(value.Unit); ok {
			return nil
		}
		target := reflect.New(p.elem.typ)
		if err := p.elem.decode(target.Elem(), v, place); err != nil {
			return err
		}
		into.Set(target)
		return nil
	case planString:
		s, ok := v.(value.Str)
		if !ok {
			return wrong("a string")
		}
		into.SetString(string(s))
	case planBool:
		b, ok := v.(value.Bool)
		if !ok {
			return wrong("true or false")
		}
		into.SetBool(bool(b))
	case planInt:
		i, ok := v.(value.Int)
		if !ok {
			return wrong("an integer")
		}
		n, fits := i.Int64()
		if !fits || into.OverflowInt(n) {
			return Fail("invalid", "%s doesn't fit %d bits", place, into.Type().Bits())
		}
		into.SetInt(n)
	case planList:
		items, ok := value.Slice(v)
		if !ok {
			return wrong("a list")
		}
		list := reflect.MakeSlice(p.typ, len(items), len(items))
		for i, item := range items {
			if err := p.elem.decode(list.Index(i), item, place+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
		into.Set(list)
	case planMap:
		record, ok := v.(*value.Record)
		if !ok {
			return wrong("a record")
		}
		m := reflect.MakeMapWithSize(p.typ, len(record.Fields))
		for _, f := range record.Fields {
			item := reflect.New(p.elem.typ).Elem()
			if err := p.elem.decode(item, f.Value, place+"."+f.Key); err != nil {
				return err
			}
			m.SetMapIndex(reflect.ValueOf(f.Key).Convert(p.typ.Key()), item)
		}
		into.Set(m)
	case planRecord:
		record, ok := v.(*value.Record)
		if !ok {
			return wrong("a record")
		}
		return p.decodeRecord(into, record, place+".")
	}
	return nil
}

func (p *plan) decodeRecord(into reflect.Value, record *value.Record, prefix string) error {
	known := 0
	for i := range p.fields {
		f := &p.fields[i]
		at, ok := slices.BinarySearchFunc(record.Fields, f.name, func(m value.Field, name string) int {
			return strings.Compare(m.Key, name)
		})
		if ok {
			known++
		}
		if ok && f.optional && f.plan.kind != planAny {
			_, null := record.Fields[at].Value.(value.Unit)
			ok = !null // null is how models leave an argument out
		}
		if !ok {
			if !f.optional {
				return Fail("invalid", "%s is missing", prefix+f.name).WithHint("Give " + prefix + f.name + ", " + article(f.plan.paramType()) + ".")
			}
			continue
		}
		v := record.Fields[at].Value
		if err := f.plan.decode(into.Field(f.index), v, prefix+f.name); err != nil {
			return err
		}
		if s, ok := v.(value.Str); ok && f.enum != nil && !slices.Contains(f.enum, string(s)) {
			return Fail("invalid", "%s is %q, not one of %s", prefix+f.name, short(string(s)), strings.Join(f.enum, ", "))
		}
	}
	if known < len(record.Fields) {
		return p.unknown(record, prefix)
	}
	return nil
}

// unknown names a member that isn't asked for.
func (p *plan) unknown(record *value.Record, prefix string) error {
	names := make([]string, len(p.fields))
	for i, f := range p.fields {
		names[i] = f.name
	}
	for _, m := range record.Fields {
		if !slices.Contains(names, m.Key) {
			return Fail("invalid", "unknown argument %s", prefix+short(m.Key)).WithHint("It takes " + strings.Join(names, ", ") + ".")
		}
	}
	return Fail("invalid", "an argument is given twice")
}

// encode makes a value of a Go one.
func (p *plan) encode(v reflect.Value) (value.Value, error) {
	switch p.kind {
	case planAny, planExact:
		got, _ := v.Interface().(value.Value)
		if got == nil || v.Kind() == reflect.Pointer && v.IsNil() {
			return value.Unit{}, nil
		}
		return got, nil
	case planPointer:
		if v.IsNil() {
			return value.Unit{}, nil
		}
		return p.elem.encode(v.Elem())
	case planString:
		return text(v.String())
	case planBool:
		return value.Bool(v.Bool()), nil
	case planInt:
		return value.NewInt(v.Int()), nil
	case planList:
		items := make([]value.Value, v.Len())
		for i := range items {
			var err error
			if items[i], err = p.elem.encode(v.Index(i)); err != nil {
				return nil, err
			}
		}
		return value.FromSlice(items), nil
	case planMap:
		return p.encodeMap(v)
	}
	fields := make([]value.Field, 0, len(p.fields))
	for _, i := range p.sorted {
		f := &p.fields[i]
		member := v.Field(f.index)
		if f.optional && member.IsZero() {
			continue
		}
		item, err := f.plan.encode(member)
		if err != nil {
			return nil, err
		}
		fields = append(fields, value.Field{Key: f.name, Value: item})
	}
	return &value.Record{Fields: fields}, nil
}

func (p *plan) encodeMap(v reflect.Value) (value.Value, error) {
	fields := make([]value.Field, 0, v.Len())
	for each := v.MapRange(); each.Next(); {
		key, err := text(each.Key().String())
		if err != nil {
			return nil, err
		}
		item, err := p.elem.encode(each.Value())
		if err != nil {
			return nil, err
		}
		fields = append(fields, value.Field{Key: string(key), Value: item})
	}
	slices.SortFunc(fields, func(a, b value.Field) int { return strings.Compare(a.Key, b.Key) })
	return &value.Record{Fields: fields}, nil
}

// text is a string of the language.
func text(s string) (value.Str, error) {
	if !utf8.ValidString(s) {
		return "", Fail("failed", "the operation gave text that isn't UTF-8").WithHint("Ask for another encoding, such as base64, where the operation has one.")
	}
	return value.Str(s), nil
}

// describe says what a value is, for a message.
func describe(v value.Value) string {
	if _, ok := v.(value.Unit); ok {
		return "null"
	}
	return article(string(v.Type()))
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return fmt.Sprintf("a %s", noun)
}

// short truncates s as messages show it.
func short(s string) string { return display.Truncate(s, 60) }

// Encode writes a value as bytes, for plugins that keep values: exactly, and two
// values that are the same to the last digit as the same bytes. It is the
// message Value of the contract. A value of more than most bytes, or one that
// holds a function, is a [Failure].
func Encode(v value.Value, most int) ([]byte, error) {
	b, err := wire.EncodeValue(v, most)
	switch {
	case errors.Is(err, wire.ErrTooLarge):
		return nil, Fail("too_large", "the value has more than the %d bytes that are allowed", most)
	case err != nil:
		return nil, Fail("invalid", "the value can't be kept: %s", err)
	}
	return b, nil
}

// Decode reads what [Encode] wrote.
func Decode(b []byte) (value.Value, error) {
	v, err := wire.DecodeValue(b)
	if err != nil {
		return nil, fmt.Errorf("these bytes are no value: %w", err)
	}
	return v, nil
}
