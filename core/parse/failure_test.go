package parse_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// TestFailures: each failure has its place, says what is wrong, and hints at a
// term that is right.
func TestFailures(t *testing.T) {
	for _, c := range []struct{ src, at, message, near, hint string }{
		{`{}`, ``, `empty object`, ``, `{"record":{}}`},
		{`[1,{"foo":1}]`, `/1`, `unknown operation "foo"`, ``, `{"record":{"foo":1}}`},
		{`{"b":1,"a":2}`, ``, `keys "a", "b"`, ``, `{"record":{"b":1,"a":2}}`},
		{`{"ADD":[1,2]}`, ``, `unknown operation "ADD"`, `add`, `{"add":[2,3]}`},
		{`{"not":{"plus":[1,2]}}`, `/not`, `unknown operation "plus"`, `add`, `{"add":[2,3]}`},
		{`{"neq":[1,{"var":"x"}]}`, ``, `unknown operation "neq"`, ``, `Write it as {"not":{"eq":[1,{"var":"x"}]}}.`},
		{`{"ne":["a",{"var":"x"}]}`, ``, `unknown operation "ne"`, ``, `Write it as {"not":{"equal":["a",{"var":"x"}]}}.`},
		{`{"not_equal":1}`, ``, `unknown operation "not_equal"`, ``, `Write it as {"not":{"eq":[A,B]}}.`},
		{`{"lexgth":[1]}`, ``, `unknown operation "lexgth"`, `length`, `{"length":[1,2,3]}`},
		{`{"let":1,"in":2}`, ``, `let is written {"let":[["x",T],…],"in":T}, not with the number 1`, ``, `{"let":[["x",2]`},
		{`{"let":[["x",1]]}`, ``, `let lacks "in"`, ``, `{"let":[["x",2]`},
		{`{"let":[["x",1],["y"]],"in":2}`, `/let/1`, `each binding is ["name",T]`, ``, `{"let":[["x",2]`},
		{`{"let":[],"in":2,"x":1}`, ``, `"let" stands alone`, ``, ``},
		{`{"cond":[[true,1,2]],"else":2}`, `/cond/0`, `each branch is [CONDITION,T]`, ``, `{"cond":[[`},
		{`{"cond":[[true,{"add":[1]}]],"else":2}`, `/cond/0/1`, `add takes 2 operands, got 1`, ``, ``},
		{`{"match":1,"with":[[{"add":[1,2]},3]]}`, `/with/0/0`, `is no pattern`, ``, `Bind the value`},
		{`{"match":1,"with":[[[{"var":"a"},{"var":"a"}],3]]}`, `/with/0/0/1`, `"a" twice`, ``, ``},
		{`{"get":[1]}`, ``, `get takes 2 or 3 operands, got 1`, ``, ``},
		{`{"put":[1,2,3],"x":1}`, ``, `"put" stands alone`, ``, ``},
		{`{"dec":"1.2.3"}`, `/dec`, `is no decimal`, ``, `{"dec":"3.14"}`},
		{`{"dec":1.5}`, ``, `dec takes a name in quotes, not the number 1.5`, ``, ``},
		{`{"analyze":[1,2]}`, ``, `analyze is written {"analyze":[code]}`, ``, ``},
		{`{"add":[1]}`, ``, `add takes 2 operands, got 1`, ``, `{"add":[2,3]}`},
		{`{"add":[1,2,3]}`, ``, `add takes 2 operands, got 3`, ``, `{"add":[A,{"add":[B,C]}]}`},
		{`{"sub":[1,2,3]}`, ``, `sub takes 2 operands, got 3`, ``, `{"sub":[2,3]}`},
		{`{"eq":5}`, ``, `eq takes an array of 2 operands, not the number 5`, ``, `{"eq":[2,2]}`},
		{`{"fold":[1,2]}`, ``, `fold takes 3 operands, got 2`, ``, `{"fold":[{"lam":"p"`},
		{`{"pair":{"var":"x"}}`, ``, `pair takes an array of 2 operands, not the object {"var":"x"}`, ``, `{"pair":[1,"a"]}`},
		{`{"var":1}`, ``, `var takes a name in quotes`, ``, `{"var":"1"}`},
		{`{"lam":"x"}`, ``, `lam lacks "body"`, ``, `{"lam":"x","body":T}`},
		{`{"lam":"x","boddy":1}`, ``, `but has "boddy"`, `body`, `{"lam":"x","body":T}`},
		{`{"lam":["x",1],"body":1}`, ``, `an array of names`, ``, `{"lam":["x","y"],"body":T}`},
		{`{"lam":5,"body":1}`, ``, `in quotes, not the number 5`, ``, `{"lam":"x","body":T}`},
		{`{"app":{"func":1}}`, ``, `app lacks "arg"`, ``, `{"app":{"func":`},
		{`{"app":[1]}`, ``, `app takes 2 operands, got 1`, ``, `{"app":{"func":`},
		{`{"app":[]}`, ``, `app takes 2 operands, got 0`, ``, `{"app":{"func":`},
		{`{"if":[true,1,2]}`, ``, `if takes an object with "cond", "then" and "else"`, ``, `{"if":{"cond":`},
		{`{"if":{"cond":true,"then":1,"esle":2}}`, ``, `if lacks "else"`, `else`, `{"if":{"cond":`},
		{`{"cons":{"head":1}}`, ``, `cons lacks "tail"`, ``, `{"cons":{"head":1,`},
		{`{"cons":[1]}`, ``, `cons takes 2 operands, got 1`, ``, `{"cons":{"head":1,`},
		{`{"continue":{}}`, ``, `continue lacks "input"`, ``, `{"continue":{"input":1}}`},
		{`{"code_of":1}`, ``, `code_of takes a tool's name`, ``, `{"code_of":"square"}`},
		{`{"record":[1]}`, ``, `record takes an object`, ``, `{"record":{`},
		{`{"record":{"a":1},"b":2}`, ``, `"record" stands alone`, ``, `Take "b" away`},
		{`{"fs.read":{},"add":[1,2]}`, ``, `"fs.read" stands alone`, ``, `Take "add" away`},
		{`{"add":[1,2],"fetch":{}}`, ``, `"fetch" stands alone`, ``, `Take "add" away`},
		{`{".x":1}`, ``, `no kind or no verb`, ``, `{"fs.read":`},
		{`{"quote":{"zzz":1}}`, `/quote`, `unknown operation "zzz"`, ``, ``},
		{`{"if":{"cond":true,"then":1,"else":{"bogus":1}}}`, `/if/else`, `unknown operation "bogus"`, ``, ``},
		{`{"a/b~c":[{}]}`, ``, `unknown operation "a/b~c"`, ``, ``},
		{`{"record":{"a/b~c":[{}]}}`, `/record/a~1b~0c/0`, `empty object`, ``, ``},
		{`{"not":true,"x":1,"not":false}`, `/not`, `"not" stands twice`, ``, `Take one of the two away`},
		{`{"n\u006ft":true,"not":false}`, `/not`, `"not" stands twice`, ``, ``},
		{`{"add":[1,2`, `/add/2`, `2 more closing bracket(s): ]}`, ``, `Append ]}`},
		{`{"add":[1,2}}`, `/add/2`, `expected "," or "]", got "}"`, ``, `write "]" before "}"`},
		{`{"add":[1,2]}}`, ``, `expected the end, got "}"`, ``, `Take away`},
		{`{"add":[1,2],}`, `/add`, `expected a key in double quotes`, ``, `no comma before }`},
		{`{add:[1,2]}`, ``, `expected a key in double quotes, got "add"`, ``, ``},
		{`{"not":True}`, `/not`, `got "True"`, ``, `Write true in lower case`},
		{`['a']`, `/0`, `got "'"`, ``, `double quotes`},
		{`[1,]`, `/1`, `got "]"`, ``, `Take the comma before ] away`},
		{`[007]`, `/0`, `leading zeros`, ``, `Write 7, not 007`},
		{"[\"a\nb\"]", `/0`, `control character`, ``, `\n`},
		{`["\q"]`, `/0`, `an escape`, ``, `\\`},
		{`["\ud800"]`, `/0`, `surrogate`, ``, ``},
		{`["abc]`, `/0`, `closing double quote`, ``, ``},
		{`{"a":{"b":[1,{"c"`, `/a/b/1/c`, `}]}}`, ``, `Append }]}}`},
		{``, ``, `the end of the text`, ``, ``},
	} {
		_, f := parse.Code([]byte(c.src), parse.Options{})
		if f == nil {
			t.Errorf("%s is read", c.src)
			continue
		}
		if f.Kind != fault.ParseError || string(f.At) != c.at || f.In != "code" || !strings.Contains(f.Message, c.message) || f.Near != c.near || !strings.Contains(f.Hint, c.hint) || f.Expected == "" {
			t.Errorf("%s\n  %v\n  near %q, expected %q, got %q", c.src, f, f.Near, f.Expected, f.Got)
		}
	}
}

