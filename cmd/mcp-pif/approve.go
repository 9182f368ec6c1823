package main

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// approveOptions are the flags of approve.
type approveOptions struct {
	list, no, asJSON bool
	clear            string
}

func newApprove() *cobra.Command {
	var o approveOptions
	var stores journalOptions
	cmd := &cobra.Command{
		Use:   "approve [QUESTION|PLAN|REQUEST]",
		Short: "Approve or deny what tools ask for under --ask, --confirm and rules of flow",
		Long: `Show what a tool asks for, and answer it: yes for this version, yes for this name
while it gets no wider, or no. With --ask CAPABILITY a server grants nothing by
itself; each tool that would hold some of it waits until you said yes to it here.
Servers that run learn of the answer within half a second.

The question shows first what the server knows: where the tool could reach, what it
could do there, the limits, what is wider than what you approved before. What the
model wrote comes last. Several questions come one after the other. To say yes you
type the tool's name, or the question's where that can't be typed, and a number that
is shown; this takes a terminal, so that no program answers in your place.

A PLAN is p_ and the name of a run: what a run is about to do that --confirm has a
person approve as a whole. Its steps can be read in full before the answer, or with
--list PLAN on standard output.

A REQUEST is f_ and letters: one that breaks a rule of flow with "else":"ask". A yes
is to exactly this request made once more, once, within the hour.

A no holds for every version of the name until --clear NAME, which forgets every
answer about it.`,
		Example: `  mcp-pif approve --list
  mcp-pif approve
  mcp-pif approve 1a2b3c4d
  mcp-pif approve --list p_abcdefgh-17 | less
  mcp-pif approve --clear notes`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.list = o.list || o.asJSON
			switch {
			case o.list && (o.no || o.clear != "" || len(args) > 0 && !strings.HasPrefix(args[0], "p_")):
				return errors.New("--list and --json take nothing else, but a plan: p_…")
			case o.clear != "" && (o.no || len(args) > 0):
				return errors.New("--clear NAME stands alone")
			}
			if len(args) == 1 && strings.HasPrefix(args[0], "f_") {
				return cli.Failed(o.request(cmd, &stores, args[0]))
			}
			if len(args) == 1 && strings.HasPrefix(args[0], "p_") {
				return cli.Failed(o.plan(cmd, &stores, args[0]))
			}
			path, err := app.ConsentFile()
			if err != nil {
				return cli.Failed(err)
			}
			c := &caps.Consents{Path: path}
			if o.list {
				return cli.Failed(listQuestions(cmd, c, &stores, o.asJSON))
			}
			return cli.Failed(approve(cmd, c, &o, &stores, args))
		},
	}
	stores.register(cmd, false)
	f := cmd.Flags()
	f.BoolVar(&o.list, "list", false, "list what waits for an answer, and what was answered; this takes no terminal")
	f.BoolVar(&o.asJSON, "json", false, "list as JSON")
	f.BoolVar(&o.no, "no", false, "say no, without typing more")
	f.StringVar(&o.clear, "clear", "", "forget what was said about the tools called `NAME`: they may ask again, and have nothing until they are approved anew")
	return cmd
}

// request has a request answered that breaks a rule.
func (o *approveOptions) request(cmd *cobra.Command, stores *journalOptions, id string) error {
	tty, err := openTerminal(cmd.InOrStdin())
	if err != nil {
		return err
	}
	defer tty.Close()
	return approveRequest(tty, bufio.NewReader(io.LimitReader(tty, 64<<10)), stores, id, o.no)
}

// plan shows a plan, and has it answered unless it is only listed.
func (o *approveOptions) plan(cmd *cobra.Command, stores *journalOptions, id string) error {
	if !o.list {
		tty, err := openTerminal(cmd.InOrStdin())
		if err != nil {
			return err
		}
		defer tty.Close()
		return approvePlan(tty, bufio.NewReader(io.LimitReader(tty, 64<<10)), stores, id, o.no)
	}
	s, p, err := findPlan(stores, id)
	if err != nil {
		return err
	}
	defer s.Close()
	if o.asJSON {
		return cli.PrintJSON(cmd, p)
	}
	lines, _, _ := p.Lines()
	lines = append(append(lines, "", "In full:"), p.Full(1, len(p.Steps), 0)...)
	_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.Join(lines, "\n"))
	return err
}

