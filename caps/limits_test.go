package caps_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// TestTime: a capability ends when its time does, to the second.
func TestTime(t *testing.T) {
	w := newWorld(t, "a/")
	w.grant("fs:./a,until=2026-01-02T03:05:00Z")
	held := w.hold("fs.read:./a")
	if !w.allowed(held, "fs.read", str("x")) {
		t.Fatal("denied before its time is over")
	}
	w.clock.pass(54 * time.Second)
	if !w.allowed(held, "fs.read", str("x")) {
		t.Error("denied a second before its time is over")
	}
	w.clock.pass(time.Second)
	_, f := w.permit(caps.NewLedger(), held, "fs.read", str("x"))
	wantFault(t, f, fault.Denied, "ended at 2026-01-02T03:05:00Z")
	_, f = w.policy.Decide([]string{"fs.read:./a"}, ops("fs.read"), caps.DecideOptions{})
	wantFault(t, f, fault.Refused, "time is over")
}

// TestRate: so many at once, then as they come, whichever tool or run asks.
func TestRate(t *testing.T) {
	w := newWorld(t, "a/")
	w.grant("fs:./a,rate=3/m")
	held := w.hold("fs.read:./a")
	for i, c := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {0, true}, {0, true}, {0, false}, {19 * time.Second, false}, {time.Second, true}, {0, false}, {time.Hour, true}, {0, true}, {0, true}, {0, false}} {
		w.clock.pass(c.after)
		_, f := w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: "fs.read", Arg: str("x"), Tool: string(rune('a' + i))})
		if (f == nil) != c.want {
			t.Errorf("request %d: %v", i, f)
		}
		if f != nil {
			wantFault(t, f, fault.Denied, "3/m", "at the earliest")
		}
	}
}

// TestRateOfATool: a tool's own rate narrows that of the grant and takes nothing
// from other tools.
func TestRateOfATool(t *testing.T) {
	w := newWorld(t, "a/")
	w.grant("fs:./a,rate=3/m")
	own, other := w.hold("fs.read:./a,rate=1/m"), w.hold("fs.read:./a")
	ask := func(held []*caps.Held, tool string) bool {
		_, f := w.policy.Permit(caps.NewLedger(), held, caps.Request{Operation: "fs.read", Arg: str("x"), Tool: tool})
		return f == nil
	}
	got := []bool{ask(own, "own"), ask(own, "own"), ask(other, "other"), ask(other, "other"), ask(other, "other")}
	for i, want := range []bool{true, false, true, true, false} {
		if got[i] != want {
			t.Errorf("request %d: %v", i, got[i])
		}
	}
}

// TestRatesOfEntries: of the entries of evals' lists, of which code may write any number, so many of a tool, and of a principal,
// have a rate at once, whatever others have.
func TestRatesOfEntries(t *testing.T) {
	h := newHouse(t, "all/")
	h.must([]string{"fs:./all"}, map[string][]string{"ann": nil, "bob": nil})
	ann, bob := h.Open("ann"), h.Open("bob")
	ask := func(p *caps.Policy, tool string, calls int) *fault.Fault {
		r := caps.Request{Operation: "fs.read", Arg: str("x"), Tool: tool, From: uint32(calls)}
		if calls > 0 {
			r.With = [][]string{{fmt.Sprintf("fs.read:./all,rate=%d/h", calls)}}
		}
		_, f := p.Permit(caps.NewLedger(), decides(p, "fs.read:./all"), r)
		return f
	}
	for i := range 1000 {
		if f := ask(ann, "t", 1+i); f != nil {
			t.Fatalf("entry %d: %v", i, f)
		}
	}
	wantFault(t, ask(ann, "t", 1<<20), fault.Denied, fmt.Sprint(1<<20, "/h"), "in 1h")
	if ann.Grants()[0].Takers()&(1<<20) == 0 {
		t.Error("who was refused is forgotten")
	}
	if f := cmp.Or(ask(ann, "t", 0), ask(ann, "t", 700), ask(ann, "u", 20_000), ask(bob, "t", 20_000)); f != nil {
		t.Error(f)
	}
	for i := range 10_000 {
		if f := ask(ann, fmt.Sprint(i/1000), 1+i); f != nil {
			if i < 8999 {
				t.Fatalf("entry %d: %v", i, f)
			}
			break
		}
	}
	wantFault(t, ask(ann, "v", 20_000), fault.Denied, "20000/h")
	if f := ask(bob, "v", 20_000); f != nil {
		t.Error(f)
	}
	h.clock.pass(time.Hour)
	if f := cmp.Or(ask(ann, "t", 20_000), ask(ann, "v", 20_000)); f != nil {
		t.Error(f)
	}
}

