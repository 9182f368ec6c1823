// Package mutate builds a package's tests with seeded mistakes in its code, of which an
// environment variable switches one on: so that tests show what they find.
package mutate

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// Switch is the environment variable with the number of the mistake that is made, from 1; none is made without it.
const Switch = "FLOW_MUTANT"

// A Mistake is a file, relative to the package's folder, code of it, and other code in its
// place; without that it is left out. In it "if M" and If(M, mistaken, right) ask whether this is the one.
type Mistake [3]string

// Tried is the mistakes that a test tries: a few each day, all with PIF_FULL.
func Tried(mistakes []Mistake, few int) (tried []int) {
	for i := range mistakes {
		if os.Getenv("PIF_FULL") != "" || (i-time.Now().YearDay()*few%len(mistakes)+len(mistakes))%len(mistakes) < few {
			tried = append(tried, i)
		}
	}
	return tried
}

// Finds reports whether tests of a binary fail with a mistake; −1 is without one.
func Finds(bin string, mistake int, test string, env ...string) bool {
	cmd := exec.Command(bin, "-test.failfast", "-test.run", test)
	cmd.Env = append(append(os.Environ(), "PIF_FULL=", "PIF_CI=1", fmt.Sprint(Switch, "=", mistake+1)), env...)
	return cmd.Run() != nil
}

// Build builds the tests of the package in the working directory with all mistakes in it. It skips the
// test in a mutant, and where it is to be [must.Quick]: .ci/run tries mistakes.
func Build(t testing.TB, mistakes []Mistake) (bin string) {
	sources := map[string]string{}
	for i, m := range mistakes {
		src, ok := sources[m[0]]
		if !ok {
			text, err := os.ReadFile(m[0])
			must.NoError(t, err)
			src = string(text)
		}
		if n := strings.Count(src, m[1]); n != 1 {
			t.Fatalf("%s has %d times, not once\n%s", m[0], n, m[1])
		}
		instead := m[2]
		if instead == "" {
			instead = "if !M {\n" + m[1] + "\n}"
		}
		condition := fmt.Sprint("Mutant == ", i+1)
		instead = strings.NewReplacer("If(M", "If("+condition, "if M", "if "+condition, "!M", fmt.Sprint("Mutant != ", i+1)).Replace(instead)
		sources[m[0]] = strings.Replace(src, m[1], instead, 1)
	}
	if os.Getenv(Switch) != "" || must.Quick() {
		t.Skip("tests with mistakes in the code are built with PIF_CI=1")
	}
	dir := t.TempDir()
	for _, m := range mistakes {
		_, rest, _ := strings.Cut("\n"+sources[m[0]], "\npackage ")
		name, _, _ := strings.Cut(rest, "\n")
		sources[filepath.Join(filepath.Dir(m[0]), "mutant.go")] = "package " + name + `

import (
	"os"
	"strconv"
)

var Mutant, _ = strconv.Atoi(os.Getenv("` + Switch + `"))

func If[T any](mutant bool, a, b T) T {
	if mutant {
		return a
	}
	return b
}
`
	}
	overlay, n := map[string]string{}, 0
	for file, src := range sources {
		here, err := filepath.Abs(file)
		must.NoError(t, err)
		n++
		path := filepath.Join(dir, fmt.Sprint(n, ".go"))
		must.NoError(t, os.WriteFile(path, []byte(src), 0o644))
		overlay[here] = path
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	must.NoError(t, err)
	file, bin := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutants.test")
	must.NoError(t, os.WriteFile(file, list, 0o644))
	if out, err := exec.Command("go", "test", "-c", "-ldflags=-w", "-overlay", file, "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}
