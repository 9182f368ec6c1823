// Package cli is what the commands of mcp-pif have in common: failures and their
// exit statuses, what a terminal is and how text, tables, JSON and progress reach
// it, code and inputs as command lines give them, and hints in the words of
// commands.
//
// Nothing that it prints steers a terminal, whoever wrote it: a command's output
// goes through [TerminalWriter]. It knows no command and no server.
package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
)

// A TerminalWriter is where a command prints. What it is given may be a model's, a plugin's
// or somebody else's: no character of it steers a terminal, whatever the command
// took care of itself. Close shows the rest of what ended within a character.
type TerminalWriter struct {
	mu   sync.Mutex
	Out  io.Writer
	rest []byte // of a character that hasn't ended
	err  error  // the first of what couldn't be written
}

// Write prints p with U+FFFD for what would steer a terminal, but for line ends and
// tabs.
func (d *TerminalWriter) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := p
	if len(d.rest) > 0 {
		text = append(d.rest, p...)
	}
	end := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				end -= n
			}
			break
		}
	}
	_, err := d.Out.Write(Sanitize(text[:end]))
	d.err = cmp.Or(d.err, err)
	d.rest = bytes.Clone(text[end:])
	return len(p), err
}

// Err returns why something that was printed isn't where it should be; nil: all is.
func (d *TerminalWriter) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// Close prints what is left, ends a pager, and leaves what is behind the writer open.
func (d *TerminalWriter) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	rest := d.rest
	d.rest = nil
	var err error
	if len(rest) > 0 {
		_, err = d.Out.Write(Sanitize(rest))
	}
	if p, ok := d.Out.(*pager); ok {
		d.Out = p.terminal
		err = errors.Join(err, p.Close())
	}
	d.err = cmp.Or(d.err, err)
	return err
}

// longInt matches an integer of more digits than readers of JSON can be expected to take, and a
// record that looks so.
var longInt = regexp.MustCompile(`("record":)?\{"int":"(-?[0-9]+)"\}`)

// Digits is a result as people read it: JSON with each integer in digits.
func Digits(result string) string {
	return longInt.ReplaceAllStringFunc(result, func(found string) string {
		m := longInt.FindStringSubmatch(found)
		if m[1] != "" {
			return found
		}
		return m[2]
	})
}

// Sanitize is a text with nothing in it that steers a terminal; what is no UTF-8 may.
func Sanitize(text []byte) []byte {
	if utf8.Valid(text) && bytes.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && Steers(r) }) < 0 {
		return text
	}
	return []byte(PrintableLines(string(text)))
}

// Underlying is what a command's output or input is in truth: for what isn't read by
// people, and to tell what it is.
func Underlying(stream any) any {
	if d, ok := stream.(*TerminalWriter); ok {
		return d.Out
	}
	return stream
}

// RawOut is where a command's output goes as it is: messages of a protocol, and a
// record whose bytes count.
func RawOut(cmd *cobra.Command) io.Writer { return Underlying(cmd.OutOrStdout()).(io.Writer) }

