package registry

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"pgregory.net/rapid"
)

// A naive registry: every version of every name, and which names there are.
type naive struct {
	versions map[string][]naiveVersion // the last is current, where it lives
	live     map[string]bool
}

type naiveVersion struct {
	code  string
	bound string // "name@version", or ""
}

// line is how the model and the registry are compared.
func line(name string, version int, code, bound string) string {
	return fmt.Sprintf("%s@%d %s -> %s", name, version, code, bound)
}

func (n *naive) String() string {
	var lines []string
	for name := range n.live {
		if n.live[name] {
			v := n.versions[name][len(n.versions[name])-1]
			lines = append(lines, line(name, len(n.versions[name]), v.code, v.bound))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func shown(s *Snapshot) string {
	var lines []string
	for _, t := range s.All() {
		bound := ""
		for name, b := range t.Bound {
			bound += fmt.Sprintf("%s@%d", name, b.Version)
			if b.Name != name {
				bound += " is " + b.Name
			}
		}
		lines = append(lines, line(t.Name, t.Version, string(t.Program().Text()), bound))
	}
	return strings.Join(lines, "\n")
}

// TestModel: whatever several registries on one log do in turn, each is, when it
// has refreshed, what a naive one is; so is one that is opened then; and the past
// is what it was.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := new(memoryLog)
		all := make([]*Registry, 3)
		for i := range all {
			r, problems, err := Open(l, nil)
			if err != nil || problems != nil {
				t.Fatal(err, problems)
			}
			all[i] = r
		}
		model := &naive{map[string][]naiveVersion{}, map[string]bool{}}
		past := []string{""} // by the number of changes
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		current := func(name string) int {
			if !model.live[name] {
				return 0
			}
			return len(model.versions[name])
		}
		changed := func(what string, err error, want fault.Kind, apply func()) {
			if kind(err) != want {
				t.Fatalf("%s: %v, expected %q", what, err, want)
			}
			if want == "" {
				apply()
				past = append(past, model.String())
			}
		}
		edit := func(name string) (o Edit, conflict bool) {
			if rapid.IntRange(0, 3).Draw(t, "conditional") > 0 {
				return Edit{}, false
			}
			n := rapid.IntRange(0, 3).Draw(t, "if_version")
			return Edit{IfVersion: &n}, n != current(name)
		}
		expect := func(conflict bool, otherwise fault.Kind) fault.Kind {
			if conflict {
				return fault.Conflict
			}
			return otherwise
		}
		t.Repeat(map[string]func(*rapid.T){
			"evolve": func(t *rapid.T) {
				name, other := names.Draw(t, "name"), names.Draw(t, "other")
				code := fmt.Sprintf("(%d, code_of(%q))", rapid.IntRange(0, 2).Draw(t, "n"), other)
				bound := ""
				if v := current(other); v > 0 && other != name {
					bound = fmt.Sprintf("%s@%d", other, v)
				}
				o, conflict := edit(name)
				made, err := rapid.SampledFrom(all).Draw(t, "registry").Evolve(def(name, code), o)
				if v := current(name); err == nil && v > 0 && model.versions[name][v-1] == (naiveVersion{code, bound}) {
					if conflict || made.Version != v {
						t.Fatalf("version %d, and %d is the same", made.Version, v)
					}
					return
				}
				changed("evolve", err, expect(conflict, ""), func() {
					model.versions[name] = append(model.versions[name], naiveVersion{code, bound})
					model.live[name] = true
				})
			},
			"retire": func(t *rapid.T) {
				name := names.Draw(t, "name")
				o, conflict := edit(name)
				otherwise := fault.Kind("")
				if !model.live[name] {
					otherwise = fault.NoTool
				}
				_, err := rapid.SampledFrom(all).Draw(t, "registry").Retire(name, o)
				changed("retire", err, expect(conflict, otherwise), func() { model.live[name] = false })
			},
			"rollback": func(t *rapid.T) {
				name, to := names.Draw(t, "name"), rapid.IntRange(1, 4).Draw(t, "to")
				o, conflict := edit(name)
				otherwise := fault.Kind("")
				switch n := len(model.versions[name]); {
				case n == 0:
					otherwise = fault.NoTool
				case to > n:
					otherwise = fault.OutOfRange
				}
				_, err := rapid.SampledFrom(all).Draw(t, "registry").Rollback(name, to, o)
				changed("rollback", err, expect(conflict, otherwise), func() {
					was := model.versions[name][to-1]
					if was.bound == "" {
						// A name that nothing stood for stands for what there is.
						other := was.code[strings.Index(was.code, `"`)+1 : len(was.code)-3]
						if v := current(other); v > 0 && other != name {
							was.bound = fmt.Sprintf("%s@%d", other, v)
						}
					}
					model.versions[name] = append(model.versions[name], was)
					model.live[name] = true
				})
			},
			"refresh": func(t *rapid.T) {
				r := rapid.SampledFrom(all).Draw(t, "registry")
				must.Succeed(t)(r.Refresh())
				if got, want := shown(r.Snapshot()), model.String(); got != want {
					t.Fatalf("it is\n%s\nexpected\n%s", got, want)
				}
				holdsTogether(t, r)
			},
			"": func(t *rapid.T) {
				if r := rapid.SampledFrom(all).Draw(t, "seen"); shown(r.Snapshot()) != past[r.Snapshot().Seq()] {
					t.Fatalf("after %d changes it is\n%s", r.Snapshot().Seq(), shown(r.Snapshot()))
				}
			},
		})
		seq := rapid.IntRange(0, len(past)-1).Draw(t, "seq")
		then, err := all[0].At(uint64(seq))
		if err != nil || shown(then) != past[seq] {
			t.Fatalf("after %d changes it was\n%s\nnot\n%s\n%v", seq, past[seq], shown(then), err)
		}
		opened, problems, err := Open(l, nil)
		if err != nil || problems != nil || shown(opened.Snapshot()) != model.String() {
			t.Fatal(shown(opened.Snapshot()), err, problems)
		}
		holdsTogether(t, opened)
		for name, versions := range model.versions {
			for i, v := range versions {
				got, err := opened.Version(Ref{name, i + 1})
				if err != nil || string(got.Program().Text()) != v.code {
					t.Fatalf("%s@%d is %+v, %v", name, i+1, got, err)
				}
			}
			if changes, more, err := opened.History(name, 0, 1000); err != nil || more || len(changes) < len(versions) {
				t.Fatal(changes, more, err)
			}
		}
	})
}

