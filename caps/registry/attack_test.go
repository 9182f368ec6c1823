package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// forged is a log of changes that nobody made by [Registry.Evolve].
func forged(changes ...Change) *memoryLog {
	l := new(memoryLog)
	for i, c := range changes {
		c.Seq = uint64(i) + 1
		if c.Kind == 0 {
			c.Kind = Evolved
		}
		l.changes = append(l.changes, c)
	}
	return l
}

// stored is a change as it would be recorded.
func stored(t testing.TB, name string, version int, text string, bound ...Binding) Change {
	t.Helper()
	p, err := core.CompileText(name, []byte(text))
	must.NoError(t, err)
	return Change{Stored: Stored{
		Definition: Definition{Name: name, Code: []byte(text), Text: true, Description: name}, Version: version, Hash: p.Hash(), Bound: bound,
	}}
}

// TestForged: what can't be true is left out, with what is bound to it, or is there
// and can't be used; nothing else is. None of it crashes, and none of it gives
// authority.
func TestForged(t *testing.T) {
	good := stored(t, "good", 1, "x => x")
	with := func(c Change, edit func(*Change)) Change {
		edit(&c)
		return c
	}
	to := func(name string, version int, seq uint64) Binding { return Binding{Ref: Ref{name, version}, Seq: seq} }
	acting := `k => !toy.get(k)`
	// stays is what is there all the same, and can't be used: x itself, with why, or
	// the library that it is bound to.
	stays := map[string]string{
		"a hash that isn't the code's, with authority": "has the hash", "code that can't be read, with authority": "expected \")\"",
		"an entry that isn't what was recorded": "isn't what", "an entry that isn't what was recorded, with authority": "isn't what",
		"a library that can't be made": "lib",
	}
	for what, c := range map[string]struct {
		changes []Change
		problem string // "": there is none, but the tool can't act
	}{
		"a hash that isn't the code's, with authority": {[]Change{with(stored(t, "x", 1, acting), func(c *Change) {
			c.Definition.Capabilities, c.Hash = []string{"toy:a/**"}, strings.Repeat("0", 64)
		})}, "on record"},
		"an entry that isn't what was recorded": {[]Change{with(stored(t, "x", 1, "1"), func(c *Change) {
			c.Unsound = errors.New("it isn't what was recorded")
		})}, "isn't what was recorded"},
		"an entry that isn't what was recorded, with authority": {[]Change{with(stored(t, "x", 1, acting), func(c *Change) {
			c.Definition.Capabilities, c.Unsound = []string{"toy:a/**"}, errors.New("it isn't what was recorded")
		})}, "isn't what was recorded"},
		"code that can't be read, with authority": {[]Change{with(stored(t, "x", 1, acting), func(c *Change) {
			c.Definition.Capabilities, c.Code = []string{"toy:a/**"}, []byte("k => (")
		})}, "expected \")\""},
		"no hash":           {[]Change{with(stored(t, "x", 1, "1"), func(c *Change) { c.Hash = "" })}, "hash"},
		"a version 0":       {[]Change{stored(t, "x", 0, "1")}, "version 0"},
		"a version below 0": {[]Change{stored(t, "x", -7, "1")}, "version -7"},
		"a reserved name": {[]Change{with(stored(t, "x", 1, "1"), func(c *Change) {
			c.Name = "run"
		})}, "reserved"},
		"a name with control characters":                       {[]Change{with(stored(t, "x", 1, "1"), func(c *Change) { c.Name = "a\x1b[2J" })}, "control"},
		"an entry that can't be read":                          {[]Change{{Err: errors.New("not JSON"), Stored: Stored{Definition: Definition{Name: "x"}}}}, "not JSON"},
		"an entry about no tool":                               {[]Change{{Err: errors.New("not JSON")}}, "not JSON"},
		"a library that isn't there":                           {[]Change{stored(t, "x", 1, "1", to("lib", 1, 77))}, "not on record"},
		"a library that isn't there, by number of its version": {[]Change{stored(t, "x", 1, "1", to("lib", 1, 0))}, "not on record"},
		"a library that is made later":                         {[]Change{stored(t, "x", 1, "1", to("lib", 1, 3)), stored(t, "lib", 1, "1")}, "later"},
		"itself":                                               {[]Change{stored(t, "x", 1, "1", to("x", 1, 2))}, "later"},
		"a circle": {[]Change{
			stored(t, "x", 1, "1", to("y", 1, 3)), stored(t, "y", 1, "1", to("x", 1, 2)),
		}, "later"},
		"another library than the number says": {[]Change{stored(t, "x", 1, "1", to("lib", 1, 1))}, "event 1 made another"},
		"a library with another hash": {[]Change{
			stored(t, "lib", 1, "1"), stored(t, "x", 1, "1", Binding{Ref{"lib", 1}, strings.Repeat("1", 64), 2}),
		}, "event 2 made another"},
		"a library that was retired": {[]Change{
			{Kind: Retired, Stored: Stored{Definition: Definition{Name: "lib"}, Version: 1}}, stored(t, "x", 1, "1", to("lib", 1, 2)),
		}, "event 2 made another"},
		"a library that can't be made": {[]Change{
			with(stored(t, "lib", 1, acting), func(c *Change) {
				c.Definition.Capabilities, c.Hash = []string{"toy:a/**"}, strings.Repeat("0", 64)
			}),
			stored(t, "x", 1, "1", to("lib", 1, 2)),
		}, "lib"},
		"a library whose entry can't be read": {[]Change{
			with(stored(t, "lib", 1, "1"), func(c *Change) { c.Err = errors.New("not JSON") }), stored(t, "x", 1, "1", to("lib", 1, 2)),
		}, "can't be read: not JSON"},
		"too much code": {[]Change{with(stored(t, "x", 1, "1"), func(c *Change) {
			c.Code = []byte(`"` + strings.Repeat("x", 100<<20) + `"`)
		})}, "are read"},
		"too many examples": {[]Change{with(stored(t, "x", 1, "1"), func(c *Change) { c.Examples = make([]Example, 1000) })}, "examples"},
		"examples that aren't JSON": {[]Change{with(stored(t, "x", 1, "1"), func(c *Change) {
			c.Examples = []Example{{Input: json.RawMessage("{")}}
		})}, "JSON"},
		"a library that was bound to itself by another": {[]Change{
			stored(t, "lib", 1, "1", to("x", 2, 4)), stored(t, "y", 1, "1", to("lib", 1, 2)), stored(t, "x", 2, "1", to("y", 1, 3)),
		}, "later"},
		"a call that is bound to nothing": {[]Change{with(stored(t, "x", 1, "x => @good(x)"), func(c *Change) {
			c.Definition.Capabilities = []string{"call:good"}
		})}, ""},
		"capabilities that nobody declared": {[]Change{with(stored(t, "x", 1, acting), func(c *Change) {
			c.Capabilities = []string{"toy:a/**"}
		})}, ""},
		"capabilities that nobody granted": {[]Change{with(stored(t, "x", 1, acting), func(c *Change) {
			c.Definition.Capabilities, c.Capabilities = []string{"toy:**"}, []string{"toy:**"}
		})}, "in part"},
		"a hash that isn't the code's": {[]Change{with(stored(t, "x", 1, acting), func(c *Change) {
			c.Hash = strings.Repeat("0", 64)
		})}, ""},
	} {
		p := policy(t, "toy:a/**")
		l := forged(append([]Change{good}, c.changes...)...)
		opened, problems, err := Open(l, p)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		// The same by way of a refresh.
		refreshed := open(t, forged(good), p)
		var told []error
		refreshed.OnProblem(func(err error) { told = append(told, err) })
		refreshed.log = l
		if _, err := refreshed.Refresh(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if fmt.Sprint(told) != fmt.Sprint(refreshed.Problems()) {
			t.Errorf("%s: of %v there is told %v", what, refreshed.Problems(), told)
		}
		for _, r := range []*Registry{opened, refreshed} {
			if good, ok := r.Snapshot().Get("good"); !ok || good.Problem() != nil {
				t.Errorf("%s: another tool is gone", what)
			}
			x, there := r.Snapshot().Get("x")
			if c.problem == "in part" {
				if !there || len(x.Held) != 1 || x.Capabilities[0] != "toy.get:a/**" {
					t.Errorf("%s: it holds %v", what, x.Capabilities)
				}
				continue
			}
			if c.problem != "" && there != (stays[what] != "") {
				t.Errorf("%s: it is there: %t, %+v", what, there, x)
			}
			if why := stays[what]; why != "" {
				if why == "lib" {
					x = x.Bound["lib"]
				}
				if f := x.Unusable(); f == nil || f.Kind != fault.Refused || !strings.Contains(f.Hint, "operator") {
					t.Errorf("%s: it can be used: %v", what, f)
				}
				if state, says := StateOf(x, p); state != StateBlocked || !strings.Contains(says, why) || strings.Contains(says, "\n") {
					t.Errorf("%s: it is %s: %s", what, state, says)
				}
				again := r.again()(x)
				if state, _ := StateOf(again, p); state != StateBlocked || len(again.Held) > 0 {
					t.Errorf("%s: decided again it is %s and holds %v", what, state, again.Held)
				}
			}
			if what == "a call that is bound to nothing" && (x.State != StateBlocked || !strings.Contains(x.Why, "call:good")) {
				t.Errorf("%s: it is %s: %s", what, x.State, x.Why)
			}
			if there && (len(x.Held) > 0 || len(x.Capabilities) > 0) {
				t.Errorf("%s: it holds %v", what, x.Capabilities)
			}
			if _, err := r.At(uint64(len(l.changes))); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if problems := fmt.Sprint(r.Problems()); c.problem != "" && !strings.Contains(problems, c.problem) {
				t.Errorf("%s: %s", what, problems)
			}
		}
		if (len(problems) > 0) != (c.problem != "" && c.problem != "in part") {
			t.Errorf("%s: %v", what, problems)
		}
		// The name can be used again.
		made, err := opened.Evolve(def("x", "x => 2"), Edit{})
		if err != nil || made.Version < 1 {
			t.Errorf("%s: then %v, %v", what, made, err)
		}
	}
}

// TestForgedCode: code that isn't what its hash says isn't run, not by a tool
// that takes it either.
func TestForgedCode(t *testing.T) {
	x := stored(t, "x", 1, "1")
	x.Code = []byte("2")
	y := stored(t, "y", 1, "code_of(\"x\")", Binding{Ref: Ref{"x", 1}, Seq: 1})
	r := open(t, forged(x, y), nil)
	got, _ := r.Snapshot().Get("x")
	if got.Problem() == nil || !strings.Contains(string(got.Program().Canonical()), "raise") {
		t.Errorf("%s: %v", got.Program().Canonical(), got.Problem())
	}
	if _, err := r.Version(Ref{"x", 1}); err != nil {
		t.Error(err) // it is current, and as bad as that
	}
	evolve(t, r, def("x", "3"))
	if _, err := r.Version(Ref{"x", 1}); err == nil {
		t.Error("it was made all the same")
	}
	got, _ = r.Snapshot().Get("y")
	if code := string(got.Bound["x"].Program().Canonical()); !strings.Contains(code, "raise") {
		t.Errorf("y takes the code %s", code)
	}
	if _, err := r.Rollback("x", 1, Edit{}); is(err, fault.Refused, "can't be made") != nil {
		t.Error(err)
	}
	if text := string(Encode(r.Snapshot())); !strings.Contains(text, `"y"`) || strings.Contains(text, "can't be used") {
		t.Errorf("the document is %s", text)
	}
}

// TestForgedVersions: whatever versions are on record, the next is above them.
func TestForgedVersions(t *testing.T) {
	for _, versions := range [][]int{{5, 3}, {1, 1}, {math.MaxInt32}, {math.MaxInt64}, {-1, 4}, {7, math.MaxInt64}} {
		var changes []Change
		for _, v := range versions {
			changes = append(changes, stored(t, "x", v, fmt.Sprint(v)))
		}
		r, _, err := Open(forged(changes...), nil)
		must.NoError(t, err)
		made, err := r.Evolve(def("x", "1"), Edit{})
		if err != nil || made.Version < 1 || made.Version > math.MaxInt32 {
			t.Errorf("after %v comes %+v, %v", versions, made, err)
		}
	}
}

// TestLongChain: versions that are bound to each other in a long chain are made
// without a deep stack, and don't pile up without bound.
func TestLongChain(t *testing.T) {
	const n = MaxVersions/2 - 2
	var changes []Change
	for i := range n {
		name, other := []string{"a", "b"}[i%2], []string{"b", "a"}[i%2]
		var bound []Binding
		if i > 0 {
			bound = []Binding{{Ref: Ref{other, (i + 1) / 2}, Seq: uint64(i)}}
		}
		changes = append(changes, stored(t, name, i/2+1, `code_of("`+other+`")`, bound...))
	}
	r := open(t, forged(changes...), nil)
	if len(r.held.count) != n {
		t.Errorf("%d versions are held", len(r.held.count))
	}
	if a, _ := r.Snapshot().Get("a"); len(a.Reach()) != 0 || a.Late() {
		t.Error("it can do something")
	}
	for i := 0; ; i++ {
		if _, err := r.Evolve(def([]string{"a", "b"}[i%2], `code_of("`+[]string{"b", "a"}[i%2]+`")`), Edit{}); err != nil {
			if is(err, fault.Refused, "old versions") != nil {
				t.Error(err)
			}
			break
		}
		if i > MaxVersions {
			t.Fatal("there is no bound")
		}
	}
	for _, name := range []string{"a", "b"} {
		must.Succeed(t)(r.Retire(name, Edit{}))
	}
	if len(r.held.count) != 0 || len(r.held.bySeq) != 0 || r.held.code != 0 || r.held.told != 0 {
		t.Errorf("%d versions are held", len(r.held.count))
	}
}

// TestUnreadable: a log that can't be read says so, and what was read stays.
func TestUnreadable(t *testing.T) {
	l := &unreadable{Log: new(memoryLog)}
	other := open(t, l.Log, nil)
	evolve(t, other, def("a", "1"))
	l.err = errors.New("the disk is gone")
	if _, _, err := Open(l, nil); !errors.Is(err, l.err) {
		t.Error(err)
	}
	l.err = nil
	r := open(t, l, nil)
	l.err = errors.New("the disk is gone")
	if _, err := r.Refresh(); !errors.Is(err, l.err) {
		t.Error(err)
	}
	if _, err := r.Evolve(def("b", "1"), Edit{}); is(err, fault.Refused, "the disk is gone") != nil {
		t.Error(err)
	}
	if _, ok := r.Snapshot().Get("a"); !ok {
		t.Error("what was there is gone")
	}
}

type unreadable struct {
	Log
	err error
}

func (u *unreadable) Changed() (uint64, error) {
	if u.err != nil {
		return 0, u.err
	}
	return u.Log.Changed()
}

func (u *unreadable) Newest(through uint64) ([]Change, error) {
	if u.err != nil {
		return nil, u.err
	}
	return u.Log.Newest(through)
}

// costly is code as long as its cost is still looked at, that is made to be hard to
// find a bound for: the terms are few for the formulas, paths and values that come
// of them.
func costly() map[string]string {
	const n = costBytes * 3 / 5
	times := func(n int, unit string) string { return strings.TrimSuffix(strings.Repeat(unit, n/len(unit)), ",") }
	record := func(keys int, value string) string {
		return `{"record":{` + strings.ReplaceAll(many(keys, `"k%d":?`), "?", value) + `}}`
	}
	lets := func(n int, first, each, last string) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"lam":"x","body":{"let":[["v0",%s]`, first)
		for i := range n {
			fmt.Fprintf(&b, `,["v%d",%s]`, i+1, strings.ReplaceAll(each, "%0", fmt.Sprintf(`{"var":"v%d"}`, i)))
		}
		return b.String() + `],"in":` + strings.ReplaceAll(last, "%0", fmt.Sprintf(`{"var":"v%d"}`, n)) + "}}"
	}
	nest := func(n int, before, inner, after string) string {
		return `{"lam":"x","body":` + strings.Repeat(before, n) + inner + strings.Repeat(after, n) + "}"
	}
	const twice, applied = `{"lam":"z","body":{"app":[%0,{"app":[%0,{"var":"z"}]}]}}`, `{"app":[%0,{"var":"x"}]}`
	length := `{"length":{"get":[{"var":"x"},"k0"]}}`
	for i := range 180 {
		length = fmt.Sprintf(`{"add":[%s,{"length":{"get":[{"var":"x"},"k%d"]}}]}`, length, i+1)
	}
	ranged := lets(1, `{"range":[0,`+length+`]}`, `1`, `?`)
	ranged = strings.ReplaceAll(ranged, `{"var":"v1"}`, "")
	again := `{"app":[{"self":true},{"sub":[{"var":"x"},1]}]},`
	ending := func(more string) string {
		return `{"if":{"cond":{"lte":[{"var":"x"},0]},"then":1,"else":[` + more + `]}}`
	}
	return map[string]string{
		"cost: records in records": lets(3, `{"var":"x"}`, record(40, "%0"), `{"fold":[{"lam":"p","body":{"fst":{"var":"p"}}},%0,{"var":"x"}]}`),
		"cost: texts doubled":      lets(60, `"abcdefgh"`, `{"concat":[%0,%0]}`, `{"get":[{"var":"x"},%0]}`),
		"cost: a long path":        nest(n/16, `{"get":[`, `{"var":"x"}`, `,"abcd"]}`),
		"cost: long keys":          lets(14, `{"lam":"y","body":{"get":[{"var":"y"},"`+times(n/2, "k")+`"]}}`, twice, applied),
		"cost: long lists":         lets(20, `{"lam":"y","body":[`+times(n/2, "1,")+`]}`, twice, applied),
		"cost: sorts of sums":      strings.ReplaceAll(ranged, "?", "["+times(n/2, `{"sort":{"var":"v0"}},`)+"]"),
		"cost: maps of sums": strings.ReplaceAll(ranged, "?", strings.Repeat(`{"map":[{"lam":"i","body":`, 6)+`{"var":"i"}`+
			strings.Repeat(`},{"var":"v0"}]}`, 6)),
		"cost: selfs":          `{"lam":"x","body":` + ending(times(n-100, again)) + `}`,
		"cost: selfs in depth": nest(n/80, `{"app":[{"lam":"w","body":`, ending(times(n/4, again)), `},{"mul":[{"var":"x"},2]}]}`),
		"cost: conditions":     nest(n/60, `{"if":{"cond":{"lt":[{"var":"x"},5]},"then":`, `1`, `,"else":0}}`),
		"cost: ands":           nest(n/40, `{"and":[{"lt":[{"var":"x"},5]},`, `true`, `]}`),
		"cost: products":       nest(n/24, `{"mul":[{"var":"x"},`, `1`, `]}`),
		"cost: folds":          nest(n/90, `{"fold":[{"lam":"p","body":{"add":[{"fst":{"var":"p"}},`, `1`, `]}},0,{"var":"x"}]}`),
		"cost: tries":          nest(n/9, `{"try":`, `1`, `}`),
		"cost: functions":      nest(n/60, `{"app":[{"lam":"y","body":`, `["`+times(n/4, `a`)+`"]`, `},{"var":"x"}]}`),
		"cost: large records":  lets(1, record(n/16, "1"), `%0`, "["+times(n/3, `{"keys":{"var":"v0"}},`)+"]"),
		"cost: sorts":          `{"lam":"x","body":[` + times(n-100, `{"sort":{"var":"x"}},`) + `]}`,
	}
}
