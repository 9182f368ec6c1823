package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/check"
)

// print writes the report for people. source is the code as it was given, which
// the places are in.
func (r *checkReport) print(out io.Writer, source []byte) {
	fmt.Fprintln(out, r.headline())
	line := func(title, text string) {
		if text != "" {
			fmt.Fprintf(out, "  %-13s %s\n", title+":", cli.Printable(text))
		}
	}
	line("tool", r.Tool)
	line("type", r.Type)
	var inputs []string
	for _, p := range r.Params {
		inputs = append(inputs, p.Name)
	}
	line("inputs", strings.Join(inputs, ", "))
	line("reaches", r.reaches())
	line("can't reach", strings.Join(r.Cannot, " "))
	line("needs", strings.Join(r.Least, " "))
	if c := r.Cost; c == nil {
		line("cost", "the code is too large for it to be worked out")
	} else {
		line("cost", c.words())
		line("steps", c.Steps)
		line("memory", c.Memory)
	}
	line("certificate", r.Certificate.words())
	line("same as", r.Equals)
	line("hash", r.Hash)
	line("normal form", r.Normal)
	for _, note := range r.Notes {
		line("note", note)
	}
	lines := bytes.Split(source, []byte("\n"))
	for _, d := range r.Problems {
		place(out, lines, string(d.Kind), d.Place, d.Message)
		if d.Hint != "" {
			fmt.Fprintf(out, "  %s\n", cli.Printable(d.Hint))
		}
	}
	for _, u := range r.Unknown {
		place(out, lines, "known when it runs", u.Place, u.Message)
	}
	if r.Cost != nil && r.Cost.Steps == "" {
		for _, w := range r.Cost.Why {
			place(out, lines, "cost", w.Place, w.Message)
		}
	}
	if r.More > 0 {
		fmt.Fprintf(out, "\n%d more places aren't shown\n", r.More)
	}
}

// headline is the first line: ok, or how many places must fail.
func (r *checkReport) headline() string {
	switch n := len(r.Problems); {
	case n == 1:
		return "1 problem"
	case n > 1:
		return fmt.Sprintf("%d problems", n)
	case r.Refused != nil:
		return "refused"
	case !r.OK:
		return "not all is known"
	}
	return "ok"
}

// reaches is the operations that it can ask for, and the tools through which.
func (r *checkReport) reaches() string {
	var ops []string
	for _, e := range r.Effects {
		for _, op := range e.Ops() {
			switch {
			case e.Via != "":
				op += " (through " + e.Via + ")"
			case e.Inert:
				op += " (always denied)"
			case e.In != "":
				op += " (in " + e.In + ")"
			}
			ops = append(ops, op)
		}
	}
	slices.Sort(ops)
	ops = slices.Compact(ops)
	if r.Open {
		ops = append(ops, "and what can't be known")
	}
	if len(ops) == 0 {
		return "nothing outside"
	}
	return strings.Join(ops, ", ")
}

// words is the class, and what the formulas are.
func (c *checkCost) words() string {
	switch {
	case c.Steps == "":
		return "may not terminate (stopped by its budget)"
	case c.Exact:
		return c.Class + ", known exactly"
	}
	return c.Class + ", at most"
}

func (c checkCertificate) words() string {
	switch {
	case c.Why != "":
		return c.Status + ": " + c.Why
	case len(c.Certified) > 0:
		return "accepted, for " + strings.Join(c.Certified, ", ")
	}
	return c.Status
}

// mostExcerpt is how many characters of a line of the source are shown.
const mostExcerpt = 100

// place writes what is said of a place, with the line that it is in.
func place(out io.Writer, lines [][]byte, what string, p check.Place, message string) {
	where := string(p.At)
	if p.Line > 0 {
		where = strings.TrimSpace(fmt.Sprintf("line %d, column %d %s", p.Line, p.Col, where))
	}
	if where != "" {
		where = ", " + where
	}
	fmt.Fprintf(out, "\n%s%s: %s\n", what, cli.Printable(where), cli.Printable(message))
	if p.Line < 1 || p.Line > len(lines) {
		return
	}
	text := []rune(cli.Printable(strings.ToValidUTF8(strings.ReplaceAll(string(lines[p.Line-1]), "\t", " "), "?")))
	col := min(max(p.Col-1, 0), len(text))
	from := max(0, min(col-mostExcerpt/2, len(text)-mostExcerpt))
	to := min(len(text), from+mostExcerpt)
	before, after := "", ""
	if from > 0 {
		before = "…"
	}
	if to < len(text) {
		after = "…"
	}
	fmt.Fprintf(out, "  %s%s%s\n  %s^\n", before, string(text[from:to]), after, strings.Repeat(" ", len([]rune(before))+col-from))
}
