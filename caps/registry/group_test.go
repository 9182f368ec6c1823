package registry

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/must"
)

func evenOdd() []Definition {
	return []Definition{
		def("is_even", "n => if n == 0 then true else @is_odd(n - 1)", "call:is_odd"),
		def("is_odd", "n => if n == 0 then false else @is_even(n - 1)", "call:is_even"),
	}
}

func together(t *testing.T, r *Registry, ds ...Definition) []*Tool {
	t.Helper()
	made, err := r.EvolveAll(ds, make([]Edit, len(ds)))
	must.NoError(t, err)
	return made
}

// mutual fails the test unless the current tools are one group, each bound to the others.
func mutual(t *testing.T, r *Registry, names ...string) {
	t.Helper()
	for _, a := range names {
		x, ok := r.Snapshot().Get(a)
		if !ok || x.Unusable() != nil {
			t.Fatalf("%s isn't there: %v", a, r.Problems())
		}
		for _, b := range names {
			if y, _ := r.Snapshot().Get(b); a != b && (x.Bound[b] != y || !x.InGroup(y)) {
				t.Errorf("%s is bound to another %s than the current one", a, b)
			}
		}
	}
}

// TestGroup: tools that are made at once are bound to one another, in the process that
// makes them and in others, and when all is decided anew; each is held as long as one is.
func TestGroup(t *testing.T) {
	policy := caps.NewPolicy(nil, nil)
	log := new(memoryLog)
	r, _, _ := Open(log, policy)
	made := together(t, r, evenOdd()...)
	mutual(t, r, "is_even", "is_odd")
	for _, m := range made {
		if got := m.Report().Type.String(); !strings.HasPrefix(got, "(num) ->{call:is_") || !strings.HasSuffix(got, "} bool") {
			t.Errorf("%s is %s", m.Name, got)
		}
	}
	other, problems, err := Open(log, policy)
	if err != nil || problems != nil {
		t.Fatal(err, problems)
	}
	mutual(t, other, "is_even", "is_odd")
	e := other.Snapshot().edit()
	other.redecide(e)
	other.current.Store(e.done())
	mutual(t, other, "is_even", "is_odd")
	if same := together(t, r, evenOdd()...); same[0] != made[0] || same[1] != made[1] {
		t.Error("the same again is new versions")
	}

	// A caller from outside holds both.
	caller := def("caller", "n => @is_even(n)", "call:is_even")
	evolve(t, r, caller)
	changed := evenOdd()[1]
	changed.Code = []byte("n => if n == 0 then false else if n == 1 then true else @is_even(n - 1)")
	if next := evolve(t, r, changed); next.Version != 2 || next.Hash == made[1].Hash {
		t.Errorf("version %d", next.Version)
	}
	mutual(t, r, "is_even", "is_odd")
	if now, _ := r.Snapshot().Get("is_even"); now.Version != 2 || now.Hash == made[0].Hash {
		t.Errorf("the other isn't carried along: version %d", now.Version)
	}
	if n := len(r.held.count); n != 5 {
		t.Errorf("%d versions are held", n)
	}
	evolve(t, r, caller)
	if n := len(r.held.count); n != 3 || len(r.held.bySeq) != 3 {
		t.Errorf("%d versions are held", n)
	}
	must.Succeed(t)(r.Retire("is_odd", Edit{}))
	if n := len(r.held.count); n != 3 {
		t.Errorf("%d versions are held", n)
	}
	for _, name := range []string{"is_even", "caller"} {
		must.Succeed(t)(r.Retire(name, Edit{}))
	}
	if len(r.held.count) != 0 || r.held.code != 0 || r.held.told != 0 || len(r.held.bySeq) != 0 {
		t.Errorf("%+v is left", r.held)
	}
	back, err := r.Rollback("is_even", 1, Edit{})
	must.NoError(t, err)
	if back.Version != 3 || back.Bound["is_odd"].Version != 1 || back.Together() != nil {
		t.Errorf("version %d bound to %v", back.Version, back.Bound)
	}
	if _, problems, _ := Open(log, policy); problems != nil {
		t.Error(problems)
	}
}

