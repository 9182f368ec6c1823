package eval_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
)

// jsonText writes a random text that is JSON, or nearly so.
func jsonText(r *rand.Rand, depth int) string {
	blank := []string{"", "", "", " ", "\n\t"}[r.IntN(5)]
	if r.IntN(300) == 0 {
		return []string{"", "-", "01", "1.", ".5", "tru", `"a`, `"\ud800"`, `"\x"`, "[1,]", `{"a":1,}`, `{"a":1,"a":2}`, "1 1", "\"\x01\""}[r.IntN(14)]
	}
	switch k := r.IntN(12); {
	case k < 2:
		return blank + fmt.Sprint(r.IntN(2000)-1000) + blank
	case k == 2:
		return []string{"1.50", "-0.0", "1e3", "123456789012345678901", "0.000000000000000000001", "-12.5e-2", "999999999999999999", "4611686018427387904"}[r.IntN(8)]
	case k == 3:
		return []string{"true", "false", "null"}[r.IntN(3)]
	case k < 6 || depth == 0:
		return blank + []string{`""`, `"plain"`, `"é😀"`, `"a\"b\\c\n"`, `"\u0041\ud83d\ude00"`, `"` + strings.Repeat("x\\n", r.IntN(700)/(1+depth*9)) + `"`}[r.IntN(6)]
	case k < 9:
		items := make([]string, r.IntN(1+14*depth))
		for i := range items {
			items[i] = jsonText(r, depth-1)
		}
		return "[" + strings.Join(items, ",") + blank + "]"
	}
	fields := make([]string, r.IntN([]int{6, 45}[r.IntN(2)]))
	for i := range fields {
		fields[i] = fmt.Sprintf(`%s"%s%d"%s:%s`, blank, []string{"k", "é", "long key of many bytes "}[r.IntN(3)], (i*7)%40, blank, jsonText(r, depth-1))
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// TestJSONInOnePass: text is read and written in the heap as the rows do it, for as many
// steps, whatever room there is.
func TestJSONInOnePass(t *testing.T) {
	codes := []string{
		`s => parse_json(s)`, `s => to_json(parse_json(s))`, `s => try(to_json(parse_json(s)))`, `s => to_text([parse_json(s), s])`,
		`s => let v = parse_json(s) in [to_json(v), to_json([v, v, {a: v}]), to_text((v, v))]`,
		`s => to_json([s ++ s ++ s, x => x])`, `s => parse_json(s ++ "")`, `s => keys(parse_json(s))`,
	}
	for seed := range full(8_000, 600) {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		tr := trial{code: string(mustCompileText(t, codes[r.IntN(len(codes))]).Canonical()), input: fmt.Sprintf("%q", "x")}
		text := jsonText(r, 3)
		if len(text) > 60_000 {
			continue
		}
		tr.code = fmt.Sprintf(`{"app":[%s,%s]}`, tr.code, quoteJSON(text))
		tr.input = "null"
		if tr.slice = uint64(r.IntN(3) * 40); r.IntN(4) == 0 {
			tr.budgets = core.Budgets{Steps: uint64(1 + r.IntN(600))}
		}
		if seed%3 == 0 {
			stressed(t, seed%2 == 0)
		} else {
			stressedNot()
		}
		tr.check(t)
	}
	stressedNot()
}

func quoteJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
