package main

import (
	"fmt"

	"go.starlark.net/lib/json"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// starlarkOptions allow what the programs need and the language by default
// forbids. Recursion here is resolve.AllowRecursion for one file.
var starlarkOptions = &syntax.FileOptions{Recursion: true, While: true, TopLevelControl: true, GlobalReassign: true}

// starlarkPredeclared is what a host of Starlark adds for programs such as these.
var starlarkPredeclared = starlark.StringDict{"json": json.Module}

func hotStarlark(p *program) (job, error) {
	src, err := p.source("star")
	if err != nil {
		return nil, err
	}
	args, err := starlarkArgs(p)
	if err != nil {
		return nil, err
	}
	thread := &starlark.Thread{Name: p.ID}
	globals, err := starlark.ExecFileOptions(starlarkOptions, thread, p.ID+".star", src, starlarkPredeclared)
	if err != nil {
		return nil, err
	}
	f := globals["main"]
	return func() (int64, error) { return callStarlark(thread, f, args) }, nil
}

func coldStarlark(p *program) (job, error) {
	src, err := p.source("star")
	if err != nil {
		return nil, err
	}
	args, err := starlarkArgs(p)
	if err != nil {
		return nil, err
	}
	thread := &starlark.Thread{Name: p.ID}
	return func() (int64, error) {
		globals, err := starlark.ExecFileOptions(starlarkOptions, thread, p.ID+".star", src, starlarkPredeclared)
		if err != nil {
			return 0, err
		}
		return callStarlark(thread, globals["main"], args)
	}, nil
}

func starlarkArgs(p *program) (starlark.Tuple, error) {
	args, err := p.args()
	if err != nil {
		return nil, err
	}
	var t starlark.Tuple
	for _, a := range args {
		t = append(t, starlark.MakeInt64(a))
	}
	return t, nil
}

func callStarlark(thread *starlark.Thread, f starlark.Value, args starlark.Tuple) (int64, error) {
	v, err := starlark.Call(thread, f, args, nil)
	if err != nil {
		return 0, err
	}
	if i, ok := v.(starlark.Int); ok {
		if n, ok := i.Int64(); ok {
			return n, nil
		}
	}
	return 0, fmt.Errorf("result is %s, a %s", v, v.Type())
}
