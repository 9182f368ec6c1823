package eval_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// nest puts inner into n layers of open and close, in which # is the layer.
func nest(n int, open, inner, shut string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(open, "#", fmt.Sprint(i)))
	}
	b.WriteString(inner)
	for i := n - 1; i >= 0; i-- {
		b.WriteString(strings.ReplaceAll(shut, "#", fmt.Sprint(i)))
	}
	return b.String()
}

// each is n items made of a pattern in which # is the number.
func each(n int, pattern string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.ReplaceAll(pattern, "#", fmt.Sprint(i))
	}
	return strings.Join(items, ",")
}

// wideSizes are around what instructions and windows can hold: 6 captures in
// one instruction, 12 parameters, 16 items, 24 names, 190 and 256 registers.
var wideSizes = []int{1, 2, 5, 6, 7, 11, 12, 13, 15, 16, 17, 23, 24, 25, 31, 32, 33, 36, 37, 47, 48, 49, 63, 64, 65, 100, 180, 188, 189, 190, 191, 192, 200, 254, 255, 256, 257, 300, 512, 1000}

// wides are programs as wide as n.
var wides = map[string]func(n int) string{
	"operands": func(n int) string {
		return nest(n, `{"add":[{"head":[#]},`, `{"head":[7]}`, `]}`)
	},
	"operands of calls": func(n int) string {
		return `{"app":[{"lam":"f","body":` + nest(n, `{"app":[{"app":[{"var":"f"},{"head":[#]}]},`, `5`, `]}`) + `},{"lam":"a","body":{"lam":"b","body":{"sub":[{"var":"b"},{"var":"a"}]}}}]}`
	},
	"operands of unknown calls": func(n int) string {
		return `{"app":[{"lam":"f","body":` + nest(n, `{"app":[{"head":[{"var":"f"}]},{"head":[#]},`, `5`, `]}`) + `},{"lam":"a","body":{"lam":"b","body":{"sub":[{"var":"b"},{"var":"a"}]}}}]}`
	},
	"conditions": func(n int) string {
		return nest(n, `{"add":[{"head":[#]},{"if":{"cond":{"not":{"lt":[{"head":[#]},3]}},"then":`, `9`, `,"else":{"head":[#]}}}]}`)
	},
	"and": func(n int) string {
		return nest(n, `{"pair":[{"head":[#]},{"and":[{"lt":[{"head":[#]},#]},{"isEmpty":`, `[]`, `}]}]}`)
	},
	"list":      func(n int) string { return `[` + each(n, `{"head":[#]}`) + `]` },
	"list of k": func(n int) string { return `[` + each(n, `#`) + `,{"head":[1]}]` },
	"lists":     func(n int) string { return nest(n, `[{"head":[#]},`, `{"head":[7]}`, `]`) },
	"record":    func(n int) string { return `{"record":{` + each(n, `"k#":{"head":[#]}`) + `}}` },
	"records":   func(n int) string { return nest(n, `{"record":{"a":{"head":[#]},"b":`, `{"head":[7]}`, `}}`) },
	"lets":      func(n int) string { return nest(n, `{"app":[{"lam":"v#","body":`, sumOf(n), `},{"head":[#]}]}`) },
	"let":       func(n int) string { return `{"let":[` + each(n, `["v#",{"head":[#]}]`) + `],"in":` + sumOf(n) + `}` },
	"let called": func(n int) string {
		return `{"let":[["f",{"lam":"x","body":{"add":[1,{"var":"x"}]}}],` + each(n, `["v#",{"app":[{"var":"f"},#]}]`) + `],"in":` + sumOf(n) + `}`
	},
	"pairs never built": func(n int) string {
		return nest(n, `{"app":[{"lam":"v#","body":{"add":[{"snd":{"var":"v#"}},{"sub":[`, `1`, `,{"fst":{"var":"v#"}}]}]}},{"pair":[#,{"head":[#]}]}]}`)
	},
	"parameters": func(n int) string {
		return `{"app":[` + nest(n, `{"lam":"v#","body":`, sumOf(n), `}`) + `,` + each(n, `{"head":[#]}`) + `]}`
	},
	"parameters of an unknown function": func(n int) string {
		return `{"app":[{"head":[` + nest(n, `{"lam":"v#","body":`, sumOf(n), `}`) + `]},` + each(n, `{"head":[#]}`) + `]}`
	},
	"parameters of a named function": func(n int) string {
		return `{"app":[{"lam":"f","body":{"add":[{"app":[{"var":"f"},` + each(n, `{"head":[#]}`) + `]},{"app":[{"head":[{"var":"f"}]},` + each(n, `#`) + `]}]}},` +
			nest(n, `{"lam":"v#","body":`, sumOf(n), `}`) + `]}`
	},
	"captures": func(n int) string {
		return nest(n, `{"app":[{"lam":"v#","body":`, `{"app":[{"head":[{"lam":"x","body":{"app":[{"head":[{"lam":"y","body":`+sumOf(n)+`}]},2]}}]},1]}`, `},{"head":[#]}]}`)
	},
	"captures of parameters": func(n int) string {
		return `{"app":[{"head":[` + nest(n, `{"lam":"v#","body":`, `{"head":[{"app":[{"lam":"f","body":{"app":[{"var":"f"},{"app":[{"var":"f"},0]}]}},{"lam":"x","body":{"add":[{"var":"x"},`+sumOf(n)+`]}}]}]}`, `}`) + `]},` + each(n, `{"head":[#]}`) + `]}`
	},
	"eval sees": func(n int) string {
		return nest(n, `{"app":[{"lam":"v#","body":`, `{"eval":{"quote":`+sumOf(n)+`}}`, `},{"head":[#]}]}`)
	},
	"eval sees twice": func(n int) string {
		return nest(n, `{"app":[{"lam":"v#","body":`, `{"app":[{"head":[{"lam":"x","body":{"eval":{"quote":{"add":[{"app":[{"eval":{"quote":{"lam":"v1","body":{"eval":{"quote":`+sumOf(n)+`}}}}},3]},1]}}}}]},5]}`, `},{"head":[#]}]}`)
	},
	"eval of parameters, partly applied": func(n int) string {
		return `{"app":[{"lam":"f","body":{"app":[{"app":[{"var":"f"},` + each((n+1)/2, `{"head":[#]}`) + `]},` + each(n-(n+1)/2+1, `#`) + `]}},` +
			nest(n, `{"lam":"v#","body":`, `{"lam":"z","body":{"eval":{"quote":`+sumOf(n)+`}}}`, `}`) + `]}`
	},
	"eval in folds": func(n int) string {
		return nest(n, `{"fold":[{"lam":"v#","body":{"add":[{"fst":{"var":"v#"}},{"eval":{"quote":`, `{"snd":{"var":"v0"}}`, `}}]}},#,[1]]}`)
	},
	"folds": func(n int) string {
		return nest(n, `{"fold":[{"lam":"v#","body":{"add":[{"fst":{"var":"v#"}},`, `1`, `]}},{"head":[#]},[#,1]]}`)
	},
	"folds of pairs": func(n int) string {
		return nest(n, `{"fst":{"fold":[{"lam":"v#","body":{"pair":[{"snd":{"var":"v#"}},`, `1`, `]}},{"head":[#]},[#]]}}`)
	},
	"tries": func(n int) string {
		return nest(n, `{"add":[{"head":[#]},{"get":[{"try":`, `{"head":[]}`, `},"ok",{"head":[#]}]}]}`)
	},
	"shadowing": func(n int) string {
		return nest(n, `{"app":[{"lam":"x","body":{"add":[{"var":"x"},`, `{"eval":{"quote":{"var":"x"}}}`, `]}},{"head":[#]}]}`)
	},
}

