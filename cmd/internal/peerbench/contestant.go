package main

import (
	"fmt"
	"time"
)

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
		{name: "starlark", peer: true, limit: "a constant 100,000 calls", hot: hotStarlark, cold: coldStarlark},
		{name: "goja", peer: true, hot: hotGoja, cold: coldGoja},
		{name: "gopher-lua", peer: true, hot: hotLua, cold: coldLua},
		{name: "tengo", peer: true, limit: "constants of 1,024 frames and 2,048 stack slots", hot: hotTengo, cold: coldTengo},
	}
	return append(cs, processes()...)
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
