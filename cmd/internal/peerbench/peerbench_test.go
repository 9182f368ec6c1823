package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// small inputs, so that a round over all contestants takes a moment and stays
// within the fixed stacks of starlark and tengo. native gives what to expect.
var small = map[string]string{
	"ack":         `{"pair":[2,3]}`,
	"church":      `4`,
	"collatzloop": `50`,
	"compose":     `100`,
	"deep":        `100`,
	"evenodd":     `21`,
	"fib":         `10`,
	"foldsum":     `100`,
	"hanoi":       `5`,
	"mapfilter":   `100`,
	"nqueens":     `5`,
	"qsort":       `100`,
	"sieve":       `200`,
	"square":      `-7`,
	"strcat":      `21`,
	"tak":         `13`,
	"trees":       `5`,

	"csv": `11`, "decimals": `40`, "diff": `20`, "histogram": `50`, "invoices": `20`, "join": `100`,
	"json": `7`, "logs": `90`, "regex": `40`, "schedule": `100`, "texttable": `30`, "words": `300`,
}

// Every contestant agrees with native Go on inputs the programs' files don't
// hold, hot and cold, and twice, so that no state is left between runs.
func TestContestantsAgree(t *testing.T) {
	for _, r := range mustRows(t) {
		in, ok := small[r.prog.ID]
		if !ok {
			t.Fatalf("no small input for %s", r.prog.ID)
		}
		p := *r.prog
		p.Input = json.RawMessage(in)
		reference, err := hotNative(&p)
		must.NoError(t, err)
		want, _ := reference()
		for _, c := range contestants() {
			prepared := map[string]func(*program) (job, error){"hot": c.hot, "cold": c.cold}
			if c.timed != nil {
				prepared["process"] = c.once
			}
			for mode, prepare := range prepared {
				if prepare == nil || r.cold {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", p.ID, c.name, mode), func(t *testing.T) {
					run, err := prepare(&p)
					if p.real && errors.Is(err, fs.ErrNotExist) {
						t.Skip("not written in this language")
					}
					must.NoError(t, err)
					for range 2 {
						if got, err := run(); err != nil || got != want {
							t.Fatalf("got %d, %v; native gives %d", got, err, want)
						}
					}
				})
			}
		}
	}
}

// The files' expected results are those of native Go at full size.
func TestNativeGivesExpect(t *testing.T) {
	for _, r := range mustRows(t) {
		run, err := hotNative(r.prog)
		must.NoError(t, err)
		if got, _ := run(); got != r.prog.Expect {
			t.Errorf("%s: native gives %d, the file expects %d", r.prog.ID, got, r.prog.Expect)
		}
	}
}

// A wrong result, an error and a panic each take a contestant out of a row
// with the reason, and never leave a time.
func TestMeasureReportsFailures(t *testing.T) {
	r := row{name: "x", prog: &program{ID: "x", Expect: 1}}
	fixed := func(j job) func(*program) (job, error) {
		return func(*program) (job, error) { return j, nil }
	}
	cs := []*contestant{
		{name: "right", hot: fixed(func() (int64, error) { return 1, nil })},
		{name: "wrong", hot: fixed(func() (int64, error) { return 2, nil })},
		{name: "error", hot: fixed(func() (int64, error) { return 0, fmt.Errorf("too deep") })},
		{name: "panic", hot: fixed(func() (int64, error) { panic("no stack") })},
		{name: "unable", hot: func(*program) (job, error) { return nil, fmt.Errorf("no source") }},
	}
	got := measure(r, cs, options{rounds: 2, minTime: 1})
	for name, want := range map[string]string{
		"right":  "",
		"wrong":  "wrong result 2, expected 1",
		"error":  "too deep",
		"panic":  "panic: no stack",
		"unable": "no source",
	} {
		e := got[name]
		if e == nil || e.Fails != want || (e.Ns > 0) != (want == "") {
			t.Errorf("%s: %+v, expected %q", name, e, want)
		}
	}
}

