package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"

	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Handle is an open capability: what requests are made of. It may be used by
// several goroutines.
type Handle struct {
	plugin Plugin
	scope  any
	close  sync.Once
	failed error
}

// Direct opens a capability of a plugin in this process, for tests of plugins.
// Requests go the way they go in a plugin's process, without the wire; nothing
// holds them to the capability, which is the host's part.
func Direct(ctx context.Context, p Plugin, c Capability) (*Handle, error) {
	if _, err := p.Manifest(); err != nil {
		return nil, err
	}
	return p.open(ctx, c)
}

// open makes a handle of a plugin whose manifest is right. The error is a
// [Failure].
func (p Plugin) open(ctx context.Context, c Capability) (h *Handle, err error) {
	defer func() {
		if r := recover(); r != nil {
			h, err = nil, panicked(p.Kind+"'s Open", r)
		}
	}()
	h = &Handle{plugin: p}
	if p.Open == nil {
		return h, nil
	}
	if h.scope, err = p.Open(ctx, c); err != nil {
		return nil, failureOf(err)
	}
	return h, nil
}

// Invoke performs an operation ("fs.read") with a record of arguments. The error
// is a [Failure].
func (h *Handle) Invoke(ctx context.Context, operation string, args value.Value) (v value.Value, err error) {
	perform, ok := h.plugin.performer(operation)
	if !ok {
		return nil, Fail("invalid", "unknown operation %s", short(operation))
	}
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, panicked(operation, r)
		}
	}()
	if v, err = perform(ctx, h.scope, args); err != nil {
		return nil, failureOf(err)
	}
	return v, nil
}

// Close closes what the plugin's Open gave, once, if it is an [io.Closer].
func (h *Handle) Close() (err error) {
	h.close.Do(func() {
		defer func() {
			if r := recover(); r != nil {
				h.failed = panicked("Close", r)
			}
		}()
		if c, ok := h.scope.(io.Closer); ok {
			h.failed = c.Close()
		}
	})
	return h.failed
}

// panicked is the failure of a handler that panicked; the log says where.
func panicked(what string, r any) Failure {
	if err, ok := r.(error); ok {
		if f, ok := errors.AsType[Failure](err); ok {
			return f
		}
	}
	fmt.Fprintf(os.Stderr, "panic in %s: %v\n%s", what, r, debug.Stack())
	return Fail("failed", "the plugin has a defect: it panicked in %s", what)
}
