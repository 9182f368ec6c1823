package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
)

func newCheck() *cobra.Command {
	var (
		grants     capOptions
		file, name string
		declared   []string
		asJSON     bool
	)
	cmd := &cobra.Command{
		Use:   "check CODE",
		Short: "Say whether a term could be a tool, without running it",
		Long: `Read a term as the code of a tool and say what is to be said about it: its
inputs, its hash, and notes on what is allowed but may not be meant. Nothing is
run. With --store or --profile it may call the tools that are kept there; nothing
is changed. The exit status is 1 if no tool can be made from it.`,
		Example: `  mcp-pif check '{"lam":"n","body":{"mul":[{"var":"n"},{"var":"m"}]}}'
  mcp-pif check --file square.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			code, _, _, err := codeAndInput(cmd, file, args)
			if err != nil {
				return err
			}
			auth, err := grants.look(warnings(cmd))
			if err != nil {
				return failing(err)
			}
			defer auth.close()
			tools, err := grants.copied(cmd, auth)
			if err != nil {
				return failing(err)
			}
			s := mcpserver.New(mcpserver.Options{Broker: auth.broker, Registry: tools})
			a := call(commandContext(cmd), s, "evolve", map[string]any{"name": name, "code": code, "capabilities": declared})
			if asJSON || a.Fault != nil {
				return printAnswer(cmd, a, asJSON)
			}
			var made struct {
				Hash   string
				Inputs []string
				Notes  []string
			}
			if err := json.Unmarshal(a.Structured, &made); err != nil {
				return failing(err)
			}
			out := cmd.OutOrStdout()
			fmt.Fprintln(out, "ok")
			if len(made.Inputs) > 0 {
				fmt.Fprintf(out, "  inputs: %s\n", strings.Join(made.Inputs, ", "))
			}
			fmt.Fprintf(out, "  hash:   %s\n", made.Hash)
			for _, note := range made.Notes {
				fmt.Fprintf(out, "  note:   %s\n", note)
			}
			return nil
		},
	}
	f := cmd.Flags()
	grants.register(f, keptNowhere)
	f.StringArrayVar(&declared, "declare", nil, "a `CAPABILITY` the tool declares; may be repeated")
	f.StringVarP(&file, "file", "f", "", "read the code from this `FILE`")
	f.StringVar(&name, "name", "it", "the tool's name, to which continue and self refer")
	f.BoolVar(&asJSON, "json", false, "print the answer of evolve as JSON")
	return cmd
}

// copied is the tools that the flags mean, in memory, where nothing that is done
// with them lasts; none without such a flag.
func (o *capOptions) copied(cmd *cobra.Command, auth *authority) (*registry.Registry, error) {
	tools := registry.New(auth.policy)
	if path, err := o.path(""); err != nil || path == "" {
		return tools, err
	}
	k, err := o.tools(cmd, toRead)
	if err != nil {
		return nil, err
	}
	defer k.close()
	all, err := registry.Decode(bytes.NewReader(registry.Encode(k.Registry().Snapshot())))
	if err != nil {
		return nil, err
	}
	_, _, _, err = tools.Import(all)
	return tools, err
}
