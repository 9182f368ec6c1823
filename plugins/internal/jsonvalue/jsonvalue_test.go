package jsonvalue

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// primitive applies one of the language's.
func primitive(t testing.TB, name string, v value.Value) (value.Value, *fault.Fault) {
	_, row, ok := prim.Lookup(name)
	if !ok {
		t.Fatalf("no primitive %s", name)
	}
	return row.Eval([]value.Value{v})
}

var documents = []string{
	"1", "-0", "0", "-12", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "123456789012345678901234567890",
	"1.50", "-0.0", "1e3", "1E-3", "1.5e+2", "01", "+1", "1.", ".5", "-", "1e", "1e99999", "0x1", "1_0", "NaN", "Infinity", "--1", "1-1",
	"true", "false", "null", "tru", "nul", "True", "truefalse", `""`, `"a"`, `"\u0041\n\"\\\/\b\f\r\t"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\ud83dx"`, `"\ud83d\u0041"`,
	`"\x"`, `"\u12"`, `"\u+123"`, "\"a\nb\"", "\"\x00\"", `"`, `"é😀"`, "'a'", "[]", "[1]", "[1,[2,[]]]", "[1,]", "[,]", "[", "]", "[1 2]", "[1]]", "{}", `{"b":1,"a":{"c":[]}}`,
	`{"a":1,"a":1}`, `{"a":1,"\u0061":2}`, `{"a":1,}`, `{a:1}`, `{"a"}`, `{"a":}`, `{"a":1 "b":2}`, `{"":0}`, " [ 1 , 2 ] ", "\t{ \"a\" : 1 }\r\n", "\v1", "\ufeff1", "", " ", "1 1", "// c\n1",
}

// TestJSONAgrees: json is what the language's parse_json and to_json do.
func TestJSONAgrees(t *testing.T) {
	for _, s := range documents {
		agree(t, s)
	}
}

// TestExponents: a text isn't written out as a thousand times as much.
func TestExponents(t *testing.T) {
	for n, want := range map[int]bool{4000: true, 5000: false} {
		if _, ok := Read("[" + strings.Repeat("1e4000,", n) + "1]"); ok != want {
			t.Errorf("%d numbers: %v", n, ok)
		}
	}
}

func agree(t testing.TB, s string) {
	got, ok := Read(s)
	want, f := primitive(t, "parse_json", value.Str(s))
	if ok != (f == nil) {
		t.Fatalf("%q: json is there: %v, parse_json says %v", s, ok, f)
	}
	if !ok {
		return
	}
	text, err := Write(got)
	same, f := primitive(t, "to_json", want)
	if err != nil || f != nil || value.Str(text) != same {
		t.Fatalf("%q: json is %s (%v), the language's %v (%v)", s, text, err, same, f)
	}
	again, ok := Read(text)
	if twice, _ := Write(again); !ok || twice != text {
		t.Fatalf("%q: %s is read as %s", s, text, twice)
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range documents {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		depth, deep := 0, 0
		for _, c := range []byte(s) {
			if c == '[' || c == '{' {
				depth++
				deep = max(deep, depth)
			} else if c == ']' || c == '}' {
				depth--
			}
		}
		if deep < Deepest {
			agree(t, s)
		}
	})
}
