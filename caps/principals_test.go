package caps_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// A house is a world in which several principals have policies.
type house struct {
	*world
	*caps.Principals
}

func newHouse(t *testing.T, files ...string) *house {
	w := newWorld(t, files...)
	h := &house{w, caps.NewPrincipals(w.kinds, w.clock.now)}
	t.Cleanup(func() { h.Principals.Close() })
	return h
}

// allow resolves what is granted, "?" before a text for one that asks, and denied, "!"
// before it.
func (h *house) allow(principal string, texts ...string) (a caps.Allowance) {
	h.t.Helper()
	for _, text := range texts {
		if denied, ok := strings.CutPrefix(text, "!"); ok {
			a.Denies = append(a.Denies, h.parse(denied))
			continue
		}
		text, asked := strings.CutPrefix(text, "?")
		g, err := caps.Resolve(h.parse(text), caps.ResolveOptions{Kinds: h.kinds, Dir: h.dir, Asked: asked, Principal: principal})
		must.NoError(h.t, err)
		h.t.Cleanup(func() { g.Close() })
		a.Grants = append(a.Grants, g)
	}
	return a
}

// say puts in force what everybody has, and what principals have.
func (h *house) say(all []string, own map[string][]string) error {
	h.t.Helper()
	allowances := map[string]caps.Allowance{}
	for name, texts := range own {
		allowances[name] = h.allow(name, texts...)
	}
	return h.Replace(h.allow("", all...), allowances)
}

func (h *house) must(all []string, own map[string][]string) {
	h.t.Helper()
	must.NoError(h.t, h.say(all, own))
}

func texts(p *caps.Policy) string {
	var all []string
	for _, g := range p.Grants() {
		all = append(all, g.Shown().String())
	}
	return strings.Join(all, " ")
}

// decides gives what a tool that declares a capability holds, nil where it is refused.
func decides(p *caps.Policy, text string) []*caps.Held {
	d, f := p.Decide([]string{text}, caps.Needs{Withs: []caps.With{{Texts: []string{text}}}}, caps.DecideOptions{})
	if f != nil {
		return nil
	}
	return d.Held
}

func may(p *caps.Policy, held []*caps.Held, op string, path string) bool {
	_, f := p.Permit(caps.NewLedger(), held, caps.Request{Operation: op, Arg: str(path), Tool: "t"})
	return f == nil
}

// TestPrincipalsHaveTheirOwn: a principal has what everybody has and its own; its
// denials are beside everybody's and beat everything; nobody's words tell of another's.
func TestPrincipalsHaveTheirOwn(t *testing.T) {
	h := newHouse(t, "all/no/", "ann/", "bob/")
	h.must([]string{"fs:./all", "!fs:" + h.path("all/no")}, map[string][]string{
		"ann": {"fs:annsdocs=./ann", "!fs.write:" + h.path("all")}, "bob": {"fs.read:./bob"},
	})
	ann, bob, eve, nobody := h.Open("ann"), h.Open("bob"), h.Open("eve"), h.Open("")
	for p, want := range map[*caps.Policy]string{ann: "fs:./all fs:annsdocs", bob: "fs.read:./bob fs:./all", eve: "fs:./all", nobody: "fs:./all"} {
		if got := texts(p); strings.ReplaceAll(got, "fs:./annsdocs", "fs:annsdocs") != want {
			t.Errorf("%q has %s, not %s", p.Principal(), got, want)
		}
	}
	if !may(ann, decides(ann, "fs:annsdocs"), "fs.read", "a") || !may(bob, decides(bob, "fs.read:./bob"), "fs.read", "a") {
		t.Error("a principal can't use what it has")
	}
	for _, c := range []struct {
		p    *caps.Policy
		op   string
		path string
		want bool
	}{
		{ann, "fs.read", "a", true}, {ann, "fs.write", "a", false}, {bob, "fs.write", "a", true}, {eve, "fs.write", "a", true},
		{ann, "fs.read", "no/a", false}, {bob, "fs.read", "no/a", false}, {nobody, "fs.read", "no/a", false},
	} {
		arg := str(c.path)
		if c.op == "fs.write" {
			arg = rec("path", c.path, "content", "x")
		}
		_, f := c.p.Permit(caps.NewLedger(), decides(c.p, "fs:./all"), caps.Request{Operation: c.op, Arg: arg, Tool: "t"})
		if (f == nil) != c.want {
			t.Errorf("%q: %s %s: %v", c.p.Principal(), c.op, c.path, f)
		}
	}
	// What isn't bob's is refused in the words for what nobody has.
	for text, none := range map[string]string{
		"fs:annsdocs": "fs:nonedocs", "fs.read:annsdocs/sub": "fs.read:nonedocs/sub", "fs:./ann": "fs:./xyz", "fs:" + h.path("ann"): "fs:" + h.path("xyz"),
	} {
		said := func(text string) string {
			_, f := bob.Decide([]string{text}, ops("fs.read"), caps.DecideOptions{})
			if f == nil {
				t.Fatalf("bob has %s", text)
			}
			return f.Error()
		}
		name, other := strings.TrimPrefix(h.parse(text).Scope, "./"), strings.TrimPrefix(h.parse(none).Scope, "./")
		if got, want := strings.ReplaceAll(said(text), name, other), said(none); got != want {
			t.Errorf("%s: %q, and of what nobody has: %q", text, got, want)
		}
	}
	// What ann holds isn't held by who has it in bob's house.
	if f := func() *fault.Fault {
		_, f := bob.Permit(caps.NewLedger(), decides(ann, "fs:annsdocs"), caps.Request{Operation: "fs.read", Arg: str("a"), Tool: "t"})
		return f
	}(); f == nil || f.Kind != fault.Denied {
		t.Errorf("what ann's tool holds is permitted to bob: %v", f)
	}
	if _, f := bob.Decide([]string{"fs.write:./bob"}, ops("fs.write"), caps.DecideOptions{}); f == nil || !strings.Contains(f.Hint, `the principal "bob"`) || strings.Contains(f.Hint, "--cap") {
		t.Errorf("what would give it to everybody is advised: %v", f)
	}
}

