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

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
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
			case ext == "txtar":
				for _, f := range txtar.Parse(code).Files {
					if name, ok := strings.CutSuffix(f.Name, ".pif"); ok {
						programs[name] = string(f.Data)
					}
				}
			case dir == "testdata/tried":
				programs["my_"+name] = string(code)
			}
		}
	}
	return programs
}

// A sizing is how long answers are, in bytes of the text without printed code.
type sizing struct{ all []int }

func (s *sizing) add(t *testing.T, a wire.Answer) {
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

// groupSizes is how long the answer is that makes so many tools at once, each of which
// calls the next one, and which makes their next versions.
func groupSizes(t *testing.T, n int) (of sizing) {
	for _, kind := range []struct{ code, rest string }{
		{`n => if n == 0 then true else @%s(n - 1)`, ``},
		{`text => if length(text) == 0 then 0 else 1 + @%s(slice(text, 1, length(text)))`, `,"description":"how long a text is, by parts","examples":[{"input":"","expect":0}]`},
		{`(order, n) => if n < 1 then order.total else @%s(order, n - 1)`, `,"description":"what an order comes to"`},
		{`n => if n == 0 then [] else cons({n: n}, @%s(n - 1))`, `,"if_version":0`},
	} {
		s := New(Options{})
		var entries []string
		for i := range n {
			next := fmt.Sprintf("part_%d", (i+1)%n)
			entries = append(entries, fmt.Sprintf(`{"name":"part_%d","code":"%s","capabilities":["call:%s"]%s}`, i, fmt.Sprintf(kind.code, next), next, kind.rest))
		}
		call := `{"tools":[` + strings.Join(entries, ",") + `]}`
		next := strings.NewReplacer("n - 1", "n - 2", "slice(text, 1", "slice(text, 2", `"if_version":0`, `"if_version":1`).Replace(call)
		for _, call := range []string{call, next} {
			a := must(t, s, "evolve", call)
			if of.add(t, a); n <= 8 && len(a.Text) > largestAnswer {
				t.Errorf("%d tools: %d bytes: %s", n, len(a.Text), a.Text)
			}
		}
	}
	return of
}

// TestSizes: what evolve answers is short for ordinary tools, those of core/examples and
// those that models were asked to make; the README has how long answers are.
func TestSizes(t *testing.T) {
	s := New(Options{})
	const examples = "../../../core/examples/tasks"
	var evolves, describes, details, failures sizing
	programs := tasks(t, examples, "testdata/tried")
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		var a wire.Answer
		code := programs[name]
		if strings.HasPrefix(code, "{") {
			a = must(t, s, "evolve", fmt.Sprintf(`{"name":%q,"code":%s}`, name, code))
		} else {
			a = must(t, s, "evolve", string(wire.Encode(map[string]any{"name": name, "code": code})))
		}
		var one sizing
		one.add(t, a)
		if evolves.all = append(evolves.all, one.all...); one.all[0] > largestAnswer {
			t.Errorf("%s: %d bytes: %s", name, one.all[0], a.Text)
		}
		if strings.HasPrefix(name, "my_") {
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
	if n := len(evolves.all); n != len(programs) || len(describes.all) != n-40 {
		t.Fatalf("%d programs, %d of them examples", n, len(describes.all))
	}
	if p90 := evolves.at(90); p90 > usualAnswer {
		t.Errorf("nine of ten answers of evolve have up to %d bytes, expected %d", p90, usualAnswer)
	}
	if a := do(t, s, "evolve", `{"tools":[`+strings.Repeat(`{"name":"a","code":"1"},`, 31)+`{"name":"a","code":"1"}]}`); a.Fault == nil || !strings.Contains(a.Text, "32 tools can't be evolved at once") {
		t.Errorf("%s", a.Text)
	}
	two, eight, sixteen := groupSizes(t, 2), groupSizes(t, 8), groupSizes(t, 16)
	var table bytes.Buffer
	table.WriteString("| answer | median | nine of ten | longest |\n|---|---|---|---|\n")
	for _, row := range []struct {
		name string
		of   *sizing
	}{
		{"`evolve`, of the tasks and forty more", &evolves},
		{"`evolve` of 2 tools that call each other", &two}, {"of 8", &eight}, {"of 16, the most", &sixteen}, {"`describe`", &describes}, {"`describe` with `\"detail\":true`", &details}, {"a call that fails", &failures},
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
