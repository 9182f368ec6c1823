package run

import (
	"context"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

type hopsKey struct{}

// WithHops returns a context whose effects are known to have come through so many other
// servers of this program.
func WithHops(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, hopsKey{}, n)
}

// Hops is what [WithHops] said, or 0.
func Hops(ctx context.Context) int {
	n, _ := ctx.Value(hopsKey{}).(int)
	return n
}

// A Handler performs what was decided: package plugins/host, by plugin
// processes.
type Handler interface {
	// Prepare makes a grant's process ready, so that the first effect needn't
	// wait. It returns at once.
	Prepare(g *caps.Grant)
	// Perform acts. It returns no later than shortly after the deadline, or
	// the end of ctx, whatever the plugin does. A fault's kind is
	// effect_failed, denied, conflict or outcome_unknown. The size is bytes of
	// the outcome as it was transferred.
	Perform(ctx context.Context, a Act) (v value.Value, size int64, f *fault.Fault)
}

// An Act is an effect that was permitted.
type Act struct {
	Held      *caps.Held
	Denies    []caps.Capability // of the same kind, overlapping the grant
	Operation *caps.Operation
	Args      value.Value // a record
	// Secrets is those that Args name. Their values are for the plugin, and for
	// nothing that is recorded or shown.
	Secrets []*caps.Secret
	Verb    string // the verb it is permitted under
	// Tool and Version name whose code asks.
	Tool     string
	Version  int
	Deadline time.Time
	// Most is how many bytes of outcome are allowed.
	Most int64
	// Key is the same for the same act, for plugins that can tell a repetition.
	Key string
	// Progress hears what a long operation says; may be nil.
	Progress func(message string)
	// Ask puts a question to the user for whoever performs the operation, see ask.go; nil:
	// nobody can be asked.
	Ask func(context.Context, Question) Reply
}
