package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

const replHelp = `Type a term of PIF to see its value; a function may be followed by its input:
  {"mul":[6,7]}
  {"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}} 12
An entry goes on over several lines until its brackets close. Besides:
  NAME INPUT          run an evolved tool
  :evolve NAME CODE   make a tool
  :drive NAME INPUT   run a tool and take its continue steps
  :next               take the next step of a continuation
  :tools              list the tools
  :help [WHAT]        this text, or an operation (:help fold), a category, "language"
  :quit               leave; so does Ctrl-D`

func newRepl() *cobra.Command {
	var (
		limits limitOptions
		grants capOptions
	)
	cmd := &cobra.Command{
		Use:   "repl",
		Short: "Type terms and see their values",
		Long:  "Read terms and show their values, one after the other.\n\n" + replHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := limits.limits()
			if err != nil {
				return err
			}
			auth, err := grants.open(warnings(cmd))
			if err != nil {
				return failing(err)
			}
			defer auth.close()
			registry, err := auth.tools()
			if err != nil {
				return failing(err)
			}
			r := &repl{cmd: cmd, server: mcpserver.New(mcpserver.Options{
				Registry: registry, Broker: auth.broker, Limits: l, Trace: limits.tracer(cmd.ErrOrStderr()),
			})}
			return failing(r.loop(openLines(cmd, r.complete)))
		},
	}
	f := cmd.Flags()
	limits.register(f)
	grants.register(f, keptNowhere)
	return cmd
}

// repl is a conversation with a server in this process.
type repl struct {
	cmd    *cobra.Command
	server *mcpserver.Server
	next   map[string]any // arguments of run that go on from the last continuation
}

// lines is where a repl's input comes from.
type lines interface {
	// read gives the next line; first is unset inside an entry of several.
	// errInterrupted means that the entry is to be dropped.
	read(first bool) (string, error)
	// remember adds an entry to the history.
	remember(entry string)
	// interactive reports whether a person is there to be greeted.
	interactive() bool
}

var errInterrupted = errors.New("interrupted")