// sumOf is the sum of v0 to v(n-1), nested to the left so that it is narrow.
func sumOf(n int) string {
	return nest(n, `{"add":[`, `0`, `,{"var":"v#"}]}`)
}

func TestWide(t *testing.T) {
	for name, program := range wides {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			for i, n := range wideSizes {
				if i%must.Full(4, 1) != 0 {
					continue
				}
				if strings.HasPrefix(name, "eval in folds") && n > 90 {
					continue // evals are at most a hundred deep
				}
				code := program(n)
				stressedNot()
				if len(code) > 250_000 {
					continue
				}
				tr := trial{code: code, input: "null", budgets: core.Budgets{Steps: 200_000}}
				if (name == "folds" || name == "folds of pairs") && n > 12 {
					tr.budgets.Steps = 20_000
				}
				if o := tr.check(t); o.Kind != "" && o.Kind != fault.OutOfFuel {
					t.Fatalf("%d wide: %v, not a value", n, o)
				}
				// The same in a function, and with a collection at every allocation.
				stressed(t, n%2 == 0)
				tr.slice = 13
				tr.check(t)
				tr.code = `{"lam":"in","body":` + code + `}`
				tr.check(t)
			}
		})
	}
}

// Every way to give a function of p parameters its arguments: so many at once,
// and then so many at once.
func TestApplications(t *testing.T) {
	stressed(t, true)
	for p := 1; p <= 15; p++ {
		f := nest(p, `{"lam":"v#","body":`, `{"lam":"last","body":{"add":[`+sumOf(p)+`,{"var":"last"}]}}`, `}`)
		for at := 1; at <= p; at++ {
			for _, more := range []int{1, 2, 3, p} {
				rest := p + 1 - at
				var calls []string
				for rest > 0 {
					k := min(more, rest)
					calls = append(calls, each(k, fmt.Sprintf(`{"mul":[#,{"head":[%d]}]}`, rest)))
					rest -= k
				}
				code := `{"app":[{"var":"f"},` + each(at, `#`) + `]}`
				for _, c := range calls {
					code = `{"app":[{"head":[` + code + `]},` + c + `]}`
				}
				for _, fun := range []string{f, `{"head":[` + f + `]}`} {
					trial{code: `{"app":[{"lam":"f","body":` + code + `},` + fun + `]}`, input: "null"}.check(t)
				}
			}
		}
		// Too many: what the last application gives is no function, or is one.
		trial{code: `{"app":[` + f + `,` + each(p+2, `#`) + `]}`, input: "null"}.check(t)
		g := nest(p, `{"lam":"v#","body":`, `{"if":{"cond":{"lt":[{"var":"v0"},9]},"then":{"lam":"q","body":{"add":[{"var":"q"},`+sumOf(p)+`]}},"else":0}}`, `}`)
		for _, fun := range []string{g, `{"head":[` + g + `]}`} {
			trial{code: `{"app":[{"lam":"f","body":{"app":[{"var":"f"},` + each(p+1, `{"head":[#]}`) + `]}},` + fun + `]}`, input: "null"}.check(t)
			trial{code: `{"lam":"x","body":{"app":[{"lam":"f","body":{"app":[{"var":"f"},` + each(p+1, `{"head":[#]}`) + `]}},` + fun + `]}}`, input: "null"}.check(t)
			trial{code: `{"app":[{"lam":"f","body":{"app":[{"var":"f"},` + each(p+2, `{"head":[#]}`) + `]}},` + fun + `]}`, input: "null"}.check(t)
		}
	}
}

