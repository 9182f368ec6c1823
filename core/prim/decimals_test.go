package prim_test

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

func row(t testing.TB, name string) *prim.Row {
	_, r, ok := prim.Lookup(name)
	if !ok {
		t.Fatalf("no row %s", name)
	}
	return r
}

// call evaluates a strict row as an evaluator does.
func call(t testing.TB, name string, args ...value.Value) (value.Value, *fault.Fault) {
	r := row(t, name)
	if r.Cost != nil {
		r.Cost(args)
	}
	if r.Size != nil {
		r.Size(args)
	}
	return r.Eval(args)
}

func dec(s string) value.Dec {
	d, ok := value.ParseDec(s)
	if !ok {
		panic(s)
	}
	return d
}

func rat(v value.Value) *big.Rat {
	switch v := v.(type) {
	case value.Int:
		return new(big.Rat).SetInt(v.Big())
	case value.Dec:
		return new(big.Rat).SetFrac(v.Unscaled(), value.Power10(v.Scale()))
	}
	panic("no number")
}

func number(r *rand.Rand) value.Value {
	n := r.Int64N(2001) - 1000
	if r.IntN(3) == 0 {
		return value.NewInt(n)
	}
	d, _ := value.NewDec(big.NewInt(n), r.IntN(5))
	return d
}

// TestDecimalsAreRationals holds decimals against rationals.
func TestDecimalsAreRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		a, b := number(r), number(r)
		x, y := rat(a), rat(b)
		for name, want := range map[string]*big.Rat{"add": new(big.Rat).Add(x, y), "sub": new(big.Rat).Sub(x, y), "mul": new(big.Rat).Mul(x, y)} {
			if got, f := call(t, name, a, b); f != nil || rat(got).Cmp(want) != 0 {
				t.Fatalf("%s %v %v = %v (%v), want %v", name, a, b, got, f, want)
			}
		}
		if got, f := call(t, "compare", a, b); f != nil || got != value.NewInt(int64(x.Cmp(y))) {
			t.Fatalf("compare %v %v = %v (%v)", a, b, got, f)
		}
		if got, f := call(t, "lt", a, b); f != nil || got != value.Bool(x.Cmp(y) < 0) {
			t.Fatalf("lt %v %v = %v (%v)", a, b, got, f)
		}
		if got, f := call(t, "equal", a, b); f != nil || got != value.Bool(x.Cmp(y) == 0) {
			t.Fatalf("equal %v %v = %v (%v)", a, b, got, f)
		}
		if y.Sign() == 0 {
			if _, f := call(t, "div_dec", a, b, value.NewInt(2), value.Str("down")); f == nil || f.Kind != fault.DivisionByZero {
				t.Fatalf("division by 0: %v", f)
			}
			continue
		}
		scale := r.IntN(6)
		for _, mode := range append([]string{"ceil"}, prim.Roundings...) {
			got, f := call(t, "div_dec", a, b, value.NewInt(int64(scale)), value.Str(mode))
			if f != nil || got.(value.Dec).Scale() != scale {
				t.Fatalf("div_dec %v %v %d %s = %v (%v)", a, b, scale, mode, got, f)
			}
			checkRounded(t, mode, new(big.Rat).Quo(x, y), got.(value.Dec))
			got, f = call(t, "round_dec", a, value.NewInt(int64(scale)), value.Str(mode))
			must.NoFault(t, f)
			checkRounded(t, mode, x, got.(value.Dec))
			got, f = call(t, "to_int", a, value.Str(mode))
			must.NoFault(t, f)
			whole, _ := value.NewDec(got.(value.Int).Big(), 0)
			checkRounded(t, mode, x, whole)
		}
	}
}

// checkRounded: got is the exact number, or the neighbour the mode names.
func checkRounded(t *testing.T, mode string, exact *big.Rat, got value.Dec) {
	t.Helper()
	unit := new(big.Rat).SetFrac(big.NewInt(1), value.Power10(got.Scale()))
	off := new(big.Rat).Sub(rat(got), exact) // more than exact where positive
	if new(big.Rat).Abs(off).Cmp(unit) >= 0 {
		t.Fatalf("%s: %v is a unit or more from %v", mode, got, exact)
	}
	if off.Sign() == 0 {
		return
	}
	half := new(big.Rat).Abs(off).Cmp(new(big.Rat).Mul(unit, big.NewRat(1, 2)))
	outwards := off.Sign() == exact.Sign()
	ok := map[string]bool{
		"up": outwards, "down": !outwards, "ceiling": off.Sign() > 0, "ceil": off.Sign() > 0, "floor": off.Sign() < 0,
		"half_up":   half < 0 || half == 0 && outwards,
		"half_even": half < 0 || half == 0 && got.Unscaled().Bit(0) == 0,
	}[mode]
	if !ok {
		t.Fatalf("%s: %v for %v", mode, got, exact)
	}
}