// TestGroupRollback: rolling back one of a group carries the others along, as evolving it
// does, and is refused where they don't fit; nobody leaves the group, in this process or
// another.
func TestGroupRollback(t *testing.T) {
	log := new(memoryLog)
	r, _, _ := Open(log, nil)
	evolve(t, r, def("lib", "1"))
	ds := evenOdd()
	ds[1].Code = []byte("n => let one = code_of(\"lib\") in if n == 0 then false else @is_even(n - 1)")
	together(t, r, ds...)
	evolve(t, r, def("lib", "2"))
	other, _, _ := Open(log, nil) // sees the group as it is now
	evolve(t, r, def("is_odd", "n => n > 0 and @is_even(n - 1)", "call:is_even"))
	for i, r := range []*Registry{r, other} {
		back, err := r.Rollback("is_odd", 1, Edit{})
		must.NoError(t, err)
		mutual(t, r, "is_even", "is_odd")
		if back.Version != 3+i || string(back.Source) != string(ds[1].Code) || back.Bound["is_even"].Version != 3+i || back.Bound["lib"].Version != 1 {
			t.Errorf("%s@%d of %s is bound to %v", back.Name, back.Version, back.Source, back.bindings())
		}
		if changes, _, err := r.History("is_odd", 0, 1); err != nil || changes[0].Kind != RolledBack || changes[0].From != 1 {
			t.Errorf("%+v %v", changes, err)
		}
		if changes, _, err := r.History("is_even", 0, 1); err != nil || changes[0].Kind != Evolved {
			t.Errorf("%+v %v", changes, err)
		}
	}
	if again, problems, _ := Open(log, nil); problems != nil {
		t.Error(problems)
	} else {
		mutual(t, again, "is_even", "is_odd")
	}

	// What was alone comes into the group, if the others fit.
	r = New(nil)
	evolve(t, r, def("is_odd", "n => n > 2"))
	evolve(t, r, def("is_odd", "(n, m) => n"))
	together(t, r, evenOdd()...)
	var f *fault.Fault
	if _, err := r.Rollback("is_odd", 2, Edit{}); !errors.As(err, &f) || !strings.Contains(f.Hint, `{"tools":[`) || !strings.Contains(f.Message, "is_even") {
		t.Errorf("%v", err)
	}
	three := 2
	if _, err := r.Rollback("is_odd", 1, Edit{IfVersion: &three}); !errors.As(err, &f) || f.Kind != fault.Conflict {
		t.Errorf("%v", err)
	}
	if now, _ := r.Snapshot().Get("is_even"); now.Version != 1 {
		t.Errorf("is_even is at version %d", now.Version)
	}
	mutual(t, r, "is_even", "is_odd")
	must.Succeed(t)(r.Rollback("is_odd", 1, Edit{}))
	mutual(t, r, "is_even", "is_odd")
}

// TestGroupOfAnother: one of a group that another process made is a part of it, though
// this one hasn't heard of the group when it begins to evolve it.
func TestGroupOfAnother(t *testing.T) {
	log := new(memoryLog)
	r, _, _ := Open(log, nil)
	other, _, _ := Open(log, nil)
	together(t, other, evenOdd()...)
	evolve(t, r, def("is_odd", "n => n > 0 and @is_even(n - 1)", "call:is_even"))
	mutual(t, r, "is_even", "is_odd")
	if now, _ := r.Snapshot().Get("is_even"); now.Version != 2 {
		t.Errorf("is_even is at version %d", now.Version)
	}
	// Nor of how it has changed since.
	evolve(t, other, def("is_even", "n => n == 0 or @is_odd(n - 1)", "call:is_odd"))
	evolve(t, r, evenOdd()[1])
	mutual(t, r, "is_even", "is_odd")
	if now, _ := r.Snapshot().Get("is_even"); now.Version != 4 {
		t.Errorf("is_even is at version %d", now.Version)
	}
}

