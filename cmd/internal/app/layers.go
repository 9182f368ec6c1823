package app

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

// PrintLayers writes a line for each layer.
func PrintLayers(out io.Writer, layers host.Layers) {
	for _, l := range layers.Layers {
		need := ""
		if l.Required {
			need = " (required)"
		}
		fmt.Fprintf(out, "  %-3s %-12s%s %s\n", OnOrOff(l.On), l.Name, need, l.Detail)
	}
}

func OnOrOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// DescribeOption is the flag that says how the system holds a plugin while it
// describes itself.
func DescribeOption(cmd *cobra.Command, mode *string) {
	cmd.Flags().StringVar(mode, "sandbox", string(host.Require), "how the system holds it while it describes itself: require, best-effort or off")
}

// ModeOf reads such a flag.
func ModeOf(text string) (host.Mode, error) {
	switch mode := host.Mode(text); mode {
	case host.Require, host.BestEffort, host.Off:
		return mode, nil
	}
	return "", fmt.Errorf("--sandbox is require, best-effort or off, not %s", lock.Shown(text, 40))
}
