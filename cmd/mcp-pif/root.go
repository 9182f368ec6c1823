package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpcmd"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/help"
	"github.com/mcp-pif/mcp-pif/cmd/internal/plugincmd"
	"github.com/mcp-pif/mcp-pif/cmd/internal/tour"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// newRoot is the command line.
func newRoot(out io.Writer) *cobra.Command {
	var o serveOptions
	root := &cobra.Command{
		Use:   "mcp-pif",
		Short: "An MCP server with which language models make their own tools",
		Long: `mcp-pif is an MCP server with which language models make their own tools and
run them. A tool is a small program in a pure language, PIF: it computes exactly
and always ends. It can touch only what it declares and --cap grants, through
separate plugin processes. Tools are kept, version by version, in a file for each
client.

Without a subcommand it serves MCP on standard input and output; an MCP client
starts it that way, with the flags that 'mcp-pif serve --help' lists. To see what it
does, try 'mcp-pif tour'.`,
		Example: `  mcp-pif                                 serve MCP on stdio
  mcp-pif --cap fs:./sandbox              serve, and let tools use the files below ./sandbox
  mcp-pif run 'xs => sum(xs)' '[1,2,3]'   run a program
  mcp-pif tools list                      show the tools that a client's model made
  mcp-pif help fold                       explain an operation`,
		Args:          cobra.NoArgs,
		Version:       cli.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return serve(cmd, &o) },
	}
	o.register(root.Flags())
	root.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	noPager := root.PersistentFlags().Bool("no-pager", false, "print without a pager")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if !*noPager && isPaged(cmd) {
			cli.StartPager(cmd)
		}
		return cli.Failed(app.ExpandFlags(cmd.Flags()))
	}
	printHelp := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if !*noPager {
			cli.StartPager(cmd)
		}
		errs := cmd.ErrOrStderr()
		cmd.SetErr(io.Discard) // what can't be printed is told at the end
		printHelp(cmd, args)
		cmd.SetErr(errs)
	})
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Start here", []*cobra.Command{tour.New(), newInstall(), newDoctor()}},
		{"Programs", []*cobra.Command{newRun(), newCheck(), newVerify(), newFmt(), newRepl(), newPlayground(), newLSP()}},
		{"What models made and did", []*cobra.Command{newUI(), newTools(), newJournal(), newReplay(), newStep(), newTasks()}},
		{"What tools may do", []*cobra.Command{newCaps(), newFlow(), newApprove(), newResolve(), mcpcmd.New(), plugincmd.New()}},
		{"The server", []*cobra.Command{newServe(), newCluster(), newVersion()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, c := range group.commands {
			c.GroupID = group.title
			root.AddCommand(c)
		}
	}
	root.SetHelpCommand(newHelp(root))
	root.SetHelpCommandGroupID("Start here")
	root.SetCompletionCommandGroupID("The server")
	root.SetOut(out) // which the next line takes
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.HasSubCommands() && !c.Runnable() { // a word that is no command of its own is a mistake
			c.Args, c.RunE = cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	root.SetVersionTemplate(cli.VersionLine())
	cobra.AddTemplateFunc("flagUsages", func(f *pflag.FlagSet) string {
		width := cli.TerminalWidth(os.Stdout)
		if width == 0 || width > maxHelpWidth {
			width = maxHelpWidth
		}
		return cli.FoldIndented(f.FlagUsagesWrapped(width), width)
	})
	cobra.AddTemplateFunc("reflow", func(text string) string { return cli.Reflow(text, cli.TerminalWidth(os.Stdout)) })
	root.SetHelpTemplate(strings.ReplaceAll(root.HelpTemplate(), "{{. | trimTrailingWhitespaces}}", "{{. | trimTrailingWhitespaces | reflow}}"))
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages", "Flags | flagUsages"))
	completeFlags(root)
	completeInBash(root)
	return root
}

// paged are the commands that print what may be longer than a terminal, and ask nothing.
var paged = strings.Split("caps|caps explain|caps revoked|check|flow|flow explain|flow of|journal runs|journal show|"+
	"journal tail|mcp diff|mcp list|mcp logs|mcp show|plugin inspect|plugin list|tasks list|tasks show|tools diff|"+
	"tools history|tools list|tools profiles|tools show|help", "|")

// isPaged reports whether what a command prints goes through a pager.
func isPaged(cmd *cobra.Command) bool {
	if f := cmd.Flags().Lookup("follow"); f != nil && f.Changed {
		return false
	}
	return slices.Contains(paged, strings.TrimPrefix(cmd.CommandPath(), "mcp-pif "))
}

// maxHelpWidth is how wide help is at most.
const maxHelpWidth = 100

// suggest adds to the error of a command line what was probably meant: the command or
// the flag.
func suggest(root, cmd *cobra.Command, args []string, err error) error {
	if _, isFailure := errors.AsType[*cli.Failure](err); err == nil || isFailure {
		return err
	}
	if len(args) > 0 && args[0] == "evolve" {
		return errors.New("a model evolves tools; by hand: mcp-pif repl --store FILE, then :evolve NAME CODE")
	}
	if found, rest, _ := root.Find(args); found != nil && found.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		var names []string
		for _, c := range found.Commands() {
			if slices.Contains(c.SuggestFor, rest[0]) {
				return fmt.Errorf("%s has no command %q%s", found.CommandPath(), rest[0], cli.DidYouMean(c.Name()))
			}
			names = append(names, c.Name())
		}
		return fmt.Errorf("%s has no command %q%s", found.CommandPath(), rest[0], cli.DidYouMean(cli.Closest(rest[0], names)))
	}
	if flag, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
		var names []string
		for _, c := range cmd.Commands() {
			if c.Flags().Lookup(flag) != nil {
				names = append(names, c.Name())
			}
		}
		if flag, _, _ := strings.Cut(flag, "="); strings.Contains(cmd.Use, "[-- SERVER-FLAGS]") && root.Flags().Lookup(flag) != nil {
			return fmt.Errorf("%w; flags of the server follow --: %s", err, withDash(root, cmd, args))
		}
		if len(names) > 0 && cmd.HasParent() {
			return fmt.Errorf("%w of %s alone; %[2]s what? %s", err, cmd.CommandPath(), strings.Join(names, ", "))
		}
		names = nil
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := cli.Closest(flag, names); near != "" {
			return fmt.Errorf("%w%s", err, cli.DidYouMean("--"+near))
		}
	}
	if number, isNumber := strings.CutSuffix(err.Error(), `"`); isNumber && strings.Contains(number, "missing unit in duration") {
		return fmt.Errorf("%w: write %ss for seconds", err, number[strings.LastIndex(number, `"`)+1:])
	}
	if before, _, isBool := strings.Cut(err.Error(), ": strconv.ParseBool:"); isBool {
		return fmt.Errorf("%s: it is true or false", before)
	}
	if word, one := strings.CutPrefix(err.Error(), "unknown command "); one {
		word, _, _ = strings.Cut(word, " for ")
		return fmt.Errorf("%s takes no argument: %s", cmd.CommandPath(), word)
	}
	if strings.Contains(err.Error(), " arg(s), ") {
		return argumentsError(cmd, err.Error())
	}
	return err
}

