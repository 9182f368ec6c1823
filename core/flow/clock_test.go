package flow_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestWalkedLists: an item of a long list takes the machine one step, and the follower a walk, which counts and
// looks at the clock.
func TestWalkedLists(t *testing.T) {
	items, shadows := make([]value.Value, 100_000), make([]*flow.Shadow, 100_000)
	for i := range items {
		items[i], shadows[i] = value.NewInt(int64(i)), flow.Whole(flow.Atom(i%2))
	}
	c := configOf(t, "xs => fold((a, i) => a + nth(xs, i), 0, range(0, 1000))")
	c.Inputs, c.Bounds.Steps = []flow.Input{{Value: value.FromSlice(items), Shadow: flow.Whole(flow.Atom(1))}}, 100_000
	if _, err := flow.Run(context.Background(), c); err != nil {
		t.Errorf("the first thousand items: %v", err)
	}
	for _, index := range []string{"nth(xs, 99999)", "at(xs, 99999)", "xs[-1]"} {
		for _, labels := range []*flow.Shadow{flow.ListOf(shadows), nil} {
			c := configOf(t, "xs => fold((a, i) => a + "+index+", 0, range(0, 1000))")
			c.Inputs = []flow.Input{{Value: value.FromSlice(items), Shadow: labels}}
			c.Bounds.Steps = 100_000
			var bound *flow.Exceeded
			if r, err := flow.Run(context.Background(), c); !errors.As(err, &bound) || bound.What != "steps" {
				t.Errorf("%s a thousand times is followed to its end in %d steps: %v", index, r.Steps, err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			c.Bounds = flow.Bounds{}
			if r, err := flow.Run(ctx, c); !errors.Is(err, context.Canceled) || r.Steps > 100 {
				t.Errorf("%s is followed for %d steps after its time was over: %v", index, r.Steps, err)
			}
		}
	}
}
