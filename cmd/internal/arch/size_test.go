package arch

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// maxLines is how many lines of code a folder may have, without tests, generated files,
// comments and blank lines: what it has, rounded up. Who has to raise a number says why
// in the commit; the aim for the sum is 70,000 lines in 340 files.
var maxLines = map[string]int{}

// TestSize counts the lines of code of each folder against its maximum, and prints both.
func TestSize(t *testing.T) {
	lines, files := map[string]int{}, 0
	sources(t, func(dir, name string, src []byte) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, src, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(file) {
			return
		}
		files++
		lines[subject(dir)] += codeLines(src)
	})
	sum := 0
	for _, dir := range slices.Sorted(maps.Keys(lines)) {
		sum += lines[dir]
		t.Logf("%6d of %6d  %s", lines[dir], maxLines[dir], dir)
		if lines[dir] > maxLines[dir] {
			t.Errorf("%s has %d lines of code, at most %d are planned", dir, lines[dir], maxLines[dir])
		}
	}
	t.Logf("%6d lines in %d files", sum, files)
}

// subject returns the folder that a package is counted with: supports of tests together,
// and the parts of a plugin with it.
func subject(dir string) string {
	switch {
	case rules[dir].tests, dir == "cmd/internal/arch", strings.HasPrefix(dir, "cmd/internal/peerbench"), strings.HasPrefix(dir, "cmd/internal/clients"):
		return "(tests)"
	case strings.Contains(dir, "/testdata/"), strings.HasPrefix(dir, "plugins/examples"):
		return "(tests)"
	case strings.HasPrefix(dir, "proto"):
		return "proto"
	}
	return path.Clean(dir)
}

// codeLines counts the lines on which a token begins or that a raw string goes through.
func codeLines(src []byte) (n int) {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	last := 0
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue
		}
		first := file.Line(pos)
		end := first + strings.Count(text, "\n")
		n += end - max(first-1, last)
		last = max(last, end)
	}
}

func TestCodeLines(t *testing.T) {
	const src = "package p // one\n\n// none\nvar x = `a\nb\n\nc` + f(1,\n\t2)\n\n/* none\n */\nfunc f() {\n}\n"
	if got := codeLines([]byte(src)); got != 8 {
		t.Errorf("%d lines, want 8", got)
	}
}
