package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/step"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/spf13/cobra"
)

// stepOptions are the flags of step.
type stepOptions struct {
	app.StoreOptions
	with   string
	lines  int
	pprof  string
	memory app.Size
	asJSON bool
}

func newStep() *cobra.Command {
	o := stepOptions{memory: replayMemory}
	cmd := &cobra.Command{
		Use:   "step RUN",
		Short: "Walk through a recorded run, forwards and backwards",
		Long: `Walk through a recorded run, evaluation by evaluation, forwards and backwards. RUN is what
the journal calls it ('mcp-pif journal runs'). Nothing is done in the world: effects
have their recorded outcomes. Commands come from the terminal or from standard
input, a line each; an empty line does the last one again:

` + stepHelp + `
With --lines the lines that took most steps are printed instead, and with --pprof a
file that 'go tool pprof' and speedscope read is written.`,
		Example: `  mcp-pif step abcdefgh-17 --profile claude
  echo 'effect' | mcp-pif step abcdefgh-17 --store pif.db
  mcp-pif step abcdefgh-17 --store pif.db --lines 20
  mcp-pif step abcdefgh-17 --store pif.db --pprof run.pb.gz && go tool pprof -http : run.pb.gz`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tuneMemory(maxWalked)
			return cli.Failed(withStore(&o.StoreOptions, journal.Options{ReadOnly: true}, func(s *journal.Store) error {
				return o.walk(cmd, s, args[0])
			}))
		},
	}
	f := cmd.Flags()
	o.Register(f, "a walk needs a file")
	f.StringVar(&o.with, "with", "", "walk through `CODE` in place of what was run: TOOL@VERSION, or a file")
	f.IntVar(&o.lines, "lines", 0, "print the `N` lines that took most steps, and end")
	f.StringVar(&o.pprof, "pprof", "", "write the steps by function and line to a `FILE` for go tool pprof, and end")
	registerMemory(f, &o.memory)
	f.BoolVar(&o.asJSON, "json", false, "with --lines, print JSON")
	return cmd
}

// walk walks through a run by commands, or prints what its lines took.
func (o *stepOptions) walk(cmd *cobra.Command, store *journal.Store, id string) error {
	ctx, stop := cli.Interruptible(cmd)
	defer stop()
	w, v, err := (&replayer{store: store, most: o.memory}).walk(ctx, id, o.with, 0)
	if err != nil {
		return err
	}
	if !v.OK() {
		fmt.Fprintln(cmd.ErrOrStderr(), cli.Printable("the replay of "+v.Run+": "+v.Text))
	}
	if w == nil {
		return &cli.Failure{}
	}
	if o.lines > 0 || o.pprof != "" {
		return o.printProfile(ctx, cmd, w)
	}
	s := &stepper{ctx: ctx, out: cmd.OutOrStdout(), walk: w}
	if cli.IsTerminal(s.out) && cli.IsTerminal(cmd.InOrStdin()) {
		s.prompt = "> "
		fmt.Fprintln(s.out, stepHint)
	}
	return s.run(func() (string, error) { return cli.ReadLine(ctx, cmd.InOrStdin()) })
}

// A stepper walks through a run by commands.
type stepper struct {
	ctx    context.Context
	out    io.Writer
	walk   *step.Walk
	at     *step.Point
	stops  []breakpoint
	prompt string
}

// A breakpoint is a line of a document; "" is any.
type breakpoint struct {
	in   string
	line int
}

// stepHint is what somebody at a terminal is told first.
const stepHint = "Enter: the next step; p: the one before; q: no more of them; help: what else there is"

const stepHelp = `  n, p                 the next evaluation, the one before
  over, out            past this term; out of this function
  effect, fault        to the next effect, to the next failure
  break LINE [IN]      a breakpoint at a line, of a document such as tool:NAME
  c                    to the next breakpoint, or to the end
  back effect          back to the last effect; so with fault and c
  go STEP              to a step of the run; start, end
  vars, stack, source  all variables, what is called from where, the line
  lines                the lines that took most steps
  q                    end
`

