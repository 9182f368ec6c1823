package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// A Reading is an input as a program is to be given it.
type Reading struct {
	// Values is JSON, one for each parameter, or one for code that has none. It is
	// read as data (parse.Data), or where Term is set as terms (parse.Term).
	Values []json.RawMessage
	// Term is set where the input holds code or a function.
	Term bool
	// Notes report what was read otherwise than it was sent.
	Notes []string
	// Unquoted is the input with the JSON of its strings in their place, where a
	// string that may be meant as JSON stayed a string; else it is nil.
	Unquoted json.RawMessage
	// Misfit is set where a value isn't of its type. The program is given it all
	// the same, and fails at the place that can't use it.
	Misfit bool
}

// Read reads the input of a program by the types of its parameters:
//
//   - A number without point and exponent is an integer, any other an exact decimal;
//     where the type has integers and no decimals, a whole one is an integer.
//   - A string is that string. Where the type has no string, and the string holds
//     JSON of the type, it is read as that, with a note.
//   - An object is a record. The shapes {"pair":[a,b]}, {"dec":"…"}, {"int":"…"} and
//     {"record":{…}} are what results write for them, unless the type is a record
//     that declares the very key.
//   - Where the type has only code or functions, {"quote":T}, a term or the text form
//     is read as such. It may have no free variables, and nothing that acts.
//
// Several parameters are given as a record by their names, or as a list, or a pair
// for two, in their order if each item is of its parameter's type and the whole isn't
// of the first one's. An object with the key "input" alone is what it holds, where no
// parameter or field is called so.
// Faults: invalid_request, for a missing or unknown parameter; parse_error, for code.
//
// The types that d declares stand in place of those that were inferred; d may be nil.
func Read(src json.RawMessage, r *Report, d *Declared) (*Reading, *fault.Fault) {
	return readWith(src, r, d, false)
}

// ReadArguments reads the arguments of a call by name: an object with the key
// "input", or with the keys of the record that the input is, or with the parameters
// by their names. What is no object is the input itself. Otherwise it is [Read].
func ReadArguments(arguments json.RawMessage, r *Report, d *Declared) (*Reading, *fault.Fault) {
	return readWith(arguments, r, d, true)
}

// ReadPrompt reads the arguments of a prompt as [ReadArguments] does those of a call.
// The only parameter, too, has its name and must be given, unless it is a record, whose
// fields are given; see [Report.PromptArguments].
func ReadPrompt(arguments json.RawMessage, r *Report) (*Reading, *fault.Fault) {
	params, _ := r.read()
	if string(arguments) == "null" {
		arguments = nil
	}
	if len(params) != 1 || len(r.Params) != 1 || fields(params[0].Type) != nil {
		return ReadArguments(arguments, r, nil)
	}
	c := &call{params: []Parameter{{r.Params[0], params[0].Type}}}
	c.shown = c.params
	given, _ := members(arguments)
	for _, m := range given {
		if m.key != r.Params[0] {
			return nil, c.unknown(given, r.Params)
		}
	}
	if len(given) != 1 {
		return nil, c.missing(nil, nil)
	}
	c = &call{params: params}
	c.read(given[0].value, params[0])
	return c.finish()
}

// PromptArguments is what a prompt of the code is given: its parameters by their names
// in the code, or the fields of the record that the only one is.
func (r *Report) PromptArguments() []Field {
	params, _ := r.read()
	if len(params) == 1 && fields(params[0].Type) != nil {
		return params[0].Type.Fields
	}
	named := make([]Field, len(r.Params))
	for i, name := range r.Params {
		named[i] = Field{Key: name, Type: params[i].Type}
	}
	return named
}

// ReadResult reads what a program is expected to give, by the type of its result. What
// isn't of that type, or is code, is given back as it is.
func ReadResult(src json.RawMessage, r *Report) json.RawMessage {
	_, result := r.Arguments() // what the code gives of what was read, a list of several kinds too
	v := readValue(src, Parameter{"result", result})
	if v.misfit || v.bad != nil || len(v.codes) > 0 {
		return src
	}
	return v.out
}

