package caps_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

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
			if err != nil {
				t.Fatal(err)
			}
			before, f := w.permit(caps.NewLedger(), held, c.op, c.gone)
			if f != nil {
				t.Fatal(f)
			}
			r := caps.Revocations{Path: w.path("revoked.json")}
			if err := r.Add(w.revocation(part)); err != nil {
				t.Fatal(err)
			}
			changed := func(want bool) {
				t.Helper()
				changes, err := r.Apply(w.policy)
				if err != nil {
					t.Fatal(err)
				}
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
			if err != nil {
				t.Fatal(err)
			}
			if err := w.policy.Replace(append(w.policy.Grants(), again), nil); err != nil {
				t.Fatal(err)
			}
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
	if f != nil {
		t.Fatal(f)
	}
	r := caps.Revocations{Path: w.path("revoked.json")}
	for _, text := range []string{"fs:./ab", "fs:./b/in", "fs.write:./a/in", "kv:other/**", "fetch:https://h"} {
		other, err := w.resolve(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Add(w.revocation(other)); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	w.policy.Revoked([]caps.Revocation{{ID: part.ID, Text: part.Capability.String(), Real: part.Real}})
	p, f := w.permit(caps.NewLedger(), held, "fs.read", str("other"))
	if f != nil {
		t.Fatal(f)
	}
	if len(p.Denies) != 1 || p.Denies[0].String() != "fs.read:in" && p.Denies[0].String() != "fs.read:./in" {
		t.Errorf("the plugin is told %v", p.Denies)
	}
}
