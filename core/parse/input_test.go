package parse_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestNormalise is the predecessor's table of what strings become.
func TestNormalise(t *testing.T) {
	for in, want := range map[string]string{
		`42`: `42`, ` 42`: `42`, "\t42\n": `42`, `"42"`: `42`, `"\"42\""`: `42`, `(42)`: `42`, `((7))`: `7`, `( ( 7 ) )`: `7`, `- 42`: `-42`, `(- 42)`: `-42`, `-0x10`: `-16`,
		`0x10`: `16`, `0X1f`: `31`, `0o17`: `15`, `0O7`: `7`, `007`: `7`, "\u00a042": `42`, "\u200342": `42`,
		`1e3`: `1000`, `1.5`: `2`, `2.5`: `2`, `00.5`: `0`, `001.5e1`: `15`, `NaN`: `0`, `Infinity`: `0`, `-Infinity`: `0`, `(NaN)`: `0`, `1e400`: "1" + strings.Repeat("0", 400),
		`+42`: ``, `.5`: ``, `1.`: ``, `0b11`: ``, `1_000`: ``, `-(42)`: ``, `--1`: ``, "42\u00a0": ``, `  0x1F  `: ``, `(42) `: ``, `(42`: ``, `42)`: ``, `nan`: ``, `None`: ``, ``: ``, `1,2`: ``, `[1,2`: ``, `١٢`: ``,
		`0x`: ``, `0o8`: ``, `1e`: ``, `(`: ``, `-`: ``, `NaNs`: ``, `infinity`: ``, ` `: ``, `{`: ``, `hello`: ``, `'a'`: ``, `1e5000`: ``, `"`: ``,
		`true`: `true`, `True`: `true`, `tRuE`: `true`, ` true`: `true`, `TRUE `: ``, ` TRUE`: ``, `NULL`: `null`, `null`: `null`, `False`: `false`, "fal\u017fe": ``, `truetrue`: ``,
		`[1,"2"]`: `[1,2]`, `{"pair":["1","x"]}`: `{"pair":[1,"x"]}`, `"hello"`: `"hello"`, ` [ ] `: `[]`, `["[\"3\"]",["TRUE"]]`: `[[3],[true]]`, `{"var":"x"}`: `{"var":"x"}`,
		`{"a":"1"}`: `{"record":{"a":1}}`, `"\u0034\u0032"`: `42`, `"\ud800"`: ``,
	} {
		p, f := parse.Input([]byte(strconv.Quote(in)), parse.Auto)
		if strings.ContainsAny(in, "\u00a0\u2003\u017f") {
			p, f = parse.Input([]byte(`"`+in+`"`), parse.Auto)
		}
		if f != nil {
			t.Errorf("%q: %v", in, f)
			continue
		}
		got := string(text.Canonical(p.Term))
		if want == "" {
			if s, ok := p.Term.(*term.Str); !ok || s.Value != in || len(p.Notes) > 0 {
				t.Errorf("%q became %s, with notes %q", in, got, p.Notes)
			}
			continue
		}
		if got != want || len(p.Notes) == 0 {
			t.Errorf("%q became %s, want %s; notes %q", in, got, want, p.Notes)
		}
	}
}

// TestNormaliseNote: the note tells of the first string of the input itself and
// counts the others.
func TestNormaliseNote(t *testing.T) {
	for src, want := range map[string]string{
		`["x","[\"1\",\"2\"]","TRUE"]`: `the string "[\"1\",\"2\"]" in the input was read as [1,2] (and 1 more)`,
		`" 5 "`:                        `the string " 5 " in the input was read as 5`,
	} {
		if p, f := parse.Input([]byte(src), parse.Auto); f != nil || len(p.Notes) != 1 || p.Notes[0] != want {
			t.Errorf("%s: %q %v", src, p.Notes, f)
		}
	}
}

