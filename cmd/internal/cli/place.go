package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// PaintLines prints each line of a text in its colour; "" is none.
func PaintLines(out io.Writer, text string, colour func(line string) string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if c := colour(line); c != "" {
			Paint(out, c, line)
		} else {
			fmt.Fprintln(out, PrintableLines(line))
		}
	}
}

// PrintDiff prints a difference of texts.
func PrintDiff(out io.Writer, text string) {
	PaintLines(out, text, func(line string) string {
		for _, head := range []struct{ begins, colour string }{
			{"diff ", Bold}, {"--- ", Bold}, {"+++ ", Bold}, {"@@ ", Cyan}, {"-", Red}, {"+", Green},
		} {
			if strings.HasPrefix(line, head.begins) {
				return head.colour
			}
		}
		return ""
	})
}

// PrintPlaced prints what is said of a place, whose excerpt is in it.
func PrintPlaced(out io.Writer, colour, text string) {
	first := true
	PaintLines(out, text, func(line string) string {
		if first && line != "" || strings.TrimLeft(line, " ") == "^" {
			first = false
			return colour
		}
		return ""
	})
}

// Faulty returns the words of a fault with an excerpt of the source, of the code or the tool that
// it is in, at each place.
// A capability is named in the message, by no pointer.
func Faulty(text string, f *fault.Fault, source string) string {
	if f.In == "capabilities" {
		text = strings.Replace(text, " at capabilities "+string(f.At), "", 1)
	}
	for _, f := range append([]*fault.Fault{f}, f.More...) {
		said := f.Message
		if f.Fragment != "" {
			said += ": " + f.Fragment
		}
		if shown := Excerpt(source, f.Line, f.Col); (f.In == "code" || strings.HasPrefix(f.In, "tool:")) && shown != "" {
			text = strings.Replace(text, said, f.Message+"\n"+shown, 1)
		}
	}
	return text
}

// InSource is a fault of the source with its excerpts; any other error stays.
func InSource(err error, source string) error {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return &inSource{err, Faulty(err.Error(), f, source)}
	}
	return err
}

type inSource struct {
	error
	text string
}

func (e *inSource) Error() string { return e.text }
func (e *inSource) Unwrap() error { return e.error }

// maxExcerpt is how many characters of a line of the source are shown.
const maxExcerpt = 100

// Excerpt returns the line of the source with a caret below the column; "" of a line that isn't there.
func Excerpt(source string, line, col int) string {
	lines := strings.Split(source, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	text := []rune(Printable(strings.ToValidUTF8(strings.ReplaceAll(lines[line-1], "\t", " "), "?")))
	col = min(max(col-1, 0), len(text))
	from := max(0, min(col-maxExcerpt/2, len(text)-maxExcerpt))
	to := min(len(text), from+maxExcerpt)
	before, after := "", ""
	if from > 0 {
		before = "…"
	}
	if to < len(text) {
		after = "…"
	}
	width := ansi.StringWidth(before + string(text[from:col]))
	return "  " + before + string(text[from:to]) + after + "\n  " + strings.Repeat(" ", width) + "^"
}
