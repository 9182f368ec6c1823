// Command peerbench runs the same programs on PIF's evaluator, on native Go,
// and on the interpreters a Go program would otherwise embed: starlark-go,
// goja, gopher-lua and tengo. It prints how they compare:
//
//	cd cmd/internal/peerbench && go run .
//
// With -chart speed.svg it also writes the chart that the root README shows.
// With -tokens it counts instead how long the worked tasks of core/examples are in PIF,
// Starlark and JavaScript; with -servers, what a model reads and writes for a task over two MCP
// servers, call by call and by one program (servers.go). It is a module of its own so that the peers never become dependencies of
// the project.
//
// What is measured. core/testdata/bench holds PIF programs with an input and the result
// it must give, peers/ the same programs as the peers write them, native.go and its
// siblings in Go. The files ending in .json are loops; those in .pif do what people write: they sort,
// group, join, print and parse. V8 and LuaJIT run the same files where node and
// luajit are installed, as processes that time themselves; no Go interpreter, they
// count for nothing but the lines below the table. Everybody compiles once; the clock sees runs only. All of it happens
// in one process, interleaved: in every round each contestant runs each
// program for -mintime, after a garbage collection, and the median over
// -rounds counts. Every single result is checked. Ours runs with its three
// budgets on; the peers have none. Go's collector runs at GOGC=400 unless the
// environment says otherwise: the peers live on Go's heap, and with the few MiB
// these programs keep the default would make it the better part of their time. The row square-cold goes from source text
// to result instead, on an interpreter that is kept (runtime, state, pool)
// between runs.
//
// The rules for peers. Same algorithm and same recursion in every language. A
// program that only folds folds with a function its user wrote, not with a
// builtin. What PIF can only write as a tail call may be a loop, parameters
// packed in a pair may be parameters, a function that PIF passes to itself may
// refer to itself, and lists may be the peer's arrays wherever the program
// doesn't share tails: each peer gets the form it is fastest with. What a language has no library for
// (decimals, JSON in Lua, regular expressions in Starlark) is written by hand, the
// fastest way: decimals are whole cents. A pair that
// is a value stays the peer's smallest tuple. Limits are raised as far as the
// peer lets them be; a program it still can't run is shown as fails, with the
// reason below the table, and doesn't count as a win.
//
// The columns. "best/ours" is how many times faster ours is than the fastest
// Go interpreter on that program, "ours/native" how many times slower than Go.
// The last lines name every program on which ours is behind, and the exit
// status is 1 when ours fails one.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peerbench:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) == 3 && os.Args[1] == wordServer {
		return serve(os.Args[2])
	}
	var opt options
	flag.IntVar(&opt.rounds, "rounds", 7, "rounds; the median counts")
	flag.DurationVar(&opt.minTime, "mintime", 20*time.Millisecond, "least time of a contestant in a round")
	only := flag.String("only", "", "run only the rows whose name matches this `regexp`")
	asJSON := flag.Bool("json", false, "print JSON instead of the table")
	chart := flag.String("chart", "", "also write a chart of the means to this SVG `file`")
	tokens := flag.Bool("tokens", false, "instead count the tokens of the worked tasks, and write core/examples/tasks/README.md")
	servers := flag.Bool("servers", false, "instead do a task over two MCP servers call by call and by one program, and count the tokens of both")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if *tokens {
		return writeTokens()
	}
	if *servers {
		return writeServers(os.Stdout)
	}
	if opt.rounds < 1 {
		return errors.New("-rounds must be at least 1")
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	rows, err := loadRows()
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}

	cs := contestants()
	var results []*result
	for _, r := range rows {
		if !match.MatchString(r.name) {
			continue
		}
		results = append(results, newResult(r, measure(r, cs, opt), cs))
	}
	if len(results) == 0 {
		return fmt.Errorf("-only %q matches no row", *only)
	}
	rep := newReport(results)
	if *chart != "" {
		if err := rep.writeChart(*chart, cs); err != nil {
			return err
		}
	}
	if *asJSON {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(rep)
	} else {
		err = rep.write(os.Stdout, cs)
	}
	if err != nil {
		return err
	}
	for _, r := range results {
		if !r.Entries[nameOurs].ok() {
			return errors.New("ours fails a program")
		}
	}
	return nil
}

// loadRows returns the table's rows: every program, and square once more from
// source text, which is what a call of new code costs.
func loadRows() ([]row, error) {
	ps, err := loadPrograms()
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, p := range ps {
		rows = append(rows, row{name: p.ID, prog: p})
		if p.ID == "square" {
			rows = append(rows, row{name: "square-cold", prog: p, cold: true})
		}
	}
	return rows, nil
}
