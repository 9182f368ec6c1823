package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/nodejs"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// An inspector is the inspector as a command, which does one thing each time it is
// started: over stdio each has a server of its own, and they share their store.
type inspector struct {
	place   *place
	command []string // up to what it does
}

const inspectorMain = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

func inspect(t *testing.T, p *place, era string) client { return newInspector(t, p, era) }

func newInspector(t *testing.T, p *place, era string) *inspector {
	t.Helper()
	exe := nodejs.Require(t, ".", "@modelcontextprotocol/inspector")
	main, err := filepath.Abs(filepath.FromSlash(inspectorMain))
	must.NoError(t, err)
	return &inspector{p, []string{exe, main, "--cli", "--protocol-era", era, "--format", "json"}}
}

// toolFailed is its exit status for a tool's answer that is an error.
const toolFailed = 5

// do does one thing. What it says beside the result is given, too.
func (i *inspector) do(t *testing.T, result any, arguments ...string) (said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := append(append([]string{}, i.command...), arguments...)
	if i.place.url != "" {
		command = append(command, "--transport", "http", "--server-url", i.place.url, "--header", "Authorization: Bearer "+token)
	} else {
		command = append(append(command, "--"), i.place.command...)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = i.place.dir, i.place.env
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !(ok && exit.ExitCode() == toolFailed) {
		t.Fatalf("the inspector ended with %v at %v: %s", err, arguments, log.String())
	}
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		t.Fatalf("%v: %.300s", err, out.String())
	}
	must.NoError(t, json.Unmarshal(answer.Result, result))
	return log.String()
}

func (i *inspector) tools(t *testing.T) []string {
	t.Helper()
	var list toolList
	i.do(t, &list, "--method", "tools/list")
	return list.names()
}

func (i *inspector) call(t *testing.T, tool, arguments string) (r reply) {
	t.Helper()
	i.do(t, &r, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", arguments)
	return r
}

// ask does what the command can: it completes nothing, and each request takes a second, so
// that lists of templates and prompts are left to the others.
func (i *inspector) ask(t *testing.T, method, params string, result any) bool {
	t.Helper()
	var p struct {
		URI, Name string
		Arguments map[string]string
	}
	must.NoError(t, json.Unmarshal([]byte(params), &p))
	arguments := []string{"--method", method}
	switch method {
	case "resources/list":
	case "resources/read":
		arguments = append(arguments, "--uri", p.URI)
	case "prompts/get":
		arguments = append(arguments, "--prompt-name", p.Name)
		for name, value := range p.Arguments {
			arguments = append(arguments, "--prompt-args", name+"="+value)
		}
	default:
		return false
	}
	i.do(t, result, arguments...)
	return true
}

// watch: it is gone before anything could change.
func (i *inspector) watch(*testing.T, string) bool { return false }

func (i *inspector) updates(*testing.T) int { return 0 }

// changes: it is gone before anything could change.
func (i *inspector) changes(*testing.T) (n int, hears bool) { return 0, false }

// TestStrict: the inspector finds no error in any tool's schemas, the fixed ones' and
// an evolved one's. It ends with a status of its own if it does.
func TestStrict(t *testing.T) {
	t.Parallel()
	p := newPlace(t, false)
	for _, era := range []string{legacy, modern} {
		i := newInspector(t, p, era)
		i.call(t, "evolve", `{"name":"square","code":"n => n * n"}`)
		var list toolList
		said := i.do(t, &list, "--method", "tools/list", "--strict")
		if len(list.Tools) < len(fixed)+1 {
			t.Errorf("%s: %d tools were judged", era, len(list.Tools))
		}
		for line := range strings.Lines(said) {
			if strings.HasPrefix(line, "Error: ") {
				t.Errorf("%s: %s", era, said)
			}
		}
	}
}

// TestLoad: the inspector's load on one tool finds no error.
func TestLoad(t *testing.T) {
	t.Parallel()
	requests := must.Full(60, 500)
	for _, http := range []bool{false, true} {
		i := newInspector(t, newPlace(t, http), modern)
		var load struct{ Requests, OK, ToolErrors, Errors int }
		i.do(t, &load, "--method", "tools/call", "--tool-name", "run", "--tool-args-json", `{"code":"6 * 7"}`,
			"--load", "--load-requests", strconv.Itoa(requests), "--load-concurrency", "50")
		if load.OK != requests || load.Errors+load.ToolErrors > 0 {
			t.Errorf("HTTP %v: %+v", http, load)
		}
	}
}
