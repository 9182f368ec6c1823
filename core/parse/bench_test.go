package parse_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/parse"
)

var square = []byte(`{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`)

func BenchmarkSquare(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, f := parse.Code(square, parse.Options{}); f != nil {
			b.Fatal(f)
		}
	}
}

func BenchmarkInput(b *testing.B) {
	b.ReportAllocs()
	src := []byte("7")
	for b.Loop() {
		if _, f := parse.Input(src, parse.Auto); f != nil {
			b.Fatal(f)
		}
	}
}

func BenchmarkMillionNumbers(b *testing.B) {
	var s strings.Builder
	s.WriteByte('[')
	for i := range 1_000_000 {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprint(&s, i)
	}
	s.WriteByte(']')
	src := []byte(s.String())
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, f := parse.Input(src, parse.Auto); f != nil {
			b.Fatal(f)
		}
	}
}
