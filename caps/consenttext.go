package caps

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// What a person is shown of a question. What the server knows comes first, the
// model's words last and with a margin, so that no line of theirs can be taken for
// one of the server's; nothing in either moves a cursor, hides, or turns the
// direction of what is beside it.

const (
	questionWidth   = 76 // columns
	mostDescription = 24 // lines
	mostCodeShown   = 80 // lines
	modelMargin     = "  | "
	factMargin      = "    " // of a line that goes on
)

// Lines is a question as a person reads it.
func (q *Question) Lines() []string {
	lines := []string{
		"A tool asks for your approval.",
		"",
	}
	head := func(what, text string) {
		lines = append(lines, wrapped(fmt.Sprintf("  %-9s ", what), factMargin+"        ", PlainASCII(text))...)
	}
	head("tool", `"`+q.Tool+`", version `+fmt.Sprint(q.Version))
	head("asked by", q.Who)
	head("asked at", q.Time.UTC().Format(time.RFC3339))
	head("question", q.ID)
	lines = append(lines, "")
	lines = append(lines, q.factLines()...)
	lines = append(lines, "", "What follows was written by the model, and may say anything.", "")
	lines = append(lines, modelLines("description:", q.Description, mostDescription)...)
	lines = append(lines, strings.TrimRight(modelMargin, " "))
	lines = append(lines, modelLines("code:", q.Code, mostCodeShown)...)
	return append(lines, "", "The model's words end here.")
}

// factLines is what the server knows, in lines.
func (q *Question) factLines() (lines []string) {
	for _, fact := range q.Facts {
		text := strings.TrimLeft(fact, " ")
		indent := strings.Repeat(" ", min(len(fact)-len(text), 16))
		lines = append(lines, wrapped(indent, indent+factMargin, PlainASCII(text))...)
	}
	return lines
}

// Folded is a text in lines that no terminal cuts, with nothing but printable ASCII:
// the first after what stands before it, the rest further in.
func Folded(before, text string) []string {
	return wrapped(before, strings.Repeat(" ", len(before))+factMargin, PlainASCII(text))
}

// FoldedASCII is [Folded] of a text that is printable ASCII already, which stays as it is.
func FoldedASCII(before, text string) []string {
	return wrapped(before, strings.Repeat(" ", len(before))+factMargin, text)
}

// Margined is words of a model's as a person reads them: nothing in them acts on a
// terminal, and each of at most so many lines is within a margin.
func Margined(text string, most int) []string {
	return modelLines("", text, most)
}

// modelLines is words of the model's, each line within the margin.
func modelLines(title, text string, most int) []string {
	var lines []string
	if title != "" {
		lines = append(lines, modelMargin+title)
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		lines = append(lines, wrapped(modelMargin+"  ", modelMargin+"  ", plain(line, readable))...)
		if len(lines) > most {
			return append(lines[:most], modelMargin+"  … and more, which isn't shown here: see it with describe, or 'mcp-pif tools show'")
		}
	}
	return lines
}

// PlainASCII is a text with nothing but printable ASCII: everything else is written
// out, so that letters of other alphabets can't stand for those they look like. So is
// a space after another: many of them would move what follows to a line of its own.
func PlainASCII(s string) string {
	before := rune(0)
	return plain(s, func(r rune) bool {
		again := r == ' ' && before == ' '
		before = r
		return r < utf8.RuneSelf && r >= ' ' && r != 0x7f && !again
	})
}

// Plain is a text with nothing that could act on a terminal, or on the order of what
// is shown.
func Plain(s string) string { return plain(s, readable) }

// Quote writes a text as a JSON string in which every character is seen: others are written
// \uXXXX. It is for names and values that a stranger chose.
func Quote(s string) string {
	return Visible(string(text.AppendString(nil, s)))
}

// QuoteName is [Quote] of a text that isn't a plain name; a plain one stays as it is.
func QuoteName(s string) string {
	if len(s) <= 64 && isName(s) && !strings.ContainsAny(s, "-.") && (s[0] < '0' || s[0] > '9') {
		return s
	}
	return Quote(s)
}

