package registry

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// state is a tool's state now.
func state(t testing.TB, r *Registry, p *caps.Policy, name string) (state, why string) {
	t.Helper()
	got, ok := r.Snapshot().Get(name)
	if !ok {
		t.Fatal("there is no", name)
	}
	return StateOf(got, p)
}

// TestToday: what a tool may do is decided by the policy that there is, when the
// log is opened and whenever the policy is another.
func TestToday(t *testing.T) {
	l := new(memoryLog)
	p := policy(t, "toy:a/**")
	r := open(t, l, p)
	evolve(t, r, def("reads", `k => !toy.get(k)`, "toy:a/b"))
	evolve(t, r, def("calls", `k => @reads(k)`, "call:reads"))
	evolve(t, r, def("pure", `k => code_of("reads")`))
	evolve(t, r, def("alone", `k => k`))

	// Without the grant it is there, and blocked; with it, in another process, ready.
	none := policy(t)
	blocked := open(t, l, none)
	if s, why := state(t, blocked, none, "reads"); s != StateBlocked || !strings.Contains(why, "toy") {
		t.Errorf("%s: %s", s, why)
	}
	// The grant comes: the next refresh decides anew, and tells whom it concerns.
	var heard []string
	blocked.OnChange(func(names []string) { heard = names })
	must.NoError(t, none.Grant(grant(t, none.Kinds(), "toy:a/**")))
	if changed, err := blocked.Refresh(); !changed || err != nil {
		t.Error(changed, err)
	}
	if s, why := state(t, blocked, none, "reads"); s != StateReady {
		t.Errorf("%s: %s", s, why)
	}
	if want := []string{"calls", "pure", "reads"}; !slices.Equal(heard, want) {
		t.Errorf("it concerns %q, %q were told", want, heard)
	}
	calls, _ := blocked.Snapshot().Get("calls")
	reads, _ := blocked.Snapshot().Get("reads")
	if len(calls.Reach()) != 2 || calls.Bound["reads"] != reads || len(blocked.held.count) != 4 {
		t.Errorf("calls reaches %v", calls.Reach())
	}
	if changed, err := blocked.Refresh(); changed || err != nil {
		t.Error(changed, err)
	}

	// Revoked and restored: at once, without deciding anew.
	g := p.Grants()[0]
	for range 2 {
		p.Revoke(g.ID)
		if s, why := state(t, r, p, "reads"); s != StateBlocked || !strings.Contains(why, "toy:a/** was revoked") {
			t.Errorf("%s: %s", s, why)
		}
		if s, why := state(t, r, p, "alone"); s != StateReady {
			t.Errorf("alone is %s: %s", s, why)
		}
		p.Restore(g.ID)
		if s, why := state(t, r, p, "reads"); s != StateReady || why != "" {
			t.Errorf("%s: %s", s, why)
		}
	}
	// And by way of what is decided meanwhile.
	p.Revoke(g.ID)
	must.Succeed(t)(r.Refresh())
	if s, _ := state(t, r, p, "reads"); s != StateBlocked {
		t.Error(s)
	}
	p.Restore(g.ID)
	must.Succeed(t)(r.Refresh())
	if s, why := state(t, r, p, "reads"); s != StateReady {
		t.Errorf("%s: %s", s, why)
	}
	// A denial over all of it, and a policy without the grant.
	must.NoError(t, p.Deny(caps.Capability{Kind: "toy", Scope: "a/b"}))
	must.Succeed(t)(r.Refresh())
	if s, why := state(t, r, p, "reads"); s != StateBlocked || !strings.Contains(why, "denies") {
		t.Errorf("%s: %s", s, why)
	}
	must.NoError(t, p.Replace([]*caps.Grant{grant(t, p.Kinds(), "toy:a/**")}, nil))
	must.Succeed(t)(r.Refresh())
	if s, why := state(t, r, p, "reads"); s != StateReady {
		t.Errorf("%s: %s", s, why)
	}
	must.NoError(t, p.Replace(nil, nil))
	if s, why := state(t, r, p, "reads"); s != StateBlocked || !strings.Contains(why, "isn't granted now") {
		t.Errorf("%s: %s", s, why)
	}
}

