package run

import (
	"bytes"
	"cmp"
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
func unquote(text []byte) []byte {
	if !bytes.Contains(text, []byte(holeMark)) {
		return text
	}
	return quotedHole.ReplaceAll(text, []byte("$1"))
}

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

// TooOld reports whether it can't be done any more, unless it was begun.
func (p *Plan) TooOld() bool { return !time.Now().Before(p.Expires()) }

// Lines is the plan as a person reads it. inPart is set where some contents are shown in part, or
// together; fits where it isn't too long to be approved.
func (p *Plan) Lines() (lines []string, inPart, fits bool) {
	who := "An inline program"
	if p.Tool != "" {
		who = fmt.Sprintf("%s (version %d)", caps.Quote(p.Tool), p.Version)
	}
	things := fmt.Sprintf("%d things", len(p.Steps))
	if len(p.Steps) == 1 {
		things = "1 thing"
	}
	lines = []string{fmt.Sprintf("%s wants to do %s:", who, things)}
	args := make([][]shownArg, len(p.Steps))
	for i, s := range p.Steps {
		args[i] = s.shown()
		inPart = inPart || slices.ContainsFunc(args[i], func(a shownArg) bool { return a.cut })
	}
	for i := 0; i < len(p.Steps); {
		n := 1
		for i+n < len(p.Steps) && p.Steps[i+n].Op == p.Steps[i].Op && p.Steps[i+n].Capability == p.Steps[i].Capability {
			n++
		}
		if n < minGroup {
			n = 1
		}
		inPart = inPart || n > 1
		lines = append(lines, groupLines(i, p.Steps[i:i+n], args[i:i+n])...)
		i += n
	}
	lines = append(lines, p.ReadsText()+" "+p.Ends)
	if inPart {
		lines = append(lines, "Contents ending in ... and groups of steps are shown in part here; they can be read in full before the answer.")
	}
	lines = folded(lines)
	return lines, inPart, len(lines) <= maxPlanLines
}

func folded(lines []string) (all []string) {
	for _, line := range lines {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		all = append(all, caps.FoldedASCII(indent, ascii(strings.TrimLeft(line, " ")))...)
	}
	return all
}

// Full is the steps from a number to another, from 1, with all of each argument, as far as that is so many lines; 0: all of
// it. What says not what is acted on stands within a margin, line by line.
func (p *Plan) Full(from, to, most int) (lines []string) {
	most = cmp.Or(most, math.MaxInt)
	for i := max(from, 1) - 1; i < min(to, len(p.Steps)); i++ {
		s := p.Steps[i]
		lines = append(lines, folded([]string{s.head(fmt.Sprintf("%3d", i+1), "")})...)
		for _, a := range s.shown() {
			if len(lines) > most {
				return lines[:most]
			}
			name, text := "       "+a.key, string(a.text)
			switch {
			case a.isText && !a.designates && (a.cut || strings.Contains(a.whole, "\n")):
				name, text = fmt.Sprintf("%s%s: a text of %d characters", name, s.sources(a.key), a.length), a.whole
			case a.designates || utf8.RuneCount(a.json) <= shownText:
				lines = append(lines, folded([]string{name + " " + text + s.sources(a.key)})...)
				continue
			default:
				name += s.sources(a.key) + ":"
				var indented bytes.Buffer
				if a.nested <= maxIndented && json.Indent(&indented, a.json, "", "  ") == nil {
					text = string(unquote(indented.Bytes()))
				}
			}
			lines = append(append(lines, folded([]string{name})...), caps.Margined(text, most-len(lines))...)
		}
	}
	return lines[:min(len(lines), most)]
}

// maxIndented is how deep an argument may be nested that is shown line by line: the lines of one that is nested deeper
// are mostly indentation, a thousand times its size.
const maxIndented = 12

// A shownArg is one argument of a step as it is shown.
type shownArg struct {
	key    string // "" where the argument isn't a record
	json   []byte
	text   []byte // the same with words in the place of what isn't known
	whole  string // of a text that is known, what it is
	isText bool
	length int // characters of the text, or of JSON of anything else
	nested int
	// designates is set where it may say what is acted on; of anything else, beginning may be in part: cut.
	designates, cut bool
	beginning       string
}

// shown is a step's arguments by name, first those that say what is acted on.
func (s *PlanStep) shown() (all []shownArg) {
	v := s.shownArgs(marked)
	fields := []value.Field{{Key: "", Value: v}}
	if r, ok := v.(*value.Record); ok {
		first := func(f value.Field) int { return slices.Index(append(s.Designating, f.Key), f.Key) }
		fields = slices.SortedStableFunc(slices.Values(r.Fields), func(a, b value.Field) int { return first(a) - first(b) })
	}
	for _, f := range fields {
		a := shownArg{key: f.Key, json: encoded(f.Value), nested: labelled.Holes(f.Value, func(*labelled.Hole) {})}
		a.text = bytes.TrimSpace(unquote(a.json))
		a.length = utf8.RuneCount(a.text)
		if str, ok := value.Force(f.Value).(value.Str); ok && !quotedHole.Match(a.json) {
			a.isText, a.whole, a.length = true, string(str), utf8.RuneCountInString(string(str))
		}
		switch long := utf8.RuneCount(a.text); {
		case s.Capability == "", f.Key == "", slices.Contains(s.Designating, f.Key), len(s.Designating) == 0 && long <= 2*shownText:
			a.designates, a.beginning = true, string(a.text)
		case long <= shownText:
			a.beginning = string(a.text)
		default:
			a.cut, a.beginning = true, fmt.Sprintf("%.*s... (%d characters)", shownText, a.text, a.length)
		}
		all = append(all, a)
	}
	return all
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

// groupLines is steps of one operation with their arguments, the first of which has the index i.
func groupLines(i int, steps []*PlanStep, args [][]shownArg) (lines []string) {
	number, times := fmt.Sprintf("%3d", i+1), ""
	if len(steps) > 1 {
		number, times = fmt.Sprintf("%3d-%d", i+1, i+len(steps)), fmt.Sprintf(", %d times", len(steps))
	}
	lines = append(lines, steps[0].head(number, times))
	names := []string{}
	for _, list := range args {
		for _, a := range list {
			if !slices.Contains(names, a.key) {
				names = append(names, a.key)
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
			at := slices.IndexFunc(args[k], func(a shownArg) bool { return a.key == name })
			if at < 0 {
				continue
			}
			a := args[k][at]
			in = append(in, strconv.Itoa(i+k+1))
			designates = designates || a.designates
			longest = max(longest, a.length)
			whole[string(a.json)] = true
			if !slices.Contains(texts, a.beginning) {
				texts = append(texts, a.beginning)
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
