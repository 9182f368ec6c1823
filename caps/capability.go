package caps

import (
	"os"
	"time"
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

// A Grant is a capability that the operator gave the server, bound to what it
// resolved to.
type Grant struct {
	Capability
	// ID is the identity: a hash of the canonical text and what it resolved
	// to. Counters, approvals and revocations bind to it.
	ID string
	// Label is what tools and models call its scope: never an absolute path.
	Label string
	// Root is what a Path grant resolved to, open since the server started,
	// and Real its path, for the operator only. File is the name in Root
	// where the grant is one file.
	Root     *os.File
	Real     string
	File     string
	Manifest *Manifest
	// unexported: counters, revocation
	state grantState
}

type grantState struct{}

// A Held capability is what a tool version has: narrower than a grant, or a
// call of another tool (Grant is nil then).
type Held struct {
	Capability
	Grant *Grant
	// Within is the scope relative to the grant's: for Path the path below
	// Root ("." for all of it), else the pattern itself.
	Within string
}