// A call is parameters that are given values.
type call struct {
	params  []Parameter
	shown   []Parameter // they as callers are told of them
	names   []string    // of the parameters in the code
	byName  bool
	reading Reading
	values  []read
	used    used // by them
	// inString is set for an input that stood in a string.
	inString bool
}

// readWith reads by the types that were declared in place of those inferred, where d
// isn't nil.
func readWith(src json.RawMessage, r *Report, d *Declared, byName bool) (*Reading, *fault.Fault) {
	c, f := r.call(src, d, byName)
	if f != nil {
		return nil, f
	}
	return c.finish()
}

// call reads the value of each parameter.
func (r *Report) call(src json.RawMessage, d *Declared, byName bool) (*call, *fault.Fault) {
	params, _ := r.read()
	shown, _ := r.Arguments()
	if d != nil {
		params, shown = d.in(d.reads), d.Params()
	}
	c := &call{params: params, shown: shown, names: r.Params, byName: byName}
	src = bytes.TrimSpace(src)
	if len(src) == 0 {
		if !byName && len(params) > 1 {
			return nil, c.missing(nil, nil)
		}
		src = json.RawMessage("null")
		if byName || len(params) == 1 && needsRecord(params[0].Type) && !slices.ContainsFunc(params[0].Type.Fields, func(f Field) bool { return !f.Optional }) {
			src = json.RawMessage("{}")
		}
	}
	var f *fault.Fault
	if len(params) > 1 {
		f = c.several(src)
	} else {
		f = c.one(src)
	}
	return c, f
}

// read reads the value of a parameter.
func (c *call) read(raw json.RawMessage, p Parameter) {
	c.values = append(c.values, c.used.read(raw, p, c.inString))
}

func (c *call) finish() (*Reading, *fault.Fault) {
	out := &c.reading
	for i := range c.values {
		v := &c.values[i]
		if v.bad != nil {
			if len(c.values) > 1 {
				v.bad.At = fault.Pointer("").Key(c.params[i].Name) + v.bad.At
			}
			return nil, v.bad
		}
		out.Term = out.Term || len(v.codes) > 0
		out.Misfit = out.Misfit || v.misfit
		out.Notes = append(out.Notes, v.notes...)
	}
	out.Unquoted = c.unquoted()
	for i := range c.values {
		v := &c.values[i]
		if !out.Term {
			out.Values = append(out.Values, v.out)
			continue
		}
		t, f := v.term()
		if f != nil {
			return nil, f
		}
		out.Values = append(out.Values, text.Canonical(t))
	}
	return out, nil
}

// unquoted is the input with JSON in place of strings that hold it; nil: there are
// none, or what comes isn't of the types.
func (c *call) unquoted() json.RawMessage {
	found := false
	var parts []string
	var u used
	for i := range c.values {
		v, p := &c.values[i], Parameter{Input, Any}
		if i < len(c.params) {
			p = c.params[i]
		}
		src := json.RawMessage(v.Src)
		if plain := v.unquoted(); plain != nil && u.fits(plain, p) {
			src, found = plain, true
		}
		if len(c.values) == 1 {
			parts = append(parts, string(src))
		} else {
			parts = append(parts, quoted(p.Name)+":"+string(src))
		}
	}
	switch {
	case !found:
		return nil
	case len(parts) == 1:
		return json.RawMessage(parts[0])
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}")
}

