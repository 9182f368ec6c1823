package core_test

import (
	"fmt"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
)

// stepsOf runs a program in the text form on n, with the steps it may use.
func stepsOf(t *testing.T, code string, n int, want string) uint64 {
	t.Helper()
	p, err := core.CompileText("t", []byte(code))
	if err != nil {
		t.Fatal(err)
	}
	in, err := core.ParseInput(fmt.Append(nil, n), core.InputAuto)
	if err != nil {
		t.Fatal(err)
	}
	m := p.Start(in, core.Budgets{Steps: 200_000_000}, nil)
	defer m.Release()
	if m.Run(0) != core.Done {
		t.Fatalf("%s of %d: %v", code, n, m.Fault())
	}
	e, f := m.Encode(1 << 10)
	if f != nil || want != "" && string(e.JSON) != want {
		t.Fatalf("%s of %d gives %s (%v), want %s", code, n, e.JSON, f, want)
	}
	return m.Steps()
}

// The library's sort, and records, take n log n steps: twice as many items
// take little more than twice the steps.
func TestScale(t *testing.T) {
	for name, code := range map[string]string{
		"sort":            `n => range(0, n) |> map(i => i * 7919 % 100003) |> sort |> length`,
		"sort sorted":     `n => range(0, n) |> sort |> length`,
		"sort backwards":  `n => range(0, n) |> reverse |> sort |> length`,
		"record":          `n => keys(fold(p => put(fst(p), to_text(snd(p) * 7919 % 100003), snd(p)), {}, range(0, n))) |> length`,
		"record read":     `n => let r = fold(p => put(fst(p), to_text(snd(p)), snd(p)), {}, range(0, n)) in fold(p => fst(p) + get(r, to_text(snd(p))) - snd(p), n, range(0, n))`,
		"vector":          `n => let xs = range(0, n) in fold(p => fst(p) + nth(xs, snd(p)) - snd(p), n, xs)`,
		"vector by parts": `n => fold(p => push(fst(p), snd(p)), [], range(0, n)) |> length`,
	} {
		t.Run(name, func(t *testing.T) {
			once := stepsOf(t, code, 25_000, "25000")
			twice := stepsOf(t, code, 50_000, "50000")
			if twice > once*23/10 {
				t.Errorf("25,000 items take %d steps, 50,000 %d", once, twice)
			}
		})
	}
	// A hundred thousand keys and a million items fit the default memory.
	stepsOf(t, `n => keys(fold(p => put(fst(p), to_text(snd(p)), snd(p)), {}, range(0, n))) |> length`, 100_000, "100000")
	stepsOf(t, `n => range(0, n) |> map(x => x + 1) |> sum`, 1_000_000, "500000500000")
}
