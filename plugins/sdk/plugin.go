// Package sdk is what the author of a capability plugin imports: a plugin is a
// value, and [Serve] its main function.
package sdk

import (
	"context"
	"os"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
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
	Open       func(ctx context.Context, c Capability) (any, error)
	Operations []Operation
}

// The host's words, for plugins.
type (
	Algebra = caps.Algebra
	Verb    = caps.Verb
	Flags   = caps.Flags
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
	flags  Flags
	handle func(ctx context.Context, scope any, args value.Value) (value.Value, error)
	// mistake is what is wrong with its types.
	mistake error
}
