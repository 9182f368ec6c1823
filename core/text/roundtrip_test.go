package text_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/prim/gen"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"pgregory.net/rapid"
)

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// roundTrip: printed and parsed, a term is the same term, and printed again
// the same text.
func roundTrip(t failer, p term.Term) string {
	t.Helper()
	printed := text.Print(p)
	q, f := text.Parse(printed, text.Options{MaxBytes: len(printed) + 1})
	if f != nil {
		t.Fatalf("%v\n%s\nof %s\nprinted\n%s", f, text.Caret(printed, f), text.Canonical(p), printed)
	}
	if a, b := text.Canonical(p), text.Canonical(q.Term); string(a) != string(b) {
		t.Fatalf("%s\nbecame\n%s\nprinted\n%s", a, b, printed)
	}
	if !sameTerm(p, q.Term) {
		t.Fatalf("another kind of node\n%s", printed)
	}
	if again := text.Print(q.Term); string(again) != string(printed) {
		t.Fatalf("printed\n%s\nand then\n%s", printed, again)
	}
	return string(printed)
}

// sameTerm compares kinds of nodes, which canonical JSON might not tell.
func sameTerm(a, b term.Term) bool {
	if fmt.Sprintf("%T", a) != fmt.Sprintf("%T", b) {
		return false
	}
	var left, right []term.Term
	term.Children(a, func(t term.Term) bool { left = append(left, t); return true })
	term.Children(b, func(t term.Term) bool { right = append(right, t); return true })
	if len(left) != len(right) {
		return false
	}
	for i := range left {
		if !sameTerm(left[i], right[i]) {
			return false
		}
	}
	return true
}

