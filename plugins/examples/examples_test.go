// Package examples holds plugins that strangers could have written, each in a
// folder of its own, by the documents alone: celsius in Go, in its own module, and
// node in Node.js. There is nothing else in it than the tests that keep them
// working: each is held against the contract in its sandbox, put into a lock, and
// granted by a server to a tool.
package examples

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest/conform"
)

func TestMain(m *testing.M) {
	host.Launcher()
	status := m.Run()
	if binary != "" {
		os.RemoveAll(filepath.Dir(binary))
	}
	os.Exit(status)
}

// mode is how the plugins are held: as strangers' are, unless this system can't.
func mode(t *testing.T) host.Mode {
	t.Helper()
	if host.System().Holds() {
		return host.Require
	}
	if os.Getenv("PIF_REQUIRE_SANDBOX") == "1" {
		t.Fatalf("this system lacks layers of the sandbox: %s", host.System())
	}
	return host.BestEffort
}

// node finds the interpreter and the libraries of the example, or skips the test;
// with PIF_REQUIRE_NODE=1 it fails it.
func node(t *testing.T) string {
	t.Helper()
	lacking := func(why string) {
		if os.Getenv("PIF_REQUIRE_NODE") == "1" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	path, err := exec.LookPath("node")
	if err != nil {
		lacking("there is no Node.js here")
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("node/node_modules/@grpc/grpc-js"); err != nil {
		lacking("the libraries aren't installed: run npm ci in plugins/examples/node")
	}
	return path
}

// golang runs the go command with this machine's caches and no network. What it
// builds is static; the rest is compiled as these tests are, so that the cache has it.
func golang(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly -ldflags=-w -vet=off", "GOWORK=off")
	if args[0] == "build" {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// An example is a plugin and what a tool does with it.
type example struct {
	folder     string // with its README
	source     host.Source
	fixtures   string
	kind       string
	transport  string
	capability string
	code       string         // of the tool
	gives      map[string]any // the member data of what it gives, by input
	denied     string         // an input beyond its capability
	conforms   bool           // its own test has held it against the contract
}

// TestNode: a plugin in another language, without certificates.
func TestNode(t *testing.T) {
	interpreter := node(t)
	dir, err := filepath.Abs("node")
	must.NoError(t, err)
	contract, err := os.ReadFile("../../proto/mcppif/plugin/v1/plugin.proto")
	must.NoError(t, err)
	if its, err := os.ReadFile("node/plugin.proto"); err != nil || !bytes.Equal(its, contract) {
		t.Errorf("plugins/examples/node/plugin.proto isn't the contract: copy it again (%v)", err)
	}
	try(t, example{
		folder:   "node",
		source:   host.Source{Path: interpreter, Args: []string{filepath.Join(dir, "main.js")}, Reads: []string{dir}},
		fixtures: "node/fixtures.json",
		kind:     "poem", transport: "unix", capability: "poem:basho/*",
		code:   "p => !poem.read({poem: p, lines: 1})",
		gives:  map[string]any{"basho/frog": map[string]any{"lines": []any{"An old still pond;"}, "poem": "basho/frog"}},
		denied: "issa/snail",
	})
}

// TestCelsius: a plugin in a module of its own, which its author's tests hold, too.
// Without PIF_FULL it isn't vetted.
func TestCelsius(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command, the plugin and its tests")
	}
	must.SkipQuick(t)
	program := filepath.Join(t.TempDir(), "celsius")
	if os.Getenv("PIF_FULL") != "" {
		golang(t, "celsius", "vet", "./...")
		golang(t, "celsius", "build", "-buildvcs=false", "-o", program, ".")
	}
	golang(t, "celsius", "test", "-count=1", "./...")
	try(t, example{
		folder: "celsius", source: host.Source{Path: program}, fixtures: "celsius/fixtures.json",
		kind: "celsius", transport: "mtls", capability: "celsius.read:home/**",
		code:   "room => !celsius.read(room)",
		gives:  map[string]any{"home/kitchen": map[string]any{"room": "home/kitchen", "tenths": 205.0}},
		denied: "shed", conforms: true,
	})
}

// try holds an example against the contract, and has a tool of a server use it.
func try(t *testing.T, e example) {
	held := mode(t)
	t.Run("conforms", func(t *testing.T) {
		if e.conforms && os.Getenv("PIF_FULL") == "" {
			t.Skip("its own test holds it against the contract; PIF_FULL=1 does it here, too")
		}
		text, err := os.ReadFile(e.fixtures)
		must.NoError(t, err)
		fixtures, err := conform.ParseFixtures(text)
		must.NoError(t, err)
		report, err := conform.Run(t.Context(), conform.Options{
			Source: e.source, Sandbox: held, Fixtures: fixtures, Patience: 4 * time.Minute, Grace: 4 * time.Minute, // of a busy machine
		})
		must.NoError(t, err)
		if !report.Passed() || report.Count(conform.OK) < 12 {
			t.Errorf("%s", report)
		}
	})
	t.Run("served", func(t *testing.T) { followed(t, held, e) })
}

// followed does what an example's README says, in a copy of its folder, and has a tool use
// what its last line starts. Libraries are those that are installed; that it conforms was
// seen above, and by its command only with PIF_FULL=1: on a busy machine it takes its time.
func followed(t *testing.T, held host.Mode, e example) {
	state, dir := t.TempDir(), filepath.Join(t.TempDir(), e.folder)
	must.NoError(t, os.CopyFS(dir, os.DirFS(e.folder)))
	root, err := filepath.Abs("../..")
	must.NoError(t, err)
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		golang(t, dir, "mod", "edit", "-replace", "github.com/mcp-pif/mcp-pif="+root)
	}
	readme, err := os.ReadFile(filepath.Join(e.folder, "README.md"))
	must.NoError(t, err)
	_, block, _ := strings.Cut(string(readme), "```sh\n")
	block, _, _ = strings.Cut(block, "```")
	env := append(os.Environ(), "XDG_STATE_HOME="+state, "PATH="+filepath.Dir(program(t))+string(os.PathListSeparator)+os.Getenv("PATH"), "GOPROXY=off", "GOFLAGS=-mod=mod -ldflags=-w", "GOWORK=off")
	served := false
	for line := range strings.Lines(block) {
		line = strings.TrimSpace(line)
		switch {
		case line == "npm ci", line == "go test ./..." && e.conforms:
			continue
		case strings.HasPrefix(line, "mcp-pif plugin test"):
			if os.Getenv("PIF_FULL") == "" {
				continue
			}
		case strings.HasPrefix(line, "mcp-pif plugin add"):
			line += " --yes" // no terminal is there to say so
		case strings.HasPrefix(line, "mcp-pif --"):
			served = true
			use(t, dir, env, line+" --sandbox="+string(held), e)
			continue
		}
		if os.Getenv("PIF_FULL") == "" {
			line = strings.TrimPrefix(line, "CGO_ENABLED=0 ") // which compiles everything anew
		}
		if strings.HasPrefix(line, "mcp-pif") && !strings.Contains(line, "--sandbox") {
			line += " --sandbox=" + string(held)
		}
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "plugins.lock.json"))
	if err != nil || !strings.Contains(string(text), `"transport": "`+e.transport+`"`) {
		t.Fatalf("the lock doesn't say that it speaks over %s: %v\n%s", e.transport, err, text)
	}
	if !served {
		t.Error("the README starts no server")
	}
}

// use makes a tool in the server that a line starts, and calls it.
func use(t *testing.T, dir string, env []string, line string, e example) {
	cmd := exec.Command("sh", "-c", "exec "+line)
	var log bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = dir, env, &log
	client := mcp.NewClient(&mcp.Implementation{Name: "examples", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	must.NoError(t, err)
	defer func() {
		session.Close()
		if t.Failed() {
			t.Logf("log:\n%s", log.String())
		}
	}()
	call := func(tool string, args map[string]any) (text string, failed bool) {
		t.Helper()
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		must.NoError(t, err)
		return r.Content[0].(*mcp.TextContent).Text, r.IsError
	}
	if text, failed := call("evolve", map[string]any{"name": "ask", "code": e.code, "capabilities": []string{e.capability}}); failed {
		t.Fatal(text)
	}
	for input, want := range e.gives {
		text, failed := call("ask", map[string]any{"input": input})
		var got any
		if failed || json.Unmarshal([]byte(text), &got) != nil || !same(got, want) {
			t.Errorf("ask %s gave %s; want %v", input, text, want)
		}
	}
	if text, failed := call("ask", map[string]any{"input": e.denied}); !failed || !strings.Contains(text, "denied") {
		t.Errorf("ask %s, which wasn't granted, gave %s", e.denied, text)
	}
}

// same compares what was decoded from JSON.
func same(a, b any) bool {
	one, err := json.Marshal(a)
	other, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(one, other)
}

// program is mcp-pif, built once.
func program(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		var dir string
		if dir, buildError = os.MkdirTemp("", "mcp-pif-examples"); buildError != nil {
			return
		}
		binary = filepath.Join(dir, "mcp-pif")
		out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, "../../cmd/mcp-pif").CombinedOutput()
		if buildError = err; err != nil {
			t.Logf("%s", out)
		}
	})
	must.NoError(t, buildError)
	return binary
}

var (
	built      sync.Once
	binary     string
	buildError error
)
