package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A client is an MCP client whose configuration install knows to write.
type client struct {
	id, title string
	// members is the way to the servers in its file.
	members []string
	// typed is set where an entry says which transport it is.
	typed bool
	// path is where the file of this user is; project that of a project, relative
	// to its folder, "" for none.
	path    func(home, config string) string
	project string
	// after says what makes the client read it.
	after string
}

// clients is those that install knows. The places are those that the clients'
// own documentation names.
var clients = []client{
	{
		id: "claude-desktop", title: "Claude Desktop", members: []string{"mcpServers"},
		path:  func(_, config string) string { return filepath.Join(config, "Claude", "claude_desktop_config.json") },
		after: "Quit Claude Desktop completely and start it again.",
	},
	{
		id: "claude-code", title: "Claude Code", members: []string{"mcpServers"}, typed: true,
		path: func(home, _ string) string {
			if dir := os.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
				return filepath.Join(dir, ".claude.json")
			}
			return filepath.Join(home, ".claude.json")
		},
		project: ".mcp.json",
		after:   "Start a new session of Claude Code; /mcp shows its servers.",
	},
	{
		id: "cursor", title: "Cursor", members: []string{"mcpServers"},
		path:    func(home, _ string) string { return filepath.Join(home, ".cursor", "mcp.json") },
		project: filepath.Join(".cursor", "mcp.json"),
		after:   "Cursor's settings, under MCP, show it.",
	},
	{
		id: "vscode", title: "VS Code", members: []string{"servers"}, typed: true,
		path:    func(_, config string) string { return filepath.Join(config, "Code", "User", "mcp.json") },
		project: filepath.Join(".vscode", "mcp.json"),
		after:   "In VS Code, 'MCP: List Servers' starts it.",
	},
}

func clientNamed(id string) (*client, error) {
	ids := make([]string, len(clients))
	for i := range clients {
		if clients[i].id == id {
			return &clients[i], nil
		}
		ids[i] = clients[i].id
	}
	return nil, fmt.Errorf("--client is one of %s, not %q", strings.Join(ids, ", "), id)
}

// file is where the client's configuration is.
func (c *client) file(project bool) (string, error) {
	if project {
		if c.project == "" {
			return "", fmt.Errorf("%s has no configuration of a project: leave --project out", c.title)
		}
		return filepath.Abs(c.project)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return c.path(home, config), nil
}

// entry is what the client's file is to say of this server.
func (c *client) entry(command string, args []string) json.RawMessage {
	b := []byte("{")
	if c.typed {
		b = append(b, `"type":"stdio",`...)
	}
	b = append(append(b, `"command":`...), encodeJSON(command)...)
	return append(append(append(b, `,"args":`...), encodeJSON(append([]string{}, args...))...), '}')
}

// encodeJSON is a string's or a list of strings' JSON, which exists.
func encodeJSON(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