// oddTerms is JSON of terms that are hard to print.
var oddTerms = []string{
	`{"lam":"","body":{"var":""}}`, `{"lam":"é","body":{"var":"é"}}`, `{"lam":"a b","body":{"var":"a b"}}`,
	`{"lam":"if","body":{"app":[{"var":"if"},{"var":"then"}]}}`, `{"lam":"self","body":[{"var":"self"},{"self":true}]}`,
	`{"lam":"e\u0301","body":{"var":"e\u0301"}}`, `{"lam":"1x","body":{"var":"1x"}}`, `{"lam":"x-y","body":{"var":"x-y"}}`,
	"{\"lam\":\"`\\\\\\\"\\n\\u0001\",\"body\":{\"var\":\"`\\\\\\\"\\n\\u0001\"}}", `{"lam":"@t","body":{"var":"!a.b"}}`,
	`{"re_replace":["a","(a|b)*",{"lam":"p","body":1}]}`, `{"re_replace":["a","a",{"lam":"p","body":1}]}`,
	// What is quoted doesn't know what is bound around it, nor that a function sees itself.
	`{"app":{"func":{"lam":"f","body":1},"arg":{"lam":"x","body":{"quote":{"last_index_of":[{"var":"f"},{"quote":1}]}}}}}`,
	`{"lam":"::","body":{"var":"//"}}`, `{"var":"length"}`, `{"var":"nil"}`, `{"var":"x"}`, `{"var":"null"}`,
	`{"lam":"length","body":{"length":{"var":"length"}}}`, `{"lam":"nil","body":[{"nil":true},{"var":"nil"}]}`,
	`{"lam":"length","body":{"app":[{"var":"length"},[]]}}`, `{"app":[{"var":"length"},[]]}`,
	`{"lam":"add","body":{"add":[{"var":"add"},1]}}`, `{"lam":"continue","body":{"continue":{"input":{"var":"continue"}}}}`,
	`{"lam":"code_of","body":{"code_of":"x"}}`, `{"lam":"get","body":{"quote":{"length":{"var":"get"}}}}`,
	`{"lam":"eval","body":{"eval":{"quote":{"eval":{"var":"eval"}}}}}`, `{"lam":"record","body":{"var":"record"}}`,
	`{"quote":{"quote":{"quote":{"var":"x"}}}}`, `{"quote":[{"quote":1},{"lam":"x","body":{"quote":{"var":"x"}}}]}`,
	`-1`, `{"sub":[0,1]}`, `{"sub":[0,-1]}`, `{"sub":[-1,-2]}`, `{"sub":[0,{"var":"x"}]}`, `{"sub":[0,{"sub":[0,{"var":"x"}]}]}`,
	`{"sub":[0,{"sub":[0,{"sub":[0,1]}]}]}`, `{"sub":[0,{"app":[1,2]}]}`, `{"app":[-1,2]}`, `{"sub":[0,{"mul":[1,2]}]}`, `{"mul":[{"sub":[0,{"var":"x"}]},-3]}`,
	`{"sub":[0,{"pair":[1,2]}]}`, `{"sub":[0,{"not":true}]}`, `{"sub":[0,{"head":[]}]}`, `{"sub":[0,{"nil":true}]}`,
	`{"sub":[0,{"app":[{"lam":"x","body":1},2]}]}`, `{"sub":[0,{"if":{"cond":true,"then":1,"else":2}}]}`, `{"sub":[0,-9223372036854775808]}`,
	`{"sub":[1,{"sub":[2,3]}]}`, `{"sub":[{"sub":[1,2]},3]}`, `{"add":[1,{"concat":["a",{"mul":[2,{"add":[3,4]}]}]}]}`,
	`{"div":[{"mul":[1,2]},{"mod":[3,4]}]}`, `{"eq":[{"eq":[1,2]},{"lt":[3,4]}]}`, `{"lt":[{"lt":[1,2]},3]}`,
	`{"not":{"eq":[1,2]}}`, `{"not":{"not":{"eq":[1,2]}}}`, `{"eq":[{"not":{"eq":[1,2]}},{"not":true}]}`, `{"not":{"and":[true,false]}}`,
	`{"equal":[{"equal":[1,2]},{"lt":[3,4]}]}`, `{"not":{"equal":[1,2]}}`, `{"not":{"not":{"equal":[1,2]}}}`, `{"equal":[{"not":{"equal":[1,2]}},{"not":true}]}`,
	`{"and":[{"and":[1,2]},{"and":[3,4]}]}`, `{"or":[{"and":[1,{"or":[2,3]}]},{"not":{"or":[4,5]}}]}`, `{"and":[{"lam":"x","body":1},{"lam":"y","body":2}]}`,
	`{"app":[{"lam":"x","body":{"var":"x"}},1]}`, `{"app":[{"lam":"x","body":{"lam":"y","body":1}},1,2]}`,
	`{"app":[{"app":[{"lam":"x","body":{"app":[{"lam":"y","body":1},{"var":"x"}]}},1]},2]}`,
	`{"app":[{"lam":"x","body":{"app":[{"lam":"x","body":{"var":"x"}},{"var":"x"}]}},{"var":"x"}]}`,
	`{"app":[{"lam":"x","body":{"app":[{"lam":"y","body":[1]},{"app":[{"lam":"z","body":2},3]}]}},{"lam":"w","body":4}]}`,
	`{"app":[{"if":{"cond":true,"then":{"var":"f"},"else":{"var":"g"}}},1,[2]]}`, `{"app":["a",1]}`, `{"app":[[1],{"record":{}}]}`, `{"app":[{"record":{}},null]}`,
	`{"app":[{"quote":1},2]}`, `{"app":[{"pair":[1,2]},3]}`, `{"app":[{"self":true},{"self":true}]}`, `{"app":[{"nil":true},1]}`, `{"app":[{"fs.read":1},2]}`,
	`{"app":[{"head":[1]},2]}`, `{"app":[{"eval":1},2]}`, `{"app":[{"add":[1,2]},3]}`, `{"app":[1,{"app":[2,{"app":[3,4]}]}]}`, `{"app":[{"not":true},1]}`,
	`{"pair":[{"pair":[1,2]},{"pair":[3,4]}]}`, `[]`, `{"nil":true}`, `[[],{"nil":true},[{"nil":true}]]`, `null`, `true`, `""`, `"\"\\\u0000\u007f\ud83d\ude00"`,
	`123456789012345678901234567890`, `-123456789012345678901234567890`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`, `1e4000`, `-1e4000`,
	`{"record":{}}`, `{"record":{"":1,"a b":2,"if":3,"é":4,"\"":5,"x.y":6,"add":7,"1":8,"a-b":{"record":{"k":[]}}}}`, `{"record":{"add":[1,2]}}`, `{"record":{"fs.read":1}}`,
	`{"fs.read":{"path":"a"}}`, `{"a.b.c":1}`, `{"a b.c d":null}`, `{"a..b":1}`, `{"a.b.":1}`, `{"é.ü":1}`, `{"if.then":1}`, "{\"a.`\":[1]}", `{"fetch":1}`, `{"a.\u0000":1}`, `{"a.1":1}`,
	`{"fs.read":{"in":"./out","path":{"var":"p"}}}`, `{"fs.read":{"in":"./out"}}`, `{"a.b":{"in":"x","if":1,"j":2,"":3}}`, `{"a.b":{"path":1,"length":2}}`, `{"a.b":{"record":{"in":"x"}}}`, `{"a.b":{"a.b":{"in":"x"}}}`,
	`{"eval":{"var":"q"},"with":["fs.read:./in","kv:a b"]}`, `{"eval":{"quote":{"fs.read":{"in":"x"}}},"with":[]}`, `{"eval":{"eval":1,"with":["a"]},"with":["\"\n"]}`, `{"lam":"eval","body":{"eval":{"var":"eval"},"with":["a"]}}`,
	`{"call":{"tool":"t","input":1}}`, `{"call":{"tool":"a b","input":[1]}}`, `{"call":{"tool":"","input":{"record":{}}}}`, `{"call":{"tool":{"var":"t"},"input":null}}`, `{"lam":"call","body":{"call":{"tool":{"var":"call"},"input":{"call":{"tool":"u-v.1","input":2}}}}}`,
	`{"par":[1]}`, `{"par":[[1]]}`, `{"par":[{"par":[1,2,3]},{"lam":"par","body":{"par":[{"var":"par"}]}}]}`, `{"app":[{"par":[1]},2]}`, `{"app":[{"call":{"tool":"t","input":1}},2]}`,
	`{"code_of":"t"}`, `{"code_of":""}`, `{"code_of":{"var":"x"}}`, `{"code_of":{"code_of":"a"}}`, `{"code_of":{"if":{"cond":true,"then":"a","else":"b"}}}`,
	`{"fold":[{"lam":"a","body":{"lam":"b","body":{"add":[{"var":"a"},{"var":"b"}]}}},0,[1,2,3]]}`, `{"cons":{"head":1,"tail":{"nil":true}}}`,
	`{"if":{"cond":{"if":{"cond":1,"then":2,"else":3}},"then":{"if":{"cond":1,"then":2,"else":3}},"else":{"if":{"cond":1,"then":2,"else":{"if":{"cond":4,"then":5,"else":6}}}}}}`,
	`{"map":[{"lam":"for","body":{"var":"for"}},[1]]}`, `{"app":[{"var":"return"},1]}`, `[{"var":"return"},{"app":[{"lam":"for","body":{"app":[{"var":"for"},{"var":"for"}]}},1]}]`,
	`{"lam":"x","body":{"lam":"x","body":{"lam":"y","body":{"var":"x"}}}}`, `{"eval":{"quote":{"add":[1,{"var":"x"}]}}}`,
	`{"concat":[{"concat":["a","b"]},{"concat":["c","d"]}]}`, `{"length":{"lam":"x","body":{"add":[{"var":"x"},{"if":{"cond":1,"then":2,"else":3}}]}}}`,
}