// TestSyntaxPlace: broken JSON is placed by line and column, in characters.
func TestSyntaxPlace(t *testing.T) {
	_, f := parse.Code([]byte("{\n  \"é😀\": [1,\n    \"ß\" 2]\n}"), parse.Options{})
	if f == nil || f.Line != 3 || f.Col != 9 || f.At != "/é😀/2" || !strings.Contains(f.Fragment, `"ß" 2`) {
		t.Errorf("%+v", f)
	}
}

// TestMore: up to five failures at once, in the order of the source, also those
// inside an operation that is itself wrong.
func TestMore(t *testing.T) {
	places := func(src string) []string {
		_, f := parse.Code([]byte(src), parse.Options{})
		if f == nil {
			return nil
		}
		at := []string{string(f.At)}
		for _, m := range f.More {
			if m.Fragment == "" || m.Kind != fault.ParseError || m.In != "code" {
				t.Errorf("%+v", m)
			}
			at = append(at, string(m.At))
		}
		return at
	}
	for src, want := range map[string][]string{
		`[{"a":1},1,{"add":[1]},{"if":{"cond":{"c":1},"then":1,"else":{"d":1}}},{"e":1},{"f":1}]`: {"/0", "/2", "/3/if/cond", "/3/if/else", "/4"},
		`{"add":[{"x":1},{"not":{"y":1}},3]}`:                                                     {"", "/add/0", "/add/1/not"},
		`{"if":{"cond":{"x":1},"then":1}}`:                                                        {"", "/if/cond"},
		`{"record":{"z":{"q":1},"b":1,"b":2}}`:                                                    {"/record/z", "/record/b"},
		`{"app":[{"q":1}]}`:                                                                       {"", "/app/0"},
		`[{"a":1,"a":1},{"b":1,"b":1},{"c":1,"c":1},{"d":1},{"e":1,"e":1}]`:                       {"/0", "/0/a", "/1", "/1/b", "/2"},
	} {
		if got := places(src); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", src, got, want)
		}
	}
}

