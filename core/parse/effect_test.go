package parse_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

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
