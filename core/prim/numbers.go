package prim

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// maxBits is how long the integers are that the rows take whose work grows faster
// than they do.
const maxBits = 1 << 16

var (
	// ofBits bounds an integer whose bits are those of two others.
	ofBits = &Growth{
		Value: Bound{some(2, valueOf(0)), some(2, valueOf(1)), some(2)}, Words: Bound{some(1, wordsOf(0)), some(1, wordsOf(1)), some(1)},
	}
	// pairsOfWords is the steps of work on each pair of a number's words.
	pairsOfWords = Bound{per(16, wordsOf(0), wordsOf(0)), some(1)}
)

// numbers is the rows of numbers that aren't the four operations.
var numbers = []Row{
	{
		Name: "gcd", Group: "numbers", Shape: Array, Params: twoInts, Result: KindInt,
		Doc:  "gives the largest integer that divides a and b; of 0 and 0 it is 0.",
		Also: []string{"greatest_common_divisor", "hcf"},
		Grows: &Growth{
			Value: Bound{some(1, valueOf(0)), some(1, valueOf(1))}, Words: Bound{some(1, wordsOf(0)), some(1, wordsOf(1))},
			Steps: Bound{per(64, wordsOf(0), wordsOf(1))},
		},
		Examples: []Example{
			{Code: `{"gcd":[48,-18]}`, Want: `6`, Steps: 3},
			{Code: `{"gcd":[0,5]}`, Want: `5`},
			{Code: `{"gcd":[1,{"dec":"1.5"}]}`, Fault: fault.TypeError},
		},
		Cost: product, Size: widest,
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			a, b := bigs(args)
			if f := tooLong("gcd", a, b); f != nil {
				return nil, f
			}
			return value.NewBig(new(big.Int).GCD(nil, nil, new(big.Int).Abs(a), new(big.Int).Abs(b))), nil
		},
	},
	{
		Name: "floor", Group: "numbers", Shape: Unary, Params: oneNumber, Result: KindInt,
		Doc:  "gives the largest integer that isn't more than the number.",
		Also: []string{"round_down", "math_floor", "mathfloor"},
		Examples: []Example{
			{Code: `{"floor":{"dec":"-2.5"}}`, Want: `-3`},
			{Code: `{"floor":"2.5"}`, Fault: fault.TypeError},
		},
		Body: `x => to_int(x, "floor")`,
	},
	{
		Name: "ceil", Group: "numbers", Shape: Unary, Params: oneNumber, Result: KindInt,
		Doc:  "gives the smallest integer that isn't less than the number.",
		Also: []string{"ceiling", "round_up", "math_ceil", "mathceil"},
		Examples: []Example{
			{Code: `{"ceil":{"dec":"2.1"}}`, Want: `3`},
			{Code: `{"ceil":null}`, Fault: fault.TypeError},
		},
		Body: `x => to_int(x, "ceiling")`,
	},
	{
		Name: "round", Group: "numbers", Shape: Array, Min: 1, Params: []Param{{"number", KindNumber}, {"digits", KindInt}}, Result: KindNumber,
		Doc:  "gives the integer nearest to a number, or the decimal of digits after the point; halves are rounded away from 0.",
		Also: []string{"math_round", "mathround", "round_half_up"},
		Examples: []Example{
			{Code: `{"round":[{"dec":"2.5"}]}`, Want: `3`},
			{Code: `{"round":[{"dec":"2.345"},2]}`, Want: `2.35`},
			{Code: `{"round":[{"dec":"2.345"},-1]}`, Fault: fault.OutOfRange},
		},
		Short: `x => to_int(x, "half_up")`,
		Body:  `(x, digits) => round_dec(x, digits, "half_up")`,
	},
	{
		Name: "sqrt", Group: "numbers", Shape: Array, Min: 1, Params: []Param{{"number", KindNumber}, {"digits", KindInt}}, Result: KindDec,
		Doc:  "gives the square root of a number that isn't negative, rounded to digits after the point, halves away from 0, or cut off after at most 16.",
		Also: []string{"isqrt", "square_root", "math_sqrt", "squareroot"},
		Grows: &Growth{
			Value: Bound{some(1, valueOf(0)), some(2)}, Words: Bound{some(1, wordsOf(0)), per(19, valueOf(1)), some(3)},
			Steps: Bound{per(16, wordsOf(0), wordsOf(0)), per(64, wordsOf(0), valueOf(1)), some(1, wordsOf(0)), per(1024, valueOf(1), valueOf(1)), per(16, valueOf(1)), some(1)},
		},
		Examples: []Example{
			{Code: `{"sqrt":[2,5]}`, Want: `1.41421`, Steps: 3},
			{Code: `{"sqrt":[{"dec":"6.25"}]}`, Want: `2.5`},
			{Code: `{"floor":{"sqrt":[99]}}`, Want: `9`},
			{Code: `{"sqrt":[-1]}`, Fault: fault.OutOfRange},
		},
		Cost: func(args []value.Value) uint64 {
			return scaleCost(slices.Concat(args, []value.Value{nil})[1], args[0], args[0])
		},
		Size: digits,
		Eval: root,
	},
	{
		Name: "bit_and", Group: "numbers", Shape: Array, Params: twoInts, Result: KindInt,
		Doc:  "gives the integer of the bits that both a and b have; a negative one has endless ones before it.",
		Also: []string{"band", "bitand", "bitwise_and", "&", "land"}, Total: true, Grows: ofBits,
		Examples: []Example{
			{Code: `{"bit_and":[12,10]}`, Want: `8`, Steps: 3},
			{Code: `{"bit_and":[-1,255]}`, Want: `255`},
			{Code: `{"bit_and":[1,true]}`, Fault: fault.TypeError},
		},
		Cost: linear, Size: widest, Eval: onBits((*big.Int).And),
	},
	{
		Name: "bit_or", Group: "numbers", Shape: Array, Params: twoInts, Result: KindInt,
		Doc:  "gives the integer of the bits that a or b has.",
		Also: []string{"bor", "bitor", "bitwise_or", "|", "lor"}, Total: true, Grows: ofBits,
		Examples: []Example{
			{Code: `{"bit_or":[12,10]}`, Want: `14`, Steps: 3},
			{Code: `{"bit_or":["1",1]}`, Fault: fault.TypeError},
		},
		Cost: linear, Size: widest, Eval: onBits((*big.Int).Or),
	},
	{
		Name: "bit_xor", Group: "numbers", Shape: Array, Params: twoInts, Result: KindInt,
		Doc:  "gives the integer of the bits that one of a and b has.",
		Also: []string{"bxor", "bitxor", "bitwise_xor", "xor", "^"}, Total: true, Grows: ofBits,
		Examples: []Example{
			{Code: `{"bit_xor":[12,10]}`, Want: `6`, Steps: 3},
			{Code: `{"bit_xor":[1,null]}`, Fault: fault.TypeError},
		},
		Cost: linear, Size: widest, Eval: onBits((*big.Int).Xor),
	},
	{
		Name: "shift", Group: "numbers", Shape: Array, Params: []Param{{"a", KindInt}, {"bits", KindInt}}, Result: KindInt,
		Doc:  "gives a × 2 to the power of bits, rounded down: to the left by so many bits, to the right where they are negative.",
		Also: []string{"shl", "lshift", "shift_left", "left_shift", "<<", "bit_shift"},
		Grows: &Growth{
			Words: Bound{some(1, wordsOf(0)), per(64, valueOf(1)), some(1)}, Steps: Bound{per(64, wordsOf(0)), per(4096, valueOf(1)), some(1)},
		},
		Examples: []Example{
			{Code: `{"shift":[5,3]}`, Want: `40`, Steps: 3},
			{Code: `{"shift":[-5,-1]}`, Want: `-3`},
			{Code: `{"shift":[1,10000000000000]}`, Fault: fault.OutOfRange},
			{Code: `{"shift":[1,"3"]}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 {
			w := size(args[0]) + uint64(shiftBits(args))/64
			if w <= free {
				return 0
			}
			return w / 64
		},
		Size: func(args []value.Value) int64 { return 8*int64(size(args[0])+2) + int64(shiftBits(args))/8 },
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			a, by := args[0].(value.Int).Big(), args[1].(value.Int)
			n, ok := by.Int64()
			switch {
			case by.Big().Sign() < 0:
				if !ok || n < -1<<40 {
					n = -1 << 40
				}
				return value.NewBig(new(big.Int).Rsh(a, uint(-n))), nil
			case !ok || n > maxShift:
				return nil, outOfRange("shift by "+strings.TrimPrefix(Describe(by), "the ")+" gives an integer that is too long", "at most 4294967296 bits", Describe(by), `Shift by fewer bits: {"shift":[1,64]}.`)
			}
			return value.NewBig(new(big.Int).Lsh(a, uint(n))), nil
		},
	},
	{
		Name: "to_base", Group: "numbers", Shape: Array, Params: []Param{{"a", KindInt}, {"base", KindInt}}, Result: KindString,
		Doc:   "gives the digits of an integer to a base from 2 to 36, letters in lower case.",
		Also:  []string{"tobase", "to_binary", "bin", "to_octal", "oct", "int_to_base", "to_radix"},
		Grows: &Growth{Bytes: Bound{some(64, wordsOf(0)), some(2)}, Steps: pairsOfWords},
		Examples: []Example{
			{Code: `{"to_base":[255,16]}`, Want: `"ff"`, Steps: 3},
			{Code: `{"to_base":[-5,2]}`, Want: `"-101"`},
			{Code: `{"to_base":[255,64]}`, Fault: fault.OutOfRange},
			{Code: `{"to_base":["ff",16]}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 { return DigitsCost(64 * int(min(size(args[0]), maxBits))) },
		Size: func(args []value.Value) int64 { return 64*int64(size(args[0])) + 1 },
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			a := args[0].(value.Int).Big()
			base, f := baseOf("to_base", args[1])
			if f == nil {
				f = tooLong("to_base", a)
			}
			if f != nil {
				return nil, f
			}
			return value.Str(a.Text(base)), nil
		},
	},
	{
		Name: "from_base", Group: "numbers", Shape: Array, Params: []Param{{"s", KindString}, {"base", KindInt}}, Result: KindInt,
		Doc:   "reads the digits of an integer to a base from 2 to 36, with a minus before them or not; anything else is a parse_error.",
		Also:  []string{"frombase", "from_binary", "parse_hex", "parse_base", "parse_binary", "int_from_base", "from_radix"},
		Grows: &Growth{Words: Bound{per(10, bytesOf(0)), some(1)}, Steps: Bound{per(16384, bytesOf(0), bytesOf(0)), some(1)}},
		Examples: []Example{
			{Code: `{"from_base":["ff",16]}`, Want: `255`, Steps: 3},
			{Code: `{"get":[{"try":{"from_base":["12",2]}},"ok","no binary"]}`, Want: `"no binary"`},
			{Code: `{"from_base":["ff",1]}`, Fault: fault.OutOfRange},
			{Code: `{"from_base":[255,16]}`, Fault: fault.TypeError},
		},
		Cost: func(args []value.Value) uint64 { return DigitsCost(min(len(args[0].(value.Str)), maxBits)) },
		Size: func(args []value.Value) int64 { return int64(len(args[0].(value.Str))) + 16 },
		Eval: func(args []value.Value) (value.Value, *fault.Fault) {
			s := string(args[0].(value.Str))
			base, f := baseOf("from_base", args[1])
			if f != nil {
				return nil, f
			}
			if len(s) > maxBits {
				return nil, outOfRange(fmt.Sprintf("from_base takes at most %d digits, not %d", maxBits, len(s)), fmt.Sprintf("at most %d digits", maxBits), Describe(args[0]), `Read shorter digits: {"from_base":["ff",16]}.`)
			}
			n, ok := new(big.Int).SetString(s, base)
			if !ok || strings.ContainsAny(s, "+_") {
				return nil, &fault.Fault{
					Kind: fault.ParseError, Message: fmt.Sprintf("from_base: %s is no integer to the base %d", quoted(s), base),
					Expected: fmt.Sprintf("digits to the base %d, with a minus before them where it is negative", base), Got: quoted(s),
					Hint: `Take away what stands before the digits, {"from_base":[{"drop":[2,"0xff"]},16]}, or catch the failure: {"try":{"from_base":[S,16]}}.`,
				}
			}
			return value.NewBig(n), nil
		},
	},
	{
		Name: "format", Group: "numbers", Shape: Array, Min: 1, Result: KindString,
		Params: []Param{{"number", KindNumber}, {"digits", KindInt}, {"separator", KindString}},
		Doc:    "writes a number with digits after the point, halves rounded away from 0, and a separator between each three before it: \",\" where none is given; with \".\" the point is a comma.",
		Also:   []string{"tofixed", "to_fixed", "format_number", "number_format", "tolocalestring", "format_currency", "with_commas"},
		Grows: &Growth{
			Bytes: Bound{some(64), some(40, wordsOf(0)), some(20, wordsOf(0), bytesOf(2)), some(1, valueOf(1)), some(40, bytesOf(2))},
			Steps: Bound{per(32, wordsOf(0), wordsOf(0)), per(128, wordsOf(0), valueOf(1)), per(8192, valueOf(1), valueOf(1)), some(1)},
		},
		Examples: []Example{
			{Code: `{"format":[{"dec":"1234567.891"},2]}`, Want: `"1,234,567.89"`, Steps: 3},
			{Code: `{"format":[1234567]}`, Want: `"1,234,567"`},
			{Code: `{"format":[{"dec":"0.5"},2,""]}`, Want: `"0.50"`},
			{Code: `{"format":[{"dec":"1234.5"},2,"."]}`, Want: `"1.234,50"`},
			{Code: `{"format":["1234.5",2]}`, Fault: fault.TypeError},
			{Code: `{"format":[1,-2]}`, Fault: fault.OutOfRange},
		},
		Cost: func(args []value.Value) uint64 {
			return scaleCost(slices.Concat(args, []value.Value{nil})[1], args[0]) + BytesCost(int(formatSize(args)))
		},
		Size: formatSize,
		Eval: formatNumber,
	},
}

