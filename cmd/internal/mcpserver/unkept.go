package mcpserver

import (
	"errors"
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core/fault"
)

// storeFaults is what keeps a change from lasting, as a model may know it.
var storeFaults = []struct {
	err   error
	words string
}{
	{journal.ErrFull, "the disk is full"},
	{journal.ErrReadOnly, "the store can't be written"},
	{journal.ErrDenied, "the store can't be written"},
	{journal.ErrLocked, "another process holds the store"},
	{journal.ErrDamaged, "the store is damaged"},
	{journal.ErrUnsafe, "its file was removed or replaced"},
	{journal.ErrClosed, "the server is ending"},
}

// discreet is the fault of a change as a model sees it. What the store says has
// paths of the host; that is for the log.
func (s *Server) discreet(name string, f *fault.Fault) *fault.Fault {
	if f.Cause == nil {
		return f
	}
	var inner *fault.Fault
	if errors.As(f.Cause, &inner) {
		return f
	}
	s.log.Error("a change of the tools was not kept", "tool", name, "error", f.Cause)
	why := "its store gave an error"
	for _, known := range storeFaults {
		if errors.Is(f.Cause, known.err) {
			why = known.words
			break
		}
	}
	g := *f
	g.Message = fmt.Sprintf("the change of %q was not kept: %s", wire.Short([]byte(name)), why)
	g.Hint = "Tell the operator; the tools that exist are unchanged, and work."
	if errors.Is(f.Cause, journal.ErrLocked) {
		g.Kind, g.Hint = fault.Conflict, "Nothing was changed: try again in a moment, and tell the operator if it stays so."
	}
	return &g
}
