package mcpcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/mcp"
	"github.com/mcp-pif/mcp-pif/plugins/mcp/mcpprobe"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// probe starts a server as its entry has it, in the sandbox that it has when programs
// call it, and lists what it has.
func probe(cmd *cobra.Command, l *mcplock.Lock, name string, s *mcplock.Server, sandbox string) (listed *mcp.Listing, err error) {
	err = probing(cmd, l, name, s, sandbox, func(ctx context.Context, p *mcpprobe.Probe) (err error) {
		listed, err = p.List(ctx)
		return err
	})
	return listed, err
}

// probeCall calls a tool of a server by its name on the wire.
func probeCall(cmd *cobra.Command, l *mcplock.Lock, name string, s *mcplock.Server, sandbox, tool string, arguments json.RawMessage) (answer json.RawMessage, err error) {
	err = probing(cmd, l, name, s, sandbox, func(ctx context.Context, p *mcpprobe.Probe) (err error) {
		answer, err = p.Call(ctx, tool, arguments)
		return err
	})
	return answer, err
}

// probing starts a server's plugin, and ends it when ask returns.
func probing(cmd *cobra.Command, l *mcplock.Lock, name string, s *mcplock.Server, sandbox string, ask func(context.Context, *mcpprobe.Probe) error) (err error) {
	mode, err := app.ModeOf(sandbox)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	policy, inherit := s.Policy(nil)
	kept, err := app.SecretsOf(l)
	if err != nil {
		return err
	}
	settings := mcp.Settings{Name: name, Server: s, Elicit: policy.Elicit}
	var missing []string
	settings.Env, settings.Headers, missing = app.InheritedValues(inherit, func(variable string) (string, bool) { return kept.Read(name, variable) })
	for variable, value := range policy.Env {
		settings.Env[variable] = value.Text // of the entry, which names no secret
	}
	for header, value := range policy.Headers {
		settings.Headers[header] = value.Text
	}
	for _, variable := range missing {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s isn't set: the server starts without it\n", variable)
	}
	if s.URL != "" {
		if settings.Login, err = kept.LoginFolder(name, ""); err != nil {
			return err
		}
	}
	said := &serverWords{name: name}
	defer func() {
		if err != nil {
			said.print(cmd.ErrOrStderr())
			err = advised(err, l, name, s, said.text())
		}
	}()
	o := mcpprobe.Options{Settings: settings, Path: self, Args: []string{app.PluginArgument, app.ServerPlugin}, Sandbox: mode,
		Logger: slog.New(said)}
	if s.Unconfined {
		o.Sandbox = host.Off
	}
	if s.URL == "" {
		x, err := l.OpenServer(s)
		if err != nil {
			return err
		}
		defer x.Close()
		if o.Command, err = probedCommand(l, x.Folder(), func() (caps.Command, error) { return mcplock.StartCommand(x, policy) }); err != nil {
			return err
		}
	}
	defer cli.StartProgress(cmd, "asking "+name).Stop()
	p, err := mcpprobe.New(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return ask(cli.Context(cmd), p)
}

// probedCommand resolves a server's command, and lets it execute the folder that it lies in.
func probedCommand(l *mcplock.Lock, folder string, start func() (caps.Command, error)) (*caps.Command, error) {
	c, err := start()
	if err != nil {
		return nil, err
	}
	protected, err := app.Protected(l)
	if err != nil {
		return nil, err
	}
	resolved, err := app.ResolveCommand(c, protected, l.Programs())
	if err != nil {
		return nil, fmt.Errorf("the command: %w", err)
	}
	if folder != "" {
		resolved.Execute = append(slices.Clone(resolved.Execute), folder)
	}
	return &resolved, nil
}