var oneNumber = []Param{{"number", KindNumber}}

// maxShift is how many bits shift adds at most.
const maxShift = 1 << 32

// shiftBits returns the bits that shift adds.
func shiftBits(args []value.Value) int64 {
	n, _ := args[1].(value.Int).Int64()
	if n > maxShift {
		return 0 // it fails
	}
	return max(n, 0)
}

func onBits(do func(z, x, y *big.Int) *big.Int) func([]value.Value) (value.Value, *fault.Fault) {
	return func(args []value.Value) (value.Value, *fault.Fault) {
		a, b := bigs(args)
		return value.NewBig(do(new(big.Int), a, b)), nil
	}
}

// tooLong returns the fault of integers that are too long for the row.
func tooLong(name string, all ...*big.Int) *fault.Fault {
	for _, n := range all {
		if bits := n.BitLen(); bits > maxBits {
			return outOfRange(fmt.Sprintf("%s takes integers of at most %d bits, not of %d", name, maxBits, bits),
				fmt.Sprintf("an integer of at most %d bits", maxBits), fmt.Sprintf("an integer of %d bits", bits), "Compute with fewer digits.")
		}
	}
	return nil
}

func baseOf(name string, v value.Value) (int, *fault.Fault) {
	if n, ok := v.(value.Int).Int64(); ok && n >= 2 && n <= 36 {
		return int(n), nil
	}
	return 0, outOfRange(name+" takes a base from 2 to 36, not "+strings.TrimPrefix(Describe(v), "the integer "), "an integer from 2 to 36", Describe(v), `Give a base such as 16: {"to_base":[255,16]}.`)
}