// holdsTogether checks what a registry counts against what there is.
func holdsTogether(t *rapid.T, r *Registry) {
	fresh := newHoldings(newIndex())
	for _, tool := range r.Snapshot().All() {
		fresh.enter(tool)
	}
	if !maps.Equal(fresh.count, r.held.count) || !maps.Equal(fresh.bySeq, r.held.bySeq) || fresh.code != r.held.code || fresh.told != r.held.told {
		t.Fatalf("it counts %d versions of %d bytes, there are %d of %d", len(r.held.count), r.held.code, len(fresh.count), fresh.code)
	}
}

// TestConcurrent: of several registries on one log no update is lost, and the
// numbers of each tool have no gap.
func TestConcurrent(t *testing.T) {
	l := new(memoryLog)
	const writers, each = 8, 60
	all := make([]*Registry, 3)
	for i := range all {
		all[i] = open(t, l, nil)
	}
	var mu sync.Mutex
	seen := map[Ref]int{}
	count := func(made *Tool, err error) {
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		seen[made.ref()]++
		mu.Unlock()
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			r := all[w%len(all)]
			for i := range each {
				// Some with a check, which goes beside others.
				o := Edit{}
				if i%2 == 0 {
					o.Check = func(*Tool, *Snapshot) *fault.Fault { return nil }
				}
				count(r.Evolve(def(fmt.Sprint("t", (w+i)%5), fmt.Sprint(w*1000+i)), o))
				if s := r.Snapshot(); s.Len() != len(s.All()) {
					t.Error("a snapshot miscounts")
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, r := range all {
		must.Succeed(t)(r.Refresh())
	}
	for _, tool := range all[0].Snapshot().All() {
		total += tool.Version
		for v := 1; v <= tool.Version; v++ {
			if seen[Ref{tool.Name, v}] != 1 {
				t.Errorf("%s@%d was made %d times", tool.Name, v, seen[Ref{tool.Name, v}])
			}
		}
		for _, r := range all[1:] {
			if other, _ := r.Snapshot().Get(tool.Name); other == nil || other.Version != tool.Version || other.Hash != tool.Hash {
				t.Errorf("%s is %+v for another", tool.Name, other)
			}
		}
	}
	if total != writers*each {
		t.Errorf("%d versions were counted, %d made", total, writers*each)
	}
}

// TestOnChange: who listens hears of every change, whoever made it, once.
func TestOnChange(t *testing.T) {
	l := new(memoryLog)
	mine, other := open(t, l, nil), open(t, l, nil)
	var heard []string
	mine.OnChange(func(names []string) { heard = append(heard, strings.Join(names, " ")) })
	evolve(t, mine, def("a", "1"))
	evolve(t, other, def("b", "1"))
	evolve(t, other, def("c", "1"))
	evolve(t, other, def("d", "1"))
	must.Succeed(t)(other.Retire("d", Edit{}))
	if changed, err := mine.Refresh(); !changed || err != nil {
		t.Error(changed, err)
	}
	if changed, err := mine.Refresh(); changed || err != nil {
		t.Error(changed, err)
	}
	must.Succeed(t)(other.Retire("a", Edit{}))
	evolve(t, mine, def("b", "2")) // hears of a first
	if want := []string{"a", "b c", "a", "b"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, expected %q", heard, want)
	}
}

// hard is code that is made to be hard to find things out of: long, deep, or with
// types and costs that grow without end. deep is the nesting that the parser lets
// through.
func hard() map[string]string {
	nest := func(n int, before, inner, after string) string {
		return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
	}
	fill := func(n int, before, unit, after string) string {
		return before + strings.TrimSuffix(strings.Repeat(unit, n/len(unit)), ",") + after
	}
	lets := func(n int, first, last, each string) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"let":[["v0",%s]`, first)
		for i := range n {
			b.WriteString(strings.NewReplacer("%0", fmt.Sprintf(`{"var":"v%d"}`, i), "%1", fmt.Sprint("v", i+1)).Replace(`,["%1",` + each + `]`))
		}
		return b.String() + `],"in":` + strings.ReplaceAll(last, "%0", fmt.Sprintf(`{"var":"v%d"}`, n)) + "}"
	}
	const whole = 250_000
	const small = proofBytes - 400
	m := map[string]string{
		"a list":               fill(whole, "[1,", "1,", "]"),
		"failures":             fill(whole-1000, "[1,", `{"add":[1,"a"]},`, "]"),
		"maps":                 fill(whole-1000, "[", `{"map":[{"lam":"x","body":{"mul":[{"var":"x"},3]}},[1,2,3]]},`, "]"),
		"operations":           fill(whole-1000, "[", `{"fs.read":"a"},`, "]"),
		"other operations":     `[` + many(1_000, `{"toy%d.get":{"path":"a"}}`) + `]`,
		"deep operands":        nest(4_900, `{"add":[1,`, `1`, `]}`),
		"deep functions":       nest(9_000, `{"lam":"x","body":`, `{"var":"x"}`, `}`),
		"deep lists":           nest(9_900, `[`, `1`, `]`),
		"deep evals":           nest(4_900, `{"eval":{"quote":`, `1`, `}}`),
		"deep tries":           nest(9_000, `{"try":`, `1`, `}`),
		"deep sorts":           nest(1_500, `{"sort":`, `[1]`, `}`),
		"pairs of pairs":       lets(100, `{"pair":[1,2]}`, `%0`, `{"pair":[%0,%0]}`),
		"functions giving two": lets(40, `{"lam":"z","body":{"var":"z"}}`, `{"app":[%0,1]}`, `{"lam":"z","body":{"pair":[{"app":[%0,{"var":"z"}]},{"app":[%0,{"var":"z"}]}]}}`),
		"functions twice over": lets(40, `{"lam":"x","body":{"add":[{"var":"x"},1]}}`, `{"app":[%0,1]}`, `{"lam":"x","body":{"app":[%0,{"app":[%0,{"var":"x"}]}]}}`),
		"squares of squares":   lets(60, `{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`, `%0`, `{"lam":"x","body":{"app":[%0,{"mul":[{"var":"x"},{"var":"x"}]}]}}`),
		"any of many keys": `{"lam":"xs","body":{"fold":[{"lam":"p","body":{"cond":[` +
			many(40, `[{"eq":[{"snd":{"var":"p"}},%d]},{"put":[{"fst":{"var":"p"}},"k%[1]d",{"fst":{"var":"p"}}]}]`) + `],"else":{"fst":{"var":"p"}}}},{"record":{}},{"var":"xs"}]}}`,
		"self on parts": `{"lam":"x","body":[` + many(100, `{"app":[{"self":true},{"nth":[{"var":"x"},%d]}]}`) + `]}`,
	}
	maps.Copy(m, costly())
	// What is small enough for its cost and its certificate to be worked out.
	m["small: a list"] = fill(small, "[1,", "1,", "]")
	m["small: sorts"] = fill(small, `{"lam":"x","body":[`, `{"sort":{"var":"x"}},`, "]}")
	m["small: functions"] = nest(small/20, `{"lam":"x","body":`, `{"var":"x"}`, `}`)
	m["small: products"] = `{"lam":"x","body":` + nest(small/24, `{"mul":[{"var":"x"},`, `{"var":"x"}`, `]}`) + `}`
	m["small: tries"] = nest(small/9, `{"try":`, `1`, `}`)
	m["small: evals"] = nest(small/20, `{"eval":{"quote":`, `1`, `}}`)
	m["small: lists"] = nest(small/3, `[`, `1`, `]`)
	m["small: folds"] = `{"lam":"x","body":` + nest(small/90, `{"fold":[{"lam":"p","body":{"add":[{"fst":{"var":"p"}},`, `1`, `]}},0,{"var":"x"}]}`) + `}`
	return m
}

func many(n int, format string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(list, ",")
}

// mostAllocated is how many bytes may be allocated to find out all of a tool: most
// of it is garbage at once.
const mostAllocated = 48 << 20

// TestBounded: whatever the code, what is found out of it takes bounded work, is
// small, and is left out with a reason where it would take more.
func TestBounded(t *testing.T) {
	for name, src := range hard() {
		d := Definition{Name: "t", Code: []byte(src), Description: "x"}
		tool, err := prepare(d)
		if err != nil {
			t.Errorf("%s: %.200v", name, err)
			continue
		}
		tool.Program().Canonical()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		k := tool.know(ofTypes | ofSchemas | ofCost | ofNormal | ofProof)
		f := tool.facts()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > mostAllocated {
			t.Errorf("%s: %d MiB were allocated", name, n>>20)
		} else {
			t.Logf("%-22s %7d bytes: %4.1f MiB allocated, %6d kept, %5d steps, cost %t (%s), normal %t, proof %t", name, len(src),
				float64(n)/(1<<20), k.size, k.report.Steps, k.costed, k.cost.Class, k.normal != "", k.proof != nil)
		}
		if k.size > maxRemembered/4 {
			t.Errorf("%s: %d bytes are remembered", name, k.size)
		}
		if name == "other operations" && (!k.report.Open || len(tool.Unreachable([]string{"toy9999.get"})) > 0) {
			t.Errorf("%s: some are left out, and it isn't said: %d", name, len(k.report.Effects))
		}
		if k.report.Steps > typeSteps {
			t.Errorf("%s: %d steps", name, k.report.Steps)
		}
		if over := len(k.report.Dynamic) == 1 && k.report.Dynamic[0].Reason == check.ReasonComplex; k.report.Steps == typeSteps && !over {
			t.Errorf("%s: the budget was used up, and it isn't said: %+v", name, k.report.Dynamic)
		}
		if len(f.Certificate) > maxCertificate || len(f.Input) > maxSchema || len(f.Output) > maxSchema {
			t.Errorf("%s: a certificate of %d bytes, schemas of %d and %d", name, len(f.Certificate), len(f.Input), len(f.Output))
		}
		if n := len(k.report.Diagnostics) + len(k.report.Dynamic) + len(k.report.Effects); n > 2*mostFound+mostEffects {
			t.Errorf("%s: %d places", name, n)
		}
	}
}

// shelved has the process's shelf be empty, and of a size, during a test: what other
// tests compiled may be in use by something of theirs that isn't gone.
func shelved(t *testing.T, most int) {
	compiled.mu.Lock()
	defer compiled.mu.Unlock()
	wasMost, held, hand, ring := compiled.most, compiled.held, compiled.hand, compiled.ring
	compiled.most, compiled.held, compiled.hand, compiled.ring = most, 0, 0, nil
	t.Cleanup(func() {
		compiled.mu.Lock()
		defer compiled.mu.Unlock()
		compiled.most, compiled.held, compiled.hand, compiled.ring = wasMost, held, hand, ring
	})
}

// TestShelf: however much code there is, only so much of it is compiled at once; what
// isn't is compiled again when it is used, and is the same.
func TestShelf(t *testing.T) {
	shelved(t, 200<<10)
	r := New(nil)
	const tools = 100
	list := func(i int) string { return fmt.Sprintf("x => [%d%s]", i, strings.Repeat(",-x", 100)) }
	for i := range tools {
		evolve(t, r, def(fmt.Sprintf("t%d", i), list(i)))
	}
	count := func() (n, bytes int) {
		for _, tool := range r.Snapshot().All() {
			if prog := tool.code.prog.Load(); prog != nil {
				n++
				bytes += prog.Size()
			}
		}
		return n, bytes
	}
	if n, bytes := count(); n == 0 || n > tools/2 || bytes > 200<<10 {
		t.Errorf("%d of %d tools are compiled, in %d bytes", n, tools, bytes)
	}
	hot, _ := r.Snapshot().Get("t7")
	first := hot.Program()
	for round := range 2 {
		for i := range tools {
			tool, _ := r.Snapshot().Get(fmt.Sprintf("t%d", i))
			if got := tool.Program(); got.Hash() != tool.Hash || tool.Problem() != nil {
				t.Fatalf("round %d: %s is %s, expected %s: %v", round, tool.Name, got.Hash(), tool.Hash, tool.Problem())
			}
			if hot.Program() != first {
				t.Fatalf("round %d: what is always in use was compiled again after %s", round, tool.Name)
			}
		}
	}
	if n, bytes := count(); n > tools/2 || bytes > 200<<10 {
		t.Errorf("%d of %d tools are compiled, in %d bytes", n, tools, bytes)
	}
	// Where runs need the room, less stays.
	compiled.keeper.Drop(1 << 30)
	if _, bytes := count(); bytes > 25<<10 {
		t.Errorf("%d bytes are compiled where runs need the room", bytes)
	}
	// One that is larger than all there is can be had, too.
	if large := evolve(t, r, def("large", "x => ["+strings.Repeat("-x,", 10_000)+"x]")); large.Program().Hash() != large.Hash {
		t.Error("it is another")
	}
}

// TestShelfSize: what a program is said to take is about what it takes.
func TestShelfSize(t *testing.T) {
	for _, item := range []string{"-x", "x", "1", "[]", "x + 1", "f(x, 2)", "{a: 1}", `"text"`, "if x then 1 else 2", "!fs.read(x)", "y => y + x"} {
		text := "x => [" + strings.Repeat(item+", ", 20_000) + "0]"
		d := Definition{Name: "t", Text: true, Code: []byte(text)[:min(len(text), 200<<10)]}
		if len(d.Code) < len(text) {
			last := strings.LastIndex(string(d.Code), ", ")
			d.Code = append(d.Code[:last:last], ']')
		}
		c := &code{name: "t", source: d.Code, text: true}
		heap := func() int {
			runtime.GC()
			runtime.GC() // what lies in pools goes with the second
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc)
		}
		before := heap()
		prog, err := c.compile()
		if err != nil {
			t.Fatalf("%s: %v", item, err)
		}
		took, says := heap()-before+len(d.Code), prog.Size()
		runtime.KeepAlive(prog)
		if says < took/2 || says > took*3 {
			t.Errorf("%q: it takes %d bytes, and says %d", item, took, says)
		}
		t.Logf("%q: %d bytes, says %d (%.2f)", item, took, says, float64(says)/float64(took))
	}
}

// TestShelfTogether: many that compile and use at once.
func TestShelfTogether(t *testing.T) {
	shelved(t, 30<<10)
	r := New(nil)
	for i := range 40 {
		evolve(t, r, def(fmt.Sprintf("t%d", i), fmt.Sprintf("x => x + %d", i)))
	}
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 2000 {
				if tool, _ := r.Snapshot().Get(fmt.Sprintf("t%d", (i*7+w)%40)); tool.Program().Hash() != tool.Hash {
					t.Error("it is another")
					return
				}
			}
		})
	}
	all.Wait()
}
