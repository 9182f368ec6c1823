package text_test

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/core/text"
)

// TestIndexAndSpread: what indexes, slices and spread in lists are, as JSON, and that
// their print is read as the same.
func TestIndexAndSpread(t *testing.T) {
	for src, json := range map[string]string{
		`xs[0]`:              `{"at":[{"var":"xs"},0]}`,
		`xs[-1].k`:           `{"get":[{"at":[{"var":"xs"},-1]},"k"]}`,
		`r["k"]`:             `{"get":[{"var":"r"},"k"]}`,
		`r[k]`:               `{"at":[{"var":"r"},{"var":"k"}]}`,
		`s[1:4]`:             `{"at":[{"var":"s"},1,4]}`,
		`s[:-1]`:             `{"at":[{"var":"s"},null,-1]}`,
		`s[2:]`:              `{"at":[{"var":"s"},2,null]}`,
		`s[:]`:               `{"at":[{"var":"s"},null,null]}`,
		`[1, 2][f(1)][0]`:    `{"at":[{"at":[[1,2],{"app":[{"var":"f"},1]}]},0]}`,
		`[x, ...xs]`:         `{"cons":[{"var":"x"},{"var":"xs"}]}`,
		`[...xs, x, y]`:      `{"push":[{"push":[{"var":"xs"},{"var":"x"}]},{"var":"y"}]}`,
		`[...xs]`:            `{"append":[{"var":"xs"},[]]}`,
		`[1, ...a, 2, ...b]`: `{"cons":[1,{"append":[{"push":[{"var":"a"},2]},{"var":"b"}]}]}`,
	} {
		p := mustRead(t, src)
		if got, want := string(text.Canonical(p.Term)), string(text.Canonical(mustParse(t, json).Term)); got != want {
			t.Errorf("%s is %s, not %s", src, got, want)
		}
		roundTrip(t, p.Term)
	}
}