// root computes sqrt.
func root(args []value.Value) (value.Value, *fault.Fault) {
	scale, more := 16, 0
	if len(args) > 1 {
		var f *fault.Fault
		if scale, f = scaleOf("sqrt", args[1]); f != nil {
			return nil, f
		}
		more = 1 // which tells how to round
	}
	d, f := dec("sqrt", args[0])
	switch {
	case f != nil:
		return nil, f
	case d.Unscaled().Sign() < 0:
		return nil, outOfRange("sqrt of "+strings.TrimPrefix(strings.TrimPrefix(Describe(args[0]), "the decimal "), "the integer ")+": a negative number has no square root",
			"a number that isn't negative", Describe(args[0]), `Test the number first: {"if":{"cond":{"lt":[N,0]},"then":D,"else":{"sqrt":[N,2]}}}.`)
	}
	// √(u/10^s) · 10^k = √(u · 10^(2k-s))
	k := scale + more
	n := new(big.Int).Mul(d.Unscaled(), value.Power10(max(0, 2*k-d.Scale())))
	n.Quo(n, value.Power10(max(0, d.Scale()-2*k)))
	r := new(big.Int).Sqrt(n)
	if more > 0 {
		return decimal("sqrt", quotient(r, big.NewInt(10), "half_up"), scale)
	}
	for ten := big.NewInt(10); scale > 1; scale-- {
		q, rest := new(big.Int).QuoRem(r, ten, new(big.Int))
		if rest.Sign() != 0 {
			break
		}
		r = q
	}
	return decimal("sqrt", r, scale)
}

