package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// longest is how many lines a file may have, unless the comment at its head
// (before the imports) gives the reason for its length.
const longest = 800

// idle are names that say nothing about what is in a package or file.
var idle = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "types"}

// check gives what is wrong with a source file of the folder dir. The name is
// the file's own.
func check(dir, name string, src []byte) (problems []string) {
	complain := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s: ", path.Join(dir, name))+fmt.Sprintf(format, args...))
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		complain("%v", err)
		return problems
	}
	if slices.Contains(idle, strings.TrimSuffix(name, ".go")) || slices.Contains(idle, file.Name.Name) {
		complain("a name that says nothing: name it after what it defines")
	}
	test := strings.HasSuffix(name, "_test.go")
	if n := strings.Count(string(src), "\n"); n > longest && !test && !ast.IsGenerated(file) && !excused(file) {
		complain("%d lines, at most %d unless its head comment says why its length is right", n, longest)
	}
	r, ok := ruleOf(dir)
	if !ok {
		complain("the package is not in the table of package arch: decide what it may import and list it")
		return problems
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			complain("%v", err)
			continue
		}
		if why := refuse(dir, r, imported, test); why != "" && !slices.Contains(r.file[name], imported) {
			complain("imports %s: %s", imported, why)
		}
	}
	return problems
}

// excused reports whether a file's head comment speaks of its length.
func excused(file *ast.File) bool {
	return slices.ContainsFunc(file.Comments, func(c *ast.CommentGroup) bool {
		return strings.Contains(c.Text(), "length")
	})
}

// ruleOf finds the rule of a folder.
func ruleOf(dir string) (rule, bool) {
	if r, ok := rules[dir]; ok {
		return r, true
	}
	for pattern, r := range rules {
		if matches([]string{pattern}, dir) {
			return r, true
		}
	}
	return rule{}, false
}

// refuse says why a package may not import another, or "".
func refuse(dir string, r rule, imported string, test bool) string {
	ours, isOurs := strings.CutPrefix(imported, module+"/")
	standard := !strings.Contains(strings.SplitN(imported, "/", 2)[0], ".")
	switch {
	case imported == "unsafe":
		if !r.unsafe {
			return "unsafe is for core/eval"
		}
	case imported == "C":
		return "this program is pure Go"
	case isOurs:
		target, known := ruleOf(ours)
		switch {
		case !known:
			return "it is not in the table of package arch"
		case test || r.tests && target.tests:
		case target.tests:
			return "it is for tests"
		case !matches(r.ours, ours):
			return "against the order of the packages"
		}
	case standard:
		if !test && !matches(r.std, imported) {
			return "the package must be pure"
		}
	case matches(r.libraries, imported):
	case test && matches(testLibraries, imported):
	default:
		return "the library is not listed for this package"
	}
	return ""
}

// matches reports whether a path is among the patterns: itself, or "x/..." for
// x and all below it, or "..." for any.
func matches(patterns []string, p string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if pattern == "..." {
			return true
		}
		if above, ok := strings.CutSuffix(pattern, "/..."); ok {
			return p == above || strings.HasPrefix(p, above+"/")
		}
		return p == pattern
	})
}
