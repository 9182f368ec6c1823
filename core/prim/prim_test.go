package prim_test

import (
	"encoding/json"
	"flag"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/value"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestRows: every row says all that is derived from it.
func TestRows(t *testing.T) {
	for i := range prim.Table {
		r := &prim.Table[i]
		if r.Name == "" || r.Group == "" || r.Result == 0 {
			t.Errorf("row %d %q lacks name, group or result", i, r.Name)
		}
		if !strings.HasSuffix(r.Doc, ".") || strings.Contains(r.Doc, ". ") {
			t.Errorf("%s: the doc is not one sentence: %q", r.Name, r.Doc)
		}
		if meanings := b2i(r.Form) + b2i(r.Eval != nil) + b2i(r.Analysis != nil) + b2i(r.Body != ""); meanings != 1 {
			t.Errorf("%s: a row is a form, or has an Eval, an Analysis or a Body, not %d of them", r.Name, meanings)
		}
		good, bad := 0, 0
		for _, x := range r.Examples {
			if (x.Want == "") == (x.Fault == "") {
				t.Errorf("%s: the example %s wants neither result nor fault, or both", r.Name, x.Code)
			}
			if x.Fault != "" {
				bad++
				continue
			}
			good++
			if !json.Valid([]byte(x.Want)) {
				t.Errorf("%s: %s is not JSON", r.Name, x.Want)
			}
		}
		if good == 0 || bad == 0 {
			t.Errorf("%s has %d examples that succeed and %d that fail", r.Name, good, bad)
		}
		if id, found, ok := prim.Lookup(r.Name); r.Operation() && (!ok || found != r || id != term.ID(i)) {
			t.Errorf("%s isn't found", r.Name)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestExamplesParse: an example is a parse_error exactly where it says so, and
// a row's first example is a term with the row in it.
func TestExamplesParse(t *testing.T) {
	for i := range prim.Table {
		r := &prim.Table[i]
		for _, x := range r.Examples {
			_, f := parse.Code([]byte(x.Code), parse.Options{})
			if (f != nil) != (x.Fault == fault.ParseError) {
				t.Errorf("%s: parsing %s: %v", r.Name, x.Code, f)
			}
		}
		if r.Operation() && !strings.Contains(r.Correct(), `"`+r.Name+`"`) {
			t.Errorf("%s: the correct form %s lacks it", r.Name, r.Correct())
		}
	}
}

func i64(n int64) value.Value { return value.NewInt(n) }

func large(s string) value.Value {
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		panic(s)
	}
	return value.NewBig(n)
}

// TestArithmetic holds the fast path of 64 bits against big integers around
// every boundary.
func TestArithmetic(t *testing.T) {
	var edge []*big.Int
	for _, s := range []string{"0", "1", "2", "3", "7", "4294967295", "4294967296", "3037000500", "9223372036854775807", "9223372036854775808", "9223372036854775809", "18446744073709551616", "340282366920938463463374607431768211456"} {
		n := large(s).(value.Int).Big()
		edge = append(edge, n, new(big.Int).Neg(n))
	}
	floor := func(a, b *big.Int) (q, m *big.Int) {
		// The definition: the largest q with q·b on the right side of a.
		q, m = new(big.Int).DivMod(a, b, new(big.Int))
		if m.Sign() != 0 && b.Sign() < 0 {
			// Euclid's remainder is positive: one step further down.
			q, m = q.Sub(q, big.NewInt(1)), m.Add(m, b)
		}
		return q, m
	}
	want := map[string]func(a, b *big.Int) value.Value{
		"add": func(a, b *big.Int) value.Value { return value.NewBig(new(big.Int).Add(a, b)) },
		"sub": func(a, b *big.Int) value.Value { return value.NewBig(new(big.Int).Sub(a, b)) },
		"mul": func(a, b *big.Int) value.Value { return value.NewBig(new(big.Int).Mul(a, b)) },
		"div": func(a, b *big.Int) value.Value { q, _ := floor(a, b); return value.NewBig(q) },
		"mod": func(a, b *big.Int) value.Value { _, m := floor(a, b); return value.NewBig(m) },
		"eq":  func(a, b *big.Int) value.Value { return value.Bool(a.Cmp(b) == 0) },
		"lt":  func(a, b *big.Int) value.Value { return value.Bool(a.Cmp(b) < 0) },
		"lte": func(a, b *big.Int) value.Value { return value.Bool(a.Cmp(b) <= 0) },
		"gt":  func(a, b *big.Int) value.Value { return value.Bool(a.Cmp(b) > 0) },
		"gte": func(a, b *big.Int) value.Value { return value.Bool(a.Cmp(b) >= 0) },
	}
	for name, oracle := range want {
		_, r, _ := prim.Lookup(name)
		for _, a := range edge {
			for _, b := range edge {
				args := []value.Value{value.NewBig(a), value.NewBig(b)}
				got, f := r.Eval(args)
				if b.Sign() == 0 && (name == "div" || name == "mod") {
					if f == nil || f.Kind != fault.DivisionByZero {
						t.Errorf("%s %v %v: %v, %v", name, a, b, got, f)
					}
					continue
				}
				if w := oracle(a, b); f != nil || prim.Describe(got) != prim.Describe(w) {
					t.Errorf("%s %v %v = %v, want %v", name, a, b, got, w)
				}
				if n, ok := got.(value.Int); ok {
					if _, fits := n.Int64(); fits != n.Big().IsInt64() {
						t.Errorf("%s %v %v = %v is not in its smallest form", name, a, b, got)
					}
					if size := r.Size(args); size < int64(8*n.Words()) {
						t.Errorf("%s %v %v: size %d is less than the result's", name, a, b, size)
					}
				}
				if c := r.Cost(args); c != 0 {
					t.Errorf("%s %v %v costs %d", name, a, b, c)
				}
			}
		}
	}
}

// TestCost: work beyond 64 words costs a step for each 64 words, or pairs of them.
func TestCost(t *testing.T) {
	words := func(n int) value.Value { return value.NewBig(new(big.Int).Lsh(big.NewInt(1), uint(64*n-1))) }
	for _, c := range []struct {
		name string
		args []value.Value
		want uint64
	}{
		{"add", []value.Value{words(64), words(64)}, 0},
		{"add", []value.Value{words(65), i64(1)}, 1},
		{"sub", []value.Value{i64(1), words(640)}, 10},
		{"eq", []value.Value{words(128), words(64)}, 2},
		{"mul", []value.Value{words(64), words(64)}, 0},
		{"mul", []value.Value{words(65), words(64)}, 65},
		{"mul", []value.Value{words(65), i64(2)}, 1},
		{"div", []value.Value{words(100), words(10)}, 15},
		{"mul", []value.Value{words(100), value.Str("a")}, 0},
		{"length", []value.Value{value.FromSlice(make([]value.Value, 1<<14))}, 0},
		{"length", []value.Value{value.FromSlice(make([]value.Value, 1<<14+1))}, 256},
		{"length", []value.Value{value.Str(strings.Repeat("a", 1000))}, 0},
	} {
		_, r, _ := prim.Lookup(c.name)
		if got := r.Cost(c.args); got != c.want {
			t.Errorf("%s costs %d, want %d", c.name, got, c.want)
		}
	}
}

// TestMismatch: a type error says which operand is wrong, what it is, what was
// expected, and gives a correct term.
func TestMismatch(t *testing.T) {
	some := value.FromSlice([]value.Value{value.Bool(true)})
	for _, c := range []struct {
		name          string
		args          []value.Value
		message, hint string
	}{
		{"add", []value.Value{i64(1), value.Str("a")}, `add takes a number as its second operand, not the string "a"`, `{"add":[2,3]}`},
		{"add", []value.Value{value.Unit{}, value.Str("a")}, `add takes a number as its first operand, not null`, `{"add":[2,3]}`},
		{"not", []value.Value{value.FromSlice([]value.Value{value.Bool(true)})}, `not takes true or false as its operand, not a list`, `without brackets`},
		{"eq", []value.Value{value.Str("a"), value.Str("a")}, `eq takes a number as its first operand, not the string "a"`, `use {"equal":[A,B]}`},
		{"cons", []value.Value{i64(1), i64(2)}, `cons takes a list as its "tail", not the integer 2`, `{"cons":{"head"`},
		{"fst", []value.Value{value.Nil{}}, `fst takes a pair as its operand, not the empty list`, `{"pair":[1,2]}`},
		{"length", []value.Value{i64(5)}, `length takes a string or a list as its operand, not the integer 5`, `{"length":[1,2,3]}`},
		{"concat", []value.Value{value.Str("n"), large("99999999999999999999")}, `concat takes a string as its second operand, not the integer 99999999999999999999`, `{"concat":["ab","c"]}`},
		{"concat", []value.Value{value.Str("n"), i64(1)}, `concat takes a string as its second operand, not the integer 1`, `{"to_text":V}`},
		{"concat", []value.Value{some, some}, `concat takes a string as its first operand, not a list`, `{"append":[A,B]}`},
		{"add", []value.Value{value.Str("a"), i64(1)}, `add takes a number as its first operand, not the string "a"`, `{"concat":[A,B]}`},
		{"add", []value.Value{some, some}, `add takes a number as its first operand, not a list`, `{"append":[A,B]}`},
		{"get", []value.Value{some, value.Str("length")}, `get takes a record as its first operand, not a list`, `{"length":V}`},
		{"nth", []value.Value{&value.Record{}, i64(0)}, `nth takes a list as its first operand, not a record`, `{"entries":R}`},
	} {
		_, r, _ := prim.Lookup(c.name)
		v, f := r.Eval(c.args)
		if f == nil {
			t.Errorf("%s gives %v", c.name, v)
			continue
		}
		if f.Kind != fault.TypeError || f.Message != c.message || !strings.Contains(f.Hint, c.hint) || f.Got == "" || f.Expected == "" {
			t.Errorf("%s: %s: %s\n%s", c.name, f.Kind, f.Message, f.Hint)
		}
	}
}

func TestDescribeIsShort(t *testing.T) {
	for _, v := range []value.Value{value.Str(strings.Repeat("ß", 1<<20)), value.NewBig(new(big.Int).Lsh(big.NewInt(1), 1<<24))} {
		if s := prim.Describe(v); len(s) > 120 {
			t.Errorf("%d bytes: %s", len(s), s)
		}
	}
}

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{
		"ADD": "add", "Eq": "eq", "plus": "add", "ad": "add", "ads": "add", "lenght": "length", "isempty": "isEmpty", "lambda": "lam",
		"foldl": "fold", "tial": "tail", "conact": "concat", "codeof": "code_of", "mapp": "map", "zzz": "", "foo": "", "analyze": "analyze", "x": "", "": "", "==": "equal",
		"str_split": "split", "jsonParse": "parse_json", "array_push": "push", "sort_list": "sort", "join_strings": "join", "list_zzzq": "", "listing": "",
	} {
		if got := prim.Nearest(word); got != want {
			t.Errorf("%q is near %q, want %q", word, got, want)
		}
	}
	for _, words := range prim.Table {
		if near := prim.Nearest(words.Name); words.Operation() && near != words.Name {
			t.Errorf("%q is near %q", words.Name, near)
		}
	}
}

// TestCard holds the card against its golden file, and small.
func TestCard(t *testing.T) {
	card := prim.Card()
	const golden = "testdata/card.txt"
	if *update {
		must.NoError(t, os.MkdirAll("testdata", 0o755))
		must.NoError(t, os.WriteFile(golden, []byte(card), 0o644))
	}
	want, err := os.ReadFile(golden)
	must.NoError(t, err)
	if card != string(want) {
		t.Errorf("the card changed; look at it and run with -update:\n%s", card)
	}
	// What each session pays for: a card that lacked the order of operands, pairs,
	// dates and keys had 1,758 bytes, and half of the first programs made with it failed.
	if len(card) > 2560 {
		t.Errorf("the card has %d bytes", len(card))
	}
	told := strings.FieldsFunc(card, func(c rune) bool { return strings.ContainsRune(`{}":[](),;`+"\n ", c) })
	for i := range prim.Table {
		r := &prim.Table[i]
		if sign := prim.CardSign(r.Name); sign != "" {
			if !strings.Contains(card, sign) {
				t.Errorf("the card lacks %s, which is the sign of %s", sign, r.Name)
			}
		} else if !slices.Contains(told, r.Name) && !slices.Contains(told, r.Group+".") && !slices.Contains(told, r.Group) {
			t.Errorf("the card lacks %s", r.Name)
		}
	}
}

// TestTypeNames: help with types, and with type_of, says all that type_of gives.
func TestTypeNames(t *testing.T) {
	topic, _ := prim.TopicNamed("types")
	_, r, _ := prim.Lookup("type_of")
	for _, of := range []value.Type{value.TypeInt, value.TypeDec, value.TypeBool, value.TypeString, value.TypeUnit, value.TypeList, value.TypePair, value.TypeRecord, value.TypeFunction, value.TypeQuoted, value.TypeContinuation} {
		if name := string(of); !strings.Contains(topic.Doc, name) || !strings.Contains(r.Doc, name) {
			t.Errorf("%s isn't told", name)
		}
	}
}

// TestRaisedHint: who runs into a raise is not told to catch it in the code that raises on purpose.
func TestRaisedHint(t *testing.T) {
	_, r, _ := prim.Lookup("raise")
	if _, f := r.Walk([]value.Value{value.Str("no")}, &prim.Meter{Left: prim.Unlimited}); !strings.HasPrefix(f.Hint, "The program raises this itself; whoever calls it can catch it") {
		t.Error(f.Hint)
	}
}

// TestNoItem: what is expected can be given, and the hint shows the row that
// failed.
func TestNoItem(t *testing.T) {
	some := value.FromSlice([]value.Value{i64(1), i64(2)})
	for _, c := range []struct {
		name           string
		list           value.Value
		expected, hint string
	}{
		{"nth", some, "an index from 0 to 1", `{"nth":[L,I]}`},
		{"nth", value.Nil{}, "a list that has items", `{"nth":[L,I]}`},
		{"set_nth", some, "an index from 0 to 1", `{"set_nth":[L,I,V]}`},
		{"set_nth", value.Nil{}, "a list that has items", `{"set_nth":[L,I,V]}`},
	} {
		_, r, _ := prim.Lookup(c.name)
		_, f := r.Eval([]value.Value{c.list, i64(7), i64(0)}[:len(r.Params)])
		if f == nil || f.Expected != c.expected || !strings.Contains(f.Hint, c.hint) {
			t.Errorf("%s: %v, %q, %q", c.name, f, f.Expected, f.Hint)
		}
	}
}