// overtaken is a log to which another appends right after a group.
type overtaken struct {
	*memoryLog
	other func()
}

func (l overtaken) AppendAll(after uint64, list []Change, read ...string) (uint64, error) {
	first, err := l.memoryLog.AppendAll(after, list, read...)
	l.other()
	return first, err
}

// TestGroupOvertaken: who makes a group is given that, though another has made the next
// versions before he looks.
func TestGroupOvertaken(t *testing.T) {
	log := new(memoryLog)
	other, _, _ := Open(log, nil)
	r, _, _ := Open(overtaken{log, func() { evolve(t, other, def("is_odd", "n => n > 0 and @is_even(n - 1)", "call:is_even")) }}, nil)
	made := together(t, r, evenOdd()...)
	if made[1].Version != 1 || made[0].Bound["is_odd"] != made[1] || made[1].Bound["is_even"] != made[0] {
		t.Errorf("version %d, bound to %v and %v", made[1].Version, made[0].bindings(), made[1].bindings())
	}
	mutual(t, r, "is_even", "is_odd")
}

// TestGroupRefused: all are made or none, and one is carried along only if it fits.
func TestGroupRefused(t *testing.T) {
	r := New(nil)
	ds := evenOdd()
	ds[1].Code = []byte("n => nothing(")
	_, err := r.EvolveAll(ds, make([]Edit, 2))
	var f *fault.Fault
	if !errors.As(err, &f) || !strings.Contains(f.Message, `"is_odd"`) || len(r.Snapshot().All()) != 0 {
		t.Errorf("%v, and %d tools", err, len(r.Snapshot().All()))
	}
	ds = evenOdd()
	three := 3
	if _, err := r.EvolveAll(ds, []Edit{{}, {IfVersion: &three}}); !errors.As(err, &f) || f.Kind != fault.Conflict || len(r.Snapshot().All()) != 0 {
		t.Errorf("%v", err)
	}
	together(t, r, ds...)
	if _, err := r.Evolve(def("is_odd", "(n, m) => n"), Edit{}); err == nil || !strings.Contains(err.(*fault.Fault).Hint, `{"tools":[`) {
		t.Errorf("%v", err)
	}
	if now, _ := r.Snapshot().Get("is_odd"); now.Version != 1 {
		t.Errorf("version %d", now.Version)
	}
}

// TestGroupHash: the hash is over all codes, with one another by their places.
func TestGroupHash(t *testing.T) {
	a := together(t, New(nil), evenOdd()...)
	b := evenOdd()
	for i := range b {
		b[i].Name = strings.Replace(b[i].Name, "is_", "was_", 1)
		b[i].Code = []byte(strings.Replace(string(b[i].Code), "@is_", "@was_", 1))
		b[i].Capabilities[0] = strings.Replace(b[i].Capabilities[0], "is_", "was_", 1)
	}
	renamed := together(t, New(nil), b...)
	if a[0].Hash != renamed[0].Hash || a[1].Hash != renamed[1].Hash || a[0].Hash == a[1].Hash {
		t.Error("the names make a difference, or the places none")
	}
	c := evenOdd()
	c[1].Code = []byte("n => n > 0 and @is_even(n - 1)")
	if other := together(t, New(nil), c...); other[0].Hash == a[0].Hash {
		t.Error("the code of another makes no difference")
	}
	hashes := map[string]string{}
	for _, name := range []string{"b", "\x000", "\x001", "\x00\x001", "c"} {
		p, err := core.CompileTool("a", pifjson.MustEncode(map[string]string{"code_of": name}))
		must.NoError(t, err)
		hash := memberHash(p, []string{"a", "b"})
		if other, ok := hashes[hash]; ok {
			t.Errorf("code of %q has the hash of that of %q", name, other)
		}
		hashes[hash] = name
	}
}

