package fs

import (
	"context"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

func TestList(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		for _, name := range []string{"b", "a/x", "a/y/z", "a.txt", "a-", "B", "é"} {
			w.put(w.at(name), name)
		}
		w.makeDir(w.at("empty"))
		h := w.hold(nil)
		if got := h.entries("fs.list"); got != "B a/ a- a.txt b empty/ é" {
			t.Errorf("listed: %s", got)
		}
		for _, p := range []string{".", "./"} {
			if got := h.entries("fs.list", "path", p, "recursive", true); got != "B a/ a/x a/y/ a/y/z a- a.txt b empty/ é" {
				t.Errorf("listed: %s", got)
			}
		}
		for _, p := range []string{"a", "./a"} {
			if got := h.entries("fs.list", "path", p, "recursive", true); got != "a/x a/y/ a/y/z" {
				t.Errorf("listed: %s", got)
			}
		}
		if got := h.entries("fs.list", "path", "empty"); got != "" {
			t.Errorf("listed: %s", got)
		}
		if items, _ := value.Slice(h.ok("fs.list", "path", "a")); field(items[0], "size") != "3" || field(items[1], "size") != "0" {
			t.Errorf("sizes: %v", items)
		}
		for n, want := range map[int]string{1: "B", 2: "B a/", 3: "B a/ a/x", 5: "B a/ a/x a/y/ a/y/z", 9: "B a/ a/x a/y/ a/y/z a- a.txt b empty/", 50: "B a/ a/x a/y/ a/y/z a- a.txt b empty/ é"} {
			if got := h.entries("fs.list", "recursive", true, "limit", n); got != want {
				t.Errorf("limit %d: %s", n, got)
			}
		}
		h.refused("invalid", "fs.list", "limit", -1)
		h.refused("invalid", "fs.list", "limit", maxLimit+1)
		h.refused("not_a_directory", "fs.list", "path", "b")
		h.refused("not_found", "fs.list", "path", "nothing")
		// What a part of a grant lists is relative to the part.
		if got := w.hold(within("a")).entries("fs.list", "recursive", true); got != "x y/ y/z" {
			t.Errorf("listed: %s", got)
		}
		w.put(w.at(".hidden/.x"), "")
		if got := h.entries("fs.list", "path", ".hidden"); got != ".hidden/.x" {
			t.Errorf("listed: %s", got)
		}
	})
}

// TestHugeDirectory: without a limit, more than a thousand entries are a failure
// that says so and never a silent part; with one, they are the first by path.
func TestHugeDirectory(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.makeDir(w.at("d"))
		for n := range 1001 {
			w.put(w.at(fmt.Sprintf("d/%05d", (n*7919)%1001)), "")
		}
		h := w.hold(nil)
		for _, args := range [][]any{{"fs.list", "path", "d"}, {"fs.list", "recursive", true}, {"fs.glob", "pattern", "d/*"}} {
			f := h.refused("too_large", args[0].(string), args[1:]...)
			if !strings.Contains(f.Message, "1000") || !strings.Contains(f.Hint, "limit") {
				t.Errorf("said: %+v", f)
			}
			var said []string
			ctx := sdk.WithProgress(context.Background(), func(s string) { said = append(said, s) })
			v, err := h.h.Invoke(ctx, args[0].(string), arguments(append(args[1:], "limit", 3)...))
			if items, _ := value.Slice(v); err != nil || len(items) != 3 {
				t.Errorf("%v: %d, %v", args, len(items), err)
			}
			if len(said) != 1 || !strings.Contains(said[0], "more than 3") {
				t.Errorf("said: %q", said)
			}
		}
		if got := h.entries("fs.list", "path", "d", "limit", 3); got != "d/00000 d/00001 d/00002" {
			t.Errorf("listed: %s", got)
		}
		os.Remove(w.at("d/00500"))
		if items, _ := value.Slice(h.ok("fs.list", "path", "d")); len(items) != 1000 {
			t.Errorf("%d of 1000", len(items))
		}
		h = w.hold(func(c *sdk.Capability) { c.Max = 2000 })
		h.refused("too_large", "fs.list", "path", "d")
		h.refused("too_large", "fs.glob", "pattern", "d/*", "limit", 500)
		h.ok("fs.list", "path", "d", "limit", 10)
	})
}

