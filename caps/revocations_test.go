package caps_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestRevocationsLast: what is stored beats the grants of every server that
// reads the file, whatever their flags say, until it is restored.
func TestRevocationsLast(t *testing.T) {
	w := newWorld(t, "a/in/", "b/")
	grants := w.grant("fs:./a", "fs.read:./a,calls=5", "fs:inner=./a/in", "fs:./b", "fetch:https://h/v1/**", "fetch:https://h/v2")
	r := caps.Revocations{Path: w.path("revoked.json")}
	if changed, err := r.Apply(w.policy); err != nil || len(changed) != 0 {
		t.Fatalf("without a file: %v, %v", changed, err)
	}
	revoked := func() (got []bool) {
		for _, g := range grants {
			got = append(got, g.Revoked())
		}
		return got
	}
	want := func(what string, want ...bool) {
		t.Helper()
		must.Succeed(t)(r.Apply(w.policy))
		for i, got := range revoked() {
			if got != want[i] {
				t.Errorf("%s: %s is revoked: %v", what, grants[i], got)
			}
		}
	}
	must.NoError(t, r.Add(w.revocation(grants[0])))
	must.NoError(t, r.Add(w.revocation(grants[0])))
	changed, err := r.Apply(w.policy)
	if err != nil || len(changed) != 3 || !changed[0].Revoked {
		t.Errorf("changed: %v, %v", changed, err)
	}
	want("fs:./a", true, true, true, false, false, false)
	if _, f := w.policy.Decide([]string{"fs.read:./a"}, ops("fs.read"), caps.DecideOptions{}); f == nil || f.Kind != fault.Refused {
		t.Errorf("a tool is made with what was taken back: %v", f)
	}
	// The same name elsewhere is another thing.
	elsewhere := newWorld(t, "a/")
	other := elsewhere.grant("fs:./a")[0]
	if _, err := r.Apply(elsewhere.policy); err != nil || other.Revoked() {
		t.Errorf("./a of another directory is revoked (%v)", err)
	}
	whole, err := w.resolve("fetch:https://h")
	must.NoError(t, err)
	must.NoError(t, r.Add(w.revocation(whole)))
	want("fetch:https://h too", true, true, true, false, true, true)
	if found, err := r.Remove(w.revocation(grants[0])); !found || err != nil {
		t.Errorf("found: %v, %v", found, err)
	}
	if found, err := r.Remove(w.revocation(grants[0])); found || err != nil {
		t.Errorf("found again: %v, %v", found, err)
	}
	must.NoError(t, r.Add(w.revocation(grants[1])))
	want("only reading", false, true, false, false, true, true)
	if found, err := r.Remove(w.revocation(grants[1])); !found || err != nil {
		t.Errorf("found: %v, %v", found, err)
	}
	want("fs:./a restored", false, false, false, false, true, true)
	info, err := os.Stat(r.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
}

// TestRevokedBefore: what was revoked before it is granted is granted revoked.
func TestRevokedBefore(t *testing.T) {
	w := newWorld(t, "a/")
	r := caps.Revocations{Path: w.path("revoked.json")}
	g, err := caps.Resolve(w.parse("fs:./a"), caps.ResolveOptions{Kinds: w.kinds, Dir: w.dir})
	must.NoError(t, err)
	must.NoError(t, r.Add(w.revocation(g)))
	_, err = r.Apply(w.policy)
	must.NoError(t, err)
	must.NoError(t, w.policy.Grant(g))
	if !g.Revoked() {
		t.Error("what was taken back holds")
	}
}

// TestRevocationsUnread: a file that can't be read changes nothing, and says so.
func TestRevocationsUnread(t *testing.T) {
	w := newWorld(t, "a/")
	g := w.grant("fs:./a")[0]
	r := caps.Revocations{Path: w.path("revoked.json")}
	must.NoError(t, r.Add(w.revocation(g)))
	must.Succeed(t)(r.Apply(w.policy))
	for _, text := range []string{"", "{}", "[]", `{"format":"mcp-pif revocations 2","revoked":[]}`, `{"format":"mcp-pif revocations 1","revokd":[]}`} {
		must.NoError(t, os.WriteFile(r.Path, []byte(text), 0o600))
		if _, err := r.Apply(w.policy); err == nil {
			t.Errorf("%q is read", text)
		}
		if err := r.Add(w.revocation(g)); err == nil {
			t.Errorf("%q is overwritten", text)
		}
		if !g.Revoked() {
			t.Fatalf("%q restored the grant", text)
		}
	}
}

// TestRevocationsTogether: changes at the same time are all kept.
func TestRevocationsTogether(t *testing.T) {
	w := newWorld(t, "a/", "b/", "c/", "d/")
	grants := w.grant("fs:./a", "fs:./b", "fs:./c", "fs:./d")
	r := caps.Revocations{Path: w.path("revoked.json")}
	var all sync.WaitGroup
	for _, g := range grants {
		all.Go(func() {
			if err := r.Add(w.revocation(g)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := r.Load(); err != nil || len(list) != len(grants) {
		t.Errorf("got %v, %v", list, err)
	}
	if left, err := filepath.Glob(w.path(".revoked.json.*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestRevokeByPlace: a folder that was moved, replaced or linked elsewhere is taken back
// under the name it was granted by, the one it has, and what it lies in, whether anything
// is there or not; and it is given back under each.
func TestRevokeByPlace(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world)
		grant  string
		names  []string
		others []string // that have nothing to do with it
	}{
		{"moved", func(w *world) { w.rename("a", "b") }, "fs:./a", []string{"fs:./a", "fs:./b", "fs:.", "fs:./b,ro"}, []string{"fs:./c", "fs:./a2"}},
		{"moved into another", func(w *world) { w.rename("a", "c/a") }, "fs:./a", []string{"fs:./a", "fs:./c", "fs:./c/a"}, []string{"fs:./b"}},
		{"gone", func(w *world) { w.remove("a") }, "fs:./a", []string{"fs:./a", "fs:."}, []string{"fs:./c"}},
		{"replaced", func(w *world) { w.rename("a", "b"); w.make("a/") }, "fs:./a", []string{"fs:./a", "fs:./b"}, []string{"fs:./c"}},
		{"linked elsewhere", func(w *world) { w.remove("l"); w.link("l", w.path("c")) }, "fs:./l", []string{"fs:./l", "fs:./a"}, nil},
		{"a file moved", func(w *world) { w.rename("f", "g") }, "fs:./f", []string{"fs:./f", "fs:./g", "fs:."}, []string{"fs:./c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS != "linux" && strings.Contains(c.name, "moved") {
				t.Skip("where a folder was moved to is known on Linux alone")
			}
			w := newWorld(t, "a/", "c/", "f")
			w.link("l", w.path("a"))
			g := w.grant(c.grant)[0]
			c.change(w)
			r := caps.Revocations{Path: w.path("revoked.json")}
			e := func(text string) caps.Revocation {
				e, err := caps.RevocationOf(text, w.kinds, w.dir, "")
				must.NoError(t, err)
				return e
			}
			holds := func() bool {
				t.Helper()
				must.Succeed(t)(r.Apply(w.policy))
				_, f := w.policy.Decide([]string{"fs.write:" + g.Label}, ops("fs.write"), caps.DecideOptions{})
				_, read := w.policy.Decide([]string{"fs.read:" + g.Label}, ops("fs.read"), caps.DecideOptions{})
				return f == nil && read == nil
			}
			for _, text := range c.names {
				must.NoError(t, r.Add(e(text)))
				if holds() {
					t.Errorf("%s is revoked, and it holds", text)
				}
				if found, err := r.Remove(e(text)); !found || err != nil {
					t.Errorf("restoring %s: %v, %v", text, found, err)
				}
				if !holds() {
					t.Errorf("%s is restored, and it doesn't hold", text)
				}
			}
			for _, text := range c.others {
				must.NoError(t, r.Add(e(text)))
			}
			if !holds() {
				t.Error("it was taken back with another")
			}
		})
	}
}

// TestRestoreByPlace: what was taken back under one name is given back under another of
// the same place, and nothing else is.
func TestRestoreByPlace(t *testing.T) {
	w := newWorld(t, "a/", "c/")
	r := caps.Revocations{Path: w.path("revoked.json")}
	e := func(text, principal string) caps.Revocation {
		e, err := caps.RevocationOf(text, w.kinds, w.dir, principal)
		must.NoError(t, err)
		return e
	}
	for _, c := range []struct {
		revoke, restore string
		principal       string // of the second
		want            bool
	}{
		{"fs:./a", "fs:" + filepath.ToSlash(w.path("a")), "", true},
		{"fs:./a", "fs:docs=./a", "", true},
		{"fs:./a", "fs:./c", "", false},
		{"fs:./a", "fs:./a,ro", "", false},
		{"fs:./a", "fs.read:./a", "", false},
		{"fs:./a", "fs:./a", "ann", false},
		{"kv:a/**", "kv:a/*", "", false},
		{"kv:a/**", "kv:a/**", "", true},
	} {
		must.NoError(t, r.Add(e(c.revoke, "")))
		if found, err := r.Remove(e(c.restore, c.principal)); found != c.want || err != nil {
			t.Errorf("%s restores %s: %v, %v", c.restore, c.revoke, found, err)
		}
	}
	// A kind that isn't known here is one that was known to a server.
	if e := e("old.read:./x,calls=5", ""); e.Text != "old.read:./x,calls=5" {
		t.Errorf("%+v", e)
	}
	for _, text := range []string{"fs.nosuch:./a", "fs", "call:a", "FS:./a"} {
		if e, err := caps.RevocationOf(text, w.kinds, w.dir, ""); err == nil {
			t.Errorf("%s can be taken back: %+v", text, e)
		}
	}
}

// TestHits: it is known what revocations take of a server, of whom, and in part.
func TestHits(t *testing.T) {
	h := newHouse(t, "all/", "own/")
	h.must([]string{"fs:./all", "kv:notes/**"}, map[string][]string{"ann": {"fs:./own"}, "bob": {"fs:./own"}})
	for _, c := range []struct {
		text, principal string
		all, named      int // without principals, and with them
		part            bool
	}{
		{"fs:./all", "", 1, 1, false}, {"fs:./own", "", 2, 2, false}, {"fs:./own", "ann", 0, 1, false}, {"fs:./all", "ann", 0, 1, false},
		{"fs:./own", "eve", 0, 0, false}, {"fs:./all/x", "", 1, 1, true}, {"kv:notes/a", "", 1, 1, true}, {"fs:.", "", 3, 3, false}, {"fs:./none", "", 0, 0, false},
	} {
		e, err := caps.RevocationOf(c.text, h.kinds, h.dir, c.principal)
		must.NoError(t, err)
		all, named := h.Hits([]caps.Revocation{e}, false), h.Hits([]caps.Revocation{e}, true)
		if len(all) != c.all || len(named) != c.named {
			t.Errorf("%s of %q hits %v, with principals %v", c.text, c.principal, all, named)
		}
		for _, hit := range named {
			if hit.By != e.ID || hit.Part != c.part {
				t.Errorf("%s: %+v", c.text, hit)
			}
		}
	}
}

// TestRunning: servers that run are seen, with what they said last; one that ended or was
// killed isn't.
func TestRunning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "running")
	seen := func() (clients []string) {
		t.Helper()
		all, err := caps.AllRunning(dir)
		must.NoError(t, err)
		for _, r := range all {
			clients = append(clients, r.Client+" "+r.Applied)
		}
		slices.Sort(clients)
		return clients
	}
	want := func(list ...string) {
		t.Helper()
		if got := seen(); !slices.Equal(got, list) {
			t.Errorf("%q run, not %q", got, list)
		}
	}
	want()
	announce := func() *caps.Announcement {
		a, err := caps.Announce(dir)
		must.NoError(t, err)
		return a
	}
	a, b := announce(), announce()
	want(" ", " ")
	for _, revision := range []string{"1", "2", "2"} {
		must.NoError(t, a.Say(caps.Running{PID: 1, Client: "a", Applied: revision}))
	}
	must.NoError(t, b.Say(caps.Running{PID: 2, Client: "b", Applied: "1", Hits: []caps.Hit{{By: "x", Grant: "y"}}}))
	want("a 2", "b 1")
	says, err := filepath.Glob(filepath.Join(dir, "*.json"))
	must.NoError(t, err)
	for _, path := range says { // as a newer server may
		text, err := os.ReadFile(path)
		must.NoError(t, err)
		must.NoError(t, os.WriteFile(path, append([]byte(`{"of a newer one":[1],`), text[1:]...), 0o600))
	}
	want("a 2", "b 1")
	must.NoError(t, a.Close())
	want("b 1")
	// What a killed server leaves is nobody's, and is swept by the next.
	for _, ending := range []string{".lock", ".json", ".new"} {
		must.NoError(t, os.WriteFile(filepath.Join(dir, "99-dead"+ending), []byte("{}"), 0o600))
	}
	want("b 1")
	must.NoError(t, announce().Close())
	if left, err := filepath.Glob(filepath.Join(dir, "99-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	must.NoError(t, b.Close())
	want()
}

// TestRevokePart: what is revoked and narrower than the grant is denied, in every
// server that reads the file, until it is restored.
func TestRevokePart(t *testing.T) {
	for _, c := range []struct {
		revoke   string
		text     string
		op       string
		gone     value.Value
		op2      string
		stays    value.Value
		declared string // what can't be declared meanwhile; empty: everything can
	}{
		{"fs:./a/in", "fs:./a/in", "fs.read", str("in/x"), "fs.read", str("x"), "fs.read:./a/in"},
		{"fs:./a/in", "fs:./a/in", "fs.move", rec("from", "in", "to", "out"), "fs.move", rec("from", "i", "to", "o"), "fs:./a/in"},
		{"fs:sub=./a/in,calls=5", "fs:./a/in", "fs.read", str("in"), "fs.read", str("inner"), "fs.stat:./a/in"},
		{"fs.read:./a", "fs.read:./a", "fs.read", str("x"), "fs.stat", str("x"), "fs.read:./a"},
		{"fs:./a,ro", "fs.glob,list,read,stat:./a", "fs.list", rec(), "fs.write", rec("path", "x", "content", ""), "fs.list:./a"},
		{"fs.read:.", "fs.read:./a", "fs.read", str("x"), "fs.stat", str("x"), "fs.read:./a"},
		{"fetch.get:https://h/v1/**", "fetch.get:https://h/v1/**", "fetch.request", str("https://h/v1/x"), "fetch.request", str("https://h/v2"), "fetch.get:https://h/v1/x"},
		{"fetch.post:https://h", "fetch.post:https://h", "fetch.request", rec("url", "https://h/v1", "method", "POST"), "fetch.request", str("https://h/v1"), "fetch.post:https://h"},
		{"kv:notes/*/c", "kv:notes/*/c", "kv.get", str("notes/a/c"), "kv.get", str("notes/a/d"), "kv.get:notes/a/c"},
	} {
		t.Run(c.revoke+" "+c.op, func(t *testing.T) {
			w := newWorld(t, "a/in/deep/", "b/")
			w.grant("fs:./a", "fs:./b", "fetch:https://h", "kv:notes/**")
			held := w.hold("fs:./a", "fetch:https://h", "kv:notes/**")
			part, err := w.resolve(c.revoke)
			must.NoError(t, err)
			before, f := w.permit(caps.NewLedger(), held, c.op, c.gone)
			must.NoFault(t, f)
			r := caps.Revocations{Path: w.path("revoked.json")}
			must.NoError(t, r.Add(w.revocation(part)))
			changed := func(want bool) {
				t.Helper()
				changes, err := r.Apply(w.policy)
				must.NoError(t, err)
				told := false
				for _, change := range changes {
					if change.Revoked != want || change.Grant == nil {
						t.Errorf("the change is %+v", change)
					}
					told = told || change.Text == c.text
				}
				if !told {
					t.Errorf("the changes are %v, without %s", changes, c.text)
				}
				if again, err := r.Apply(w.policy); err != nil || len(again) != 0 {
					t.Errorf("read again: %v, %v", again, err)
				}
			}
			changed(true)
			if !errors.Is(context.Cause(before.Context), caps.ErrRevoked) {
				t.Error("what was under way goes on")
			}
			_, f = w.permit(caps.NewLedger(), held, c.op, c.gone)
			wantFault(t, f, fault.Denied, "revoked by the operator", "only the operator can restore")
			if named := strings.HasPrefix(c.revoke, "fs:sub="); strings.Contains(f.Hint, "mcp-pif caps restore '") == named {
				t.Errorf("the hint is %s", f.Hint)
			}
			if !w.allowed(held, c.op2, c.stays) {
				t.Errorf("%s %v is lost, too", c.op2, c.stays)
			}
			_, f = w.policy.Decide([]string{c.declared}, caps.Needs{Withs: []caps.With{{Texts: []string{c.declared}}}}, caps.DecideOptions{})
			wantFault(t, f, fault.Refused, "revoked by the operator")
			// Reading the policy again gives nothing back.
			again, err := w.resolve("fs:./a,bytes=5MiB")
			must.NoError(t, err)
			must.NoError(t, w.policy.Replace(append(w.policy.Grants(), again), nil))
			if p, f := w.permit(caps.NewLedger(), held, c.op, c.gone); f == nil {
				t.Errorf("after the policy was read again: %v", p.Held)
			}
			if strings.HasPrefix(c.revoke, "fs") {
				if p, f := w.permit(caps.NewLedger(), w.hold("fs:./a,bytes=1MiB"), c.op, c.gone); f == nil {
					t.Errorf("under a grant that came later: %v", p.Held)
				}
			}
			if found, err := r.Remove(w.revocation(part)); !found || err != nil {
				t.Fatalf("found: %v, %v", found, err)
			}
			changed(false)
			if p, f := w.permit(caps.NewLedger(), held, c.op, c.gone); f != nil || p.Context.Err() != nil {
				t.Errorf("after it was restored: %v", f)
			}
		})
	}
}

// TestRevokePartElsewhere: what has nothing in common with a grant changes
// nothing of it.
func TestRevokePartElsewhere(t *testing.T) {
	w := newWorld(t, "a/in/", "ab/", "b/in/")
	g := w.grant("fs.read:./a", "kv:notes/**")[0]
	held := w.hold("fs.read:./a", "kv:notes/**")
	p, f := w.permit(caps.NewLedger(), held, "fs.read", str("in/x"))
	must.NoFault(t, f)
	r := caps.Revocations{Path: w.path("revoked.json")}
	for _, text := range []string{"fs:./ab", "fs:./b/in", "fs.write:./a/in", "kv:other/**", "fetch:https://h"} {
		other, err := w.resolve(text)
		must.NoError(t, err)
		must.NoError(t, r.Add(w.revocation(other)))
	}
	if changed, err := r.Apply(w.policy); err != nil || len(changed) != 0 {
		t.Errorf("changed: %v, %v", changed, err)
	}
	if g.Revoked() || p.Context.Err() != nil || !w.allowed(held, "fs.read", str("in/x")) || !w.allowed(held, "kv.get", str("notes/x")) {
		t.Error("something is gone")
	}
}

// TestRevokePartIsForThePlugin: what it opens it decides by the same.
func TestRevokePartIsForThePlugin(t *testing.T) {
	w := newWorld(t, "a/in/")
	w.link("link", "a/in")
	w.grant("fs:./a")
	held := w.hold("fs:./a")
	part, err := w.resolve("fs.read:./link") // by where it leads
	must.NoError(t, err)
	w.policy.Revoked([]caps.Revocation{{ID: part.ID, Text: part.Capability.String(), Real: part.Real}})
	p, f := w.permit(caps.NewLedger(), held, "fs.read", str("other"))
	must.NoFault(t, f)
	if len(p.Denies) != 1 || p.Denies[0].String() != "fs.read:in" && p.Denies[0].String() != "fs.read:./in" {
		t.Errorf("the plugin is told %v", p.Denies)
	}
}
