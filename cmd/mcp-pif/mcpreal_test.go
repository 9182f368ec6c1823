//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/nodejs"
)

// Servers that others wrote are added, held to the lock and called from one program; its
// run is replayed without them.
func TestRealServers(t *testing.T) {
	clients, err := filepath.Abs("../internal/clients")
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]string{
		"everything": "@modelcontextprotocol/server-everything/dist/index.js",
		"files":      "@modelcontextprotocol/server-filesystem/dist/index.js",
		"memory":     "@modelcontextprotocol/server-memory/dist/index.js",
		"thinking":   "@modelcontextprotocol/server-sequential-thinking/dist/index.js",
		"bank":       "@allpepper/memory-bank-mcp/dist/main/index.js",
		"hello":      "mcp-hello-world/build/stdio.js",
	}
	node := nodejs.Require(t, clients, "@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem",
		"@modelcontextprotocol/server-memory", "@modelcontextprotocol/server-sequential-thinking", "@allpepper/memory-bank-mcp", "mcp-hello-world")
	if node, err = filepath.EvalSymlinks(node); err != nil {
		t.Fatal(err)
	}
	t.Parallel()
	w := newServedWorld(t)
	modules, data := filepath.Join(clients, "node_modules"), t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "a.txt"), []byte("Ada\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, program := range packages {
		line := []string{node, filepath.Join(modules, filepath.FromSlash(program))}
		if name == "files" {
			line = append(line, data) // the folder that it serves
		}
		w.prints(append([]string{"mcp", "add", name, "--yes", "--accept", "--read", modules, "--write", data,
			"--env", "MEMORY_FILE_PATH=" + filepath.Join(data, "graph.jsonl"), "--env", "MEMORY_BANK_ROOT=" + data,
			"--"}, line...), "added "+name)
	}
	w.prints([]string{"mcp", "test", "everything", "files", "memory", "thinking", "bank", "hello"}, "everything: its", "hello: its")

	store := filepath.Join(t.TempDir(), "tools.db")
	p := w.serve("--store", store, "--cap", "everything,ro", "--cap", "files.read_text_file", "--cap", "memory", "--cap", "thinking", "--cap", "bank", "--cap", "hello")
	p.makes("visit", `path =>
  let name = trim(!files.read_text_file({path: path}).text)
  let made = !memory.create_entities({entities: [{name: name, entityType: "person", observations: ["read"]}]})
  let thought = !thinking.sequentialthinking({thought: "one", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1})
  let kept = !bank.memory_bank_write({projectName: "p", fileName: "n.md", content: name})
  {
    graph: map(e => e.name, !memory.read_graph({}).data.entities), thoughts: thought.data.totalThoughts,
    bank: !bank.memory_bank_read({projectName: "p", fileName: "n.md"}).text, echo: !everything.echo({message: "hé"}).text,
    sum: !everything.get_sum({a: 2, b: 40}).text, picture: !everything.get_tiny_image({}).parts[0].mime,
  }`, "files", "memory", "thinking", "bank", "everything")
	got, failed := p.runs("visit", filepath.Join(data, "a.txt"))
	for _, part := range []string{`"graph":["Ada"]`, `"thoughts":1`, "Ada", `"echo":"Echo: hé"`, "42", `"picture":"image/png"`} {
		if failed || !strings.Contains(got, part) {
			t.Errorf("the answer lacks %s: %s", part, got)
		}
	}
	for name := range packages {
		w.prints([]string{"mcp", "remove", name}, "removed "+name)
	}
	w.prints([]string{"replay", "--all", "--store", store}, "1 identical, 0 different")
}
