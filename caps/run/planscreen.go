package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
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
	// maxNumbered is up to how many steps of a group are named by their numbers.
	maxNumbered = 6
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
	lines = append(lines, p.ReadsText()+" "+p.Ends)
	if p.InPart() {
		lines = append(lines, "Contents ending in ... and groups of steps are shown in part here; they can be read in full before the answer.")
	}
	all := folded(lines)
	return all, len(all) <= maxPlanLines
}

func folded(lines []string) (all []string) {
	for _, line := range lines {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		all = append(all, caps.FoldedASCII(indent, ascii(strings.TrimLeft(line, " ")))...)
	}
	return all
}

// InPart reports whether [Plan.Lines] show some contents in part, or together.
func (p *Plan) InPart() bool {
	for i, s := range p.Steps {
		if same := i >= minGroup-1; same {
			for _, before := range p.Steps[i-minGroup+1 : i] {
				same = same && before.Op == s.Op && before.Capability == s.Capability
			}
			if same {
				return true
			}
		}
		for _, f := range s.fields() {
			if _, _, cut := shownArgument(s, f.Key, f.Value); cut {
				return true
			}
		}
	}
	return false
}

// Full is the steps from a number to another, from 1, with all of each argument. What says not what is acted on stands
// within a margin, line by line.
func (p *Plan) Full(from, to int) (lines []string) {
	for i := max(from, 1) - 1; i < min(to, len(p.Steps)); i++ {
		s := p.Steps[i]
		lines = append(lines, folded([]string{s.head(fmt.Sprintf("%3d", i+1), "")})...)
		for _, f := range s.fields() {
			name := "       " + f.Key
			text, designates, _ := shownArgument(s, f.Key, f.Value)
			if str, ok := value.Force(f.Value).(value.Str); ok && !designates && !quotedHole.Match(encoded(f.Value)) && (strings.Contains(string(str), "\n") || utf8.RuneCountInString(text) > shownText) {
				head := fmt.Sprintf("%s%s: a text of %d characters", name, s.sources(f.Key), utf8.RuneCountInString(string(str)))
				lines = append(append(lines, folded([]string{head})...), caps.Margined(string(str), math.MaxInt)...)
				continue
			}
			raw := encoded(f.Value)
			if designates || utf8.RuneCount(raw) <= shownText {
				lines = append(lines, folded([]string{name + " " + string(unquote(raw)) + s.sources(f.Key)})...)
				continue
			}
			var pretty bytes.Buffer
			if json.Indent(&pretty, raw, "", "  ") != nil {
				pretty.Write(raw)
			}
			lines = append(append(lines, folded([]string{name + s.sources(f.Key) + ":"})...), caps.Margined(string(unquote(pretty.Bytes())), math.MaxInt)...)
		}
	}
	return lines
}

// fields is a step's arguments by name, first those that say what is acted on; one that isn't a record has the name "".
func (s *PlanStep) fields() []value.Field {
	v := s.shownArgs(marked)
	if r, ok := v.(*value.Record); ok {
		first := func(f value.Field) int { return slices.Index(append(s.Designating, f.Key), f.Key) }
		return slices.SortedStableFunc(slices.Values(r.Fields), func(a, b value.Field) int { return first(a) - first(b) })
	}
	return []value.Field{{Key: "", Value: v}}
}

// sources is what an argument is made of, in words.
func (s *PlanStep) sources(name string) string {
	if len(s.From[name]) == 0 {
		return ""
	}
	return " (from: " + strings.Join(slices.Sorted(slices.Values(s.From[name])), ", ") + ")"
}

// head is a step's first line; times says how often it is made.
func (s *PlanStep) head(number, times string) string {
	head := number + " " + s.Op + times
	if s.Capability != "" {
		head += " (" + s.Capability + ")"
	} else {
		head += " (whether it is permitted is known only then)"
	}
	if s.Read {
		head += ", which only reads, after what may change it"
	}
	return head
}

func encoded(v value.Value) []byte {
	raw, err := journal.AppendValue(nil, v, maxPlanBytes)
	if err != nil {
		return []byte(`"(it can't be shown)"`)
	}
	return raw
}

// ascii is JSON, and words around it, with nothing but printable ASCII: letters of other alphabets can stand
// for those they look like, and many spaces for the end of a line.
func ascii(s string) string {
	var b strings.Builder
	before := rune(0)
	for _, r := range s {
		again := r == ' ' && before == ' '
		before = r
		switch {
		case r >= ' ' && r < 0x7f && !again:
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
	number, times := fmt.Sprintf("%3d", i+1), ""
	if len(steps) > 1 {
		number, times = fmt.Sprintf("%3d-%d", i+1, i+len(steps)), fmt.Sprintf(", %d times", len(steps))
	}
	lines = append(lines, steps[0].head(number, times))
	args := make([][]value.Field, len(steps))
	names := []string{}
	for k, s := range steps {
		args[k] = s.fields()
		for _, f := range args[k] {
			if !slices.Contains(names, f.Key) {
				names = append(names, f.Key)
			}
		}
	}
	for _, name := range names {
		var texts []string
		whole := map[string]bool{} // the arguments in full
		from := map[string]bool{}
		designates, longest := false, 0
		var in []string // the numbers of the steps that have it
		for k, s := range steps {
			at := slices.IndexFunc(args[k], func(f value.Field) bool { return f.Key == name })
			if at < 0 {
				continue
			}
			v := args[k][at].Value
			in = append(in, strconv.Itoa(i+k+1))
			text, designating, _ := shownArgument(s, name, v)
			designates = designates || designating
			longest = max(longest, characters(v))
			whole[string(encoded(v))] = true
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
			list = fmt.Sprintf("%d different ones of up to %d characters, such as %s", len(whole), longest, texts[0])
		} else if len(whole) > len(texts) { // they begin alike
			list += fmt.Sprintf(" (%d different ones)", len(whole))
		}
		line += " " + list
		switch {
		case len(in) == len(steps):
		case len(in) <= maxNumbered:
			line += " (only in " + strings.Join(in, ", ") + ")"
		default:
			line += fmt.Sprintf(" (in %d of them)", len(in))
		}
		if len(from) > 0 {
			line += " (from: " + strings.Join(slices.Sorted(maps.Keys(from)), ", ") + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// shownArgument is one argument in JSON: whole where it may say what is acted on, else its beginning.
func shownArgument(s *PlanStep, name string, v value.Value) (text string, designates, cut bool) {
	raw := unquote(encoded(v))
	switch {
	case s.Capability == "", name == "", slices.Contains(s.Designating, name):
		designates = true
	case len(s.Designating) == 0:
		designates = utf8.RuneCount(raw) <= 2*shownText
	}
	text = string(bytes.TrimSpace(raw))
	if designates || utf8.RuneCountInString(text) <= shownText {
		return text, designates, false
	}
	return fmt.Sprintf("%s... (%d characters)", string([]rune(text)[:shownText]), characters(v)), false, true
}

// characters is how many a text has, or JSON of anything else.
func characters(v value.Value) int {
	if s, ok := value.Force(v).(value.Str); ok && !quotedHole.Match(encoded(v)) {
		return utf8.RuneCountInString(string(s))
	}
	return utf8.RuneCount(unquote(encoded(v)))
}
