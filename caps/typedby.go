package caps

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	types "github.com/mcp-pif/mcp-pif/core/check"
	corejson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// An operation with TypeBy answers what an argument says: {found: bool, value?: T}, where T is
// that argument, or T itself where the argument need is true. Where both are literals the
// program is typed by them; in any case each answer is held to them.

// needArgument is the argument by which nothing found is a failure, and the answer T alone.
const needArgument = "need"

// askArgument is the argument in which the program says what is wanted.
const askArgument = "ask"

// Written is the arguments of an operation that a program should write out, since what comes from elsewhere
// would choose by them what a model does.
func (o *Operation) Written() []string {
	if o.TypeBy == "" {
		return nil
	}
	return []string{o.TypeBy, askArgument}
}

// The bounds of a type that an argument says, and of values of it in the notation; a JSON
// Schema says its own.
const (
	maxWanted = 4 << 10
	maxItems  = 100
	maxLine   = 200
)

// A Wanted is the type of data that an argument says.
type Wanted struct {
	Type *types.Type
	// Schema is the JSON Schema of it, for whoever is to give such data.
	Schema json.RawMessage
	// Optional is set if some record in it has members that may be left out.
	Optional bool

	schema *types.Foreign // nil: it was said in the notation
}

// ParseWanted reads the type: the notation of answers, or a JSON Schema of the subset that
// values can be held to. It has no pairs, no code and, in the notation, no open records.
func ParseWanted(text string) (*Wanted, error) {
	if len(text) > maxWanted {
		return nil, fmt.Errorf("it has %d bytes, at most %d", len(text), maxWanted)
	}
	w := &Wanted{}
	if raw := strings.TrimSpace(text); strings.HasPrefix(raw, "{") && json.Valid([]byte(raw)) {
		w.Schema = json.RawMessage(raw)
		var err error
		if w.schema, err = types.Restrict(w.Schema); err != nil {
			return nil, fmt.Errorf("the JSON Schema: %w", err)
		}
		f, err := types.FromSchema(w.Schema, types.MaxAnswer-100)
		if err != nil {
			return nil, err
		}
		w.Type = f.Type
	} else {
		var err error
		if w.Type, err = types.ParseWanted(raw); err != nil {
			return nil, err
		}
	}
	s, err := w.schemaOf(w.Type)
	if err != nil {
		return nil, err
	}
	if w.schema == nil {
		w.Schema, err = json.Marshal(s)
	}
	return w, err
}

// schemaOf gives the JSON Schema of a type's data, and refuses what JSON has no form for.
func (w *Wanted) schemaOf(t *types.Type) (map[string]any, error) {
	if t == nil {
		return map[string]any{"not": map[string]any{}}, nil
	}
	if t.Deep {
		if w.schema != nil {
			return nil, nil // it has its own
		}
		return nil, errors.New("json and data say nothing of what is wanted: name the members")
	}
	if t.Kinds&(prim.KindPair|prim.KindQuoted) != 0 {
		return nil, errors.New("JSON has neither pairs nor code")
	}
	var parts []any
	add := func(k prim.Kinds, s map[string]any) {
		if t.Kinds&k != 0 {
			parts = append(parts, s)
		}
	}
	if t.Kinds&prim.KindNumber == prim.KindInt {
		add(prim.KindInt, map[string]any{"type": "integer"})
	} else {
		add(prim.KindNumber, map[string]any{"type": "number"})
	}
	add(prim.KindString, map[string]any{"type": "string", "maxLength": maxLine})
	add(prim.KindBool, map[string]any{"type": "boolean"})
	add(prim.KindUnit, map[string]any{"type": "null"})
	if t.Kinds&prim.KindList != 0 {
		items, err := w.schemaOf(t.Item)
		if err != nil {
			return nil, err
		}
		add(prim.KindList, map[string]any{"type": "array", "items": items, "maxItems": maxItems})
	}
	if t.Kinds&prim.KindRecord != 0 {
		if t.Rest != nil && w.schema == nil {
			return nil, errors.New("a record with any other members says nothing of them: name them")
		}
		properties, required := map[string]any{}, []string{}
		for _, f := range t.Fields {
			s, err := w.schemaOf(f.Type)
			if err != nil {
				return nil, err
			}
			properties[f.Key] = s
			if w.Optional = w.Optional || f.Optional; !f.Optional {
				required = append(required, f.Key)
			}
		}
		add(prim.KindRecord, map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false})
	}
	if len(parts) == 1 {
		return parts[0].(map[string]any), nil
	}
	return map[string]any{"anyOf": parts}, nil
}