// one reads the input of a program that has one parameter, or none.
func (c *call) one(src json.RawMessage) *fault.Fault {
	p := Parameter{Input, Any}
	if len(c.params) == 1 {
		p = c.params[0]
	}
	given, ok := members(src)
	if !ok {
		c.read(src, p)
		return nil
	}
	if f := c.twice(given); f != nil {
		return f
	}
	if !c.byName {
		c.read(c.named(src, p), p)
		return nil
	}
	switch {
	case len(given) == 0 && !needsRecord(p.Type):
		c.read(json.RawMessage("null"), p) // without an argument, as in run
	case len(given) == 1 && given[0].key == Input && !(hasField(p.Type, Input) && fits(src, p) && !fits(given[0].value, p)):
		c.read(c.named(given[0].value, p), p)
	case c.isName(given, p) && (fits(given[0].value, p) || isRecord(p.Type) && fits(src, p)):
		if isRecord(p.Type) {
			src = c.named(src, p)
		} else {
			src = given[0].value // arguments, which are an object whatever the input is
		}
		c.read(src, p)
	case !isRecord(p.Type):
		return c.unknown(given, []string{Input})
	case len(given) == 1 && given[0].key == "record" && !hasField(p.Type, "record"):
		c.read(src, p) // its own fields are in it
	default:
		if slices.ContainsFunc(p.Type.Fields, lacking(given)) {
			return c.missing(given, fields(p.Type))
		}
		if p.Type.Rest == nil && len(p.Type.Fields) > 0 && len(given) > 0 && !slices.ContainsFunc(given, func(m member) bool { return hasField(p.Type, m.key) }) {
			return c.unknown(given, fields(p.Type))
		}
		c.read(src, p)
	}
	return nil
}

// isName reports whether all that is given has the name of the only parameter, of which
// the code reads no part of that name.
func (c *call) isName(given []member, p Parameter) bool {
	return len(given) == 1 && len(c.names) == 1 && given[0].key == c.names[0] && !hasField(p.Type, given[0].key)
}

// named is what an input is that gives the only parameter by its name: what it holds.
// Where the code might as well be given the object itself, a note tells what was taken.
func (c *call) named(src json.RawMessage, p Parameter) json.RawMessage {
	given, ok := members(src)
	if isName := ok && c.isName(given, p); !isName {
		if ok && len(given) == 1 && given[0].key == Input && !hasField(p.Type, Input) && !isOpen(p.Type) && fits(given[0].value, p) && !fits(src, p) {
			return given[0].value
		}
		return src
	}
	value, key := given[0].value, quoted(given[0].key)
	switch wanted := p.Type.Wanted(); {
	case !fits(src, p), wanted != 0 && fits(value, Parameter{p.Name, &Type{Kinds: wanted}}):
		return value
	case isCode(p.Type):
		return src
	case !fits(value, p):
		c.reading.Notes = append(c.reading.Notes, fmt.Sprintf("input: the record {%s: …} was taken whole, though %[1]s is the parameter's name", key))
		return src
	}
	c.reading.Notes = append(c.reading.Notes, fmt.Sprintf("input: {%s: …} was read as the parameter by its name; {%[1]s: {%[1]s: …}} would give it that record", key))
	return value
}

// isRecord reports whether every value of the type is a record, or null.
func isRecord(t *Type) bool { return !isOpen(t) && t.Kinds&^prim.KindUnit == prim.KindRecord }

// needsRecord reports whether every value of the type is a record.
func needsRecord(t *Type) bool { return isRecord(t) && t.Kinds&prim.KindUnit == 0 }

// fields is the keys of a record; nil: values of the type needn't be records, or have
// no keys that are known.
func fields(t *Type) (keys []string) {
	if !isRecord(t) {
		return nil
	}
	for _, f := range t.Fields {
		keys = append(keys, f.Key)
	}
	return keys
}

// lacking reports of a field whether it has to be given and isn't.
func lacking(given []member) func(f Field) bool {
	keys := make(map[string]bool, len(given))
	for _, m := range given {
		keys[m.key] = true
	}
	return func(f Field) bool { return !f.Optional && !keys[f.Key] }
}

func isGiven(given []member, key string) bool {
	return slices.ContainsFunc(given, func(m member) bool { return m.key == key })
}

