package mcpserver

import (
	"strings"
	"testing"
)

// TestHintsOfTheCode: what fails by a habit of other languages is told with the code
// that was written, in its form.
func TestHintsOfTheCode(t *testing.T) {
	s := New(Options{})
	for code, want := range map[string]string{
		`xs => let hex = (n, d) => if d == 0 then "" else self(n / 16, d - 1) ++ "0" in map(x => hex(x, 2), xs)`: `self is the whole tool; inside hex, call hex(…).`,
		`xs => let step = a => b => a + b in fold(step, 0, xs)`:                                                  `fold passes its function one pair, and this one takes one value after the other: write fold((a, b) => step(a, b), …).`,
		`c => let a = "a" in c + 0 >= a`:                                                                         `gte compares numbers only: write compare(c + 0, a) >= 0 for strings.`,
		`s => reverse(lower(s))`:                                                                                 `reverse takes a list: write join(reverse(chars(lower(s))), "") for a string.`,
		`xs => chunk(7, sort(xs))`:                                                                               `chunk takes a list first, and then an integer: chunk(sort(xs), 7).`,
		`s => map(m => m.a, [re_match(s, "a")])`:                                                                 `re_find gives a record with the named groups`,
		`xs => from_codes(xs)`:                                                                                   `from_codepoints`,
		`xs => group(x => x, xs) |> map(e => e)`:                                                                 `map takes a list, and group gives a record: write entries(group(x => x, xs)) for pairs (key, value), or values(R).`,
		`{"lam":"c","body":{"lt":[{"var":"c"},"a"]}}`:                                                            `lt compares numbers only: write {"lt":[{"compare":[{"var":"c"},"a"]},0]} for strings.`,
		`{"lam":"xs","body":{"app":[{"lam":"h","body":{"map":[{"var":"h"},{"var":"xs"}]}},{"lam":"n","body":{"app":[{"app":[{"self":true},{"var":"n"}]},1]}}]}}`: `self is the whole tool; inside h, call {"app":[{"var":"h"},…]}.`,
	} {
		arg := code
		if code[0] != '{' {
			arg = quoteJSON(code)
		}
		a := do(t, s, "evolve", `{"name":"t","code":`+arg+`}`)
		if a.Fault == nil || len(a.Fault.More) != 1 || !strings.Contains(a.Fault.More[0].Hint, want) {
			t.Errorf("%s: %s", code, a.Text)
		} else if strings.Contains(a.Fault.More[0].Hint, "100000000000000000000") || strings.Count(a.Text, "passes its function") > 1 {
			t.Errorf("%s: %s", code, a.Text)
		}
	}
	a := must(t, s, "evolve", `{"name":"t","code":"xs => let go = c => if isEmpty(c) then 0 else self(tail(c)) in go(xs)"}`)
	if note := "line 1, column 47: self is the whole tool; inside go, call go(…)"; !strings.Contains(a.Text, note) {
		t.Errorf("%s", a.Text)
	}
	if a := do(t, s, "help", `{"name":"from_codes"}`); a.Fault == nil || a.Fault.Near != "from_codepoints" {
		t.Errorf("%s", a.Text)
	}
	if a := do(t, s, "help", `{"name":"from_xml"}`); a.Fault == nil || a.Fault.Near == "from_codepoints" {
		t.Errorf("%s", a.Text)
	}
}
