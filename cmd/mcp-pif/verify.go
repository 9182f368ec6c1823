package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

func newVerify() *cobra.Command {
	var pluginLock, mcpLock string
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check the certificates of a document of tools",
		Long: `Check the certificates in a document that 'mcp-pif tools export' wrote: that what each
claims of its tool, its type, effects, cost and what it depends on, holds of the code in
the document. The checker infers nothing and trusts nobody: a certificate may come from
anywhere. Nothing is run, and nothing is kept. The exit status is 1 if one doesn't hold.`,
		Example: `  mcp-pif tools export tools.json
  mcp-pif verify tools.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.Failed(verify(cmd, args[0], pluginLock, mcpLock))
		},
	}
	cli.JSONFlag(cmd)
	cmd.Flags().StringVar(&mcpLock, "mcp-lock", "", "know the MCP servers in this lock `FILE` (default this user's)")
	cmd.Flags().StringVar(&pluginLock, "plugin-lock", "", "use the plugins in this lock `FILE`")
	return cmd
}

func verify(cmd *cobra.Command, path, pluginLock, mcpLock string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	tools, err := registry.Decode(f)
	if err != nil {
		return app.PrintableError(cmd, fmt.Errorf("%s: %w", path, err))
	}
	third, err := app.OpenInstalled(pluginLock, app.Warnings(cmd))
	if err != nil {
		return err
	}
	defer third.Close()
	servers, err := app.OpenUpstreams(&app.CapOptions{UpstreamOptions: app.UpstreamOptions{McpLock: mcpLock}})
	if err != nil {
		return err
	}
	known, err := app.Kinds(append(third.Manifests(), servers.Kinds...)...)
	if err != nil {
		return err
	}
	r := run.NewTools(caps.NewPolicy(known, nil))
	if _, _, _, err := r.Import(tools); err != nil {
		return app.PrintableError(cmd, err)
	}
	list := certificates(r.Snapshot(), tools)
	if cli.AsJSON(cmd) {
		err = cli.PrintJSON(cmd, list)
	}
	for _, c := range list {
		if !cli.AsJSON(cmd) {
			fmt.Fprintf(cmd.OutOrStdout(), "%-8s %s  %s\n", c.Status, cli.Printable(c.Name), cli.Printable(c.Why+strings.Join(c.Certified, ", ")))
		}
		if c.Status == registry.ProofVoid && err == nil {
			err = errRefused
		}
	}
	return err
}

// A namedCertificate is what became of the certificate of a tool in a document.
type namedCertificate struct {
	Name string `json:"name"`
	checkCertificate
}

// certificates checks those of a document against the tools that were made of it.
func certificates(there *registry.Snapshot, document []registry.Portable) (list []namedCertificate) {
	for i := range document {
		p := &document[i]
		t, ok := there.Get(p.Name)
		if p.Old || !ok {
			continue
		}
		list = append(list, namedCertificate{p.Name, certificateOf(t.Holds(p.Certificate))})
	}
	slices.SortFunc(list, func(a, b namedCertificate) int { return strings.Compare(a.Name, b.Name) })
	return list
}
