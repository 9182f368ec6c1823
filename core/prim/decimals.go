package prim

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var decimals = []Row{
	{
		Name: "dec", Group: "decimals", Form: true, Shape: Named, Result: KindDec,
		Params: []Param{{"digits", KindName}},
		Doc:    "is an exact decimal; add, sub, mul div and the comparisons take decimals and integers together; div_dec divides with rounding.",
		Also:   []string{"decimal"},
		Examples: []Example{
			{Code: `{"dec":"1.50"}`, Want: `1.50`, Steps: 1},
			{Code: `{"add":[{"dec":"0.1"},{"dec":"0.2"}]}`, Want: `0.3`, Steps: 3},
			{Code: `{"mul":[3,{"dec":"19.99"}]}`, Want: `59.97`, Steps: 3},
			{Code: `{"dec":"1,5"}`, Fault: fault.ParseError},
			{Code: `{"mod":[{"dec":"1.5"},2]}`, Fault: fault.TypeError},
		},
	},
	{
		Name: "div_dec", Group: "decimals", Shape: Array, Result: KindDec,
		Params: []Param{{"a", KindNumber}, {"b", KindNumber}, {"scale", KindInt}, {"mode", KindString}},
		Doc:    `gives a ÷ b with scale digits after the point, rounded by mode: "half_even", "half_up" (halves away from 0), "down", "up", "floor" or "ceiling".`,
		Examples: []Example{
			{Code: `{"div_dec":[2,3,2,"half_even"]}`, Want: `0.67`, Steps: 5},
			{Code: `{"div_dec":[{"dec":"1.00"},8,2,"half_even"]}`, Want: `0.12`, Steps: 5},
			{Code: `{"div_dec":[1,0,2,"half_even"]}`, Fault: fault.DivisionByZero},
			{Code: `{"div_dec":[1,3,2,"nearest"]}`, Fault: fault.OutOfRange},
		},
		Cost: func(args []value.Value) uint64 { return scaleCost(args[2], args[0], args[1]) }, Size: digits,
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			scale, f := scaleOf("div_dec", args[2])
			if f != nil {
				return nil, f
			}
			round, f := roundingMode("div_dec", args[3])
			if f != nil {
				return nil, f
			}
			a, b, f := decs("div_dec", args)
			if f != nil {
				return nil, f
			}
			if b.Unscaled().Sign() == 0 {
				return nil, DivisionByZero("div_dec", args[0])
			}
			// a.u/10^a.s ÷ b.u/10^b.s · 10^scale = a.u·10^(b.s+scale) ÷ b.u·10^a.s
			n := new(big.Int).Mul(a.Unscaled(), value.Power10(b.Scale()+scale))
			d := new(big.Int).Mul(b.Unscaled(), value.Power10(a.Scale()))
			return decimal("div_dec", quotient(n, d, round), scale)
		},
	},
	{
		Name: "ratio", Group: "decimals", Shape: Array, Params: twoNumbers, Result: KindNumber,
		Doc:  "gives a ÷ b, of at most 4096 digits each: of integers an integer where b divides a, else a decimal, exactly where its digits end, and rounded half_even to 16 after the point where they don't.",
		Also: []string{"truediv", "true_div"},
		Examples: []Example{
			{Code: `{"ratio":[7,2]}`, Want: `3.5`, Steps: 3},
			{Code: `{"ratio":[6,2]}`, Want: `3`, Steps: 3},
			{Code: `{"ratio":[{"dec":"-1.0"},3]}`, Want: `-0.3333333333333333`, Steps: 3},
			{Code: `{"ratio":[1,0]}`, Fault: fault.DivisionByZero},
		},
		Cost: decimalQuotient, Size: digits,
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			a, b, f := decs("ratio", args)
			switch {
			case f != nil:
				return nil, f
			case b.Unscaled().Sign() == 0:
				return nil, DivisionByZero("ratio", args[0])
			case !isDec(args):
				if q, r := new(big.Int).QuoRem(a.Unscaled(), b.Unscaled(), new(big.Int)); r.Sign() == 0 {
					return value.NewBig(q), nil
				}
			}
			if v, f := exactQuotient("ratio", args, a, b); f == nil {
				return v, nil
			}
			n := new(big.Int).Mul(a.Unscaled(), value.Power10(b.Scale()+ratioDigits))
			d := new(big.Int).Mul(b.Unscaled(), value.Power10(a.Scale()))
			return decimal("ratio", quotient(n, d, "half_even"), ratioDigits)
		},
	},
	{
		Name: "round_dec", Group: "decimals", Shape: Array, Result: KindDec,
		Params: []Param{{"a", KindNumber}, {"scale", KindInt}, {"mode", KindString}},
		Doc:    "gives a with scale digits after the point, rounded by mode as div_dec does, or with zeros added.",
		Also:   []string{"roundto"},
		Examples: []Example{
			{Code: `{"round_dec":[{"dec":"2.345"},2,"half_even"]}`, Want: `2.34`, Steps: 4},
			{Code: `{"round_dec":[{"dec":"-2.5"},0,"half_up"]}`, Want: `-3.0`, Steps: 4},
			{Code: `{"round_dec":[7,2,"down"]}`, Want: `7.00`, Steps: 4},
			{Code: `{"round_dec":[7,-1,"down"]}`, Fault: fault.OutOfRange},
		},
		Cost: func(args []value.Value) uint64 { return scaleCost(args[1], args[0]) }, Size: digits,
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			scale, f := scaleOf("round_dec", args[1])
			if f != nil {
				return nil, f
			}
			round, f := roundingMode("round_dec", args[2])
			if f != nil {
				return nil, f
			}
			a, f := dec("round_dec", args[0])
			if f != nil {
				return nil, f
			}
			return decimal("round_dec", rescale(a, scale, round), scale)
		},
	},
	{
		Name: "to_int", Group: "decimals", Shape: Array, Result: KindInt,
		Params: []Param{{"a", KindNumber}, {"mode", KindString}},
		Doc:    "gives the integer that a is rounded to by mode, as div_dec rounds.",
		Also:   []string{"trunc"},
		Examples: []Example{
			{Code: `{"to_int":[{"dec":"2.5"},"half_even"]}`, Want: `2`, Steps: 3},
			{Code: `{"to_int":[{"dec":"-2.1"},"floor"]}`, Want: `-3`, Steps: 3},
			{Code: `{"to_int":["2.5","down"]}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 { return scaleCost(nil, args[0]) }, Size: digits,
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			round, f := roundingMode("to_int", args[1])
			if f != nil {
				return nil, f
			}
			if a, ok := args[0].(value.Dec); ok {
				return value.NewBig(rescale(a, 0, round)), nil
			}
			return args[0], nil
		},
	},
	{
		Name: "to_dec", Group: "decimals", Shape: Unary, Result: KindDec,
		Params: []Param{{"a", KindNumber | KindString}},
		Doc:    "gives the decimal of an integer, or of a string with a number as JSON writes it, a plus, zeros before it or none before its point included, as in +02.50 and .5; any other string is a parse_error.",
		Also:   []string{"number", "parsefloat", "parse_float", "float", "parse_dec", "parsedec", "parse_decimal", "to_float", "tofloat"},
		Examples: []Example{
			{Code: `{"to_dec":"12.30"}`, Want: `12.30`, Steps: 2},
			{Code: `{"to_dec":7}`, Want: `7.0`, Steps: 2},
			{Code: `{"get":[{"try":{"to_dec":"12,30"}},"ok","no number"]}`, Want: `"no number"`},
			{Code: `{"to_dec":null}`, Fault: fault.TypeError},
		},
		Size: digits,
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			s, ok := args[0].(value.Str)
			if !ok {
				return asDec("to_dec", args[0])
			}
			if len(s) <= 3*value.MaxDigits { // beyond it reading would be work that nobody counts
				d, ok := value.ParseDec(string(s))
				if !ok {
					d, ok = value.ParseDec(asJSON(string(s)))
				}
				if ok {
					return d, nil
				}
			}
			return nil, &fault.Fault{
				Kind: fault.ParseError, Message: "to_dec: " + Describe(s) + " is no number",
				Expected: "digits, with a minus before and a point in them where that is meant", Got: Describe(s),
				Hint: cleaned("to_dec", string(s), `Write the number as in {"to_dec":"12.30"}, of at most 4,096 digits`),
			}
		},
	},
}

// asJSON returns a number without a plus and zeros before it, and with one before a point, as JSON
// writes it; what is none stays what it is.
func asJSON(s string) string {
	rest, negative := strings.CutPrefix(s, "-")
	if !negative {
		rest = strings.TrimPrefix(s, "+")
	}
	digits := strings.TrimLeft(rest, "0")
	switch {
	case digits != "" && digits[0] >= '1' && digits[0] <= '9':
	case digits != rest, strings.HasPrefix(digits, "."):
		digits = "0" + digits
	default:
		return s
	}
	if negative {
		return "-" + digits
	}
	return digits
}

// digits bounds the bytes of any decimal.
func digits([]value.Value) int64 { return value.MaxDigits/2 + 32 }

// scaleCost returns the cost of dividing numbers of so many digits.
func scaleCost(scale value.Value, numbers ...value.Value) uint64 {
	w := uint64(0)
	for _, n := range numbers {
		w += size(n)
	}
	if n, ok := scale.(value.Int); ok {
		if n, _ := n.Int64(); n > 0 && n <= value.MaxDigits {
			w += uint64(n) / 19
		}
	}
	if w <= free {
		return 0
	}
	return w * w / 64
}

// Roundings is the modes of rounding, by name.
var Roundings = []string{"half_even", "half_up", "down", "up", "floor", "ceiling"}

// roundingMode finds the mode that an operand names.
func roundingMode(name string, v value.Value) (string, *fault.Fault) {
	mode := string(v.(value.Str))
	if mode == "ceil" {
		mode = "ceiling"
	}
	if slices.Contains(Roundings, mode) {
		return mode, nil
	}
	f := outOfRange(name+" knows no rounding "+quoted(mode), "one of "+strings.Join(Roundings, ", "), quoted(mode),
		"Name one of "+strings.Join(Roundings, ", ")+".")
	f.Near = Closest(mode, Roundings)
	return "", f
}

func scaleOf(name string, v value.Value) (int, *fault.Fault) {
	if n, ok := v.(value.Int).Int64(); ok && n >= 0 && n <= value.MaxDigits {
		return int(n), nil
	}
	return 0, outOfRange(name+" takes 0 to 4096 digits after the point, not "+Describe(v), "an integer from 0 to 4096", Describe(v),
		`Give a scale such as 2: {"round_dec":[A,2,"half_even"]}.`)
}

func outOfRange(message, expected, got, hint string) *fault.Fault {
	return &fault.Fault{Kind: fault.OutOfRange, Message: message, Expected: expected, Got: got, Hint: hint}
}

// asDec returns a number as a decimal.
func asDec(name string, v value.Value) (value.Value, *fault.Fault) {
	d, f := dec(name, v)
	if f != nil {
		return nil, f
	}
	return d, nil
}

func dec(name string, v value.Value) (value.Dec, *fault.Fault) {
	if d, ok := v.(value.Dec); ok {
		return d, nil
	}
	d, ok := value.NewDec(v.(value.Int).Big(), 0)
	if !ok {
		return d, tooManyDigits(name)
	}
	return d, nil
}

func decs(name string, args []value.Value) (a, b value.Dec, f *fault.Fault) {
	if a, f = dec(name, args[0]); f == nil {
		b, f = dec(name, args[1])
	}
	return a, b, f
}

func decimal(name string, unscaled *big.Int, scale int) (value.Value, *fault.Fault) {
	d, ok := value.NewDec(unscaled, scale)
	if !ok {
		return nil, tooManyDigits(name)
	}
	return d, nil
}

func tooManyDigits(name string) *fault.Fault {
	return outOfRange(fmt.Sprintf("%s: a decimal has at most %d digits", name, value.MaxDigits),
		"a decimal of at most 4096 digits", "more", `Round what it is made of: {"round_dec":[A,20,"half_even"]}.`)
}

// isDec reports whether one of two numbers is a decimal.
func isDec(args []value.Value) bool {
	_, a := args[0].(value.Dec)
	_, b := args[1].(value.Dec)
	return a || b
}

// onDecs does one of add, sub and mul on decimals.
func onDecs(name string, args []value.Value) (value.Value, *fault.Fault) {
	a, b, f := decs(name, args)
	if f != nil {
		return nil, f
	}
	if name == "mul" {
		return decimal(name, new(big.Int).Mul(a.Unscaled(), b.Unscaled()), a.Scale()+b.Scale())
	}
	x, y, scale := value.Align(a, b)
	if name == "sub" {
		return decimal(name, new(big.Int).Sub(x, y), scale)
	}
	return decimal(name, new(big.Int).Add(x, y), scale)
}

// ratioDigits is how many digits after the point ratio gives of a quotient without an end.
const ratioDigits = 16

// decimalQuotient returns the cost of dividing exactly.
func decimalQuotient(args []value.Value) uint64 {
	n := size(args[0]) + size(args[1])
	return n * n / 64
}

// exactQuotient divides two numbers, which a and b are as decimals; b is not 0.
func exactQuotient(name string, args []value.Value, a, b value.Dec) (value.Value, *fault.Fault) {
	// a.u/10^a.s ÷ b.u/10^b.s, in lowest terms: its digits end if no prime but 2 and 5
	// divides the denominator.
	n := new(big.Int).Mul(a.Unscaled(), value.Power10(b.Scale()))
	d := new(big.Int).Mul(b.Unscaled(), value.Power10(a.Scale()))
	if d.Sign() < 0 {
		n.Neg(n)
		d.Neg(d)
	}
	g := new(big.Int).GCD(nil, nil, new(big.Int).Abs(n), d)
	n.Quo(n, g)
	d.Quo(d, g)
	twos := int(d.TrailingZeroBits())
	d.Rsh(d, uint(twos))
	fives := 0
	for five, q, r := big.NewInt(5), new(big.Int), new(big.Int); fives <= value.MaxDigits && d.BitLen() > 1; fives++ {
		if q.QuoRem(d, five, r); r.Sign() != 0 {
			return nil, outOfRange(name+" of "+Describe(args[0])+" by "+Describe(args[1])+" has digits without an end",
				"a quotient whose digits end", "one whose digits repeat", `Write {"ratio":[A,B]}, which has 16 digits, or name digits and rounding: {"div_dec":[A,B,2,"half_even"]}.`)
		}
		d, q = q, d
	}
	scale := max(twos, fives)
	if scale > value.MaxDigits {
		return nil, tooManyDigits(name)
	}
	n.Lsh(n, uint(scale-twos))
	n.Mul(n, new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(scale-fives)), nil))
	return decimal(name, n, scale)
}

// cmpNumbers compares two numbers by what they are worth.
func cmpNumbers(x, y value.Value) int {
	a, intA := x.(value.Int)
	b, intB := y.(value.Int)
	switch {
	case intA && intB:
		return a.Big().Cmp(b.Big())
	case intA:
		return -y.(value.Dec).CmpInt(a.Big())
	case intB:
		return x.(value.Dec).CmpInt(b.Big())
	}
	return x.(value.Dec).Cmp(y.(value.Dec))
}

// rescale gives the digits of d at another scale.
func rescale(d value.Dec, scale int, mode string) *big.Int {
	if scale >= d.Scale() {
		return new(big.Int).Mul(d.Unscaled(), value.Power10(scale-d.Scale()))
	}
	return quotient(d.Unscaled(), value.Power10(d.Scale()-scale), mode)
}

// quotient returns n ÷ d as an integer; d is not 0.
func quotient(n, d *big.Int, mode string) *big.Int {
	q, r := new(big.Int).QuoRem(n, d, new(big.Int))
	if r.Sign() == 0 {
		return q
	}
	negative := (n.Sign() < 0) != (d.Sign() < 0)
	away := false
	switch mode {
	case "up":
		away = true
	case "floor":
		away = negative
	case "ceiling":
		away = !negative
	case "half_up", "half_even":
		half := new(big.Int).Lsh(r, 1).CmpAbs(d)
		away = half > 0 || half == 0 && (mode == "half_up" || q.Bit(0) == 1)
	}
	switch {
	case away && negative:
		q.Sub(q, big.NewInt(1))
	case away:
		q.Add(q, big.NewInt(1))
	}
	return q
}
