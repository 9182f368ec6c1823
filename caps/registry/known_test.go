package registry

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// typed is the type of a tool.
func typed(t *Tool) string { return t.Report().Type.String() }

const (
	numbers = "(num) ->{call:lib} num"
	texts   = "(string) ->{call:lib} string"
)

// TestKnownAsBound: what is known of a version is of the versions that it is bound
// to, and no other.
func TestKnownAsBound(t *testing.T) {
	l := new(memoryLog)
	r := open(t, l, nil)
	evolve(t, r, def("lib", "n => n + 1"))
	user := def("user", `x => call("lib", x)`, "call:lib")
	first := evolve(t, r, user)
	evolve(t, r, def("lib", `s => s ++ "!"`))
	if got := typed(first); got != numbers {
		t.Errorf("bound to the first: %s", got)
	}
	second := evolve(t, r, user)
	if got := typed(second); got != texts {
		t.Errorf("bound to the second: %s", got)
	}
	if c, ok := first.Cost(); !ok || !c.Steps.Finite() {
		t.Errorf("it takes %v", c.Steps)
	}
	back, err := r.Rollback("user", 1, Edit{})
	if err != nil || typed(back) != numbers || typed(second) != texts {
		t.Errorf("rolled back: %v, %s, %s", err, typed(back), typed(second))
	}
	again := open(t, l, nil)
	for version, want := range map[int]string{1: numbers, 2: texts, 3: numbers} {
		v, err := again.Version(Ref{"user", version})
		if err != nil || typed(v) != want {
			t.Errorf("version %d, read again: %v, %s", version, err, typed(v))
		}
	}
}

// TestKnownMeanwhile: a candidate that was judged before what it is bound to was
// replaced doesn't lend what was found out of it to the one that is kept.
func TestKnownMeanwhile(t *testing.T) {
	l := new(memoryLog)
	r, other := open(t, l, nil), open(t, l, nil)
	evolve(t, r, def("lib", "n => n + 1"))
	var seen []string
	made, err := r.Evolve(def("user", `x => call("lib", x)`, "call:lib"), Edit{Check: func(c *Tool, _ *Snapshot) *fault.Fault {
		seen = append(seen, typed(c))
		if len(seen) == 1 {
			evolve(t, other, def("lib", `s => s ++ "!"`))
		}
		return nil
	}})
	if err != nil || !slices.Equal(seen, []string{numbers, texts}) || typed(made) != texts {
		t.Errorf("%v: %q, then %s", err, seen, typed(made))
	}
}

// TestKnownOfImported: what is found out while an import is rehearsed, against other
// versions, isn't what is known of what is imported.
func TestKnownOfImported(t *testing.T) {
	from := New(nil)
	evolve(t, from, def("lib", "n => n + 1"))
	evolve(t, from, def("user", `x => call("lib", x)`, "call:lib"))
	text := Encode(from.Snapshot())
	tools, err := Decode(strings.NewReader(string(text)))
	must.NoError(t, err)
	for range 2 { // the same document twice, for two registries
		l := new(memoryLog)
		r := open(t, l, nil)
		evolve(t, r, def("lib", `s => s ++ "!"`))
		if _, _, _, err := r.Import(tools); err != nil {
			t.Fatal(err)
		}
		if user, _ := r.Snapshot().Get("user"); typed(user) != numbers || l.changes[len(l.changes)-1].Facts.Empty() {
			t.Errorf("%s, recorded with %+v", typed(user), l.changes[len(l.changes)-1].Facts)
		}
	}
	// Without what it says of bindings they are to what there is.
	for i := range tools {
		tools[i].Bound = nil
	}
	l := new(memoryLog)
	r := open(t, l, nil)
	evolve(t, r, def("lib", `s => s ++ "!"`))
	if _, _, _, err := r.Import(tools[1:]); err != nil {
		t.Fatal(err)
	}
	user, _ := r.Snapshot().Get("user")
	if typed(user) != texts || string(l.changes[1].Facts.Input) != string(check.InputSchema(user.Report())) || r.Proof(user).Status != ProofChecked {
		t.Errorf("%s, recorded with %+v", typed(user), l.changes[1].Facts)
	}
}

