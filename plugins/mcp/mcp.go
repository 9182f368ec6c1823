// Package mcp is the plugin of the kinds that stand for MCP servers: one program for
// all of them, which calls the tools of the server that its settings name.
//
// What it can do comes from the operator's lock ([Settings.Server]), never from the
// server: the manifest is made of the lock's entry without a connection. Everything that
// a server lists later is held to the entry (hold.go). A tool that changed is denied, the
// others go on; if the list can't be read all are.
//
// A server is a stranger. Each message of it is bounded before it is parsed, no number
// goes through a double, and none of its words is in a failure's message: they are in the
// failure's value, as data. What it logs is written to the operator's log in quotes. It is
// told of no capability of a client's, so it can't ask for a model or for folders; for the
// user only if the operator said so.
//
// An operation is tried once more, on a new session, only if it was accepted as
// read-only or idempotent; otherwise what was sent and not answered is unknown.
//
// Files: upstream.go has the sessions of one server, session.go one of them, hold.go what
// it lists, call.go one request and how it fails, answer.go what comes of it, ask.go what the
// server asks the user.
// exchange.go is what a transport knows of a request; stdio.go with process.go and http.go
// are the transports, frame.go their bounds.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/mcplock"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// Settings is what the host tells the plugin's process, in JSON, by its descriptor.
type Settings struct {
	Name   string          // the kind
	Server *mcplock.Server // the lock's entry
	// Tools is what the operator's policy says of single tools: the manifest depends on
	// it.
	Tools map[string]*caps.ToolPolicy `json:",omitempty"`
	// Env and Headers have the values of secrets filled in.
	Env     map[string]string `json:",omitempty"`
	Headers map[string]string `json:",omitempty"`
	// Login is the folder with a login at the URL, which may come later (package mcplogin);
	// empty: nobody logs in.
	Login string `json:",omitempty"`
	// Principal is whose session it is; empty: everybody's.
	Principal string `json:",omitempty"`
	// Session is who shares one: the tools of a "principal" or nobody beyond a "run";
	// empty: principal.
	Session string `json:",omitempty"`
	// Concurrent is how many calls the server gets at once; 0: 4, or 1 with Elicit in a
	// version of the protocol where a question doesn't say which call it is for.
	Concurrent int `json:",omitempty"`
	// Idle is how long a session lasts that is asked nothing; 0: ten minutes.
	Idle time.Duration `json:",omitempty"`
	// Elicit is set if the operator lets the server ask the user (ask.go).
	Elicit bool `json:",omitempty"`
	// Hops is how many of these programs are in a row before this one, each the server
	// of the one before.
	Hops int `json:",omitempty"`
	// Probe makes a plugin for the commands that look at a server, whatever it lists: it
	// has the operations NAME.tools and NAME.call. No server that models use has them.
	Probe bool `json:",omitempty"`
}

// The defaults of [Settings].
const (
	defaultConcurrent = 4
	defaultIdle       = 10 * time.Minute
)

// maxHops is how many of these programs may be in a row: more are a loop.
const maxHops = 3

// ParseSettings reads settings from JSON.
func ParseSettings(b []byte) (Settings, error) {
	var s Settings
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("the settings of a server: %w", err)
	}
	if s.Server == nil {
		return s, fmt.Errorf("the settings of a server have no entry of a lock")
	}
	return s, nil
}

// Manifest returns the kind that the settings make.
func (s Settings) Manifest() (*caps.Manifest, error) {
	if s.Probe {
		return probeManifest(s.Name, s.Server), nil
	}
	return s.Server.Manifest(s.Name, &caps.ServerPolicy{Tools: s.Tools})
}

// Plugin returns the plugin of a server. It starts nothing: the first request does.
func Plugin(s Settings) (sdk.Plugin, error) {
	m, err := s.Manifest()
	if err != nil {
		return sdk.Plugin{}, err
	}
	u := newUpstream(s, m)
	return sdk.Plugin{
		Given: m,
		Open: func(_ context.Context, c sdk.Capability) (any, error) {
			return u.open(c), nil
		},
		Perform: func(ctx context.Context, scope any, operation string, args value.Value) (value.Value, error) {
			return u.perform(ctx, scope.(*capability), operation, args)
		},
	}, nil
}

// probeManifest is the manifest of a plugin for commands.
func probeManifest(name string, s *mcplock.Server) *caps.Manifest {
	m := &caps.Manifest{
		Kind: name, Version: "1.0.0", Doc: "looks at an MCP server that isn't added yet", Algebra: caps.Exact, Server: name,
		Privileges: privileges(s),
	}
	for _, o := range []struct{ word, doc, result string }{
		{probeTools, "lists what the server has", "record: name, version, protocol, instructions, tools"},
		{probeCall, "calls a tool of the server by its name on the wire", "string: the answer's JSON"},
	} {
		m.Verbs = append(m.Verbs, caps.Verb{Name: o.word})
		m.Operations = append(m.Operations, caps.Operation{Name: name + "." + o.word, Verb: o.word, Doc: o.doc, Result: o.result})
	}
	last := &m.Operations[1]
	last.Params = []caps.Param{{Name: "tool", Type: "string"}, {Name: "arguments", Type: "string"}}
	return m
}

// The operations of a plugin for commands.
const (
	probeTools = "tools"
	probeCall  = "call"
)

// privileges is what the process needs of the system.
func privileges(s *mcplock.Server) []string {
	if s.URL != "" {
		return []string{"network"}
	}
	return []string{"command", "processes", "state"}
}
