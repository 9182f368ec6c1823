package prim_test

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// anyPattern makes a regular expression, mostly a good one.
func anyPattern(r *rand.Rand, deep int) string {
	atoms := []string{"a", "b", "é", ".", "[ab]", "[^a]", "\\d", "\\w", "\\W", "\\b", "\\B", "^", "$", "(?i:A)", "(?s:.)", "(?m:^)", "(?m:$)", "\\pL", "[a-c0-9é-ü]", "", "ab", "\n", "\\s", "k", "\\A", "\\z", "(?i:é)", "[[:alpha:]]", "\\.", "(?i:ſ)"}
	if deep == 0 {
		return atoms[r.IntN(len(atoms))]
	}
	sub := func() string { return anyPattern(r, deep-1) }
	switch r.IntN(9) {
	case 0, 1, 2:
		return sub() + sub()
	case 3:
		return sub() + "|" + sub()
	case 4:
		return "(" + sub() + ")"
	case 5:
		return "(?:" + sub() + ")" + []string{"*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}?"}[r.IntN(9)]
	case 6:
		return "(?P<" + string(rune('p'+r.IntN(4))) + ">" + sub() + ")"
	case 7:
		return "(" + sub() + ")" + []string{"*", "+", "?"}[r.IntN(3)]
	}
	return atoms[r.IntN(len(atoms))]
}

func anyText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range r.IntN(n + 1) {
		b.WriteString([]string{"a", "b", "c", "é", "1", " ", "\n", "A", "K", "ü", "😀", ".", "k", "\u017f"}[r.IntN(14)])
	}
	return b.String()
}

// given is what re_find gives for a match, worked out from Go's.
func given(re *regexp.Regexp, s string, match []int) value.Value {
	text := func(i int) value.Value {
		if match[2*i] < 0 {
			return value.Str("")
		}
		return value.Str(s[match[2*i]:match[2*i+1]])
	}
	var named []value.Field
	for i, name := range re.SubexpNames() {
		if name != "" {
			named = append(named, value.Field{Key: name, Value: text(i)})
		}
	}
	slices.SortFunc(named, func(a, b value.Field) int { return strings.Compare(a.Key, b.Key) })
	switch {
	case len(named) > 0:
		return &value.Record{Fields: named}
	case re.NumSubexp() == 0:
		return text(0)
	case re.NumSubexp() == 1:
		return text(1)
	}
	var all []value.Value
	for i := range re.NumSubexp() {
		all = append(all, text(i+1))
	}
	return value.FromSlice(all)
}

// TestPatternsAsGo holds the rows of regular expressions against Go's own on generated
// patterns and texts.
func TestPatternsAsGo(t *testing.T) {
	rounds, good := 60_000, 0
	if testing.Short() {
		rounds = 5000
	}
	r := rand.New(rand.NewPCG(18, 3))
	show := func(v value.Value) string {
		s, f := call(t, "to_json", v)
		must.NoFault(t, f)
		return string(s.(value.Str))
	}
	for range rounds {
		p, s := anyPattern(r, 1+r.IntN(4)), anyText(r, 12)
		re, err := regexp.Compile(p)
		for i := 'p'; i < 't' && err == nil; i++ {
			if strings.Count(p, "<"+string(i)+">") > 1 {
				err = errors.New("Go takes a name twice, which no record does")
			}
		}
		found, f := call(t, "re_find", value.Str(s), value.Str(p))
		if (err != nil) != (f != nil) {
			t.Fatalf("%q: %v, and Go's %v", p, f, err)
		}
		if err != nil {
			if f.Kind != fault.ParseError || f.Hint == "" || !strings.Contains(f.Message, "re_find: at character ") {
				t.Fatalf("%q: %v (%s)", p, f, f.Kind)
			}
			continue
		}
		good++
		want := value.Value(value.Unit{})
		if m := re.FindStringSubmatchIndex(s); m != nil {
			want = given(re, s, m)
		}
		if show(found) != show(want) {
			t.Fatalf("re_find(%q, %q) is %s, want %s", s, p, show(found), show(want))
		}
		if b, f := call(t, "re_match", value.Str(s), value.Str(p)); f != nil || bool(b.(value.Bool)) != re.MatchString(s) {
			t.Fatalf("re_match(%q, %q) is %v, %v", s, p, b, f)
		}
		var all []value.Value
		for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
			all = append(all, given(re, s, m))
		}
		if got, f := call(t, "re_find_all", value.Str(s), value.Str(p)); f != nil || show(got) != show(value.FromSlice(all)) {
			t.Fatalf("re_find_all(%q, %q) is %s, want %s (%v)", s, p, show(got), show(value.FromSlice(all)), f)
		}
		var parts []value.Value
		for _, part := range re.Split(s, -1) {
			parts = append(parts, value.Str(part))
		}
		if got, f := call(t, "re_split", value.Str(s), value.Str(p)); f != nil || s != "" && show(got) != show(value.FromSlice(parts)) {
			t.Fatalf("re_split(%q, %q) is %s, want %s (%v)", s, p, show(got), show(value.FromSlice(parts)), f)
		}
		to := "<$$${0}>"
		if re.NumSubexp() > 0 {
			to = "[${1}]"
		}
		if got, f := call(t, "re_replace", value.Str(s), value.Str(p), value.Str(to)); f != nil || string(got.(value.Str)) != re.ReplaceAllString(s, to) {
			t.Fatalf("re_replace(%q, %q, %q) is %v, want %q (%v)", s, p, to, got, re.ReplaceAllString(s, to), f)
		}
	}
	if good < rounds/2 {
		t.Errorf("only %d of %d patterns are good", good, rounds)
	}
}

