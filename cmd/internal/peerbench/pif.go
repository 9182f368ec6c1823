package main

import (
	"errors"
	"fmt"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/value"
)

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
