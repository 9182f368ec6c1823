package parse_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/term"
)

func number(t *testing.T, src string) string {
	t.Helper()
	p, f := parse.Input([]byte(src), parse.Term)
	if f != nil {
		t.Fatalf("%s: %v", src, f)
	}
	switch n := p.Term.(type) {
	case *term.Int:
		return fmt.Sprint(n.Value)
	case *term.Big:
		if n.Value.IsInt64() {
			t.Errorf("%s is big, and fits 64 bits", src)
		}
		return n.Value.String()
	}
	t.Fatalf("%s is no number", src)
	return ""
}

func TestRounding(t *testing.T) {
	for src, want := range map[string]string{
		"2.5": "2", "3.5": "4", "-2.5": "-2", "-3.5": "-4", "0.5": "0", "-0.5": "0", "1.5": "2", "0.49999": "0",
		"0.5000000000000000000000001": "1", "-0.5000000000000000000000001": "-1", "2.4999999999999999999999": "2",
		"9.5": "10", "99.5": "100", "99.51": "100", "0.9": "1", "100.0": "100", "-0.0": "0", "-0": "0", "1e3": "1000", "1.25e1": "12", "1.35e1": "14",
		"125e-1": "12", "135e-1": "14", "5e-1": "0", "15e-1": "2", "1e-5": "0", "0e10": "0", "0.000": "0", "12345678901234567890.5": "12345678901234567890",
		"9223372036854775807": "9223372036854775807", "9223372036854775807.5": "9223372036854775808", "-9223372036854775808": "-9223372036854775808",
		"9223372036854775808": "9223372036854775808", "999999999999999999": "999999999999999999", "1e19": "10000000000000000000", "1.5e400": "15" + strings.Repeat("0", 399),
		"50000000000000000.5e-17": "1",
	} {
		if got := number(t, src); got != want {
			t.Errorf("%s is %s, want %s", src, got, want)
		}
	}
}

// TestRoundingExact holds rounding against rational arithmetic.
func TestRoundingExact(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	half := big.NewRat(1, 2)
	for range 20_000 {
		src := fmt.Sprintf("%d.%0*d", r.IntN(1000)-500, 1+r.IntN(3), r.IntN(10))
		if r.IntN(3) == 0 {
			src += fmt.Sprintf("e%+d", r.IntN(9)-4)
		}
		x, ok := new(big.Rat).SetString(src)
		if !ok {
			t.Fatal(src)
		}
		// The floor, then up if more than half is left, or half and it is odd.
		want := new(big.Int).Div(x.Num(), x.Denom())
		rest := new(big.Rat).Sub(x, new(big.Rat).SetInt(want))
		if c := rest.Cmp(half); c > 0 || c == 0 && want.Bit(0) == 1 {
			want.Add(want, big.NewInt(1))
		}
		if got := number(t, src); got != want.String() {
			t.Fatalf("%s is %s, want %s", src, got, want)
		}
		p, _ := parse.Input([]byte(src), parse.Term)
		if exact := rest.Sign() == 0; exact != (len(p.Notes) == 0) {
			t.Fatalf("%s has notes %q", src, p.Notes)
		}
	}
}

func TestDigits(t *testing.T) {
	nines := strings.Repeat("9", 4096)
	for _, src := range []string{nines, "-" + nines, "1e4095", "1." + nines[1:], "0." + nines[1:] + "e-4096"} {
		number(t, src)
	}
	for _, src := range []string{nines + "9", "1e4096", "1e5000", "1e1000000000", "1e99999999999999999999", "1e-4097", "0." + nines, "10e4095"} {
		_, f := parse.Code([]byte(src), parse.Options{})
		if f == nil || !strings.Contains(f.Expected, "4096 digits") {
			t.Errorf("%.20s…: %v", src, f)
		}
	}
}
