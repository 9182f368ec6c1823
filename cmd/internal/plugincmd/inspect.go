package plugincmd

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

func newPluginInspect() *cobra.Command {
	var (
		path   string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "inspect NAME",
		Short: "Show all that is known of a plugin",
		Long: `Show what the lock file has of a plugin: its program, what it says of itself,
what it asks of the system, which layers of the system's sandbox would hold it
here, and whether the program is still what was added. It is hashed, not started.
The exit status is 1 where it isn't.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, e, err := found(path, args[0])
			if err != nil {
				return cli.Failed(err)
			}
			state := inspection{stateOf(l, e), layersOf(e)}
			if asJSON {
				err = cli.PrintJSON(cmd, state)
			} else {
				printEntry(cmd.OutOrStdout(), e)
				printHeld(cmd.OutOrStdout(), state.Sandbox)
			}
			if err == nil && state.Problem != "" {
				if !asJSON {
					fmt.Fprintf(cmd.OutOrStdout(), "REFUSED: %s\n", cli.Printable(state.Problem))
				}
				return &cli.Failure{}
			}
			return cli.Failed(err)
		},
	}
	lockOption(cmd, &path)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// An inspection is a plugin's state, and what of this system's sandbox would hold
// its processes.
type inspection struct {
	pluginState
	Sandbox host.Layers `json:"sandbox"`
}

// The versions of Landlock from which a layer holds a plugin with a privilege; the
// report of its start says the same.
const (
	holdsSignals = 6 // of a plugin that starts processes
	holdsSockets = 9 // of one with the network
)

// layersOf is the layers that would hold a plugin's processes: the system's, less
// what its privileges open.
func layersOf(e *lock.Entry) host.Layers {
	layers := host.System()
	layers.Layers = slices.Clone(layers.Layers)
	asks := func(privilege string) bool { return slices.Contains(e.Privileges, privilege) }
	for i := range layers.Layers {
		switch l := &layers.Layers[i]; {
		case !l.On:
		case l.Name == "network" && asks("network"):
			l.Detail = "TCP and UDP to anywhere, and unix sockets to listen on"
		case l.Name == "sockets" && asks("network") && layers.Landlock < holdsSockets:
			l.On, l.Detail = false, fmt.Sprintf("with the network, Landlock %d doesn't hold sockets with a path; %d does", layers.Landlock, holdsSockets)
		case l.Name == "signals" && asks("processes") && layers.Landlock < holdsSignals:
			l.On, l.Detail = false, fmt.Sprintf("with processes, Landlock %d can't hold signals; %d can", layers.Landlock, holdsSignals)
		}
	}
	return layers
}

// printHeld says which layers would hold it.
func printHeld(out io.Writer, layers host.Layers) {
	fmt.Fprintln(out, "sandbox around it, on this system:")
	app.PrintLayers(out, layers)
	if !layers.Holds() {
		fmt.Fprintln(out, "it starts here only with --sandbox=best-effort or off, since a required layer is off")
	}
}
