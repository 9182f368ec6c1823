package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	labelled "github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// How a plan is shown to a person and to a model.

const (
	// maxPlanLines is how long the screen of a plan may be that a person approves.
	maxPlanLines = 120
	// shownText is up to how many characters of an argument are shown that says not what is acted on.
	shownText = 60
	// minGroup is from how many on steps of one operation are shown together.
	minGroup = 4
)

// shownArgs is a step's argument with words in the place of what isn't known.
func (s *PlanStep) shownArgs(name func(*labelled.Hole) string) value.Value {
	v, err := journal.ReadValue(s.Args)
	if err != nil {
		return value.Str("(it can't be shown)")
	}
	return nameHoles(v, name)
}

// marked is a hole as [unquote] finds it in JSON.
func marked(h *labelled.Hole) string {
	return "\x00hole:" + strings.NewReplacer("‹", "<", "›", ">").Replace(h.String())
}

var quotedHole = regexp.MustCompile(`"\\u0000hole:((?:[^"\\]|\\.)*)"`)

// unquote has holes stand without quotes, so that no text of a program looks like one.
func unquote(text []byte) []byte { return quotedHole.ReplaceAll(text, []byte("$1")) }

func nameHoles(v value.Value, name func(*labelled.Hole) string) value.Value {
	switch x := value.Force(v).(type) {
	case *value.Record:
		if len(x.Fields) == 1 && x.Fields[0].Key == holeKey {
			text, _ := value.Force(x.Fields[0].Value).(value.Str)
			var h PlanHole
			if json.Unmarshal([]byte(text), &h) == nil && len(h.Steps) > 0 {
				return value.Str(name(&labelled.Hole{Steps: h.Steps, Path: h.Path, Made: h.Made}))
			}
		}
		named := &value.Record{Fields: slices.Clone(x.Fields)}
		for i := range named.Fields {
			named.Fields[i].Value = nameHoles(named.Fields[i].Value, name)
		}
		return named
	case *value.Pair:
		return &value.Pair{First: nameHoles(x.First, name), Second: nameHoles(x.Second, name)}
	case *value.Cons:
		var items []value.Value
		for here := value.Value(x); ; {
			c, more := value.Force(here).(*value.Cons)
			if !more {
				return value.FromSlice(items)
			}
			items, here = append(items, nameHoles(c.Head, name)), c.Tail
		}
	default:
		return x
	}
}

// ShownArgs is a step's argument in JSON, with words in the place of what isn't known.
func (s *PlanStep) ShownArgs() json.RawMessage {
	text, err := journal.AppendValue(nil, s.shownArgs((*labelled.Hole).String), maxPlanBytes)
	if err != nil {
		return json.RawMessage(`null`)
	}
	return text
}

// Expires is until when the plan can be done.
func (p *Plan) Expires() time.Time { return p.Made.Add(PlanLifetime) }

// Lines is the plan as a person reads it; false: it is too long to be approved.
func (p *Plan) Lines() ([]string, bool) {
	who := "An inline program"
	if p.Tool != "" {
		who = fmt.Sprintf("%s (version %d)", caps.Quote(p.Tool), p.Version)
	}
	things := fmt.Sprintf("%d things", len(p.Steps))
	if len(p.Steps) == 1 {
		things = "1 thing"
	}
	lines := []string{fmt.Sprintf("%s wants to do %s:", who, things)}
	for i := 0; i < len(p.Steps); {
		n := 1
		for i+n < len(p.Steps) && p.Steps[i+n].Op == p.Steps[i].Op && p.Steps[i+n].Capability == p.Steps[i].Capability {
			n++
		}
		if n < minGroup {
			n = 1
		}
		lines = append(lines, groupLines(i, p.Steps[i:i+n])...)
		i += n
	}
	lines = append(lines, p.ReadsText()+" "+p.Ends, "All arguments in full: mcp-pif approve --list --json")
	var all []string
	for _, line := range lines {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		all = append(all, caps.FoldedASCII(indent, ascii(strings.TrimLeft(line, " ")))...)
	}
	return all, len(all) <= maxPlanLines
}

// ascii is JSON, and words around it, with nothing but printable ASCII: letters of other alphabets can stand
// for those they look like.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r >= ' ' && r < 0x7f:
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// groupLines is steps of one operation, the first of which has the index i.
func groupLines(i int, steps []*PlanStep) (lines []string) {
	first := steps[0]
	number := fmt.Sprintf("%3d", i+1)
	op := first.Op
	if len(steps) > 1 {
		number = fmt.Sprintf("%3d-%d", i+1, i+len(steps))
		op = fmt.Sprintf("%s, %d times", op, len(steps))
	}
	head := number + " " + op
	if first.Capability != "" {
		head += " (" + first.Capability + ")"
	} else {
		head += " (whether it is permitted is known only then)"
	}
	if first.Read {
		head += ", which only reads, after what may change it"
	}
	lines = append(lines, head)
	args := make([][]value.Field, len(steps))
	names := []string{}
	for k, s := range steps {
		v := s.shownArgs(marked)
		r, ok := v.(*value.Record)
		if !ok {
			r = &value.Record{Fields: []value.Field{{Key: "", Value: v}}}
		}
		args[k] = r.Fields
		for _, f := range r.Fields {
			if !slices.Contains(names, f.Key) {
				names = append(names, f.Key)
			}
		}
	}
	for _, name := range names {
		var texts []string
		from := map[string]bool{}
		designates := false
		for k, s := range steps {
			i := slices.IndexFunc(args[k], func(f value.Field) bool { return f.Key == name })
			if i < 0 {
				continue
			}
			text, designating := shownArgument(s, name, args[k][i].Value)
			designates = designates || designating
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
			for _, o := range s.From[name] {
				from[o] = true
			}
		}
		line := "       " + name
		if name == "" {
			line = "      "
		}
		list := strings.Join(texts, ", ")
		if !designates && len(texts) > 1 && len(list) > 4*shownText {
			longest := 0
			for _, t := range texts {
				longest = max(longest, utf8.RuneCountInString(t))
			}
			list = fmt.Sprintf("%d different ones of up to %d characters, such as %s", len(texts), longest, texts[0])
		}
		line += " " + list
		if len(from) > 0 {
			var sources []string
			for o := range from {
				sources = append(sources, o)
			}
			slices.Sort(sources)
			line += " (from: " + strings.Join(sources, ", ") + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// shownArgument is one argument in JSON: whole where it may say what is acted on, else its beginning.
func shownArgument(s *PlanStep, name string, v value.Value) (text string, designates bool) {
	raw, err := journal.AppendValue(nil, v, maxPlanBytes)
	if err != nil {
		return "(it can't be shown)", false
	}
	raw = unquote(raw)
	switch {
	case s.Capability == "", name == "", slices.Contains(s.Designating, name):
		designates = true
	case len(s.Designating) == 0:
		designates = utf8.RuneCount(raw) <= 2*shownText
	}
	text = string(bytes.TrimSpace(raw))
	if n := utf8.RuneCountInString(text); !designates && n > shownText {
		text = fmt.Sprintf("%s... (%d characters)", string([]rune(text)[:shownText]), n)
	}
	return text, designates
}
