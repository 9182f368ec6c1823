package plugincmd

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

// A pluginState is a plugin of a lock as list and inspect tell of it in JSON.
type pluginState struct {
	lock.Entry
	// Problem is why a server would refuse to start with it; empty: it wouldn't.
	Problem string `json:"problem,omitempty"`
}

// stateOf hashes an entry's program. Nothing is started.
func stateOf(l *lock.Lock, e *lock.Entry) pluginState {
	s := pluginState{Entry: *e}
	if x, err := l.Open(e); err != nil {
		s.Problem = lock.Shown(err.Error(), 500)
	} else {
		x.Close()
	}
	return s
}

func newPluginList() *cobra.Command {
	var (
		path   string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the plugins in the lock file, and check that each is unchanged",
		Long: `List the plugins of the lock file. Each is hashed, none is started. The exit
status is 1 where one isn't what was added.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := lock.Read(path)
			if errors.Is(err, fs.ErrNotExist) {
				l, err = &lock.Lock{}, nil
			}
			if err != nil {
				return cli.Failed(err)
			}
			states := make([]pluginState, len(l.Entries))
			bad := false
			for i := range l.Entries {
				states[i] = stateOf(l, &l.Entries[i])
				bad = bad || states[i].Problem != ""
			}
			if err := printStates(cmd, states, asJSON); err != nil || !bad {
				return cli.Failed(err)
			}
			return &cli.Failure{}
		},
	}
	lockOption(cmd, &path)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printStates(cmd *cobra.Command, states []pluginState, asJSON bool) error {
	out := cmd.OutOrStdout()
	if asJSON {
		return cli.PrintJSON(cmd, states)
	}
	if len(states) == 0 {
		fmt.Fprintln(out, "no plugins; 'mcp-pif plugin add' adds one, 'mcp-pif plugin new' makes one")
	}
	for _, s := range states {
		state := "ok"
		if s.Problem != "" {
			state = "REFUSED: " + s.Problem
		}
		fmt.Fprintf(out, "%-12s %-10s %s  %s\n", s.Name, lock.Shown(s.Version, 30), lock.Shown(s.Manifest.Doc, 60), state)
	}
	return nil
}