// Answer is the type of the whole answer.
func (w *Wanted) Answer(need bool) *types.Type {
	if need {
		return w.Type
	}
	return types.Record([]types.Field{{Key: "found", Type: types.Bool}, {Key: "value", Type: w.Type, Optional: true}}, nil)
}

// Misfit says where and why data isn't what is wanted, or "". It shows no part of the data.
func (w *Wanted) Misfit(v value.Value) string {
	if why := w.Type.Misfit(v); why != "" {
		return why
	}
	if w.schema == nil {
		return unbounded(v)
	}
	text, odd := corejson.Append(nil, v)
	if odd != nil {
		return "it has what JSON has no form for"
	}
	if f := w.schema.Check(text); f != nil {
		return "the JSON Schema refuses it at " + quoted(string(f.At))
	}
	return ""
}

// MisfitAnswer is [Wanted.Misfit] of a whole answer.
func (w *Wanted) MisfitAnswer(v value.Value, need bool) string {
	v = value.Force(v)
	if need {
		return w.Misfit(v)
	}
	if why := w.Answer(false).Misfit(v); why != "" {
		return why
	}
	fields := v.(*value.Record).Fields // found, and the value if it was
	switch found := value.Force(fields[0].Value) == value.Value(value.Bool(true)); {
	case found != (len(fields) == 2):
		return "a value without found, or found without a value"
	case found:
		return w.Misfit(fields[1].Value)
	}
	return ""
}

// unbounded says what in data is longer than the notation's bounds, or "".
func unbounded(v value.Value) string {
	switch v := value.Force(v).(type) {
	case value.Str:
		if utf8.RuneCountInString(string(v)) > maxLine || strings.ContainsAny(string(v), "\n\r") {
			return fmt.Sprintf("a string that isn't one line of at most %d characters", maxLine)
		}
	case *value.Cons:
		items, _ := value.Slice(v)
		if len(items) > maxItems {
			return fmt.Sprintf("a list of more than %d items", maxItems)
		}
		for _, item := range items {
			if why := unbounded(item); why != "" {
				return why
			}
		}
	case *value.Record:
		for _, f := range v.Fields {
			if why := unbounded(f.Value); why != "" {
				return why
			}
		}
	}
	return ""
}

// AnswerBy is the type of an answer that the argument by says, of arguments of which those that
// are literal strings and booleans have their values, and others nil. nil: they don't say it.
func AnswerBy(by string, literals map[string]any) *types.Type {
	text, ok := literals[by].(string)
	need, said := literals[needArgument]
	isNeeded, isBool := need.(bool)
	if !ok || said && !isBool {
		return nil
	}
	w, err := ParseWanted(text)
	if err != nil {
		return nil // it fails when it is asked
	}
	return w.Answer(isNeeded)
}

// MisfitAnswer says where and why an answer isn't of the type of the operation, or the one that
// its arguments say; "": it is. It shows no part of the answer.
func (o *Operation) MisfitAnswer(args *value.Record, v value.Value) string {
	if o.TypeBy == "" {
		if o.Gives() == nil {
			return ""
		}
		return o.Gives().Misfit(v)
	}
	var text value.Str
	need := false
	for _, f := range args.Fields {
		switch s := value.Force(f.Value).(type) {
		case value.Str:
			if f.Key == o.TypeBy {
				text = s
			}
		case value.Bool:
			need = need || f.Key == needArgument && bool(s)
		}
	}
	w, err := ParseWanted(string(text))
	if err != nil {
		return "nobody knows which type was wanted"
	}
	return w.MisfitAnswer(v, need)
}
