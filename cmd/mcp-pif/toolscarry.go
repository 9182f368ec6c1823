package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/packs"
)

func newToolsExport() *cobra.Command {
	return toolsCommand(&cobra.Command{
		Use: "export [FILE]", Short: "Write all tools as one readable JSON document",
		Long: `Write the tools as one JSON document, sorted by name, each with its code laid out to
be read, what it declares, its examples, and the older versions it is bound to. FILE is
written whole or not at all; without it, or as -, the document is printed.`,
		Args: cobra.MaximumNArgs(1),
	}, app.ToRead, nil, func(cmd *cobra.Command, k *app.Kept, args []string) error {
		tools := k.Registry().Snapshot()
		for _, t := range tools.All() {
			if err := t.Problem(); err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "left out: %s: %s\n", cli.Printable(t.Name), cli.Printable(err.Error()))
			}
		}
		document := cli.EscapeJSON(registry.Encode(tools)) // who reads it sees what it says
		if len(args) == 1 && args[0] != "-" {
			return statefile.Replace(args[0], document, 0o600)
		}
		_, err := cmd.OutOrStdout().Write(document)
		return err
	})
}

func newToolsImport() *cobra.Command {
	var asJSON bool
	return toolsCommand(&cobra.Command{
		Use: "import FILE", Short: "Add the tools of such a document, or of a pack",
		Long: `Add the tools of the document FILE (- for standard input), or ready ones: pack:memory,
pack:files, pack:web or pack:sessions, made for what the flags grant. Each is compiled first, and
its examples are run, without any authority; if any can't be made, or an example differs,
or there is no room, nothing is changed. A tool that is there already, with other code,
another description, declaration or other examples, becomes its next version. What
imported tools may do is decided by each server anew: what nobody
grants there is blocked.`,
		Args: cobra.ExactArgs(1),
	}, app.ToMake, &asJSON, func(cmd *cobra.Command, k *app.Kept, args []string) error {
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
			return app.PrintableError(err)
		}
		for _, c := range certificates(k.Registry().Snapshot(), tools) {
			if c.Status == registry.ProofVoid {
				fmt.Fprintf(cmd.ErrOrStderr(), "the certificate of %s doesn't hold here: %s\n", cli.Printable(c.Name), cli.Printable(c.Why))
			}
		}
		if asJSON {
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
		tools, left, err := app.PackTools(p, grants, k.Registry().Snapshot())
		if len(left) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "left out, since there are others of their names: %s\n", strings.Join(left, ", "))
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
		return nil, app.PrintableError(fmt.Errorf("%s: %w", name, err))
	}
	return tools, nil
}

// roundedExamples counts the examples with a number that is rounded where they are
// read, as older versions did.
func roundedExamples(tools []registry.Portable) (n int) {
	for i := range tools {
		for _, e := range tools[i].Examples {
			if e.As == "" && fractional.Match(slices.Concat(e.Input, []byte(" "), e.Expect)) {
				n++
			}
		}
	}
	return n
}

// fractional matches a number of JSON with a point or an exponent.
var fractional = regexp.MustCompile(`(^|[\s\[{:,])-?\d+(\.\d|[eE])`)
