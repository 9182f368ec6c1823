package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/display"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A tracing shows a replay step by step.
type tracing struct {
	out      io.Writer
	ask      func() (string, error) // after each step, a line; nil: nobody is asked
	from, to uint64
	asJSON   bool
	terms    map[term.Term]string // as they are shown
	step     uint64               // the last one seen
	over     bool                 // enough was seen, of further rounds, too
	shown    []string             // the steps shown to somebody who is asked
}

// How much of a step is shown.
const (
	shownTerm  = 160
	shownValue = 60
	shownVars  = 8
)

func newTracing(cmd *cobra.Command, o *replayOptions) *tracing {
	t := &tracing{out: cmd.OutOrStdout(), from: o.from, to: o.to, asJSON: o.asJSON, terms: map[term.Term]string{}}
	if terminal(t.out) && terminal(cmd.InOrStdin()) && !o.asJSON {
		in := bufio.NewReader(cmd.InOrStdin())
		t.ask = func() (string, error) { return in.ReadString('\n') }
		fmt.Fprintln(t.out, "Enter: the next step; b: the one before; q: no more of them")
	}
	return t
}

// A tracedStep is an evaluation as JSON.
type tracedStep struct {
	Step  uint64        `json:"step"`
	Left  uint64        `json:"left"`
	Depth int           `json:"depth"`
	In    string        `json:"in"`
	At    fault.Pointer `json:"at"`
	Line  int           `json:"line,omitempty"`
	Col   int           `json:"col,omitempty"`
	Term  string        `json:"term"`
	Vars  []tracedVar   `json:"vars,omitempty"`
}

type tracedVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Eval shows an evaluation.
func (t *tracing) Eval(before uint64, e core.TraceEvent) bool {
	t.step = before + e.Step
	if t.over = t.over || t.to > 0 && t.step > t.to; t.over {
		return false
	}
	if t.step < t.from {
		return true
	}
	p := e.Place()
	s := tracedStep{Step: t.step, Left: e.Left, Depth: e.Depth, In: p.In, At: p.At, Line: p.Line, Col: p.Col, Term: t.term(e.Term)}
	seen := map[string]bool{}
	e.Vars(func(name string, v value.Value) bool {
		if !seen[name] {
			seen[name] = true
			s.Vars = append(s.Vars, tracedVar{display.Truncate(name, shownValue), shownAs(v, shownValue)})
		}
		return len(seen) < shownVars
	})
	if t.asJSON {
		return t.line(s)
	}
	at := fault.Fault{At: s.At, Line: s.Line, Col: s.Col}
	where := s.In + " " + or(at.Place(), "/")
	step := printable(fmt.Sprintf("%6d  left %d  depth %d  %s", s.Step, s.Left, s.Depth, where)) + "\n        " + printable(s.Term) + "\n"
	if len(s.Vars) > 0 {
		vars := make([]string, len(s.Vars))
		for i, v := range s.Vars {
			vars[i] = v.Name + " = " + v.Value
		}
		step += "        where " + printable(strings.Join(vars, ", ")) + "\n"
	}
	fmt.Fprint(t.out, step)
	if t.ask == nil {
		return true
	}
	t.shown = append(t.shown, step)
	t.over = !t.walk()
	return !t.over
}

// walk asks where to go among the steps shown, until that is beyond the last one. It
// reports whether to go on.
func (t *tracing) walk() bool {
	for at := len(t.shown) - 1; at < len(t.shown); {
		answer, err := t.ask()
		switch strings.TrimSpace(answer) {
		case "q":
			return false
		case "b":
			at = max(0, at-1)
		default:
			at++
		}
		if err != nil {
			return false
		}
		if at < len(t.shown) {
			fmt.Fprint(t.out, t.shown[at])
		}
	}
	return true
}

