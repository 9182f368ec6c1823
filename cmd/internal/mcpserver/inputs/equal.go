package inputs

import (
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// equality decides as the language does: numbers by what they are worth, records
// by their fields, values of different types never.
var equality = func() *core.Program {
	p, err := core.Compile([]byte(`{"lam":["a","b"],"body":{"equal":[{"var":"a"},{"var":"b"}]}}`))
	if err != nil {
		panic(err)
	}
	return p
}()

// Equal reports whether a result is the data that is expected, which rounded
// says was read with its numbers rounded. The error is of a text that is no data, or
// of data too large to compare.
func Equal(got, want []byte, rounded bool) (bool, error) {
	a, err := core.ParseInput(got, core.InputData)
	if err != nil {
		return false, err
	}
	b, err := core.ParseInput(want, dataMode(rounded))
	if err != nil {
		return false, err
	}
	m := equality.Start(core.Inputs(a, b), core.Budgets{}, nil)
	defer m.Release()
	if m.Run(0) != core.Done {
		return false, m.Fault()
	}
	return m.Value() == value.Bool(true), nil
}

var identity = func() *core.Program {
	p, err := core.Compile([]byte(`{"lam":"x","body":{"var":"x"}}`))
	if err != nil {
		panic(err)
	}
	return p
}()

// dataMode is how data is read that may be of an older store.
func dataMode(rounded bool) core.InputAs {
	if rounded {
		return core.InputRounded
	}
	return core.InputData
}

// Value is what data says, as a value.
func Value(data []byte, rounded bool) (value.Value, *fault.Fault) {
	in, err := core.ParseInput(data, dataMode(rounded))
	if err != nil {
		return nil, wire.AsFault(err)
	}
	m := identity.Start(in, core.Budgets{}, nil)
	defer m.Release()
	if m.Run(0) != core.Done {
		return nil, m.Fault()
	}
	return m.ValueUntil(func() bool { return false })
}
