package text_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestMatch: the text's match is the JSON's.
func TestMatch(t *testing.T) {
	compared := 0
	for _, c := range []struct{ src, json string }{
		{`match v { 0 => "a"; _ => "b" }`, `{"match":{"var":"v"},"with":[[0,"a"],["_","b"]]}`},
		{`match v { -1 => 1; "_" => 2; x => x; }`, `{"match":{"var":"v"},"with":[[-1,1],["_",2],[{"var":"x"},{"var":"x"}]]}`},
		{`match v { (a, [b, ...c]) => [a, b, c]; [1, ...] => 2 }`, `{"match":{"var":"v"},"with":[[{"pair":[{"var":"a"},[{"var":"b"},{"rest":{"var":"c"}}]]},[{"var":"a"},{"var":"b"},{"var":"c"}]],[[1,{"rest":"_"}],2]]}`},
		{`match v { {k: length, "b c": null} => length(1) }`, `{"match":{"var":"v"},"with":[[{"record":{"k":{"var":"length"},"b c":null}},{"app":[{"var":"length"},1]}]]}`},
		{`match v { '{n + m} => n; nil => 0; [] => 1; (x) => 2 }`, `{"match":{"var":"v"},"with":[[{"quote":{"add":[{"var":"n"},{"var":"m"}]}},{"var":"n"}],[[],0],[[],1],[{"var":"x"},2]]}`},
		{`match v { x if x > 0 and f(y => y) => x; (a, b) if (a) => b; _ => 0 }`, `{"match":{"var":"v"},"with":[[{"var":"x"},{"if":{"and":[{"gt":[{"var":"x"},0]},{"app":[{"var":"f"},{"lam":"y","body":{"var":"y"}}]}]}},{"var":"x"}],[{"pair":[{"var":"a"},{"var":"b"}]},{"if":{"var":"a"}},{"var":"b"}],["_",0]]}`},
		{`match v { 1 | "a" | [] => 1; (x, 0) | (0, x) | x if x => x }`, `{"match":{"var":"v"},"with":[[{"or":[1,"a",[]]},1],[{"or":[{"pair":[{"var":"x"},0]},{"pair":[0,{"var":"x"}]},{"var":"x"}]},{"if":{"var":"x"}},{"var":"x"}]]}`},
		{`match v { {k: 1 | 2, r, "s t": (a | [a])} => r + a }`, `{"match":{"var":"v"},"with":[[{"record":{"k":{"or":[1,2]},"r":{"var":"r"},"s t":{"or":[{"var":"a"},[{"var":"a"}]]}}},{"add":[{"var":"r"},{"var":"a"}]}]]}`},
		{`match v { '{a + b} | '{b - a} => b }`, `{"match":{"var":"v"},"with":[[{"or":[{"quote":{"add":[{"var":"a"},{"var":"b"}]}},{"quote":{"sub":[{"var":"b"},{"var":"a"}]}}]},{"var":"b"}]]}`},
		{`let (a, b) = p, x = a in b`, `{"let":[[{"pair":[{"var":"a"},{"var":"b"}]},{"var":"p"}],["x",{"var":"a"}]],"in":{"var":"b"}}`},
		{`let {a, b: (_, [c, ...d])} = r in d`, `{"let":[[{"record":{"a":{"var":"a"},"b":{"pair":["_",[{"var":"c"},{"rest":{"var":"d"}}]]}}},{"var":"r"}]],"in":{"var":"d"}}`},
		{`let [] = l, [...r] = m, [_, ...] = n, (0, '{x + 1}) = ` + "`match`" + ` in x`, `{"let":[[[],{"var":"l"}],[[{"rest":{"var":"r"}}],{"var":"m"}],[["_",{"rest":"_"}],{"var":"n"}],[{"pair":[0,{"quote":{"add":[{"var":"x"},1]}}]},{"var":"match"}]],"in":{"var":"x"}}`},
		{`((a, b)) => a`, `{"lam":{"pair":[{"var":"a"},{"var":"b"}]},"body":{"var":"a"}}`},
		{`({arg, "b c": arg1}, x, [y], _) => y`, `{"lam":[{"record":{"arg":{"var":"arg"},"b c":{"var":"arg1"}}},"x",[{"var":"y"}],"_"],"body":{"var":"y"}}`},
		{`fold((a, {n}) => a + n, 0, xs)`, `{"fold":[{"lam":{"pair":[{"var":"a"},{"record":{"n":{"var":"n"}}}]},"body":{"add":[{"var":"a"},{"var":"n"}]}},0,{"var":"xs"}]}`},
		{`xs |> fold(((a, x) => a), 0)`, `{"fold":[{"lam":{"pair":[{"var":"a"},{"var":"x"}]},"body":{"var":"a"}},0,{"var":"xs"}]}`},
		{`fold(a => x => a, 0, xs)`, `{"fold":[{"lam":["a","x"],"body":{"var":"a"}},0,{"var":"xs"}]}`},
		{`fold((a, x, y) => a, 0, xs)`, `{"fold":[{"lam":["a","x","y"],"body":{"var":"a"}},0,{"var":"xs"}]}`},
		{`let f = (a, x) => a in fold(f, 0, xs)`, `{"let":[["f",{"lam":["a","x"],"body":{"var":"a"}}]],"in":{"fold":[{"lam":"pair","body":{"app":[{"var":"f"},{"fst":{"var":"pair"}},{"snd":{"var":"pair"}}]}},0,{"var":"xs"}]}}`},
		{"let f = (a, x) => a in fold(`f`, 0, xs)", `{"let":[["f",{"lam":["a","x"],"body":{"var":"a"}}]],"in":{"fold":[{"var":"f"},0,{"var":"xs"}]}}`},
		{`let f = (a, x) => any(f, zip(a, x)) in f`, `{"let":[["f",{"lam":["a","x"],"body":{"any":[{"lam":"pair","body":{"app":[{"var":"f"},{"fst":{"var":"pair"}},{"snd":{"var":"pair"}}]}},{"zip":[{"var":"a"},{"var":"x"}]}]}}]],"in":{"var":"f"}}`},
		{`let f = (a, x) => a in f => fold(f, 0, xs)`, `{"let":[["f",{"lam":["a","x"],"body":{"var":"a"}}]],"in":{"lam":"f","body":{"fold":[{"var":"f"},0,{"var":"xs"}]}}}`},
		{"match v { 0 => 1, [] => 2\n{a} => a\n_ => 3 }", `{"match":{"var":"v"},"with":[[0,1],[[],2],[{"record":{"a":{"var":"a"}}},{"var":"a"}],["_",3]]}`},
		{`map((k, v) => v, entries(r))`, `{"map":[{"lam":{"pair":[{"var":"k"},{"var":"v"}]},"body":{"var":"v"}},{"entries":{"var":"r"}}]}`},
		{`zip(a, b) |> filter((x, y) => x) |> sort_by((x, y) => y) |> any((x, y) => y)`, `{"any":[{"lam":{"pair":[{"var":"x"},{"var":"y"}]},"body":{"var":"y"}},{"sort_by":[{"lam":{"pair":[{"var":"x"},{"var":"y"}]},"body":{"var":"y"}},{"filter":[{"lam":{"pair":[{"var":"x"},{"var":"y"}]},"body":{"var":"x"}},{"zip":[{"var":"a"},{"var":"b"}]}]}]}]}`},
		{`map((k, v) => v, xs)`, `{"map":[{"lam":["k","v"],"body":{"var":"v"}},{"var":"xs"}]}`},
	} {
		p := mustRead(t, c.src)
		roundTrip(t, p.Term)
		q, f := parse.Code([]byte(c.json), parse.Options{})
		if f != nil {
			t.Errorf("%s: %v", c.json, f)
			continue
		}
		if strings.Contains(c.src, `"_" =>`) {
			continue // the string "_" is no pattern in JSON
		}
		compared++
		if got, want := string(text.Canonical(p.Term)), string(text.Canonical(q.Term)); got != want {
			t.Errorf("%s is\n%s, not\n%s", c.src, got, want)
		}
	}
	t.Logf("%d compared", compared)
	for _, c := range []struct{ src, place string }{
		{`match v {}`, "1:9"}, {`match v { 1 + 1 => 2 }`, "1:13"}, {`match v { (a, a) => 1 }`, "1:15"}, {`match v { [...r, x] => 1 }`, "1:18"},
		{`match v { (a, b, c) => 1 }`, "1:11"}, {`match v { {a: 1, a: 2} => 1 }`, "1:18"}, {`match v { f(x) => 1 }`, "1:12"},
		{`match v { ` + strings.Repeat("[", 5000) + `}`, "1:210"}, {`match v { [` + strings.Repeat("_, ", 5000) + `] => 1 }`, "1:606"}, {strings.Repeat("match v { _ => ", 3000), "1:2971"},
		{`match v { '{` + strings.Repeat("1+", 3000) + `1} => 1 }`, "1:11"},
	} {
		_, f := text.Parse([]byte(c.src), text.Options{})
		if f == nil {
			t.Errorf("%.40s is legal", c.src)
			continue
		}
		checkFault(t, c.src, f)
		if got := fmt.Sprintf("%d:%d", f.Line, f.Col); got != c.place {
			t.Errorf("%.40s at %s: %s", c.src, got, f.Message)
		}
	}
}