// listQuestions shows what waits and what was answered.
func listQuestions(cmd *cobra.Command, c *caps.Consents, stores *journalOptions, asJSON bool) error {
	questions, answers, err := c.All()
	if err != nil {
		return err
	}
	plans, requests, unread := waiting(stores)
	if asJSON {
		return errors.Join(unread, cli.PrintJSON(cmd, map[string]any{
			"questions": append([]caps.Question{}, questions...), "answers": append([]caps.ConsentAnswer{}, answers...),
			"plans": append([]*run.Planned{}, plans...), "requests": append([]*run.WaitingFlow{}, requests...),
		}))
	}
	out := cmd.OutOrStdout()
	if len(questions)+len(plans)+len(requests) == 0 && unread == nil {
		fmt.Fprintln(out, "Nothing waits for your approval.")
	}
	for _, p := range plans {
		lines := caps.Folded(p.ID+"  ", fmt.Sprintf("the plan of \"%s\", version %d: %s, until %s", p.Tool, p.Version, cli.Count(len(p.Steps), "step", "steps"), p.Expires().UTC().Format(time.RFC3339)))
		fmt.Fprintln(out, strings.Join(lines, "\n"))
	}
	for _, q := range requests {
		lines := caps.Folded(q.ID+"  ", fmt.Sprintf("a request of \"%s\", version %d, that breaks a rule: %s, until %s", q.Tool, q.Version, q.Op, q.Expires().UTC().Format(time.RFC3339)))
		fmt.Fprintln(out, strings.Join(lines, "\n"))
	}
	for i := range questions {
		q := &questions[i]
		lines := caps.Folded(q.ID+"  ", fmt.Sprintf("\"%s\", version %d, of %s: %s", q.Tool, q.Version, q.Who, strings.Join(q.Asks, ", ")))
		fmt.Fprintln(out, strings.Join(lines, "\n"))
	}
	said := map[string]string{caps.YesVersion: "yes, for that version", caps.YesName: "yes, while it gets no wider", caps.No: "no"}
	for i := range answers {
		a := &answers[i]
		fold(out, "answered %s: \"%s\", version %d, of %s: %s", a.Time.UTC().Format(time.RFC3339), a.Tool, a.Version, a.Who, said[a.Answer])
	}
	return unread
}

// approve asks the person at the terminal.
func approve(cmd *cobra.Command, c *caps.Consents, o *approveOptions, stores *journalOptions, args []string) error {
	tty, err := openTerminal(cmd.InOrStdin())
	if err != nil {
		return err
	}
	defer tty.Close()
	in := bufio.NewReader(io.LimitReader(tty, 64<<10))
	if o.clear != "" {
		return clearAnswers(tty, in, c, o.clear)
	}
	questions, err := questionsMeant(c, args)
	if err != nil {
		return err
	}
	var plans []*run.Planned
	var requests []*run.WaitingFlow
	var unread error
	if len(args) == 0 {
		plans, requests, unread = waiting(stores)
	}
	n := len(questions) + len(plans) + len(requests)
	if n == 0 && unread == nil {
		fmt.Fprintln(tty, "Nothing waits for your approval.")
	}
	if o.no && n > 1 {
		return fmt.Errorf("%d questions wait: 'mcp-pif approve --list' shows them; say no to one, with 'mcp-pif approve QUESTION --no'", n)
	}
	open := 0
	answered := func(err error) error {
		if errors.Is(err, errLeftOpen) {
			open++
			fmt.Fprintln(tty, "Left open.")
			err = nil
		}
		if err == nil {
			fmt.Fprintln(tty)
		}
		return err
	}
	for i, p := range plans {
		if len(plans) > 1 {
			fmt.Fprintf(tty, "Plan %d of %d\n\n", i+1, len(plans))
		}
		if err := answered(approvePlan(tty, in, stores, p.ID, o.no)); err != nil {
			return err
		}
	}
	for i, q := range requests {
		if len(requests) > 1 {
			fmt.Fprintf(tty, "Request %d of %d\n\n", i+1, len(requests))
		}
		if err := answered(approveRequest(tty, in, stores, q.ID, o.no)); err != nil {
			return err
		}
	}
	for i := range questions {
		if len(questions) > 1 {
			fmt.Fprintf(tty, "Question %d of %d\n\n", i+1, len(questions))
		}
		if err := answered(o.answer(tty, in, c, &questions[i])); err != nil {
			return err
		}
	}
	if open > 0 {
		return errors.Join(errLeftOpen, unread)
	}
	return unread
}