// TestLimitsAreNotMultiplied: a grant's limit is one, through however many tools
// a run goes.
func TestLimitsAreNotMultiplied(t *testing.T) {
	w := newWorld(t, "a/in/")
	w.grant("fs:./a,calls=50")
	tools := [][]*caps.Held{w.hold("fs.read:./a"), w.hold("fs.read:./a,calls=50"), w.hold("fs.read:./a/in"), w.hold("fs.read:./a,calls=10")}
	l := caps.NewLedger()
	var permitted, ten atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				p, f := w.policy.Permit(l, tools[i%4], caps.Request{Operation: "fs.read", Arg: str("x"), Tool: string(rune('a' + i%4)), Among: 400})
				if f == nil {
					permitted.Add(1)
					if i%4 == 3 {
						ten.Add(1)
					}
					p.Settle(1)
				}
			}
		})
	}
	all.Wait()
	if permitted.Load() != 50 || ten.Load() > 10 {
		t.Errorf("%d were permitted, %d of those that may have 10", permitted.Load(), ten.Load())
	}
	// Another run begins anew.
	if _, f := w.permit(caps.NewLedger(), tools[0], "fs.read", str("x")); f != nil {
		t.Error(f)
	}
}

// TestBytes: what an outcome may have is reserved, and what it hadn't is given
// back.
func TestBytes(t *testing.T) {
	w := newWorld(t, "a/")
	w.grant("fs:./a,bytes=1000B,max=400B")
	held, l := w.hold("fs.read:./a"), caps.NewLedger()
	ask := func(among int) (*caps.Permit, *fault.Fault) {
		return w.policy.Permit(l, held, caps.Request{Operation: "fs.read", Arg: str("x"), Tool: "t", Among: among})
	}
	var permits []*caps.Permit
	for i, want := range []int64{400, 400, 200} {
		p, f := ask(1)
		if f != nil || p.Most != want {
			t.Fatalf("request %d: %+v, %v", i, p, f)
		}
		permits = append(permits, p)
	}
	_, f := ask(1)
	wantFault(t, f, fault.Denied, "bytes")
	permits[0].Settle(100)
	permits[0].Settle(0) // counts once
	permits[1].Settle(400)
	permits[2].Settle(-5)
	// 500 were used.
	p, f := ask(4)
	if f != nil || p.Most != 125 {
		t.Fatalf("got %+v, %v", p, f)
	}
	p.Settle(0)
	if p, f = ask(0); f != nil || p.Most != 400 {
		t.Fatalf("got %+v, %v", p, f)
	}
	// Others are under way, and nobody said how many there will be.
	if q, f := ask(0); f != nil || q.Most != 1 {
		t.Fatalf("got %+v, %v", q, f)
	}
	p.Settle(1000) // more than it was allowed: it counts
	_, f = ask(1)
	wantFault(t, f, fault.Denied, "bytes")
}

// TestManyInARound: many requests at once find room under the default limits,
// whether or not somebody says how many there are.
func TestManyInARound(t *testing.T) {
	for _, told := range []bool{true, false} {
		w := newWorld(t, "a/")
		w.grant("fs:./a")
		held, l := w.hold("fs.read:./a"), caps.NewLedger()
		for i := range 300 {
			r := caps.Request{Operation: "fs.read", Arg: str("x"), Tool: "t"}
			if told {
				r.Among = 300 - i
			}
			if p, f := w.policy.Permit(l, held, r); f != nil || p.Most < 16<<10 {
				t.Fatalf("request %d: %+v, %v", i, p, f)
			}
		}
	}
}

// TestContent: what a program sends counts against the limit of one content.
func TestContent(t *testing.T) {
	w := newWorld(t, "a/")
	w.grant("fs:./a,max=100B", "fetch:https://h,max=100B")
	held := w.hold("fs.write:./a", "fetch:https://h")
	long := strings.Repeat("x", 101)
	var nothing value.Value = str("")
	for range 26 {
		nothing = &value.Pair{First: nothing, Second: nothing}
	}
	for _, c := range []struct {
		op   string
		arg  value.Value
		want bool
	}{
		{"fs.write", rec("path", "x", "content", long[1:]), true},
		{"fs.write", rec("path", "x", "content", long), false},
		{"fs.write", rec("path", long, "content", long[1:]), true},
		{"fetch.request", rec("url", "https://h/"+long), true},
		{"fetch.request", rec("url", "https://h", "json", rec("a", value.FromSlice([]value.Value{str(long)}))), false},
		{"fetch.request", rec("url", "https://h", "json", &value.Pair{First: str(long[50:]), Second: str(long[50:])}), false},
		{"fetch.request", rec("url", "https://h", "headers", rec(long, "")), false},
		{"fetch.request", rec("url", "https://h", "json", nothing), false},
	} {
		if got := w.allowed(held, c.op, c.arg); got != c.want {
			t.Errorf("%s: permitted: %v", c.op, got)
		}
	}
}

