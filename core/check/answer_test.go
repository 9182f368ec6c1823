package check_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

func rec(fields ...value.Field) *value.Record { return &value.Record{Fields: fields} }

func list(items ...value.Value) value.Value { return value.FromSlice(items) }

// TestMisfit: what is of a type fits it, and of what isn't it is said where and why,
// without a word of the value itself.
func TestMisfit(t *testing.T) {
	dec, _ := value.ParseDec("2.50")
	one, secret, null := value.NewInt(1), value.Str("SECRET"), value.Unit{}
	f := func(key string, v value.Value) value.Field { return value.Field{Key: key, Value: v} }
	for _, c := range []struct {
		typ  string
		v    value.Value
		want string
	}{
		{"int", one, ""},
		{"int", dec, "dec where int was said"},
		{"dec", one, "int where dec was said"},
		{"num", dec, ""},
		{"string", null, "unit where string was said"},
		{"string | unit", null, ""},
		{"int", secret, "string where int was said"},
		{"list[int]", list(), ""},
		{"list[nothing]", list(one), "item 0: int where nothing was said"},
		{"list[int]", list(one, one, secret), "item 2: string where int was said"},
		{"pair[int, string]", &value.Pair{First: one, Second: one}, "the second of a pair: int where string was said"},
		{"{}", rec(), ""},
		{"{}", rec(f("SECRET", one)), "a record with a member that wasn't said"},
		{"{a: int, b?: string}", rec(f("a", one)), ""},
		{"{a: int, b?: string}", rec(f("a", one), f("b", secret)), ""},
		{"{a: int, b?: string}", rec(f("a", one), f("b", null)), "b: unit where string was said"},
		{"{a: int, b?: string}", rec(f("b", secret)), "a record without a"},
		{"{a: int, b?: string}", rec(f("a", one), f("SECRET", secret)), "a record with a member that wasn't said"},
		{"{a: int, b: int}", rec(f("a", one)), "a record without b"},
		{"{a: int, *: string}", rec(f("SECRET", secret), f("a", one)), ""},
		{"{a: int, *: string}", rec(f("SECRET", one), f("a", one)), "a member: int where string was said"},
		{"{a: list[{b: int}]}", rec(f("a", list(rec(f("b", one)), rec(f("b", secret))))), "a: item 1: b: string where int was said"},
		{"data", list(&value.Code{}, &value.Pair{First: one, Second: null}), ""},
		{"json", list(rec(f("a", null))), ""},
		{"json", list(rec(f("a", &value.Pair{First: one, Second: one}))), "item 0: a member: pair where json was said"},
		{"json", &value.Code{}, "quoted where json was said"},
		{"code", &value.Code{}, ""},
		{"data", &value.Closure{}, "what isn't data where data was said"},
		{"list[data]", list(&value.Continuation{}), "item 0: what isn't data where data was said"},
	} {
		typ, err := check.ParseAnswer(c.typ)
		if err != nil {
			t.Fatalf("%s: %v", c.typ, err)
		}
		got := typ.Misfit(c.v)
		if c.want == "quoted where json was said" { // however kinds are called
			c.want = prim.KindQuoted.String() + " where json was said"
		}
		if got != c.want {
			t.Errorf("%s: %q, expected %q", c.typ, got, c.want)
		}
		if strings.Contains(got, "SECRET") {
			t.Errorf("%s: %q shows what came", c.typ, got)
		}
	}
}

// TestMisfitBounded: a value that shares its parts 2^60 times, and one that is nested
// endlessly deep, are refused in a bounded time, and what a plugin can send isn't.
func TestMisfitBounded(t *testing.T) {
	typ, err := check.ParseAnswer("json")
	must.NoError(t, err)
	var shared value.Value = list(value.NewInt(1))
	for range 60 {
		shared = list(shared, shared)
	}
	if why := typ.Misfit(shared); !strings.Contains(why, "too large") {
		t.Errorf("shared: %q", why)
	}
	var deep value.Value = value.Unit{}
	for range 100_000 {
		deep = list(deep)
	}
	if why := typ.Misfit(deep); !strings.Contains(why, "too deep") || len(why) > 1000 {
		t.Errorf("deep: %.100q", why)
	}
	most := make([]value.Value, 999_990)
	for i := range most {
		most[i] = value.Bool(true)
	}
	if why := typ.Misfit(list(most...)); why != "" {
		t.Errorf("as large as can be sent: %q", why)
	}
}

// TestParseAnswer: types have one spelling, and what no answer can be held to is
// refused.
func TestParseAnswer(t *testing.T) {
	for _, s := range []string{
		"int", "num", "bool | string", "unit", "data", "json", "code", "list[unit | list[int]]", "pair[int, data]",
		"{}", `{a: int, b?: string, "c d": bool, *: json}`, "{*: data}", "list[nothing]",
	} {
		if typ, err := check.ParseAnswer(s); err != nil || typ.String() != s {
			t.Errorf("%s: %v, %v", s, typ, err)
		}
	}
	for _, s := range []string{
		"", "nothing", "any", "?", "a", "int | a", "rec a. list[a]", "(int) -> int", "list[(int) -> int]", "cont[int]", "any with int",
		"code[int]", "code{fs.read}[int]", "{a: any}", "{b: int, a: int}", "{a: int, a: int}", "int | int", "data | int", "int,", "list[",
		strings.Repeat("list[", 500) + "int" + strings.Repeat("]", 500),
	} {
		if typ, err := check.ParseAnswer(s); err == nil {
			t.Errorf("%.60s is taken for %s", s, typ)
		}
	}
}