// TestNoGroup: a dollar before what names no group stands as it is.
func TestNoGroup(t *testing.T) {
	for to, want := range map[string]value.Value{
		"${}": value.Str("${}c"), "$<>$0": value.Str("$<>abc"), "${$1": value.Str("${ac"), "${}${0}": value.Str("${}abc"),
	} {
		if got, f := call(t, "re_replace", value.Str("abc"), value.Str("(a)b"), value.Str(to)); f != nil || got != want {
			t.Errorf("%s gives %v (%v), want %s", to, got, f, want)
		}
	}
}

// TestPatternSteps: what was compiled before takes the same steps, and so does a text
// whatever came before it.
func TestPatternSteps(t *testing.T) {
	_, row, _ := prim.Lookup("re_find_all")
	steps := func(s, p string) uint64 {
		return row.Work([]value.Value{value.Str(s), value.Str(p)}, prim.Unlimited)
	}
	s, p := strings.Repeat("key=value; ", 1000), `(\w+)=(\w+)[a-y]{3}|x`
	first := steps(s, p)
	for i := range 300 {
		steps("a", strings.Repeat("a", i+1))
		if i%100 == 99 && steps(s, p) != first {
			t.Fatalf("%d steps, then %d", first, steps(s, p))
		}
	}
	if first < uint64(len(s))/20 || first > uint64(len(s))*2 {
		t.Errorf("%d steps for %d bytes", first, len(s))
	}
	for left := uint64(0); left < first; left += first / 50 {
		if used := row.Work([]value.Value{value.Str(s), value.Str(p)}, left); used <= left {
			t.Fatalf("with %d steps of %d it takes %d", left, first, used)
		}
	}
}