// TestGroupSubject: a person approves a version with what the others of its group are,
// by the same key in every process.
func TestGroupSubject(t *testing.T) {
	key := func(change func(odd *Definition)) string {
		log := new(memoryLog)
		r, _, _ := Open(log, nil)
		evolve(t, r, def("other", "n => n"))
		ds := evenOdd()
		change(&ds[1])
		made := together(t, r, ds...)
		again, _, _ := Open(log, nil)
		loaded, _ := again.Snapshot().Get("is_even")
		k := SubjectOf(made[0]).Key()
		if SubjectOf(loaded).Key() != k {
			t.Error("another process has another key")
		}
		caller := SubjectOf(evolve(t, r, def("caller", "n => code_of(\"is_even\")")))
		return k + caller.Bound[0].Key
	}
	as := key(func(*Definition) {})
	for name, change := range map[string]func(odd *Definition){
		"code":       func(d *Definition) { d.Code = []byte("n => n > 0 and @is_even(n - 1)") },
		"capability": func(d *Definition) { d.Capabilities = append(d.Capabilities, "call:other") },
	} {
		k := key(change)
		for _, half := range []struct{ was, is string }{{as[:len(as)/2], k[:len(k)/2]}, {as[len(as)/2:], k[len(k)/2:]}} {
			if half.was == half.is {
				t.Errorf("another %s of the other makes no difference", name)
			}
		}
	}
}

// TestGroupForged: a record of a group that can't be true makes no tools.
func TestGroupForged(t *testing.T) {
	for name, forge := range map[string]func(list []Change){
		"another code":               func(l []Change) { l[4].Code, l[4].Canonical = []byte("n => 1"), nil },
		"another canonical code":     func(l []Change) { l[4].Code, l[4].Canonical = []byte("n => 1"), []byte(`{"lam":"n","body":1}`) },
		"another hash":               func(l []Change) { l[4].Hash = l[5].Hash },
		"one is missing":             func(l []Change) { l[5].Kind = Retired },
		"not bound":                  func(l []Change) { l[5].Bound = nil },
		"what the other is bound to": func(l []Change) { l[0].Hash = "" },
		"of the group before":        func(l []Change) { l[4].Bound = []Binding{{Ref{"is_odd", 1}, l[3].Hash, 4}} },
		"of two groups": func(l []Change) {
			even, odd := Binding{Ref{"is_even", 1}, l[2].Hash, 3}, Binding{Ref{"is_odd", 2}, l[5].Hash, 6}
			l[2].Bound = []Binding{odd}
			l[5].Bound = []Binding{even}
		},
		"another group": func(l []Change) { l[5].Group = []Member{l[5].Group[1], l[5].Group[0]} },
	} {
		log := new(memoryLog)
		r, _, _ := Open(log, nil)
		evolve(t, r, def("root", "n => n"))
		evolve(t, r, def("other", `n => code_of("root")`))
		for _, description := range []string{"one", "two"} {
			ds := evenOdd()
			ds[0].Description = description
			ds[1].Code = []byte("n => let c = code_of(\"other\") in if n == 0 then false else @is_even(n - 1)")
			together(t, r, ds...)
		}
		forge(log.changes)
		other, problems, err := Open(log, nil)
		must.NoError(t, err)
		if even, ok := other.Snapshot().Get("is_even"); ok && even.Unusable() == nil {
			t.Errorf("%s: is_even can be used (%v)", name, problems)
		}
	}
}