// run does commands until there are none.
func (s *stepper) run(read func() (string, error)) error {
	if err := s.move(s.walk.At(s.ctx, 0)); err != nil {
		return err
	}
	last := "n"
	for {
		fmt.Fprint(s.out, s.prompt)
		line, err := read()
		words := strings.Fields(line)
		if err != nil && len(words) == 0 {
			return nil
		}
		if len(words) == 0 {
			words = strings.Fields(last)
		}
		last = strings.Join(words, " ")
		switch err := s.do(words); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, step.ErrNoPoint):
			fmt.Fprintln(s.out, "        there is none")
		case err != nil:
			return err
		}
	}
}

// do does one command; io.EOF is the end.
func (s *stepper) do(words []string) error {
	ctx, w, n := s.ctx, s.walk, s.at.N
	find := func(wanted step.Wanted) error { return s.move(w.Next(ctx, n, wanted)) }
	if words[0] == "back" && len(words) == 2 {
		find = func(wanted step.Wanted) error { return s.move(w.Previous(ctx, n, wanted)) }
		words = words[1:]
	}
	arg := ""
	if len(words) > 1 {
		arg = words[1]
	}
	switch words[0] {
	case "n", "next":
		return find(step.Any)
	case "p", "prev", "b":
		return s.move(w.Previous(ctx, n, step.Any))
	case "over", "o":
		return find(step.Over(s.at))
	case "out", "u":
		return find(step.Out(s.at))
	case "effect", "e":
		return find(step.Acted)
	case "fault", "f":
		return find(step.Failed)
	case "c", "continue":
		stops := []step.Wanted{step.OfKind(step.End), step.OfKind(step.Limit)}
		for _, b := range s.stops {
			stops = append(stops, step.Line(b.in, b.line))
		}
		return find(step.Or(stops...))
	case "start":
		return s.move(w.At(ctx, 0))
	case "end":
		return s.move(w.Previous(ctx, 1<<63, step.Any))
	case "go":
		steps, err := strconv.ParseUint(arg, 10, 63)
		if err != nil {
			return s.say("go to which step? Give its number")
		}
		return s.move(w.Near(ctx, steps))
	case "break":
		line, err := strconv.Atoi(arg)
		if err != nil || line < 1 {
			return s.say("break at which line? Give its number, and the document if there are several")
		}
		stop := breakpoint{line: line}
		if len(words) > 2 {
			stop.in = words[2]
		}
		s.stops = append(s.stops, stop)
		return s.say("breakpoint at line %d%s", line, map[bool]string{true: " of " + stop.in}[stop.in != ""])
	case "vars", "v":
		for _, x := range s.at.View().Vars {
			if err := s.say("%s = %s", x.Name, x.Value); err != nil {
				return err
			}
		}
		return nil
	case "stack", "s":
		return s.stack()
	case "source", "l":
		return s.source()
	case "lines":
		sum, err := w.Summary(ctx)
		if err != nil {
			return err
		}
		return printLines(s.out, sum, mostLines)
	case "q", "quit", "exit", "exit()":
		return io.EOF
	}
	if word := strings.Join(words, " "); word != "help" && word != "?" {
		return s.say("there is no command %q; help lists them, q ends the walk", word)
	}
	_, err := fmt.Fprint(s.out, stepHelp)
	return err
}

func (s *stepper) say(format string, args ...any) error {
	_, err := fmt.Fprintln(s.out, "        "+cli.Printable(fmt.Sprintf(format, args...)))
	return err
}

// move shows a point, which it is at then.
func (s *stepper) move(p *step.Point, err error) error {
	if err != nil {
		return err
	}
	s.at = p
	v := p.View()
	_, err = io.WriteString(s.out, pointText(&v, true))
	return err
}

