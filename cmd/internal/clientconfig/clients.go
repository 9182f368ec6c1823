// Package clientconfig edits the configuration files of MCP clients.
//
// [Clients] is a table with a row for each client: where its file is, where the
// servers are in it, and what an entry looks like. [Open] reads such a file,
// JSON with comments, TOML or YAML by its name. [History] puts an entry in and
// takes it out again. Everything else in the file keeps its text, comments and
// layout too; an edit that would change the meaning of anything else is refused.
package clientconfig

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	pifjson "github.com/mcp-pif/mcp-pif/core/json"
)

// A Client is an MCP client whose configuration is known.
type Client struct {
	ID, Title string
	// Members are the keys that lead to the servers in its file.
	Members []string
	// After tells a person how the client takes notice of a change.
	After string
	// Project is the file of a project, relative to its folder; "" for none.
	Project string

	path  func(p places) string
	entry func(name, command string, args []string) any
}

// places are the folders in which clients keep their files.
type places struct {
	home string
	// config is the system's: ~/.config, ~/Library/Application Support, %AppData%.
	config string
	// dot is ~/.config on every system, or XDG_CONFIG_HOME.
	dot string
}

// Clients are those that install knows. The places and shapes are those of the
// clients' own documentation.
var Clients = []Client{
	{
		ID: "claude-desktop", Title: "Claude Desktop", Members: []string{"mcpServers"}, entry: plain,
		path:  func(p places) string { return filepath.Join(p.config, "Claude", "claude_desktop_config.json") },
		After: "Quit Claude Desktop completely and start it again.",
	},
	{
		ID: "claude-code", Title: "Claude Code", Members: []string{"mcpServers"}, entry: typed, Project: ".mcp.json",
		path:  func(p places) string { return filepath.Join(variable("CLAUDE_CONFIG_DIR", p.home), ".claude.json") },
		After: "Start a new session of Claude Code; /mcp shows its servers.",
	},
	{
		ID: "cursor", Title: "Cursor", Members: []string{"mcpServers"}, entry: plain, Project: filepath.Join(".cursor", "mcp.json"),
		path:  func(p places) string { return filepath.Join(p.home, ".cursor", "mcp.json") },
		After: "You'll find it in Cursor under Settings → MCP.",
	},
	{
		ID: "vscode", Title: "VS Code", Members: []string{"servers"}, entry: typed, Project: filepath.Join(".vscode", "mcp.json"),
		path:  func(p places) string { return filepath.Join(p.config, "Code", "User", "mcp.json") },
		After: "In VS Code, the command 'MCP: List Servers' starts it.",
	},
	{
		ID: "windsurf", Title: "Windsurf", Members: []string{"mcpServers"}, entry: plain,
		path:  func(p places) string { return filepath.Join(p.home, ".codeium", "windsurf", "mcp_config.json") },
		After: "In Windsurf, press Refresh in the MCP panel of Cascade.",
	},
	{
		ID: "zed", Title: "Zed", Members: []string{"context_servers"}, entry: plain,
		path: func(p places) string {
			if runtime.GOOS == "windows" {
				return filepath.Join(p.config, "Zed", "settings.json")
			}
			return filepath.Join(p.dot, "zed", "settings.json")
		},
		After: "Zed starts it by itself; the Agent Panel's settings show it.",
	},
	{
		ID: "codex", Title: "Codex CLI", Members: []string{"mcp_servers"}, entry: plain, Project: filepath.Join(".codex", "config.toml"),
		path: func(p places) string {
			return filepath.Join(variable("CODEX_HOME", filepath.Join(p.home, ".codex")), "config.toml")
		},
		After: "Start a new session of Codex; /mcp shows its servers.",
	},
	{
		ID: "gemini", Title: "Gemini CLI", Members: []string{"mcpServers"}, entry: plain, Project: filepath.Join(".gemini", "settings.json"),
		path:  func(p places) string { return filepath.Join(p.home, ".gemini", "settings.json") },
		After: "Start Gemini CLI again; /mcp shows its servers.",
	},
	{
		ID: "cline", Title: "Cline", Members: []string{"mcpServers"}, entry: plain,
		path: func(p places) string {
			return filepath.Join(p.home, ".cline", "data", "settings", "cline_mcp_settings.json")
		},
		After: "You'll find it in Cline under MCP Servers → Configure.",
	},
	{
		ID: "goose", Title: "Goose", Members: []string{"extensions"}, entry: goose,
		path: func(p places) string {
			if runtime.GOOS == "windows" {
				return filepath.Join(p.config, "Block", "goose", "config", "config.yaml")
			}
			return filepath.Join(p.dot, "goose", "config.yaml")
		},
		After: "Start a new session of Goose; it is among the extensions.",
	},
	{
		ID: "opencode", Title: "OpenCode", Members: []string{"mcp"}, entry: opencode, Project: "opencode.json",
		path:  func(p places) string { return filepath.Join(p.dot, "opencode", "opencode.json") },
		After: "Start OpenCode again; 'opencode mcp list' shows it.",
	},
}

