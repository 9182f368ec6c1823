package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// A terminalWriter is where a command prints. What it is given may be a model's, a plugin's
// or somebody else's: no character of it steers a terminal, whatever the command
// took care of itself. Close shows the rest of what ended within a character.
type terminalWriter struct {
	mu   sync.Mutex
	out  io.Writer
	rest []byte // of a character that hasn't ended
}

// Write prints p with U+FFFD for what would steer a terminal, but for line ends and
// tabs.
func (d *terminalWriter) Write(p []byte) (int, error) {
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
	_, err := d.out.Write(shown(text[:end]))
	d.rest = bytes.Clone(text[end:])
	return len(p), err
}

// Close prints what is left, and leaves what is behind the writer open.
func (d *terminalWriter) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	rest := d.rest
	if d.rest = nil; len(rest) == 0 {
		return nil
	}
	_, err := d.out.Write(shown(rest))
	return err
}

// shown is a text with nothing in it that steers a terminal; what is no UTF-8 may.
func shown(text []byte) []byte {
	if utf8.Valid(text) && bytes.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && steers(r) }) < 0 {
		return text
	}
	return []byte(printableLines(string(text)))
}

// behind is what a command's output or input is in truth: for what isn't read by
// people, and to tell what it is.
func behind(stream any) any {
	if d, ok := stream.(*terminalWriter); ok {
		return d.out
	}
	return stream
}

// rawOut is where a command's output goes as it is: messages of a protocol, and a
// record whose bytes count.
func rawOut(cmd *cobra.Command) io.Writer { return behind(cmd.OutOrStdout()).(io.Writer) }

// steers tells characters that would do something to a terminal, or to the order
// of what it shows, in place of being shown; and those that show nothing, by which
// a name looks like another's.
func steers(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// printable has every character shown that would do something else.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if steers(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// printableLines is [printable] for a text of lines, with their tabs.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		cells := strings.Split(lines[i], "\t")
		for j := range cells {
			cells[j] = printable(cells[j])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// escaped is JSON with those characters written \uXXXX: it says the same. Those of
// ASCII are in no string of JSON, and stay, as those that lay it out.
func escaped(src []byte) []byte {
	if bytes.IndexFunc(src, func(r rune) bool { return r >= 0x7f && steers(r) }) < 0 {
		return src
	}
	var b bytes.Buffer
	for len(src) > 0 {
		r, n := utf8.DecodeRune(src)
		if r >= 0x7f && steers(r) {
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

// printJSON prints a value as JSON that people can read.
func printJSON(cmd *cobra.Command, v any) error {
	return printEncoded(cmd.OutOrStdout(), v, "  ")
}

// printLine prints a value on one line; what is JSON in it says the same.
func printLine(out io.Writer, v any) error { return printEncoded(out, v, "") }

func printEncoded(out io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := out.Write(escaped(b.Bytes()))
	return err
}

// escapedLines writes whole lines with those characters escaped.
type escapedLines struct {
	out  io.Writer
	rest []byte // of a line that hasn't ended
}

func (e *escapedLines) Write(p []byte) (int, error) {
	e.rest = append(e.rest, p...)
	end := bytes.LastIndexByte(e.rest, '\n') + 1
	if _, err := e.out.Write(escaped(e.rest[:end])); err != nil {
		return 0, err
	}
	e.rest = append(e.rest[:0], e.rest[end:]...)
	return len(p), nil
}
