package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// kindCells returns what the table of plugins/README.md says of a kind: its operations,
// its verbs, and the options that are its own.
func kindCells(m *caps.Manifest) (operations, verbs, options string) {
	var names, said, own []string
	for _, o := range m.Operations {
		names = append(names, strings.TrimPrefix(o.Name, m.Kind+"."))
	}
	for _, v := range m.Verbs {
		said = append(said, v.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Options)) {
		option := "`" + name + "`"
		if values := m.Options[name]; len(values) > 0 {
			option = "`" + name + "=` " + strings.Join(values, ", ")
		}
		own = append(own, option)
	}
	operations, verbs = strings.Join(names, ", "), strings.Join(said, ", ")
	if verbs == operations {
		verbs = "the same"
	}
	return operations, verbs, strings.Join(own, "; ")
}

// TestReadmeKinds: the table in plugins/README.md has every kind that ships, with its
// operations, verbs and options, and no other; the root README names each.
func TestReadmeKinds(t *testing.T) {
	all, err := app.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	const path = "../../plugins/README.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	in := false
	for line := range strings.Lines(string(text)) {
		in = strings.HasPrefix(line, "| kind |") || in && strings.HasPrefix(line, "|")
		if !in || !strings.HasPrefix(line, "| [`") && !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		kind, _, _ := strings.Cut(strings.Trim(cells[0], "[`"), "`")
		rows[kind] = cells
	}
	for kind, m := range all {
		operations, verbs, options := kindCells(m)
		want := fmt.Sprintf("%s | %s | %s", operations, verbs, options)
		if cells := rows[kind]; len(cells) < 5 || strings.Join(cells[2:5], " | ") != want {
			t.Errorf("%s: the row of %s is %q; in columns 3 to 5 there is to be %q", path, kind, cells, want)
		}
		delete(rows, kind)
	}
	for kind := range rows {
		t.Errorf("%s: there is no kind %s", path, kind)
	}
	front, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind := range all {
		if !regexp.MustCompile("`" + kind + "[.:`]").Match(front) {
			t.Errorf("the root README doesn't name the kind %s", kind)
		}
	}
}

// TestKindsExamples: the example that help and faults show of each operation that ships is
// code that asks for it with what it requires.
func TestKindsExamples(t *testing.T) {
	all, err := app.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		for i := range m.Operations {
			o := &m.Operations[i]
			p, err := core.Compile([]byte(o.Example()))
			if err != nil {
				t.Errorf("%s: %s: %v", o.Name, o.Example(), err)
				continue
			}
			effect, ok := p.Term().(*term.Effect)
			if !ok || effect.Op != o.Name {
				t.Errorf("%s: %s is no call of it", o.Name, o.Example())
				continue
			}
			given, isRecord := effect.Argument().(*term.Record)
			for _, p := range o.Params {
				has := isRecord && slices.ContainsFunc(given.Fields, func(f term.Field) bool { return f.Key == p.Name })
				if alone := !isRecord && p.Main; !p.Optional && !has && !alone {
					t.Errorf("%s: %s lacks %s", o.Name, o.Example(), p.Name)
				}
			}
		}
	}
}
