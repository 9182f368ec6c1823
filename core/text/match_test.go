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
	} {
		p := mustRead(t, c.src)
		roundTrip(t, p.Term)
		q, f := parse.Code([]byte(c.json), parse.Options{})
		if f != nil || strings.Contains(c.src, `"_" =>`) {
			continue // until JSON has match; the string "_" is no pattern there
		}
		compared++
		if got, want := string(text.Canonical(p.Term)), string(text.Canonical(q.Term)); got != want {
			t.Errorf("%s is\n%s, not\n%s", c.src, got, want)
		}
	}
	t.Logf("%d compared", compared)
	for _, c := range []struct{ src, place string }{
		{`match v {}`, "1:9"}, {`match v { 1 + 1 => 2 }`, "1:13"}, {`match v { (a, a) => 1 }`, "1:15"}, {`match v { [...r, x] => 1 }`, "1:18"},
		{`match v { (a, b, c) => 1 }`, "1:11"}, {`match v { {a: 1, a: 2} => 1 }`, "1:18"}, {`match v { 1 => 2, 2 => 3 }`, "1:17"}, {`match v { f(x) => 1 }`, "1:12"},
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
