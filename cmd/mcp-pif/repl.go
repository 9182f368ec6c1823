package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

const replHelp = `Type a program to see its value, in the text form or as JSON:
  1 + 2                  3
  let x = 3              x is 3 from now on; functions, too: let sq = n => n * n
  it                     the last value
  n => n * n             a function shows its type; with an input behind it, it runs
An entry goes on over several lines until its brackets close. Besides:
  NAME INPUT, NAME(…)    run an evolved tool
  :t CODE                show type and cost, without running
  :s CODE                run step by step
  :evolve NAME CODE      make a tool
  :drive NAME INPUT      run a tool and take its continue steps
  :next                  take the next step of a continuation
  :tools                 list the tools
  help [WHAT]            this text, or what "mcp-pif help" explains (help fold, help while)
  exit                   leave; so does Ctrl-D`

func newRepl() *cobra.Command {
	var (
		limits app.LimitOptions
		grants app.CapOptions
	)
	cmd := &cobra.Command{
		Use:   "repl",
		Short: "Type programs and see their values",
		Long:  "Read programs and show their values, one after the other.\n\n" + replHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := limits.Limits()
			if err != nil {
				return err
			}
			server, end, err := openEngine(cmd, &grants, &limits, l)
			if err != nil {
				return cli.Failed(err)
			}
			defer end()
			l.Result = app.WholeResult
			whole := engine.New(engine.Options{Registry: server.Registry(), Broker: server.Broker(), Limits: l})
			r := &repl{cmd: cmd, bound: map[string]binding{}, server: server, whole: whole}
			r.in = openLines(cmd, r.complete)
			return cli.Failed(r.loop())
		},
	}
	f := cmd.Flags()
	limits.Register(f)
	grants.Register(f, app.KeptNowhere)
	return cmd
}

// repl is a conversation with a server in this process.
type repl struct {
	cmd    *cobra.Command
	server *engine.Engine
	whole  *engine.Engine // the same, which gives results whole
	in     lines
	bound  map[string]binding // by name: the session's lets, and it
	next   map[string]any     // arguments of run that go on from the last continuation
}

// lines is where a repl's input comes from.
type lines interface {
	// read gives the next line. errInterrupted means that the entry is to be dropped.
	read(prompt string) (string, error)
	// goesOn reports whether the next line, of a paste or a pipe, begins as no entry does.
	goesOn() bool
	// remember adds an entry to the history.
	remember(entry string)
	// interactive reports whether a person is there to be greeted.
	interactive() bool
}

var errInterrupted = errors.New("interrupted")