func TestRoundTripOdd(t *testing.T) {
	for _, src := range oddTerms {
		roundTrip(t, mustParse(t, src).Term)
		quoted := mustParse(t, `{"lam":"x","body":[{"quote":`+src+`},{"fst":`+src+`},{"add":[`+src+`,`+src+`]}]}`)
		roundTrip(t, quoted.Term)
	}
}

// TestRoundTripEverywhere puts every odd term into every place of every other
// row of the table and form.
func TestRoundTripEverywhere(t *testing.T) {
	var around []string
	for i := range prim.Table {
		row := &prim.Table[i]
		for _, x := range row.Examples {
			if _, f := parse.Code([]byte(x.Code), parse.Options{}); f == nil {
				around = append(around, x.Code)
			}
		}
	}
	around = append(around, `{"lam":"x","body":0}`, `{"app":[0,0,0]}`, `{"if":{"cond":0,"then":0,"else":0}}`, `{"add":[0,0]}`, `{"mul":[0,0]}`, `{"lt":[0,0]}`,
		`{"and":[0,0]}`, `{"or":[0,0]}`, `{"not":0}`, `{"concat":[0,0]}`, `{"quote":0}`, `{"record":{"k":0}}`, `[0,0]`, `{"pair":[0,0]}`, `{"app":[{"lam":"y","body":0},0]}`, `{"sub":[0,{"sub":[0,0]}]}`, `{"a.b":0}`)
	for _, a := range around {
		for i := range len(a) {
			if a[i] != '0' || strings.ContainsAny(a[i-min(i, 1):i], "0123456789.a-f\"") || i+1 < len(a) && strings.ContainsAny(a[i+1:i+2], "0123456789.\"") {
				continue
			}
			for _, odd := range oddTerms {
				if p, f := parse.Code([]byte(a[:i]+odd+a[i+1:]), parse.Options{}); f == nil {
					roundTrip(t, p.Term)
				}
			}
		}
	}
}

