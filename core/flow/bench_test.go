//go:build unix

package flow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/flow"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/naive"
	"github.com/mcp-pif/mcp-pif/core/parse"
)

// BenchmarkPrograms runs the programs of core/testdata/bench up to a million steps on
// the labelled evaluator, as long as a verdict on their next request takes, on the
// reference and on the machine.
func BenchmarkPrograms(b *testing.B) {
	files, err := filepath.Glob("../testdata/bench/*.json")
	if err != nil || len(files) == 0 {
		b.Fatal("no programs: ", err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		must.NoError(b, err)
		var doc struct{ Code, Input json.RawMessage }
		must.NoError(b, json.Unmarshal(src, &doc))
		p, err := core.CompileTool("tool", doc.Code)
		must.NoError(b, err)
		in, f := parse.Input(doc.Input, parse.Auto)
		must.NoFault(b, f)
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		budgets := naive.Budgets{Steps: 1_000_000, Memory: 1 << 30}
		measure := func(on string, run func() (uint64, *fault.Fault)) {
			b.Run(name+"/"+on, func(b *testing.B) {
				var steps uint64
				before := cpu(b)
				for b.Loop() {
					var f *fault.Fault
					if steps, f = run(); f != nil && f.Kind != fault.OutOfFuel {
						b.Fatal(f)
					}
				}
				used := float64(cpu(b)-before) / float64(b.N)
				b.ReportMetric(used/1e6, "cpu-ms")
				b.ReportMetric(used/float64(steps), "cpu-ns/step")
				b.ReportMetric(float64(steps), "steps")
			})
		}
		for _, steps := range []uint64{1_000, 50_000, budgets.Steps} {
			measure(fmt.Sprint("flow/", steps), func() (uint64, *fault.Fault) {
				r, err := flow.Run(context.Background(), flow.Config{
					Term: p.Term(), Source: p.Tool().Source, Tool: "tool", Budgets: naive.Budgets{Steps: steps, Memory: budgets.Memory},
					Inputs: []flow.Input{{Parsed: in, Shadow: flow.Whole(flow.Atom(0))}},
				})
				if err != nil {
					b.Skip(err) // it is deeper than is followed
				}
				return r.Steps, r.Fault
			})
		}
		measure("naive", func() (uint64, *fault.Fault) {
			_, steps, f := naive.Run(naive.Config{Term: p.Term(), Source: p.Tool().Source, Tool: "tool", Input: in, Budgets: budgets})
			return steps, f
		})
		measure("machine", func() (uint64, *fault.Fault) {
			data, err := core.ParseInput(doc.Input, core.InputAuto)
			must.NoError(b, err)
			m := p.Start(data, core.Budgets{Steps: budgets.Steps, Memory: budgets.Memory}, nil)
			defer m.Release()
			m.Run(0)
			return m.Steps(), m.Fault()
		})
	}
}

// cpu is what the process has used of processors, which others don't take from it.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	must.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
