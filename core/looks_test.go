package core

import (
	"fmt"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/eval"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// looksOf runs a program, writes its result, and returns how often it could have been
// stopped. It is stopped at the look of that number, if there is one.
func looksOf(t *testing.T, code string, stopAt int) (looks int) {
	t.Helper()
	p, err := CompileText("", []byte(code))
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	m := p.Start(Input{}, Budgets{Steps: 1_000_000_000}, nil)
	defer m.Release()
	look := func() bool { looks++; return looks == stopAt }
	if m.RunUntil(0, look) == Done {
		m.EncodeUntil(256<<10, look)
	}
	if f := m.Fault(); f != nil && looks != stopAt {
		t.Errorf("%s: %v", code, f)
	}
	return looks
}

// One primitive that has much to do asks again and again whether to go on, while it
// does it: more often than what makes its operand.
func TestLongWorkIsDoneInPieces(t *testing.T) {
	const (
		long    = `let n = fold(p => fst(p) * fst(p), 3, range(0, 20)) in `
		text    = `let s = fold(p => fst(p) ++ fst(p), "añB ", range(0, 20)) in `
		control = `let s = fold(p => fst(p) ++ fst(p), "\u0001\u0002", range(0, 18)) in `
		record  = `let r = from_entries(map(i => (to_text(i), i), range(0, 40000))) in `
		abs     = `let s = fold(p => fst(p) ++ fst(p), "ab", range(0, 19)) in `
		columns = `let r = i => from_entries(map(j => (to_text(i * j), j), range(1, 60000))) in let rs = [r(1), r(-1)] in `
		object  = `let s = lower("{" ++ join(map(i => to_json(to_text(mod(i * 7919, 1000003))) ++ ":1", range(0, 100000)), ",") ++ "}") in `
		nodes   = `let c = fold(p => to_code({op: "add", args: [to_data(fst(p)), to_data(fst(p))]}), '{1}, range(0, 15)) in `
		sums    = `let c = to_code({op: "list", args: map(i => {op: "add", args: [{op: "int", value: i}, {op: "var", name: "i"}]}, range(0, 30000))}) in let i = 1 in `
	)
	for _, c := range []struct {
		make, do string
		least    int
	}{
		{long, `length(to_text(n * n))`, 20}, {long, `(n * n) / (n + 1) > 0`, 15}, {long, `mod(n * n, n + 1) > 0`, 15}, {long, `n`, 10},
		{`let s = fold(p => fst(p) ++ fst(p), "7", range(0, 20)) in `, `parse_int(s) > 0`, 20},
		{text, `length(upper(s))`, 10}, {text, `length(lower(s))`, 10}, {text, `length(replace(s, "a", "bb"))`, 10},
		{text, `length(split(slice(s, 0, 1000000), "ñ"))`, 10}, {text, `length(chars(slice(s, 0, 200000)))`, 5}, {text, `contains(s, "zz")`, 2}, {text, `index_of(s, "zz")`, 2},
		{control, `length(to_json([s]))`, 15}, {control, `[s]`, 10},
		{`let s = "[" ++ fold(p => fst(p) ++ fst(p), "[1,2],", range(0, 15)) ++ "0]" in `, `length(parse_json(s))`, 5},
		{text, `re_match(s, "(a|ñ)+zz")`, 20}, {text, `length(re_replace(slice(s, 0, 500000), "a", "bb"))`, 5}, {text, `length(re_find_all(slice(s, 0, 20000), "(?s)a.*z|a"))`, 20},
		{text, `sha256(s)`, 2}, {text, `length(base64_encode(s))`, 2}, {text, `length(url_encode(slice(s, 0, 2000000)))`, 2},
		{abs, `length(re_find(s ++ "c", "(?:a|b)*c"))`, 25}, {columns, `length(to_csv(rs))`, 30},
		{object, `length(keys(parse_json(s)))`, 50}, {`let s = to_json([fold(p => fst(p) ++ fst(p), "\u0001", range(0, 19))]) in `, `length(parse_json(s))`, 5},
		{nodes, `length(to_data(c))`, 10}, {nodes, `length(keys(analyze(c)))`, 2}, {sums, `length(eval(c))`, 12},
		{record, `length(keys(merge(r, r)))`, 8}, {record, `length(keys(from_entries(entries(r))))`, 15},
	} {
		if without, with := looksOf(t, c.make+`1`, 0), looksOf(t, c.make+c.do, 0); with-without < c.least {
			t.Errorf("%s asks %d times whether to go on, %d times without %s, not %d more", c.make+c.do, with, without, c.do, c.least)
		}
	}
}

// A run that is stopped in the middle of anything gives all back.
func TestStoppedRunsGiveBack(t *testing.T) {
	held := eval.PoolHeld()
	for _, code := range []string{
		`length(fold(p => cons((snd(p), 1), fst(p)), [], range(0, 300000)))`,
		`length(chars(fold(p => fst(p) ++ fst(p), "añB ", range(0, 16))))`,
		`fold(p => (fst(p), 1), 1, range(0, 100000))`,
		`length(parse_json(lower("[" ++ join(map(i => "1", range(0, 200000)), ",") ++ "]")))`,
	} {
		for at, all := 1, looksOf(t, code, 0); at <= all; at += 1 + all/20 {
			looksOf(t, code, at)
			if now := eval.PoolHeld(); now != held {
				t.Fatalf("%s: %d bytes are held after it was stopped at look %d of %d", code, now-held, at, all)
			}
		}
	}
}

// What is read of JSON is on a stack, which is the run's memory meanwhile.
func TestReadingIsHeld(t *testing.T) {
	p, err := CompileText("", []byte(`parse_json(lower("[" ++ join(map(i => "1", range(0, 500000)), ",") ++ "]"))`))
	must.NoError(t, err)
	m := p.Start(Input{}, Budgets{Steps: 1_000_000_000}, nil)
	defer m.Release()
	most := int64(0)
	if m.RunUntil(0, func() bool { most = max(most, eval.PoolHeld()); return false }) != Done {
		t.Fatal(m.Fault())
	}
	if now := eval.PoolHeld(); most-now < 8*500_000 {
		t.Errorf("%d bytes at most, %d after it", most, now)
	}
}

// The digits of numbers with exponents are memory before they are written out.
func TestExponentsAreMemory(t *testing.T) {
	for n, want := range map[int]bool{30_000: true, 80_000: false} {
		p, err := CompileText("", []byte(fmt.Sprintf(`let s = join(repeat(%d, "1e4000"), ",") in length(parse_json("[\"1e4000 \\\"\"," ++ s ++ "]"))`, n)))
		must.NoError(t, err)
		m := p.Start(Input{}, Budgets{Memory: 128 << 20}, nil)
		looks := 0
		m.RunUntil(0, func() bool { looks++; return false })
		if f := m.Fault(); want && f != nil || !want && (f == nil || f.Kind != fault.OutOfMemory || looks > 10) || want && looks < 100 {
			t.Errorf("%d: %v, after %d looks", n, f, looks)
		}
		m.Release()
	}
}

// A machine that panicked isn't used again, nor is its memory held.
func TestPanickedIsAbandoned(t *testing.T) {
	p, err := CompileText("", []byte(`length(fold(p => cons((snd(p), 1), fst(p)), [], range(0, 300000)))`))
	must.NoError(t, err)
	held := eval.PoolHeld()
	func() {
		m := p.Start(Input{}, Budgets{Steps: 1_000_000_000}, nil)
		defer func() {
			if recover() == nil {
				t.Error("it didn't panic")
			}
			if n := p.Start(Input{}, Budgets{}, nil); n == m {
				t.Error("it is used again")
			}
			if now := eval.PoolHeld(); now != held {
				t.Errorf("%d bytes are held", now-held)
			}
		}()
		defer m.Release()
		m.RunUntil(0, func() bool { panic("a defect") })
	}()
}

// What is shared is written each time that it is there: what a result has beyond its
// first MiB takes steps, the same on both evaluators, and isn't written without them. So do digits.
func TestLargeResultsTakeSteps(t *testing.T) {
	const words = 3_600_001/64 + 1
	digits := prim.DigitsCost(20*words) - prim.DigitsCost(1<<20)
	for code, work := range map[string]uint64{`fold(p => (fst(p), fst(p)), 1, range(0, 17))`: 0, `shift(1, 3600000)`: digits} {
		t.Run(code, func(t *testing.T) { largeResult(t, code, work) })
	}
}

func largeResult(t *testing.T, code string, work uint64) {
	p, err := CompileText("", []byte(code))
	must.NoError(t, err)
	run := func(steps uint64) (before, after uint64, e Encoded, kind fault.Kind) {
		m := p.Start(Input{}, Budgets{Steps: steps}, nil)
		defer m.Release()
		if m.Run(0) != Done {
			t.Fatal(m.Fault())
		}
		before = m.Steps()
		e, f := m.Encode(10)
		if f != nil {
			kind = f.Kind
		}
		traced, same, g := p.TraceWith(Input{}, Budgets{Steps: steps}, Tracing{})
		if same != m.Steps() || (f == nil) != (g == nil) || f != nil && f.Kind != g.Kind || traced.Total != e.Total {
			t.Errorf("with %d steps: %d bytes, %d steps, %v; traced %d, %d, %v", steps, e.Total, m.Steps(), f, traced.Total, same, g)
		}
		return before, m.Steps(), e, kind
	}
	before, after, e, kind := run(100_000_000)
	more := uint64(e.Total-1<<20)/512 + work
	if kind != "" || e.Total < 1<<20 || after-before != more {
		t.Errorf("%d bytes took %d steps more than %d (%s), not %d", e.Total, after-before, before, kind, more)
	}
	if _, after, _, kind = run(before + more); kind != "" || after != before+more {
		t.Errorf("with the steps that are needed: %d of %d steps, %s", after, before+more, kind)
	}
	if _, after, _, kind = run(before + more - 1); kind != fault.OutOfFuel || after != before+more-1 {
		t.Errorf("with one step less: %d of %d steps, %q", after, before+more-1, kind)
	}
}