// TestPrincipalsChange: what is said anew holds in policies that are open; a grant that
// moved from one to another stops where it was; what stayed goes on.
func TestPrincipalsChange(t *testing.T) {
	h := newHouse(t, "all/", "ann/")
	h.must([]string{"fs:./all"}, map[string][]string{"ann": {"fs:./ann"}})
	ann, bob := h.Open("ann"), h.Open("bob")
	held, shared := decides(ann, "fs:./ann"), decides(ann, "fs:./all")
	before, common := held[0].Grant.Context(), shared[0].Grant.Context()
	h.must([]string{"fs:./all"}, map[string][]string{"ann": {"fs:./ann"}})
	if before.Err() != nil || ann.Grants()[0] != shared[0].Grant || ann.Grants()[1] != held[0].Grant {
		t.Error("what stayed is another grant")
	}
	if _, err := held[0].Grant.Root.Stat(); err != nil {
		t.Errorf("what stayed was closed: %v", err)
	}
	h.must([]string{"fs:./all"}, map[string][]string{"bob": {"fs:./ann"}})
	if !errors.Is(context.Cause(before), caps.ErrRevoked) {
		t.Error("what was taken from ann goes on")
	}
	if common.Err() != nil {
		t.Error("what everybody has was stopped")
	}
	if may(ann, held, "fs.read", "a") || decides(ann, "fs:./ann") != nil {
		t.Error("ann still has what was taken from her")
	}
	if !may(bob, decides(bob, "fs:./ann"), "fs.read", "a") {
		t.Error("bob has not what he was given")
	}
	if _, err := held[0].Grant.Root.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("what was taken from everybody is open: %v", err)
	}
	// What can't be changes nothing.
	h.make("other/")
	for _, own := range [][]string{{"fs:all=./ann"}, {"!fs:./x,ro"}} {
		if err := h.say([]string{"fs:all=./all"}, map[string][]string{"bob": own}); err == nil {
			t.Errorf("%s was taken", own)
		}
	}
	if err := h.say(nil, map[string][]string{"an\u200bn": nil}); err == nil {
		t.Error("a name that nobody sees was taken")
	}
	if got := texts(bob); got != "fs:./all fs:./ann" {
		t.Errorf("what was refused changed something: %s", got)
	}
	// What is said of ann again besides is hers twice over, once.
	h.must([]string{"fs:./all"}, map[string][]string{"bob": {"fs:./all", "fs:./all", "fs.read:./all"}})
	if got := texts(bob); got != "fs.read:./all fs:./all" {
		t.Errorf("bob has %s", got)
	}
	h.Forget(bob)
	if texts(bob) != "" {
		t.Error("who is gone has something")
	}
}

