package core_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/must"
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
			must.NoError(b, err)
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
			must.NoError(b, err)
			in, err := core.ParseInput(p.Input, core.InputAuto)
			must.NoError(b, err)
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

// BenchmarkCold is from source text to result. Its loop is without must.NoError, which asks
// where it is each time: that takes longer than reading the input.
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

// TestTinySizes: what a tiny run leaves for the collector is a third of its time, so what
// few programs and inputs have is apart.
func TestTinySizes(t *testing.T) {
	read, _ := reflect.TypeFor[core.Input]().FieldByName("read")
	if n := reflect.TypeFor[core.Program]().Size(); n > 208 {
		t.Errorf("a program takes %d bytes", n)
	}
	if n := read.Type.Elem().Size(); n > 144 {
		t.Errorf("an input takes %d bytes", n)
	}
}

// BenchmarkCompile is from source text to compiled code. The time for a byte
// should not grow with the size.
func BenchmarkCompile(b *testing.B) {
	const part = `{"add":[{"mul":[{"var":"x"},17]},{"length":["a","b",{"fst":{"pair":[1,2]}}]}]}`
	for _, parts := range []int{1, 50, 3000} {
		src := []byte(`{"lam":"x","body":[` + strings.Repeat(part+",", parts-1) + part + `]}`)
		b.Run(fmt.Sprintf("%dB", len(src)), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := core.Compile(src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParseInput reads a document in each of the ways there are; nothing
// in it is changed by normalising.
func BenchmarkParseInput(b *testing.B) {
	const part = `{"id":12345,"name":"Ada Lovelace","tags":["x","y"],"address":{"city":"London","zip":"N1"}}`
	for name, as := range map[string]core.InputAs{"auto": core.InputAuto, "data": core.InputData} {
		for _, parts := range []int{1, 1000, 50_000} {
			src := []byte(`[` + strings.Repeat(part+",", parts-1) + part + `]`)
			b.Run(fmt.Sprintf("%s/%dB", name, len(src)), func(b *testing.B) {
				b.SetBytes(int64(len(src)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := core.ParseInput(src, as); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