// TestInput: what an input is in each of the three modes; "!" is a parse error.
func TestInput(t *testing.T) {
	for _, c := range []struct{ src, auto, term, data string }{
		{``, `null`, `null`, `null`},
		{`5`, `5`, `5`, `5`},
		{`0`, `0`, `0`, `0`},
		{`-70`, `-70`, `-70`, `-70`},
		{`-0`, `0`, `0`, `0`},
		{`07`, `!`, `!`, `!`},
		{`-`, `!`, `!`, `!`},
		{`5-`, `!`, `!`, `!`},
		{`-999999999999999999`, `-999999999999999999`, `-999999999999999999`, `-999999999999999999`},
		{`99999999999999999999`, `99999999999999999999`, `99999999999999999999`, `99999999999999999999`},
		{`"5"`, `5`, `"5"`, `"5"`},
		{`{}`, `{"record":{}}`, `!`, `{"record":{}}`},
		{`{"a":1,"B":[{"c":null}]}`, `{"record":{"B":[{"record":{"c":null}}],"a":1}}`, `!`, `{"record":{"B":[{"record":{"c":null}}],"a":1}}`},
		{`{"pair":[5,1]}`, `{"pair":[5,1]}`, `{"pair":[5,1]}`, `{"pair":[5,1]}`},
		{`{"pair":[5]}`, `!`, `!`, `{"record":{"pair":[5]}}`},
		{`{"pair":[5,1],"x":2}`, `{"pair":[5,1]}`, `{"pair":[5,1]}`, `{"record":{"pair":[5,1],"x":2}}`},
		{`{"add":[1,2]}`, `{"add":[1,2]}`, `{"add":[1,2]}`, `{"record":{"add":[1,2]}}`},
		{`{"add":[1,2],"x":3}`, `{"add":[1,2]}`, `{"add":[1,2]}`, `{"record":{"add":[1,2],"x":3}}`},
		{`{"var":"42"}`, `!`, `{"var":"42"}`, `{"record":{"var":"42"}}`},
		{`{"lam":"1","body":1}`, `!`, `{"body":1,"lam":"1"}`, `{"record":{"body":1,"lam":"1"}}`},
		{`{"quote":{"a":1}}`, `!`, `!`, `{"record":{"quote":{"record":{"a":1}}}}`},
		{`{"a":{"quote":{"add":["1",2]}}}`, `{"record":{"a":{"quote":{"add":[1,2]}}}}`, `!`, `{"record":{"a":{"record":{"quote":{"record":{"add":["1",2]}}}}}}`},
		{`{"record":{"pair":1}}`, `{"record":{"pair":1}}`, `{"record":{"pair":1}}`, `{"record":{"pair":1}}`},
		{`{"record":{"a":{"pair":[1,2]}}}`, `{"record":{"a":{"pair":[1,2]}}}`, `{"record":{"a":{"pair":[1,2]}}}`, `{"record":{"a":{"pair":[1,2]}}}`},
		{`{"record":{"record":{"a":1}}}`, `{"record":{"record":{"record":{"a":1}}}}`, `!`, `{"record":{"record":{"record":{"a":1}}}}`},
		{`{"fs.read":{"path":"a"}}`, `{"record":{"fs.read":{"record":{"path":"a"}}}}`, `!`, `{"record":{"fs.read":{"record":{"path":"a"}}}}`},
		{`{"fs.read":1,"add":[1,2]}`, `{"add":[1,2]}`, `!`, `{"record":{"add":[1,2],"fs.read":1}}`},
		{`{"quote":{"fs.read":1}}`, `{"quote":{"fs.read":1}}`, `{"quote":{"fs.read":1}}`, `{"record":{"quote":{"record":{"fs.read":1}}}}`},
		{`{"readFile":1}`, `{"record":{"readFile":1}}`, `!`, `{"record":{"readFile":1}}`},
		{`{"int":"12345678901234567890"}`, `{"record":{"int":12345678901234567890}}`, `!`, `12345678901234567890`},
		{`{"int":"-7"}`, `{"record":{"int":-7}}`, `!`, `-7`},
		{`{"int":"7x"}`, `{"record":{"int":"7x"}}`, `!`, `{"record":{"int":"7x"}}`},
		{`{"int":7}`, `{"record":{"int":7}}`, `!`, `{"record":{"int":7}}`},
		{`2.5`, `2`, `2`, `{"dec":"2.5"}`},
		{`[1e1,"2.5"]`, `[10,2]`, `[10,"2.5"]`, `[{"dec":"10"},"2.5"]`},
		{`{"a":1,"a":2}`, `!`, `!`, `!`},
		{`"{\"a\":1,\"a\":2}"`, `!`, `"{\"a\":1,\"a\":2}"`, `"{\"a\":1,\"a\":2}"`},
		{`{"continue":{"input":1}}`, `{"continue":{"input":1}}`, `{"continue":{"input":1}}`, `{"record":{"continue":{"record":{"input":1}}}}`},
	} {
		for mode, want := range map[parse.Mode]string{parse.Auto: c.auto, parse.Term: c.term, parse.Data: c.data} {
			p, f := parse.Input([]byte(c.src), mode)
			if f != nil {
				if want != "!" || f.Kind != fault.ParseError || f.In != "input" {
					t.Errorf("%s, mode %d: %v", c.src, mode, f)
				}
				continue
			}
			if got := string(text.Canonical(p.Term)); got != want {
				t.Errorf("%s, mode %d: %s, want %s", c.src, mode, got, want)
			}
			if p.Source.In != "input" {
				t.Errorf("the source is called %q", p.Source.In)
			}
		}
	}
}

