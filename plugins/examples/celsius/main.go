// Command celsius is a capability plugin of mcp-pif, in a module of its own as
// anybody would write one: it reads thermometers, and sets what rooms are heated
// to. Tools may ask it for what they declared and the operator granted, such as
// celsius.read:home/**.
//
// The house is one that it imagines; a real one would be behind Privileges:
// []string{"network"}. What it shows is how operations that read, change and take
// long are written.
package main

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

func main() { sdk.Serve(Plugin()) }

// Plugin is all that it is. Its tests take it as a value.
func Plugin() sdk.Plugin {
	h := &house{tenths: map[string]int{"home/kitchen": 205, "home/cellar": 112, "shed": -31}, wanted: map[string]int{"home/cellar": 300}}
	return sdk.Plugin{
		Kind: "celsius", Version: "1.0.0", Doc: "reads thermometers and sets heaters",
		Scope: sdk.Segments,
		Operations: []sdk.Operation{
			sdk.Op("read", "tells how warm it is", sdk.Flags{ReadOnly: true}, h.read),
			sdk.Op("set", "sets what a room is heated to", sdk.Flags{Idempotent: true}, h.set),
			sdk.Op("await", "waits until a room is as warm as was set", sdk.Flags{ReadOnly: true}, h.await),
		},
	}
}

// A house has rooms with thermometers. The state of a plugin is that of its
// process, which serves one grant.
type house struct {
	mu     sync.Mutex
	tenths map[string]int
	wanted map[string]int
}

// A place is the arguments of read. What designates is held to the scope of the
// capability, by the host, before this program sees it.
type place struct {
	Room string `pif:"room,main,designates" doc:"which room, such as home/kitchen"`
}

type setting struct {
	Room   string `pif:"room,designates" doc:"which room, such as home/kitchen"`
	Tenths int    `doc:"tenths of a degree Celsius, 50 to 300"`
}

// A reading is what a program gets: a record. There are no floats: what is counted
// is exact.
type reading struct {
	Room   string
	Tenths int
	Wanted *int // left out where nothing was set
}

func (h *house) read(_ context.Context, _ any, p place) (reading, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	tenths, ok := h.tenths[p.Room]
	if !ok {
		return reading{}, sdk.Fail("not_found", "there is no thermometer in %q", p.Room).WithHint("Ask for home/kitchen.")
	}
	r := reading{Room: p.Room, Tenths: tenths}
	if wanted, ok := h.wanted[p.Room]; ok {
		r.Wanted = &wanted
	}
	return r, nil
}

func (h *house) set(ctx context.Context, c any, s setting) (reading, error) {
	if s.Tenths < 50 || s.Tenths > 300 {
		return reading{}, sdk.Fail("invalid", "%d tenths of a degree can't be heated to", s.Tenths).WithHint("Set 50 to 300.")
	}
	if _, err := h.read(ctx, c, place{s.Room}); err != nil {
		return reading{}, err
	}
	h.mu.Lock()
	h.wanted[s.Room] = s.Tenths
	h.mu.Unlock()
	return h.read(ctx, c, place{s.Room})
}

// await heats the room by a tenth at a time. It ends when its context does: a
// handler that goes on costs the whole process.
func (h *house) await(ctx context.Context, c any, p place) (reading, error) {
	for {
		r, err := h.read(ctx, c, p)
		if err != nil || r.Wanted == nil || r.Tenths == *r.Wanted {
			return r, err
		}
		sdk.Progress(ctx, "%d of %d tenths", r.Tenths, *r.Wanted)
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		h.mu.Lock()
		if h.tenths[p.Room] < *r.Wanted {
			h.tenths[p.Room]++
		} else {
			h.tenths[p.Room]--
		}
		h.mu.Unlock()
	}
}
