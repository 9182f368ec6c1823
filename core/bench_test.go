package core_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
)

// BenchmarkPrograms runs the programs of testdata/bench, budgets on.
// cmd/internal/peerbench runs the same beside other interpreters.
func BenchmarkPrograms(b *testing.B) {
	files, err := filepath.Glob("testdata/bench/*.*")
	if err != nil || len(files) == 0 {
		b.Fatal("no programs", err)
	}
	for _, file := range files {
		b.Run(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(b *testing.B) {
			text, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			var p struct{ Code, Input, Expect json.RawMessage }
			compile := core.CompileTool
			if filepath.Ext(file) == ".pif" {
				// // what it does, // input => result
				head := strings.Fields(strings.SplitN(string(text), "\n", 3)[1])
				p.Code, p.Input, p.Expect, compile = text, []byte(head[1]), []byte(head[3]), core.CompileText
			} else if err := json.Unmarshal(text, &p); err != nil {
				b.Fatal(err)
			}
			prog, err := compile("bench", p.Code)
			if err != nil {
				b.Fatal(err)
			}
			in, err := core.ParseInput(p.Input, core.InputAuto)
			if err != nil {
				b.Fatal(err)
			}
			m := prog.Start(in, core.Budgets{Steps: 1e9}, nil)
			defer m.Release()
			for b.Loop() {
				prog.Restart(m, in, core.Budgets{Steps: 1e9}, nil)
				if m.Run(0) != core.Done {
					b.Fatal(m.Fault())
				}
			}
			if e, f := m.Encode(1 << 10); f != nil || string(e.JSON) != string(p.Expect) {
				b.Fatalf("got %s (%v), want %s", e.JSON, f, p.Expect)
			}
		})
	}
}

// BenchmarkCold is from source text to result.
func BenchmarkCold(b *testing.B) {
	src := []byte(`{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`)
	input := []byte(`12`)
	b.ReportAllocs()
	for b.Loop() {
		p, err := core.Compile(src)
		if err != nil {
			b.Fatal(err)
		}
		in, err := core.ParseInput(input, core.InputAuto)
		if err != nil {
			b.Fatal(err)
		}
		m := p.Start(in, core.Budgets{}, nil)
		if m.Run(0) != core.Done {
			b.Fatal(m.Fault())
		}
		m.Release()
	}
}