// several reads the input of a program with several parameters.
func (c *call) several(src json.RawMessage) *fault.Fault {
	if src[0] == '"' && !c.inString {
		// No string is wanted for all of them: some clients send objects so.
		if inner := unquote(src); inner != nil && (inner[0] == '{' || inner[0] == '[') && json.Valid(inner) {
			in := call{params: c.params, shown: c.shown, names: c.names, byName: c.byName, inString: true}
			if in.several(inner) == nil {
				in.reading.Notes = []string{Input + ": the string was read as JSON"}
				*c = in
				return nil
			}
		}
	}
	names := c.parameterNames()
	given, isObject := members(src)
	if isObject && len(given) == 1 && given[0].key == "record" && !slices.Contains(names, "record") {
		if inner, ok := members(bytes.TrimSpace(given[0].value)); ok {
			given, src = inner, bytes.TrimSpace(given[0].value)
		}
	}
	if isObject {
		if f := c.twice(given); f != nil {
			return f
		}
		if len(given) == 1 && given[0].key == Input && !slices.Contains(names, Input) {
			inner := bytes.TrimSpace(given[0].value)
			if inner[0] == '"' {
				return c.several(inner)
			}
			if given, isObject = members(inner); isObject {
				if f := c.twice(given); f != nil {
					return f
				}
			}
			src = inner
		}
	}
	if items := c.positions(src, given, isObject); items != nil {
		for i, p := range c.params {
			c.read(items[i], p)
		}
		return nil
	}
	if !isObject {
		first := member{c.params[0].Name, src}
		return c.missing([]member{first}, names)
	}
	byName := make(map[string]json.RawMessage, len(given))
	for _, m := range given {
		byName[m.key] = m.value
	}
	for i, p := range c.params {
		raw, ok := byName[p.Name]
		if !ok && i < len(c.names) && c.names[i] != p.Name {
			raw, ok = byName[c.names[i]] // a name that clients don't take
			delete(byName, c.names[i])
		}
		if ok {
			delete(byName, p.Name)
			c.read(raw, p)
		}
	}
	switch {
	case len(byName) > 0:
		return c.unknown(given, names)
	case len(c.values) < len(c.params):
		return c.missing(given, names)
	}
	return nil
}

// positions is the items of a list, or a pair, that gives the parameters in their
// order; nil: it doesn't.
func (c *call) positions(src json.RawMessage, given []member, isObject bool) []json.RawMessage {
	whole := src
	if isObject {
		if len(given) != 1 || given[0].key != "pair" || len(c.params) != 2 || c.params[0].Name == "pair" || c.params[1].Name == "pair" {
			return nil
		}
		src = bytes.TrimSpace(given[0].value)
	}
	s := pifjson.Cursor{Src: src}
	var items []json.RawMessage
	if !s.Array(func() bool {
		from := s.At
		ok := s.Value()
		items = append(items, src[from:s.At])
		return ok && len(items) <= len(c.params)
	}) || len(items) != len(c.params) {
		return nil
	}
	var u used
	for i, item := range items {
		if !u.fits(item, c.params[i]) {
			return nil
		}
	}
	if fits(whole, c.params[0]) {
		return nil
	}
	return items
}

// fits reports whether a value is of a parameter's type, as far as that is known.
func fits(raw json.RawMessage, p Parameter) bool { return new(used).fits(raw, p) }

func (u *used) fits(raw json.RawMessage, p Parameter) bool {
	v := u.read(raw, p, false)
	return !v.misfit && v.bad == nil
}

// Fits reports whether data is of a type, read as [Read] does.
func Fits(raw json.RawMessage, t *Type) bool { return fits(raw, Parameter{Input, t}) }

func (c *call) parameterNames() []string {
	names := make([]string, len(c.params))
	for i, p := range c.params {
		names[i] = p.Name
	}
	return names
}

// maxArguments is how many arguments are looked at where a program has fewer
// parameters.
const maxArguments = 100