// Effect shows a request with what the record has for it.
func (t *tracing) Effect(q *core.Request, a *core.Answer) {
	if t.over || t.step < t.from {
		return
	}
	args, err := journal.AppendValue(nil, q.Arg, 2*shownTerm)
	if err != nil && !errors.Is(err, journal.ErrSize) {
		args = []byte("…")
	}
	given := "gave "
	if a.Fault != nil {
		given += string(a.Fault.Kind) + ": " + firstLine(a.Fault.Message, shownTerm)
	} else {
		given += shownAs(a.Value, shownTerm)
	}
	if t.asJSON {
		t.line(struct {
			Effect string `json:"effect"`
			Args   string `json:"args"`
			Gave   string `json:"gave"`
			Branch string `json:"branch,omitempty"`
		}{q.Op, display.Truncate(string(args), shownTerm), strings.TrimPrefix(given, "gave "), q.Branch})
		return
	}
	op := q.Op
	if q.Branch != "" {
		op = "branch " + q.Branch + ": " + op
	}
	effect := fmt.Sprintf("        effect %s\n", printable(op+" "+display.Truncate(string(args), shownTerm)+" "+given))
	fmt.Fprint(t.out, effect)
	if n := len(t.shown); n > 0 {
		t.shown[n-1] += effect
	}
}

// Done shows the end of a round.
func (t *tracing) Done(steps uint64, result core.Encoded, f *fault.Fault) {
	end := "gave " + display.Truncate(string(result.JSON), shownTerm)
	if f != nil {
		end = "failed: " + firstLine(f.Error(), shownTerm)
	}
	if t.asJSON {
		t.line(struct {
			Steps uint64 `json:"steps"`
			End   string `json:"end"`
		}{steps, end})
		return
	}
	fmt.Fprintf(t.out, "%6d  %s\n", steps, printable(end))
}

func (t *tracing) line(v any) bool { return printLine(t.out, v) == nil }

// term is a term in the text form, on one line.
func (t *tracing) term(n term.Term) string {
	s, ok := t.terms[n]
	if !ok {
		s = display.Truncate(oneLine(string(text.Print(n))), shownTerm)
		t.terms[n] = s
	}
	return s
}

// oneLine joins the lines of a program. Line ends in strings are escaped.
func oneLine(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// shownAs is the beginning of a value in about the text form: it reads no more of
// the value than it shows.
func shownAs(v value.Value, n int) string {
	var b strings.Builder
	show(&b, v, n)
	return display.Truncate(b.String(), n)
}

func show(b *strings.Builder, v value.Value, n int) {
	if b.Len() > n {
		return
	}
	switch v := value.Force(v).(type) {
	case value.Str:
		s := string(v)
		cut := len(s) > n
		quoted, err := json.Marshal(strings.ToValidUTF8(s[:min(len(s), n)], ""))
		if err == nil {
			b.Write(quoted)
		}
		if cut {
			b.WriteString("…")
		}
	case value.Nil:
		b.WriteString("[]")
	case value.Unit:
		b.WriteString("null")
	case *value.Cons:
		b.WriteString("[")
		for c, first := v, true; b.Len() <= n; first = false {
			if !first {
				b.WriteString(", ")
			}
			show(b, c.Head, n)
			next, ok := value.Force(c.Tail).(*value.Cons)
			if !ok {
				break
			}
			c = next
		}
		b.WriteString("]")
	case *value.Pair:
		b.WriteString("(")
		show(b, v.First, n)
		b.WriteString(", ")
		show(b, v.Second, n)
		b.WriteString(")")
	case *value.Record:
		b.WriteString("{")
		for i := 0; i < len(v.Fields) && b.Len() <= n; i++ {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(v.Fields[i].Key + ": ")
			show(b, v.Fields[i].Value, n)
		}
		b.WriteString("}")
	case *value.Code:
		b.WriteString("'{" + oneLine(display.Truncate(string(text.Print(v.Term)), 2*n)) + "}")
	case value.Int:
		if v.Words() > 64 {
			b.WriteString("an integer of many digits")
			return
		}
		b.WriteString(v.String())
	case value.Dec:
		b.WriteString(v.String())
	case value.Bool:
		fmt.Fprint(b, bool(v))
	default:
		b.WriteString("a " + string(v.Type()))
	}
}