// formatSize bounds the bytes that format gives.
func formatSize(args []value.Value) int64 {
	n := int64(20*size(args[0])) + 32
	if d, ok := args[0].(value.Dec); ok {
		n += int64(d.Scale())
	}
	sep := int64(1)
	if len(args) > 1 {
		if k, ok := args[1].(value.Int).Int64(); ok && k > 0 && k <= value.MaxDigits {
			n += k
		}
	}
	if len(args) > 2 {
		sep = int64(len(args[2].(value.Str)))
	}
	if sep > math.MaxInt64/4/n {
		return math.MaxInt64 / 4
	}
	return n + n/3*sep
}

// formatNumber computes format.
func formatNumber(args []value.Value) (value.Value, *fault.Fault) {
	separator, point := ",", "."
	if len(args) > 2 {
		if separator = string(args[2].(value.Str)); separator == "." {
			point = ","
		}
	}
	d, whole := args[0].(value.Dec)
	scale := d.Scale()
	if whole = !whole; whole {
		scale = 0
	}
	if len(args) > 1 {
		var f *fault.Fault
		if scale, f = scaleOf("format", args[1]); f != nil {
			return nil, f
		}
	}
	var unscaled *big.Int
	if whole {
		n := args[0].(value.Int).Big()
		if f := tooLong("format", n); f != nil {
			return nil, f
		}
		unscaled = new(big.Int).Mul(n, value.Power10(scale))
	} else {
		unscaled = rescale(d, scale, "half_up")
	}
	text := new(big.Int).Abs(unscaled).String()
	if len(text) <= scale {
		text = strings.Repeat("0", scale+1-len(text)) + text
	}
	var out strings.Builder
	if unscaled.Sign() < 0 {
		out.WriteString("-")
	}
	before := text[:len(text)-scale]
	for i := range len(before) {
		if i > 0 && (len(before)-i)%3 == 0 {
			out.WriteString(separator)
		}
		out.WriteByte(before[i])
	}
	if scale > 0 {
		out.WriteString(point + text[len(text)-scale:])
	}
	return value.Str(out.String()), nil
}