// TestRoundTripCorpora: the vectors, the corpus and the programs of the
// benchmarks.
func TestRoundTripCorpora(t *testing.T) {
	programs := 0
	try := func(src []byte) {
		if p, f := parse.Code(src, parse.Options{MaxBytes: 1 << 30}); f == nil {
			programs++
			roundTrip(t, p.Term)
		}
	}
	var files []string
	for _, pattern := range []string{"../testdata/corpus/*.jsonl", "../testdata/bench/*.json", os.Getenv("PIF_SEED") + "/*.jsonl", "../../../shared/seed/*.jsonl"} {
		found, _ := filepath.Glob(pattern)
		files = append(files, found...)
	}
	for _, name := range files {
		f, err := os.Open(name)
		must.NoError(t, err)
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<26)
		if strings.HasSuffix(name, ".json") {
			lines.Split(func(data []byte, eof bool) (int, []byte, error) {
				if eof && len(data) > 0 {
					return len(data), data, nil
				}
				return 0, nil, nil
			})
		}
		for lines.Scan() {
			var v any
			if json.Unmarshal(lines.Bytes(), &v) != nil {
				continue
			}
			every(v, func(v any) {
				if b, err := json.Marshal(v); err == nil {
					try(b)
				}
			})
		}
		f.Close()
	}
	if programs < 3000 {
		t.Errorf("only %d terms", programs)
	}
	t.Logf("%d terms of %d files", programs, len(files))
}

// every visits the members of a line, which may hold programs anywhere.
func every(v any, visit func(any)) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, member := range m {
		visit(member)
		every(member, visit)
	}
}

// TestRoundTripGenerated: what the generator makes.
func TestRoundTripGenerated(t *testing.T) {
	n := must.Drawn(800, 50_000) // each twice, with other names of variables
	for seed := range n {
		draw := rand.New(rand.NewPCG(uint64(seed), 11)).IntN
		o := gen.Options{Wrong: 50, Records: true, Effects: true, Tool: seed%2 == 0}
		src := gen.Term(draw, 1+seed%150, o)
		if seed%3 == 0 {
			src, _ = gen.Function(draw, 1+seed%150, o)
		}
		roundTrip(t, mustParse(t, src).Term)
		roundTrip(t, mustParse(t, renamed(src, seed)).Term)
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
		p, f := parse.Code([]byte(gen.Term(draw, 30, gen.Options{Wrong: 50, Records: true, Effects: true})), parse.Options{})
		if f != nil {
			t.Fatalf("%v", f)
		}
		roundTrip(t, p.Term)
	})
}