// TestNothingIsChargedForADenial: a denied request leaves the counters alone.
func TestNothingIsChargedForADenial(t *testing.T) {
	w := newWorld(t, "a/")
	w.grant("fs:./a,calls=1,rate=1/h,bytes=10B,max=10B")
	held, l := w.hold("fs.read:./a,calls=1"), caps.NewLedger()
	for _, bad := range []value.Value{str("../x"), str("/x"), rec("path", "x", "from", "y")} {
		if _, f := w.permit(l, held, "fs.read", bad); f == nil {
			t.Fatalf("%v is permitted", bad)
		}
	}
	p, f := w.permit(l, held, "fs.read", str("x"))
	if f != nil || p.Most != 10 {
		t.Fatalf("got %+v, %v", p, f)
	}
	// The rate is over: nothing is taken from another run.
	other := caps.NewLedger()
	if _, f := w.permit(other, held, "fs.read", str("x")); f == nil {
		t.Fatal("the rate doesn't hold")
	}
	w.clock.pass(time.Hour)
	if _, f := w.permit(other, held, "fs.read", str("x")); f != nil {
		t.Error(f)
	}
}

// TestWays: where each link lies on the way to a file, also to folders, also back
// up; and the file.
func TestWays(t *testing.T) {
	w := newWorld(t, "v1/bin/tool", "bin/", "other/")
	w.link("current", "v1")
	w.link("bin/tool", "../current/bin/tool")
	w.link("other/tool", "../bin/../bin/tool")
	w.link("loop", "loop")
	for path, want := range map[string][]string{
		"v1/bin/tool":  {"v1/bin/tool"},
		"bin/tool":     {"bin/tool", "current", "v1/bin/tool"},
		"other/tool":   {"other/tool", "bin/tool", "current", "v1/bin/tool"},
		"bin/no/where": {"bin/no/where"},
	} {
		for i, p := range want {
			want[i] = w.path(p)
		}
		if got := caps.Ways(w.path(path)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, expected %q", path, got, want)
		}
	}
	if got := caps.Ways(w.path("loop")); len(got) > 100 {
		t.Errorf("a loop has %d ways", len(got))
	}
}

// TestProgramsAreKept: no grant under which something may be changed contains a
// program, a link on the way to it, or another name of it; one that reads may.
func TestProgramsAreKept(t *testing.T) {
	w := newWorld(t, "opt/tool/run", "opt/data/", "links/", "names/", "libraries/python/", "free/", "hard")
	w.link("links/run", "../opt/tool/run")
	if err := os.Link(w.path("hard"), w.path("names/another")); err != nil {
		t.Skip(err)
	}
	programs := slices.Concat(caps.Ways(w.path("links/run")), []string{w.path("libraries"), w.path("hard")})
	for text, says := range map[string]string{
		"fs:./opt":                 "contains " + w.path("opt/tool/run"),
		"fs:./opt/tool":            "contains " + w.path("opt/tool/run"),
		"fs.write:./opt/tool/run":  "contains " + w.path("opt/tool/run"),
		"fs.read,write:./links":    "contains " + w.path("links/run"),
		"fs:.":                     "contains",
		"fs:./libraries":           "lies in",
		"fs:./libraries/python":    "lies in",
		"fs.list,move:./names":     "another name (hard link)",
		"fs:./opt,ro":              "",
		"fs.read,list:./libraries": "",
		"fs.read:./opt/tool/run":   "",
		"fs:./names,ro":            "",
		"fs:./opt/data":            "",
		"fs:./free":                "",
	} {
		g, err := caps.Resolve(w.parse(text), caps.ResolveOptions{Kinds: w.kinds, Dir: w.dir, Programs: programs, Linked: true})
		switch {
		case err == nil && says != "":
			t.Errorf("%s is granted", text)
		case err != nil && (says == "" || !strings.Contains(err.Error(), says)):
			t.Errorf("%s: %v, expected %q", text, err, says)
		}
		if err == nil {
			g.Close()
		}
	}
	// A plugin that refuses files with several names needs no look at them.
	g, err := caps.Resolve(w.parse("fs:./names"), caps.ResolveOptions{Kinds: w.kinds, Dir: w.dir, Programs: programs})
	must.NoError(t, err)
	g.Close()
}

// TestCommandPrograms: what decides which program is started, and what may be
// executed besides, unless the command makes that itself.
func TestCommandPrograms(t *testing.T) {
	w := newWorld(t, "first/", "second/tool", "third/tool", "made/", "given/")
	must.NoError(t, os.Chmod(w.path("second/tool"), 0o700))
	t.Setenv("PATH", strings.Join([]string{w.path("first"), w.path("second"), w.path("third")}, string(filepath.ListSeparator)))
	c := caps.Command{Args: []string{"tool"}, Execute: []string{w.path("made/out"), w.path("given")}, Write: []string{w.path("made")}}
	if got, want := c.Programs(), []string{w.path("first/tool"), w.path("second/tool"), w.path("given")}; !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	if got := (&caps.Command{}).Programs(); len(got) > 0 {
		t.Errorf("no command has %q", got)
	}
	for write, refused := range map[string]bool{"second": true, "given": false, "third": false, "made": false} {
		c := caps.Command{Path: w.path("second/tool"), Execute: []string{w.path("given")}, Write: []string{w.path(write)}}
		if err := c.CheckWrites([]string{w.path("second/tool"), w.path("given")}); (err != nil) != refused {
			t.Errorf("writing to %s: %v", write, err)
		}
	}
}