// twice is the fault of an argument that is given twice.
func (c *call) twice(given []member) *fault.Fault {
	for i, m := range given {
		if isGiven(given[:min(i, maxArguments)], m.key) {
			return c.fault(fmt.Sprintf("the argument %s is given twice", quoted(m.key)), given)
		}
	}
	return nil
}

// missing is the fault of parameters, or fields, that aren't given.
func (c *call) missing(given []member, names []string) *fault.Fault {
	if names == nil {
		names = c.parameterNames()
	}
	if len(c.params) == 1 && fields(c.params[0].Type) != nil {
		names = nil
		for _, f := range c.params[0].Type.Fields {
			if !f.Optional {
				names = append(names, f.Key)
			}
		}
	}
	isAbsent := lacking(given)
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isAbsent(Field{Key: name}) })
	for i := range names {
		names[i] = plainName(names[i])
	}
	if len(names) == 1 {
		return c.fault(names[0]+" is missing", given)
	}
	return c.fault(listed(names)+" are missing", given)
}

// unknown is the fault of an argument that the program has no parameter, or field,
// for.
func (c *call) unknown(given []member, names []string) *fault.Fault {
	unknown := Input // beside others
	for _, m := range given {
		if !slices.Contains(names, m.key) {
			unknown = m.key
			break
		}
	}
	f := c.fault("no parameter "+plainName(unknown), given)
	f.Got = short(unknown)
	if f.Near = prim.Closest(short(unknown), names[:min(len(names), maxArguments)]); f.Near == "" && len(names) > 1 && len(given) == len(names) {
		// The one that is missing, if one is.
		absent := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return isGiven(given, name) })
		if len(absent) == 1 {
			f.Near = absent[0]
		}
	}
	if f.Near != "" {
		f.Message += "; did you mean " + plainName(f.Near) + "?"
	}
	return f
}

// fault is that of arguments, with those that were given in a call to be filled in.
func (c *call) fault(message string, given []member) *fault.Fault {
	return &fault.Fault{
		Kind: fault.InvalidRequest, Message: message, Expected: "every parameter by its name",
		Hint: "Call with " + sketch(c.shown, given) + ".",
	}
}

// sketch is an object with the parameters, or the fields of the only one, and what
// was given of them, or their types.
func sketch(params []Parameter, given []member) string {
	type wanted struct {
		name string
		t    *Type
	}
	var all []wanted
	for _, p := range params {
		all = append(all, wanted{p.Name, p.Type})
	}
	if len(params) == 1 && fields(params[0].Type) != nil {
		all = nil
		for _, f := range params[0].Type.Fields {
			all = append(all, wanted{f.Key, f.Type})
		}
	}
	const most = 10
	var parts []string
	for i, w := range all {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(all)-most))
			break
		}
		value := short(w.t.String())
		for _, m := range given {
			if m.key == w.name && len(m.value) <= longestName {
				value = string(m.value)
			}
		}
		parts = append(parts, quoted(w.name)+": "+value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// listed is the first of many names.
func listed(names []string) string {
	const most = 10
	switch n := len(names); {
	case n > most:
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", n-most)
	case n > 1:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// plainName is a name in a sentence: in quotes where it is no word.
func plainName(name string) string {
	if name == portable(name) {
		return name
	}
	return quoted(name)
}

// quoted is a name, or the beginning of a long one, in quotes.
func quoted(name string) string { return strconv.Quote(short(name)) }

func short(name string) string { return display.Truncate(name, longestName) }

// A member of an object, in the order of the source.
type member struct {
	key   string
	value json.RawMessage
}

// members takes an object apart; false: it is none.
func members(src []byte) (all []member, ok bool) {
	s := pifjson.Cursor{Src: src}
	ok = s.Object(func(key []byte) bool {
		from := s.At
		var name string
		if !s.Value() || json.Unmarshal(key, &name) != nil {
			return false
		}
		all = append(all, member{name, src[from:s.At]})
		return true
	})
	return all, ok && s.Space() == 0 && s.At == len(src)
}
