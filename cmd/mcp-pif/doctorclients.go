package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/clientconfig"
)

// A foundClient is a configuration file of a client of MCP. What is in it is the
// client's, with secrets of other servers: nothing of it is shown but the entries
// that start this program.
type foundClient struct {
	Name    string        `json:"name"`
	Path    string        `json:"path"`
	Exists  bool          `json:"exists"`
	Servers []foundServer `json:"servers"`
	// Problem is why it couldn't be read.
	Problem string `json:"problem,omitempty"`
}

// A foundServer is an entry that starts this program.
type foundServer struct {
	Name string `json:"name"`
	// State is "answers", "not tried" or "fails", and Detail says why.
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
}

// findClients looks where the clients have their configuration, of this user and of
// the project that this folder is, and starts the servers there as they would.
func findClients(ctx context.Context) []foundClient {
	past, err := openInstalls()
	if err != nil {
		past = &clientconfig.History{}
	}
	all := []foundClient{}
	for i := range clientconfig.Clients {
		c := &clientconfig.Clients[i]
		for _, project := range []bool{false, true} {
			if project && c.Project == "" {
				continue
			}
			path, err := c.Path(project)
			if err != nil {
				continue
			}
			found := lookAtClient(ctx, c, path, past, project)
			if project {
				found.Path = c.Project
			}
			if found.Exists || !project {
				all = append(all, found)
			}
		}
	}
	return all
}

func lookAtClient(ctx context.Context, c *clientconfig.Client, path string, past *clientconfig.History, project bool) foundClient {
	found := foundClient{Name: c.Title, Path: path, Exists: true, Servers: []foundServer{}}
	file, err := c.Open(path)
	if err != nil {
		found.Problem = cli.Printable(err.Error())
		return found
	}
	found.Exists = file.Exists()
	servers := file.Servers()
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		command := clientconfig.Command(servers[name])
		ours := past.Wrote(file, name, servers[name])
		if len(command) == 0 || !ours && strings.TrimSuffix(filepath.Base(command[0]), ".exe") != "mcp-pif" {
			continue
		}
		s := foundServer{Name: cli.Printable(name)}
		same, err := isThisProgram(command[0])
		started := time.Now()
		switch {
		case !ours && (project || err == nil && !same):
			// A project's file may be anybody's: what it starts is not for this command.
			s.State, s.Detail, err = "not tried", "'mcp-pif install' didn't write it", nil
		case err == nil:
			err = tryServer(ctx, command)
			s.State, s.Detail = "answers", time.Since(started).Round(time.Millisecond).String()
		}
		if err != nil {
			s.State, s.Detail = "fails", cli.Printable(err.Error())
		}
		found.Servers = append(found.Servers, s)
	}
	return found
}

// isThisProgram reports whether a command is the program that runs.
func isThisProgram(command string) (bool, error) {
	path, err := exec.LookPath(command)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("there is no program %s: run 'mcp-pif install' again", command)
	}
	if err != nil {
		return false, err
	}
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	a, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	b, err := os.Stat(self)
	return err == nil && os.SameFile(a, b), err
}

// tryServer starts a configured command, but for where it keeps its tools, and makes
// a call.
func tryServer(ctx context.Context, command []string) error {
	args := command[1:]
	if len(args) > 0 && args[0] == "serve" {
		args = args[1:]
	}
	flags, _, err := absoluteFlags(args)
	if err != nil {
		return err
	}
	flags = slices.DeleteFunc(flags, func(flag string) bool {
		return strings.HasPrefix(flag, "--store=") || strings.HasPrefix(flag, "--profile=")
	})
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	server := exec.CommandContext(ctx, command[0], append(flags, "--store=memory", "--log-level=error")...)
	var said strings.Builder
	server.Stderr = &said
	session, err := mcp.NewClient(&mcp.Implementation{Name: "mcp-pif-doctor", Version: cli.Version()}, nil).Connect(ctx, &mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		if text := strings.TrimSpace(said.String()); text != "" {
			return errors.New(text)
		}
		return err
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"code": "6 * 7"}})
	if err != nil {
		return err
	}
	if text, ok := result.Content[0].(*mcp.TextContent); !ok || result.IsError || text.Text != "42" {
		return errors.New("its answer to 6 * 7 isn't 42")
	}
	return nil
}

// print writes a line for each configuration there is, and one for those there are
// not.
func printClients(print func(format string, a ...any), clients []foundClient) {
	var absent []string
	present := map[string]bool{}
	for _, c := range clients {
		present[c.Name] = present[c.Name] || c.Exists
	}
	for _, c := range clients {
		switch {
		case c.Problem != "":
			print("  %-15s %s\n", c.Name, c.Problem)
		case len(c.Servers) == 0 && c.Exists:
			print("  %-15s no entry for mcp-pif in %s\n", c.Name, c.Path)
		case !present[c.Name]:
			absent = append(absent, c.Name)
		}
		for _, s := range c.Servers {
			print("  %-15s %s %s (%s) in %s\n", c.Name, s.Name, s.State, s.Detail, c.Path)
		}
	}
	if len(absent) > 0 {
		print("  no configuration of %s\n", strings.Join(absent, ", "))
	}
}
