package sdk

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A planKind is how a Go type and a value correspond.
type planKind uint8

const (
	planString planKind = iota
	planInt
	planBool
	planList
	planMap
	planRecord
	planPointer
	planAny
	planSecret
	planExact // value.Int, value.Dec and the other concrete types of values
)

// A plan is what is known of a Go type before anything is converted, so that a
// type that can't be is found when the plugin starts.
type plan struct {
	kind   planKind
	typ    reflect.Type
	elem   *plan   // of lists, maps and pointers
	fields []field // of records, in the order of the struct
	sorted []int   // indices of fields by the bytes of their names
}

// A field is a member of a struct.
type field struct {
	index      int
	name, doc  string
	plan       *plan
	optional   bool
	main       bool
	designates bool
	prefix     bool
	secrets    bool
	enum       []string
}

var (
	valueType  = reflect.TypeFor[value.Value]()
	secretType = reflect.TypeFor[Secret]()
	errNested  = errors.New("it contains itself")
)

func planOf(t reflect.Type) (*plan, error) { return planWithin(t, nil) }

func planWithin(t reflect.Type, outer []reflect.Type) (*plan, error) {
	if slices.Contains(outer, t) {
		return nil, fmt.Errorf("%s: %w", t, errNested)
	}
	outer = append(outer, t)
	p := &plan{typ: t}
	if t == valueType {
		p.kind = planAny
		return p, nil
	}
	if t == secretType {
		p.kind = planSecret
		return p, nil
	}
	if t.Implements(valueType) {
		p.kind = planExact
		return p, nil
	}
	var err error
	switch t.Kind() {
	case reflect.String:
		p.kind = planString
	case reflect.Int, reflect.Int64:
		p.kind = planInt
	case reflect.Bool:
		p.kind = planBool
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return nil, fmt.Errorf("%s: a value has no bytes; give a string and say how it encodes them", t)
		}
		p.kind = planList
		p.elem, err = planWithin(t.Elem(), outer)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("%s: the keys of a record are strings", t)
		}
		p.kind = planMap
		p.elem, err = planWithin(t.Elem(), outer)
	case reflect.Pointer:
		p.kind = planPointer
		if p.elem, err = planWithin(t.Elem(), outer); err == nil && p.elem.kind == planPointer {
			err = fmt.Errorf("%s: a pointer to a pointer", t)
		}
	case reflect.Struct:
		p.kind = planRecord
		err = p.addFields(outer)
	default:
		return nil, fmt.Errorf("%s: values are made of string, int, int64, bool, slices, maps, structs and value.Value", t)
	}
	return p, err
}

func (p *plan) addFields(outer []reflect.Type) error {
	for i := range p.typ.NumField() {
		sf := p.typ.Field(i)
		tag := sf.Tag.Get("pif")
		if !sf.IsExported() {
			if tag != "" {
				return fmt.Errorf("%s.%s has a pif tag, but isn't exported", p.typ, sf.Name)
			}
			continue
		}
		if tag == "-" {
			continue
		}
		f, err := fieldOf(sf, i, tag)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", p.typ, sf.Name, err)
		}
		if f.plan, err = planWithin(sf.Type, outer); err != nil {
			return fmt.Errorf("%s: %w", sf.Name, err)
		}
		f.optional = f.optional || f.plan.kind == planPointer
		if err := f.checkSecrets(); err != nil {
			return fmt.Errorf("%s.%s: %w", p.typ, sf.Name, err)
		}
		if slices.ContainsFunc(p.fields, func(o field) bool { return o.name == f.name }) {
			return fmt.Errorf("%s: two fields are called %s", p.typ, f.name)
		}
		p.fields = append(p.fields, f)
	}
	if len(p.fields) == 0 && p.typ.NumField() > 0 {
		return fmt.Errorf("%s has no exported fields", p.typ)
	}
	p.sorted = make([]int, len(p.fields))
	for i := range p.sorted {
		p.sorted[i] = i
	}
	slices.SortFunc(p.sorted, func(i, j int) int { return strings.Compare(p.fields[i].name, p.fields[j].name) })
	return nil
}

