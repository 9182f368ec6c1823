package caps

import (
	"time"

	"github.com/mcp-pif/mcp-pif/core"
)

// A Capability is authority over some operations of one kind within one scope,
// with limits. The zero value is none.
type Capability struct {
	// Name is the name an operator gave the scope ("docs" in
	// fs:docs=./very/long/path), empty for none.
	Name string
	Kind string
	// Verbs is sorted; nil is every verb of the kind.
	Verbs []string
	// Scope is decoded and canonical in its algebra.
	Scope   string
	Options map[string]string // ro, links: what the manifest allows
	Limits  Limits
	Until   time.Time // zero: no end
}

// Limits of acting. Zero is no limit of its own.
type Limits struct {
	Calls   int64         // per run
	Bytes   int64         // of outcomes, per run
	Max     int64         // of one outcome or one content, bytes
	Rate    Rate          // per grant
	Timeout time.Duration // per call
}

// Rate is how often: Calls in Per.
type Rate struct {
	Calls int64
	Per   time.Duration
}

// What a term can ask of the world, as package core reads it off the code.
type (
	Needs = core.Needs
	Need  = core.Need
	With  = core.With
)
