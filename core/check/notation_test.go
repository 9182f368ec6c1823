package check_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-pif/mcp-pif/core/check"
)

// drawType is any type.
func drawType(t *rapid.T, deep int) *check.Type {
	part := func() *check.Type { return drawType(t, deep-1) }
	key := rapid.SampledFrom([]string{"a", "b_1", "kind", "é", "", "a b", `"`, "*", "rec"})
	fields := func() []check.Field {
		var fs []check.Field
		for _, k := range rapid.SliceOfNDistinct(key, 0, 3, func(s string) string { return s }).Draw(t, "keys") {
			fs = append(fs, check.Field{Key: k, Type: part(), Optional: rapid.Bool().Draw(t, "optional")})
		}
		return fs
	}
	n := 9
	if deep > 0 {
		n = 17
	}
	switch rapid.IntRange(0, n).Draw(t, "part") {
	case 0:
		return check.Int
	case 1:
		return check.Dec
	case 2:
		return check.Number
	case 3:
		return check.Bool
	case 4:
		return check.Any
	case 5:
		return check.Data
	case 6:
		return check.JSON
	case 7:
		return check.Nothing
	case 8:
		return check.Dynamic
	case 9:
		return &check.Type{Vars: []string{"a", "b2"}}
	case 10:
		return check.List(part())
	case 11:
		return check.Pair(part(), part())
	case 12:
		return check.Record(fields(), nil)
	case 13:
		return check.Record(fields(), part())
	case 14:
		return check.Function(part(), part(), check.Row{Ops: []string{"call:a b", "fs.read"}, Open: rapid.Bool().Draw(t, "open")})
	case 15:
		whole := *check.List(&check.Type{Vars: []string{"t"}})
		whole.Name = "t"
		whole.Kinds |= check.Unit.Kinds
		return &whole
	case 16:
		f := check.Function(part(), part(), check.Row{})
		f.Kinds |= check.String.Kinds | check.List(nil).Kinds
		f.Item = part()
		return f
	default:
		c := check.Record(fields(), nil)
		return &check.Type{Kinds: codeKind, Gives: part(), Expects: c.Fields, Asks: check.Row{Open: true}}
	}
}

var codeKind = func() (k check.Type) { _ = json.Unmarshal([]byte(`"code"`), &k); return }().Kinds

// TestNotation: what is printed is read back, and printed the same.
func TestNotation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := drawType(t, 3)
		s := typ.String()
		again, err := check.ParseType(s)
		if err != nil {
			t.Fatalf("%v\n%s", err, s)
		}
		if again.String() != s {
			t.Fatalf("%s\nis read as\n%s", s, again)
		}
		if why := check.Within(typ, again); why != "" {
			t.Fatalf("%s is not within itself: %s", s, why)
		}
		b, err := json.Marshal(typ)
		var back check.Type
		if err != nil || json.Unmarshal(b, &back) != nil || back.String() != s {
			t.Fatalf("%s is %s in JSON (%v)", s, b, err)
		}
	})
}

func TestNotationRefuses(t *testing.T) {
	for _, s := range []string{
		"", "in", "int |", "| int", "int int", "int | int", "num | int", "list", "list[", "list[int", "list[int]]", "pair[int]",
		"{a}", "{a:}", "{a: int,}", "{b: int, a: int}", "{a: int, a: int}", "{*: int, a: int}", "(int)", "(int) ->", "int -> int",
		"(int) -> int | (int) -> int", "rec . int", "rec int. int", "rec a. rec b. int", "code[", "code[int;]", "code{fs.read}", "any with", "A", "aa", "?x",
		"(int) ->{} int", "(int) ->{b.c, a.b} int",
	} {
		if got, err := check.ParseType(s); err == nil {
			t.Errorf("%q is read as %s", s, got)
		}
	}
}

func FuzzParseType(f *testing.F) {
	for _, s := range []string{"int", "rec a. unit | pair[num, a]", `((a) ->{fs.read, *} b) -> {a?: int, "é": code[int; x: num], *: any}`, "any with list[num] | ?"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		typ, err := check.ParseType(s)
		if err != nil {
			return
		}
		once := typ.String()
		again, err := check.ParseType(once)
		if err != nil || again.String() != once {
			t.Fatalf("%q is printed as %q, which is read as %v (%v)", s, once, again, err)
		}
	})
}

// TestWithin: subtyping, with the reason where there is none.
func TestWithin(t *testing.T) {
	for _, c := range []struct {
		a, b string
		is   bool
	}{
		{"int", "num", true}, {"num", "int", false}, {"nothing", "int", true}, {"int", "any", true}, {"any", "int", false},
		{"list[int]", "list[num]", true}, {"list[num]", "list[int]", false}, {"list[nothing]", "list[int]", true},
		{"{a: int, b: int}", "{a: int, *: any}", true}, {"{a: int, b: int}", "{a: int}", false}, {"{a?: int}", "{a: int}", false}, {"{a: int}", "{a?: num, b?: int}", true},
		{"{*: int}", "{a: int, *: int}", false}, {"{*: int}", "{a?: num, *: num}", true},
		{"(num) -> int", "(int) -> num", true}, {"(int) -> int", "(num) -> int", false}, {"(int) ->{fs.read} int", "(int) -> int", false}, {"(int) -> int", "(int) ->{*} int", true},
		{"rec a. unit | pair[int, a]", "rec b. unit | pair[num, b]", true}, {"rec a. unit | pair[num, a]", "rec b. unit | pair[int, b]", false},
		{"pair[int, unit]", "rec b. unit | pair[num, b]", true}, {"rec a. (a) -> int", "rec b. (b) -> num", false},
		{"data", "any", true}, {"list[data]", "data", true}, {"list[any]", "data", false}, {"json", "data", true}, {"data", "json", false}, {"() -> int", "", false},
		{"a", "a", true}, {"a", "b", false}, {"a", "any", true}, {"int", "a", false}, {"?", "int", true}, {"int", "?", true},
		{"code[int]", "code", true}, {"code", "code[int]", false}, {"cont[int]", "cont[num]", true},
	} {
		a, errA := check.ParseType(c.a)
		b, errB := check.ParseType(c.b)
		if errA != nil || errB != nil {
			if c.b != "" {
				t.Errorf("%v, %v", errA, errB)
			}
			continue
		}
		if why := check.Within(a, b); (why == "") != c.is {
			t.Errorf("%s within %s: %q", a, b, why)
		}
	}
}
