package examples_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestTasks: every task gives what is expected. tasks/README.md says how they are kept;
// that the programs in other languages give the same, and how long all of them are, is
// checked where those languages are, in cmd/internal/peerbench.
func TestTasks(t *testing.T) {
	files, err := filepath.Glob("tasks/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range files {
		tasks, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		section := map[string][]byte{}
		for _, f := range tasks.Files {
			section[f.Name] = f.Data
		}
		for _, f := range tasks.Files {
			name, ok := strings.CutSuffix(f.Name, ".pif")
			if !ok {
				continue
			}
			count++
			t.Run(name, func(t *testing.T) {
				e := example{name: name, src: f.Data}
				e.read(t, section[name+".json"])
				for _, ext := range []string{".star", ".js"} {
					if len(section[name+ext]) == 0 {
						t.Errorf("%s has no %s%s", file, name, ext)
					}
				}
				e.check(t)
			})
		}
	}
	if count != 80 {
		t.Errorf("%d tasks, not 80", count)
	}
}