// TestUnsayableNames: names that no program can say are left out, and go with
// their directory.
func TestUnsayableNames(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system has no such names")
	}
	worlds(t, func(t *testing.T, w *world) {
		for _, name := range []string{"d/a\xff", "d/b\nc", "d/\x1b[31m", "d/ok"} {
			w.put(w.root+"/"+name, "")
		}
		h := w.hold(nil)
		var said []string
		ctx := sdk.WithProgress(context.Background(), func(s string) { said = append(said, s) })
		v, err := h.h.Invoke(ctx, "fs.list", arguments("path", "d"))
		if items, _ := value.Slice(v); err != nil || len(items) != 1 || len(said) != 1 || !strings.HasPrefix(said[0], "3 names") {
			t.Errorf("%v, %v, said %q", items, err, said)
		}
		if got := h.entries("fs.glob", "pattern", "d/*"); got != "d/ok" {
			t.Errorf("matched: %s", got)
		}
		h.ok("fs.remove", "path", "d", "recursive", true)
		w.gone("d")
	})
}

// TestDeepTrees: what is too deep to hold open is said to be.
func TestDeepTrees(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		h := w.hold(nil)
		deep := strings.TrimSuffix(strings.Repeat("d/", maxDepth+2), "/")
		w.makeDir(w.at(deep))
		h.refused("too_large", "fs.list", "recursive", true)
		h.refused("too_large", "fs.glob", "pattern", "**")
		h.refused("too_large", "fs.remove", "path", "d", "recursive", true)
		h.ok("fs.write", "path", deep+"/f", "content", "x")
		if got := h.entries("fs.glob", "pattern", "d/d/d"); got != "d/d/d/" {
			t.Errorf("matched: %s", got)
		}
		h.ok("fs.remove", "path", deep[:100*2-1], "recursive", true)
		h.ok("fs.remove", "path", "d", "recursive", true)
	})
}

