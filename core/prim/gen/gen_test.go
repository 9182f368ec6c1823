package gen_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
)

// TestPrograms: what is generated parses, without duplicate keys or misplaced
// continue, and has every strict row of the table in it somewhere.
func TestPrograms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := r.IntN
	var all strings.Builder
	free := 0
	for i := range 6000 {
		o := gen.Options{Wrong: i % 3 * 30, Effects: i%2 == 0, Records: i%4 < 2}
		code, input := gen.Term(draw, 1+i%60, o), ""
		options := parse.Options{}
		if i%3 == 0 {
			o.Tool = true
			options.Tool = "t"
			code, input = gen.Function(draw, 1+i%60, o)
		}
		if i%50 == 1 {
			code, input = gen.Kept(draw)
		}
		p, f := parse.Code([]byte(code), options)
		if f != nil {
			t.Fatalf("%v\n%s", f, code)
		}
		for _, note := range p.Notes {
			// A function that gives one may stand where fold or scan takes its function.
			if !strings.Contains(fmt.Sprint(note), "passes its function one pair") && !strings.Contains(fmt.Sprint(note), "means the function bound by this let") {
				t.Fatalf("notes %q\n%s", p.Notes, code)
			}
		}
		if len(parse.Free(p.Term)) > 0 {
			free++
			if o.Wrong == 0 {
				t.Fatalf("free variables %q in %s", parse.Free(p.Term), code)
			}
		}
		if input != "" {
			if _, f := parse.Input([]byte(input), parse.Term); f != nil {
				t.Fatalf("input %v\n%s", f, input)
			}
		}
		if len(code) > 40_000 {
			t.Errorf("%d bytes for size %d", len(code), 1+i%60)
		}
		all.WriteString(code)
	}
	for i := range prim.Table {
		if r := &prim.Table[i]; r.Operation() && !strings.Contains(all.String(), `"`+r.Name+`":`) {
			t.Errorf("no program has %s in it", r.Name)
		}
	}
	if free == 0 {
		t.Error("no program has an unbound variable")
	}
}

// TestBytes: any bytes make a program, and the same bytes the same.
func TestBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		data := make([]byte, r.IntN(300))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		a := gen.Term(gen.Bytes(data), 40, gen.Options{Wrong: 50})
		if b := gen.Term(gen.Bytes(data), 40, gen.Options{Wrong: 50}); a != b {
			t.Fatal("not the same twice")
		}
		if !json.Valid([]byte(a)) {
			t.Fatal(a)
		}
		if _, f := parse.Code([]byte(a), parse.Options{}); f != nil && f.Kind == fault.ParseError {
			t.Fatal(f)
		}
	}
}
