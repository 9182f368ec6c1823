package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// inUse reports whether a port isn't free.
func inUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// count is a number of things.
func count(n any, one, more string) string {
	s := fmt.Sprint(n)
	if s == "1" {
		return "1 " + one
	}
	return grouped(s) + " " + more
}

// grouped has digits in threes.
func grouped(s string) string {
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// ago is how long ago something was.
func ago(t time.Time) string {
	d := time.Since(t)
	switch {
	case t.IsZero():
		return ""
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// took is a duration.
func took(d time.Duration) string {
	switch {
	case d < 0:
		return ""
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d < 10*time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// maxShown is how much of a text a page has.
const maxShown = 32 << 10

// indented is JSON laid out, or what it is where it is none.
func indented(raw []byte) string {
	var b bytes.Buffer
	if len(raw) > maxShown || json.Indent(&b, raw, "", "  ") != nil {
		return beginning(string(raw))
	}
	return b.String()
}

func beginning(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + fmt.Sprintf("\n… (%d bytes in all)", len(s))
}

// A line is a line of code.
type line struct {
	N     int
	Parts []text.Part
}

// maxMarkup is how much the parts of a page may take that grow with what a model wrote: code, or all effects of a run.
const maxMarkup = 384 << 10

// What a line of code, and each part of it, takes besides its text.
const lineMarkup, partMarkup = 70, 35

// code splits code in the text form into lines with classes, as many as a page has room for.
func code(src string) []line {
	lines, left := []line{{N: 1}}, maxMarkup
	for _, p := range text.Parts(strings.ToValidUTF8(beginning(strings.TrimRight(src, "\n")), "\uFFFD")) {
		for i, piece := range strings.Split(p.Text, "\n") {
			if i > 0 {
				left -= lineMarkup
				lines = append(lines, line{N: len(lines) + 1})
			}
			last := &lines[len(lines)-1]
			if left -= partMarkup + escaped(piece); left < 0 {
				last.Parts = append(last.Parts, text.Part{Text: fmt.Sprintf("… (%d bytes in all)", len(src))})
				return lines
			}
			if piece != "" {
				last.Parts = append(last.Parts, text.Part{Class: p.Class, Text: piece})
			}
		}
	}
	return lines
}

// escaped is how many bytes a text has in a page.
func escaped(s string) int { return len(template.HTMLEscapeString(s)) }

// clip shows the beginning of a line.
func clip(most int, s string) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + " …"
}

// first gives some of a list.
func first[T any](most int, list []T) []T { return list[:min(len(list), most)] }

// short is a label as it fits a box of the graph: its end, where that is what tells.
func short(s string) string {
	const most = 24
	letters := []rune(visible(cut(200, s)))
	if len(letters) <= most {
		return string(letters)
	}
	return string(letters[:10]) + "…" + string(letters[len(letters)-most+11:])
}

// label is where a box's label stands, above a note or alone.
func label(note string) int {
	if note == "" {
		return 25
	}
	return 18
}

// maxMarks is how many marks a letter may have; further ones climb over what is beside it.
const maxMarks = 2

// visible has every character written out that hides, acts, or turns the direction of what
// is beside it, but for line ends and tabs. Escaping in templates stops markup; this stops
// what escaping doesn't know of. A page goes through it as a whole, so that no template
// and no value can forget it: the templates have no such character.
func visible(s string) string {
	var b strings.Builder
	marks, from := 0, 0
	for i, r := range s {
		if r < 0x7f && r >= ' ' || r == '\n' || r == '\t' {
			marks = 0
			continue
		}
		size := utf8.RuneLen(r)
		wrong := r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD")
		if wrong {
			size = 1
		}
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		if !wrong && display.Seen(r) && marks <= maxMarks {
			continue
		}
		b.WriteString(s[from:i])
		if from = i + size; wrong {
			fmt.Fprintf(&b, `\x%02x`, s[i])
		} else {
			fmt.Fprintf(&b, `\u{%X}`, r)
		}
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// cut shows the beginning of a text, on one line.
func cut(most int, s string) string {
	s = display.Truncate(s, most)
	return strings.Join(strings.Fields(s), " ")
}
