package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
)

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
