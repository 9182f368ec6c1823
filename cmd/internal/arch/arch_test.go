package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// root is the repository's, from this package's folder.
const root = "../../.."

// sources calls visit with every Go file of the module.
func sources(t *testing.T, visit func(dir, name string, src []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
				return fs.SkipDir // a module of its own
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(filepath.Dir(rel)), d.Name(), src)
		return nil
	})
	must.NoError(t, err)
}

// lazyExpression is one that is compiled at its first use only.
var lazyExpression = regexp.MustCompile("lazyregexp\\.New\\((`[^`]*`|\"(?:[^\"\\\\]|\\\\.)*\")\\)")

func TestHouse(t *testing.T) {
	files, lazies := 0, 0
	sources(t, func(dir, name string, src []byte) {
		files++
		for _, problem := range check(dir, name, src) {
			t.Error(problem)
		}
		for _, lazy := range lazyExpression.FindAllSubmatch(src, -1) {
			text, err := strconv.Unquote(string(lazy[1]))
			if err == nil {
				_, err = regexp.Compile(text)
			}
			if lazies++; err != nil {
				t.Errorf("%s/%s: %v", dir, name, err)
			}
		}
	})
	if files < 50 || lazies < 30 {
		t.Fatalf("only %d files and %d expressions seen: the walk is broken", files, lazies)
	}
}

// TestPackageComments: a package says what it decides, in at least five lines
// where it is more than a test's support.
func TestPackageComments(t *testing.T) {
	longest := map[string]int{}
	sources(t, func(dir, name string, src []byte) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.PackageClauseOnly|parser.ParseComments)
		must.NoError(t, err)
		lines := 0
		if file.Doc != nil {
			lines = strings.Count(file.Doc.Text(), "\n")
		}
		longest[dir] = max(longest[dir], lines)
		if ast.IsGenerated(file) {
			longest[dir] = 5
		}
	})
	for dir, lines := range longest {
		least := 5
		if rules[dir].tests {
			least = 1
		}
		if lines < least {
			t.Errorf("%s: the package comment has %d lines, expected at least %d", dir, lines, least)
		}
	}
}

func TestTop(t *testing.T) {
	entries, err := os.ReadDir(root)
	must.NoError(t, err)
	for _, e := range entries {
		if !slices.Contains(top, e.Name()) {
			t.Errorf("%s is not a part of the house", e.Name())
		}
	}
	for _, folder := range []string{"cmd", "core", "caps", "plugins", "proto"} {
		if _, err := os.Stat(filepath.Join(root, folder)); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, folder, "README.md")); err != nil {
			t.Errorf("%s has no README.md, which is its subject's document", folder)
		}
	}
}