func TestGlob(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		for _, name := range []string{"a.txt", "b.md", "src/a.go", "src/a_test.go", "src/x/b.go", "src/x/y/c.go", ".git/config", "[x]", "src/.h"} {
			w.put(w.at(name), "")
		}
		h := w.hold(nil)
		for pattern, want := range map[string]string{
			"*.txt": "a.txt", "*": ".git/ [x] a.txt b.md src/", "a.txt": "a.txt", "./a.*": "a.txt", "nothing": "", "no/thing/*": "",
			"src/*.go": "src/a.go src/a_test.go", "**/*.go": "src/a.go src/a_test.go src/x/b.go src/x/y/c.go",
			"src/**/*.go": "src/a.go src/a_test.go src/x/b.go src/x/y/c.go", "src/**": "src/.h src/a.go src/a_test.go src/x/ src/x/b.go src/x/y/ src/x/y/c.go",
			"src/**/**/y/**": "src/x/y/c.go", "**/x": "src/x/", "*/x/*/c.go": "src/x/y/c.go", "?.*": "a.txt b.md", "[a-b].*": "a.txt b.md",
			"[^a].*": "b.md", `\[x\]`: "[x]", ".*": ".git/", "a.txt/*": "", "a.txt/x": "", ".": "", "src/x": "src/x/", "**/.h": "src/.h",
			"src/[ax]*": "src/a.go src/a_test.go src/x/",
		} {
			if runtime.GOOS == "windows" && strings.ContainsAny(pattern, `?*\`) {
				continue
			}
			if got := h.entries("fs.glob", "pattern", pattern); got != want {
				t.Errorf("%s: %s, expected %s", pattern, got, want)
			}
		}
		for _, pattern := range []string{"../*", "/**", "src/../*", "*/", "**/", "[", "[]", "a[b", "src/[a/b]", "x/[z-a", `a\`, "a**", "**.go", "***", ""} {
			h.refused("invalid", "fs.glob", "pattern", pattern)
		}
		if got := h.entries("fs.glob", "pattern", "**/*.go", "limit", 2); got != "src/a.go src/a_test.go" {
			t.Errorf("limit: %s", got)
		}
		if got := w.hold(within("src/x")).entries("fs.glob", "pattern", "**/*.go"); got != "b.go y/c.go" {
			t.Errorf("a part: %s", got)
		}
	})
}

// TestGlobIsItsDefinition holds the matcher against the definition, which takes
// exponential time.
func TestGlobIsItsDefinition(t *testing.T) {
	w := newWorld(t, Plugin())
	h := w.hold(nil)
	names := []string{"a", "b", "ab"}
	var all []string
	var grow func(prefix string, depth int)
	grow = func(prefix string, depth int) {
		for _, n := range names {
			p := path.Join(prefix, n)
			all = append(all, p)
			if depth < 3 && n != "ab" {
				w.makeDir(w.at(p))
				grow(p, depth+1)
			} else {
				w.put(w.at(p), "")
			}
		}
	}
	grow("", 0)
	var matches func(pattern, names []string) bool
	matches = func(pattern, names []string) bool {
		if len(pattern) == 0 {
			return len(names) == 0
		}
		if pattern[0] == "**" {
			if len(pattern) == 1 {
				return len(names) > 0
			}
			return matches(pattern[1:], names) || len(names) > 0 && matches(pattern, names[1:])
		}
		if len(names) == 0 {
			return false
		}
		ok, _ := path.Match(pattern[0], names[0])
		return ok && matches(pattern[1:], names[1:])
	}
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "*", "a*", "?", "[ab]", "**", "**", "*b"}), 1, 6).Draw(t, "pattern")
		var want []string
		for _, p := range all {
			if matches(pattern, strings.Split(p, "/")) {
				want = append(want, p)
			}
		}
		slices.SortFunc(want, func(a, b string) int { return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) })
		got := strings.Fields(strings.ReplaceAll(h.entries("fs.glob", "pattern", strings.Join(pattern, "/")), "/ ", " "))
		for i := range got {
			got[i] = strings.TrimSuffix(got[i], "/")
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v: %v, expected %v", pattern, got, want)
		}
	})
}

// TestHostilePattern: no pattern makes the matcher look more than once at each
// entry.
func TestHostilePattern(t *testing.T) {
	w := newWorld(t, Plugin())
	h := w.hold(nil)
	h.ok("fs.mkdir", "path", strings.TrimSuffix(strings.Repeat("a/", 100), "/"), "recursive", true)
	// With backtracking these take longer than the universe has left.
	if got := h.entries("fs.glob", "pattern", strings.Repeat("**/a/", 40)+"b"); got != "" {
		t.Errorf("matched: %s", got)
	}
	if got := h.entries("fs.glob", "pattern", strings.Repeat("*a", 100)+"b"); got != "" {
		t.Errorf("matched: %s", got)
	}
}

func TestStat(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("f"), "12345")
		w.makeDir(w.at("d"))
		at := time.Date(2020, 2, 29, 23, 59, 58, 700, time.FixedZone("x", 3600))
		must.NoError(t, os.Chtimes(w.at("f"), at, at))
		h := w.hold(nil)
		got := h.ok("fs.stat", "path", "f")
		if field(got, "kind") != "file" || field(got, "size") != "5" || field(got, "modified") != "2020-02-29T22:59:58Z" {
			t.Errorf("f: %v", got)
		}
		for _, p := range []string{"d", "."} {
			if got := h.ok("fs.stat", "path", p); field(got, "kind") != "directory" || field(got, "size") != "0" {
				t.Errorf("%s: %v", p, got)
			}
		}
		h.refused("not_found", "fs.stat", "path", "x")
		h.refused("not_a_directory", "fs.stat", "path", "f/x")
	})
}

// Each segment of a pattern is met once for a name: states are in order, and none is there twice.
func TestGlobStates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"**/**/**/a": "[0 1 2 3 4]", "**/a/**/b": "[0 1 2 3]", "a/**/**": "[1 2 3]", "*/a": "[1]", "b/**": "[]"} {
		p, err := parsePattern(text)
		must.NoError(t, err)
		if got := fmt.Sprint(p.step(p.closure([]int{0}), "a")); got != want {
			t.Errorf("%s after a: %s, want %s", text, got, want)
		}
	}
}