// TestPatternBounds: what would take long to compile, or to match, is refused or ends with
// the budget.
func TestPatternBounds(t *testing.T) {
	_, row, _ := prim.Lookup("re_find_all")
	run := func(s, p string, m *prim.Meter) *fault.Fault {
		_, f := row.Walk([]value.Value{value.Str(s), value.Str(p)}, m)
		return f
	}
	for p, want := range map[string]fault.Kind{
		"(a{1000}){1000}": fault.ParseError, "((a{100}){10}){10}": fault.ParseError, "(((((a{9}){9}){9}){9}){9}": fault.ParseError, "((((a{5}){5}){5}){5}){5}": fault.ParseError, "(?:abcdefgh){200}": fault.OutOfRange,
		strings.Repeat("(", 1200) + strings.Repeat(")", 1200): fault.ParseError, strings.Repeat("a", 5000): fault.OutOfRange, strings.Repeat("a", 1200): fault.OutOfRange,
		strings.Repeat(`\pL`, 1300): fault.OutOfRange, "[" + strings.Repeat(`\pL`, 64) + "]": "", strings.Repeat(`\\p`, 70): "", `\\` + strings.Repeat(`\\\pL`, 70): fault.OutOfRange, "[" + strings.Repeat(`\pL\PN`, 40) + "]": fault.OutOfRange, "(?i)" + strings.Repeat(`[\x{80}-\x{10ffff}]`, 100): fault.OutOfRange,
		"a++": fault.ParseError, "(?=a)": fault.ParseError, `(a)\1`: fault.ParseError, "a{2,1}": fault.ParseError, "[b-a]": fault.ParseError, "(?P<n>a)(?P<n>b)": fault.ParseError, "a)": fault.ParseError, "[": fault.ParseError,
	} {
		f := run("a", p, &prim.Meter{Left: prim.Unlimited})
		if f == nil && want != "" || f != nil && (f.Kind != want || f.Hint == "") {
			t.Errorf("%.40q: %v, want %s", p, f, want)
		}
	}
	long := strings.Repeat("añb 1", 2<<20)
	looks := 0
	m := &prim.Meter{Left: 1, Look: func(parts int) { looks += parts }}
	if run(long, "(a|b)*c", m); m.Used() <= 1 || looks > 1<<16 {
		t.Errorf("with one step %d are used, and %d parts gone through", m.Used(), looks)
	}
	if f := run(long, "a", &prim.Meter{Left: prim.Unlimited, Memory: 1 << 20}); f == nil || f.Kind != fault.OutOfMemory {
		t.Errorf("in a MiB: %v", f)
	}
	_, replace, _ := prim.Lookup("re_replace")
	for _, c := range []struct {
		to   string
		left uint64
		want fault.Kind
	}{
		{strings.Repeat("${", 1<<20), prim.Unlimited, ""}, {strings.Repeat("$<${", 1<<19), prim.Unlimited, ""}, {strings.Repeat("${", 1<<20) + "}", prim.Unlimited, fault.OutOfRange},
		{strings.Repeat("$0$0", 127) + strings.Repeat("${", 1<<20), prim.Unlimited, ""},
		{strings.Repeat("$$", 1<<20), prim.Unlimited, fault.OutOfMemory}, {strings.Repeat("$$", 1<<16), 100, fault.OutOfFuel},
	} {
		looks, room := 0, 16<<20
		m := &prim.Meter{
			Left: c.left, Look: func(parts int) { looks += parts },
			Hold: func(bytes int64) *fault.Fault {
				if room -= int(bytes); room < 0 {
					return prim.OutOfMemory(16 << 20)
				}
				return nil
			},
		}
		_, f := replace.Walk([]value.Value{value.Str("ba"), value.Str("a"), value.Str(c.to)}, m)
		if kind := fault.Kind(""); f != nil {
			if kind = f.Kind; kind != c.want || len(f.Error()) > 1000 {
				t.Errorf("%.8s: %.200v", c.to, f)
			}
		} else if c.want != kind || looks < len(c.to)/4 {
			t.Errorf("%.8s gives no %s after %d looks", c.to, c.want, looks)
		}
		if c.left < prim.Unlimited && looks > len(c.to)/2+1<<12 {
			t.Errorf("%.8s is written to the end: %d looks", c.to, looks)
		}
	}
	if f := run(long[:1<<10], "(a)(b)?(c)?", &prim.Meter{Left: prim.Unlimited, Memory: 1 << 12}); f == nil || f.Kind != fault.OutOfMemory {
		t.Errorf("in 4 KiB: %v", f)
	}
}

func BenchmarkFindAll(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var text strings.Builder
	for text.Len() < 10<<20 {
		text.WriteString([]string{"the quick brown fox ", "key=value; ", "user@example.com ", "2026-11-22T10:00:00Z ", "GET /index.html 200 ", "lorem ipsum dolor sit amet\n", "42 "}[r.IntN(7)])
	}
	s := text.String()
	for _, p := range []string{`[0-9]+`, `\w+@\w+\.com`, `(\w+)=(\w+)`, `fox`, `user@\w+`, `\w+`, `(?P<d>\d{4}-\d\d-\d\d)T(?P<t>[\d:]+)Z`, `(?m)^lorem.*$`, `(?i)quick|lazy`, `[^ ]+ipsum`} {
		b.Run(p, func(b *testing.B) {
			_, row, _ := prim.Lookup("re_find_all")
			for b.Loop() {
				if _, f := row.Walk([]value.Value{value.Str(s), value.Str(p)}, &prim.Meter{Left: prim.Unlimited}); f != nil {
					b.Fatal(f)
				}
			}
		})
		b.Run(p+"/go", func(b *testing.B) {
			re := regexp.MustCompile(p)
			for b.Loop() {
				if re.NumSubexp() > 0 {
					re.FindAllStringSubmatch(s, -1)
				} else {
					re.FindAllString(s, -1)
				}
			}
		})
	}
}