// TestPrincipalsShareRates: a rate of what everybody has is everybody's together, one's
// own is its own, and isn't full again because its principal came back.
func TestPrincipalsShareRates(t *testing.T) {
	h := newHouse(t, "all/", "own/")
	h.must([]string{"fs:./all,rate=2/h"}, map[string][]string{"ann": {"fs:./own,rate=1/h"}, "bob": {"fs:./own,rate=1/h"}})
	ann, bob := h.Open("ann"), h.Open("bob")
	for i, p := range []*caps.Policy{ann, bob, ann} {
		if got, want := may(p, decides(p, "fs:./all"), "fs.read", "a"), i < 2; got != want {
			t.Errorf("request %d: %v", i, got)
		}
	}
	h.Forget(ann)
	ann = h.Open("ann")
	if may(ann, decides(ann, "fs:./all"), "fs.read", "a") {
		t.Error("coming back gave more of what everybody has")
	}
	for i, p := range []*caps.Policy{ann, bob, ann} {
		if i == 2 {
			h.Forget(ann)
			p = h.Open("ann")
		}
		if got, want := may(p, decides(p, "fs:./own"), "fs.read", "a"), i < 2; got != want {
			t.Errorf("request %d of what is one's own: %v", i, got)
		}
	}
}

// TestPrincipalsRevoked: what is taken back from one goes on for the others, what is
// taken back from all for none, and a grant that comes anew doesn't bring it back.
func TestPrincipalsRevoked(t *testing.T) {
	h := newHouse(t, "all/in/", "own/")
	own := map[string][]string{"ann": {"fs:./own"}, "bob": {"fs:./own"}}
	h.must([]string{"fs:./all"}, own)
	r := caps.Revocations{Path: h.path("revoked.json")}
	ann, bob := h.Open("ann"), h.Open("bob")
	revoked := func(p *caps.Policy) string {
		t.Helper()
		must.Succeed(t)(r.Apply(p))
		var all []string
		for _, g := range p.Grants() {
			if g.Revoked() {
				all = append(all, g.Shown().String())
			}
		}
		return strings.Join(all, " ")
	}
	want := func(what, anns, bobs string) {
		t.Helper()
		if a, b := revoked(ann), revoked(bob); a != anns || b != bobs {
			t.Errorf("%s: ann lost %q and bob %q", what, a, b)
		}
	}
	change := func(f func(caps.Revocation) error, principal, text string) {
		t.Helper()
		must.NoError(t, f(h.revocation(h.allow(principal, text).Grants[0])))
	}
	restore := func(e caps.Revocation) error {
		found, err := r.Remove(e)
		if !found {
			t.Errorf("%s of %q wasn't revoked", e.Text, e.Principal)
		}
		return err
	}
	held := decides(bob, "fs:./own")[0].Grant.Context()
	change(r.Add, "ann", "fs:./own")
	want("ann's own", "fs:./own", "")
	change(r.Add, "ann", "fs:./all")
	want("what all have, of ann", "fs:./all fs:./own", "")
	if held.Err() != nil {
		t.Error("bob's was stopped, too")
	}
	_, f := ann.Decide([]string{"fs.read:./own"}, ops("fs.read"), caps.DecideOptions{})
	wantFault(t, f, fault.Refused, "--principal 'ann'")
	// Taken back from her, it isn't hers because it is granted in other words.
	h.must(nil, map[string][]string{"ann": {"fs.read:./own", "fs:./all"}, "bob": {"fs:./own"}})
	if g := decides(ann, "fs.read:./own"); g != nil {
		t.Error("granted anew it holds until the list is read again")
	}
	if changed, err := r.Apply(ann); err != nil || len(changed) != 2 || !changed[0].Revoked || !changed[1].Revoked {
		t.Errorf("of what was granted anew it is said: %v, %v", changed, err)
	}
	want("granted anew", "fs.read:./own fs:./all", "")
	h.must([]string{"fs:./all"}, own)
	change(restore, "ann", "fs:./own")
	change(restore, "ann", "fs:./all")
	want("restored", "", "")
	change(r.Add, "", "fs:./own")
	want("everybody's", "fs:./own", "fs:./own")
	change(restore, "", "fs:./own")
	change(r.Add, "bob", "fs:./all/in")
	want("a part, of bob", "", "")
	if !may(ann, decides(ann, "fs:./all"), "fs.read", "in/a") || may(bob, decides(bob, "fs:./all"), "fs.read", "in/a") || !may(bob, decides(bob, "fs:./all"), "fs.read", "a") {
		t.Error("a part that was taken from bob")
	}
}

