package engine

import (
	"context"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// Call does what a tool does. It never panics: a defect of this program is
// answered as a failure of kind internal.
func (s *Engine) Call(ctx context.Context, c Call) wire.Answer {
	return s.guarded(c.Tool, func() wire.Answer { return s.call(ctx, c) })
}

func (s *Engine) call(ctx context.Context, c Call) wire.Answer {
	if c.Tools == nil {
		c.Tools = s.Latest()
	}
	if c.Ticket == 0 {
		c.Ticket = s.tickets.Add(1)
	}
	switch c.Tool {
	case "evolve":
		return s.evolve(ctx, c)
	case "run":
		return s.orGone(c, s.run(ctx, c))
	}
	if do := plainTool(c.Tool); do != nil {
		return s.plainly(ctx, c, do)
	}
	return s.orGone(c, s.direct(ctx, c))
}

// plainTool is what one of the server's own tools does that runs nothing; nil: there is none of that name.
func plainTool(name string) func(*Engine, Call) wire.Answer {
	switch name {
	case "list":
		return withArguments((*Engine).list)
	case "describe":
		return withArguments((*Engine).Describe)
	case "history":
		return withArguments((*Engine).history)
	case "journal":
		return withArguments((*Engine).Journal)
	case "retire":
		return withArguments((*Engine).retire)
	case "help":
		return withArguments((*Engine).help)
	}
	return nil
}

// withArguments reads a call's arguments for what does it.
func withArguments[A any](do func(*Engine, Call, A) wire.Answer) func(*Engine, Call) wire.Answer {
	return func(s *Engine, c Call) wire.Answer {
		in, f := wire.ReadInto[A](c.Tool, c.Arguments)
		if f != nil {
			return wire.Failed(f)
		}
		return do(s, c, in)
	}
}