var boundName = regexp.MustCompile(`"(lam|var)":"([a-z]\w*)"|\["([a-z]\w*)",\{"lam"`)

// renamed gives variables the words that mean something in some places.
func renamed(src string, seed int) string {
	words := strings.Fields("for if in return const var val of else and or not async await let rec match then self null Math JSON Object len str length function def lambda is new while")
	names := map[string]string{}
	return boundName.ReplaceAllStringFunc(src, func(s string) string {
		m := boundName.FindStringSubmatch(s)
		name := m[2] + m[3]
		if names[name] == "" {
			names[name] = words[(seed+7*len(names))%len(words)]
		}
		return strings.Replace(s, `"`+name+`"`, `"`+names[name]+`"`, 1)
	})
}

// TestRoundTripDeep: terms nested as deep as JSON may be.
func TestRoundTripDeep(t *testing.T) {
	for _, c := range []struct {
		open, inner, closer string
		each                int
	}{
		{`[`, ``, `]`, 1}, {`{"head":`, `[]`, `}`, 1}, {`{"not":`, `true`, `}`, 1}, {`{"quote":`, `1`, `}`, 1}, {`{"a.b":`, `1`, `}`, 1},
		{`{"sub":[0,`, `1`, `]}`, 2}, {`{"add":[`, `1`, `,1]}`, 2}, {`{"add":[1,`, `1`, `]}`, 2}, {`{"lam":"x","body":`, `1`, `}`, 1},
		{`{"app":{"func":`, `1`, `,"arg":1}}`, 2}, {`{"app":{"arg":`, `1`, `,"func":1}}`, 2}, {`{"record":{"a":`, `1`, `}}`, 2}, {`{"pair":[1,`, `1`, `]}`, 2},
		{`{"if":{"cond":`, `1`, `,"then":1,"else":1}}`, 2}, {`{"if":{"cond":1,"then":1,"else":`, `1`, `}}`, 2}, {`{"if":{"cond":1,"else":1,"then":`, `1`, `}}`, 2},
		{`{"app":{"func":{"lam":"x","body":`, `1`, `},"arg":1}}`, 3}, {`{"app":{"func":{"lam":"x","body":1},"arg":`, `1`, `}}`, 2},
		{`{"lt":[`, `1`, `,2]}`, 2}, {`{"not":{"and":[true,`, `1`, `]}}`, 3}, {`{"sub":[0,{"head":`, `1`, `}]}`, 3}, {`{"lam":"x","body":{"head":`, `1`, `}}`, 2},
	} {
		n := (parse.MaxDepth - 1) / c.each
		p := mustParse(t, strings.Repeat(c.open, n)+c.inner+strings.Repeat(c.closer, n))
		if printed := text.Print(p.Term); len(printed) > 200*n {
			t.Errorf("%s: %d bytes for %d", c.open, len(printed), n)
		}
		roundTrip(t, p.Term)
	}
}

// FuzzText: no source makes the parser panic; a term that was read is printed
// so that it is read again, and is one that JSON has.
func FuzzText(f *testing.F) {
	for _, src := range append(append([]string{}, textSeeds...), oddTerms...) {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if p, fail := text.Parse([]byte(src), text.Options{Inline: true}); fail != nil {
			checkFault(t, src, fail)
		} else {
			roundTrip(t, p.Term)
		}
		p, fail := text.Parse([]byte(src), text.Options{})
		if fail != nil {
			checkFault(t, src, fail)
			return
		}
		roundTrip(t, p.Term)
		canonical := text.Canonical(p.Term)
		q, fail := parse.Code(canonical, parse.Options{MaxBytes: len(canonical) + 1})
		if fail != nil {
			t.Fatalf("%v\n%s\nis no JSON of a term: %s", fail, src, canonical)
		}
		if again := text.Canonical(q.Term); string(again) != string(canonical) {
			t.Fatalf("%s\nas JSON is %s", canonical, again)
		}
	})
}

