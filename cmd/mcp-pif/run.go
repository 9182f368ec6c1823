package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
)

func newRun() *cobra.Command {
	var (
		limits          app.LimitOptions
		grants          app.CapOptions
		file, as, steps string
		memory          app.Size
		rounds          int
		drive, asJSON   bool
		plan            string
	)
	cmd := &cobra.Command{
		Use:   "run CODE [INPUT]…",
		Short: "Evaluate a term, on an input if it is a function",
		Long: `Evaluate a program of PIF and print its value. CODE is the text form or JSON,
or with --store or --profile the name of a tool that is kept there; - reads it
from standard input, --file from a file.
INPUT is what a function is applied to: JSON, or any text as a string. A function
of several parameters takes as many, or one record of them. One may be -, which is
read from standard input, as it is but for one line end at its end; the text -
itself is '"-"'.

The exit status is 1 when the program fails; the failure is on standard error.`,
		Example: `  mcp-pif run 'n => n * n' 7
  echo '[1, 2] |> sum' | mcp-pif run -
  mcp-pif run --store pif.db square 12
  mcp-pif run --store pif.db hypotenuse 3 4
  mcp-pif run --store pif.db --cap fs:./sandbox --confirm fs:./sandbox --plan p_abcdefgh-17`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var inputs []string
			if file == "" && len(args) > 2 {
				args, inputs = args[:1], args[1:]
				if args[0] == "-" && slices.Contains(inputs, "-") {
					return errors.New("CODE and INPUT can't both come from standard input")
				}
			} else if file != "" && len(args) > 1 {
				args, inputs = nil, args
			}
			if n, err := strconv.ParseUint(steps, 10, 64); steps != "" && (err != nil || n == 0) {
				return cli.UsageError(fmt.Errorf("--steps is a whole number of at least 1, not %s", steps))
			}
			l, err := limits.Limits()
			if err != nil {
				return err
			}
			l.Result = app.WholeResult
			call := map[string]any{"plan": plan}
			if plan == "" {
				code, input, hasInput, err := cli.CodeAndInput(cmd, file, args)
				if err != nil {
					return err
				}
				call = map[string]any{"code": code, "drive": drive}
				if hasInput {
					call["input"] = cli.InputJSON(input)
				}
			} else if len(args) > 0 || file != "" {
				return errors.New("--plan takes no code: what is done was planned")
			}
			code, _ := call["code"].(string)
			if _, isName := core.LoneName([]byte(code)); isName && (grants.Profile != "" || grants.Store != "" && grants.Store != app.InMemory) {
				path, err := grants.There()
				if err == nil {
					err = app.Missing(path)
				}
				if err != nil {
					return cli.Failed(err)
				}
			}
			s, end, err := openEngine(cmd, &grants, &limits, l)
			if err != nil {
				return cli.Failed(err)
			}
			defer end()
			if plan != "" {
				call["resume"] = s.Owns() // else another may be doing it
			}
			if inputs != nil {
				if call["input"], err = byName(cmd, s.Registry(), code, inputs); err != nil {
					return err
				}
			}
			for name, value := range map[string]string{"input_as": as, "steps": steps} {
				if value != "" {
					call[name] = value
				}
			}
			if memory > 0 {
				call["memory"] = int64(memory)
			}
			if rounds > 0 {
				call["rounds"] = rounds
			}
			a := evaluate(cmd, s, call)
			for i := range a.More {
				a.More[i] = inShell(cmd, a.More[i])
			}
			if a.Fault != nil {
				a.Text = inShell(cmd, a.Text)
			}
			if _, hasInput := call["input"]; code != "" && a.Fault != nil && !hasInput {
				if p, err := cli.Compile("", code); err == nil && bytes.HasPrefix(p.Canonical(), []byte(`{"body":`)) {
					fmt.Fprintln(cmd.ErrOrStderr(), "The code is a function and was given no input, so it ran on null: mcp-pif run CODE INPUT.")
				}
			}
			return printAnswer(cmd, a, sourceOf(s.Registry(), a.Fault, code), asJSON)
		},
	}
	f := cmd.Flags()
	limits.Register(f)
	grants.Register(f, app.KeptNowhere)
	f.StringVarP(&file, "file", "f", "", "read the code from this `FILE`")
	f.StringVar(&as, "input-as", "", "read the input in this `WAY`: data (default), or as the predecessor did: auto, term")
	f.StringVar(&steps, "steps", "", "take at most `N` steps (default 10000000)")
	f.Var(&memory, "memory", "use at most this `SIZE` of memory")
	f.StringVar(&plan, "plan", "", "do this approved `PLAN`, which --confirm asked for; give the other flags again")
	f.BoolVar(&drive, "drive", false, "take a tool's continue steps until it is done")
	f.IntVar(&rounds, "rounds", 0, "with --drive, at most `N` (default 10000)")
	f.BoolVar(&asJSON, "json", false, "print the whole answer as JSON: result, type, steps, notes, or the error")
	return cmd
}

