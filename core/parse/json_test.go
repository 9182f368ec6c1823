package parse_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/core/fault"
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
		if err := json.Unmarshal([]byte(src), &want); err != nil {
			t.Fatal(err)
		}
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
	longest := 1_000
	if os.Getenv("PIF_FULL") != "" {
		longest = 1 << 20
	}
	for range 60 {
		src := []byte(" " + strings.ReplaceAll(gen.Term(r.IntN, 12, gen.Options{Wrong: 30, Records: true, Effects: true}), ":", " : "))
		if len(src) > longest {
			continue
		}
		p, f := parse.Code(src, parse.Options{})
		if f != nil {
			t.Fatal(f)
		}
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
				got := at(t, doc, pointer)
				if len(got) == 0 || !strings.HasPrefix(string(src[x.Pos():]), strings.TrimSpace(string(got))) {
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
