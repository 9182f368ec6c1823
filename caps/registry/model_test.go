package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-pif/mcp-pif/core/fault"
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
				if _, err := r.Refresh(); err != nil {
					t.Fatal(err)
				}
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
			changes, more, err := opened.History(name, 0, 1000)
			if err != nil || more || len(changes) < len(versions) {
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
