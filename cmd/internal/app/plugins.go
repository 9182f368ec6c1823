package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/elicit"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/cmd/internal/packs"
	"github.com/mcp-pif/mcp-pif/plugins/clock"
	"github.com/mcp-pif/mcp-pif/plugins/env"
	"github.com/mcp-pif/mcp-pif/plugins/fetch"
	"github.com/mcp-pif/mcp-pif/plugins/fs"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/kv"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
	"github.com/mcp-pif/mcp-pif/plugins/mcp"
	"github.com/mcp-pif/mcp-pif/plugins/model"
	"github.com/mcp-pif/mcp-pif/plugins/proc"
	"github.com/mcp-pif/mcp-pif/plugins/random"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// Installed is the plugins of a lock file, each hashed and open. Nil has none.
type Installed struct {
	Lock     *lock.Lock
	programs map[string]*lock.Executable // by kind
}

// OpenInstalled reads a plugin lock and hashes every program in it. One that isn't
// as it was added is an error: which plugins there are is for the operator to say,
// not for who could change a file. Nothing is started. An empty path is no lock.
func OpenInstalled(path string, log *slog.Logger) (*Installed, error) {
	if path == "" {
		return nil, nil
	}
	l, err := lock.Read(path)
	if err != nil {
		return nil, err
	}
	n := &Installed{Lock: l, programs: map[string]*lock.Executable{}}
	for i := range l.Entries {
		e := &l.Entries[i]
		x, err := l.Open(e)
		if err != nil {
			n.Close()
			return nil, err
		}
		n.programs[e.Kind] = x
		log.Info("a third-party plugin can be granted", "plugin", e.Name, "kind", e.Kind, "version", e.Version,
			"program", x.Identity[:12], "flags accepted", e.Accepted)
	}
	return n, nil
}

// Manifests is what decisions about their kinds are made by.
func (n *Installed) Manifests() []*caps.Manifest {
	if n == nil {
		return nil
	}
	all := make([]*caps.Manifest, len(n.Lock.Entries))
	for i := range n.Lock.Entries {
		all[i] = n.Lock.Entries[i].Counted()
	}
	return all
}

// Sources is how they are started: what was hashed, hashed again before each
// start.
func (n *Installed) Sources() []host.Source {
	if n == nil {
		return nil
	}
	all := make([]host.Source, len(n.Lock.Entries))
	for i := range n.Lock.Entries {
		e := &n.Lock.Entries[i]
		all[i] = SourceOf(n.programs[e.Kind])
		all[i].Manifest, all[i].Says, all[i].Plain = e.Counted(), e.Said(), e.Transport == lock.Unix
	}
	return all
}

// SourceOf is how a program is started that was hashed.
func SourceOf(x *lock.Executable) host.Source {
	s := host.Source{Path: x.Path, Args: x.Args, File: x.File, Check: x.Check}
	if folder := x.Folder(); folder != "" {
		s.Reads = []string{folder}
	}
	return s
}

// protected is the paths that no grant may reach.
func (n *Installed) protected() []string {
	if n == nil {
		return nil
	}
	return n.Lock.Protected()
}

// Identity is what performs a kind, for the identity of grants: the locked program, or of a
// plugin that ships what its manifest says, whatever build of this program has it.
func (n *Installed) Identity(m *caps.Manifest) string {
	if n != nil && n.programs[m.Kind] != nil {
		return n.programs[m.Kind].Identity
	}
	var e lock.Entry
	e.Describe(m, 0, nil, false)
	return hashOf(e)
}

// Close closes what is open.
func (n *Installed) Close() {
	if n == nil {
		return
	}
	for _, x := range n.programs {
		x.Close()
	}
}

// StateOfPlugin is the folder in which a kind's plugin keeps what lasts, of a server
// whose tools are kept at path. A profile has its own, so that one client's tools
// see nothing of another's; so has a file that the operator named, wherever that
// is. Where tools are kept in memory it is that of the default profile, or the principal's: a
// plugin's state lasts all the same.
func StateOfPlugin(path, kind string) (string, error) {
	owner, err := stateOfStore(path)
	return filepath.Join(owner, "plugins", FolderName(kind)), err
}

