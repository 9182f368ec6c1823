package caps_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
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
		if _, err := r.Apply(w.policy); err != nil {
			t.Fatal(err)
		}
		for i, got := range revoked() {
			if got != want[i] {
				t.Errorf("%s: %s is revoked: %v", what, grants[i], got)
			}
		}
	}
	if err := r.Add(grants[0]); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(grants[0]); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Add(whole); err != nil {
		t.Fatal(err)
	}
	want("fetch:https://h too", true, true, true, false, true, true)
	if found, err := r.Remove(grants[0]); !found || err != nil {
		t.Errorf("found: %v, %v", found, err)
	}
	if found, err := r.Remove(grants[0]); found || err != nil {
		t.Errorf("found again: %v, %v", found, err)
	}
	if err := r.Add(grants[1]); err != nil {
		t.Fatal(err)
	}
	want("only reading", false, true, false, false, true, true)
	if found, err := r.Remove(grants[1]); !found || err != nil {
		t.Errorf("found: %v, %v", found, err)
	}
	want("fs:./a restored", false, false, false, false, true, true)
	info, err := os.Stat(r.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
}

// TestRevocationsUnread: a file that can't be read changes nothing, and says so.
func TestRevocationsUnread(t *testing.T) {
	w := newWorld(t, "a/")
	g := w.grant("fs:./a")[0]
	r := caps.Revocations{Path: w.path("revoked.json")}
	if err := r.Add(g); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(w.policy); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{}", "[]", `{"format":"mcp-pif revocations 2","revoked":[]}`, `{"format":"mcp-pif revocations 1","revokd":[]}`} {
		if err := os.WriteFile(r.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(w.policy); err == nil {
			t.Errorf("%q is read", text)
		}
		if err := r.Add(g); err == nil {
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
			if err := r.Add(g); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := r.Load(); err != nil || len(list) != len(grants) {
		t.Errorf("got %v, %v", list, err)
	}
	left, err := filepath.Glob(w.path(".revoked.json.*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
