package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/cmd/internal/packs"
)

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
// are left out: somebody made tools of these names.
func PackTools(p *packs.Pack, grants []*caps.Grant, there *registry.Snapshot) (tools []registry.Portable, left []string, err error) {
	all, err := p.Fill(grants)
	if err != nil {
		return nil, nil, err
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
	return tools, left, err
}

// AddPacks adds the tools of those packs for which something is granted. What can't be
// added is missing, and the server serves all the same.
func AddPacks(ctx context.Context, s *mcpserver.Server, list []*packs.Pack, grants []*caps.Grant, log *slog.Logger) {
	for _, p := range list {
		if !p.Granted(grants) {
			log.Warn("a pack has nothing to act on, so its tools are left out", "pack", p.Name, "grant it with", p.Grant)
			continue
		}
		tools, left, err := PackTools(p, grants, s.Registry().Snapshot())
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
		if added+replaced > 0 {
			log.Info("pack added", "pack", p.Name, "tools", added+replaced)
		}
	}
}
