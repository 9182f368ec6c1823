package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/tiktoken-go/tokenizer"
)

// The worked tasks, seen from this folder, and the page that compares their lengths.
const (
	taskFiles = "../../../core/examples/tasks/*.txtar"
	taskPage  = "../../../core/examples/tasks/README.md"
)

// task is one worked task: a program in each language, with what it has to give.
type task struct {
	name   string
	trials []taskTrial
	pif    []byte
	star   []byte
	js     []byte
}

// taskTrial is an input with its result.
type taskTrial struct{ Input, Want json.RawMessage }

// doc returns what the first line of the PIF program says.
func (t *task) doc() string {
	line, _, _ := bytes.Cut(t.pif, []byte("\n"))
	return strings.TrimSuffix(strings.TrimPrefix(string(line), "// "), ".")
}

// loadTasks reads the tasks in the order of their names.
func loadTasks() ([]*task, error) {
	files, err := filepath.Glob(taskFiles)
	if err == nil && len(files) == 0 {
		err = errors.New("no tasks in " + taskFiles + ": run this from its own folder")
	}
	if err != nil {
		return nil, err
	}
	byName := map[string]*task{}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			return nil, err
		}
		for _, f := range archive.Files {
			name, ext, _ := strings.Cut(f.Name, ".")
			t := byName[name]
			if t == nil {
				t = &task{name: name}
				byName[name] = t
			}
			switch ext {
			case "json":
				var of struct {
					taskTrial
					Also []taskTrial
				}
				if err := json.Unmarshal(f.Data, &of); err != nil {
					return nil, fmt.Errorf("%s: %w", f.Name, err)
				}
				t.trials = append([]taskTrial{of.taskTrial}, of.Also...)
			case "pif":
				t.pif = f.Data
			case "star":
				t.star = f.Data
			case "js":
				t.js = f.Data
			default:
				return nil, fmt.Errorf("%s: unknown section %s", file, f.Name)
			}
		}
	}
	var all []*task
	for _, t := range byName {
		if t.trials == nil || t.pif == nil || t.star == nil || t.js == nil {
			return nil, fmt.Errorf("the task %s lacks a section", t.name)
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *task) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

// lengths is how many tokens a task's programs have.
type lengths struct {
	*task
	pif, star, js int
}

// countTokens counts the tokens of all programs, without their comments.
func countTokens(tasks []*task) ([]lengths, error) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return nil, err
	}
	var all []lengths
	for _, t := range tasks {
		l := lengths{task: t}
		for _, of := range []struct {
			n    *int
			src  []byte
			mark string
		}{{&l.pif, t.pif, "//"}, {&l.star, t.star, "#"}, {&l.js, t.js, "//"}} {
			ids, _, err := codec.Encode(uncommented(of.src, of.mark))
			if err != nil {
				return nil, err
			}
			*of.n = len(ids)
		}
		all = append(all, l)
	}
	return all, nil
}

// uncommented returns a program without the lines that are comments.
func uncommented(src []byte, mark string) string {
	var b strings.Builder
	for line := range strings.Lines(string(src)) {
		if !strings.HasPrefix(strings.TrimSpace(line), mark) {
			b.WriteString(line)
		}
	}
	return strings.TrimSpace(b.String())
}

// means returns the geometric means of PIF's tokens over those of each language.
func means(all []lengths) (star, js float64) {
	var overStar, overJS []float64
	for _, l := range all {
		overStar = append(overStar, float64(l.pif)/float64(l.star))
		overJS = append(overJS, float64(l.pif)/float64(l.js))
	}
	return geomean(overStar), geomean(overJS)
}

// tokensPage writes the lengths as the page of the tasks.
func tokensPage(all []lengths) []byte {
	var b bytes.Buffer
	star, js := means(all)
	fmt.Fprintf(&b, `# %d tasks, in PIF, Starlark and JavaScript

Each task is a program in PIF's text form, the same in Starlark and in JavaScript as one writes it by hand and their
formatters lay it out (buildifier, prettier), and inputs with the result of all three. A file has the tasks of a
subject. Tests check that every program gives these results: PIF on both evaluators in this folder, the others in
cmd/internal/peerbench, where this page is made:

    cd cmd/internal/peerbench && go run . -tokens

Tokens are those of o200k_base, without lines that are comments. PIF has %.2f of Starlark's tokens and %.2f of
JavaScript's, as geometric means. A task is marked in which PIF is the longer one.

| task | what it gives | PIF | Starlark | JavaScript | longer than |
|---|---|--:|--:|--:|---|
`, len(all), star, js)
	var sum lengths
	var overStar, overJS int
	for _, l := range all {
		var longer []string
		if l.pif > l.star {
			longer = append(longer, "Starlark")
			overStar++
		}
		if l.pif > l.js {
			longer = append(longer, "JavaScript")
			overJS++
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %s |\n", l.name, l.doc(), l.pif, l.star, l.js, strings.Join(longer, ", "))
		sum.pif, sum.star, sum.js = sum.pif+l.pif, sum.star+l.star, sum.js+l.js
	}
	fmt.Fprintf(&b, `| **sum** | | **%d** | **%d** | **%d** | |

PIF is longer than Starlark in %d of %d, and longer than JavaScript in %d. The Starlark programs may recurse and loop
with while, which Starlark forbids unless it is told to.
`, sum.pif, sum.star, sum.js, overStar, len(all), overJS)
	return b.Bytes()
}

// writeTokens makes the page of the tasks anew and prints it.
func writeTokens() error {
	tasks, err := loadTasks()
	if err != nil {
		return err
	}
	all, err := countTokens(tasks)
	if err != nil {
		return err
	}
	page := tokensPage(all)
	if err := os.WriteFile(taskPage, page, 0o644); err != nil {
		return err
	}
	_, err = os.Stdout.Write(page)
	return err
}