// TestDataBack: a long integer in a result's shape is read back exactly.
func TestDataBack(t *testing.T) {
	digits := "1" + strings.Repeat("0123456789", 5000)
	p, f := parse.Input([]byte(`{"int":"-`+digits+`"}`), parse.Data)
	if f != nil || p.Term.(*term.Big).Value.String() != "-"+digits {
		t.Fatal(f)
	}
	began := time.Now()
	if _, f := parse.Input([]byte(`{"int":"`+strings.Repeat("7", 1_000_000)+`"}`), parse.Data); f != nil {
		t.Fatal(f)
	}
	t.Logf("a million digits in %v", time.Since(began))
	if _, f := parse.Input([]byte(`{"int":"`+strings.Repeat("7", 1_000_001)+`"}`), parse.Data); f == nil {
		t.Error("a million digits and one were read")
	}
}

// TestBounds: each bound holds on both sides, and what is beyond is refused soon.
func TestBounds(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	nots := func(n int) string { return strings.Repeat(`{"not":`, n) + "true" + strings.Repeat("}", n) }
	args := func(n int) string { return `{"app":[{"var":"f"}` + strings.Repeat(",1", n) + `]}` }
	effects := func(n int) string { return strings.Repeat(`{"a.b":{"k":`, n) + "1" + strings.Repeat("}}", n) }
	for _, c := range []struct {
		name, src string
		ok        bool
	}{
		{"nested", nested(parse.MaxDepth), true},
		{"nested", nested(parse.MaxDepth + 1), false},
		{"nots", nots(parse.MaxDepth), true},
		{"nots", nots(parse.MaxDepth + 1), false},
		{"open", strings.Repeat("[", 200_000), false},
		{"open objects", strings.Repeat(`{"a":`, 40_000), false},
		{"arguments", args(4_990), true},
		{"arguments", args(5_010), false},
		{"arguments", args(100_000), false},
		{"effects", effects(3_333), true},
		{"effects", effects(3_334), false},
		{"a string", `"` + strings.Repeat("a", parse.MaxCode-2) + `"`, true},
		{"a string", `"` + strings.Repeat("a", parse.MaxCode-1) + `"`, false},
		{"a name", `{"lam":"` + strings.Repeat("é", 100_000) + `","body":1}`, true},
		{"keys", `{"record":{` + manyKeys(15_000, "") + `}}`, true},
		{"keys", `{"record":{` + manyKeys(15_000, `,"k7":1`) + `}}`, false},
		{"unknown", `[` + strings.Repeat(`{"x":1},`, 30_000) + `1]`, false},
	} {
		p, f := parse.Code([]byte(c.src), parse.Options{})
		if (f == nil) != c.ok {
			t.Errorf("%s of %d bytes: %.300v", c.name, len(c.src), f)
		}
		if f != nil && len(f.Error()) > 6000 {
			t.Errorf("%s of %d bytes: a message of %d bytes", c.name, len(c.src), len(f.Error()))
		}
		if f == nil {
			if once := text.Canonical(p.Term); len(once) < parse.MaxCode {
				roundTripFast(t, once)
			}
		}
	}
	if _, f := parse.Code([]byte("11"), parse.Options{MaxBytes: 1}); f == nil || f.Kind != fault.ParseError {
		t.Errorf("two bytes where one is allowed: %v", f)
	}
	if _, f := parse.Input(make([]byte, parse.MaxInput+1), parse.Data); f == nil || f.In != "input" {
		t.Errorf("an input too long: %v", f)
	}
	if _, f := parse.Input([]byte("["+strings.Repeat("1,", parse.MaxValues)+"1]"), parse.Data); f == nil || !strings.Contains(f.Expected, "values") {
		t.Errorf("too many values: %v", f)
	}
	if _, f := parse.Input([]byte("["+strings.Repeat(`{"x":1},`, 500_000)+"1]"), parse.Term); f == nil || len(f.More) != 4 {
		t.Errorf("many failures: %v", f)
	}
}