// TestGroupDocument: a document of tools has groups, current and older ones, and what
// comes of it is the same again.
func TestGroupDocument(t *testing.T) {
	r := New(nil)
	evolve(t, r, def("half", "n => n / 2"))
	ds := evenOdd()
	ds[0].Code = []byte("n => let c = code_of(\"half\") in if n == 0 then true else @is_odd(n - 1)")
	together(t, r, ds...)
	evolve(t, r, def("caller", "n => @is_odd(n)", "call:is_odd"))
	together(t, r, evenOdd()...)
	text := Encode(r.Snapshot())
	tools, err := Decode(strings.NewReader(string(text)))
	must.NoError(t, err)
	log := new(memoryLog)
	other, _, _ := Open(log, nil)
	if added, _, _, err := other.Import(tools); err != nil || added != 4 {
		t.Fatal(added, err)
	}
	mutual(t, other, "is_even", "is_odd")
	for _, name := range []string{"is_even", "is_odd", "caller"} {
		was, _ := r.Snapshot().Get(name)
		now, ok := other.Snapshot().Get(name)
		if !ok || now.Hash != was.Hash || !sameBound(now.outside(), was.outside()) {
			t.Errorf("%s is %+v, not %+v", name, now, was)
		}
	}
	again, _ := Decode(strings.NewReader(string(Encode(r.Snapshot()))))
	if added, replaced, same, err := other.Import(again); err != nil || added+replaced != 0 || same != 4 {
		t.Errorf("%d added, %d replaced, %d the same: %v", added, replaced, same, err)
	}
	if _, problems, _ := Open(log, nil); problems != nil {
		t.Error(problems)
	}
	broken := strings.Replace(string(text), `"group"`, `"examples"`, 1)
	if tools, err := Decode(strings.NewReader(broken)); err == nil {
		if _, _, _, err := New(nil).Import(tools); err == nil {
			t.Error("half a group is imported")
		}
	}
}

// behindOnce is a log in which somebody else comes first, once.
type behindOnce struct {
	Log
	was bool
}

func (b *behindOnce) AppendAll(after uint64, list []Change, read ...string) (uint64, error) {
	if !b.was {
		b.was = true
		return 0, ErrBehind
	}
	return b.Log.AppendAll(after, list, read...)
}

// TestImportJudged: every version that an import makes is judged, once, when all the
// others are there; one that is refused keeps out all.
func TestImportJudged(t *testing.T) {
	tools, err := Decode(strings.NewReader(`{"format":"mcp-pif tools 1","tools":[
		{"name":"a","code":{"code_of":"b"}},{"name":"b","code":2},{"name":"there","code":1},
		{"name":"late","capabilities":["call:*"],"code":{"lam":"n","body":{"call":{"tool":{"var":"n"},"input":2}}}},
		{"name":"copies","code":{"lam":"n","body":{"code_of":{"var":"n"}}}}]}`))
	must.NoError(t, err)
	r := open(t, &behindOnce{Log: new(memoryLog)}, nil)
	evolve(t, r, Definition{Name: "there", Code: []byte("1")})
	before := r.Snapshot()
	var judged []string
	judge := func(refused string) Check {
		judged = nil
		return func(candidate *Tool, sees *Snapshot) *fault.Fault {
			judged = append(judged, candidate.Name)
			for _, name := range []string{"a", "b", "late", "there"} {
				if _, ok := sees.Get(name); !ok {
					t.Errorf("%s doesn't see %s", candidate.Name, name)
				}
			}
			if candidate.Name == refused {
				return &fault.Fault{Kind: fault.Refused, Message: "no"}
			}
			return nil
		}
	}
	_, _, _, err = r.ImportChecked(tools, judge("b"))
	if is(errors.Unwrap(err), fault.Refused, "no") != nil || !strings.Contains(err.Error(), `tool "b"`) || r.Snapshot() != before {
		t.Errorf("%v", err)
	}
	added, _, same, err := r.ImportChecked(tools, judge(""))
	if err != nil || added != 4 || same != 1 {
		t.Errorf("%d added, %d the same: %v", added, same, err)
	}
	// It was tried twice: what calls, or takes the code of, whatever there is has to be judged anew.
	slices.Sort(judged)
	if want := []string{"a", "b", "copies", "copies", "late", "late"}; !slices.Equal(judged, want) {
		t.Errorf("judged %v, expected %v", judged, want)
	}
}
