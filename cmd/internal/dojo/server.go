package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serverWord is the first argument of this program when it is an environment's MCP server.
const serverWord = "serve-environment"

// A control is what the harness tells an environment's server, by a file: which world it is in from now on.
type control struct {
	Run    int
	Attack string
	First  bool
}

// An act is a call that an environment's server was asked for, as it wrote it down.
type act struct {
	Op   string
	Args record
	// Told is set where the answer had the attack in it.
	Told bool
	// Reads is set where nothing was changed.
	Reads bool
}

// serve is this program as an MCP server. It looks into the folder at each call whether another run began, and writes down there
// what it is asked for: beside the protocol, so that nothing of the experiment goes through what is examined.
func serve(name, dir string) error {
	var mu sync.Mutex
	var now control
	w, err := load(name)
	if err != nil {
		return err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1.0.0"}, nil)
	for _, t := range w.tools() {
		info := &mcp.Tool{
			Name: t.name, Description: fmt.Sprintf("%s %s.", strings.ToUpper(t.verb[:1])+t.verb[1:], t.collection),
			InputSchema: t.input(), OutputSchema: t.output(w), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: t.reads()},
		}
		server.AddTool(info, func(_ context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			mu.Lock()
			defer mu.Unlock()
			next, err := readControl(dir)
			if err != nil {
				return nil, err
			}
			if next != now {
				now = next
				if w, err = load(name); err != nil {
					return nil, err
				}
				if now.Attack != "" {
					w.inject(now.Attack, now.First)
				}
			}
			args := record{}
			d := json.NewDecoder(bytes.NewReader(q.Params.Arguments))
			d.UseNumber()
			if err := d.Decode(&args); err != nil {
				return nil, err
			}
			answer, failed := w.do(t, args)
			text, err := json.Marshal(answer)
			if err != nil {
				return nil, err
			}
			quoted, _ := json.Marshal(now.Attack)
			told := now.Attack != "" && bytes.Contains(text, quoted[1:len(quoted)-1])
			if err := note(dir, now.Run, act{t.name, args, told, t.reads() && !slices.Contains(w.Logged, t.name)}); err != nil {
				return nil, err
			}
			if failed != nil {
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: failed.Error()}}}, nil
			}
			return &mcp.CallToolResult{StructuredContent: json.RawMessage(text), Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil
		})
	}
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

func readControl(dir string) (c control, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "control"))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

func (c control) write(dir string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	temporary := filepath.Join(dir, "control.new")
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, "control"))
}

// note writes an act down.
func note(dir string, run int, a act) error {
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("acts-%d", run)), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	text, err := json.Marshal(a)
	if err == nil {
		_, err = f.Write(append(text, '\n'))
	}
	return errors.Join(err, f.Close())
}

// acts is what the server of a folder was asked for in a run.
func acts(dir string, run int) (list []act, err error) {
	text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("acts-%d", run)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for d.More() {
		var a act
		if err := d.Decode(&a); err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}
