package main

import (
	"errors"
	"math"

	"github.com/dop251/goja"
)

func hotGoja(p *program) (job, error) {
	src, err := p.source("js")
	if err != nil {
		return nil, err
	}
	rt, args, err := gojaRuntime(p)
	if err != nil {
		return nil, err
	}
	f, err := gojaFunction(rt, p.ID, src)
	if err != nil {
		return nil, err
	}
	return func() (int64, error) { return callGoja(f, args) }, nil
}

func coldGoja(p *program) (job, error) {
	src, err := p.source("js")
	if err != nil {
		return nil, err
	}
	rt, args, err := gojaRuntime(p)
	if err != nil {
		return nil, err
	}
	return func() (int64, error) {
		f, err := gojaFunction(rt, p.ID, src)
		if err != nil {
			return 0, err
		}
		return callGoja(f, args)
	}, nil
}

// gojaRuntime makes a runtime whose call stack has no limit of its own, and
// the program's arguments as its values.
func gojaRuntime(p *program) (*goja.Runtime, []goja.Value, error) {
	ints, err := p.args()
	if err != nil {
		return nil, nil, err
	}
	rt := goja.New()
	rt.SetMaxCallStackSize(math.MaxInt32)
	args := make([]goja.Value, len(ints))
	for i, n := range ints {
		args[i] = rt.ToValue(n)
	}
	return rt, args, nil
}

// gojaFunction compiles source text whose value is a function.
func gojaFunction(rt *goja.Runtime, name, src string) (goja.Callable, error) {
	prog, err := goja.Compile(name+".js", src, true)
	if err != nil {
		return nil, err
	}
	v, err := rt.RunProgram(prog)
	if err != nil {
		return nil, err
	}
	f, ok := goja.AssertFunction(v)
	if !ok {
		return nil, errors.New("the source's value is no function")
	}
	return f, nil
}

func callGoja(f goja.Callable, args []goja.Value) (int64, error) {
	v, err := f(goja.Undefined(), args...)
	if err != nil {
		return 0, err
	}
	return v.ToInteger(), nil
}
