package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/packs"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/spf13/cobra"
)

func newTools() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "Show, compare and roll back tools",
		Long: `Show the tools that models made, version by version, go back to an earlier one, and
carry tools from one file to another. --store names the file, --profile whose it is;
with neither it is the file of the only profile there is. Servers may be running on
it: they see what is changed before their next request.

Where a command shows what tools may do it decides that as the last server on the
file did, or as one with the --cap, --deny and --policy given.`,
		Example: `  mcp-pif tools list
  mcp-pif tools show square@2
  mcp-pif tools diff square 1 2
  mcp-pif tools rollback square 1
  mcp-pif tools export tools.json`,
	}
	cmd.AddCommand(
		newToolsList(), newToolsShow(), newToolsHistory(), newToolsDiff(), newToolsRollback(), newToolsRetire(),
		newToolsExport(), newToolsImport(), newToolsProfiles(),
	)
	return cmd
}

// toolsCommand is a command about the tools of a store.
func toolsCommand(cmd *cobra.Command, how app.Opening, do func(cmd *cobra.Command, k *app.Kept, args []string) error) *cobra.Command {
	var o app.CapOptions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		k, err := o.Tools(cmd, how)
		if err != nil {
			return cli.Failed(err)
		}
		defer k.Close()
		return cli.Failed(do(cmd, k, args))
	}
	o.Register(cmd.Flags(), "the only profile's, where there is one")
	if cmd.Name() != "list" && cmd.Name() != "show" { // the others don't show what a tool may do
		for flag := range o.AuthorityFlags() {
			_ = cmd.Flags().MarkHidden(flag)
		}
		for _, flag := range []string{"policy", "plugin-lock", "mcp-lock", "ask-via"} {
			_ = cmd.Flags().MarkHidden(flag)
		}
	}
	if cmd.Name() != "export" { // which prints JSON in any case
		cli.JSONFlag(cmd)
	}
	return cmd
}

// printIndented prints an answer for programs.
func printIndented(cmd *cobra.Command, answer json.RawMessage) error {
	var v any
	if err := pifjson.Decode(answer, &v); err != nil {
		return err
	}
	return cli.PrintJSON(cmd, v)
}

// nameAndVersion reads NAME or NAME@V; 0: the current one.
func nameAndVersion(text string) (name string, version int, err error) {
	at := strings.LastIndexByte(text, '@')
	if at < 1 {
		return text, 0, nil
	}
	version, err = versionNumber(text[at+1:])
	return text[:at], version, err
}

func versionNumber(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("a version is a number from 1, not %q", text)
	}
	return int(n), nil
}

func newToolsProfiles() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profiles",
		Short: "List the profiles",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names, err := app.Profiles()
			if err != nil {
				return cli.Failed(err)
			}
			if cli.AsJSON(cmd) {
				return cli.Failed(cli.PrintJSON(cmd, append([]string{}, names...)))
			}
			if len(names) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "no profiles: the first server of a client makes one")
			}
			for _, name := range names {
				fmt.Fprintln(cmd.OutOrStdout(), cli.Printable(name))
			}
			return nil
		},
	}
	cli.JSONFlag(cmd)
	return cmd
}

// ifVersion registers the condition of a change: that a version is the current one, 0
// that there is none. nil: there is no condition.
func ifVersion(cmd *cobra.Command, to **int) {
	cmd.Flags().Func("if-version", "only if this `VERSION` is the current one", func(text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return errors.New("it is the number of a version, or 0 for none")
		}
		*to = new(int(n))
		return nil
	})
}

func newToolsRollback() *cobra.Command {
	var condition *int
	cmd := toolsCommand(&cobra.Command{
		Use: "rollback NAME V", Short: "Roll a tool back to an earlier version",
		Long: `Make the next version of a tool from the code, the declaration and the examples of
version V, also where the tool was retired. What it may do is decided by each server
anew. Tools that were made together with it are carried along, if they still fit.
History goes on: nothing is undone.`,
		Args: cobra.ExactArgs(2),
	}, app.ToWrite, func(cmd *cobra.Command, k *app.Kept, args []string) error {
		to, err := versionNumber(args[1])
		if err != nil {
			return err
		}
		t, err := k.Registry().Rollback(args[0], to, registry.Edit{IfVersion: condition})
		if err != nil {
			return app.PrintableError(cmd, err)
		}
		if cli.AsJSON(cmd) {
			return cli.PrintJSON(cmd, map[string]any{"name": t.Name, "version": t.Version, "from": to, "hash": t.Hash})
		}
		fmt.Fprintf(cmd.OutOrStdout(), "rolled %s back to version %d (saved as version %d)\n", cli.Printable(t.Name), to, t.Version)
		for _, m := range t.Together() {
			if m.Name != t.Name {
				fmt.Fprintf(cmd.OutOrStdout(), "%s was carried along (saved as version %d)\n", cli.Printable(m.Name), m.Version)
			}
		}
		return nil
	})
	ifVersion(cmd, &condition)
	return cmd
}