func variable(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// The shapes of an entry.
type (
	plainEntry struct {
		Type    string   `json:"type,omitempty"`
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	gooseEntry struct {
		Type    string   `json:"type"`
		Name    string   `json:"name"`
		Enabled bool     `json:"enabled"`
		Cmd     string   `json:"cmd"`
		Args    []string `json:"args"`
		Timeout int      `json:"timeout"` // in seconds; Goose requires it
	}
	opencodeEntry struct {
		Type    string   `json:"type"`
		Command []string `json:"command"`
		Enabled bool     `json:"enabled"`
	}
)

func plain(_, command string, args []string) any { return plainEntry{Command: command, Args: args} }

func typed(_, command string, args []string) any {
	return plainEntry{Type: "stdio", Command: command, Args: args}
}

func goose(name, command string, args []string) any {
	return gooseEntry{Type: "stdio", Name: name, Enabled: true, Cmd: command, Args: args, Timeout: 300}
}

func opencode(_, command string, args []string) any {
	return opencodeEntry{Type: "local", Command: append([]string{command}, args...), Enabled: true}
}

// Named returns the client with an ID; nil: there is none.
func Named(id string) *Client {
	for i := range Clients {
		if Clients[i].ID == id {
			return &Clients[i]
		}
	}
	return nil
}

// IDs returns the IDs of all clients.
func IDs() []string {
	ids := make([]string, len(Clients))
	for i := range Clients {
		ids[i] = Clients[i].ID
	}
	return ids
}

// ForFile returns the client whose shape fits a file that no client is named for,
// by the file's name.
func ForFile(path string) *Client {
	switch formatOf(path).name {
	case "TOML":
		return Named("codex")
	case "YAML":
		return Named("goose")
	}
	return Named("claude-desktop")
}

// Path returns where the client's file is, of this user or of the project in the
// working directory. The file need not exist.
func (c *Client) Path(project bool) (string, error) {
	path := c.Project
	switch {
	case project && path == "":
		return "", fmt.Errorf("%s has no configuration of a project: leave --project out", c.Title)
	case project:
		var err error
		if path, err = filepath.Abs(path); err != nil {
			return "", err
		}
	default:
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		config, err := os.UserConfigDir()
		if err != nil {
			return "", err
		}
		path = c.path(places{home, config, variable("XDG_CONFIG_HOME", filepath.Join(home, ".config"))})
	}
	if with := path + "c"; strings.HasSuffix(path, ".json") { // opencode.jsonc
		if _, err := os.Stat(path); err != nil {
			if _, err := os.Stat(with); err == nil {
				return with, nil
			}
		}
	}
	return path, nil
}

// Entry returns what the client's file is to hold of a server, as JSON.
func (c *Client) Entry(name, command string, args []string) json.RawMessage {
	return pifjson.MustEncode(c.entry(name, command, append([]string{}, args...)))
}

// Command returns the command line that an entry of any client starts; nil: it
// starts none.
func Command(entry json.RawMessage) []string {
	var e struct {
		Command json.RawMessage
		Cmd     string
		Args    []string
	}
	if json.Unmarshal(entry, &e) != nil {
		return nil
	}
	var whole []string
	if json.Unmarshal(e.Command, &whole) == nil && len(whole) > 0 {
		return whole
	}
	if json.Unmarshal(e.Command, &e.Cmd); e.Cmd == "" {
		return nil
	}
	return append([]string{e.Cmd}, e.Args...)
}
