package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/d5/tengo/v2"
	"github.com/d5/tengo/v2/parser"
	"github.com/dop251/goja"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
	"go.starlark.net/lib/json"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// starlarkOptions allow what the programs need and the language by default
// forbids. Recursion here is resolve.AllowRecursion for one file.
var starlarkOptions = &syntax.FileOptions{Recursion: true, While: true, TopLevelControl: true, GlobalReassign: true}

// starlarkPredeclared is what a host of Starlark adds for programs such as these.
var starlarkPredeclared = starlark.StringDict{"json": json.Module}

func startStarlark(id string, args []int64) func(src string) (job, error) {
	thread := &starlark.Thread{Name: id}
	var tuple starlark.Tuple
	for _, a := range args {
		tuple = append(tuple, starlark.MakeInt64(a))
	}
	return func(src string) (job, error) {
		globals, err := starlark.ExecFileOptions(starlarkOptions, thread, id+".star", src, starlarkPredeclared)
		f := globals["main"]
		return func() (int64, error) { return callStarlark(thread, f, tuple) }, err
	}
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

// startGoja makes a runtime whose call stack has no limit of its own.
func startGoja(id string, ints []int64) func(src string) (job, error) {
	rt := goja.New()
	rt.SetMaxCallStackSize(math.MaxInt32)
	args := make([]goja.Value, len(ints))
	for i, n := range ints {
		args[i] = rt.ToValue(n)
	}
	return func(src string) (job, error) {
		f, err := gojaFunction(rt, id, src)
		return func() (int64, error) {
			v, err := f(goja.Undefined(), args...)
			if err != nil {
				return 0, err
			}
			return v.ToInteger(), nil
		}, err
	}
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

// tengoScript is a compiled script with the machine that runs it. Tengo has no
// way to call a function from the host: a script reads its arguments from
// variables and leaves its result in one. Its own Script type makes a machine
// of some 80 KiB for every run; keeping the machine is what makes a hot call
// about a microsecond instead of about ten.
type tengoScript struct {
	vm      *tengo.VM
	globals []tengo.Object
	out     int
}

func startTengo(id string, args []int64) func(src string) (job, error) {
	return func(src string) (job, error) {
		s, err := compileTengo(id, []byte(src), args)
		return s.run, err
	}
}

// compileTengo does what tengo.Script.Compile does, but keeps the bytecode in
// reach so that the machine can be made once.
func compileTengo(name string, src []byte, args []int64) (*tengoScript, error) {
	symbols := tengo.NewSymbolTable()
	for i, f := range tengo.GetAllBuiltinFunctions() {
		symbols.DefineBuiltin(i, f.Name)
	}
	s := &tengoScript{}
	for i, n := range args {
		symbols.Define(fmt.Sprintf("arg%d", i))
		s.globals = append(s.globals, &tengo.Int{Value: n})
	}
	s.out = symbols.Define("out").Index

	files := parser.NewFileSet()
	file := files.AddFile(name+".tengo", -1, len(src))
	tree, err := parser.NewParser(file, src, nil).ParseFile()
	if err != nil {
		return nil, err
	}
	c := tengo.NewCompiler(file, symbols, nil, nil, nil)
	if err := c.Compile(tree); err != nil {
		return nil, err
	}
	code := c.Bytecode()
	code.RemoveDuplicates()
	s.globals = append(s.globals, make([]tengo.Object, symbols.MaxSymbols()-len(s.globals)+1)...)
	s.vm = tengo.NewVM(code, s.globals, -1)
	return s, nil
}

func (s *tengoScript) run() (int64, error) {
	if err := s.vm.Run(); err != nil {
		return 0, err
	}
	if n, ok := s.globals[s.out].(*tengo.Int); ok {
		return n.Value, nil
	}
	return 0, fmt.Errorf("result is %v", s.globals[s.out])
}

// luaOptions leave room for calls 100,000 deep. The registry, Lua's stack of
// values, grows in large steps when a program needs it: preallocating 64 MiB
// would make every contestant's garbage collections rarer and dearer.
// MinimizeStackMemory does the same for call frames; it costs calls about three
// per cent against a small fixed stack, on which the deep programs would fail.
var luaOptions = lua.Options{
	CallStackSize:       1 << 19,
	RegistrySize:        1 << 14,
	RegistryMaxSize:     1 << 23,
	RegistryGrowStep:    1 << 18,
	MinimizeStackMemory: true,
}

func startLua(id string, ints []int64) func(src string) (job, error) {
	state := lua.NewState(luaOptions)
	args := make([]lua.LValue, len(ints))
	for i, n := range ints {
		args[i] = lua.LNumber(n)
	}
	return func(src string) (job, error) {
		f, err := luaFunction(state, id, src)
		return func() (int64, error) { return callLua(state, f, args) }, err
	}
}

// luaFunction compiles a chunk that returns a function.
func luaFunction(state *lua.LState, name, src string) (lua.LValue, error) {
	chunk, err := parse.Parse(strings.NewReader(src), name+".lua")
	if err != nil {
		return nil, err
	}
	proto, err := lua.Compile(chunk, name+".lua")
	if err != nil {
		return nil, err
	}
	if err := state.CallByParam(lua.P{Fn: state.NewFunctionFromProto(proto), NRet: 1, Protect: true}); err != nil {
		return nil, err
	}
	f := state.Get(-1)
	state.Pop(1)
	return f, nil
}

// callLua calls without Protect, which is faster: errors arrive as panics, and
// the caller of a job recovers.
func callLua(state *lua.LState, f lua.LValue, args []lua.LValue) (int64, error) {
	if err := state.CallByParam(lua.P{Fn: f, NRet: 1}, args...); err != nil {
		return 0, err
	}
	v := state.Get(-1)
	state.Pop(1)
	if n, ok := v.(lua.LNumber); ok {
		return int64(n), nil
	}
	return 0, fmt.Errorf("result is %s, a %s", v, v.Type())
}
