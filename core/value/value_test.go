package value_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/value"
)

func parse(t *testing.T, s string) *big.Int {
	t.Helper()
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		t.Fatalf("%s is no integer", s)
	}
	return n
}

// TestInt: an integer is in its smallest form whichever way it was made, so
// that equal integers are equal in Go where they fit 64 bits.
func TestInt(t *testing.T) {
	for _, c := range []struct {
		digits string
		small  bool
		words  int
	}{
		{"0", true, 1},
		{"-1", true, 1},
		{"9223372036854775807", true, 1},
		{"-9223372036854775808", true, 1},
		{"9223372036854775808", false, 1},
		{"-9223372036854775809", false, 1},
		{"18446744073709551615", false, 1},
		{"18446744073709551616", false, 2},
		{"-340282366920938463463374607431768211455", false, 2},
		{"340282366920938463463374607431768211456", false, 3},
	} {
		b := parse(t, c.digits)
		i := value.NewBig(b)
		n, small := i.Int64()
		if small != c.small || small && n != b.Int64() {
			t.Errorf("%s: Int64 gives %d, %v", c.digits, n, small)
		}
		if i.Big().Cmp(b) != 0 {
			t.Errorf("%s: Big gives %v", c.digits, i.Big())
		}
		if i.Words() != c.words {
			t.Errorf("%s has %d words, want %d", c.digits, i.Words(), c.words)
		}
		if small && value.NewInt(b.Int64()) != i {
			t.Errorf("%s: NewInt and NewBig give different values", c.digits)
		}
		if i.Type() != value.TypeInt {
			t.Errorf("%s is of type %s", c.digits, i.Type())
		}
	}
	if n, ok := (value.Int{}).Int64(); n != 0 || !ok {
		t.Errorf("the zero value is %d", n)
	}
}

// TestBigIsNotShared: the big.Int of a small integer is the caller's own.
func TestBigIsNotShared(t *testing.T) {
	i := value.NewInt(math.MaxInt64)
	i.Big().SetInt64(0)
	if n, _ := i.Int64(); n != math.MaxInt64 {
		t.Errorf("the integer became %d", n)
	}
}

func TestLists(t *testing.T) {
	items := []value.Value{value.NewInt(1), value.Str("a"), value.Nil{}}
	list := value.FromSlice(items)
	if got, ok := value.Slice(list); !ok || !slices.Equal(got, items) {
		t.Errorf("got %v, %v", got, ok)
	}
	if list.Type() != value.TypeList || list.(*value.Cons).Head != items[0] {
		t.Errorf("the list is %v", list)
	}
	if v := value.FromSlice(nil); v != (value.Nil{}) || v.Type() != value.TypeList {
		t.Errorf("no items give %v", v)
	}
	if got, ok := value.Slice(value.Nil{}); !ok || len(got) != 0 {
		t.Errorf("the empty list has %v, %v", got, ok)
	}
	for _, v := range []value.Value{
		value.NewInt(1), value.Str("ab"), &value.Pair{First: items[0], Second: value.Nil{}},
		&value.Cons{Head: items[0], Tail: value.NewInt(1)},
	} {
		if got, ok := value.Slice(v); ok {
			t.Errorf("%v is a list of %v", v, got)
		}
	}
}

func TestTypes(t *testing.T) {
	for v, want := range map[value.Value]value.Type{
		value.Bool(true): "bool", value.Str(""): "string", value.Unit{}: "unit", value.Nil{}: "list",
		&value.Cons{}: "list", &value.Pair{}: "pair", &value.Record{}: "record", &value.Closure{}: "function",
		&value.Code{}: "quoted", &value.Continuation{}: "continuation", value.NewInt(1): "int",
	} {
		if v.Type() != want {
			t.Errorf("%T is of type %s, want %s", v, v.Type(), want)
		}
	}
}

// cells is a memory with pairs of a number and the next word.
type cells struct{ forced int }

func (c *cells) Force(w uint64) value.Value {
	c.forced++
	if w == 0 {
		return value.Nil{}
	}
	return &value.Cons{Head: value.NewInt(int64(w)), Tail: value.Lazy{In: c, Word: w - 1}}
}

// TestForce gets the outermost part of a lazy value, and only that.
func TestForce(t *testing.T) {
	m := new(cells)
	lazy := value.Lazy{In: m, Word: 3}
	if lazy.Type() != value.TypeList {
		t.Errorf("the type is %s", lazy.Type())
	}
	m.forced = 0
	cell, ok := value.Force(lazy).(*value.Cons)
	if !ok || cell.Head != value.NewInt(3) || cell.Tail != (value.Lazy{In: m, Word: 2}) || m.forced != 1 {
		t.Errorf("got %v after %d parts", cell, m.forced)
	}
	if v := value.Force(value.Str("a")); v != value.Str("a") {
		t.Errorf("got %v", v)
	}
}

// TestPower10: the powers are exact, and a large one is one multiplication.
func TestPower10(t *testing.T) {
	ten, want := big.NewInt(10), big.NewInt(1)
	for n := range 2*value.MaxDigits + 200 {
		if value.Power10(n).Cmp(want) != 0 {
			t.Fatalf("10^%d is wrong", n)
		}
		want.Mul(want, ten)
	}
	if n := testing.AllocsPerRun(10, func() { value.Power10(4000) }); n > 2 {
		t.Errorf("10^4000 takes %v allocations", n)
	}
}