// TestFragments are short, on one line, and valid UTF-8.
func TestFragments(t *testing.T) {
	_, f := parse.Code([]byte(`{"foo":["`+strings.Repeat("😀", 500)+"\",\n\t1]}"), parse.Options{})
	if f == nil || len(f.Fragment) > 90 || !strings.HasSuffix(f.Fragment, "…") || strings.ContainsAny(f.Fragment, "\n\uFFFD") {
		t.Errorf("%+v", f)
	}
}

// TestNotes: what is read otherwise than it may have been meant.
func TestNotes(t *testing.T) {
	for src, want := range map[string][]string{
		`{"add":[1,2]}`:                                 nil,
		`{"body":{"add":[3.14,2]},"lam":"x"}`:           nil,
		`[100.0,1e2]`:                                   nil,
		`{"add":[1,2],"zzz":{"foo":1}}`:                 {`/zzz: the key "zzz" was ignored beside "add"`},
		`{"not":true,"nott":1}`:                         {`/nott: the key "nott" was ignored beside "not"; did you mean "not"?`},
		`{"sub":[5,1],"add":[1,2]}`:                     {`/sub: the key "sub" was ignored beside "add"; an object is one operation, and this one comes first`},
		`{"add":[1],"sub":[5,2]}`:                       {`/add: the key "add" was ignored beside "sub"; it has not the shape add needs: {"add":[a,b]}`},
		`{"if":{"cond":true,"then":1,"else":2,"x":{}}}`: {`/if/x: the key "x" was ignored beside "if"`},
		`{"lam":"x","body":1,"add":[1.5,2]}`:            {`/add: the key "add" was ignored beside "lam"; an object is one operation, and this one comes first`},
		`{"nil":{"zzz":1.5}}`:                           nil,
		`{"add":[1,2],"record":{}}`:                     {`/record: the key "record" was ignored beside "add"; an object is one operation, and this one comes first`},
	} {
		p, f := parse.Code([]byte(src), parse.Options{})
		if f != nil || !reflect.DeepEqual(p.Notes, want) {
			t.Errorf("%s: %q, want %q, %v", src, p.Notes, want, f)
		}
	}
	p, f := parse.Input([]byte("["+strings.Repeat("1.5,", 1000)+"1]"), parse.Term)
	if f != nil || len(p.Notes) != 21 || p.Notes[20] != "and 980 more like these" {
		t.Errorf("%q %v", p.Notes, f)
	}
}

