//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/cmd/internal/nodejs"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// A realWorld has six servers that others wrote in its lock.
type realWorld struct {
	*servedWorld
	data  string              // the folder that they work in
	lines map[string][]string // their command lines
	env   []string            // their variables
}

// newRealWorld adds the servers.
func newRealWorld(t *testing.T) *realWorld {
	t.Helper()
	clients, err := filepath.Abs("../internal/clients")
	must.NoError(t, err)
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
	modules := filepath.Join(clients, "node_modules")
	w := &realWorld{servedWorld: newServedWorld(t), data: t.TempDir(), lines: map[string][]string{}}
	w.env = []string{"MEMORY_FILE_PATH=" + filepath.Join(w.data, "graph.jsonl"), "MEMORY_BANK_ROOT=" + w.data}
	w.reset()
	for name, program := range packages {
		line := []string{node, filepath.Join(modules, filepath.FromSlash(program))}
		if name == "files" {
			line = append(line, w.data) // the folder that it serves
		}
		w.lines[name] = line
		w.prints(append([]string{"mcp", "add", name, "--yes", "--accept", "--read", modules, "--write", w.data, "--env", w.env[0], "--env", w.env[1], "--"}, line...), "added "+name)
	}
	return w
}

// reset puts into the servers' folder what is in it at first, and nothing else. It leaves alone
// what is there already, with its times.
func (w *realWorld) reset() {
	w.t.Helper()
	files := map[string]string{
		"a.txt": "Ada\n", "p/n.md": "note\n",
		"graph.jsonl": `{"type":"entity","name":"Ada","entityType":"person","observations":["first","é"]}` + "\n",
	}
	entries, err := os.ReadDir(w.data)
	must.NoError(w.t, err)
	for _, e := range entries {
		if _, ok := files[e.Name()]; !ok && e.Name() != "p" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(w.data, e.Name())))
		}
	}
	for name, text := range files {
		path := filepath.Join(w.data, name)
		if is, e := os.ReadFile(path); e != nil || string(is) != text {
			err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
		}
	}
	must.NoError(w.t, err)
}

// Servers that others wrote are added, held to the lock and called from one program; its
// run is replayed without them.
func TestRealServers(t *testing.T) {
	t.Parallel()
	w := newRealWorld(t)
	w.prints([]string{"mcp", "test", "everything", "files", "memory", "thinking", "bank", "hello"}, "everything: its", "hello: its")
	must.NoError(t, os.Remove(filepath.Join(w.data, "graph.jsonl")))
	store := filepath.Join(t.TempDir(), "tools.db")
	p := w.serve("--store", store, "--cap", "everything,ro", "--cap", "files.read_text_file", "--cap", "memory", "--cap", "thinking", "--cap", "bank", "--cap", "hello")
	p.makes("visit", `path =>
  let name = trim(!files.read_text_file({path: path}).text)
  let made = !memory.create_entities({entities: [{name: name, entityType: "person", observations: ["read"]}]})
  let thought = !thinking.sequentialthinking({thought: "one", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1})
  let kept = !bank.memory_bank_write({projectName: "q", fileName: "n.md", content: name})
  {
    graph: map(e => e.name, !memory.read_graph({}).data.entities), thoughts: thought.data.totalThoughts,
    bank: !bank.memory_bank_read({projectName: "q", fileName: "n.md"}).text, echo: !everything.echo({message: "hé"}).text,
    sum: !everything.get_sum({a: 2, b: 40}).text, picture: !everything.get_tiny_image({}).parts[0].mime,
  }`, "files", "memory", "thinking", "bank", "everything")
	got, failed := p.runs("visit", filepath.Join(w.data, "a.txt"))
	for _, part := range []string{`"graph":["Ada"]`, `"thoughts":1`, "Ada", `"echo":"Echo: hé"`, "42", `"picture":"image/png"`} {
		if failed || !strings.Contains(got, part) {
			t.Errorf("the answer lacks %s: %s", part, got)
		}
	}
	p.makes("lost", "path => !files.read_text_file({path: path}).text", "files")
	r := p.call("run", string(cli.Marshal(map[string]any{"tool": "lost", "input": filepath.Join(w.data, "no-such.txt")})))
	if !r.IsError || len(r.Content) != 2 || !strings.Contains(r.Content[1].Text, "in words of files.read_text_file, not of this program:\n  |   ENOENT") {
		t.Errorf("a failure without the server's words: %v", r.Content)
	}
	for name := range w.lines {
		w.prints([]string{"mcp", "remove", name}, "removed "+name)
	}
	w.prints([]string{"replay", "--all", "--store", store}, "2 identical, 0 different")
}