// stateOfStore is the folder of what belongs to a store beside it; of that in memory, those
// of the default profile.
func stateOfStore(path string) (string, error) {
	state, err := StateDir()
	if err != nil {
		return "", err
	}
	owner := filepath.Join(state, "profiles", DefaultProfile)
	if path != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		// One file by two names is one.
		if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
			abs = filepath.Join(dir, filepath.Base(abs))
		}
		all := filepath.Join(state, "profiles")
		if dir, err := filepath.EvalSymlinks(all); err == nil {
			all = dir
		}
		if owner = filepath.Dir(abs); filepath.Dir(owner) != all {
			owner = filepath.Join(state, "stores", FolderName(abs))
		}
	}
	return owner, nil
}

// PackMark begins what `tools import` takes for a pack and not for a file.
const PackMark = "pack:"

// NamedPacks finds the packs of --with, each once.
func NamedPacks(names []string) (list []*packs.Pack, err error) {
	for _, name := range names {
		p, err := packs.Named(strings.TrimSpace(name))
		if err != nil {
			return nil, cli.UsageError(fmt.Errorf("--with: %w", err))
		}
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list, nil
}

// PackTools is a pack's tools for the grants of a policy, and the names of those that
// are left out: somebody made tools of these names (left), or no grant has their verbs.
func PackTools(p *packs.Pack, grants []*caps.Grant, there *registry.Snapshot) (tools []registry.Portable, left, lacking []string, err error) {
	all, lacking, err := p.Fill(grants)
	if err != nil {
		return nil, nil, nil, err
	}
	all = slices.DeleteFunc(all, func(d registry.Definition) bool {
		t, ok := there.Get(d.Name)
		if ok && !packs.Made(t) {
			left = append(left, d.Name)
			return true
		}
		return ok && !p.Granted(grants) // it may be for a grant that another server has
	})
	tools, err = registry.Portables(all)
	return tools, left, lacking, err
}

// AddPacks adds the tools of those packs for which something is granted. What can't be
// added is missing, and the server serves all the same.
func AddPacks(ctx context.Context, s *engine.Engine, list []*packs.Pack, grants []*caps.Grant, log *slog.Logger) {
	for _, p := range list {
		if !p.Granted(grants) {
			log.Warn("a pack has nothing to act on, so its tools are left out", "pack", p.Name, "grant it with", p.Grant)
			continue
		}
		tools, left, lacking, err := PackTools(p, grants, s.Registry().Snapshot())
		added, replaced := 0, 0
		if err == nil && len(tools) > 0 {
			added, replaced, _, err = s.Import(ctx, tools)
		}
		if err != nil {
			log.Error("a pack can't be added", "pack", p.Name, "error", err)
			continue
		}
		if len(left) > 0 {
			log.Warn("tools of a pack are left out: there are others of their names", "pack", p.Name, "tools", strings.Join(left, " "))
		}
		if len(lacking) > 0 {
			log.Warn("tools of a pack are left out: nothing that is granted has their verbs", "pack", p.Name, "tools", strings.Join(lacking, " "))
		}
		if added+replaced > 0 {
			log.Info("pack added", "pack", p.Name, "tools", added+replaced)
		}
	}
}

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

// pluginMemory is how much memory a plugin that ships with this program has before Go's collector takes all that isn't used: an
// outcome of eight megabytes is there twice, and at first its garbage as often again.
const pluginMemory = 20 << 20

// ServePlugin is this program as a plugin. It doesn't return where the host that
// started it is there.
func ServePlugin(args []string) int {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(pluginMemory)
	}
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
	manifests = append(append(manifests, more...), elicit.Manifest())
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
		s := host.Source{Manifest: kinds[kind], Path: self, File: file, Args: []string{PluginArgument, kind}, Local: kind == "fs" || kind == "kv"}
		if kind == model.Kind {
			s.Settings = models.settings
		}
		if err := h.Add(s); err != nil {
			return err
		}
	}
	return nil
}
