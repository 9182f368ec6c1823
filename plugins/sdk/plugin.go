// Package sdk is what the author of a capability plugin imports: a plugin is a
// value, and [Serve] its main function.
//
// A plugin performs the operations of one kind (fs, fetch, a kind of your own)
// for programs that hold a capability of it. The host decides what a program may
// do, checks every request against its capability, and starts a process for each
// grant; a plugin does what it is asked, and may refuse more. [Op] makes an
// operation from a function: its arguments are the fields of a struct, its result
// is any type that has a value of the language. What goes wrong is a [Failure],
// which [Fail] makes.
//
// What an author can rely on: handlers run at once, each with a context that ends
// when its request does; arguments have the types that were declared; a panic is
// the failure of one request. What the host relies on: a handler returns when its
// context ends (or the process is killed), failures and results tell nothing of
// the machine, and a kind with a path as its scope opens what it opens below
// Root.
//
// [Direct] runs a plugin in a test without a process. plugins/README.md has a
// whole plugin.
package sdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// A Plugin performs the operations of one kind. Its texts are shown to people
// and models.
type Plugin struct {
	Kind    string // "fs"
	Version string // "1.0.0"
	Doc     string
	// Scope is the host's algebra that capabilities of the kind use.
	Scope Algebra
	// Options is the options its capabilities may carry besides the host's.
	Options map[string][]string
	// Verbs is what capabilities can be narrowed to. Nil: a verb for each
	// operation, with its name and flags.
	Verbs []Verb
	// Open makes what the handlers of operations get for a capability, once
	// for each. An error refuses the capability. If what it gives is an
	// [io.Closer] it is closed when the capability is.
	Open func(ctx context.Context, c Capability) (any, error)
	// Begin is called once in a process that serves a path grant, with the grant's
	// directory, beside the first requests. Nil: nothing.
	Begin      func(root *os.File)
	Operations []Operation
	// Given is the whole manifest of a plugin that learns what it can do when it
	// starts; the fields that a manifest has are left empty then, and Perform performs
	// every operation of it, named as in the manifest. nil: the manifest is made of
	// those fields.
	Given   *caps.Manifest
	Perform func(ctx context.Context, scope any, operation string, args value.Value) (value.Value, error)
	// Privileges is what the process needs of the system besides the scopes it
	// is granted: "network" to connect to other machines, "processes" to start
	// programs, "files:/PATH" to read a file or folder, "state" for a folder
	// that lasts (Capability.State), "variable" for the environment variable
	// that a grant names (Capability.Variable), "command" for what the operator
	// maps a grant's name to (Capability.Command). What isn't asked for isn't there
	// where the system has a sandbox.
	Privileges []string
}

// The host's words, for plugins.
type (
	Algebra = caps.Algebra
	Verb    = caps.Verb
	Flags   = caps.Flags
	Command = caps.Command
)

// The scope algebras; see package caps.
const (
	Path     = caps.Path
	URL      = caps.URL
	Segments = caps.Segments
	Exact    = caps.Exact
)

// A Capability is what a handle is opened for. The host has checked each
// request against it; a plugin may refuse more.
type Capability struct {
	Text    string // as people write it, without host paths
	Verbs   []string
	Within  string // of a Path scope: the path below Root, "." for all of it; else the pattern
	Options map[string]string
	Max     int64         // bytes of one outcome or content; 0: the host's default holds
	Timeout time.Duration // of one call; 0: the host's
	// Root is the grant's directory, which the host opened when it started;
	// nil where the scope is no path. It must not be closed.
	Root *os.File
	// File is the name in Root where the grant is one file.
	File string
	// State is the folder in which the plugin keeps what lasts, where it has that
	// privilege: one for all its grants in a profile, so that several of its
	// processes may use it at once, each for its own grant's part.
	State string
	// Variable is the value of the environment variable that the grant's scope
	// names, where the plugin has that privilege; nil: it isn't set.
	Variable *string
	// Command is what the operator maps the grant's name to, where the plugin has
	// that privilege; nil: nothing.
	Command *Command
	// Denies is what is taken out of it, relative to Root.
	Denies []Deny
}

// A Deny is a scope that is taken out of a capability.
type Deny struct {
	Verbs  []string // nil: all
	Within string
}

// An Operation is made by [Op].
type Operation struct {
	caps.Operation
	flags Flags
	// gives is the type of what its handler can give.
	gives  *check.Type
	handle performer
	// mistake is what is wrong with its types.
	mistake error
}

// Manifest is what the plugin says of itself, checked: names, types, lengths,
// and that each operation has its verb. It starts nothing. What is wrong is a
// mistake of the plugin's author, and all of it is in the error.
func (p Plugin) Manifest() (*caps.Manifest, error) {
	if p.Given != nil {
		if p.Perform == nil {
			return nil, fmt.Errorf("plugin %s: nothing performs the operations of the manifest that it was given", p.Given.Kind)
		}
		return p.Given, wire.CheckManifest(p.Given)
	}
	m := &caps.Manifest{
		Kind: p.Kind, Version: p.Version, Doc: p.Doc, Algebra: p.Scope,
		Options: p.Options, Verbs: p.Verbs, Privileges: p.Privileges,
	}
	var mistakes []error
	for _, o := range p.Operations {
		if o.mistake != nil {
			mistakes = append(mistakes, o.mistake)
			continue
		}
		if o.handle == nil {
			mistakes = append(mistakes, fmt.Errorf("operation %q isn't made by Op", o.Name))
			continue
		}
		c := o.Operation
		c.Name = p.Kind + "." + o.Name
		m.Operations = append(m.Operations, c)
		mistakes = append(mistakes, p.verbOf(m, o))
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.Kind, err)
	}
	if err := wire.CheckManifest(m); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.Kind, err)
	}
	return m, nil
}

// verbOf adds an operation's verb where the plugin lists none, and holds the
// operation's flags against it where it does.
func (p Plugin) verbOf(m *caps.Manifest, o Operation) error {
	if p.Verbs == nil {
		if o.VerbParam != "" {
			return fmt.Errorf("operation %s takes its verb from an argument: the plugin must list its verbs", o.Name)
		}
		m.Verbs = append(m.Verbs, Verb{Name: o.Verb, Flags: o.flags})
		return nil
	}
	at := slices.IndexFunc(p.Verbs, func(v Verb) bool { return v.Name == o.Verb })
	if at >= 0 && o.VerbParam == "" && o.flags != (Flags{}) && o.flags != p.Verbs[at].Flags {
		return fmt.Errorf("operation %s has other flags than its verb", o.Name)
	}
	return nil
}

// A performer performs one operation.
type performer func(ctx context.Context, scope any, args value.Value) (value.Value, error)

// performer finds who performs an operation, by the name programs use.
func (p Plugin) performer(name string) (performer, bool) {
	if p.Given != nil {
		_, ok := p.Given.Operation(name)
		return func(ctx context.Context, scope any, args value.Value) (value.Value, error) {
			return p.Perform(ctx, scope, name, args)
		}, ok
	}
	for i := range p.Operations {
		if p.Kind+"."+p.Operations[i].Name == name {
			return p.Operations[i].handle, true
		}
	}
	return nil, false
}
