package main

import "fmt"

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
}

// The names the ratios refer to.
const (
	nameNative = "native"
	nameOurs   = "ours"
)

// contestants returns all of them in the order of the table's columns.
func contestants() []*contestant {
	return []*contestant{
		{name: nameNative, hot: hotNative},
		{name: nameOurs, hot: hotPIF, cold: coldPIF},
		{name: "starlark", peer: true, limit: "a constant 100,000 calls", hot: hotStarlark, cold: coldStarlark},
		{name: "goja", peer: true, hot: hotGoja, cold: coldGoja},
		{name: "gopher-lua", peer: true, hot: hotLua, cold: coldLua},
		{name: "tengo", peer: true, limit: "constants of 1,024 frames and 2,048 stack slots", hot: hotTengo, cold: coldTengo},
	}
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