func (s *stepper) stack() error {
	v := s.at.View()
	for _, c := range v.Calls {
		if err := s.say("%s, called at %s", c.Name, c.Place.Text()); err != nil {
			return err
		}
	}
	return s.say("%s", cmp.Or(v.In, "the end"))
}

// source shows the line that the point is in.
func (s *stepper) source() error {
	src, offset := s.at.Source()
	if src == nil {
		return s.say("there is no source here")
	}
	line, col := text.Position(src.Text, offset)
	_, err := io.WriteString(s.out, cli.PrintableLines(text.Caret(src.Text, &fault.Fault{Line: line, Col: col})))
	return err
}

// mostLines is how many lines of a profile are shown.
const mostLines = 15

// printLines prints the lines that took most steps.
func printLines(out io.Writer, sum *step.Summary, most int) error {
	if _, err := fmt.Fprintf(out, "%10s %5s  %10s  %s\n", "steps", "", "with calls", "where"); err != nil {
		return err
	}
	for _, l := range sum.Profile.Lines(most) {
		if _, err := fmt.Fprintf(out, "%10d %4.1f%%  %10d  %s\n", l.Steps, 100*float64(l.Steps)/float64(max(1, sum.Steps)), l.All, cli.Printable(l.Where())); err != nil {
			return err
		}
	}
	if !sum.Whole {
		fmt.Fprintf(out, "of the first %d steps: the run may go on\n", sum.Steps)
	}
	return nil
}

// printProfile prints the lines that took most steps, or writes a file of them.
func (o *stepOptions) printProfile(ctx context.Context, cmd *cobra.Command, w *step.Walk) error {
	sum, err := w.Summary(ctx)
	if err != nil {
		return err
	}
	if o.pprof != "" {
		if err := writePprof(o.pprof, sum); err != nil {
			return err
		}
	}
	switch {
	case o.lines <= 0:
		return nil
	case o.asJSON:
		for _, l := range sum.Profile.Lines(o.lines) {
			if err := cli.PrintLine(cmd.OutOrStdout(), l); err != nil {
				return err
			}
		}
		return nil
	}
	return printLines(cmd.OutOrStdout(), sum, o.lines)
}

// writePprof writes a profile as go tool pprof reads it.
func writePprof(path string, sum *step.Summary) error {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "steps", Unit: "count"}, {Type: "evaluations", Unit: "count"}}, DefaultSampleType: "steps"}
	type key struct {
		name, in string
	}
	functions := map[key]*profile.Function{}
	locations := map[step.Spent]*profile.Location{}
	locate := func(n *step.Node) *profile.Location {
		at := step.Spent{Name: n.Name, In: n.In, Line: n.Line}
		if l, ok := locations[at]; ok {
			return l
		}
		f, ok := functions[key{n.Name, n.In}]
		if !ok {
			bare := step.Node{Name: n.Name, In: n.In}
			f = &profile.Function{ID: uint64(len(functions) + 1), Name: bare.Where(), Filename: n.In}
			functions[key{n.Name, n.In}] = f
			p.Function = append(p.Function, f)
		}
		l := &profile.Location{ID: uint64(len(locations) + 1), Line: []profile.Line{{Function: f, Line: int64(n.Line)}}}
		locations[at] = l
		p.Location = append(p.Location, l)
		return l
	}
	var walk func(n *step.Node, around []*profile.Location)
	walk = func(n *step.Node, around []*profile.Location) {
		stack := append([]*profile.Location{locate(n)}, around...)
		if n.Steps > 0 || n.Evaluations > 0 {
			p.Sample = append(p.Sample, &profile.Sample{Location: stack, Value: []int64{int64(n.Steps), int64(n.Evaluations)}})
		}
		for _, c := range n.Calls {
			walk(c, stack)
		}
	}
	walk(sum.Profile.Root, nil)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := p.Write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