// TestContinue: only in tail position of a tool's function.
func TestContinue(t *testing.T) {
	const c = `{"continue":{"input":1}}`
	for src, at := range map[string]string{
		`{"lam":"n","body":` + c + `}`:                                                     "ok",
		`{"lam":"a","body":{"lam":"b","body":` + c + `}}`:                                  "ok",
		`{"lam":"n","body":{"if":{"cond":true,"then":` + c + `,"else":` + c + `}}}`:        "ok",
		`{"lam":"n","body":{"app":{"func":{"lam":"x","body":` + c + `},"arg":1}}}`:         "ok",
		`{"lam":"n","body":{"app":[{"lam":"x","body":{"lam":"y","body":` + c + `}},1,2]}}`: "ok",
		`{"lam":"n","body":{"quote":{"add":[1,` + c + `]}}}`:                               "ok",
		`{"if":{"cond":{"var":"x"},"then":1,"else":` + c + `}}`:                            "ok",
		c:                                 "",
		`{"add":[{"var":"x"},` + c + `]}`: "/add/1",
		`{"lam":"n","body":{"add":[1,` + c + `]}}`:                                                    "/body/add/1",
		`{"lam":"n","body":[1,` + c + `]}`:                                                            "/body/1",
		`{"lam":"n","body":{"record":{"a":` + c + `}}}`:                                               "/body/record/a",
		`{"lam":"n","body":{"if":{"cond":` + c + `,"then":1,"else":2}}}`:                              "/body/if/cond",
		`{"lam":"n","body":{"if":{"cond":true,"then":{"lam":"x","body":` + c + `},"else":2}}}`:        "/body/if/then/body",
		`{"lam":"n","body":{"app":{"func":{"lam":"x","body":1},"arg":` + c + `}}}`:                    "/body/app/arg",
		`{"lam":"n","body":{"app":{"func":{"lam":"x","body":{"lam":"y","body":` + c + `}},"arg":1}}}`: "/body/app/func/body/body",
		`{"lam":"n","body":{"app":{"func":` + c + `,"arg":1}}}`:                                       "/body/app/func",
		`{"lam":"n","body":{"fold":[{"lam":"p","body":` + c + `},0,[]]}}`:                             "/body/fold/0/body",
		`{"lam":"n","body":{"continue":{"input":` + c + `}}}`:                                         "/body/continue/input",
		`{"lam":"n","body":{"and":[true,` + c + `]}}`:                                                 "/body/and/1",
		`{"lam":"n","body":{"a.b":` + c + `}}`:                                                        "/body/a.b",
	} {
		_, f := parse.Code([]byte(src), parse.Options{Tool: "t"})
		if at == "ok" {
			if f != nil {
				t.Errorf("%s: %v", src, f)
			}
			continue
		}
		if f == nil || string(f.At) != at || f.Kind != fault.ParseError || !strings.Contains(f.Message, "tail position") || f.Fragment == "" {
			t.Errorf("%s: %v, want it refused at %q", src, f, at)
		}
		if _, f := parse.Code([]byte(src), parse.Options{}); f != nil {
			t.Errorf("%s: inline code: %v", src, f)
		}
	}
}

func TestFree(t *testing.T) {
	for src, want := range map[string][]string{
		`{"mul":[{"var":"x"},2]}`:                                                                {"x"},
		`{"lam":"x","body":{"add":[{"var":"y"},{"var":"x"}]}}`:                                   {"y"},
		`{"add":[{"var":"b"},{"add":[{"var":"a"},{"var":"b"}]}]}`:                                {"b", "a"},
		`{"add":[{"lam":"x","body":{"var":"x"}},{"var":"x"}]}`:                                   {"x"},
		`{"quote":{"var":"x"}}`:                                                                  nil,
		`{"record":{"b":{"var":"q"},"a":[{"var":"p"}]}}`:                                         {"p", "q"},
		`{"if":{"cond":{"var":"a"},"then":{"eval":{"var":"b"}},"else":{"code_of":{"var":"c"}}}}`: {"a", "b", "c"},
		`{"continue":{"input":{"var":"a"}}}`:                                                     {"a"},
		`{"x.y":{"k":{"var":"a"}}}`:                                                              {"a"},
		`{"lam":"x","body":{"lam":"x","body":{"var":"x"}}}`:                                      nil,
	} {
		p, f := parse.Code([]byte(src), parse.Options{})
		must.NoFault(t, f)
		if got := parse.Free(p.Term); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", src, got, want)
		}
	}
}

func TestEffects(t *testing.T) {
	p, f := parse.Code([]byte(`[{"readFile":1},{"kv.put":{"k":{"fs.read":2}}},{"quote":{"net.send":1}},{"fetch":{}}]`), parse.Options{})
	must.NoFault(t, f)
	if got := term.Effects(p.Term); !reflect.DeepEqual(got, []string{"fetch.request", "fs.read", "kv.put"}) {
		t.Errorf("%q", got)
	}
}