// Visible writes the characters beyond ASCII that aren't seen as JSON's escapes. In JSON, in
// code and in types, such characters stand in quotes.
func Visible[T ~string | ~[]byte](s T) string {
	var b strings.Builder
	for _, r := range string(s) {
		if r < 0x7f || display.Seen(r) {
			b.WriteRune(r)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
	}
	return b.String()
}

func plain(s string, shown func(rune) bool) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\\':
			b.WriteString(`\\`)
		case r == '\t':
			b.WriteString("  ")
		case shown(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u{%X}`, r)
		}
	}
	return b.String()
}

// readable tells characters that are seen where they stand: letters that are
// written from left to right, digits, punctuation, symbols, and the plain space.
func readable(r rune) bool {
	switch {
	case r >= 0x0590 && r <= 0x08FF, r >= 0xFB1D && r <= 0xFDFF, r >= 0xFE70 && r <= 0xFEFF,
		r >= 0x10800 && r <= 0x10FFF, r >= 0x1E800 && r <= 0x1EFFF: // from right to left
		return false
	}
	return display.Seen(r) && !unicode.Is(unicode.M, r)
}

// wrapped cuts a text into lines of at most the width, at a space where there is
// one, the first with one margin and the rest with another: a terminal that cut
// them would leave the margin out.
func wrapped(first, rest, text string) []string {
	var lines []string
	line, columns, margin := []byte(first), len(first), len(first)
	for _, r := range text {
		wide := width(r)
		if columns+wide > questionWidth {
			left := ""
			if at := bytes.LastIndexByte(line, ' '); at > margin {
				line, left = line[:at], string(line[at+1:])
			}
			lines = append(lines, string(bytes.TrimRight(line, " ")))
			line, columns, margin = append(append(line[:0], rest...), left...), len(rest), len(rest)
			for _, r := range left {
				columns += width(r)
			}
		}
		line = utf8.AppendRune(line, r)
		columns += wide
	}
	return append(lines, string(bytes.TrimRight(line, " ")))
}

// width is how many columns a character takes at most.
func width(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	return 2
}

// unapproved is the denial of what waits for a person's yes.
func unapproved(o *Operation, h *Held, r Request) *fault.Fault {
	if r.Consent == Rejected {
		return denied(fmt.Sprintf("%s: the operator was asked whether the tool %s may have %s, and said no", o.Name, quoted(r.Tool), h),
			"Don't retry, and don't ask for it under another name: tell the user. The operator can clear the no with `mcp-pif approve --clear NAME`.")
	}
	return denied(fmt.Sprintf("%s: %s waits for the operator's approval of this version of %s", o.Name, h, quoted(r.Tool)),
		"Tell the user: they answer with `mcp-pif approve`, in a terminal of their own. Until then don't retry.")
}

// Facts is what the operator should know of a capability before they say yes to
// it: where it really leads, what can be done there, and the limits. None of it is
// the tool's own words, but for the names in its scope.
func (h *Held) Facts() []string {
	if h.Grant == nil {
		return []string{h.String() + " (a call, with what the tool it calls may do)"}
	}
	g := h.Grant
	lines := []string{h.String()}
	add := func(format string, a ...any) { lines = append(lines, "  "+fmt.Sprintf(format, a...)) }
	switch {
	case g.Manifest.Server != "":
		add("of the MCP server %s", quoted(g.Manifest.Server))
	case g.Manifest.Algebra != Path:
		add("within %s", h.Scope)
	case g.File != "":
		add("the file %s", g.Real)
	default:
		add("everything below %s", g.realOf(h.Within))
	}
	add("may %s: %s", strings.Join(permitted(&h.Capability, g.Manifest), ", "), h.Flags().Words())
	l := h.Limit()
	limits := fmt.Sprintf("in one run %d calls and %s, in one call %s and %s", l.Calls, formatSize(l.Bytes), formatSize(l.Max), formatDuration(l.Timeout))
	if l.Rate.Per != 0 {
		limits += fmt.Sprintf(", in all %s", l.Rate)
	}
	if until := earlier(h.Until, g.Until); !until.IsZero() {
		limits += ", until " + until.UTC().Format(time.RFC3339)
	}
	add("%s", limits)
	for name, value := range g.Options {
		if name != optionRO {
			add("with %s", strings.TrimSuffix(name+"="+value, "="))
		}
	}
	slices.Sort(lines[4:])
	return lines
}

// Words says what acting can do at worst.
func (f Flags) Words() string {
	words := []string{"changes things"}
	if f.ReadOnly {
		words[0] = "reads only"
	} else if f.Destructive {
		words = append(words, "may destroy what was there")
	}
	if f.OpenWorld {
		words = append(words, "reaches beyond this machine")
	}
	return strings.Join(words, ", ")
}

// A Difference is how a version differs from the one that was approved before.
type Difference struct {
	Before  bool // one of this name was approved
	Code    bool // the code is other code
	Wider   []string
	Gone    []string
	Calls   []string // what it reaches by calls that it didn't
	Rebound []string // names that stand for another version
}

// Since tells how s differs from what was approved before; nil: nothing was.
func (s *Subject) Since(before *Subject, kinds Kinds) (d Difference) {
	if before == nil {
		return d
	}
	d.Before, d.Code = true, s.Code != before.Code
	texts := func(list []Holding) (texts []string) {
		for _, h := range list {
			texts = append(texts, h.Text)
		}
		return texts
	}
	d.Wider = texts(wider(before.Holds, s.Holds, kinds))
	d.Gone = texts(wider(s.Holds, before.Holds, kinds))
	d.Calls = texts(wider(before.Reach, s.Reach, kinds))
	for _, b := range s.Bound {
		if !slices.Contains(before.Bound, b) {
			d.Rebound = append(d.Rebound, b.Name)
		}
	}
	return d
}