// A function that is the input may have wider windows than the program's code
// has, and a call in tail position enters it in the first of them. The
// numbers are such that a function whose closure is lost takes what it finds
// in the heap for a value far outside, which crashes.
func TestWideInput(t *testing.T) {
	const big = "58720256"
	calls := map[string]string{
		"no call":  `{"head":[7]}`,
		"unknown":  `{"app":[{"head":[{"lam":"y","body":{"add":[{"var":"y"},{"var":"in"}]}}]},5]}`,
		"captures": `{"add":[{"app":[{"var":"f"},{"head":[5]}]},{"app":[{"var":"f"},{"head":[6]}]}]}`,
	}
	program := `{"lam":"f","body":{"app":[{"var":"f"},1]}}`
	for name, call := range calls {
		for _, n := range wideSizes {
			body := nest(n, `{"add":[{"head":[`+big+`]},`, call, `]}`)
			if name == "captures" {
				body = `{"app":[{"lam":"f","body":` + body + `},{"lam":"y","body":{"add":[{"var":"y"},` + sumOf(8) + `]}}]}`
				body = nest(8, `{"app":[{"lam":"v#","body":`, body, `},{"head":[`+big+`]}]}`)
			}
			for _, code := range []string{program, `{"head":[` + program + `]}`} {
				tr := trial{code: code, input: `{"lam":"in","body":` + body + `}`, budgets: core.Budgets{Steps: 200_000}}
				stressedNot()
				if o := tr.check(t); o.Kind != "" {
					t.Fatalf("%s, %d wide: %v, not a value", name, n, o)
				}
				stressed(t, n%2 == 0)
				tr.check(t)
			}
		}
	}
}

// TestFarCaptures: evals inside evals bind more variables than a captured value has numbers for.
func TestFarCaptures(t *testing.T) {
	p, err := core.CompileText("", []byte(`
let leaf = v => {op: "int", value: v, args: []} in
let me = {op: "var", name: "build", args: []} in
let build = (self_, k) =>
  fold((code, i) => {op: "app", args: [{op: "lam", param: join(["v", to_text(k), "_", to_text(i)], ""), args: [code]}, leaf(i)]},
    if k >= 15 then {op: "lam", param: "x", args: [{op: "eval", args: [{op: "var", name: "x", args: []}]}]} else
    {op: "eval", args: [{op: "to_code", args: [{op: "app", args: [{op: "app", args: [me, me]}, leaf(k + 1)]}]}]},
    range(0, 2300)) in
isEmpty([eval(to_code(build(build, 0)))])`))
	must.NoError(t, err)
	stressedNot()
	if o := (trial{code: string(p.Canonical()), input: "null"}).onEval(t); o.Kind != fault.OutOfMemory {
		t.Errorf("%+v", o)
	}
}
