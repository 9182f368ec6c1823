package host

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// maxHandles is how many capabilities a process has open at once; those that
// weren't used for longest are closed.
const maxHandles = 512

// A handle is a capability that one process has open.
type handle struct {
	key    string
	opened chan struct{} // closed when number or err is set
	number uint64
	err    error
	used   uint64 // when, by the count of uses
	users  int
}

// isOpened reports whether it is known what came of opening it.
func (h *handle) isOpened() bool { return isClosed(h.opened) }

// handles is those of a process.
type handles struct {
	mu   sync.Mutex
	open map[string]*handle
	uses uint64
}

// take finds the handle of a key, or makes one that the caller has to open.
func (h *handles) take(key []byte) (it *handle, mine bool, idle uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.uses++
	it, ok := h.open[string(key)]
	if !ok {
		if len(h.open) >= maxHandles {
			idle = h.evict()
		}
		it = &handle{key: string(key), opened: make(chan struct{})}
		h.open[it.key] = it
	}
	it.used = h.uses
	it.users++
	return it, !ok, idle
}

// evict takes out the handle that nobody uses for longest; 0: all are in use, or
// are being opened for somebody who went away.
func (h *handles) evict() uint64 {
	var oldest *handle
	for _, it := range h.open {
		if it.users == 0 && it.isOpened() && (oldest == nil || it.used < oldest.used) {
			oldest = it
		}
	}
	if oldest == nil {
		return 0
	}
	delete(h.open, oldest.key)
	return oldest.number
}

// release gives a handle back.
func (h *handles) release(it *handle) {
	h.mu.Lock()
	defer h.mu.Unlock()
	it.users--
}

// forget takes out a handle that could not be opened.
func (h *handles) forget(it *handle) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[it.key] == it {
		delete(h.open, it.key)
	}
}

// handle gives the process's handle for an act's capability, opened once. The
// caller calls done when its request is over.
func (p *process) handle(ctx context.Context, a run.Act) (it *handle, done func(), err error) {
	var room [256]byte
	key := appendKey(room[:0], a.Held, a.Denies)
	it, mine, idle := p.handles.take(key)
	if idle != 0 {
		go p.closeHandle(idle, p.seat.host.timing.health)
	}
	if mine {
		// Others may wait for this one, with more time than ctx has; the result's
		// variable is not there for as long.
		it := it
		go func() {
			if it.number, it.err = p.openHandle(openRequest(a.Held, a.Denies)); it.err != nil {
				p.handles.forget(it)
			}
			close(it.opened)
		}()
	}
	select {
	case <-it.opened:
		err = it.err
	default:
		if !a.Deadline.IsZero() {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, a.Deadline)
			defer cancel()
		}
		select {
		case <-it.opened:
			err = it.err
		case <-ctx.Done():
			err = wire.NotSent{Reason: "the plugin was still opening the capability"}
		}
	}
	if err != nil {
		p.handles.release(it)
		return nil, nil, err
	}
	return it, func() { p.handles.release(it) }, nil
}

// appendKey writes all that a plugin is told of a capability, so that two have the
// same key only if they are the same to it.
func appendKey(b []byte, held *caps.Held, denies []caps.Capability) []byte {
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	list := func(all []string) {
		b = binary.AppendUvarint(b, uint64(len(all)))
		for _, s := range all {
			text(s)
		}
	}
	text(held.Kind)
	text(held.Name)
	text(held.Scope)
	text(held.Within)
	list(held.Verbs)
	b = binary.AppendUvarint(b, uint64(len(held.Options)))
	for _, name := range slices.Sorted(maps.Keys(held.Options)) {
		text(name)
		text(held.Options[name])
	}
	l := held.Limits
	for _, n := range []int64{l.Calls, l.Bytes, l.Max, l.Rate.Calls, int64(l.Rate.Per), int64(l.Timeout), held.Until.UnixNano()} {
		b = binary.AppendVarint(b, n)
	}
	for i := range denies {
		list(denies[i].Verbs)
		text(denies[i].Scope)
	}
	return b
}

// openHandle opens a capability, as long as that takes at most.
func (p *process) openHandle(request *pluginv1.OpenRequest) (uint64, error) {
	ctx, cancel := context.WithTimeout(p.seat.host.ctx, p.seat.host.timing.start)
	defer cancel()
	answer, err := p.plugin.Open(ctx, request)
	if err != nil {
		if ctx.Err() != nil {
			p.kill("it didn't open a capability in time")
			return 0, wire.NotSent{Reason: "the plugin didn't open the capability in time"}
		}
		if err = p.ending(err); !errors.Is(err, wire.ErrEnded) {
			err = wire.NotSent{Reason: "the plugin doesn't open the capability"}
		}
		return 0, err
	}
	switch outcome := answer.GetOutcome().(type) {
	case *pluginv1.OpenResponse_Handle:
		return outcome.Handle, nil
	case *pluginv1.OpenResponse_Failure:
		return 0, wire.PluginFailure{Failure: outcome.Failure}
	}
	return 0, wire.NotSent{Reason: "the plugin's answer can't be used"}
}

// closeHandle gives a handle back.
func (p *process) closeHandle(number uint64, within time.Duration) {
	ctx, cancel := context.WithTimeout(p.seat.host.ctx, within)
	defer cancel()
	// A process that doesn't take it is killed, or dead.
	_, _ = p.plugin.Close(ctx, &pluginv1.CloseRequest{Handle: number})
}

// settle closes all handles before the process is killed, so that a plugin can
// bring to rest what it keeps.
func (p *process) settle(within time.Duration) {
	if !p.isReady() || p.failed != nil || p.ended() {
		return
	}
	p.handles.mu.Lock()
	var numbers []uint64
	for _, it := range p.handles.open {
		if it.isOpened() && it.err == nil {
			numbers = append(numbers, it.number)
		}
	}
	p.handles.mu.Unlock()
	var all sync.WaitGroup
	for _, number := range numbers {
		all.Go(func() { p.closeHandle(number, within) })
	}
	all.Wait()
}

// openRequest is a capability as it is told to the plugin.
func openRequest(held *caps.Held, denies []caps.Capability) *pluginv1.OpenRequest {
	limit := held.Limit()
	r := &pluginv1.OpenRequest{Capability: &pluginv1.Capability{
		Text: held.String(), Verbs: held.Verbs, Within: held.Within, Options: held.Options,
		Max: limit.Max, TimeoutNs: int64(limit.Timeout),
	}}
	if g := held.Grant; g != nil {
		r.Capability.File = g.File
	}
	for _, d := range denies {
		r.Denies = append(r.Denies, &pluginv1.Deny{Verbs: d.Verbs, Within: denied(held.Grant, d.Scope)})
	}
	return r
}

// denied is the scope of a denial below a grant's directory. The broker gives it
// so; an absolute one is brought to it, and one that isn't below takes all.
func denied(g *caps.Grant, scope string) string {
	if g == nil || g.Manifest == nil || g.Manifest.Algebra != caps.Path || !filepath.IsAbs(scope) {
		return scope
	}
	base := g.Real
	if g.File != "" {
		base = filepath.Dir(base)
	}
	within, err := filepath.Rel(base, scope)
	if err != nil || !filepath.IsLocal(within) {
		return "."
	}
	return filepath.ToSlash(within)
}
