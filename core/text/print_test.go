package text_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"encoding/json"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what is printed to testdata")

// TestPrintLayout: testdata/print.txtar holds terms in JSON and how they are
// printed; testdata/bench.txtar the programs of the benchmarks.
func TestPrintLayout(t *testing.T) {
	a, err := txtar.ParseFile("testdata/print.txtar")
	must.NoError(t, err)
	for i := range a.Files {
		f := &a.Files[i]
		src, want, _ := strings.Cut(string(f.Data), "\n")
		got := string(text.Print(mustParse(t, src).Term))
		if got+"\n" != want && !*update {
			t.Errorf("%s: %s is printed\n%s\nnot\n%s", f.Name, src, got, want)
		}
		f.Data = []byte(src + "\n" + got + "\n")
	}
	if *update {
		must.NoError(t, os.WriteFile("testdata/print.txtar", txtar.Format(a), 0o644))
	}
}

func TestPrintPrograms(t *testing.T) {
	files, err := filepath.Glob("../testdata/bench/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no programs", err)
	}
	var a txtar.Archive
	for _, name := range files {
		src, err := os.ReadFile(name)
		must.NoError(t, err)
		var p struct{ Code json.RawMessage }
		must.NoError(t, json.Unmarshal(src, &p))
		printed := append(text.Print(mustParse(t, string(p.Code)).Term), '\n')
		for line := range strings.Lines(string(printed)) {
			if n := utf8.RuneCountInString(line); n > 89 {
				t.Errorf("%s has a line of %d columns: %s", name, n, line)
			}
			if strings.TrimRight(line, " \n") != strings.TrimSuffix(line, "\n") {
				t.Errorf("%s has blanks at a line's end: %q", name, line)
			}
		}
		a.Files = append(a.Files, txtar.File{Name: strings.TrimSuffix(filepath.Base(name), ".json") + ".pif", Data: printed})
	}
	const golden = "testdata/bench.txtar"
	if *update {
		must.NoError(t, os.WriteFile(golden, txtar.Format(&a), 0o644))
	}
	want, err := os.ReadFile(golden)
	must.NoError(t, err)
	if got := string(txtar.Format(&a)); got != string(want) {
		t.Errorf("printed otherwise than %s says; see the difference with -update\n%s", golden, got)
	}
}

// TestPrintSize: the output is linear in the term, however deep it is and
// whatever has to be broken.
func TestPrintSize(t *testing.T) {
	const n = 3000
	wide := strings.Repeat("a", 40)
	for _, c := range []struct{ open, inner, closer string }{
		{`{"lam":"` + wide + `","body":{"head":`, `1`, `}}`},
		{`{"app":{"func":{"lam":"x","body":1},"arg":`, `1`, `}}`},
		{`{"record":{"` + wide + `":`, `1`, `}}`},
		{`[1,`, `1`, `,2]`},
	} {
		if printed := text.Print(mustParse(t, strings.Repeat(c.open, n)+c.inner+strings.Repeat(c.closer, n)).Term); len(printed) > n*300 {
			t.Errorf("%s: %d bytes", c.open, len(printed))
		}
	}
}

func BenchmarkParseText(b *testing.B) {
	src := text.Print(mustParse(b, large(b)).Term)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, f := text.Parse(src, text.Options{}); f != nil {
			b.Fatal(f)
		}
	}
}

func BenchmarkPrint(b *testing.B) {
	p := mustParse(b, large(b))
	b.SetBytes(int64(len(text.Print(p.Term))))
	b.ReportAllocs()
	for b.Loop() {
		text.Print(p.Term)
	}
}

// large is a list of the programs of the benchmarks.
func large(b *testing.B) string {
	files, _ := filepath.Glob("../testdata/bench/*.json")
	var all []string
	for _, name := range files {
		src, err := os.ReadFile(name)
		must.NoError(b, err)
		var p struct{ Code json.RawMessage }
		must.NoError(b, json.Unmarshal(src, &p))
		all = append(all, string(p.Code))
	}
	return "[" + strings.Join(all, ",") + "]"
}