// answer shows a question and has it answered.
func (o *approveOptions) answer(tty io.Writer, in *bufio.Reader, c *caps.Consents, q *caps.Question) (err error) {
	show(tty, q.Lines())
	answer := caps.No
	if !o.no {
		if answer, err = askPerson(tty, in, q); err != nil {
			return err
		}
	}
	if err := c.Answer(q.ID, &q.Subject, answer, "terminal"); err != nil {
		return fmt.Errorf("nothing was answered: %w", err)
	}
	switch answer {
	case caps.YesVersion:
		fold(tty, "Approved: version %d of \"%s\". Another version will ask again.", q.Version, q.Tool)
	case caps.YesName:
		fold(tty, "Approved: \"%s\", while it gets no wider.", q.Tool)
	default:
		fold(tty, "Denied for every version of \"%s\". It won't ask again until you run: mcp-pif approve --clear %s", q.Tool, caps.ShellQuote(q.Tool))
	}
	return nil
}

// show shows what is to be answered: on a terminal titles are bold, what it does at worst is yellow,
// and what a model wrote, behind its margin, faint.
func show(out io.Writer, lines []string) {
	if tty, ok := out.(*controlling); ok {
		out = &tty.shown
	}
	title := ""
	cli.PaintLines(out, strings.Join(lines, "\n")+"\n", func(line string) string {
		switch {
		case line == "":
		case line[0] != ' ':
			title = line
			return cli.Bold
		case strings.HasPrefix(line, "  |"):
			return cli.Faint
		case strings.HasPrefix(title, "At worst"):
			return cli.Yellow
		}
		return ""
	})
}

// questionsMeant returns the question of an identity, or all there are.
func questionsMeant(c *caps.Consents, args []string) ([]caps.Question, error) {
	questions, _, err := c.All()
	if err != nil || len(args) == 0 {
		return questions, err
	}
	ids := make([]string, len(questions))
	for i := range questions {
		if ids[i] = questions[i].ID; ids[i] == args[0] {
			return questions[i : i+1], nil
		}
	}
	return nil, fmt.Errorf("%q: %w%s 'mcp-pif approve --list' shows those that there are", args[0], caps.ErrNoQuestion, cmp.Or(cli.DidYouMean(cli.Closest(args[0], ids)), ";"))
}

// maxTries is how often a question is asked again after what didn't match.
const maxTries = 5

// errLeftOpen is the end of an approval that was neither given nor refused.
var errLeftOpen = errors.New("a question is left open")