func (r *repl) loop(in lines) error {
	if in.interactive() {
		fmt.Fprintf(r.cmd.OutOrStdout(), "PIF (mcp-pif %s). :help for help, Ctrl-D to leave.\n", version())
	}
	for {
		entry, err := readEntry(in)
		if errors.Is(err, errInterrupted) {
			continue
		}
		if entry = strings.TrimSpace(entry); entry != "" {
			in.remember(entry)
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

// readEntry reads lines until brackets and quotes are closed.
func readEntry(in lines) (string, error) {
	var entry strings.Builder
	for first := true; ; first = false {
		line, err := in.read(first)
		if err != nil {
			if errors.Is(err, errInterrupted) {
				return "", err
			}
			entry.WriteString(line)
			return entry.String(), err
		}
		entry.WriteString(line)
		if closed(entry.String()) {
			return entry.String(), nil
		}
		entry.WriteByte('\n')
	}
}

// closed reports whether every bracket of an entry is closed. A bracket closed
// by another kind, or a quote open at a line's end, is a mistake, which JSON
// will complain of, not a reason to wait for more.
func closed(entry string) bool {
	var open []byte
	quoted := false
	for i := 0; i < len(entry); i++ {
		switch c := entry[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted && c == '\n':
			return true
		case quoted:
		case c == '{', c == '[':
			open = append(open, c+2) // its partner, in ASCII
		case c == '}', c == ']':
			if len(open) == 0 || open[len(open)-1] != c {
				return true
			}
			open = open[:len(open)-1]
		}
	}
	return len(open) == 0 || quoted
}

// do does what an entry says, and reports whether to go on.
func (r *repl) do(entry string) bool {
	word, rest, _ := strings.Cut(entry, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case word == ":quit", word == ":exit", word == ":q":
		return false
	case word == ":help" && rest == "":
		fmt.Fprintln(r.cmd.OutOrStdout(), replHelp)
	case word == ":help" && rest == "language":
		r.call("help", nil)
	case word == ":help":
		r.call("help", map[string]any{"name": rest})
	case word == ":tools":
		r.tools()
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
		r.complain(fmt.Sprintf("there is no command %s; :help lists them", word))
	case strings.ContainsRune(`{["`, rune(entry[0])):
		code, input := firstValue(entry)
		r.run(map[string]any{"code": code}, input)
	default:
		r.run(map[string]any{"code": word}, rest)
	}
	return true
}

// firstValue splits an entry into its first JSON value and the rest. What isn't
// JSON is left whole, for the parser to say why.
func firstValue(entry string) (code, rest string) {
	dec := json.NewDecoder(strings.NewReader(entry))
	var value json.RawMessage
	if dec.Decode(&value) != nil {
		return entry, ""
	}
	n := dec.InputOffset()
	return entry[:n], strings.TrimSpace(entry[n:])
}

func (r *repl) complain(message string) {
	fmt.Fprintln(r.cmd.ErrOrStderr(), printableLines(message))
}

func (r *repl) call(tool string, arguments map[string]any) {
	_ = printAnswer(r.cmd, call(commandContext(r.cmd), r.server, tool, arguments), false)
}

// evolve makes a tool, and says so in a line.
func (r *repl) evolve(name, code string) {
	a := call(commandContext(r.cmd), r.server, "evolve", map[string]any{"name": name, "code": code})
	var made struct {
		Version int
		Notes   []string
	}
	if a.Fault != nil || json.Unmarshal(a.Structured, &made) != nil {
		_ = printAnswer(r.cmd, a, false)
		return
	}
	fmt.Fprintf(r.cmd.OutOrStdout(), "%s is a tool (version %d)\n", printable(name), made.Version)
	for _, note := range made.Notes {
		fmt.Fprintln(r.cmd.OutOrStdout(), "note:", printable(note))
	}
}

// run evaluates, and keeps the way on from a continuation.
func (r *repl) run(arguments map[string]any, input string) {
	if input = strings.TrimSpace(input); input != "" {
		arguments["input"] = inputJSON(input)
	}
	a := evaluate(r.cmd, r.server, arguments)
	var answer struct {
		Next struct{ Arguments map[string]any }
	}
	dec := json.NewDecoder(strings.NewReader(string(a.Structured)))
	dec.UseNumber() // exact
	if dec.Decode(&answer) == nil {
		r.next = answer.Next.Arguments
	}
	_ = printAnswer(r.cmd, a, false)
}

// tools lists the evolved tools, one a line.
func (r *repl) tools() {
	all := r.server.Registry().Snapshot().All()
	if len(all) == 0 {
		fmt.Fprintln(r.cmd.OutOrStdout(), "no tools yet; make one with :evolve NAME CODE")
	}
	for _, t := range all {
		fmt.Fprintf(r.cmd.OutOrStdout(), "%s  version %d  %s\n", printable(t.Name), t.Version, printable(firstLine(t.Description, 60)))
	}
}

// firstLine is a text's first line, shortened.
func firstLine(text string, most int) string {
	text, _, more := strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > most {
		text, more = string(runes[:most]), true
	}
	if more {
		text += "…"
	}
	return text
}

// complete gives the words that the word before the cursor may become: commands
// and tools at the start of an entry, operations after a quote.
func (r *repl) complete(before string) (word string, candidates []string) {
	start := strings.LastIndexFunc(before, func(c rune) bool { return strings.ContainsRune(` {}[],"`, c) }) + 1
	word = before[start:]
	var all []string
	switch {
	case start > 0 && before[start-1] == '"':
		for i := range prim.Table {
			if prim.Table[i].Operation() {
				all = append(all, prim.Table[i].Name)
			}
		}
		fallthrough
	case start > 0:
		for _, t := range r.server.Registry().Snapshot().All() {
			all = append(all, t.Name)
		}
	default:
		all = []string{":evolve", ":drive", ":next", ":tools", ":help", ":quit"}
		for _, t := range r.server.Registry().Snapshot().All() {
			all = append(all, t.Name)
		}
	}
	for _, name := range all {
		if strings.HasPrefix(name, word) {
			candidates = append(candidates, name)
		}
	}
	return word, candidates
}