// TestViolations: every kind of violation is caught, and the same import where
// it is allowed is not.
func TestViolations(t *testing.T) {
	importing := func(path string) string { return "package p\n\nimport _ \"" + path + "\"\n" }
	for _, c := range []struct {
		dir, name, src string
		want           string // part of the complaint; "" for none
	}{
		{"core/eval", "a.go", importing("os"), "must be pure"},
		{"core/eval", "a.go", importing("net/http"), "must be pure"},
		{"core/eval", "a.go", importing("runtime/debug"), ""},
		{"core/prim", "a.go", importing("runtime/debug"), "must be pure"},
		{"core", "a.go", importing("time"), "must be pure"},
		{"core", "a.go", importing("context"), "must be pure"},
		{"core/prim", "urls.go", importing("net/url"), ""},
		{"core/prim", "a.go", importing("net/url"), "must be pure"},
		{"core/prim", "a.go", importing("math/rand"), "must be pure"},
		{"core/prim", "a.go", importing("math/rand/v2"), "must be pure"},
		{"core/naive", "a.go", importing("log/slog"), "must be pure"},
		{"core/parse", "a.go", importing("crypto/rand"), "must be pure"},
		{"core/parse", "a.go", importing("syscall"), "must be pure"},
		{"core/parse", "a_test.go", importing("os"), ""},
		{"core/code", "a.go", importing("unsafe"), "unsafe"},
		{"core/code", "a_test.go", importing("unsafe"), "unsafe"},
		{"core/eval", "a.go", importing("unsafe"), ""},
		{"cmd/mcp-pif", "a.go", importing("unsafe"), "unsafe"},
		{"core/eval", "a.go", importing("C"), "pure Go"},

		{"core/fault", "a.go", importing(module + "/core/term"), "order"},
		{"core/prim", "a.go", importing(module + "/core/parse"), "order"},
		{"core/parse", "a.go", importing(module + "/core/text"), "order"},
		{"core/eval", "a.go", importing(module + "/core/naive"), "order"},
		{"core/eval", "a.go", importing(module + "/core"), "order"},
		{"core", "a.go", importing(module + "/caps"), "order"},
		{"caps", "a.go", importing(module + "/plugins/host"), "order"},
		{"caps/registry", "a.go", importing(module + "/cmd/internal/mcpserver"), "order"},
		{"plugins/fs", "a.go", importing(module + "/caps"), "order"},
		{"cmd/internal/mcpserver", "a.go", importing(module + "/plugins/host"), "order"},
		{"cmd/internal/mcpserver", "a.go", importing(module + "/core/fault"), ""},
		{"cmd/mcp-pif", "a.go", importing(module + "/plugins/host"), ""},
		{"core", "a.go", importing(module + "/core/internal/vectors"), "for tests"},
		{"core", "a_test.go", importing(module + "/core/internal/vectors"), ""},
		{"core", "a.go", importing(module + "/core/nowhere"), "not in the table"},

		{"core", "a.go", importing("github.com/modelcontextprotocol/go-sdk/mcp"), "not listed"},
		{"caps", "a.go", importing("github.com/modelcontextprotocol/go-sdk/mcp"), "not listed"},
		{"cmd/internal/stdio", "a.go", importing("github.com/modelcontextprotocol/go-sdk/mcp"), ""},
		{"caps/run", "a.go", importing("google.golang.org/protobuf/proto"), "not listed"},
		{"plugins/internal/wire", "a.go", importing("google.golang.org/protobuf/proto"), ""},
		{"caps", "a.go", importing("github.com/hashicorp/go-plugin"), "not listed"},
		{"plugins/host", "a.go", importing("github.com/hashicorp/go-plugin"), ""},
		{"core", "a.go", importing("github.com/google/go-cmp/cmp"), "not listed"},
		{"core", "a_test.go", importing("github.com/google/go-cmp/cmp"), ""},
		{"core", "a_test.go", importing("github.com/stretchr/testify/assert"), "not listed"},
		{"cmd/internal/mcpserver", "a.go", importing("github.com/spf13/cobra"), "not listed"},
		{"proto/pif/v1", "a.go", importing(module + "/core/value"), "order"},

		{"core/extra", "a.go", "package extra\n", "not in the table"},
		{"cmd", "a.go", "package cmd\n", "not in the table"},
		{"core", "utils.go", "package core\n", "says nothing"},
		{"core", "a.go", "package helpers\n", "says nothing"},
		{"core", "a.go", "package core\n" + strings.Repeat("\n", longest), "lines"},
		{"core", "a_test.go", "package core\n" + strings.Repeat("\n", longest), ""},
		{"core", "a.go", "package core\n\n// Its length is right: it is one table.\n" + strings.Repeat("\n", longest), ""},
		{"core", "a.go", "packge core\n", "expected 'package'"},
	} {
		problems := check(c.dir, c.name, []byte(c.src))
		switch got := strings.Join(problems, "\n"); {
		case c.want == "" && got != "":
			t.Errorf("%s/%s: %q\nwas refused: %s", c.dir, c.name, c.src[:min(len(c.src), 80)], got)
		case c.want != "" && !strings.Contains(got, c.want):
			t.Errorf("%s/%s: %q\nexpected a complaint with %q, got %q", c.dir, c.name, c.src[:min(len(c.src), 80)], c.want, got)
		}
	}
}
