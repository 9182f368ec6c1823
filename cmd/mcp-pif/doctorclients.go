package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// A foundClient is a client of MCP that may have a configuration here. What stands
// in it is the client's, with secrets of other servers: nothing of it is told but
// whether it mentions this program.
type foundClient struct {
	Name     string `json:"name"`
	Path     string `json:"path"`
	Exists   bool   `json:"exists"`
	Mentions bool   `json:"mentions"`
	// Problem is why it couldn't be read.
	Problem string `json:"problem,omitempty"`
}

// String says what was found.
func (c foundClient) String() string {
	switch {
	case c.Problem != "":
		return c.Path + " can't be read: " + c.Problem
	case !c.Exists:
		return "no " + c.Path
	case c.Mentions:
		return c.Path + " mentions mcp-pif"
	}
	return c.Path + " doesn't mention mcp-pif"
}

// maxClientFile is how much of a configuration is looked at.
const maxClientFile = 4 << 20

// findClients looks where the usual clients have their configuration: of this user,
// and of the project that this folder is.
func findClients() []foundClient {
	var all []foundClient
	// The same as the client's own: ~/.config, ~/Library/Application Support, %AppData%.
	if dir, err := os.UserConfigDir(); err == nil {
		all = append(all, lookAtClient("Claude Desktop", filepath.Join(dir, "Claude", "claude_desktop_config.json")))
	}
	if home, err := os.UserHomeDir(); err == nil {
		all = append(all, lookAtClient("Cursor", filepath.Join(home, ".cursor", "mcp.json")))
	}
	return append(all, lookAtClient("VS Code", filepath.Join(".vscode", "mcp.json")), lookAtClient("Claude Code", ".mcp.json"))
}

func lookAtClient(name, path string) foundClient {
	c := foundClient{Name: name, Path: path}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c
	case err == nil && !info.Mode().IsRegular():
		err = errors.New("it is not a file") // and opening a pipe would wait
	}
	var text []byte
	if err == nil {
		var f *os.File
		if f, err = os.Open(path); err == nil {
			text, err = io.ReadAll(io.LimitReader(f, maxClientFile))
			f.Close()
		}
	}
	c.Exists, c.Mentions = true, bytes.Contains(text, []byte("mcp-pif"))
	if err != nil {
		c.Problem = printable(err.Error())
		if under := errors.Unwrap(err); under != nil {
			c.Problem = printable(under.Error())
		}
	}
	return c
}
