package mcpserver

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of sizes into cmd/README.md")

// What a sized answer may have, in bytes, without printed code.
const (
	usualAnswer   = 600 // nine of ten
	largestAnswer = 1200
)

// tasks is the programs in some folders, by their names.
func tasks(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	programs := map[string]string{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no programs in %s: %v", dir, err)
		}
		for _, file := range files {
			name, ext, _ := strings.Cut(filepath.Base(file), ".")
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case dir == "testdata/tried":
				programs["my_"+name] = string(code)
			case ext == "pif":
				programs[name] = string(code)
			}
		}
	}
	return programs
}

// A sizing is how long answers are, in bytes of the text without printed code.
type sizing struct{ all []int }

func (s *sizing) add(t *testing.T, a Answer) {
	n := len(a.Text)
	for _, more := range a.More {
		n += len(more)
	}
	var shown map[string]json.RawMessage
	if json.Unmarshal(a.Structured, &shown) == nil && a.Fault == nil {
		n -= len(shown["text"]) // printed code
		if string(shown["description"]) == string(shown["text"]) {
			n -= len(shown["description"])
		}
	}
	s.all = append(s.all, n)
}

// at is the size that so many of a hundred answers don't pass, in steps of 50 bytes.
func (s *sizing) at(percent int) int {
	slices.Sort(s.all)
	return (s.all[min(len(s.all)-1, len(s.all)*percent/100)] + 49) / 50 * 50
}

// TestSizes: what evolve answers is short for ordinary tools, those of core/examples and
// those that models were asked to make; the README has how long answers are.
func TestSizes(t *testing.T) {
	s := New(Options{})
	const examples = "../../../core/examples/tasks"
	var evolves, describes, details, failures sizing
	programs := tasks(t, examples, "testdata/tried")
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		var a Answer
		code := programs[name]
		if strings.HasPrefix(code, "{") {
			a = must(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s}`, name, code))
		} else {
			a = must(t, s, "evolve", string(encode(map[string]any{"name": name, "code": code})))
		}
		var one sizing
		one.add(t, a)
		if evolves.all = append(evolves.all, one.all...); one.all[0] > largestAnswer {
			t.Errorf("%s: %d bytes: %s", name, one.all[0], a.Text)
		}
		if _, err := os.Stat(filepath.Join(examples, name+".pif")); err != nil {
			continue
		}
		describes.add(t, must(t, s, "describe", fmt.Sprintf(`{"name":%q}`, name)))
		details.add(t, must(t, s, "describe", fmt.Sprintf(`{"name":%q,"detail":true}`, name)))
		failed := do(t, s, "run", fmt.Sprintf(`{"tool":%q,"input":{"wrong":true}}`, name))
		if failed.Fault == nil {
			failed = do(t, s, "run", fmt.Sprintf(`{"tool":%q,"input":null}`, name))
		}
		if failed.Fault != nil {
			failures.add(t, failed)
		}
	}
	if n := len(evolves.all); n != 70 || len(describes.all) != 30 {
		t.Fatalf("%d programs, %d of them examples", n, len(describes.all))
	}
	if p90 := evolves.at(90); p90 > usualAnswer {
		t.Errorf("nine of ten answers of evolve have up to %d bytes, expected %d", p90, usualAnswer)
	}
	var table bytes.Buffer
	table.WriteString("| answer | median | nine of ten | longest |\n|---|---|---|---|\n")
	for _, row := range []struct {
		name string
		of   *sizing
	}{
		{"`evolve`, of the thirty tasks and forty more", &evolves}, {"`describe`", &describes}, {"`describe` with `\"detail\":true`", &details}, {"a call that fails", &failures},
	} {
		fmt.Fprintf(&table, "| %s | %d | %d | %d |\n", row.name, row.of.at(50), row.of.at(90), row.of.at(100))
	}
	const file, from, to = "../../README.md", "<!-- sizes -->\n", "<!-- /sizes -->"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), from)
	was, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", file)
	}
	if was == table.String() {
		return
	}
	if !*update {
		t.Errorf("%s has another table than\n%s\ngo test ./cmd/internal/mcpserver -run TestSizes -update writes it", file, table.String())
		return
	}
	if err := os.WriteFile(file, []byte(before+from+table.String()+to+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