// askPerson has the person type an answer, and asks again if it doesn't match.
func askPerson(out io.Writer, in *bufio.Reader, q *caps.Question) (answer string, err error) {
	name := q.ID
	if registry.Listed(q.Tool) {
		name = q.Tool
	}
	about := append([]string{"", "This is about the tool"}, caps.Folded("  ", fmt.Sprintf("\"%s\", version %d,", q.Tool, q.Version))...)
	about = append(append(about, "and"), caps.Folded("  ", strings.Join(q.Asks, ", "))...)
	fmt.Fprintln(out, strings.Join(about, "\n"))
	for range maxTries {
		number := challenge()
		fmt.Fprintf(out, `
Type one of these lines, or press return to leave it open:

  yes %s %s
      for this version alone
  name %[1]s %[2]s
      for this version, and later ones of the name while they get no wider
  no
      for every version of the name, until 'mcp-pif approve --clear NAME'

> `, name, number)
		line, err := in.ReadString('\n')
		if err != nil {
			return "", errLeftOpen
		}
		switch strings.TrimRight(line, "\r\n") {
		case "yes " + name + " " + number:
			return caps.YesVersion, nil
		case "name " + name + " " + number:
			return caps.YesName, nil
		case "no":
			return caps.No, nil
		case "":
			return "", errLeftOpen
		}
		fmt.Fprintln(out, "\nThat didn't match, so nothing was answered.")
	}
	return "", errLeftOpen
}

// fold writes a line of which a part is a tool's name, as lines that no terminal cuts.
func fold(out io.Writer, format string, a ...any) {
	fmt.Fprintln(out, strings.Join(caps.Folded("", fmt.Sprintf(format, a...)), "\n"))
}

// clearAnswers has the person confirm that answers are forgotten, and forgets them.
func clearAnswers(out io.Writer, in *bufio.Reader, c *caps.Consents, tool string) error {
	name, number := "it", challenge()
	if registry.Listed(tool) {
		name = tool
	}
	about := strings.Join(caps.Folded("  ", `"`+tool+`"`), "\n")
	fmt.Fprintf(out, "To forget every answer about the tools called\n%s\nso that they may ask again, type\n\n  clear %s %s\n\n> ", about, name, number)
	line, err := in.ReadString('\n')
	if err != nil || strings.TrimRight(line, "\r\n") != "clear "+name+" "+number {
		return errors.New("that didn't match, so nothing was cleared")
	}
	n, err := c.Clear(tool)
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("nothing was said about a tool called %q", tool)
	}
	fold(out, "Forgotten: what was said about \"%s\". Run the tool, or evolve it, to be asked again.", tool)
	return nil
}

// challenge is four digits, others each time.
func challenge() string {
	n, err := rand.Int(rand.Reader, big.NewInt(10_000))
	if err != nil {
		panic(err) // the system has no chance
	}
	return fmt.Sprintf("%04d", n)
}

// A controlling is the terminal that controls this process.
type controlling struct {
	in, out *os.File
	shown   cli.TerminalWriter // over out
}

func (c *controlling) Read(b []byte) (int, error)  { return c.in.Read(b) }
func (c *controlling) Write(b []byte) (int, error) { return c.shown.Write(b) }

// Close closes it.
func (c *controlling) Close() error {
	err := c.in.Close()
	if c.out != c.in {
		err = errors.Join(err, c.out.Close())
	}
	return err
}

// errNoTerminal is that nobody sits here.
var errNoTerminal = errors.New("an approval is typed by a person, at a terminal: run 'mcp-pif approve' in one, with nothing piped into it; 'mcp-pif approve --list' needs none")

// openTerminal opens the terminal that controls this process, which a process that
// a server or a model's client started has not. What is piped in is no person
// either, so that standard input must be a terminal, too.
func openTerminal(stdin io.Reader) (*controlling, error) {
	if !cli.IsTerminal(stdin) {
		return nil, errNoTerminal
	}
	if runtime.GOOS == "windows" {
		in, err := os.OpenFile("CONIN$", os.O_RDWR, 0)
		if err != nil {
			return nil, errNoTerminal
		}
		out, err := os.OpenFile("CONOUT$", os.O_RDWR, 0)
		if err != nil {
			in.Close()
			return nil, errNoTerminal
		}
		return isTerminal(&controlling{in: in, out: out})
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errNoTerminal
	}
	return isTerminal(&controlling{in: tty, out: tty})
}

func isTerminal(c *controlling) (*controlling, error) {
	if !term.IsTerminal(int(c.in.Fd())) || !term.IsTerminal(int(c.out.Fd())) {
		c.Close()
		return nil, errNoTerminal
	}
	c.shown.Out = c.out
	return c, nil
}
