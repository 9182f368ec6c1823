package check

import (
	"bytes"
	"encoding/json"
	"slices"
)

// A Shape is an output schema, read to hold results against: of the words that
// [OutputSchema] writes. It is immutable.
type Shape struct {
	Type       string            `json:"type"` // "": any
	AnyOf      []*Shape          `json:"anyOf"`
	Items      *Shape            `json:"items"`
	MinItems   int               `json:"minItems"`
	MaxItems   *int              `json:"maxItems"`
	Properties map[string]*Shape `json:"properties"`
	Required   []string          `json:"required"`
	Rest       *rest             `json:"additionalProperties"`
}

// A rest is what other members of an object may be: none, where shape is nil.
type rest struct{ shape *Shape }

// UnmarshalJSON reads false, or a schema.
func (r *rest) UnmarshalJSON(src []byte) error {
	if string(src) == "false" {
		return nil
	}
	return json.Unmarshal(src, &r.shape)
}

// ParseShape reads what [OutputSchema] has written.
func ParseShape(schema json.RawMessage) (*Shape, error) {
	s := new(Shape)
	return s, json.Unmarshal(schema, s)
}

// Holds reports whether a result, as it is written, is one that the schema lets
// through. A program gives others only for inputs that aren't of its type.
func (s *Shape) Holds(src json.RawMessage) bool {
	src = bytes.TrimSpace(src)
	if s.AnyOf != nil {
		return slices.ContainsFunc(s.AnyOf, func(a *Shape) bool { return a.Holds(src) })
	}
	if s.Type == "" || len(src) == 0 {
		return true
	}
	switch c := src[0]; s.Type {
	case "integer":
		return (c == '-' || '0' <= c && c <= '9') && !bytes.ContainsAny(src, ".eE")
	case "number":
		return c == '-' || '0' <= c && c <= '9'
	case "string":
		return c == '"'
	case "boolean":
		return c == 't' || c == 'f'
	case "null":
		return c == 'n'
	case "array":
		return c == '[' && s.list(src)
	case "object":
		return c == '{' && s.object(src)
	}
	return true
}

func (s *Shape) list(src []byte) bool {
	if s.Items == nil && s.MinItems == 0 && s.MaxItems == nil {
		return true
	}
	var items []json.RawMessage
	if json.Unmarshal(src, &items) != nil || len(items) < s.MinItems || s.MaxItems != nil && len(items) > *s.MaxItems {
		return false
	}
	return s.Items == nil || !slices.ContainsFunc(items, func(v json.RawMessage) bool { return !s.Items.Holds(v) })
}

func (s *Shape) object(src []byte) bool {
	if s.Properties == nil && s.Required == nil && s.Rest == nil {
		return true
	}
	all, ok := members(src)
	if !ok {
		return false
	}
	left := len(s.Required)
	for _, m := range all {
		if slices.Contains(s.Required, m.key) {
			left--
		}
		switch known, ok := s.Properties[m.key]; {
		case ok:
			if !known.Holds(m.value) {
				return false
			}
		case s.Rest != nil && (s.Rest.shape == nil || !s.Rest.shape.Holds(m.value)):
			return false
		}
	}
	return left == 0
}
