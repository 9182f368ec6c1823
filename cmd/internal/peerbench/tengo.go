package main

import (
	"fmt"

	"github.com/d5/tengo/v2"
	"github.com/d5/tengo/v2/parser"
)

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

func hotTengo(p *program) (job, error) {
	src, err := p.source("tengo")
	if err != nil {
		return nil, err
	}
	args, err := p.args()
	if err != nil {
		return nil, err
	}
	s, err := compileTengo(p.ID, []byte(src), args)
	if err != nil {
		return nil, err
	}
	return s.run, nil
}

func coldTengo(p *program) (job, error) {
	text, err := p.source("tengo")
	if err != nil {
		return nil, err
	}
	args, err := p.args()
	if err != nil {
		return nil, err
	}
	src := []byte(text)
	return func() (int64, error) {
		s, err := compileTengo(p.ID, src, args)
		if err != nil {
			return 0, err
		}
		return s.run()
	}, nil
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
