package ui

import (
	"encoding/json"
	"math/big"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core/check/cost"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// maxBoundInput is how many bytes of inputs a bound is worked out for.
const maxBoundInput = 256 << 10

// worked is a tool's bounds of steps and of bytes, worked out for what a run was given and answered; "": it isn't known
// how large that was, or there is no bound.
func (r *ran) worked(t *registry.Tool) (steps, memory string) {
	report, ok := t.Cost()
	sizes, known := r.sizes(report.Roots)
	if !ok || !known || r.Budget.Rounds > 0 || r.Budget.As != "data" {
		return "", ""
	}
	of := func(b cost.Bound) string {
		for _, v := range b.Vars() {
			if values, there := sizes[v.Root()]; there && values == nil || strings.HasPrefix(v.Root(), "!call:") {
				return ""
			}
		}
		n, finite := b.Eval(sizes.Of)
		if !finite || n.Cmp(big.NewInt(1e18)) > 0 {
			return ""
		}
		return n.String()
	}
	return of(report.Steps), of(report.Memory)
}

// sizes is the values that a bound is measured of. Those of an operation are nil where one of its answers isn't known.
func (r *ran) sizes(roots []string) (cost.Sizes, bool) {
	sizes := cost.Sizes{}
	bytes := 0
	for i, in := range r.inputs {
		var text string
		if json.Unmarshal(in, &text) != nil { // a digest
			return nil, false
		}
		if bytes += len(text); bytes > maxBoundInput {
			return nil, false
		}
		parsed, f := parse.Input([]byte(text), parse.Data)
		if f != nil {
			return nil, false
		}
		v, _, f := naive.Run(naive.Config{Term: parsed.Term, Source: parsed.Source})
		if f != nil {
			return nil, false
		}
		name := "input"
		if i < len(roots) {
			name = roots[i]
		}
		sizes[name] = append(sizes[name], v)
	}
	if len(r.inputs) < len(roots) {
		return nil, false
	}
	for i := range r.Effects {
		e := &r.Effects[i]
		name := "!" + e.Op
		values, before := sizes[name]
		v, err := journal.ReadValue(e.Value)
		if bytes += len(e.Value); e.Blob > 0 || bytes > maxBoundInput || before && values == nil || e.Failure == nil && err != nil {
			sizes[name] = nil
		} else if e.Failure == nil {
			sizes[name] = append(values, value.Force(v))
		}
	}
	return sizes, true
}
