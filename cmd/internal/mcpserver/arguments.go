package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// arguments are those of a call, taken apart and no further: a value stays the
// bytes the client sent, so that its numbers are exact.
type arguments struct {
	tool    string
	members []member
}

type member struct {
	name  string
	value json.RawMessage
}

// readArguments takes a call's arguments apart and refuses those the tool
// doesn't know. They may be an object, a string of JSON of one, null or absent.
func readArguments(tool string, raw json.RawMessage, known ...string) (*arguments, *fault.Fault) {
	a := &arguments{tool: tool}
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			raw = bytes.TrimSpace([]byte(text))
		}
	}
	if len(raw) == 0 || string(raw) == "null" {
		return a, nil
	}
	members, ok := split(raw)
	if !ok {
		return nil, invalid(fmt.Sprintf("the arguments of %s are an object, not %s", tool, excerpt(raw)), tool, known)
	}
	a.members = members
	return a, a.check(known)
}

// check refuses arguments that aren't known, or come twice.
func (a *arguments) check(known []string) *fault.Fault {
	for i, m := range a.members {
		if slices.ContainsFunc(a.members[:i], func(n member) bool { return n.name == m.name }) {
			return invalid(fmt.Sprintf("duplicate argument %q", excerpt([]byte(m.name))), a.tool, known)
		}
	}
	var unknown []string
	for _, m := range a.members {
		if !slices.Contains(known, m.name) {
			unknown = append(unknown, m.name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	shown := make([]string, min(len(unknown), 5))
	for i := range shown {
		shown[i] = strconv.Quote(excerpt([]byte(unknown[i])))
	}
	f := invalid(fmt.Sprintf("%s has no argument %s", a.tool, strings.Join(shown, ", ")), a.tool, known)
	f.Near = nearest(unknown[0], known)
	return f
}

// invalid is the fault of a call that isn't what the tool takes.
func invalid(message, tool string, known []string) *fault.Fault {
	f := &fault.Fault{Kind: fault.InvalidRequest, Message: message}
	example := fmt.Sprintf(`Call it as {"name":%q,"arguments":{"input":5}}.`, tool)
	if t := fixedNamed(tool); t != nil {
		example = "Call it as " + t.example + "."
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

// raw gives an argument as it came. null counts as absent.
func (a *arguments) raw(name string) (json.RawMessage, bool) {
	v, ok := a.any(name)
	return v, ok && string(v) != "null"
}

// any gives an argument as it came, null included.
func (a *arguments) any(name string) (json.RawMessage, bool) {
	for _, m := range a.members {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

// has reports whether an argument was given, be it null.
func (a *arguments) has(name string) bool {
	_, ok := a.any(name)
	return ok
}

// wrong is the fault of an argument of the wrong kind.
func (a *arguments) wrong(name, expected string, got []byte) *fault.Fault {
	f := &fault.Fault{
		Kind:     fault.InvalidRequest,
		Message:  fmt.Sprintf("the argument %q of %s is %s, not %s", name, a.tool, expected, excerpt(got)),
		Expected: expected,
		Got:      excerpt(got),
	}
	if t := fixedNamed(a.tool); t != nil {
		f.Hint = "A correct call: " + t.example + "."
	}
	return f
}

// text reads an argument that is a string.
func (a *arguments) text(name string) (s string, ok bool, f *fault.Fault) {
	raw, ok := a.raw(name)
	if !ok {
		return "", false, nil
	}
	if !decoded(raw, &s) {
		return "", false, a.wrong(name, "a string", raw)
	}
	return s, true, nil
}

// decoded reads a string of JSON. Half a surrogate pair, or a byte that is no
// UTF-8, makes it none: [json.Unmarshal] puts U+FFFD in their place.
func decoded(raw json.RawMessage, s *string) bool {
	if json.Unmarshal(raw, s) != nil {
		return false
	}
	if !strings.ContainsRune(*s, utf8.RuneError) {
		return true
	}
	_, err := core.ParseInput(raw, core.InputData)
	return err == nil
}

// texts reads an argument that is a list of capabilities, a string of JSON of one, or
// one alone.
func (a *arguments) texts(name string) (list []string, f *fault.Fault) {
	raw, ok := a.raw(name)
	if !ok {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
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
		return nil, a.wrong(name, "a list of strings", raw)
	}
	return list, nil
}

// bare reads an argument that may be in a string: its text without quotes.
func (a *arguments) bare(name string) (text string, raw json.RawMessage, ok bool) {
	raw, ok = a.raw(name)
	if !ok {
		return "", nil, false
	}
	text = string(raw)
	if raw[0] == '"' {
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
	}
	return strings.TrimSpace(text), raw, true
}

// count reads an argument that is a positive integer, or a string of one.
func (a *arguments) count(name string, most uint64) (n uint64, ok bool, f *fault.Fault) {
	text, raw, ok := a.bare(name)
	if !ok {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		// 1e6 and 1000000.0 are integers too.
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || x != math.Trunc(x) || x < 1 || math.IsInf(x, 0) || strings.ContainsAny(text, "xXpP_") {
			return 0, false, a.wrong(name, "a positive integer", raw)
		}
		n = math.MaxUint64
		if x < 1<<63 {
			n = uint64(x)
		}
	}
	if n == 0 {
		return 0, false, a.wrong(name, "a positive integer", raw)
	}
	return min(n, most), true, nil
}

// flag reads an argument that is true or false, or a string of it.
func (a *arguments) flag(name string) (bool, *fault.Fault) {
	text, raw, ok := a.bare(name)
	if !ok {
		return false, nil
	}
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false", "":
		return false, nil
	}
	return false, a.wrong(name, "true or false", raw)
}

// excerpt shows a part of what was sent.
func excerpt(b []byte) string {
	const most = 60
	b = bytes.TrimSpace(b)
	if len(b) <= most {
		return string(b)
	}
	n := most
	for n > 0 && b[n]&0xC0 == 0x80 {
		n--
	}
	return string(b[:n]) + "…"
}

// split takes a JSON object apart into its members. The JSON has been checked
// by the transport; where it hasn't, split never reads beyond it.
func split(raw []byte) (members []member, ok bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	i := space(raw, 1)
	if i < len(raw) && raw[i] == '}' {
		return nil, space(raw, i+1) == len(raw)
	}
	for {
		end := skip(raw, i)
		var name string
		if end < 0 || json.Unmarshal(raw[i:end], &name) != nil {
			return nil, false
		}
		i = space(raw, end)
		if i >= len(raw) || raw[i] != ':' {
			return nil, false
		}
		i = space(raw, i+1)
		if end = skip(raw, i); end <= i {
			return nil, false
		}
		members = append(members, member{name, raw[i:end]})
		i = space(raw, end)
		if i >= len(raw) {
			return nil, false
		}
		switch raw[i] {
		case '}':
			return members, space(raw, i+1) == len(raw)
		case ',':
			i = space(raw, i+1)
		default:
			return nil, false
		}
	}
}

func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r') {
		i++
	}
	return i
}

// skip is the index after the value at i, or -1. It needs no stack, however
// deep the value nests.
func skip(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			for i++; ; i++ {
				if i >= len(raw) {
					return -1
				}
				if raw[i] == '\\' {
					i++
				} else if raw[i] == '"' {
					break
				}
			}
			i++
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return -1
			}
			i++
			continue
		default:
			for i < len(raw) && !strings.ContainsRune(",:]}{[\" \t\n\r", rune(raw[i])) {
				i++
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return -1
}

// declaredIn reads what a tool declares, one capability or a list of them, each in
// its text form or as the object that says the same.
func declaredIn(raw []byte) (list []string, ok bool) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		items = []json.RawMessage{raw}
	}
	for _, item := range items {
		var text string
		switch {
		case item[0] == '"' && decoded(item, &text):
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

// inputSchema reads the schema that evolve is to declare of the tool's arguments;
// nil: none.
func readInputSchema(a *arguments) (json.RawMessage, *fault.Fault) {
	raw, ok := a.raw("input_schema")
	if !ok {
		return nil, nil
	}
	inner := unwrapped(raw)
	members, ok := split(inner)
	switch {
	case len(inner) == 0, string(inner) == "null", ok && len(members) == 0:
		return nil, nil
	case !ok || !json.Valid(inner):
		return nil, a.wrong("input_schema", "a JSON Schema of an object", raw)
	}
	return inner, nil
}

// withInput adds what was declared of a tool's arguments, where something was.
func withInput(o object, t *registry.Tool) object {
	if t.Input == nil {
		return o
	}
	return o.raw("input_schema", inputSchemaOf(t))
}
