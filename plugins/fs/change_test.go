package fs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

func TestMkdir(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		h := w.hold(nil)
		h.ok("fs.mkdir", "path", "d")
		for path, code := range map[string]string{"d": "exists", "x/y": "not_found"} {
			if f := h.refused(code, "fs.mkdir", "path", path); !strings.Contains(f.Hint, `!fs.mkdir({path: "`+path+`", recursive: true})`) {
				h.Errorf("%v: %s", f, f.Hint)
			}
		}
		h.refused("exists", "fs.mkdir", "path", ".")
		if got := field(h.ok("fs.mkdir", "path", "d/e/f/g", "recursive", true), "created"); got != "3" {
			t.Errorf("%s were made", got)
		}
		if got := field(h.ok("fs.mkdir", "path", "d/e/f/g", "recursive", true), "created"); got != "0" {
			t.Errorf("%s were made", got)
		}
		w.put(w.at("file"), "x")
		h.refused("exists", "fs.mkdir", "path", "file")
		h.refused("not_a_directory", "fs.mkdir", "path", "file", "recursive", true)
		h.refused("not_a_directory", "fs.mkdir", "path", "file/x/y", "recursive", true)
		if got := h.entries("fs.list", "recursive", true); got != "d/ d/e/ d/e/f/ d/e/f/g/ file" {
			t.Errorf("left: %s", got)
		}
	})
}

func TestMove(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("a"), "a")
		w.put(w.at("b"), "b")
		w.put(w.at("d/x"), "x")
		w.makeDir(w.at("e"))
		h := w.hold(nil)
		for _, to := range []string{"b", "d", "e", ".", "a", "d/x"} {
			h.refused("conflict", "fs.move", "from", "a", "to", to)
		}
		for _, to := range []string{"a", "e", "d"} {
			h.refused("conflict", "fs.move", "from", "d", "to", to)
		}
		h.refused("invalid", "fs.move", "from", "d", "to", "d/inside")
		h.refused("not_found|invalid", "fs.move", "from", "d", "to", "d/in/side")
		h.refused("not_found", "fs.move", "from", "no", "to", "where")
		h.refused("not_found", "fs.move", "from", "a", "to", "no/where")
		h.refused("not_a_directory", "fs.move", "from", "a", "to", "b/x")
		if got := h.entries("fs.list", "recursive", true); got != "a b d/ d/x e/" {
			t.Errorf("refused, and yet: %s", got)
		}
		got := h.ok("fs.move", "from", "a", "to", "d/a")
		if field(got, "from") != "a" || field(got, "to") != "d/a" {
			t.Errorf("gave %v", got)
		}
		h.ok("fs.move", "from", "d", "to", "e/d")
		h.ok("fs.move", "from", "b", "to", "B")
		if got := h.entries("fs.list", "recursive", true); got != "B e/ e/d/ e/d/a e/d/x" {
			t.Errorf("moved: %s", got)
		}
		h.reads("e/d/a", "a")
		h.reads("B", "b")
		// Not into the part, nor out of it.
		h = w.hold(within("e"))
		h.refused("invalid", "fs.move", "from", "d/a", "to", "../out")
		h.refused("invalid", "fs.move", "from", "../B", "to", "in")
		h.ok("fs.move", "from", "d/a", "to", "a")
		w.gone("e/d/a")
	})
}