// TestPrincipalsAsk: what one is asked for another isn't, and no grant of its own lifts
// an ask that is everybody's.
func TestPrincipalsAsk(t *testing.T) {
	h := newHouse(t, "all/", "ann/")
	h.must([]string{"?fs:./all"}, map[string][]string{"ann": {"?fs:./ann", "fs:./all"}, "bob": {"fs:./ann"}})
	ann, bob := h.Open("ann"), h.Open("bob")
	if !may(bob, decides(bob, "fs:./ann"), "fs.read", "a") || may(ann, decides(ann, "fs:./ann"), "fs.read", "a") {
		t.Error("ann isn't asked, or bob is")
	}
	if may(ann, decides(ann, "fs:./all"), "fs.read", "a") {
		t.Error("her own grant lifted everybody's ask")
	}
}

// TestPrincipalsSecrets: a secret of one's own can be named by nobody else, and is
// hidden from its principal after it is bound no longer.
func TestPrincipalsSecrets(t *testing.T) {
	h := newHouse(t)
	t.Setenv("ANNS", "anns-secret-value")
	t.Setenv("ALLS", "alls-secret-value")
	read := func(name, env string) []*caps.Secret {
		b, err := caps.NewBinding(name, "https://api.example.com", "", env, h.kinds)
		must.NoError(t, err)
		list, err := caps.ReadSecrets("", []caps.Binding{b})
		must.NoError(t, err)
		return list
	}
	all := h.allow("", "fetch:https://api.example.com")
	all.Secrets = read("alls", "ALLS")
	anns := caps.Allowance{Secrets: read("anns", "ANNS")}
	must.NoError(t, h.Replace(all, map[string]caps.Allowance{"ann": anns}))
	ann, bob := h.Open("ann"), h.Open("bob")
	if a, b := strings.Join(ann.SecretTexts(), " "), strings.Join(bob.SecretTexts(), " "); !strings.Contains(a, "anns") || strings.Contains(b, "anns") || !strings.Contains(b, "alls") {
		t.Errorf("ann can name %s, bob %s", a, b)
	}
	if err := h.Replace(all, map[string]caps.Allowance{"ann": {Secrets: read("alls", "ANNS")}}); err == nil {
		t.Error("a name that everybody has was bound again")
	}
	must.NoError(t, h.Replace(all, nil))
	for _, p := range []*caps.Policy{ann, h.Open("ann")} {
		if s := p.Secrets().Scrubber().Text("it is anns-secret-value"); strings.Contains(s, "value") {
			t.Errorf("what was bound is shown: %s", s)
		}
	}
	if s := bob.Secrets().Scrubber().Text("anns-secret-value"); strings.Contains(s, "secret anns") {
		t.Errorf("bob is told of ann's: %s", s)
	}
}

// TestPrincipalsAtOnce: policies come and go while all is said anew and requests are
// decided.
func TestPrincipalsAtOnce(t *testing.T) {
	h := newHouse(t, "all/", "ann/")
	allowances := []map[string][]string{{"ann": {"fs:./ann"}}, nil, {"ann": {"fs.read:./ann"}, "bob": {"fs:./ann"}}}
	h.must([]string{"fs:./all"}, allowances[0])
	var all sync.WaitGroup
	for _, name := range []string{"ann", "bob", "ann"} {
		all.Go(func() {
			for range 200 {
				p := h.Open(name)
				if held := decides(p, "fs:./all"); !may(p, held, "fs.read", "a") {
					t.Errorf("%s lost what everybody has", name)
				}
				may(p, decides(p, "fs.read:./ann"), "fs.read", "a")
				h.Forget(p)
			}
		})
	}
	for i := range 60 {
		h.must([]string{"fs:./all"}, allowances[i%len(allowances)])
	}
	all.Wait()
}

func TestCheckPrincipal(t *testing.T) {
	for _, name := range []string{"ann", "jwt:Ann Smith", "jwt:auth0|5f", "Åsa", "太郎", strings.Repeat("a", 300), "a/../b", `"'`} {
		if err := caps.CheckPrincipal(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "a\x00", "a\nb", "a\tb", "a\u202eb", "a\u200bb", "a\u00a0b", "\ufeffann", "a\ufffd", "a\xff", "a\u2028b", strings.Repeat("a", 301)} {
		if err := caps.CheckPrincipal(name); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
}