func manyKeys(n int, more string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k%d":%d`, i, i)
	}
	return b.String() + more
}

func roundTripFast(t *testing.T, once []byte) {
	t.Helper()
	p, f := parse.Code(once, parse.Options{})
	if f != nil || string(text.Canonical(p.Term)) != string(once) {
		t.Errorf("canonical JSON of %d bytes: %v", len(once), f)
	}
}

// TestMillion: a million numbers are an ordinary input.
func TestMillion(t *testing.T) {
	src := "[" + strings.TrimSuffix(strings.Repeat("123456,", 1_000_000), ",") + "]"
	for _, mode := range []parse.Mode{parse.Auto, parse.Term, parse.Data} {
		if p, f := parse.Input([]byte(src), mode); f != nil || len(p.Term.(*term.List).Items) != 1_000_000 {
			t.Fatal(f)
		}
	}
	// And as a string of JSON, which some clients send.
	p, f := parse.Input([]byte(strconv.Quote(src)), parse.Auto)
	if f != nil || len(p.Term.(*term.List).Items) != 1_000_000 || len(p.Notes) != 1 || len(p.Notes[0]) > 400 {
		t.Fatal(f)
	}
}

// TestArguments: an effect's argument is a term where its keys together are
// those of one form, and a record otherwise.
func TestArguments(t *testing.T) {
	for src, want := range map[string]string{
		`{"path":"a","from":0,"length":10}`:   `{"record":{"from":0,"length":10,"path":"a"}}`,
		`{"length":10}`:                       `{"length":10}`,
		`{"path":"a"}`:                        `{"record":{"path":"a"}}`,
		`{}`:                                  `{"record":{}}`,
		`{"add":[1,2],"sub":[1,2]}`:           `{"record":{"add":[1,2],"sub":[1,2]}}`,
		`{"lam":"x","body":1}`:                `{"body":1,"lam":"x"}`,
		`{"lam":"x","body":1,"to":2}`:         `{"record":{"body":1,"lam":"x","to":2}}`,
		`{"let":[["x",1]],"in":2}`:            `{"app":{"arg":1,"func":{"body":2,"lam":"x"}}}`,
		`{"cond":[[true,1]],"else":2}`:        `{"if":{"cond":true,"else":2,"then":1}}`,
		`{"match":1,"with":[["_",2]],"as":3}`: `{"record":{"as":3,"match":1,"with":[["_",2]]}}`,
		`{"match":1,"with":[1,2],"as":3}`:     `{"record":{"as":3,"match":1,"with":[1,2]}}`,
		`{"eval":1,"with":["a"]}`:             `{"eval":1,"with":["a"]}`,
		`{"a.b":1}`:                           `{"a.b":1}`,
		`{"readFile":1}`:                      `{"fs.read":1}`,
		`{"a.b":1,"c":2}`:                     `{"record":{"a.b":1,"c":2}}`,
		`{"record":{"x":1}}`:                  `{"record":{"x":1}}`,
		`{"call":{"tool":"t","input":1}}`:     `{"call":{"input":1,"tool":"t"}}`,
		`{"in":"./out","record":{"a":1}}`:     ``,
	} {
		p, f := parse.Code([]byte(`{"k.v":`+src+`}`), parse.Options{})
		switch {
		case want == "" && f == nil:
			t.Errorf("%s is read as %s", src, text.Canonical(p.Term))
		case want == "":
		case f != nil:
			t.Errorf("%s: %v", src, f)
		default:
			if got := string(text.Canonical(p.Term)); got != `{"k.v":`+want+`}` {
				t.Errorf("%s is read as %s, want %s", src, got, want)
			}
		}
	}
}