// TestKnownDecidedAnew: a tool that holds something else under another policy is
// known as before, without being looked at again.
func TestKnownDecidedAnew(t *testing.T) {
	p := policy(t, "toy:notes/**")
	r := New(p)
	evolve(t, r, def("get", `k => !toy.get(k)`, "toy.get:notes/**"))
	user := evolve(t, r, def("user", `k => (call("get", k), 1)`, "call:get"))
	report := user.Report()
	if !p.Revoke(p.Grants()[0].ID) {
		t.Fatal("nothing was revoked")
	}
	must.NoError(t, p.Replace(nil, nil))
	if _, err := r.Refresh(); err != nil {
		t.Fatal(err)
	}
	now, _ := r.Snapshot().Get("user")
	if now == user || now.Report() != report {
		t.Errorf("another tool: %t; its report: %+v", now != user, now.Report())
	}
	if got := now.Unreachable([]string{"toy.get", "toy.put", "call:get"}); !slices.Equal(got, []string{"toy.put"}) {
		t.Errorf("it can't ask for %q", got)
	}
}

// TestUnreachable: what can't be asked for is said of no operation that can be.
func TestUnreachable(t *testing.T) {
	r := New(policy(t, "toy:notes/**"))
	evolve(t, r, def("get", `k => !toy.get(k)`, "toy.get:notes/**"))
	for code, want := range map[string]string{
		`x => x`:                              "[toy.get toy.put]",
		`k => !toy.get(k)`:                    "[toy.put]",
		`k => call("get", k)`:                 "[toy.put]",
		`n => call(n, 1)`:                     "[]",
		`x => call("nobody", x)`:              "[]",
		`c => eval(c)`:                        "[toy.get toy.put]", // permits nothing
		`c => eval(c, ["toy.get"])`:           "[toy.put]",
		`c => eval(c, ["toy"])`:               "[]",
		`c => eval(c, ["toy.get", "call:*"])`: "[]",
		`x => let f = k => !toy.get(k) in x`:  "[toy.get toy.put]", // never applied
	} {
		tool, err := prepare(def("t", code))
		if err != nil {
			t.Errorf("%s: %v", code, err)
			continue
		}
		tool.bind(r.Snapshot())
		if got := fmt.Sprint(tool.Unreachable([]string{"toy.get", "toy.put"})); got != want {
			t.Errorf("%s can't ask for %s, expected %s (%+v)", code, got, want, tool.Report().Effects)
		}
	}
}