// byName is several inputs of code, or of a tool, as a record of its parameters. Code that can't
// be read is left to the evaluation.
func byName(cmd *cobra.Command, tools *registry.Registry, code string, inputs []string) (map[string]json.RawMessage, error) {
	var params []string
	what := "the code"
	_, isName := core.LoneName([]byte(code))
	if t, ok := tools.Snapshot().Get(code); ok {
		if what = "the tool " + cli.Printable(code); t.Program() != nil {
			params = t.Program().Params()
		}
	} else if p, err := cli.Compile("", code); err != nil {
		return nil, nil
	} else if params = p.Params(); isName || len(params) == 0 {
		return nil, cli.UsageError(fmt.Errorf("too many arguments: %q is none of CODE and INPUT", inputs[1]))
	}
	if len(params) != len(inputs) {
		return nil, cli.UsageError(fmt.Errorf("%s takes %s, not %d", what, cli.Count(len(params), "input", "inputs"), len(inputs)))
	}
	if len(slices.DeleteFunc(slices.Clone(inputs), func(in string) bool { return in != "-" })) > 1 {
		return nil, cli.UsageError(errors.New("only one input can come from standard input"))
	}
	record := map[string]json.RawMessage{}
	for i, param := range params {
		input, err := cli.Input(cmd, inputs[i])
		if err != nil {
			return nil, err
		}
		record[param] = cli.InputJSON(input)
	}
	return record, nil
}

// sourceOf is the text that a fault's place is in: of a tool, or the code that was typed.
func sourceOf(tools *registry.Registry, f *fault.Fault, typed string) string {
	if f == nil {
		return typed
	}
	in, isTool := strings.CutPrefix(f.In, "tool:")
	if !isTool {
		return typed
	}
	name, version, err := nameAndVersion(in)
	if err != nil {
		return ""
	}
	t, err := tools.Version(registry.Ref{Name: name, Version: version})
	if err != nil {
		return ""
	}
	return string(t.Source)
}

// quoteWord returns a word as a shell takes it.
func quoteWord(word string) string {
	if !strings.ContainsAny(word, " '\"\\$`*?~#&;|<>()[]{}!") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// inShell completes the commands in a note, or a failure, about a plan by the flags of a command that apply to them.
func inShell(cmd *cobra.Command, note string) string {
	var all, stores []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		switch list, several := f.Value.(pflag.SliceValue); {
		case slices.Contains([]string{"drive", "rounds", "input-as", "file", "plan", "json"}, f.Name):
			return
		case several:
			values = list.GetSlice()
		}
		for _, v := range values {
			word := " --" + f.Name + "=" + quoteWord(v)
			if all = append(all, word); f.Name == "store" || f.Name == "profile" {
				stores = append(stores, word)
			}
		}
	})
	note = planApproved.ReplaceAllString(note, "`$1"+strings.ReplaceAll(strings.Join(stores, ""), "$", "$$")+"` in a terminal shows it; then the next command")
	return planNext.ReplaceAllString(note, "mcp-pif run"+strings.ReplaceAll(strings.Join(all, ""), "$", "$$")+" --plan $1")
}

var (
	planApproved = lazyregexp.New("`(mcp-pif approve p_[^`]+)` in a terminal shows it \\(with the server's --store, if it has one\\); then the next call")
	planNext     = lazyregexp.New(`\{"name":"run","arguments":\{"plan":"(p_[^"]+)"(?:,"resume":true)?\}\}`)
)

// openEngine is what runs code with the grants and the tools that flags say, and what ends it.
func openEngine(cmd *cobra.Command, grants *app.CapOptions, limits *app.LimitOptions, l engine.Limits) (*engine.Engine, func(), error) {
	auth, err := grants.Open(cmd)
	if err != nil {
		return nil, nil, err
	}
	tools, err := auth.Tools(false)
	if err != nil {
		auth.Close()
		return nil, nil, err
	}
	s := engine.New(engine.Options{Registry: tools, Broker: auth.Broker, Limits: l, TaskDir: auth.TaskDir(), Trace: limits.Tracer(cmd.ErrOrStderr())})
	leave := s.Own()
	return s, func() { leave(); auth.Close() }, nil
}

// evaluate runs code; an interrupt cancels it.
func evaluate(cmd *cobra.Command, s *engine.Engine, arguments map[string]any) engine.Answer {
	ctx, stop := cli.Interruptible(cmd)
	defer stop()
	return app.CallTool(ctx, s, "run", arguments)
}

// printAnswer shows an answer: the result on standard output and the rest on
// standard error, or all of it as JSON on standard output. code is what a failure is in.
func printAnswer(cmd *cobra.Command, a engine.Answer, code string, asJSON bool) error {
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	switch {
	case asJSON:
		fmt.Fprintf(out, "%s\n", cli.EscapeJSON(a.Structured))
	case a.Fault != nil:
		cli.PrintPlaced(errs, cli.Red, cli.InCommandsOf(cmd, cli.Faulty(a.Text, a.Fault, code)))
	default:
		fmt.Fprintf(out, "%s\n", cli.EscapeJSON([]byte(cli.Digits(a.Text))))
	}
	if !asJSON {
		for _, more := range a.More {
			fmt.Fprintln(errs, cli.InCommandsOf(cmd, cli.PrintableLines(more)))
		}
	}
	if a.Fault != nil {
		return &cli.Failure{}
	}
	return nil
}
