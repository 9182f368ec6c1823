package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
)

// Arguments are those of a call, taken apart and no further: a value stays the
// bytes the client sent, so that its numbers are exact.
type Arguments struct {
	Tool    string
	Members []Member
	Takes   []string // the names of all that there may be
}

type Member = pifjson.Member

// Read takes a call's arguments apart and refuses those the tool
// doesn't know. They may be an object, a string of JSON of one, null or absent.
func Read(tool string, raw json.RawMessage, known ...string) (*Arguments, *fault.Fault) {
	a := &Arguments{Tool: tool, Takes: known}
	raw = bytes.TrimSpace(raw)
	raw = Unwrap(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return a, nil
	}
	members, ok := SplitMost(raw, len(known)+maxUnknown) // among which one is wrong if that isn't all
	if !ok {
		return nil, Invalid(fmt.Sprintf("the arguments of %s are an object, not %s", tool, Short(raw)), tool, known)
	}
	a.Members = members
	return a, a.check(known)
}

// maxUnknown is how many arguments that a tool doesn't know are named.
const maxUnknown = 5

// check refuses arguments that aren't known, or come twice.
func (a *Arguments) check(known []string) *fault.Fault {
	given := make(map[string]bool, len(a.Members))
	for _, m := range a.Members {
		if given[m.Name] {
			return Invalid(fmt.Sprintf("duplicate argument %q", Short([]byte(m.Name))), a.Tool, known)
		}
		given[m.Name] = true
	}
	var unknown []string
	for _, m := range a.Members {
		if !slices.Contains(known, m.Name) {
			unknown = append(unknown, m.Name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	shown := make([]string, min(len(unknown), maxUnknown))
	for i := range shown {
		shown[i] = strconv.Quote(Short([]byte(unknown[i])))
	}
	f := Invalid(fmt.Sprintf("%s has no argument %s", a.Tool, strings.Join(shown, ", ")), a.Tool, known)
	f.Near = Nearest(unknown[0], known)
	return f
}

// Invalid is the fault of a call that isn't what the tool takes.
func Invalid(message, tool string, known []string) *fault.Fault {
	f := &fault.Fault{Kind: fault.InvalidRequest, Message: message}
	example := fmt.Sprintf(`Call it as {"name":%q,"arguments":{"input":5}}.`, tool)
	if t := ToolNamed(tool); t != nil {
		example = "Call it as " + t.Example + "."
	}
	switch len(known) {
	case 0:
		f.Hint = fmt.Sprintf("%s takes no arguments. %s", tool, example)
	case 1:
		f.Hint = fmt.Sprintf("%s takes the argument %s. %s", tool, known[0], example)
	default:
		f.Hint = fmt.Sprintf("%s takes the arguments %s. %s", tool, strings.Join(known, ", "), example)
	}
	return f
}

// Raw gives an argument as it came. null counts as absent.
func (a *Arguments) Raw(name string) (json.RawMessage, bool) {
	v, ok := a.Any(name)
	return v, ok && string(v) != "null"
}

// Any gives an argument as it came, null included.
func (a *Arguments) Any(name string) (json.RawMessage, bool) {
	for _, m := range a.Members {
		if m.Name == name {
			return m.Value, true
		}
	}
	return nil, false
}

// Has reports whether an argument was given, be it null.
func (a *Arguments) Has(name string) bool {
	_, ok := a.Any(name)
	return ok
}

// Wrong is the fault of an argument of the wrong kind.
func (a *Arguments) Wrong(name, expected string, got []byte) *fault.Fault {
	f := &fault.Fault{
		Kind:     fault.InvalidRequest,
		Message:  fmt.Sprintf("the argument %q of %s is %s, not %s", name, a.Tool, expected, Short(got)),
		Expected: expected,
		Got:      Short(got),
	}
	if t := ToolNamed(a.Tool); t != nil {
		f.Hint = "A correct call: " + t.Example + "."
	}
	return f
}

// Text reads an argument that is a string.
func (a *Arguments) Text(name string) (s string, ok bool, f *fault.Fault) {
	raw, ok := a.Raw(name)
	if !ok {
		return "", false, nil
	}
	if !ReadString(raw, &s) {
		return "", false, a.Wrong(name, "a string", raw)
	}
	return s, true, nil
}

// ReadString reads a string of JSON. Half a surrogate pair, or a byte that is no
// UTF-8, makes it none: [json.Unmarshal] puts U+FFFD in their place.
func ReadString(raw json.RawMessage, s *string) bool {
	if json.Unmarshal(raw, s) != nil {
		return false
	}
	if !strings.ContainsRune(*s, utf8.RuneError) {
		return true
	}
	_, err := core.ParseInput(raw, core.InputData)
	return err == nil
}

// Texts reads an argument that is a list of capabilities, a string of JSON of one, or
// one alone.
func (a *Arguments) Texts(name string) (list []string, f *fault.Fault) {
	raw, ok := a.Raw(name)
	if !ok {
		return nil, nil
	}
	var text string
	if ReadString(raw, &text) {
		switch trimmed := strings.TrimSpace(text); {
		case trimmed == "":
			return nil, nil
		case trimmed[0] == '[' || trimmed[0] == '{':
			if list, ok = declaredIn([]byte(trimmed)); ok {
				return list, nil
			}
		}
		return []string{text}, nil
	}
	if list, ok = declaredIn(raw); !ok {
		return nil, a.Wrong(name, "a list of strings", raw)
	}
	return list, nil
}

// Bare reads an argument that may be in a string: its text without quotes.
func (a *Arguments) Bare(name string) (text string, raw json.RawMessage, ok bool) {
	raw, ok = a.Raw(name)
	if !ok {
		return "", nil, false
	}
	text = string(raw)
	if raw[0] == '"' && json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return strings.TrimSpace(text), raw, true
}

// Count reads an argument that is a positive integer, or a string of one.
func (a *Arguments) Count(name string, most uint64) (n uint64, ok bool, f *fault.Fault) {
	text, raw, ok := a.Bare(name)
	if !ok {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		// 1e6 and 1000000.0 are integers too.
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || x != math.Trunc(x) || x < 1 || math.IsInf(x, 0) || strings.ContainsAny(text, "xXpP_") {
			return 0, false, a.Wrong(name, "a positive integer", raw)
		}
		n = math.MaxUint64
		if x < 1<<63 {
			n = uint64(x)
		}
	}
	if n == 0 {
		return 0, false, a.Wrong(name, "a positive integer", raw)
	}
	return min(n, most), true, nil
}

// Flag reads an argument that is true or false, or a string of it.
func (a *Arguments) Flag(name string) (bool, *fault.Fault) {
	text, raw, ok := a.Bare(name)
	if !ok {
		return false, nil
	}
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false", "":
		return false, nil
	}
	return false, a.Wrong(name, "true or false", raw)
}

// Short shows a part of what was sent.
func Short(b []byte) string { return display.Truncate(bytes.TrimSpace(b), 60) }

// Split takes a JSON object apart into its members. The JSON has been checked
// by the transport; where it hasn't, split never reads beyond it.
func Split(raw []byte) (members []Member, ok bool) { return SplitMost(raw, math.MaxInt) }

// SplitMost is [Split] for whoever refuses an object of so many members or more: what is behind
// them isn't read.
func SplitMost(raw []byte, most int) (members []Member, ok bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	return pifjson.Members(raw, most)
}

// Items takes a JSON array apart into its items, of which it gives at most so many, and checks the
// JSON of all. null has none.
func Items(raw []byte, most int) (items []json.RawMessage, ok bool) {
	if string(raw) == "null" {
		return nil, true
	}
	if len(raw) == 0 || raw[0] != '[' || !json.Valid(raw) {
		return nil, false
	}
	c := pifjson.Cursor{Src: raw}
	c.Array(func() bool {
		from := c.At
		if len(items) >= most || !c.Value() {
			return false
		}
		items = append(items, raw[from:c.At:c.At])
		return true
	})
	return items, true
}

// MemberOf is the value of a member of a JSON object; nil: it has none.
func MemberOf(object []byte, name string) json.RawMessage {
	members, _ := Split(object)
	for _, m := range members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// declaredIn reads what a tool declares, one capability or a list of them, each in
// its text form or as the object that says the same.
func declaredIn(raw []byte) (list []string, ok bool) {
	items, ok := Items(raw, caps.MaxDeclared+1) // so many are refused
	if !ok {
		items = []json.RawMessage{raw}
	}
	for _, item := range items {
		var text string
		switch {
		case item[0] == '"' && ReadString(item, &text):
		case item[0] == '{':
			var c caps.Capability
			if c.UnmarshalJSON(item) != nil {
				return nil, false
			}
			text = c.String()
		default:
			return nil, false
		}
		list = append(list, text)
	}
	return list, true
}

// ToolNamed reads the argument name, which is required.
func (a *Arguments) ToolNamed() (string, *fault.Fault) {
	name, ok, f := a.Text("name")
	switch {
	case f != nil:
		return "", f
	case !ok || name == "":
		f := a.Wrong("name", "a tool's name", []byte("nothing"))
		f.Hint = ToSeeTools
		return "", f
	case ToolNamed(name) != nil:
		return "", fault.Newf(fault.NoTool, "%s is one of the server's own tools, not an evolved one", name).
			Hinted(fmt.Sprintf(`Call {"name":"help","arguments":{"name":%q}} to learn about it.`, name))
	}
	return name, nil
}

// Unwrap is what a string of JSON says, and anything else as it is.
func Unwrap(raw json.RawMessage) json.RawMessage {
	var s string
	if len(raw) > 0 && raw[0] == '"' && ReadString(raw, &s) {
		return bytes.TrimSpace([]byte(s))
	}
	return raw
}

// Number reads an argument that is the number of an event, from 0.
func (a *Arguments) Number(name string) (n uint64, ok bool, f *fault.Fault) {
	text, raw, ok := a.Bare(name)
	if !ok || text == "0" {
		return 0, ok, nil
	}
	if n, ok, f = a.Count(name, math.MaxInt64); f != nil {
		f = a.Wrong(name, "the number of an event", raw)
	}
	return n, ok, f
}

// version reads the version that a change is to replace; 0: none.
func (a *Arguments) version(name string) (*Version, *fault.Fault) {
	text, raw, ok := a.Bare(name)
	if !ok {
		return nil, nil
	}
	n, _, f := a.Count(name, math.MaxInt32)
	if f != nil && text != "0" {
		return nil, a.Wrong(name, "the number of a version, or 0 for no tool", raw)
	}
	v := Version(n)
	return &v, nil
}

// A ToolArgument is a field of a struct of arguments: its name, its JSON Schema, and what it is for. The tags of the
// field say it: arg, brief, more, max, schema, and hidden for what only help tells.
type ToolArgument struct {
	Name, schema     string
	Brief            string // in tools/list, for what isn't plain from the name, and in help
	More             string // in help alone
	max              uint64
	hidden, required bool
}

var (
	readStructs  sync.Map // of reflect.Type: their []ToolArgument
	typeOfSchema = map[reflect.Type]string{
		reflect.TypeFor[string](): `"type":"string"`, reflect.TypeFor[*string](): `"type":"string"`, reflect.TypeFor[ToolName](): `"type":"string"`,
		reflect.TypeFor[bool](): `"type":"boolean"`, reflect.TypeFor[Count](): `"type":"integer"`, reflect.TypeFor[Number](): `"type":"integer"`,
		reflect.TypeFor[*Number](): `"type":"integer"`, reflect.TypeFor[*Version](): `"type":"integer"`, reflect.TypeFor[Record](): `"type":"object"`,
		reflect.TypeFor[[]string](): `"type":"array","items":{"type":"string"}`, reflect.TypeFor[Records](): `"type":"array","items":{"type":"object"}`,
	}
)

// ArgumentsOf returns the arguments that a struct is of.
func ArgumentsOf(v any) []ToolArgument {
	t := reflect.TypeOf(v)
	if known, ok := readStructs.Load(t); ok {
		return known.([]ToolArgument)
	}
	list := make([]ToolArgument, t.NumField())
	for i := range list {
		f := t.Field(i)
		most, err := strconv.ParseUint(f.Tag.Get("max"), 10, 64)
		if err != nil {
			most = math.MaxInt32
		}
		list[i] = ToolArgument{
			Name: f.Tag.Get("arg"), schema: cmp.Or(f.Tag.Get("schema"), typeOfSchema[f.Type]), Brief: f.Tag.Get("brief"),
			More: strings.ReplaceAll(f.Tag.Get("more"), "{categories}", strings.Join(Categories(), ", ")),
			max:  most, hidden: f.Tag.Get("hidden") != "", required: f.Type == reflect.TypeFor[ToolName](),
		}
	}
	readStructs.Store(t, list)
	return list
}

// NamesOf returns the names of the arguments that a struct is of.
func NamesOf(v any) []string {
	var names []string
	for _, a := range ArgumentsOf(v) {
		names = append(names, a.Name)
	}
	return names
}

// ReadInto reads a call's arguments into a struct of them.
func ReadInto[A any](tool string, raw json.RawMessage) (in A, f *fault.Fault) {
	a, f := Read(tool, raw, NamesOf(in)...)
	if f == nil {
		f = a.Into(&in)
	}
	return in, f
}

// Into reads arguments that were taken apart into a struct, which v points to.
func (a *Arguments) Into(v any) (f *fault.Fault) {
	to := reflect.ValueOf(v).Elem()
	for i, arg := range ArgumentsOf(to.Interface()) {
		if !arg.required && !a.Has(arg.Name) {
			continue
		}
		switch to := to.Field(i).Addr().Interface().(type) {
		case *string:
			*to, _, f = a.Text(arg.Name)
		case **string:
			if s, ok, g := a.Text(arg.Name); ok {
				*to = &s
			} else {
				f = g
			}
		case *ToolName:
			var name string
			name, f = a.ToolNamed()
			*to = ToolName(name)
		case *bool:
			*to, f = a.Flag(arg.Name)
		case *Count:
			var n uint64
			n, _, f = a.Count(arg.Name, arg.max)
			*to = Count(n)
		case *Number:
			var n uint64
			n, _, f = a.Number(arg.Name)
			*to = Number(n)
		case **Number:
			n, ok, g := a.Number(arg.Name)
			if f = g; ok {
				*to = (*Number)(&n)
			}
		case **Version:
			*to, f = a.version(arg.Name)
		case *[]string:
			*to, f = a.Texts(arg.Name)
		case *json.RawMessage:
			*to, _ = a.Any(arg.Name)
		case *Record:
			raw, _ := a.Any(arg.Name)
			*to = Record(raw)
		case *Records:
			raw, _ := a.Any(arg.Name)
			*to = Records(raw)
		}
		if f != nil {
			return f
		}
	}
	return nil
}