// TestKnownChains: of a tool at the end of a long chain, or of chains that branch at
// every tool, what is known takes little, and is never less than what can happen.
func TestKnownChains(t *testing.T) {
	r := New(policy(t, "toy:notes/**"))
	evolve(t, r, def("c0", `k => !toy.get(k)`, "toy.get:notes/**"))
	for i := 1; i <= 2*mostBelow; i++ {
		evolve(t, r, def(fmt.Sprint("c", i), fmt.Sprintf(`k => call("c%d", k)`, i-1), fmt.Sprint("call:c", i-1)))
	}
	for i, known := range map[int]bool{1: true, mostBelow: true, mostBelow + 1: false, 2 * mostBelow: false} {
		c, _ := r.Snapshot().Get(fmt.Sprint("c", i))
		rep := c.Report()
		any := slices.ContainsFunc(rep.Effects, func(e check.Effect) bool { return e.Op == "*" })
		if rep.Sound() != known || any == known || known && len(c.Unreachable([]string{"toy.put"})) != 1 || !known && len(c.Unreachable([]string{"toy.put"})) != 0 {
			t.Errorf("c%d: %+v", i, rep)
		}
		for _, e := range rep.Effects {
			if len(e.Via) > 2*longestVia {
				t.Errorf("c%d: via %s", i, e.Via)
			}
		}
	}
	// Two tools at each level, each calling both below: 2^20 ways down.
	evolve(t, r, def("a0", `k => !toy.get(k)`, "toy.get:notes/**"))
	evolve(t, r, def("b0", `k => (!toy.get(k), !toy.get(k))`, "toy.get:notes/**"))
	for i := 1; i <= 20; i++ {
		for _, name := range []string{"a", "b"} {
			evolve(t, r, def(fmt.Sprint(name, i), fmt.Sprintf(`k => (call("a%[1]d", k), call("b%[1]d", k))`, i-1),
				fmt.Sprint("call:a", i-1), fmt.Sprint("call:b", i-1)))
		}
	}
	top, _ := r.Snapshot().Get("a20")
	if k := top.know(ofTypes | ofSchemas | ofCost | ofProof); len(k.report.Effects) > 3*mostFound || k.size > 1<<20 {
		t.Errorf("%d effects, %d bytes", len(k.report.Effects), k.size)
	}
	if got := top.Unreachable([]string{"toy.get", "toy.put"}); !slices.Equal(got, []string{"toy.put"}) {
		t.Errorf("%q", got)
	}
	// More operations than its callers are told of are any.
	var ops []string
	for i := range mostFound + 1 {
		ops = append(ops, fmt.Sprintf(`!toy%d.get(1)`, i))
	}
	lib, err := prepare(def("lib", "x => ["+strings.Join(ops, ", ")+"]"))
	must.NoError(t, err)
	user, err := prepare(def("user", `x => call("lib", x)`))
	must.NoError(t, err)
	user.boundTo(lib)
	if got := user.Unreachable([]string{"toy5.get", "toy.put"}); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// TestForgotten: what was forgotten is found out again, and is the same, while many
// ask at once.
func TestForgotten(t *testing.T) {
	whole := remembered
	remembered = &memory{most: 20_000}
	defer func() { remembered = whole }()
	r := New(nil)
	const n = 12
	for i := range n {
		code := fmt.Sprintf("n => n + %d", i)
		var calls []string
		if i > 2 {
			code, calls = fmt.Sprintf(`n => call("t%d", n) * call("t%d", n)`, i-1, i-3), []string{fmt.Sprint("call:t", i-1), fmt.Sprint("call:t", i-3)}
		}
		evolve(t, r, def(fmt.Sprint("t", i), code, calls...))
	}
	all := r.Snapshot().All()
	said := func(x *Tool) string {
		c, _ := x.Cost()
		return fmt.Sprint(typed(x), c.Steps, string(x.InputSchema()), x.Normal(), len(x.Report().Effects), r.Proof(x))
	}
	want := make([]string, n)
	for i, x := range all {
		want[i] = said(x)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range n {
				if j := (i*(2*g+1) + g) % n; said(all[j]) != want[j] {
					t.Errorf("%s: %s, before %s", all[j].Name, said(all[j]), want[j])
				}
			}
		})
	}
	wg.Wait()
	if remembered.bytes > remembered.most && remembered.order.Len() > 1 || remembered.order.Len() == 0 {
		t.Errorf("%d bytes of %d are remembered, in %d", remembered.bytes, remembered.most, remembered.order.Len())
	}
	sum := 0
	for _, x := range all {
		sum += x.finding.known.size
	}
	if sum > 2*remembered.most {
		t.Errorf("%d bytes are there, of %d that may be", sum, remembered.most)
	}
	sum = 0
	for e := remembered.order.Front(); e != nil; e = e.Next() {
		sum += e.Value.(*finding).counted
	}
	if sum != remembered.bytes {
		t.Errorf("%d bytes are counted, there are %d", remembered.bytes, sum)
	}
}

// BenchmarkEvolve is making tools of the usual size, in memory: what is found out of
// them is most of it.
func BenchmarkEvolve(b *testing.B) {
	for _, c := range []struct{ name, code string }{
		{"square", "n => n * n"},
		{"total", "xs => fold(p => fst(p) + snd(p), 0, xs)"},
		{"slug", `s => join("-", filter(w => length(w) > 0, split(replace(s, "_", " "), " ")))`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			r := New(nil)
			n := 0
			for b.Loop() {
				n++
				if _, err := r.Evolve(def(fmt.Sprint("t", n%5000), c.code), Edit{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
