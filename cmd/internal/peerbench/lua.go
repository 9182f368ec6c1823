package main

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

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

func hotLua(p *program) (job, error) {
	src, err := p.source("lua")
	if err != nil {
		return nil, err
	}
	args, err := luaArgs(p)
	if err != nil {
		return nil, err
	}
	state := lua.NewState(luaOptions)
	f, err := luaFunction(state, p.ID, src)
	if err != nil {
		return nil, err
	}
	return func() (int64, error) { return callLua(state, f, args) }, nil
}

func coldLua(p *program) (job, error) {
	src, err := p.source("lua")
	if err != nil {
		return nil, err
	}
	args, err := luaArgs(p)
	if err != nil {
		return nil, err
	}
	state := lua.NewState(luaOptions)
	return func() (int64, error) {
		f, err := luaFunction(state, p.ID, src)
		if err != nil {
			return 0, err
		}
		return callLua(state, f, args)
	}, nil
}

func luaArgs(p *program) ([]lua.LValue, error) {
	ints, err := p.args()
	if err != nil {
		return nil, err
	}
	args := make([]lua.LValue, len(ints))
	for i, n := range ints {
		args[i] = lua.LNumber(n)
	}
	return args, nil
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
