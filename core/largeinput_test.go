package core_test

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// A run gives up the terms of a large input as soon as it has their values, and each other run and
// evaluator reads them again.
func TestLargeInput(t *testing.T) {
	t.Parallel()
	src := []byte(`["a,[b\"",` + string(bytes.Repeat([]byte("[],"), 100_000)) + `1]`)
	if n := core.LargeValues(src); n < 100_002 || n > 200_005 || core.LargeValues(src[:1000]) != 0 {
		t.Errorf("%d values", n)
	}
	one, err := core.ParseInput(src, core.InputData)
	must.NoError(t, err)
	small, err := core.ParseInput([]byte("5"), core.InputData)
	must.NoError(t, err)
	if small.Imported(func() {}) {
		t.Error("5 is large")
	}
	for code, in := range map[string]core.Input{"xs => length(xs) - 99997": one, "xs => n => length(xs) - 100000 + n - 2": core.Inputs(one, small)} {
		p, err := core.CompileText("", []byte(code))
		must.NoError(t, err)
		done := 0
		if !in.Imported(func() { done++ }) {
			t.Error("it isn't large")
		}
		for range 2 {
			m := p.Start(in, core.Budgets{}, nil)
			for m.Run(1_000_000) == core.Paused {
			}
			if enc, f := m.Encode(100); f != nil || string(enc.JSON) != "5" {
				t.Fatalf("%s: %s, %v, %v", code, enc.JSON, f, m.Fault())
			}
			m.Release()
		}
		if done != 2 {
			t.Errorf("%s: the terms weren't needed any more in %d of two runs", code, done)
		}
		var imported sync.WaitGroup
		imported.Go(func() { in.Imported(func() {}) }) // while runs begin
		p.Start(in, core.Budgets{}, nil).Release()
		if enc, _, f := p.Trace(in, core.Budgets{}, nil, func(core.TraceEvent) {}); f != nil || string(enc.JSON) != "5" {
			t.Errorf("%s, traced: %s, %v", code, enc.JSON, f)
		}
		if _, err := p.Follow(context.Background(), in, core.Budgets{}, flow.Config{}); err != nil {
			t.Errorf("%s, followed: %v", code, err)
		}
		imported.Wait()
	}
}