// TestIn: the capability that an effect names is a literal of its own.
func TestIn(t *testing.T) {
	for src, in := range map[string]string{
		`{"k.v":{"in":"./out","path":1}}`:          "./out",
		`{"k.v":{"in":"./out"}}`:                   "./out",
		`{"k.v":{"record":{"in":"./out","a":1}}}`:  "./out",
		`{"k.v":{"path":1}}`:                       "",
		`{"k.v":["in"]}`:                           "",
		`{"k.v":{"put":[{"record":{}},"in","x"]}}`: "",
	} {
		p, f := parse.Code([]byte(src), parse.Options{})
		if f != nil {
			t.Errorf("%s: %v", src, f)
			continue
		}
		e := p.Term.(*term.Effect)
		if e.In != in {
			t.Errorf("%s is in %q, want %q", src, e.In, in)
		}
		if r, ok := e.Arg.(*term.Record); ok {
			for _, field := range r.Fields {
				if field.Key == "in" {
					t.Errorf("%s: in is among the arguments", src)
				}
			}
		}
		again, f := parse.Code(text.Canonical(p.Term), parse.Options{})
		if f != nil || again.Term.(*term.Effect).In != in {
			t.Errorf("%s, written and read: %v", src, f)
		}
	}
	for src, place := range map[string]string{
		`{"k.v":{"in":{"var":"x"},"path":1}}`:   "/k.v/in",
		`[{"k.v":{"in":5}}]`:                    "/0/k.v/in",
		`{"k.v":{"in":""}}`:                     "/k.v/in",
		`{"k.v":{"record":{"in":{"var":"x"}}}}`: "/k.v/record/in",
		`{"quote":{"k.v":{"in":null}}}`:         "/quote/k.v/in",
		`{"eval":1,"with":"a"}`:                 "/with",
		`{"eval":1,"with":["a",{"var":"x"}]}`:   "/with/1",
		`{"call":{"tool":"t","input":1,"x":2}}`: "/call/x",
		`{"call":{"tool":"t"}}`:                 "",
		`{"call":["t",1]}`:                      "",
		`{"par":[]}`:                            "",
		`{"par":{"a":1}}`:                       "",
	} {
		_, f := parse.Code([]byte(src), parse.Options{})
		if f == nil || string(f.At) != place || f.Hint == "" || f.Expected == "" {
			t.Errorf("%s: %v at %q, want a failure at %q", src, f, f.At, place)
		}
	}
	if _, f := parse.Input([]byte(`{"eval":{"quote":1},"with":["a"]}`), parse.Auto); f != nil {
		t.Error(f)
	}
	p, f := parse.Code([]byte(`{"eval":1,"with":["a"],"note":2}`), parse.Options{})
	if f != nil || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], `"note"`) {
		t.Errorf("%v %v", p, f)
	}
}

// TestGrownDigits: what numbers with exponents are written out as has a bound for a source.
func TestGrownDigits(t *testing.T) {
	for _, item := range []string{"1e4000", `{"dec":"1e4000"}`} {
		for n, ok := range map[int]bool{4000: true, 4500: false} {
			src := []byte("[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]")
			_, f := parse.Input(src, parse.Data)
			_, g := parse.Code(src, parse.Options{})
			faults := []*fault.Fault{f, g}
			for _, mode := range []parse.Mode{parse.Auto, parse.Term, parse.Rounded} {
				_, f := parse.Input(src, mode)
				faults = append(faults, f)
			}
			for i, f := range faults {
				if (f == nil) != ok || f != nil && !strings.Contains(f.Message, "more than 16777216 digits") {
					t.Errorf("%d times %s, %d: %v", n, item, i, f)
				}
			}
		}
	}
	if _, f := parse.Input([]byte("["+strings.TrimSuffix(strings.Repeat(strings.Repeat("7", 4000)+".5,", 4000), ",")+"]"), parse.Data); f != nil {
		t.Errorf("digits that are there: %v", f)
	}
}
