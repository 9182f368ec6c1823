package parse_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// stricter reports whether what encoding/json takes may be refused: a lone
// surrogate, invalid UTF-8, a bound.
func stricter(src []byte, f *fault.Fault) bool {
	switch {
	case !utf8.Valid(src), strings.Contains(f.Expected, "surrogate"), strings.Contains(f.Expected, "at most"):
		return true
	}
	return false
}

// agree holds our reader against encoding/json on whether src is JSON.
func agree(t *testing.T, src []byte) {
	t.Helper()
	_, f := parse.Input(src, parse.Data)
	isJSON := f == nil || f.Line == 0
	valid := json.Valid(src) || len(src) == 0
	if isJSON && !valid {
		t.Errorf("%q isn't JSON and is read", src)
	}
	if !isJSON && valid && !stricter(src, f) {
		t.Errorf("%q is JSON and is refused: %v", src, f)
	}
}

func TestJSON(t *testing.T) {
	for _, src := range []string{
		``, ` `, `0`, `-0`, `-`, `--1`, `00`, `01`, `-01`, `1.`, `.1`, `1.5`, `1e`, `1e+`, `1E-5`, `1e5.5`, `0x1`, `1 `, ` 1`, "\ufeff1", "1\x00", "\v1", "\u00a01",
		`"`, `""`, `"a`, `"\"`, `"\\"`, `"\u"`, `"\u12"`, `"\u123g"`, `"\u1234"`, `"\ud800"`, `"\ud800\u0041"`, `"\udc00"`, `"\ud83d\ude00"`, `"\ud83d\ud83d"`, "\"\x1f\"", "\"\x7f\"", "\"\xff\"", "\"\xc3\"", `"\a"`,
		`[`, `]`, `[]`, `[ ]`, `[,]`, `[1,]`, `[1,,2]`, `[1 2]`, `[[]`, `[]]`, `[}`, `{`, `}`, `{}`, `{ }`, `{,}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1,,"b":2}`, `{"a":1 "b":2}`, `{"a" 1}`, `{1:1}`, `{]`, `{"a":1]`,
		`true`, `tru`, `truex`, `false`, `fals`, `null`, `nul`, `nulll`, `True`, `NaN`, `[true,false,null]`, `{"a":[{"b":[]}]}`, `1 2`, `"a" "b"`, `{} {}`,
	} {
		agree(t, []byte(src))
	}
}

// TestJSONMutated: programs with a few bytes changed are JSON to us exactly
// when they are to encoding/json.
func TestJSONMutated(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const alphabet = `{}[]:,"\ 0123456789.eE+-tfnulx/` + "\n\x01\xc3\xa9"
	for range 30_000 {
		src := []byte(gen.Term(r.IntN, 12, gen.Options{Wrong: 100}))
		for range 1 + r.IntN(2) {
			i := r.IntN(len(src))
			switch r.IntN(3) {
			case 0:
				src[i] = alphabet[r.IntN(len(alphabet))]
			case 1:
				src = append(src[:i], src[i+1:]...)
			default:
				src = append(src[:i], append([]byte{alphabet[r.IntN(len(alphabet))]}, src[i:]...)...)
			}
			if len(src) == 0 {
				break
			}
		}
		agree(t, src)
	}
}

// TestStrings: what encoding/json reads from a string, so do we.
func TestStrings(t *testing.T) {
	for _, src := range []string{`"a"`, `"\"\\\/\b\f\n\r\t"`, `"\u0000\u001f\u00e9\u2028\uFFFD"`, `"\ud83d\ude00x\uD83D\uDE00"`, "\"é😀\x7f\"", `""`} {
		var want string
		must.NoError(t, json.Unmarshal([]byte(src), &want))
		p, f := parse.Code([]byte(src), parse.Options{})
		if f != nil || p.Term.(*term.Str).Value != want {
			t.Errorf("%s: %v %v", src, p, f)
		}
	}
}

