package caps

import (
	"fmt"
	"math"
	"slices"
	"strings"

	types "github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// arguments checks an effect's argument against the manifest and gives the
// record that the plugin gets. A lone argument becomes the main one, and whole numbers
// are integers where the parameter's type wants those, in values of at most so many bytes.
// fits is set where all of them together are known to have no more.
func arguments(o *Operation, arg value.Value, most int64, fits bool) (*value.Record, *fault.Fault) {
	wrong := func(message string) *fault.Fault {
		return &fault.Fault{Kind: fault.EffectFailed, Message: o.Name + ": " + message, Hint: example(o)}
	}
	r, isRecord := value.Force(arg).(*value.Record)
	if !isRecord {
		main := o.main()
		if main == nil {
			return nil, wrong("the argument must be a record, not " + string(arg.Type()))
		}
		r = &value.Record{Fields: []value.Field{{Key: main.Name, Value: arg}}}
	}
	given := r.Fields
	for _, f := range given {
		if f.Key == "in" {
			return nil, wrong(`"in" must be written in the code as a string, not computed`)
		}
		p := o.param(f.Key)
		if p == nil {
			message := "unknown argument " + quoted(f.Key)
			if near := prim.Closest(f.Key, o.paramNames()); near != "" {
				message += ": did you mean " + QuoteName(near) + "?"
			}
			return nil, wrong(message)
		}
		v := value.Force(f.Value)
		if p.Of != nil {
			if !fits && size(v, most) > most {
				return nil, denied(fmt.Sprintf("%s: %s has more than %s", o.Name, p.Name, formatSize(most)), "Send less at once.")
			}
			v = p.Of.Integers(v)
			r = withField(r, p.Name, v)
			if why := p.Of.Misfit(v); why != "" {
				return nil, wrong(QuoteName(p.Name) + ": " + why)
			}
		}
		if p.Type != "any" && string(v.Type()) != p.Type {
			return nil, wrong(fmt.Sprintf("%s must be of type %s, not %s", QuoteName(p.Name), p.Type, v.Type()))
		}
		if s, ok := v.(value.Str); ok && p.Enum != nil && p.Name != o.VerbParam && !slices.Contains(p.Enum, string(s)) {
			return nil, wrong(fmt.Sprintf("%s must be %s, not %s", QuoteName(p.Name), p.Choices(), quoted(string(s))))
		}
	}
	for _, p := range o.Takes() {
		if _, ok := field(r, p.Name); !ok && !p.Optional {
			return nil, wrong(QuoteName(p.Name) + " is missing")
		}
	}
	return r, nil
}

func field(r *value.Record, name string) (value.Value, bool) {
	i, ok := slices.BinarySearchFunc(r.Fields, name, func(f value.Field, name string) int { return strings.Compare(f.Key, name) })
	if !ok {
		return nil, false
	}
	return value.Force(r.Fields[i].Value), true
}

// with gives a record with another value for a key.
func withField(r *value.Record, name string, v value.Value) *value.Record {
	fields := slices.Clone(r.Fields)
	i, ok := slices.BinarySearchFunc(fields, name, func(f value.Field, name string) int { return strings.Compare(f.Key, name) })
	if ok {
		fields[i].Value = v
	} else {
		fields = slices.Insert(fields, i, value.Field{Key: name, Value: v})
	}
	return &value.Record{Fields: fields}
}

func (o *Operation) main() *Param { return o.find(func(p Param) bool { return p.Main }) }

func (o *Operation) param(name string) *Param {
	return o.find(func(p Param) bool { return p.Name == name })
}

func (o *Operation) find(is func(Param) bool) *Param {
	if i := slices.IndexFunc(o.Takes(), is); i >= 0 {
		return &o.Takes()[i]
	}
	return nil
}

func (o *Operation) paramNames() []string {
	names := make([]string, len(o.Takes()))
	for i, p := range o.Takes() {
		names[i] = p.Name
	}
	return names
}

// example is a sentence with a right call of the operation.
func example(o *Operation) string { return "Write " + o.Example() + "." }

// Example is code in JSON that asks for the operation with all that it requires.
func (o *Operation) Example() string {
	var fields []string
	term := false
	for _, p := range o.Takes() {
		if p.Optional && !p.Main {
			continue
		}
		if p.Main && o.required() == 1 {
			return fmt.Sprintf(`{"%s":%s}`, o.Name, sample(p))
		}
		_, _, row := prim.Lookup(p.Name)
		term = term || row || prim.Aliases[p.Name] != "" || strings.Contains(p.Name, ".")
		fields = append(fields, Quote(p.Name)+":"+sample(p))
	}
	arguments := "{" + strings.Join(fields, ",") + "}"
	if term { // an object with such keys may be a term
		arguments = `{"record":` + arguments + "}"
	}
	return fmt.Sprintf(`{"%s":%s}`, o.Name, arguments)
}

// maxChoices bounds the values that a fault names.
const maxChoices = 20

// Choices is the values that a string may have, in words.
func (p *Param) Choices() string {
	var list []string
	for _, v := range p.Enum[:min(len(p.Enum), maxChoices)] {
		list = append(list, Quote(display.Truncate(v, 80)))
	}
	if len(p.Enum) > maxChoices {
		list = append(list, "…")
	}
	return "one of " + strings.Join(list, ", ")
}

func (o *Operation) required() (n int) {
	for _, p := range o.Takes() {
		if !p.Optional || p.Main {
			n++
		}
	}
	return n
}

// sample is code of a value that an argument may have.
func sample(p Param) string {
	of := p.of()
	switch {
	case len(p.Enum) > 0:
		return Quote(p.Enum[0])
	case p.Secrets && p.Type == "any":
		return `{"record":{"secret":"NAME"}}`
	case of.Kinds&prim.KindString == 0:
		return sampleOf(of)
	case p.Name == "path" && p.Optional: // the root is meant without it
		return `"docs"`
	case p.Name == "path", p.Name == "from":
		return `"a.txt"`
	case p.Name == "to":
		return `"b.txt"`
	case p.Name == "pattern":
		return `"*.txt"`
	case p.Name == "url":
		return `"https://…"`
	}
	return `"…"`
}

// sampleOf is code of a value of a type of data.
func sampleOf(t *types.Type) string {
	switch k := t.Kinds; {
	case k&prim.KindString != 0:
		return `"…"`
	case k&prim.KindNumber != 0:
		return "1"
	case k&prim.KindBool != 0:
		return "true"
	case k&prim.KindList != 0:
		return "[]"
	case k&prim.KindRecord != 0:
		var fields []string
		for _, f := range t.Fields {
			if !f.Optional {
				fields = append(fields, Quote(f.Key)+":"+sampleOf(f.Type))
			}
		}
		return `{"record":{` + strings.Join(fields, ",") + "}}"
	}
	return "null"
}

// size is how many bytes a content has: a text its own, anything else as it is recorded, counting no
// further than limit.
func size(v value.Value, limit int64) int64 {
	if s, ok := v.(value.Str); ok {
		return int64(len(s))
	}
	n, _ := text.MeasureRecorded(v, limit, math.MaxUint64, nil)
	return n
}