// withDash returns a command line with the flags of the server behind --.
func withDash(root, cmd *cobra.Command, args []string) string {
	line, flags := []string{"mcp-pif"}, []string{"--"}
	for i := 0; i < len(args); i++ {
		name, _, hasValue := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		f := root.Flags().Lookup(name)
		switch {
		case args[i] == "--":
			for _, word := range args[i+1:] {
				flags = append(flags, quoteWord(word))
			}
			i = len(args)
		case !strings.HasPrefix(args[i], "--") || f == nil || cmd.Flags().Lookup(name) != nil:
			line = append(line, quoteWord(args[i]))
		case hasValue || f.NoOptDefVal != "" || i+1 == len(args):
			flags = append(flags, quoteWord(args[i]))
		default:
			flags = append(flags, args[i], quoteWord(args[i+1]))
			i++
		}
	}
	return strings.Join(append(line, flags...), " ")
}

// argumentsError says in the words of a command's usage what is missing, or that there is too
// much, in place of cobra's count.
func argumentsError(cmd *cobra.Command, counted string) error {
	given, _ := strconv.Atoi(counted[strings.LastIndexByte(counted, ' ')+1:])
	usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	words := strings.Fields(strings.TrimPrefix(usage, cmd.CommandPath()))
	if slices.Contains(words, "|") || given >= len(words) || strings.HasPrefix(words[given], "[") {
		what := "many"
		if strings.HasPrefix(counted, "requires") {
			what = "few"
		}
		return fmt.Errorf("too %s arguments: %s", what, usage)
	}
	return fmt.Errorf("%s is missing: %s", words[given], usage)
}

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cli.AsJSON(cmd) {
				return cli.Failed(cli.PrintJSON(cmd, map[string]string{"version": cli.Version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}))
			}
			fmt.Fprint(cmd.OutOrStdout(), cli.VersionLine())
			return nil
		},
	}
	cli.JSONFlag(cmd)
	return cmd
}