// Ratios, means and the list of defeats follow from the times.
func TestReport(t *testing.T) {
	cs := contestants()
	res := func(name string, ours, lua float64) *result {
		e := map[string]*entry{
			nameNative:   {Ns: 10},
			nameOurs:     {Ns: ours},
			"gopher-lua": {Ns: lua},
			"goja":       {Ns: 2 * lua},
			"tengo":      {Fails: "stack overflow"},
			nameV8:       {Ns: 20},
		}
		return newResult(row{name: name, prog: &program{ID: name}}, e, cs)
	}
	rep := newReport([]*result{res("won", 20, 160), res("lost", 80, 40)})
	if r := rep.Results[0]; r.Best != "gopher-lua" || r.Faster != 8 || r.OverNative != 2 {
		t.Errorf("won: %+v", r)
	}
	if s := rep.Sets[0]; math.Abs(s.Faster-2) > 1e-9 || math.Abs(s.OverNative-4) > 1e-9 {
		t.Errorf("means %v and %v, expected 2 and 4", s.Faster, s.OverNative)
	}
	if c := rep.Sets[0].Compilers; len(c) != 1 || c[0] != (comparison{nameV8, 2, 4, "lost"}) {
		t.Errorf("compilers %v, expected V8 with 2 and at worst 4", c)
	}
	if want := "lost: gopher-lua is 2.00 times faster"; len(rep.Behind) != 1 || rep.Behind[0] != want {
		t.Errorf("behind %q, expected only %q", rep.Behind, want)
	}
}

// The chart has a bar for each contestant with a time, as long as its time, and counts
// what it can't run.
func TestChart(t *testing.T) {
	cs := contestants()
	e := map[string]*entry{nameNative: {Ns: 5}, nameOurs: {Ns: 10}, "goja": {Ns: 40}, "tengo": {Fails: "stack overflow"}}
	rep := newReport([]*result{
		newResult(row{name: "a", prog: &program{ID: "a"}}, e, cs),
		newResult(row{name: "b", prog: &program{ID: "b"}}, map[string]*entry{nameOurs: {Ns: 10}, "goja": {Ns: 90}, "tengo": {Ns: 10}}, cs),
	})
	want := []bar{{nameNative, 0.5, 0}, {nameOurs, 1, 0}, {"goja", 6, 0}, {"tengo", 1, 1}}
	got := rep.Sets[0].bars(cs)
	for i := range got {
		got[i].times = math.Round(got[i].times*1e6) / 1e6
	}
	if !slices.Equal(got, want) {
		t.Errorf("bars %v, expected %v", got, want)
	}
	for _, part := range []string{rep.claim(), ">6.0</text>", ">1.0 (fails 1)</text>", `width="480"`} {
		if !strings.Contains(string(rep.chart(cs)), part) {
			t.Errorf("the chart lacks %s", part)
		}
	}
}

// TestReadme: the root README repeats the means that the title of its chart has.
func TestReadme(t *testing.T) {
	svg, err := os.ReadFile("speed.svg")
	must.NoError(t, err)
	readme, err := os.ReadFile("../../../README.md")
	must.NoError(t, err)
	means := func(text, from, to string) []string {
		_, text, _ = strings.Cut(text, from)
		text, _, _ = strings.Cut(text, to)
		return regexp.MustCompile(`\d+\.\d`).FindAllString(text, -1)
	}
	want, got := means(string(svg), "<title>", "</title>"), means(string(readme), "## How fast\n", "\n## ")
	if len(want) != 4 || !slices.Equal(got, want) {
		t.Errorf("the root README has the means %v, speed.svg %v", got, want)
	}
}

func mustRows(t *testing.T) []row {
	t.Helper()
	rows, err := loadRows()
	must.NoError(t, err)
	return rows
}

// TestMain lets the test binary be the servers of the task over two of them.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == wordServer {
		if err := serve(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestServers: the task over two servers gives the same report in both ways, and a program
// takes the fewer tokens that the root README tells of.
func TestServers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the servers run in the sandbox that Linux has")
	}
	var out bytes.Buffer
	must.NoError(t, writeServers(&out))
	for row, least := range map[string]float64{"tokens that enter": 95, "of them for the task": 98, "tokens read": 96} {
		_, line, _ := strings.Cut(out.String(), row)
		line, _, _ = strings.Cut(line, "\n")
		fields := strings.Fields(line)
		fewer := 0.0
		if n := len(fields); n > 3 {
			_, _ = fmt.Sscan(fields[n-3], &fewer) // 0 is too few
		}
		if fewer < least {
			t.Errorf("%s: %s; at least %v %% fewer are told", row, line, least)
		}
	}
	for i := range issues {
		if text, err := json.Marshal(newIssue(i)); err != nil || len(text) != issueBytes {
			t.Fatalf("an issue has %d bytes, %v", len(text), err)
		}
	}
}
