package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/plugins/host"
)

func newDoctor() *cobra.Command {
	var o capOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this system can hold plugins to, and whether a server would start",
		Long: `Print what there is: the layers of the system's sandbox, each on or off with its
reason; the folder of this user's state; the plugins; and, with the flags of serve,
whether a server with them would start and what it would grant. The exit status is 1
where something is wrong.`,
		Example: `  mcp-pif doctor
  mcp-pif doctor --cap fs:./sandbox --plugin-lock plugins.lock.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return failing(examine(cmd, &o)) },
	}
	o.register(cmd.Flags())
	return cmd
}

func examine(cmd *cobra.Command, o *capOptions) error {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "mcp-pif %s, %s, %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	examineState(out)
	layers := host.System()
	fmt.Fprintln(out, "sandbox around plugins:")
	for _, l := range layers.Layers {
		state := "off"
		if l.On {
			state = "on"
		}
		need := ""
		if l.Required {
			need = " (required)"
		}
		fmt.Fprintf(out, "  %-3s %-12s%s %s\n", state, l.Name, need, l.Detail)
	}
	auth, err := o.open(warnings(cmd))
	if err != nil {
		return fmt.Errorf("a server with these flags would not start: %w", err)
	}
	defer auth.close()
	fmt.Fprintln(out, "plugins:")
	for _, kind := range slices.Sorted(maps.Keys(auth.kinds)) {
		m := auth.kinds[kind]
		fmt.Fprintf(out, "  %-8s %-8s %s\n", kind, m.Version, printable(firstLine(m.Doc, 100)))
	}
	if grants := auth.policy.Grants(); len(grants) > 0 {
		fmt.Fprintln(out, "would grant:")
		for _, g := range grants {
			fmt.Fprintf(out, "  %s\n", printable(g.String()))
			if auth.sandboxes.mode(g.Kind) == host.Require && !layers.Holds() {
				err = fmt.Errorf("the sandbox is required and this system lacks layers of it, so that %s would not start: --sandbox=best-effort starts it all the same", g.Kind)
			}
		}
	} else {
		fmt.Fprintln(out, "nothing would be granted: tools compute and can't act")
	}
	if err == nil {
		fmt.Fprintln(out, "ok")
	}
	return err
}

// examineState says where the state of this user is.
func examineState(out io.Writer) {
	dir, err := stateDir()
	if err != nil {
		fmt.Fprintf(out, "state: %v\n", err)
		return
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(out, "state: %s, not made yet\n", dir)
	case err != nil:
		fmt.Fprintf(out, "state: %v\n", err)
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		fmt.Fprintf(out, "state: %s can be entered by others (mode %o): chmod 700 it\n", dir, info.Mode().Perm())
	default:
		fmt.Fprintf(out, "state: %s\n", dir)
	}
}
