package text_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestPrimitivesAsValues: what a primitive that stands alone is, as JSON, and max and
// min of several operands.
func TestPrimitivesAsValues(t *testing.T) {
	const length = `{"lam":"x","body":{"length":{"var":"x"}}}`
	const curried = `{"lam":"a","body":{"lam":"b","body":{"add":[{"var":"a"},{"var":"b"}]}}}`
	parts := func(body string) string {
		return `{"lam":{"pair":[{"var":"a"},{"var":"b"}]},"body":` + body + `}`
	}
	sum, most := parts(`{"add":[{"var":"a"},{"var":"b"}]}`), parts(`{"max":[{"var":"a"},{"var":"b"}]}`)
	for src, json := range map[string]string{
		`map(length, xs)`:           `{"map":[` + length + `,{"var":"xs"}]}`,
		`xs |> map(::length)`:       `{"map":[` + length + `,{"var":"xs"}]}`,
		"map(`length`, xs)":         `{"map":[{"var":"length"},{"var":"xs"}]}`,
		`length => map(length, xs)`: `{"lam":"length","body":{"map":[{"var":"length"},{"var":"xs"}]}}`,
		`length`:                    length,
		"{ let f = length\nf(xs) }": `{"let":[["f",` + length + `]],"in":{"app":[{"var":"f"},{"var":"xs"}]}}`,
		`add`:                       curried,
		`fold(add, 0, xs)`:          `{"fold":[` + sum + `,0,{"var":"xs"}]}`,
		`map(add, zip(a, b))`:       `{"map":[` + sum + `,{"zip":[{"var":"a"},{"var":"b"}]}]}`,
		`map(fst, zip(a, b))`:       `{"map":[{"lam":"x","body":{"fst":{"var":"x"}}},{"zip":[{"var":"a"},{"var":"b"}]}]}`,
		`map(add, xs)`:              `{"map":[` + curried + `,{"var":"xs"}]}`,
		`map(max, xss)`:             `{"map":[{"lam":"x","body":{"max":{"var":"x"}}},{"var":"xss"}]}`,
		`fold(max, 0, xs)`:          `{"fold":[` + most + `,0,{"var":"xs"}]}`,
		`xs |> zip(ys) |> map(max)`: `{"map":[` + most + `,{"zip":[{"var":"xs"},{"var":"ys"}]}]}`,
		`'{map(length, xs)}`:        `{"quote":{"map":[` + length + `,{"var":"xs"}]}}`,
		`max(a, b)`:                 `{"max":[{"var":"a"},{"var":"b"}]}`,
		`min(a, b, 1)`:              `{"min":[{"var":"a"},{"var":"b"},1]}`,
		`max(xs)`:                   `{"max":{"var":"xs"}}`,
		`a |> max(b)`:               `{"max":[{"var":"a"},{"var":"b"}]}`,
		`xs |> max`:                 `{"max":{"var":"xs"}}`,
	} {
		p := mustRead(t, src)
		if got, want := string(text.Canonical(p.Term)), string(text.Canonical(mustParse(t, json).Term)); got != want {
			t.Errorf("%s is %s, not %s", src, got, want)
		}
		roundTrip(t, p.Term)
	}
}