func TestRemove(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		for _, name := range []string{"f", "d/x", "many/a/1", "many/a/2", "many/b/c/d/1"} {
			w.put(w.at(name), "")
		}
		w.makeDir(w.at("empty"))
		h := w.hold(nil)
		h.refused("not_found", "fs.remove", "path", "no")
		h.refused("not_found", "fs.remove", "path", "no", "recursive", true)
		h.refused("conflict", "fs.remove", "path", "d")
		h.refused("not_a_directory", "fs.remove", "path", "f/x")
		for path, count := range map[string]string{"f": "1", "empty": "1"} {
			if got := field(h.ok("fs.remove", "path", path), "removed"); got != count {
				t.Errorf("%s: %s are gone", path, got)
			}
		}
		if got := field(h.ok("fs.remove", "path", "many", "recursive", true), "removed"); got != "8" {
			t.Errorf("many: %s are gone", got)
		}
		if got := h.entries("fs.list", "recursive", true); got != "d/ d/x" {
			t.Errorf("left: %s", got)
		}
		// More than two looks at a directory give.
		for n := range 1100 {
			w.put(filepath.Join(w.root, "big", strings.Repeat("x", n%60)+string(rune('a'+n%26))+strings.Repeat("y", n/60)), "")
		}
		h.ok("fs.remove", "path", "big", "recursive", true)
		w.gone("big")
	})
}

// TestCancelled: a request that was cancelled does nothing.
func TestCancelled(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		w.put(w.at("a"), "a")
		h := w.hold(nil)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for op, args := range every("a") {
			_, err := h.h.Invoke(ctx, op, arguments(args...))
			if f, ok := errors.AsType[sdk.Failure](err); !ok || f.Code != "timeout" {
				t.Errorf("%s: %v", op, err)
			}
		}
		h.reads("a", "a")
		// In the middle of something long.
		for n := range 50 {
			w.makeDir(w.at("tree/" + strings.Repeat("d", n+1)))
		}
		for code, step := range map[string][]any{"unknown": {"fs.remove", "path", "tree", "recursive", true}, "timeout": {"fs.glob", "pattern", "**"}} {
			_, err := h.h.Invoke(&lateCancel{Context: context.Background(), left: 10}, step[0].(string), arguments(step[1:]...))
			if f, ok := errors.AsType[sdk.Failure](err); !ok || f.Code != code {
				t.Errorf("%v: %v", step, err)
			}
		}
		if names, _ := os.ReadDir(w.at("tree")); len(names) == 0 || len(names) == 50 {
			t.Errorf("%d are left: it wasn't stopped in the middle", len(names))
		}
	})
}

// TestManifest: the plugin is what the design's table says it is.
func TestManifest(t *testing.T) {
	m, err := Plugin().Manifest()
	must.NoError(t, err)
	want := map[string]string{
		"fs.read": "path*! encoding? from? length?", "fs.write": "path! content encoding? create? was?", "fs.append": "path! content encoding? create?",
		"fs.list": "path*!? recursive? limit?", "fs.glob": "pattern*! limit?", "fs.stat": "path*!", "fs.mkdir": "path*! recursive?",
		"fs.move": "from! to!", "fs.remove": "path*! recursive?",
	}
	if m.Kind != "fs" || m.Algebra != sdk.Path || len(m.Operations) != len(want) || len(m.Verbs) != len(want) {
		t.Errorf("%s, %s, %d operations, %d verbs", m.Kind, m.Algebra, len(m.Operations), len(m.Verbs))
	}
	for _, o := range m.Operations {
		var got []string
		for _, p := range o.Params {
			name := p.Name
			if p.Main {
				name += "*"
			}
			if p.Designates {
				name += "!"
			}
			if p.Optional {
				name += "?"
			}
			got = append(got, name)
		}
		if strings.Join(got, " ") != want[o.Name] {
			t.Errorf("%s: %s, expected %s", o.Name, got, want[o.Name])
		}
		v, ok := m.Verb(o.Verb)
		reads := strings.Contains("fs.read fs.list fs.glob fs.stat", o.Name)
		if !ok || v.ReadOnly != reads || reads && !v.Idempotent || v.OpenWorld {
			t.Errorf("%s: verb %+v", o.Name, v)
		}
		for create, again := range map[string]bool{"always": true, "never": true, "only": false} {
			if f := m.FlagsOf(&o, arguments("create", create).(*value.Record)); o.Name == "fs.write" && f.Idempotent != again {
				t.Errorf("%s with create %s: %+v", o.Name, create, f)
			}
		}
	}
}