func fieldOf(sf reflect.StructField, index int, tag string) (field, error) {
	f := field{index: index, doc: sf.Tag.Get("doc")}
	if sf.Anonymous {
		return f, errors.New("an embedded struct: name the field")
	}
	words := strings.Split(tag, ",")
	if f.name = words[0]; f.name == "" {
		f.name = snake(sf.Name)
	}
	for _, word := range words[1:] {
		switch {
		case word == "main":
			f.main = true
		case word == "designates":
			f.designates = true
		case word == "prefix":
			f.prefix = true
		case word == "optional":
			f.optional = true
		case word == "secrets":
			f.secrets = true
		case strings.HasPrefix(word, "enum="):
			f.enum = strings.Split(strings.TrimPrefix(word, "enum="), "|")
		default:
			return f, fmt.Errorf("unknown word %q in its tag: main, designates, prefix, optional, secrets, enum=a|b", word)
		}
	}
	return f, nil
}

// snake is the name of a field in lower case, its words joined by underscores.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		upper := unicode.IsUpper(r)
		if upper && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func (f field) param() caps.Param {
	return caps.Param{
		Name: f.name, Doc: f.doc, Type: f.plan.paramType(), Optional: f.optional,
		Main: f.main, Designates: f.designates, Enum: f.enum, Secrets: f.secrets, Prefix: f.prefix,
	}
}

// checkSecrets marks a field that has a [Secret], and refuses what the host
// wouldn't look into.
func (f *field) checkSecrets() error {
	p := f.plan
	if p.kind == planPointer {
		p = p.elem
	}
	has, reached := p.kind == planSecret, true
	switch p.kind {
	case planList:
		has, reached = p.elem.hasSecret(), p.elem.plain()
	case planMap:
		has, reached = p.elem.hasSecret(), p.elem.member()
	case planRecord:
		for _, member := range p.fields {
			has = has || member.plan.hasSecret()
			reached = reached && member.plan.member()
		}
	}
	switch {
	case has && !reached:
		return errors.New("a Secret is an argument, an item of a list or a member of a record, and nothing deeper")
	case f.secrets && !slices.Contains([]string{"any", "record", "list"}, f.plan.paramType()):
		return errors.New("what takes secrets is a Secret, or any value, a record or a list")
	}
	f.secrets = f.secrets || has
	return nil
}

// hasSecret reports whether there is a [Secret] anywhere in it.
func (p *plan) hasSecret() bool {
	return p.kind == planSecret || p.elem != nil && p.elem.hasSecret() ||
		slices.ContainsFunc(p.fields, func(f field) bool { return f.plan.hasSecret() })
}

// plain reports that it is a secret itself, or has none.
func (p *plan) plain() bool {
	return p.kind == planSecret || p.kind == planPointer && p.elem.plain() || !p.hasSecret()
}

// member is plain, or a list of what is.
func (p *plan) member() bool { return p.plain() || p.kind == planList && p.elem.plain() }

// paramType is the plan's type as a manifest says it.
func (p *plan) paramType() string {
	switch p.kind {
	case planString:
		return "string"
	case planInt:
		return "int"
	case planBool:
		return "bool"
	case planList:
		return "list"
	case planMap, planRecord:
		return "record"
	case planPointer:
		return p.elem.paramType()
	case planExact:
		switch p.typ {
		case reflect.TypeFor[value.Int]():
			return "int"
		case reflect.TypeFor[*value.Record]():
			return "record"
		case reflect.TypeFor[value.Str]():
			return "string"
		case reflect.TypeFor[value.Bool]():
			return "bool"
		}
	}
	return "any"
}

// words says what a plan gives: "list of records: kind, path".
func (p *plan) words() string {
	switch p.kind {
	case planRecord:
		names := make([]string, len(p.fields))
		for i, f := range p.fields {
			names[i] = f.name
			if f.optional {
				names[i] += "?"
			}
		}
		if len(names) == 0 {
			return "record"
		}
		return "record: " + strings.Join(names, ", ")
	case planList:
		word := p.elem.words()
		if rest, ok := strings.CutPrefix(word, "record"); ok {
			return "list of records" + rest
		}
		return "list of " + word + "s"
	case planMap:
		return "record"
	case planPointer:
		return p.elem.words() + ", or null"
	case planAny:
		return "value"
	}
	return p.paramType()
}
