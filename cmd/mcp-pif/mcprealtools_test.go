//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
)

// notOffline is the tools that aren't held against a bare client, and why.
var notOffline = map[string]string{
	"everything.get_env":                        "its environment is the sandbox's",
	"everything.gzip_file_as_resource":          "it fetches from the network",
	"everything.toggle_simulated_logging":       "it names the session",
	"everything.toggle_subscriber_updates":      "it names the session",
	"everything.simulate_research_query":        "it runs as a task alone",
	"everything.trigger_long_running_operation": "its whole work is to wait",
}

// unsaid is arguments that a schema doesn't say, by the tool's word.
var unsaid = map[string]string{
	"files.edit_file": `{"edits":[{"oldText":"Ada","newText":"Bo"}]}`, "files.move_file": `{"destination":"DATA/b.txt"}`, "files.search_files": `{"pattern":"**/*.txt","path":"DATA"}`,
	"files.read_media_file": `{"path":"DATA/a.txt"}`, "files.create_directory": `{"path":"DATA/new"}`,
	"files.directory_tree": `{"path":"DATA"}`, "files.list_directory": `{"path":"DATA"}`, "files.list_directory_with_sizes": `{"path":"DATA"}`,
	"thinking.sequentialthinking": `{"nextThoughtNeeded":false}`,
	"memory.create_relations":     `{"relations":[{"from":"Ada","to":"Ada","relationType":"is"}]}`, "memory.add_observations": `{"observations":[{"entityName":"Ada","contents":["third"]}]}`,
	"memory.open_nodes": `{"names":["Ada"]}`, "memory.search_nodes": `{"query":"Ada"}`,
	"bank.list_project_files": `{"projectName":"p"}`, "everything.get_resource_reference": `{"resourceId":1}`,
}

// Every tool of six servers that others wrote, of those that work offline, is called once with
// arguments made of its schema: what it gives is what a bare client of the SDK gets, and its
// data byte by byte.
func TestRealTools(t *testing.T) {
	t.Parallel()
	w := newRealWorld(t)
	lock, err := mcplock.Read(w.lock.Path)
	must.NoError(t, err)
	args := []string{}
	for name := range w.lines {
		args = append(args, "--cap", name+",timeout=5m") // the first call starts the server, which takes its time on a loaded machine
	}
	p := w.serve(args...)
	called, withData := 0, 0
	for _, name := range slices.Sorted(maps.Keys(w.lines)) {
		// One of them writes other lines, too, at which the SDK gives up.
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `"$@" | grep --line-buffered "^{"`, "sh"}, w.lines[name]...)...)
		cmd.Env, cmd.Dir = append(os.Environ(), w.env...), w.data
		bare, err := mcp.NewClient(&mcp.Implementation{Name: "bare", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}).
			Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		must.NoError(t, err)
		defer bare.Close()
		tools := lock.Servers[name].Tools
		for _, word := range slices.Sorted(maps.Keys(tools)) {
			op := name + "." + word
			if notOffline[op] != "" {
				continue
			}
			args := w.arguments(op, tools[word].Input)
			w.reset()
			want, err := bare.CallTool(t.Context(), &mcp.CallToolParams{Name: tools[word].Tool, Arguments: args})
			if err != nil {
				t.Fatalf("%s %s: %v", op, args, err)
			}
			w.reset()
			p.makes("call", `a => match try(!`+op+`(a)) { {ok: v} => v; {error: e} => put(e.value, "failed", true) }`, name)
			text, failed := p.runs("call", args)
			if failed {
				t.Errorf("%s %s: %s", op, args, text)
				continue
			}
			called++
			if want.IsError {
				t.Errorf("%s %s fails: %.300s", op, args, text)
			}
			if sameAnswer(t, op, want, text) {
				withData++
			}
		}
	}
	for op := range notOffline {
		if name, word, _ := strings.Cut(op, "."); lock.Servers[name].Tools[word] == nil {
			t.Logf("%s isn't there any more", op)
		}
	}
	if called < 38 || withData < 20 {
		t.Errorf("%d tools were called, %d gave data", called, withData)
	}
}

// lastRead is when a file was read last, which each of two clients that ask changes.
var lastRead = regexp.MustCompile(`accessed: [A-Za-z]+ [A-Za-z]+ [0-9]+ [0-9]+ [0-9:]+`)

// sameAnswer holds what a program got to what a bare client got, and reports whether there
// were data.
func sameAnswer(t *testing.T, op string, want *mcp.CallToolResult, text string) (data bool) {
	t.Helper()
	var got struct {
		Data   json.RawMessage
		Text   string
		Parts  []struct{ Type, Data, URI string }
		Failed bool
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Errorf("%s: %s: %v", op, text, err)
		return false
	}
	var texts []string
	parts := 0
	for _, c := range want.Content {
		if s, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, s.Text)
		} else {
			parts++
		}
	}
	if len(got.Parts) != parts || got.Failed != want.IsError {
		t.Errorf("%s: %.300s; the bare client has %d parts, failed %v", op, text, parts, want.IsError)
	}
	said := strings.Join(texts, "\n")
	got.Text, said = lastRead.ReplaceAllString(got.Text, ""), lastRead.ReplaceAllString(said, "")
	if want.StructuredContent == nil {
		if got.Data != nil || got.Text != said {
			t.Errorf("%s: %.300s; the bare client has %.300s", op, text, said)
		}
		return false
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	must.NoError(t, enc.Encode(want.StructuredContent))
	if bare := bytes.TrimSpace(b.Bytes()); !bytes.Equal(lastRead.ReplaceAll(got.Data, nil), lastRead.ReplaceAll(bare, nil)) {
		t.Errorf("%s: the data are\n%s\nand the bare client's\n%s", op, got.Data, bare)
	}
	if got.Text != said && got.Text != "" {
		t.Errorf("%s: the text is %.300q, the bare client's %.300q", op, got.Text, said)
	}
	return true
}

// arguments makes arguments of a tool's schema, with those that are given.
func (w *realWorld) arguments(op string, schema json.RawMessage) json.RawMessage {
	w.t.Helper()
	var s any
	must.NoError(w.t, json.Unmarshal(schema, &s))
	made, _ := instance(s, "", w.data).(map[string]any)
	if more := unsaid[op]; more != "" {
		must.NoError(w.t, json.Unmarshal([]byte(strings.ReplaceAll(more, "DATA", w.data)), &made))
	}
	return cli.Marshal(made)
}

// instance makes the simplest value of a schema; name is the member that it is.
func instance(schema any, name, data string) any {
	s, _ := schema.(map[string]any)
	if all, ok := s["enum"].([]any); ok {
		return all[0]
	}
	if v, ok := s["const"]; ok {
		return v
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if all, ok := s[key].([]any); ok {
			return instance(all[0], name, data)
		}
	}
	switch s["type"] {
	case "object":
		o := map[string]any{}
		properties, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for _, key := range required {
			o[key.(string)] = instance(properties[key.(string)], key.(string), data)
		}
		return o
	case "array":
		return []any{instance(s["items"], strings.TrimSuffix(name, "s"), data)}
	case "number", "integer":
		if n, ok := s["minimum"].(float64); ok {
			return n
		}
		return 1
	case "boolean":
		return true
	}
	switch name {
	case "path", "source":
		return filepath.Join(data, "a.txt")
	case "projectName":
		return "p"
	case "fileName":
		return "n.md"
	}
	return "Ada & Bó"
}
