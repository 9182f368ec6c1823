package mcpcmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
	"github.com/mcp-pif/mcp-pif/plugins/mcp"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// A FoundUpstream is a server of the lock, and how it is today.
type FoundUpstream struct {
	Name   string `json:"name"`
	Pinned string `json:"pinned"`
	Tools  int    `json:"tools"`
	// State is "ok", "differs" or "fails", and Detail says why.
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
	// Logins are how long each login is good, by the principal, "" for everybody's.
	Logins map[string]string `json:"logins,omitempty"`
}

// maxExamined is how many servers are started at once.
const maxExamined = 4

// ExamineServers starts each server of the lock in its sandbox, and holds what it lists to the
// lock.
func ExamineServers(ctx context.Context, at *ServerLock, sandbox string) ([]FoundUpstream, error) {
	l, err := at.Read()
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(l.Servers))
	all := make([]FoundUpstream, len(names))
	room := make(chan struct{}, maxExamined)
	var wait sync.WaitGroup
	for i, name := range names {
		s := ServerStateOf(l, name)
		all[i] = FoundUpstream{Name: name, Pinned: cli.Printable(s.Pinned), Tools: s.Tools, State: "ok"}
		for _, login := range loggedIn(l, name) {
			if all[i].Logins == nil {
				all[i].Logins = map[string]string{}
			}
			all[i].Logins[login.Principal] = validUntil(login)
		}
		if s.Problem != "" {
			all[i].State, all[i].Detail = "fails", s.Problem
			continue
		}
		wait.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			all[i].examine(ctx, l, sandbox)
		})
	}
	wait.Wait()
	return all, nil
}

// examine starts a server.
func (f *FoundUpstream) examine(ctx context.Context, l *mcplock.Lock, sandbox string) {
	s := l.Servers[f.Name]
	quiet, why := quietly(ctx)
	listed, err := probe(quiet, l, f.Name, s, sandbox)
	if err != nil {
		f.State, f.Detail = "fails", lock.Shown(err.Error()+why(), 500)
		if s.URL != "" && strings.Contains(f.Detail, "HTTP status 401") {
			f.Detail += "; log in with 'mcp-pif mcp login " + f.Name + "'"
		}
		return
	}
	if differs := differences(s, listed); len(differs) > 0 {
		f.State, f.Detail = "differs", strings.Join(differs, ", ")+": 'mcp-pif mcp diff "+f.Name+"' shows how"
	}
}

// differences says in words what a server lists otherwise than the lock.
func differences(s *mcplock.Server, listed *mcp.Listing) (words []string) {
	if s.Protocol != "" && listed.Protocol != s.Protocol {
		words = append(words, fmt.Sprintf("it speaks the protocol %s and was added with %s", lock.Shown(listed.Protocol, 20), s.Protocol))
	}
	if s.IsOther(listed.Name) {
		words = append(words, fmt.Sprintf("who answers at its URL is %s, and %s was added", lock.Shown(listed.Name, 60), lock.Shown(s.Info.Name, 60)))
	}
	d := mcplock.Compare(s, listed.Tools)
	for _, kind := range []struct {
		what string
		n    int
	}{{"changed", len(d.Held)}, {"new", len(d.Added)}, {"gone", len(d.Gone)}} {
		if kind.n > 0 {
			words = append(words, fmt.Sprintf("%s %s", cli.Count(kind.n, "tool", "tools"), kind.what))
		}
	}
	return words
}

// quietly is a command that prints nothing, for a server that is looked at; why tells the last
// of what the server wrote.
func quietly(ctx context.Context) (cmd *cobra.Command, why func() string) {
	cmd = &cobra.Command{}
	cmd.SetContext(ctx)
	said := &strings.Builder{}
	cmd.SetErr(said)
	cmd.SetOut(io.Discard)
	return cmd, func() string {
		_, words, _ := strings.Cut(said.String(), ":\n  | ")
		if first, _, _ := strings.Cut(words, "\n"); first != "" {
			return "; it wrote " + lock.Shown(strconv.QuoteToASCII(first), 200)
		}
		return ""
	}
}

// PrintUpstreams writes a line for each server of the lock.
func PrintUpstreams(out io.Writer, all []FoundUpstream) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(out, "MCP servers of the lock:")
	for _, f := range all {
		line := fmt.Sprintf("  %-14s %-7s %s, %s", f.Name, f.State, cli.Count(f.Tools, "tool", "tools"), f.Pinned)
		for _, principal := range slices.Sorted(maps.Keys(f.Logins)) {
			line += "; logged in" + forPrincipal(principal) + ", " + f.Logins[principal]
		}
		if f.Detail != "" {
			line += ": " + f.Detail
		}
		fmt.Fprintln(out, line)
	}
}