// newHelp is the help command: of a subcommand, as usual, or of a part of the
// language.
func newHelp(root *cobra.Command) *cobra.Command {
	var (
		at      mcpcmd.ServerLock
		verbose bool
	)
	cmd := &cobra.Command{
		Use:   "help [COMMAND | OPERATION | TOPIC | CATEGORY | KIND | WORD | language]",
		Short: "Explain a command, or the language",
		Long: `Explain a subcommand, an operation or operator of PIF (fold, ++), a topic
(recursion), a category of operations (lists), all of them (language), a kind of
capability (kv) or an operation of it (kv.put), of an MCP server of the lock, too
(github.list_issues), a kind of failure (type_error), or what there is for a word of
another language (while).`,
		Example: `  mcp-pif help run
  mcp-pif help fold
  mcp-pif help recursion
  mcp-pif help while
  mcp-pif help kv`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return helpTopics(root, prefix), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return root.Help()
			}
			if sub, rest, err := root.Find(args); err == nil && sub != root && len(rest) == 0 {
				sub.InitDefaultHelpFlag()
				return sub.Help()
			}
			word := strings.Join(args, " ") // let rec
			servers, err := app.OpenUpstreams(&app.CapOptions{UpstreamOptions: app.UpstreamOptions{McpLock: at.Path}})
			if err != nil {
				servers = &app.Upstreams{} // their operations are unknown here
			}
			k, err := app.Kinds(servers.Kinds...)
			if err != nil {
				return cli.Failed(err)
			}
			policy := caps.NewPolicy(k, time.Now)
			if err := grantNamed(policy, k, servers, word); err != nil {
				return cli.Failed(err)
			}
			broker := run.New(run.Options{Policy: policy, Journal: journal.NewMemory(app.PureJournal, nil)})
			a := app.CallTool(cli.Context(cmd), engine.New(engine.Options{Broker: broker}), "help", map[string]any{"name": word})
			if word == "language" {
				a = help.All()
			}
			if a.Fault != nil {
				return fmt.Errorf("there is no command, operation or topic %q%s\n'mcp-pif help' lists the commands, 'mcp-pif help language' the operations", word, cli.DidYouMean(a.Fault.Near))
			}
			text := asked(a.Text, word)
			if !verbose {
				text = inJSON.ReplaceAllString(text, "$1$2$3")
			}
			if width := cli.TerminalWidth(cmd.OutOrStdout()); width > 0 {
				text = ansi.Wordwrap(text, width, "")
			}
			fmt.Fprintln(cmd.OutOrStdout(), text)
			return nil
		},
	}
	at.Register(cmd)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show how each operation and example is written in JSON, too")
	return cmd
}

// asked is what help says at a shell, where nothing is granted by a question.
func asked(text, word string) string {
	text = strings.Replace(text, "It is granted: a tool declares "+word+".", "A tool declares "+word+", and --cap "+word+" grants it.", 1)
	text = strings.TrimSuffix(strings.ReplaceAll(text+"\n", "  granted\n", "\n"), "\n")
	text = strings.Replace(text, `help {"search":…} finds those of a word`, "'mcp-pif mcp show "+word+"' lists all", 1)
	return strings.Replace(text, `help with "category":"`+word+`" gives examples`, "'mcp-pif help NAME' gives examples of one", 1)
}

// inJSON matches how help shows an operation and an example in JSON, after the text form.
var inJSON = lazyregexp.New(`(?m)^(  \S.* gives .*), in JSON .*$|^(  .*(?:  → |  fails: ).*)\n    [{\["].*$|^(\w+ is a kind of failure: .*\n  .*)\n    [{\["].*$`)

// grantNamed grants an operation of a server of the lock, so that help tells all of it: nothing
// is ever called.
func grantNamed(policy *caps.Policy, k caps.Kinds, servers *app.Upstreams, word string) error {
	if kind, _, _ := strings.Cut(word, "."); servers.Lock == nil || servers.Lock.Servers[kind] == nil {
		return nil
	}
	c, err := caps.Parse(word, k)
	if err != nil {
		return nil // help says so
	}
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: k})
	if err == nil {
		err = policy.Grant(g)
	}
	return err
}

// helpTopics is what help can explain.
func helpTopics(root *cobra.Command, prefix string) []string {
	var topics []string
	add := func(name string) {
		if strings.HasPrefix(name, prefix) && !slices.Contains(topics, name) {
			topics = append(topics, name)
		}
	}
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			add(c.Name())
		}
	}
	for i := range prim.Table {
		add(prim.Table[i].Name)
	}
	for _, g := range prim.Groups {
		add(g)
	}
	for i := range prim.Topics {
		add(prim.Topics[i].Names[0])
	}
	add("language")
	return topics
}
