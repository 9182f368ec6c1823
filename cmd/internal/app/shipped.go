package app

import (
	"fmt"
	"os"
	"runtime"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/plugins/clock"
	"github.com/mcp-pif/mcp-pif/plugins/env"
	"github.com/mcp-pif/mcp-pif/plugins/fetch"
	"github.com/mcp-pif/mcp-pif/plugins/fs"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/kv"
	"github.com/mcp-pif/mcp-pif/plugins/mcp"
	"github.com/mcp-pif/mcp-pif/plugins/model"
	"github.com/mcp-pif/mcp-pif/plugins/proc"
	"github.com/mcp-pif/mcp-pif/plugins/random"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// PluginArgument is the first argument of this program where it is to be one of
// the plugins that ship with it, so that one file is the whole installation.
const PluginArgument = "__plugin"

// Shipped is the plugins that come with this program, by kind.
var Shipped = map[string]func() sdk.Plugin{
	"fs":     fs.Plugin,
	"fetch":  fetch.Plugin,
	"kv":     kv.Plugin,
	"clock":  clock.Plugin,
	"env":    env.Plugin,
	"random": random.Plugin,
	"proc":   proc.Plugin,
	// Its settings, which a process reads, say where the model is.
	model.Kind: func() sdk.Plugin { return model.Plugin(model.Settings{}) },
}

// ServePlugin is this program as a plugin. It doesn't return where the host that
// started it is there.
func ServePlugin(args []string) int {
	if len(args) == 1 {
		if args[0] == ServerPlugin {
			return serveServer()
		}
		if args[0] == model.Kind {
			return serveModel()
		}
		if plugin, ok := Shipped[args[0]]; ok {
			sdk.Serve(plugin())
			return 0
		}
	}
	fmt.Fprintf(os.Stderr, "mcp-pif: %s is for mcp-pif itself, which starts its plugins that way\n", PluginArgument)
	return cli.StatusUsage
}

// ServerPlugin is the argument of the plugin of the kinds that stand for MCP servers.
const ServerPlugin = "mcp"

// serveServer is this program as that plugin, for the server that the host's settings
// name.
func serveServer() int {
	told, err := sdk.ReadSettings()
	var plugin sdk.Plugin
	if err == nil {
		var s mcp.Settings
		if s, err = mcp.ParseSettings(told); err == nil {
			plugin, err = mcp.Plugin(s)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "mcp-pif: the plugin of MCP servers: %v\n", err)
		return cli.StatusUsage
	}
	sdk.Serve(plugin)
	return 0
}

// Kinds is what the plugins can do: those that ship, and more.
func Kinds(more ...*caps.Manifest) (caps.Kinds, error) {
	manifests := make([]*caps.Manifest, 0, len(Shipped)+len(more)+1)
	manifests = append(append(manifests, more...), mcpserver.AskManifest())
	for _, plugin := range Shipped {
		m, err := plugin().Manifest()
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, m)
	}
	return caps.NewKinds(manifests...)
}

// AddPlugins tells a host how the plugins are started.
func AddPlugins(h *host.Host, kinds caps.Kinds, more []host.Source, servers *Upstreams, models *Models) error {
	for _, s := range more {
		if err := h.Add(s); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	// What runs now is what is started later, whatever becomes of the file.
	var file *os.File
	if runtime.GOOS == "linux" {
		if file, err = os.Open("/proc/self/exe"); err != nil {
			return fmt.Errorf("finding this program: %w", err)
		}
	}
	for _, m := range servers.Kinds {
		s := servers.source(m)
		s.Path, s.File = self, file
		if err := h.Add(s); err != nil {
			return err
		}
	}
	for kind := range Shipped {
		s := host.Source{Manifest: kinds[kind], Path: self, File: file, Args: []string{PluginArgument, kind}}
		if kind == model.Kind {
			s.Settings = models.settings
		}
		if err := h.Add(s); err != nil {
			return err
		}
	}
	return nil
}