func newToolsRetire() *cobra.Command {
	var condition *int
	cmd := toolsCommand(&cobra.Command{
		Use: "retire NAME", SuggestFor: []string{"remove", "delete", "rm"}, Short: "Take a tool off the list; its history stays",
		Args: cobra.ExactArgs(1),
	}, app.ToWrite, func(cmd *cobra.Command, k *app.Kept, args []string) error {
		question := map[string]any{"name": args[0]}
		if condition != nil {
			question["if_version"] = *condition
		}
		var gone struct {
			Version int
			Callers []string
		}
		a, err := k.Ask(cmd, "retire", question, &gone)
		if err != nil {
			return err
		}
		if cli.AsJSON(cmd) {
			return printIndented(cmd, a.Structured)
		}
		said := fmt.Sprintf("%s is retired; 'mcp-pif tools rollback %[1]s %d' brings it back", cli.Printable(args[0]), gone.Version)
		fmt.Fprintln(cmd.OutOrStdout(), cli.InCommandsOf(cmd, said))
		if len(gone.Callers) > 0 {
			fmt.Fprintf(cmd.OutOrStdout(), "still bound to a version of it: %s\n", cli.Printable(strings.Join(gone.Callers, " ")))
		}
		return nil
	})
	ifVersion(cmd, &condition)
	return cmd
}

func newToolsExport() *cobra.Command {
	return toolsCommand(&cobra.Command{
		Use: "export [FILE]", Short: "Write all tools as one readable JSON document",
		Long: `Write the tools as one JSON document, sorted by name, each with its code laid out to
be read, what it declares, its examples, and the older versions it is bound to. FILE is
written whole or not at all; without it, or as -, the document is printed.`,
		Args: cobra.MaximumNArgs(1),
	}, app.ToRead, func(cmd *cobra.Command, k *app.Kept, args []string) error {
		tools := k.Registry().Snapshot()
		for _, t := range tools.All() {
			if err := t.Problem(); err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "left out: %s: %s\n", cli.Printable(t.Name), cli.Printable(err.Error()))
			}
		}
		document := cli.EscapeJSON(registry.Encode(tools)) // who reads it sees what it says
		if len(args) == 1 && args[0] != "-" {
			_, err := os.Stat(args[0])
			was := map[bool]string{true: ", in place of what was there"}[err == nil]
			if err := statefile.Replace(args[0], document, 0o600); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "wrote %s to %s%s\n", cli.Count(len(tools.All()), "tool", "tools"), cli.Printable(args[0]), was)
			return nil
		}
		_, err := cmd.OutOrStdout().Write(document)
		return err
	})
}

func newToolsImport() *cobra.Command {
	return toolsCommand(&cobra.Command{
		Use: "import FILE", Short: "Add the tools of such a document, or of a pack",
		Long: `Add the tools of the document FILE (- for standard input), or ready ones: pack:memory,
pack:files, pack:web, pack:sessions or pack:self, made for what the flags grant. Each is
compiled first, and its examples are run, without any authority; if any can't be made, or an example differs,
or there is no room, nothing is changed. A tool that is there already, with other code,
another description, declaration or other examples, becomes its next version. What
imported tools may do is decided by each server anew: what nobody
grants there is blocked.`,
		Args: cobra.ExactArgs(1),
	}, app.ToMake, func(cmd *cobra.Command, k *app.Kept, args []string) error {
		tools, err := importedTools(cmd, k, args[0])
		if err != nil {
			return err
		}
		if n := roundedExamples(tools); n > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "%d examples are of an older version, which rounded numbers with a point to integers: they are read so; evolve with new examples to replace them\n", n)
		}
		p := cli.StartProgress(cmd, "compiling the tools and running their examples")
		added, replaced, same, err := k.Import(cli.Context(cmd), tools)
		p.Stop()
		if err != nil {
			return app.PrintableError(cmd, err)
		}
		for _, c := range certificates(k.Registry().Snapshot(), tools) {
			if c.Status == registry.ProofVoid {
				fmt.Fprintf(cmd.ErrOrStderr(), "the certificate of %s doesn't hold here: %s\n", cli.Printable(c.Name), cli.Printable(c.Why))
			}
		}
		if cli.AsJSON(cmd) {
			return cli.PrintJSON(cmd, map[string]int{"added": added, "replaced": replaced, "unchanged": same})
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%d added, %d replaced, %d unchanged\n", added, replaced, same)
		return nil
	})
}

// importedTools reads the tools of a document or a pack.
func importedTools(cmd *cobra.Command, k *app.Kept, name string) ([]registry.Portable, error) {
	if name, ok := strings.CutPrefix(name, app.PackMark); ok {
		p, err := packs.Named(name)
		if err != nil {
			return nil, err
		}
		grants := k.Auth.Policy.Grants()
		tools, left, lacking, err := app.PackTools(p, grants, k.Registry().Snapshot())
		if len(left) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "left out, since there are others of their names: %s\n", strings.Join(left, ", "))
		}
		if len(lacking) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "left out, since nothing that is granted has their verbs: %s\n", strings.Join(lacking, ", "))
		}
		if !p.Granted(grants) {
			fmt.Fprintf(cmd.ErrOrStderr(), "its tools can act where something is granted: start the server with %s --with %s\n", p.Grant, p.Name)
		}
		return tools, err
	}
	var in io.Reader = cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	tools, err := registry.Decode(in)
	if err != nil {
		return nil, app.PrintableError(cmd, fmt.Errorf("%s: %w", name, err))
	}
	return tools, nil
}

// roundedExamples counts the examples with a number that is rounded where they are
// read, as older versions did.
func roundedExamples(tools []registry.Portable) (n int) {
	for i := range tools {
		for _, e := range tools[i].Examples {
			if e.As == "" && fractional.Compiled().Match(slices.Concat(e.Input, []byte(" "), e.Expect)) {
				n++
			}
		}
	}
	return n
}

// fractional matches a number of JSON with a point or an exponent.
var fractional = lazyregexp.New(`(^|[\s\[{:,])-?\d+(\.\d|[eE])`)