// checkFault: every failure has what a reader needs.
func checkFault(t *testing.T, src string, f *fault.Fault) {
	t.Helper()
	for _, f := range append([]*fault.Fault{f}, f.More...) {
		if f.Kind != fault.ParseError || f.In != "code" || f.Message == "" || f.Expected == "" || f.Hint == "" {
			t.Fatalf("%+v\nof %q", f, src)
		}
		if len(src) > text.MaxSource {
			return
		}
		if f.Line < 1 || f.Col < 1 || !strings.HasSuffix(text.Caret([]byte(src), f), "^\n") {
			t.Fatalf("%+v\nof %q\n%s", f, src, text.Caret([]byte(src), f))
		}
	}
	if len(f.More) > 4 {
		t.Fatalf("%d more", len(f.More))
	}
}

// textSeeds are sources for the fuzzer, right and wrong.
var textSeeds = []string{
	"n => if n <= 1 then 1 else n * self(n - 1)", "let x = 1, y = x + 1 in (x, y)", "xs |> fold(p => fst(p) + snd(p), 0) |> (n => n * 2)",
	"'{x + `a b`}", "{a: 1, \"b c\": [1, 2,], if: null}", "!fs.read({path: \"a\"})", "!`a b.c`(1)", "@t(1)", "r.k.l(1)", "-x - -1", "a != b", "::length(\"é\")",
	"(x, y) => `é`", "not a and not b or c", "a < b < c", "f(", "[1, 2", "\"abc", "`", "'", "@", "!", "1.5", "007", "1e5", "2x", "// c\n1", "\uFEFF1", "let in", "match x { }", "a |> length", "a |> length + 1", "f()", "()", "!``", "!``(1)", "@``(1)", "match v { 0 => a; (x, [y, ...z]) => '{x}; {k: -1.5} => r; '{n + _} => n; nil => 1 }", "1 |> get(\"k\") |> @t", "(1,)", "(1,2,3)",
	"[x + 1 for x in xs if x]", "{k: v for k, v in r for x of v}", "sum(a for (a, b) in c)", "{x for x in y}", "[a for", "[a.for for a in for]", "(r.map)(x).filter(f)[1:].k", "\"a\".join(b)", "1 if a else 2 if b else c", "if (a) { return 1 } else { b }",
	"{ const x = 1; if (x) return 2; return 3 }", "a ** -b ** c", "-a ** 2", "a === b !== c", "r?.a?.[0] ?? 1", "(a, b, c) => (a, b, c)", "\"a\" + 1 + [2]", "[1] + a ++ \"b\"", "round(a / b * 2 + c, 1)", "round(div(a, b) / c - d / e)", "ceil(-(a / b))", "map((a, b) => a, c)",
	"let f = (a, b) => a in map(f, c)", "match a { [b, ...c] => c ++ d; (e, f, g) if h if i else j => a + k }", "find(a, b)", "a.find(b).to_text()", "return 1", "var [a] = b; a", "let a = \"b\", c = d < a in c", "{ return }", "any(a for a in b)", "to_int(a / b)", "format(a / b + c / d, 1)",
	"n => self(n)\nlet y = 1\ny", "n => self(n)\ny = 1\ny", "xs => ::sort(xs, key=x => x)", "::max(xs, key=f)", "r => { const {a} = r; t = 1; map((x, i) => x + i, [t, a]) }", "r => { const {a} = r; p = 1; q = 2; s = 3; t = 4; u = 5; str(a) }",
	"fn x => x", "if a then b", "{a}", "{\"add\": [1, 2,]}", "[1; 2]", "[)]", "((((((", "a.b.c", "a.1", "x =", "&&", "a ?", "a ? b : c ? d : e", "\\x", "\"\\ud800\"", "\"\\q\"", "code_of(1)", "code_of(x)", "continue(1)", "length", "::", "::x", "\xff", "1 2", "x => ", "- 5", "-(5)", "--5", "-5(1)", "((1))", "x\u00a0",
}
