package conform

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// A shape is what a manifest's words say of a result:
//
//	string, int, bool, number, dec, any, value, record, list
//	record: a, b?, c (a remark)    b and c may be missing
//	list of strings
//	list of records: a, b
//	… , or null
//
// Package sdk makes these words from the types of handlers. What else stands there
// isn't judged.
type shape struct {
	kind    string
	null    bool
	items   *shape
	members []member
	named   bool // the members are listed
}

type member struct {
	name     string
	optional bool
}

var (
	remark = regexp.MustCompile(`\s*\([^()]*\)`)
	name   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\??$`)
	plain  = []string{"string", "int", "bool", "number", "dec", "any", "value", "record", "list"}
)

// shapeOf reads the words; nil where they say nothing that can be judged.
func shapeOf(words string) *shape {
	s := &shape{}
	words, s.null = strings.CutSuffix(strings.TrimSpace(words), ", or null")
	head, rest, listed := strings.Cut(words, ":")
	head = strings.TrimSpace(remark.ReplaceAllString(head, ""))
	if items, ok := strings.CutPrefix(head, "list of "); ok {
		s.kind = "list"
		item := strings.TrimSuffix(items, "s")
		if listed {
			item += ":" + rest
		}
		s.items = shapeOf(item)
		return s
	}
	if !slices.Contains(plain, head) {
		return nil
	}
	if s.kind = head; head == "record" && listed {
		s.members, s.named = membersOf(rest)
	}
	return s
}

// membersOf reads the members of a record; false where one of them is no name.
func membersOf(words string) ([]member, bool) {
	// The commas of remarks separate nothing.
	words = remark.ReplaceAllStringFunc(words, func(string) string { return "?" })
	var all []member
	for _, word := range strings.Split(words, ",") {
		word = strings.TrimSpace(word)
		if !name.MatchString(word) {
			return nil, false
		}
		n, optional := strings.CutSuffix(word, "?")
		all = append(all, member{n, optional})
	}
	return all, true
}

// judge says why a value isn't of a shape, or "".
func (s *shape) judge(v value.Value) string {
	v = value.Force(v)
	if _, null := v.(value.Unit); s == nil || s.kind == "any" || s.kind == "value" || s.null && null {
		return ""
	}
	got := string(v.Type())
	switch {
	case s.kind == "number" && (got == "int" || got == "dec"), s.kind == got:
	default:
		return fmt.Sprintf("%s where %s was said", got, s.kind)
	}
	switch v := v.(type) {
	case *value.Cons:
		items, _ := value.Slice(v)
		for i, item := range items {
			if why := s.items.judge(item); why != "" {
				return fmt.Sprintf("item %d: %s", i, why)
			}
		}
	case *value.Record:
		if s.named {
			return s.judgeMembers(v)
		}
	}
	return ""
}

func (s *shape) judgeMembers(r *value.Record) string {
	for _, m := range s.members {
		has := slices.ContainsFunc(r.Fields, func(f value.Field) bool { return f.Key == m.name })
		if !has && !m.optional {
			return "a record without " + m.name
		}
	}
	for _, f := range r.Fields {
		if !slices.ContainsFunc(s.members, func(m member) bool { return m.name == f.Key }) {
			return "a record with " + f.Key + ", which wasn't said"
		}
	}
	return ""
}

// judgeFailure says what is wrong with a failure, or "".
func judgeFailure(f *pluginv1.Failure) string {
	switch {
	case !slices.Contains(wire.FailureCodes, f.GetCode()):
		return fmt.Sprintf("a failure with the code %q, which is none of %s", f.GetCode(), strings.Join(wire.FailureCodes, ", "))
	case strings.TrimSpace(f.GetMessage()) == "":
		return "the failure " + f.GetCode() + " without a message"
	case len(f.GetMessage()) > 4000 || len(f.GetHint()) > 4000:
		return "the failure " + f.GetCode() + " with a text of more than 4000 bytes"
	}
	return ""
}
