package plugincmd

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest/conform"
)

func newPluginTest() *cobra.Command {
	var (
		fixtures, sandbox string
		asJSON            bool
	)
	cmd := &cobra.Command{
		Use:   "test PROGRAM [ARGUMENT…] | FOLDER COMMAND…",
		Short: "Test a plugin's program against the contract",
		Long: `Start a plugin as a server would, many times, and see whether it keeps the
contract: what it says of itself, what it gives and refuses, whether it stays in
the scopes that it is opened with, ends when it is told to, and takes hostile
arguments, and where it writes. Each check is a line: ok, FAILED with what was
seen, or skipped with the reason. The exit status is 1 if one failed.

What can't be guessed of a plugin stands in --fixtures, a JSON file:

  {"scope": "rome/**", "inside": ["rome/today"], "outside": ["oslo/today"],
   "calls": [{"operation": "weather.get", "arguments": {"place": "rome/today"}}]}

with "slow": true for a call that goes on until it is ended, "options" of the
capability, and "files" for a plugin of paths. In Go the same is a test: package
plugins/plugintest.`,
		Example: `  mcp-pif plugin test ./weather
  mcp-pif plugin test ./weather-js /usr/bin/node main.js --fixtures fixtures.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := conform.Options{}
			var err error
			if o.Source, err = programOf(args); err != nil {
				return cli.Failed(err)
			}
			if o.Sandbox, err = app.ModeOf(sandbox); err != nil {
				return cli.Failed(err)
			}
			if fixtures != "" {
				text, err := os.ReadFile(fixtures)
				if err == nil {
					o.Fixtures, err = conform.ParseFixtures(text)
				}
				if err != nil {
					return cli.Failed(err)
				}
			}
			ctx, stop := signal.NotifyContext(cli.Context(cmd), os.Interrupt, syscall.SIGTERM)
			defer stop()
			p := cli.StartProgress(cmd, "testing the plugin")
			report, err := conform.Run(ctx, o)
			p.Stop()
			if err != nil {
				return cli.Failed(err)
			}
			if asJSON {
				err = cli.PrintJSON(cmd, report)
			} else {
				_, err = fmt.Fprint(cmd.OutOrStdout(), report)
			}
			if err == nil && !report.Passed() {
				return &cli.Failure{}
			}
			return cli.Failed(err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&fixtures, "fixtures", "", "know of the plugin what this `FILE` says")
	f.StringVar(&sandbox, "sandbox", string(host.BestEffort), "how the system holds it: require, best-effort or off")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// programOf is a program with its arguments, or a folder with the command that runs
// in it, as they stand: nothing is copied or recorded.
func programOf(args []string) (host.Source, error) {
	path, err := filepath.Abs(args[0])
	if err != nil {
		return host.Source{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return host.Source{}, fmt.Errorf("%s: %w", lock.Shown(args[0], 100), errors.Unwrap(err))
	}
	if !info.IsDir() {
		return host.Source{Path: path, Args: args[1:]}, nil
	}
	if len(args) < 2 {
		return host.Source{}, errors.New("a folder needs the command that runs in it: plugin test FOLDER INTERPRETER [FILE…]")
	}
	command := lock.InFolder(path, args[1:])
	if !filepath.IsAbs(command[0]) {
		return host.Source{}, fmt.Errorf("%s isn't in the folder; name an interpreter elsewhere by its absolute path", lock.Shown(command[0], 100))
	}
	return host.Source{Path: command[0], Args: command[1:], Reads: []string{path}}, nil
}