// answers makes types of answers, and values of them.
type answers struct{ *rand.Rand }

func (m answers) typ(depth int) *check.Type {
	t := &check.Type{}
	for t.Kinds == 0 {
		for _, k := range []prim.Kinds{prim.KindInt, prim.KindDec, prim.KindBool, prim.KindString, prim.KindUnit, prim.KindList, prim.KindPair, prim.KindRecord} {
			if m.IntN(5) > 0 || depth == 0 && k&ofParts != 0 {
				continue
			}
			switch t.Kinds |= k; k {
			case prim.KindList:
				t.Item = m.typ(depth - 1)
			case prim.KindPair:
				t.First, t.Second = m.typ(depth-1), m.typ(depth-1)
			case prim.KindRecord:
				for _, key := range []string{"a", "b", "c"} {
					if m.IntN(2) == 0 {
						t.Fields = append(t.Fields, check.Field{Key: key, Type: m.typ(depth - 1), Optional: m.IntN(2) == 0})
					}
				}
				if m.IntN(3) == 0 {
					t.Rest = m.typ(depth - 1)
				}
			}
		}
		if m.IntN(20) == 0 {
			return []*check.Type{check.Data, check.JSON}[m.IntN(2)]
		}
	}
	return t
}

const ofParts = prim.KindList | prim.KindPair | prim.KindRecord

func (m answers) value(t *check.Type, depth int) value.Value {
	var kinds []prim.Kinds
	for k := prim.Kinds(1); k != 0; k <<= 1 {
		if t.Kinds&k != 0 && k != prim.KindQuoted && (depth > 0 || k&ofParts == 0 || t.Kinds&^ofParts == 0) {
			kinds = append(kinds, k)
		}
	}
	part := func(p *check.Type) value.Value {
		if t.Deep {
			p = t
		}
		return m.value(p, depth-1)
	}
	switch kinds[m.IntN(len(kinds))] {
	case prim.KindInt:
		return value.NewInt(int64(m.IntN(10)))
	case prim.KindDec:
		d, _ := value.ParseDec(fmt.Sprintf("%d.5", m.IntN(10)))
		return d
	case prim.KindBool:
		return value.Bool(m.IntN(2) == 0)
	case prim.KindString:
		return value.Str(fmt.Sprint("s", m.IntN(10)))
	case prim.KindList:
		var items []value.Value
		for range m.IntN(4) {
			items = append(items, part(t.Item))
		}
		return value.FromSlice(items)
	case prim.KindPair:
		return &value.Pair{First: part(t.First), Second: part(t.Second)}
	case prim.KindRecord:
		r := &value.Record{}
		for _, f := range t.Fields {
			if !f.Optional || m.IntN(2) == 0 {
				r.Fields = append(r.Fields, value.Field{Key: f.Key, Value: part(f.Type)})
			}
		}
		if (t.Rest != nil || t.Deep) && m.IntN(2) == 0 {
			r.Fields = append(r.Fields, value.Field{Key: "z", Value: part(t.Rest)})
		}
		return r
	}
	return value.Unit{}
}

// TestAnswersGenerated: types are what is read back, values made of a type fit it,
// and fit whatever it is within; of another type that doesn't hold it some don't.
func TestAnswersGenerated(t *testing.T) {
	m := answers{rand.New(rand.NewPCG(5, 8))}
	within, outside := 0, 0
	for range 3000 {
		a, b := m.typ(3), m.typ(2)
		back, err := check.ParseAnswer(a.String())
		if err != nil || back.String() != a.String() {
			t.Fatalf("%s: %v, %v", a, back, err)
		}
		holds := check.Within(a, b) == ""
		misfits := 0
		for range 20 {
			v := m.value(a, 4)
			if why := back.Misfit(v); why != "" {
				t.Fatalf("%s: %s", a, why)
			}
			if b.Misfit(v) != "" {
				misfits++
			}
		}
		switch {
		case holds && misfits > 0:
			t.Fatalf("%s is within %s, and values of it aren't", a, b)
		case holds:
			within++
		case misfits > 0:
			outside++
		}
	}
	if within < 20 || outside < 1000 {
		t.Errorf("%d within, %d outside: this shows too little", within, outside)
	}
}

// TestMisfitOrder: fields are found whatever others there are.
func TestMisfitOrder(t *testing.T) {
	typ, err := check.ParseAnswer("{b: int, d?: int, f: int, *: string}")
	must.NoError(t, err)
	for n := range 64 {
		r := &value.Record{}
		want := true
		for i, key := range []string{"a", "b", "c", "d", "e", "f"} {
			if n&(1<<i) == 0 {
				want = want && key != "b" && key != "f"
				continue
			}
			v := value.Value(value.Str(""))
			if i%2 == 1 {
				v = value.NewInt(1)
			}
			r.Fields = append(r.Fields, value.Field{Key: key, Value: v})
		}
		slices.SortFunc(r.Fields, func(a, b value.Field) int { return strings.Compare(a.Key, b.Key) })
		if why := typ.Misfit(r); (why == "") != want {
			t.Errorf("%06b: %q", n, why)
		}
	}
}
