package parse_test

import (
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/text"
)

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
		p, f := parse.Input([]byte(src), parse.Auto)
		if f != nil {
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