func (r *repl) loop() error {
	if r.in.interactive() {
		fmt.Fprintf(r.cmd.OutOrStdout(), "PIF (mcp-pif %s). help for help, exit or Ctrl-D to leave.\n", cli.Version())
	}
	for {
		entry, err := r.read()
		if errors.Is(err, errInterrupted) {
			continue
		}
		if entry = strings.TrimSpace(entry); entry != "" {
			r.in.remember(uncommented(entry))
			if !r.do(entry) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// read reads lines until they are an entry. Where only an operand is missing, an
// empty line ends it, too.
func (r *repl) read() (string, error) {
	var entry strings.Builder
	for prompt := "pif> "; ; prompt = "...> " {
		line, err := r.in.read(prompt)
		if errors.Is(err, errInterrupted) {
			return "", err
		}
		entry.WriteString(line)
		open, rest := scan(entry.String())
		if strings.TrimSpace(rest) == "" {
			return "", err // blank, or a comment
		}
		if err != nil || !open && (strings.TrimSpace(line) == "" || !r.in.goesOn() && !r.lacks(entry.String())) {
			return entry.String(), err
		}
		entry.WriteByte('\n')
	}
}

var (
	asCall   = lazyregexp.New(`^(exit|quit|help)\((\w*)\)$`)
	runsTool = lazyregexp.New(`'mcp-pif run (\S+) INPUT'`)
	unbound  = lazyregexp.New(`Bind it with (\S+) => …[^.]*\.`)
)

// do does what an entry says, and reports whether to go on.
func (r *repl) do(entry string) bool {
	word, rest, _ := strings.Cut(entry, " ")
	rest = strings.TrimSpace(rest)
	if m := asCall.FindStringSubmatch(entry); m != nil {
		word, rest = m[1], m[2]
	}
	if _, own := r.bound[word]; !own && slices.Contains([]string{"exit", "quit", "help", "?"}, word) {
		if _, own = r.tool(word); !own {
			word = ":" + word
		}
	}
	switch {
	case (word == ":quit" || word == ":exit" || word == ":q") && rest == "":
		return false
	case word == ":help" && rest == "", word == ":?":
		fmt.Fprintln(r.cmd.OutOrStdout(), replHelp)
	case word == ":help" && rest == "language":
		r.call("help", nil)
	case word == ":help":
		a := app.CallTool(cli.Context(r.cmd), r.server, "help", map[string]any{"name": rest})
		a.Text = inJSON.ReplaceAllString(strings.Replace(a.Text, fmt.Sprintf(`help with "category":%q gives examples`, rest), "help NAME gives examples of one", 1), "$1$2$3")
		_ = printAnswer(r.cmd, a, "", false)
	case word == ":tools":
		r.tools()
	case rest == "" && slices.Contains([]string{":t", ":type", ":s", ":step", ":evolve", ":drive"}, word):
		r.complain(fmt.Sprintf("%s takes more than its name; help shows how", word))
	case word == ":t", word == ":type":
		r.describe(rest)
	case word == ":s", word == ":step":
		r.step(rest)
	case word == ":evolve":
		name, code, _ := strings.Cut(rest, " ")
		r.evolve(name, strings.TrimSpace(code))
	case word == ":drive":
		name, input, _ := strings.Cut(rest, " ")
		r.run(map[string]any{"tool": name, "drive": true}, input)
	case word == ":next" && r.next == nil:
		r.complain("there is no continuation to go on from")
	case word == ":next":
		r.run(r.next, "")
	case word[0] == ':':
		r.complain(fmt.Sprintf("there is no command %s; help lists them", word))
	default:
		r.enter(entry)
	}
	return true
}

func (r *repl) complain(message string) {
	cli.PrintPlaced(r.cmd.ErrOrStderr(), cli.Red, inREPL(message))
}

func (r *repl) call(tool string, arguments map[string]any) {
	_ = printAnswer(r.cmd, app.CallTool(cli.Context(r.cmd), r.server, tool, arguments), "", false)
}

// evolve makes a tool, with the lets that its code uses in it, and says so in a line.
func (r *repl) evolve(name, code string) {
	if p, err := r.open(name, code); err == nil && len(p.names) > 0 {
		code = string(core.Print(r.inside(p.names, p.term)))
	}
	a := app.CallTool(cli.Context(r.cmd), r.server, "evolve", map[string]any{"name": name, "code": code})
	var made struct {
		Version int
		Notes   []string
	}
	if a.Fault != nil || json.Unmarshal(a.Structured, &made) != nil {
		_ = printAnswer(r.cmd, a, code, false)
		return
	}
	fmt.Fprintf(r.cmd.OutOrStdout(), "saved tool %s (version %d)\n", cli.Printable(name), made.Version)
	for _, note := range made.Notes {
		fmt.Fprintln(r.cmd.OutOrStdout(), "note:", cli.Printable(note))
	}
}

// run runs a tool, or goes on from a continuation, and keeps the result as it.
func (r *repl) run(arguments map[string]any, input string) {
	if input = strings.TrimSpace(input); input != "" {
		arguments["input"] = cli.InputJSON(input)
	}
	a := evaluate(r.cmd, r.server, arguments)
	failed := a.Text
	if a.Fault != nil {
		failed = cli.Faulty(failed, a.Fault, sourceOf(r.server.Registry(), a.Fault, ""))
	}
	r.print(a, failed)
	if a.Fault != nil || arguments["result"] != nil { // the rest of a result is no other one
		return
	}
	r.keepResult(a)
	if r.next["result"] != nil {
		cli.Paint(r.cmd.ErrOrStderr(), cli.Faint, "note: the result isn't kept as `it`: it is larger than what is shown")
	}
}

// print shows an answer, with the words given where it failed, and keeps the way on
// from a continuation.
func (r *repl) print(a engine.Answer, failed string) {
	var answer struct {
		Next struct{ Arguments map[string]any }
	}
	if pifjson.Decode(a.Structured, &answer) == nil {
		r.next = answer.Next.Arguments
	}
	if a.Fault != nil {
		r.complain(unbound.ReplaceAllString(failed, "let $1 = 3 binds it; help language lists the operations."))
	} else {
		fmt.Fprintf(r.cmd.OutOrStdout(), "%s\n", cli.EscapeJSON([]byte(cli.Digits(a.Text))))
	}
	for _, more := range a.More {
		if r.next["result"] != nil && strings.HasPrefix(more, "next: ") {
			more = ":next shows more"
		}
		cli.Paint(r.cmd.ErrOrStderr(), cli.Faint, inREPL(more))
	}
}

// inREPL is a text with what is typed here in place of calls and commands that run a tool.
func inREPL(text string) string {
	return runsTool.ReplaceAllString(cli.InCommands(text), "'$1 INPUT'")
}

// tools lists the evolved tools, one a line.
func (r *repl) tools() {
	all := r.server.Registry().Snapshot().All()
	if len(all) == 0 {
		fmt.Fprintln(r.cmd.OutOrStdout(), "no tools yet; make one with :evolve NAME CODE")
	}
	for _, t := range all {
		fmt.Fprintf(r.cmd.OutOrStdout(), "%s  version %d  %s\n", cli.Printable(t.Name), t.Version, cli.Printable(cli.FirstLine(t.Description, 60)))
	}
}

// commands is the repl's own words, for completion.
var commands = []string{":t", ":s", ":evolve", ":drive", ":next", ":tools", ":help", ":quit"}

// fieldAccess is a term with a field behind it, which is being written.
var fieldAccess = lazyregexp.New(`^(.*[\pL\pN_)\]])\.([\pL\pN_]*)$`)

// operand is the names, fields, indices and calls that a text ends in.
func operand(before string) string {
	i, deep := len(before), 0
	for i > 0 {
		c, n := utf8.DecodeLastRuneInString(before[:i])
		switch {
		case c == ')' || c == ']':
			deep++
		case deep == 0 && c != '.' && c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '(' && c != '[':
			return before[i:]
		case c == '(' || c == '[':
			if deep--; deep < 0 {
				return before[i:]
			}
		}
		i -= n
	}
	return before
}

// complete gives the words that the word before the cursor may become: commands, the
// session's names and tools, primitives, and after a point fields.
func (r *repl) complete(before string) (word string, candidates []string) {
	if strings.HasPrefix(before, ":") && !strings.Contains(before, " ") {
		return before, starting(commands, before)
	}
	if m := fieldAccess.FindStringSubmatch(before); m != nil {
		if p, err := r.open("", operand(m[1])); err == nil && len(p.names) > 0 {
			return m[2], starting(fieldKeys(p.typ()), m[2])
		}
	}
	start := strings.LastIndexFunc(before, func(c rune) bool { return strings.ContainsRune(" {}[](),\"'@+-*/%=<>", c) }) + 1
	word = before[start:]
	own := r.names()
	for _, t := range r.server.Registry().Snapshot().All() {
		own = append(own, t.Name)
	}
	// What the session made goes first where an entry begins.
	if own = starting(own, word); start == 0 && len(own) > 0 {
		return word, own
	}
	for i := range prim.Table {
		if prim.Table[i].Operation() {
			own = append(own, prim.Table[i].Name)
		}
	}
	return word, starting(own, word)
}

// starting is the words that begin so, sorted.
func starting(words []string, prefix string) []string {
	found := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, prefix) })
	slices.Sort(found)
	return slices.Compact(found)
}

// fieldKeys is the keys of a record's type.
func fieldKeys(t *check.Type) (keys []string) {
	if t == nil {
		return nil
	}
	for _, f := range t.Fields {
		keys = append(keys, f.Key)
	}
	return keys
}
