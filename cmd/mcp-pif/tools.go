package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
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
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newToolsList(), newToolsShow(), newToolsHistory(), newToolsDiff(), newToolsRollback(), newToolsRetire(),
		newToolsExport(), newToolsImport(), newToolsProfiles(),
	)
	return cmd
}

// A kept is the tools of a store, opened by a command. What it shows goes through
// package mcpserver, so that it is what a model sees.
type kept struct {
	*mcpserver.Server
	journal *journal.Store
	auth    *authority
}

func (k *kept) close() {
	if k.journal != nil {
		k.journal.Close()
	}
	k.auth.close()
}

// How a command opens a store.
type opening int

const (
	toRead opening = iota
	toWrite
	toMake // where there is none, too
)

// tools opens the tools that the flags mean. No server starts with it, so that
// nothing but what the command does is recorded.
func (o *capOptions) tools(cmd *cobra.Command, how opening) (_ *kept, err error) {
	path, err := o.there()
	if err != nil {
		return nil, err
	}
	log := warnings(cmd)
	k := new(kept)
	if how == toRead {
		o.recall(cmd, path)
	}
	// A principal's tools may do what it may.
	if name, ok := strings.CutPrefix(o.profile, principalMark); ok {
		o.principal, o.principals = name, true
	}
	if k.auth, err = o.prepare(log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			k.close()
		}
	}()
	if len(k.auth.policy.Grants()) > 0 && k.auth.revocations.Path != "" {
		if _, err := k.auth.revocations.Apply(k.auth.policy); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(path); how == toWrite && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the store %s: there is no such file", cli.Printable(path))
	}
	if k.journal, err = journal.Open(path, journal.Options{Log: log, ReadOnly: how == toRead, Notes: heads()}); err != nil {
		return nil, err
	}
	tools, problems, err := registry.Open(run.Log(k.journal), k.auth.policy)
	if err != nil {
		return nil, err
	}
	for _, problem := range problems {
		log.Warn("a tool on record can't be made", "error", problem)
	}
	k.auth.keptAt = path
	consents := k.auth.consents()
	if err := consents.Poll(); err != nil {
		log.Warn("what was approved can't be read", "error", err)
	}
	k.Server = mcpserver.New(mcpserver.Options{
		Registry: tools,
		Broker:   run.New(run.Options{Policy: k.auth.policy, Journal: k.journal, Log: log, Consents: consents}),
		Limits:   mcpserver.Limits{Result: wholeResult},
	})
	return k, nil
}

// ask makes a call of one of the server's own tools, and reads what it answers.
func (k *kept) ask(cmd *cobra.Command, tool string, arguments map[string]any, into any) (mcpserver.Answer, error) {
	a := call(cli.Context(cmd), k.Server, tool, arguments)
	if a.Fault != nil {
		return a, printableError(a.Fault)
	}
	if into != nil {
		if err := json.Unmarshal(a.Structured, into); err != nil {
			return a, err
		}
	}
	return a, nil
}

// toolsCommand is a command about the tools of a store.
func toolsCommand(cmd *cobra.Command, how opening, asJSON *bool, do func(cmd *cobra.Command, k *kept, args []string) error) *cobra.Command {
	var o capOptions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		k, err := o.tools(cmd, how)
		if err != nil {
			return cli.Failed(err)
		}
		defer k.close()
		return cli.Failed(do(cmd, k, args))
	}
	o.register(cmd.Flags(), "the only profile's, where there is one")
	if cmd.Name() != "list" && cmd.Name() != "show" { // the others don't show what a tool may do
		for flag := range o.authorityFlags() {
			_ = cmd.Flags().MarkHidden(flag)
		}
		for _, flag := range []string{"policy", "plugin-lock", "mcp-lock", "ask-via"} {
			_ = cmd.Flags().MarkHidden(flag)
		}
	}
	if asJSON != nil {
		cmd.Flags().BoolVar(asJSON, "json", false, "print JSON")
	}
	return cmd
}

// printIndented prints an answer for programs.
func printIndented(cmd *cobra.Command, answer json.RawMessage) error {
	var v any
	dec := json.NewDecoder(strings.NewReader(string(answer)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
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
	var asJSON *bool
	cmd := &cobra.Command{
		Use:   "profiles",
		Short: "List the profiles",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names, err := profiles()
			if err != nil {
				return cli.Failed(err)
			}
			if *asJSON {
				return cli.Failed(cli.PrintJSON(cmd, append([]string{}, names...)))
			}
			for _, name := range names {
				fmt.Fprintln(cmd.OutOrStdout(), cli.Printable(name))
			}
			return nil
		},
	}
	asJSON = cli.JSONFlag(cmd)
	return cmd
}
