// Package mcpprobe looks at an MCP server for a command of a person's: what it says of
// itself, what it lists, and what one call of it gives.
//
// The server is started by package mcp's plugin, in the sandbox that it has when programs
// call it, so that what a person sees is what they will get. No tool of the lock is needed
// for that, and none is held: the operations that it uses are those of a plugin that no
// server of ours ever grants. What comes is a stranger's words, for the command to quote.
//
// It refuses nothing by itself and records nothing.
package mcpprobe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/mcp"
)

// Options says what is looked at.
type Options struct {
	// Settings are the server's; its entry needs no tools.
	Settings mcp.Settings
	// Command is what is started, and what it may reach; nil for a URL.
	Command *caps.Command
	// Path, File and Args are the program that serves package mcp's plugin, as in
	// [host.Source].
	Path string
	File *os.File
	Args []string
	// Sandbox says how the system holds it; empty: [host.Require].
	Sandbox host.Mode
	// State is the folder that the server keeps its own in; empty: one that goes with
	// the probe.
	State string
	// Secrets are taken out of what comes; nil: there are none.
	Secrets *caps.Vault
	// Logger hears what the server writes, in quotes, and why it doesn't start; nil: nobody.
	Logger *slog.Logger
}

// A Probe is a server that is looked at.
type Probe struct {
	host  *host.Host
	held  *caps.Held
	state *host.Scratch // the folder that goes with it; nil: none does
}

// maxAnswer is the bytes of an answer: more than a server lists.
const maxAnswer = 16 << 20

// New makes a probe. It starts nothing: the first question does. The caller closes it.
func New(o Options) (_ *Probe, err error) {
	o.Settings.Probe = true
	m, err := o.Settings.Manifest()
	if err != nil {
		return nil, err
	}
	told, err := json.Marshal(o.Settings)
	if err != nil {
		return nil, err
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Sandbox = cmp.Or(o.Sandbox, host.Require)
	p := &Probe{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if o.State == "" {
		if p.state, err = host.NewScratch(""); err != nil {
			return nil, err
		}
		o.State = p.state.Path
	}
	p.host, err = host.New(host.Options{
		Logger: o.Logger, Secrets: o.Secrets,
		Sandbox: func(string) host.Mode { return o.Sandbox },
		State:   func(string) (string, error) { return o.State, nil },
		Command: func(*caps.Grant) *caps.Command { return o.Command },
	})
	if err != nil {
		return nil, err
	}
	err = p.host.Add(host.Source{
		Manifest: m, Path: o.Path, File: o.File, Args: o.Args, Shared: true,
		Settings: func(*caps.Grant) ([]byte, error) { return told, nil },
		Writes: func(*caps.Grant) []string {
			if o.Settings.Login == "" {
				return nil
			}
			return []string{o.Settings.Login}
		},
	})
	if err != nil {
		return nil, err
	}
	kinds, err := caps.NewKinds(m)
	if err != nil {
		return nil, err
	}
	c, err := caps.Parse(m.Kind, kinds)
	if err != nil {
		return nil, err
	}
	c.Limits.Max = maxAnswer
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: kinds})
	if err != nil {
		return nil, err
	}
	p.held = &caps.Held{Capability: g.Shown(), Grant: g, Within: c.Scope}
	return p, nil
}

// List starts the server, and gives what it says of itself and all that it lists.
func (p *Probe) List(ctx context.Context) (*mcp.Listing, error) {
	text, err := p.ask(ctx, "tools", nil)
	if err != nil {
		return nil, err
	}
	var l mcp.Listing
	return &l, json.Unmarshal([]byte(text), &l)
}

// Call calls a tool by its name on the wire, with an object of JSON, and gives the result
// as it came.
func (p *Probe) Call(ctx context.Context, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	text, err := p.ask(ctx, "call", []value.Field{{Key: "arguments", Value: value.Str(arguments)}, {Key: "tool", Value: value.Str(tool)}})
	return json.RawMessage(text), err
}

// timeout is how long a question takes at most, the server's start with it.
const timeout = 2 * time.Minute

// ask performs an operation.
func (p *Probe) ask(ctx context.Context, word string, fields []value.Field) (string, error) {
	o, ok := p.held.Grant.Manifest.Operation(p.held.Kind + "." + word)
	if !ok {
		return "", fmt.Errorf("a probe has no operation %s", word)
	}
	v, _, f := p.host.Perform(ctx, run.Act{
		Held: p.held, Operation: o, Verb: o.Verb, Args: &value.Record{Fields: fields}, Deadline: time.Now().Add(timeout), Most: maxAnswer,
	})
	if f != nil {
		message := strings.TrimPrefix(f.Message, o.Name+": ")
		for _, code := range []string{"failed: ", "unreachable: "} {
			message = strings.TrimPrefix(message, code) // a person reads it
		}
		return "", errors.New(strings.TrimSuffix(message, "; nothing was asked of it"))
	}
	text, _ := v.(value.Str)
	return string(text), nil
}

// Close ends the server, and removes what it kept if that goes with the probe.
func (p *Probe) Close() (err error) {
	if p.host != nil {
		err = p.host.Close()
	}
	if p.state != nil {
		err = errors.Join(err, p.state.Remove())
	}
	return err
}