// TestOthersTools: what another process made under its policy has here what this
// one's policy has for it.
func TestOthersTools(t *testing.T) {
	l := new(memoryLog)
	rich, poor := policy(t, "toy:**"), policy(t, "toy:a/**")
	maker, user := open(t, l, rich), open(t, l, poor)
	if made := evolve(t, maker, def("x", `k => !toy.get(k)`, "toy:**")); made.Capabilities[0] != "toy.get:**" {
		t.Fatal(made.Capabilities)
	}
	evolve(t, maker, def("y", `k => !toy.get(k)`, "toy:b"))
	must.Succeed(t)(user.Refresh())
	if x, _ := user.Snapshot().Get("x"); x.State != StateReady || x.Capabilities[0] != "toy.get:a/**" {
		t.Errorf("%s %v", x.State, x.Capabilities)
	}
	if y, _ := user.Snapshot().Get("y"); y.State != StateBlocked || y.Held != nil {
		t.Errorf("%s %v", y.State, y.Held)
	}
	old, err := user.Version(Ref{"y", 1})
	if err != nil || old.State != StateBlocked {
		t.Error(old, err)
	}
	// As they were: no authority at all, nothing compiled.
	then, err := maker.At(2)
	must.NoError(t, err)
	if x, _ := then.Get("x"); x.State != StateBlocked || x.Held != nil || x.code.prog.Load() != nil {
		t.Errorf("%+v", x)
	}
	if then.Len() != 2 || then.Seq() != 2 {
		t.Error(then.Len(), then.Seq())
	}
	if then, err = maker.At(1); err != nil || then.Len() != 1 {
		t.Error(then, err)
	}
}

// TestPolicyMeanwhile: a version that was decided before the policy became another
// isn't kept as it was decided.
func TestPolicyMeanwhile(t *testing.T) {
	p := policy(t, "toy:a/**")
	r := New(p)
	evolve(t, r, def("x", "1"))
	_, err := r.Evolve(def("x", `k => !toy.get(k)`, "toy:a/b"), Edit{Check: func(*Tool, *Snapshot) *fault.Fault {
		must.NoError(t, p.Replace(nil, nil))
		must.Succeed(t)(r.Refresh())
		return nil
	}})
	if is(err, fault.Refused, "granted") != nil {
		t.Error(err)
	}
	if x, _ := r.Snapshot().Get("x"); x.Version != 1 || len(r.held.count) != 1 {
		t.Errorf("%+v", x)
	}
}

// TestEnded: a grant whose time is over is no authority.
func TestEnded(t *testing.T) {
	kinds, err := caps.NewKinds(toy)
	must.NoError(t, err)
	now := time.Now()
	p := caps.NewPolicy(kinds, func() time.Time { return now })
	must.NoError(t, p.Grant(grant(t, kinds, "toy:**,until=2126-01-01T00:00:00Z")))
	r := New(p)
	evolve(t, r, def("x", `k => !toy.get(k)`, "toy:**"))
	if s, why := state(t, r, p, "x"); s != StateReady {
		t.Error(s, why)
	}
	now = now.AddDate(200, 0, 0)
	if s, why := state(t, r, p, "x"); s != StateBlocked || !strings.Contains(why, "ended at 2126") {
		t.Error(s, why)
	}
}

// TestNotCompiled: a tool that declares nothing isn't compiled before it is used, by
// opening, listing or binding to it.
func TestNotCompiled(t *testing.T) {
	l := new(memoryLog)
	first := open(t, l, nil)
	evolve(t, first, def("lib", "x => x"))
	evolve(t, first, def("user", `code_of("lib")`))
	evolve(t, first, def("lib", "x => 2"))
	r := open(t, l, nil)
	other := open(t, l, nil)
	evolve(t, other, def("new", "1"))
	must.Succeed(t)(r.Refresh())
	for _, tool := range r.Snapshot().All() {
		if StateOf(tool, r.policy); tool.code.prog.Load() != nil {
			t.Errorf("%s was compiled", tool.Name)
		}
		for _, b := range tool.Bound {
			if b.code.prog.Load() != nil {
				t.Errorf("%s was compiled", b.Name)
			}
		}
	}
	user, _ := r.Snapshot().Get("user")
	if got := string(user.Bound["lib"].Program().Text()); got != "x => x" {
		t.Errorf("%q", got)
	}
	if compiled := user.Program(); user.Program() != compiled {
		t.Error("it is compiled each time")
	}
}
