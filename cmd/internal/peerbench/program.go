package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// programFiles is where the programs are, seen from this folder: core's own
// benchmarks run the same ones.
var programFiles = os.DirFS("../../../core/testdata/bench")

//go:embed peers/*
var peerFiles embed.FS

// program is one file of core/testdata/bench: PIF code that is evolved as a tool called
// ID, run with Input, and must give the integer Expect. Loops are JSON; programs that do
// what people write are text, with what they do in the first line, and input => result
// in the second.
type program struct {
	ID     string          `json:"id"`
	Doc    string          `json:"doc"`
	Code   json.RawMessage `json:"code"`
	Input  json.RawMessage `json:"input"`
	Expect int64           `json:"expect"`

	real bool
}

// realHead is the first two lines of a program in the text form.
var realHead = regexp.MustCompile(`^// (.*)\n// ([0-9]+) => ([0-9]+)\n`)

// loadPrograms reads the programs in the order of their names, the loops first.
func loadPrograms() ([]*program, error) {
	names, err := fs.Glob(programFiles, "*.*")
	if err == nil && len(names) == 0 {
		err = errors.New("no programs in ../../../core/testdata/bench: run this from its own folder")
	}
	if err != nil {
		return nil, err
	}
	var ps []*program
	for _, name := range names {
		src, err := fs.ReadFile(programFiles, name)
		if err != nil {
			return nil, err
		}
		p := new(program)
		if path.Ext(name) == ".pif" {
			head := realHead.FindSubmatch(src)
			if head == nil {
				return nil, fmt.Errorf("%s: the first two lines aren't what it does and input => result", name)
			}
			*p = program{ID: strings.TrimSuffix(name, ".pif"), Doc: string(head[1]), Code: src, Input: head[2], real: true}
			p.Expect, err = strconv.ParseInt(string(head[3]), 10, 64)
		} else {
			err = json.Unmarshal(src, p)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if want := strings.TrimSuffix(path.Base(name), path.Ext(name)); p.ID != want {
			return nil, fmt.Errorf("%s: id is %q", name, p.ID)
		}
		ps = append(ps, p)
	}
	slices.SortStableFunc(ps, func(a, b *program) int { return rank(a) - rank(b) })
	return ps, nil
}

// rank puts the loops before the others.
func rank(p *program) int {
	if p.real {
		return 1
	}
	return 0
}

// args returns the input as the arguments of the peers' functions: an integer
// is one argument, and a pair, which in PIF packs two parameters, is two.
func (p *program) args() ([]int64, error) {
	var n int64
	if json.Unmarshal(p.Input, &n) == nil {
		return []int64{n}, nil
	}
	var in struct {
		Pair []int64 `json:"pair"`
	}
	if err := json.Unmarshal(p.Input, &in); err != nil || len(in.Pair) != 2 {
		return nil, fmt.Errorf("%s: the input is neither an integer nor a pair of integers", p.ID)
	}
	return in.Pair, nil
}

// source returns the program as the peer with the given file extension writes it.
func (p *program) source(ext string) (string, error) {
	src, err := peerFiles.ReadFile("peers/" + p.ID + "." + ext)
	return string(src), err
}

// job runs a prepared program once and returns its result. It is what the
// clock sees: everything done once per program happens before.
type job func() (int64, error)

// contestant is one way to run the programs.
type contestant struct {
	name string

	// peer says that this is one of the Go interpreters ours is compared with.
	peer bool

	// limit is what the interpreter can't be made to exceed; it explains a
	// failure below the table.
	limit string

	// hot compiles the program and returns a job that only runs it.
	hot func(*program) (job, error)

	// cold returns a job that goes from source text to result each time, on
	// an interpreter that is kept, as a host would keep it. Nil for native.
	cold func(*program) (job, error)

	// timed prepares the program for n runs in a process that times itself; such
	// a contestant has neither hot nor cold.
	timed func(*program) (timedJob, error)
}

// timedJob runs a prepared program n times and returns how long it took, and the result.
type timedJob func(n int) (time.Duration, int64, error)

// The names the ratios refer to.
const (
	nameNative = "native"
	nameOurs   = "ours"
	nameV8     = "v8"
	nameLuaJIT = "luajit"
)

// contestants returns all of them in the order of the table's columns.
func contestants() []*contestant {
	cs := []*contestant{
		{name: nameNative, hot: hotNative},
		{name: nameOurs, hot: hotPIF, cold: coldPIF},
		peer("starlark", "star", "a constant 100,000 calls", startStarlark),
		peer("goja", "js", "", startGoja),
		peer("gopher-lua", "lua", "", startLua),
		peer("tengo", "tengo", "constants of 1,024 frames and 2,048 stack slots", startTengo),
	}
	return append(cs, processes()...)
}

// peer returns a Go interpreter whose programs' files end in ext. start makes one, with
// a program's arguments, and returns what compiles the program's text on it.
func peer(name, ext, limit string, start func(id string, args []int64) func(src string) (job, error)) *contestant {
	prepare := func(p *program) (func() (job, error), error) {
		src, err := p.source(ext)
		if err != nil {
			return nil, err
		}
		args, err := p.args()
		if err != nil {
			return nil, err
		}
		compile := start(p.ID, args)
		return func() (job, error) { return compile(src) }, nil
	}
	return &contestant{
		name: name, peer: true, limit: limit,
		hot: func(p *program) (job, error) {
			compile, err := prepare(p)
			if err != nil {
				return nil, err
			}
			return compile()
		},
		cold: func(p *program) (job, error) {
			compile, err := prepare(p)
			return func() (int64, error) {
				run, err := compile()
				if err != nil {
					return 0, err
				}
				return run()
			}, err
		},
	}
}

// once returns a job that runs the program once in the contestant's process.
func (c *contestant) once(p *program) (job, error) {
	run, err := c.timed(p)
	return func() (int64, error) {
		_, got, err := run(1)
		return got, err
	}, err
}

func hotNative(p *program) (job, error) {
	f, ok := native[p.ID]
	if !ok {
		return nil, fmt.Errorf("native Go lacks %s", p.ID)
	}
	args, err := p.args()
	if err != nil {
		return nil, err
	}
	return func() (int64, error) { return f(args), nil }, nil
}

// pifBudgets are on for every run, as they are in the server: enough for the
// longest program, far below what would switch anything off.
var pifBudgets = core.Budgets{Steps: 1_000_000_000, Memory: 64 << 20, Depth: 1_000_000}

// kept is the machine of the program that runs hot.
var kept *core.Machine

// hotPIF keeps its machine from run to run, as the peers keep their thread,
// runtime or virtual machine.
func hotPIF(p *program) (job, error) {
	tool, in, err := compilePIF(p)
	if err != nil {
		return nil, err
	}
	if kept != nil {
		kept.Release() // the program's before this one
	}
	m := tool.Start(in, pifBudgets, nil)
	kept = m
	return func() (int64, error) {
		tool.Restart(m, in, pifBudgets, nil)
		return resultPIF(m)
	}, nil
}

// coldPIF starts from both texts, the code's and the input's: the server
// reads an input as text in every call.
func coldPIF(p *program) (job, error) {
	return func() (int64, error) {
		tool, in, err := compilePIF(p)
		if err != nil {
			return 0, err
		}
		return runPIF(tool, in)
	}, nil
}

// compilePIF evolves the code as the tool called by the program's id, so that
// self means what it means in the server.
func compilePIF(p *program) (*core.Program, core.Input, error) {
	compile := core.CompileTool
	if p.real {
		compile = core.CompileText
	}
	tool, err := compile(p.ID, p.Code)
	if err != nil {
		return nil, core.Input{}, err
	}
	in, err := core.ParseInput(p.Input, core.InputAuto)
	return tool, in, err
}

// runPIF is one run on a machine of the pool, as the server makes it.
func runPIF(tool *core.Program, in core.Input) (int64, error) {
	m := tool.Start(in, pifBudgets, nil)
	defer m.Release()
	return resultPIF(m)
}

// resultPIF runs to the end and takes the result out.
func resultPIF(m *core.Machine) (int64, error) {
	switch m.Run(0) {
	case core.Done:
	case core.Failed:
		return 0, m.Fault()
	default:
		return 0, errors.New("the run stopped without an end")
	}
	v, ok := m.Value().(value.Int)
	if !ok {
		return 0, fmt.Errorf("the result is no integer: %v", m.Value())
	}
	n, ok := v.Int64()
	if !ok {
		return 0, fmt.Errorf("the result %v has more than 64 bits", v.Big())
	}
	return n, nil
}