// at follows a pointer through JSON.
func at(t *testing.T, src []byte, p fault.Pointer) json.RawMessage {
	t.Helper()
	rest := string(p)
	for rest != "" {
		token, tail, _ := strings.Cut(rest[1:], "/")
		rest = ""
		if strings.Contains(string(p), "/"+token+"/"+tail) && tail != "" {
			rest = "/" + tail
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		var list []json.RawMessage
		var object map[string]json.RawMessage
		switch {
		case json.Unmarshal(src, &list) == nil:
			i := 0
			for _, c := range token {
				i = i*10 + int(c-'0')
			}
			if i >= len(list) {
				return nil
			}
			src = list[i]
		case json.Unmarshal(src, &object) == nil:
			src = object[token]
		default:
			return nil
		}
	}
	return src
}

// TestLocate: the pointer of every term leads to where the term begins, from
// the whole source and from every term around it.
func TestLocate(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	places := 0
	longest := must.Full(1_000, 1<<20)
	for range 60 {
		src := []byte(" " + strings.ReplaceAll(gen.Term(r.IntN, 12, gen.Options{Wrong: 30, Records: true, Effects: true}), ":", " : "))
		if len(src) > longest {
			continue
		}
		p, f := parse.Code(src, parse.Options{})
		must.NoFault(t, f)
		var around []term.Term
		var visit func(x term.Term)
		visit = func(x term.Term) {
			around = append(around, x)
			for _, root := range append([]term.Term{nil}, around...) {
				from, doc := 0, json.RawMessage(src)
				if root != nil {
					from = root.Pos()
					doc = at(t, src, locate(p.Source, 0, from))
				}
				if root != nil && (x.Pos() < from || x.Pos() >= from+len(doc)) {
					// What sugar is read as may lie around its parts.
					continue
				}
				pointer := locate(p.Source, from, x.Pos())
				if got := at(t, doc, pointer); len(got) == 0 || !strings.HasPrefix(string(src[x.Pos():]), strings.TrimSpace(string(got))) {
					t.Fatalf("%s from %d leads to %s, not to %s", pointer, from, got, src[x.Pos():])
				}
				places++
			}
			for _, part := range parts(x) {
				visit(part)
			}
			around = around[:len(around)-1]
		}
		visit(p.Term)
	}
	if places < 1000 {
		t.Errorf("only %d places", places)
	}
}

// parts are the terms directly inside a term.
func parts(x term.Term) []term.Term {
	switch x := x.(type) {
	case *term.Lam:
		return []term.Term{x.Body}
	case *term.App:
		return []term.Term{x.Func, x.Arg}
	case *term.If:
		return []term.Term{x.Cond, x.Then, x.Else}
	case *term.List:
		return x.Items
	case *term.Record:
		var all []term.Term
		for _, f := range x.Fields {
			all = append(all, f.Value)
		}
		return all
	case *term.Quote:
		return []term.Term{x.Body}
	case *term.Continue:
		return []term.Term{x.Input}
	case *term.Effect:
		return []term.Term{x.Arg}
	case *term.Prim:
		return x.Args
	}
	return nil
}

func TestAt(t *testing.T) {
	p, _ := parse.Code([]byte(`{"add":[1, {"record":{"a/b~":{"var":"q"}}}]}`), parse.Options{})
	inner := p.Term.(*term.Prim).Args[1].(*term.Record).Fields[0].Value
	f := fault.New(fault.Unbound, "q")
	parse.At(f, p.Source, 0, inner.Pos())
	if f.At != "/add/1/record/a~1b~0" || f.In != "code" || f.Fragment != `{"var":"q"}` {
		t.Errorf("%+v", f)
	}
	if locate(p.Source, 0, 3) != "" || locate(nil, 0, 3) != "" || locate(p.Source, 0, 9999) != "" {
		t.Error("a place that is none")
	}
}

// FuzzParse: nothing panics, what is read agrees with encoding/json, and
// canonical JSON reads as the same term.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`, `{"if":{"cond":{"lte":[1,2]},"then":"a\u00e9","else":null}}`,
		`{"app":[{"lam":"a","body":{"lam":"b","body":[1,2.5,-0.5e1]}},1,2]}`, `{"record":{"a":{"quote":{"cons":[1,{"nil":0}]}}}}`,
		`{"fs.read":{"path":{"concat":["a","b"]}}}`, `{"continue":{"input":{"self":true}}}`, `{"add":[1],"sub":[5,2],"zzz":{}}`,
		`{"pair":["(- 0x1F)","[1,\"2\"]"]}`, `{"a":1,"a":2}`, `{"int":"123456789012345678901"}`, `{"lam":"n","body":{"continue":{"input":1}}}`,
		`[[[[{"eval":{"code_of":{"var":"x"}}}]]]]`, `{"add":[1,2`, `"\ud83d\ude00"`, `{"fold":[1,2,3],"Fold":1}`, `{"if":[1,2,3]}`, `{"code_of":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		agree(t, src)
		for _, o := range []parse.Options{{}, {Tool: "t"}} {
			p, bad := parse.Code(src, o)
			if bad != nil {
				if bad.Kind != fault.ParseError || bad.Hint == "" || bad.Message == "" || bad.Expected == "" || len(bad.More) > 4 || !utf8.ValidString(bad.Error()) {
					t.Errorf("%q: %#v", src, bad)
				}
				continue
			}
			roundTrip(t, p.Term)
			for _, x := range parts(p.Term) {
				locate(p.Source, p.Term.Pos(), x.Pos())
			}
			text.Quoted(p.Term)
		}
		for _, mode := range []parse.Mode{parse.Auto, parse.Term, parse.Data} {
			p, bad := parse.Input(src, mode)
			if bad != nil {
				continue
			}
			// What an input was read as is itself read the same.
			again, bad := parse.Input(p.Source.Text, mode)
			if bad != nil || !reflect.DeepEqual(strip(p.Term), strip(again.Term)) {
				t.Errorf("%q is read as %s, and that otherwise: %v", src, p.Source.Text, bad)
			}
		}
	})
}

// locate returns where a fault at an offset of a source is, relative to the term at root.
func locate(src *term.Source, root, pos int) fault.Pointer {
	var f fault.Fault
	parse.At(&f, src, root, pos)
	return f.At
}

func number(t *testing.T, src string) string {
	t.Helper()
	p, f := parse.Input([]byte(src), parse.Term)
	if f != nil {
		t.Fatalf("%s: %v", src, f)
	}
	switch n := p.Term.(type) {
	case *term.Int:
		return fmt.Sprint(n.Value)
	case *term.Big:
		if n.Value.IsInt64() {
			t.Errorf("%s is big, and fits 64 bits", src)
		}
		return n.Value.String()
	}
	t.Fatalf("%s is no number", src)
	return ""
}

func TestRounding(t *testing.T) {
	for src, want := range map[string]string{
		"2.5": "2", "3.5": "4", "-2.5": "-2", "-3.5": "-4", "0.5": "0", "-0.5": "0", "1.5": "2", "0.49999": "0",
		"0.5000000000000000000000001": "1", "-0.5000000000000000000000001": "-1", "2.4999999999999999999999": "2",
		"9.5": "10", "99.5": "100", "99.51": "100", "0.9": "1", "100.0": "100", "-0.0": "0", "-0": "0", "1e3": "1000", "1.25e1": "12", "1.35e1": "14",
		"125e-1": "12", "135e-1": "14", "5e-1": "0", "15e-1": "2", "1e-5": "0", "0e10": "0", "0.000": "0", "12345678901234567890.5": "12345678901234567890",
		"9223372036854775807": "9223372036854775807", "9223372036854775807.5": "9223372036854775808", "-9223372036854775808": "-9223372036854775808",
		"9223372036854775808": "9223372036854775808", "999999999999999999": "999999999999999999", "1e19": "10000000000000000000", "1.5e400": "15" + strings.Repeat("0", 399),
		"50000000000000000.5e-17": "1",
	} {
		if got := number(t, src); got != want {
			t.Errorf("%s is %s, want %s", src, got, want)
		}
	}
}

// TestRoundingExact holds rounding against rational arithmetic.
func TestRoundingExact(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	half := big.NewRat(1, 2)
	for range 20_000 {
		src := fmt.Sprintf("%d.%0*d", r.IntN(1000)-500, 1+r.IntN(3), r.IntN(10))
		if r.IntN(3) == 0 {
			src += fmt.Sprintf("e%+d", r.IntN(9)-4)
		}
		x, ok := new(big.Rat).SetString(src)
		if !ok {
			t.Fatal(src)
		}
		// The floor, then up if more than half is left, or half and it is odd.
		want := new(big.Int).Div(x.Num(), x.Denom())
		rest := new(big.Rat).Sub(x, new(big.Rat).SetInt(want))
		if c := rest.Cmp(half); c > 0 || c == 0 && want.Bit(0) == 1 {
			want.Add(want, big.NewInt(1))
		}
		if got := number(t, src); got != want.String() {
			t.Fatalf("%s is %s, want %s", src, got, want)
		}
		p, _ := parse.Input([]byte(src), parse.Term)
		if exact := rest.Sign() == 0; exact != (len(p.Notes) == 0) {
			t.Fatalf("%s has notes %q", src, p.Notes)
		}
	}
}

func TestDigits(t *testing.T) {
	nines := strings.Repeat("9", 4096)
	for _, src := range []string{nines, "-" + nines, "1e4095", "1." + nines[1:], "0." + nines[1:] + "e-4096"} {
		number(t, src)
	}
	for _, src := range []string{nines + "9", "1e4096", "1e5000", "1e1000000000", "1e99999999999999999999", "1e-4097", "0." + nines, "10e4095"} {
		_, f := parse.Code([]byte(src), parse.Options{})
		if f == nil || !strings.Contains(f.Expected, "4096 digits") {
			t.Errorf("%.20s…: %v", src, f)
		}
	}
}

// TestSugar: sugar is read as the operations it stands for, with names that
// are nobody else's.
func TestSugar(t *testing.T) {
	for src, want := range map[string]string{
		`{"lam":["x","y"],"body":{"var":"y"}}`:                          `{"body":{"body":{"var":"y"},"lam":"y"},"lam":"x"}`,
		`{"let":[["x",1],["y",{"var":"x"}]],"in":{"var":"y"}}`:          `{"app":{"arg":1,"func":{"body":{"app":{"arg":{"var":"x"},"func":{"body":{"var":"y"},"lam":"y"}}},"lam":"x"}}}`,
		`{"in":2,"let":[["x",1]]}`:                                      `{"app":{"arg":1,"func":{"body":2,"lam":"x"}}}`,
		`{"cond":[[true,1],[false,2]],"else":3}`:                        `{"if":{"cond":true,"else":{"if":{"cond":false,"else":3,"then":2}},"then":1}}`,
		`{"match":5,"with":[["_",1]]}`:                                  `{"app":{"arg":5,"func":{"body":1,"lam":"match"}}}`,
		`{"match":5,"with":[[{"var":"_"},{"var":"match"}]]}`:            `{"app":{"arg":5,"func":{"body":{"var":"match"},"lam":"match1"}}}`,
		`{"match":5,"with":[[{"var":"match"},1]]}`:                      `{"app":{"arg":5,"func":{"body":{"app":{"arg":{"var":"match1"},"func":{"body":1,"lam":"match"}}},"lam":"match1"}}}`,
		`{"match":5,"with":[["_",{"quote":{"lam":"match","body":1}}]]}`: `{"app":{"arg":5,"func":{"body":{"quote":{"body":1,"lam":"match"}},"lam":"match1"}}}`,
		`{"match":5,"with":[[1,2]]}`:                                    `{"app":{"arg":5,"func":{"body":{"if":{"cond":{"equal":[{"var":"match"},1]},"else":{"no_match":{"var":"match"}},"then":2}},"lam":"match"}}}`,
		`{"self":{"var":"n"}}`:                                          `{"app":{"arg":{"var":"n"},"func":{"self":true}}}`,
		`{"self":[{"self":null},false]}`:                                `{"app":{"arg":[{"self":true},false],"func":{"self":true}}}`,
		`{"analyze":{"quote":1}}`:                                       `{"analyze":[{"quote":1}]}`,
		`{"analyze":[{"quote":1}]}`:                                     `{"analyze":[{"quote":1}]}`,
		`{"get":[{"record":{}},"a"]}`:                                   `{"get":[{"record":{}},"a"]}`,
		`{"get":[{"record":{}},"a",1]}`:                                 `{"get":[{"record":{}},"a",1]}`,
		`[{"dec":"1.50"},{"dec":"-0.0"},{"dec":"1e2"},{"dec":"25e-1"}]`: `[{"dec":"1.50"},{"dec":"0.0"},{"dec":"100"},{"dec":"2.5"}]`,
		`{"map":[{"var":"f"},[]]}`:                                      `{"map":[{"var":"f"},[]]}`,
		`{"kv.put":{"values":[1],"sort":"up"}}`:                         `{"kv.put":{"record":{"sort":"up","values":[1]}}}`,
		`{"kv.put":{"sort":[2,1]}}`:                                     `{"kv.put":{"sort":[2,1]}}`,
	} {
		p, f := parse.Code([]byte(src), parse.Options{})
		if f != nil {
			t.Errorf("%s: %v", src, f)
			continue
		}
		got := string(text.Canonical(p.Term))
		if got != want {
			t.Errorf("%s is read as\n%s, want\n%s", src, got, want)
		}
		again, f := parse.Code([]byte(got), parse.Options{})
		if f != nil || string(text.Canonical(again.Term)) != got {
			t.Errorf("%s isn't read back: %v", got, f)
		}
	}
}

// TestPairNote: a function of two parameters that is passed one pair is noted, and
// stays as it is.
func TestPairNote(t *testing.T) {
	for src, want := range map[string]string{
		`{"fold":[{"lam":["a","x"],"body":{"var":"a"}},0,[1]]}`:                          `/fold/0: fold passes its function one pair; take its parts with {"lam":{"pair":[{"var":"a"},{"var":"x"}]},"body":T}`,
		`{"map":[{"lam":["k","v"],"body":{"var":"v"}},{"entries":{"record":{}}}]}`:       `/map/0: map passes its function one pair; take its parts with {"lam":{"pair":[{"var":"k"},{"var":"v"}]},"body":T}`,
		`{"map":[{"lam":["k","v"],"body":{"var":"v"}},[1]]}`:                             ``,
		`{"fold":[{"lam":{"pair":[{"var":"a"},{"var":"x"}]},"body":{"var":"a"}},0,[1]]}`: ``,
	} {
		p, f := parse.Code([]byte(src), parse.Options{})
		if f != nil {
			t.Errorf("%s: %v", src, f)
		} else if got := strings.Join(p.Notes, "\n"); got != want {
			t.Errorf("%s has the notes %q, not %q", src, got, want)
		}
	}
}

// TestNamesInInputs: the name of a newer operation is a key like others where
// the object isn't written as that operation is.
func TestNamesInInputs(t *testing.T) {
	for src, want := range map[string]string{
		`{"count":5,"name":"a"}`:                `{"record":{"count":5,"name":"a"}}`,
		`{"map":5}`:                             `{"record":{"map":5}}`,
		`{"match":"a"}`:                         `{"record":{"match":"a"}}`,
		`{"match":1,"with":2,"x":3}`:            `{"record":{"match":1,"with":2,"x":3}}`,
		`{"get":[1,2,3,4]}`:                     `{"record":{"get":[1,2,3,4]}}`,
		`{"get":[{"a":1},"a"]}`:                 `{"get":[{"record":{"a":1}},"a"]}`,
		`{"dec":"1.50"}`:                        `{"dec":"1.50"}`,
		`{"dec":5}`:                             `{"record":{"dec":5}}`,
		`{"dec":"1.50","x":"1.50"}`:             `{"record":{"dec":2,"x":2}}`,
		`["{\"dec\":\"1.50\"}","1.50"]`:         `[{"dec":"1.50"},2]`,
		`{"let":[["a",1]],"in":{"var":"a"}}`:    `{"app":{"arg":1,"func":{"body":{"var":"a"},"lam":"a"}}}`,
		`{"quote":{"get":[{"record":{}},"a"]}}`: `{"quote":{"get":[{"record":{}},"a"]}}`,
	} {
		if p, f := parse.Input([]byte(src), parse.Auto); f != nil {
			t.Errorf("%s: %v", src, f)
		} else if got := string(text.Canonical(p.Term)); got != want {
			t.Errorf("%s is read as %s, want %s", src, got, want)
		}
	}
	if p, f := parse.Input([]byte(`{"dec":"1.50"}`), parse.Data); f != nil || string(text.Canonical(p.Term)) != `{"dec":"1.50"}` {
		t.Errorf("as data: %v %v", p, f)
	}
	if p, f := parse.Input([]byte(`{"dec":"x"}`), parse.Data); f != nil || string(text.Canonical(p.Term)) != `{"record":{"dec":"x"}}` {
		t.Errorf("as data: %v %v", p, f)
	}
}

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
