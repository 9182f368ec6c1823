// Package mcpb is the bundle of the server that MCP clients install: its manifest and
// the script that builds it. It contains tests only: that the manifest says of the
// server what is so, and that a built bundle serves as a client starts it.
//
//	cmd/mcpb/build.sh dist linux/amd64
//	PIF_BUNDLE=$PWD/dist/mcp-pif-0.0.0-linux-amd64.mcpb go test -run TestBundle ./cmd/mcpb
package mcpb

import (
	"archive/zip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/engine"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// A manifest is what of it is looked at here.
type manifest struct {
	Server struct {
		Config struct {
			Command string
			Args    []string
		} `json:"mcp_config"`
	}
	Tools []struct{ Name string }
	User  map[string]json.RawMessage `json:"user_config"`
}

func readManifest(t *testing.T, path string) (m manifest) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	must.NoError(t, err)
	return m
}

// TestManifest: the manifest names the server's own tools, all of them and no other,
// and uses no setting that it doesn't ask for.
func TestManifest(t *testing.T) {
	m := readManifest(t, "manifest.json")
	ours, theirs := mcp.NewInMemoryTransports()
	go func() { _ = mcpserver.New(engine.Options{}).Serve(t.Context(), ours) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), theirs, nil)
	must.NoError(t, err)
	defer session.Close()
	list, err := session.ListTools(t.Context(), nil)
	must.NoError(t, err)
	var said, is []string
	for _, tool := range m.Tools {
		said = append(said, tool.Name)
	}
	for _, tool := range list.Tools {
		is = append(is, tool.Name)
	}
	if !slices.Equal(said, is) {
		t.Errorf("the manifest names %v, the server has %v", said, is)
	}
	for _, arg := range m.Server.Config.Args {
		if _, setting, ok := strings.Cut(arg, "${user_config."); ok {
			if name := strings.TrimSuffix(setting, "}"); m.User[name] == nil {
				t.Errorf("%s: nobody is asked for %s", arg, name)
			}
		}
	}
}

// TestBundle: the server in a bundle starts as a client would start it, where the user
// has chosen no folder, whose setting then stays as it is written, and where it has
// spaces and commas.
func TestBundle(t *testing.T) {
	bundle := os.Getenv("PIF_BUNDLE")
	if bundle == "" {
		t.Skip("PIF_BUNDLE isn't set to a bundle that build.sh made")
	}
	dir := filepath.Join(t.TempDir(), "an extension, unpacked")
	unpack(t, bundle, dir)
	m := readManifest(t, filepath.Join(dir, "manifest.json"))
	folder := filepath.Join(t.TempDir(), "my papers, old and new")
	must.NoError(t, os.Mkdir(folder, 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(folder, "a.txt"), []byte("first"), 0o600))
	const read = `{"name":"peek","code":"path => !fs.read({path: path})","capabilities":["GRANT"]}`
	for _, chosen := range []string{"", folder} {
		values := []string{"${__dirname}", dir}
		if chosen != "" { // else a field is cleared, and the others stay as they are written
			values = append(values, "${user_config.memory}", "true", "${user_config.origins}", "api.example.com, https://b.example")
		}
		values = append(values, "${user_config.folder}", chosen)
		fill := strings.NewReplacer(values...)
		cmd := exec.Command(fill.Replace(m.Server.Config.Command))
		for _, arg := range m.Server.Config.Args {
			cmd.Args = append(cmd.Args, fill.Replace(arg))
		}
		state := t.TempDir()
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state, "LocalAppData="+state)
		cmd.Dir = t.TempDir()
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatalf("%v: %v", cmd.Args, err)
		}
		call := func(tool, arguments string) (string, map[string]any) {
			t.Helper()
			res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
			must.NoError(t, err)
			structured, _ := res.StructuredContent.(map[string]any)
			return res.Content[0].(*mcp.TextContent).Text, structured
		}
		_, listed := call("list", `{}`)
		grants, _ := listed["grants"].([]any)
		if chosen == "" {
			if len(grants) != 0 {
				t.Errorf("nobody chose a folder, and %v is granted", grants)
			}
		} else if len(grants) != 4 {
			t.Errorf("%s, a memory and two origins are to be granted, and %v are", chosen, grants)
		} else {
			for _, g := range grants {
				if text := g.(string); strings.HasPrefix(text, "fs:") {
					call("evolve", strings.Replace(read, "GRANT", text, 1))
				}
			}
			if text, _ := call("read_file", `{"path":"a.txt"}`); text != "first" {
				t.Errorf("the ready tool read %s", text)
			}
			if text, _ := call("memory_list", `{}`); text != "[]" {
				t.Errorf("the memory has %s", text)
			}
			if text, _ := call("peek", `{"input":"a.txt"}`); text != "first" {
				t.Errorf("a file of %s was read as %s", chosen, text)
			}
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
}

// unpack unpacks a bundle, which is a zip, as clients do: with its files' modes.
func unpack(t *testing.T, bundle, dir string) {
	t.Helper()
	files, err := zip.OpenReader(bundle)
	must.NoError(t, err)
	defer files.Close()
	for _, f := range files.File {
		if f.FileInfo().IsDir() {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		must.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		from, err := f.Open()
		must.NoError(t, err)
		content, err := io.ReadAll(from)
		from.Close()
		if err == nil {
			err = os.WriteFile(path, content, f.Mode().Perm())
		}
		must.NoError(t, err)
	}
}