// Steers tells characters that would do something to a terminal, or to the order
// of what it shows, in place of being shown; and those that show nothing, by which
// a name looks like another's.
func Steers(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Printable has every character shown that would do something else.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if Steers(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// PrintableLines is [Printable] for a text of lines, with their tabs.
func PrintableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		cells := strings.Split(lines[i], "\t")
		for j := range cells {
			cells[j] = Printable(cells[j])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// EscapeJSON is JSON with those characters written \uXXXX: it says the same. Those of
// ASCII are in no string of JSON, and stay, as those that lay it out.
func EscapeJSON(src []byte) []byte {
	if bytes.IndexFunc(src, func(r rune) bool { return r >= 0x7f && Steers(r) }) < 0 {
		return src
	}
	var b bytes.Buffer
	for len(src) > 0 {
		r, n := utf8.DecodeRune(src)
		if r >= 0x7f && Steers(r) {
			for _, half := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, `\u%04x`, half)
			}
		} else {
			b.Write(src[:n])
		}
		src = src[n:]
	}
	return b.Bytes()
}

// PrintJSON prints a value as JSON that people can read.
func PrintJSON(cmd *cobra.Command, v any) error {
	return PrintEncoded(cmd.OutOrStdout(), v, "  ")
}

// PrintLine prints a value on one line; what is JSON in it says the same.
func PrintLine(out io.Writer, v any) error { return PrintEncoded(out, v, "") }

func PrintEncoded(out io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := out.Write(EscapeJSON(b.Bytes()))
	return err
}

// JSONLines writes whole lines with those characters escaped.
type JSONLines struct {
	Out  io.Writer
	rest []byte // of a line that hasn't ended
}

func (e *JSONLines) Write(p []byte) (int, error) {
	e.rest = append(e.rest, p...)
	end := bytes.LastIndexByte(e.rest, '\n') + 1
	if _, err := e.Out.Write(EscapeJSON(e.rest[:end])); err != nil {
		return 0, err
	}
	e.rest = append(e.rest[:0], e.rest[end:]...)
	return len(p), nil
}

// stateColors are the colours of words that say how something is, on a terminal.
var stateColors = map[string]lipgloss.Style{}

func init() {
	for color, words := range map[string]string{
		"2": "✓ ready ok on answers identical yes",
		"1": "✗ blocked fails failed denied refused: refused different broken no missing changed",
		"3": "asking waits incomplete running impossible",
		"8": "retired - off",
	} {
		for _, word := range strings.Fields(words) {
			stateColors[word] = lipgloss.NewStyle().Foreground(lipgloss.Color(color))
		}
	}
}

// colored are the headers of columns whose words have colours.
var colored = map[string]bool{"STATE": true, "RESULT": true, "EFFECTS": true}

// PrintTable prints rows in columns below headers. On a terminal the headers are
// bold, states have colours unless NO_COLOR is set, and what is too long is wrapped
// within its column.
func PrintTable(out io.Writer, headers []string, rows [][]string) {
	printTable(out, headers, rows, 14, func(cell string, width int) string { return ansi.Wrap(cell, width, "") })
}

// PrintLines is [PrintTable] with a line for each row: what is too long is cut.
func PrintLines(out io.Writer, headers []string, rows [][]string) {
	printTable(out, headers, rows, 9, func(cell string, width int) string { return ansi.Truncate(cell, width, "…") })
}

// whole are the headers of columns that stay as wide as what is in them, as the first one does, unless that is a sentence.
var whole = []string{"STATE", "VERSION", "WHEN", "STEPS", "TIME"}

// sentence is what is wider than a word or a time.
const sentence = 22

func printTable(out io.Writer, headers []string, rows [][]string, least int, fit func(cell string, width int) string) {
	widths := make([]int, len(headers))
	for i, header := range headers {
		widths[i] = ansi.StringWidth(header) + 2
	}
	for _, row := range rows {
		for i := range row {
			row[i] = Printable(row[i])
			widths[i] = max(widths[i], ansi.StringWidth(row[i])+2)
		}
	}
	// What is too wide is taken from the widest columns, as far as they stay readable.
	width, over := TerminalWidth(out), -2
	for _, w := range widths {
		over += w
	}
	for over -= width; width > 0 && over > 0; over-- {
		widest := 0
		for i := range widths {
			if i > 0 && (!slices.Contains(whole, headers[i]) || widths[i] > sentence) && (widest == 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest == 0 || widths[widest] <= least {
			break
		}
		widths[widest]--
	}
	for _, row := range rows {
		for i := range row {
			row[i] = fit(row[i], widths[i]-2)
		}
	}
	t := table.New().Headers(headers...).Rows(rows...).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderColumn(false).BorderHeader(false).
		StyleFunc(func(row, column int) lipgloss.Style {
			style := lipgloss.NewStyle()
			if row == table.HeaderRow {
				style = style.Bold(true)
			} else if colored[headers[column]] {
				word, _, _ := strings.Cut(rows[row][column], " ")
				style = stateColors[word]
			}
			if column < len(headers)-1 {
				style = style.PaddingRight(2)
			}
			return style
		})
	text := t.String()
	if width > 0 && lipgloss.Width(text) > width {
		text = t.Width(width).String()
	}
	PrintStyled(out, text)
}

// Reflow wraps the paragraphs of a text that are wider than a terminal has columns; lines that
// begin with a space stay. 0 columns: as it is.
func Reflow(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if width <= 0 || lipgloss.Width(p) <= width || strings.HasPrefix(p, " ") || strings.Contains(p, "\n ") {
			continue
		}
		paragraphs[i] = ansi.Wordwrap(strings.ReplaceAll(p, "\n", " "), width, "")
	}
	return strings.Join(paragraphs, "\n\n")
}

// FoldIndented wraps the lines that are wider than width and far to the right, as the flags' descriptions are, each below
// its own beginning.
func FoldIndented(text string, width int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		words := strings.TrimLeft(line, " ")
		if indent := line[:len(line)-len(words)]; len(indent) >= 16 && len(indent) < width && ansi.StringWidth(line) > width {
			lines[i] = indent + strings.ReplaceAll(ansi.Wordwrap(words, width-len(indent), ""), "\n", "\n"+indent)
		}
	}
	return strings.Join(lines, "\n")
}

// PrintHanging prints a text behind its head, on a terminal wrapped to the right of that.
func PrintHanging(out io.Writer, head, text string) {
	const narrow = 20 // columns, in which nothing can be read
	indent := ansi.StringWidth(head)
	if width := TerminalWidth(out) - indent; width >= narrow {
		text = strings.ReplaceAll(ansi.Wordwrap(text, width, ""), "\n", "\n"+strings.Repeat(" ", indent))
	}
	fmt.Fprintln(out, head+text)
}

// PrintStyled prints lines with the styles that whoever reads them can show.
func PrintStyled(out io.Writer, text string) {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	_, err := lipgloss.Fprintln(Underlying(out).(io.Writer), strings.Join(lines, "\n"))
	if d, ok := out.(*TerminalWriter); ok {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.err = cmp.Or(d.err, err)
	}
}

// JSONFlag adds the flag that has a command print JSON.
func JSONFlag(cmd *cobra.Command) { cmd.Flags().Bool("json", false, "print JSON") }

// AsJSON reports whether a command that has the flag of [JSONFlag] is to print JSON.
func AsJSON(cmd *cobra.Command) bool {
	flag := cmd.Flags().Lookup("json")
	return flag != nil && flag.Value.String() == "true"
}

// When progress is shown first, and how often then.
const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

// A progress says on a terminal what takes long, and how much of it is done.
type progress struct {
	Done  atomic.Int64
	end   chan struct{}
	ended sync.WaitGroup
}

// StartProgress begins to say so after a second, on standard error if that is a
// terminal. The caller calls stop before it prints anything else.
func StartProgress(cmd *cobra.Command, what string) *progress {
	p := &progress{end: make(chan struct{})}
	out := Underlying(cmd.ErrOrStderr()).(io.Writer)
	if !IsTerminal(out) {
		return p
	}
	started := time.Now()
	p.ended.Go(func() {
		shown := false
		for wait := progressAfter; ; wait = progressEvery {
			select {
			case <-p.end:
				if shown {
					fmt.Fprint(out, "\r"+ansi.EraseEntireLine)
				}
				return
			case <-time.After(wait):
			}
			shown = true
			line := fmt.Sprintf("%s, %s", what, time.Since(started).Round(time.Second))
			if n := p.Done.Load(); n > 0 {
				line = fmt.Sprintf("%s, %d done, %s", what, n, time.Since(started).Round(time.Second))
			}
			if width := TerminalWidth(out); width > 0 {
				line = ansi.Truncate(line, width-1, "…") // one that wraps can't be erased
			}
			fmt.Fprint(out, "\r"+ansi.EraseEntireLine+line)
		}
	})
	return p
}

// Stop ends it and clears its line.
func (p *progress) Stop() {
	select {
	case <-p.end:
	default:
		close(p.end)
	}
	p.ended.Wait()
}
