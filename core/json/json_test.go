package json_test

import (
	stdjson "encoding/json"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// documents are texts with what is written of the value they are read as; "" for what
// is refused.
var documents = map[string]string{
	"1": "1", "0": "0", "-0": "0", "-12": "-12", "9223372036854775807": "9223372036854775807", "9223372036854775808": "9223372036854775808",
	"-9223372036854775809": "-9223372036854775809", "123456789012345678901234567890": "123456789012345678901234567890",
	"1.50": "1.50", "-0.0": "0.0", "1e3": "1000", "1E-3": "0.001", "1.5e+2": "150",
	"01": "", "+1": "", "1.": "", ".5": "", "-": "", "1e": "", "1e99999": "", "0x1": "", "1_0": "", "NaN": "", "Infinity": "", "--1": "", "1-1": "",
	"true": "true", "false": "false", "null": "null", "tru": "", "nul": "", "True": "", "truefalse": "", "nil": "", "no": "",
	`""`: `""`, `"a"`: `"a"`, `"\u0041\n\"\\\/\b\f\r\t"`: `"A\n\"\\/\b\f\r\t"`, `"\u0001\u00e9"`: "\"\\u0001é\"",
	`"\ud83d\ude00"`: `"😀"`, `"\ud83d"`: "", `"\ude00"`: "", `"\ud83dx"`: "", `"\ud83d\u0041"`: "", `"\x"`: "", `"\u12"`: "", `"\u+123"`: "", `"\`: "", `"\u123`: "",
	"\"a\nb\"": "", "\"\x00\"": "", `"`: "", `"é😀"`: `"é😀"`, "'a'": "",
	"[]": "[]", "[1]": "[1]", "[1,[2,[]]]": "[1,[2,[]]]", "[1,]": "", "[,]": "", "[": "", "]": "", "[1 2]": "", "[1]]": "",
	"{}": "{}", `{"b":1,"a":{"c":[]}}`: `{"a":{"c":[]},"b":1}`, `{"a":1,"a":1}`: "", `{"a":1,"\u0061":2}`: "", `{"a":1,}`: "", `{a:1}`: "", `{"a"}`: "", `{"a":}`: "",
	`{"a":1 "b":2}`: "", `{"":0}`: `{"":0}`, " [ 1 , 2 ] ": "[1,2]", "\t{ \"a\" : 1 }\r\n": `{"a":1}`, "\v1": "", "\ufeff1": "", "": "", " ": "", "1 1": "", "// c\n1": "",
	strings.Repeat("[", 50) + strings.Repeat("]", 50): strings.Repeat("[", 50) + strings.Repeat("]", 50),
	strings.Repeat("[", 51) + strings.Repeat("]", 51): "",
}

const maxNesting = 50

func TestRead(t *testing.T) {
	for s, want := range documents {
		v, bad := json.Read(s, maxNesting, nil)
		if bad != nil {
			if want != "" {
				t.Errorf("%q: %v", s, bad)
			}
			continue
		}
		if got, odd := json.Append(nil, v); odd != nil || string(got) != want {
			t.Errorf("%q is read as %s (%v), want %s", s, got, odd, want)
		}
	}
}

func TestErrors(t *testing.T) {
	for s, want := range map[string]json.Error{
		`[1,`:           {At: 3, Want: "a JSON value"},
		`[1}`:           {At: 2, Want: `"," or "]"`},
		`{"a":1,"a":2}`: {At: 7, Want: "each key once in its object"},
		`{"a"1}`:        {At: 4, Want: "a colon after the key"},
		`["\ud800"]`:    {At: 2, Want: "both halves of a surrogate pair"},
		`1 1`:           {At: 2, Want: "the end"},
		`"a`:            {At: 2, Want: "a closing double quote"},
	} {
		if _, bad := json.Read(s, maxNesting, nil); bad == nil || *bad != want {
			t.Errorf("%q: %v, want %v", s, bad, &want)
		}
	}
}

// TestAppendOdd: what JSON has no form for is found inside lists and records.
func TestAppendOdd(t *testing.T) {
	pair := &value.Pair{First: value.Unit{}, Second: value.Unit{}}
	v := &value.Record{Fields: []value.Field{{Key: "a", Value: value.FromSlice([]value.Value{value.NewInt(1), pair, value.NewInt(2)})}}}
	if out, odd := json.Append(nil, v); odd != value.Value(pair) {
		t.Errorf("%s, %v", out, odd)
	}
}

// TestAppendMalformed: what a host made wrong is no JSON.
func TestAppendMalformed(t *testing.T) {
	for _, v := range []value.Value{
		nil, &value.Cons{Head: nil, Tail: value.Nil{}}, &value.Cons{Head: value.Unit{}, Tail: nil}, &value.Cons{Head: value.Unit{}, Tail: value.Str("a")},
		&value.Record{Fields: []value.Field{{Key: "a"}}},
	} {
		if out, odd := json.Append(nil, v); odd == nil || odd.Type() != "malformed part" {
			t.Errorf("%v: %s, %v", v, out, odd)
		}
	}
}

// stricter is why text that encoding/json takes may be refused.
var stricter = []string{"each key once", "surrogate", "4096 digits", "inside each other"}

func FuzzRead(f *testing.F) {
	for s := range documents {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, bad := json.Read(s, maxNesting, nil)
		if bad != nil {
			for _, why := range stricter {
				if strings.Contains(bad.Want, why) {
					return
				}
			}
			if stdjson.Valid([]byte(s)) {
				t.Fatalf("%q: %v", s, bad)
			}
			return
		}
		if !stdjson.Valid([]byte(s)) {
			t.Fatalf("%q is read", s)
		}
		text, _ := json.Append(nil, v)
		again, bad := json.Read(string(text), maxNesting, nil)
		if bad != nil {
			t.Fatalf("%q: %s isn't read: %v", s, text, bad)
		}
		if twice, _ := json.Append(nil, again); string(twice) != string(text) {
			t.Fatalf("%q: %s is read as %s", s, text, twice)
		}
	})
}