func TestParseDec(t *testing.T) {
	for s, want := range map[string]string{
		"0": "0", "-0": "0", "1.50": "1.50", "-0.05": "-0.05", "1e3": "1000", "1E+2": "100", "12.5e-3": "0.0125", "1e-3": "0.001", "0.000": "0.000",
		"": "", "-": "", ".5": "", "1.": "", "01": "", "1e": "", "1.5.2": "", "+1": "", " 1": "", "1_0": "", "0x1": "", "١": "", "1e99999999999999": "", "1e-99999999999999": "",
		strings.Repeat("9", 4096): strings.Repeat("9", 4096), strings.Repeat("9", 4097): "", "1e4095": "1" + strings.Repeat("0", 4095), "1e4096": "",
		"1e-4096": "0." + strings.Repeat("0", 4095) + "1", "1e-4097": "",
	} {
		if d, ok := value.ParseDec(s); ok != (want != "") || ok && d.String() != want {
			t.Errorf("%.40q is %.40s (%v), want %.40q", s, d, ok, want)
		}
	}
}

// TestDecimalBounds: what would be longer than a decimal may be is out of range.
func TestDecimalBounds(t *testing.T) {
	long := dec("1e4000")
	for _, c := range []struct {
		name string
		args []value.Value
		kind fault.Kind
	}{
		{"mul", []value.Value{long, long}, fault.OutOfRange},
		{"mul", []value.Value{dec("1e-4000"), dec("1e-4000")}, fault.OutOfRange},
		{"add", []value.Value{long, dec("1e-4000")}, fault.OutOfRange},
		{"add", []value.Value{large("1" + strings.Repeat("0", 5000)), dec("1.5")}, fault.OutOfRange},
		{"div_dec", []value.Value{long, dec("3"), value.NewInt(200), value.Str("down")}, fault.OutOfRange},
		{"div_dec", []value.Value{long, dec("3"), value.NewInt(4097), value.Str("down")}, fault.OutOfRange},
		{"div_dec", []value.Value{long, dec("3"), large("99999999999999999999"), value.Str("down")}, fault.OutOfRange},
		{"div", []value.Value{dec("1.5"), value.NewInt(7)}, fault.OutOfRange},
		{"div", []value.Value{dec("1e-4000"), dec("1e1000")}, fault.OutOfRange},
		{"div", []value.Value{dec("1.5"), value.NewInt(0)}, fault.DivisionByZero},
		{"mod", []value.Value{value.NewInt(2), dec("1.5")}, fault.TypeError},
	} {
		if v, f := call(t, c.name, c.args...); f == nil || f.Kind != c.kind || f.Hint == "" {
			t.Errorf("%s gives %v, %v", c.name, v, f)
		}
	}
	if got, f := call(t, "lt", dec("1.5"), large("1"+strings.Repeat("0", 5000))); f != nil || got != value.Bool(true) {
		t.Errorf("a decimal and a large integer: %v %v", got, f)
	}
	for _, c := range [][3]string{{"1.5", "2", "0.75"}, {"-3", "0.4", "-7.5"}, {"0.00", "7", "0"}, {"1785.0", "100", "17.85"}, {"1e30", "1e-30", "1e60"}, {"2", "-1.25", "-1.6"}} {
		want := dec(c[2])
		if got, f := call(t, "div", dec(c[0]), dec(c[1])); f != nil || got.(value.Dec).Cmp(want) != 0 {
			t.Errorf("%v gives %v, %v", c, got, f)
		}
	}
	if _, f := call(t, "div", dec("1.5"), value.NewInt(7)); f == nil || !strings.Contains(f.Hint, "div_dec") {
		t.Errorf("the hint of div: %s", f.Hint)
	}
}

// TestToDecOfLong: a text that is longer than any number needs is refused unread, and none is
// that has as many digits as there may be.
func TestToDecOfLong(t *testing.T) {
	digits := strings.Repeat("7", value.MaxDigits)
	for s, want := range map[string]bool{
		digits: true, "-0." + digits: true, strings.Repeat("0", 2*value.MaxDigits) + digits: true,
		strings.Repeat("0", 3*value.MaxDigits) + "7": false,
	} {
		if _, f := call(t, "to_dec", value.Str(s)); (f == nil) != want {
			t.Errorf("%d characters: %v", len(s), f)
		}
	}
}
