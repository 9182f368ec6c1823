package core

import (
	"github.com/mcp-pif/mcp-pif/core/code"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// What parts of a program take in memory, in bytes, as Go lays them out on 64 bits.
const (
	programBytes = 512
	metaBytes    = 16
	constBytes   = 88
	termBytes    = 72 // of the largest kind, with the reference to it
	primBytes    = 48
	varBytes     = 40
	intBytes     = 32
	fieldBytes   = 16 // beside its value
)

// Size is about how many bytes of memory the program takes, with its source and
// its canonical JSON. The first call goes through all of the code.
func (p *Program) Size() int {
	if n := p.size.Load(); n > 0 {
		return int(n)
	}
	u := p.prog.Unit
	n := programBytes + 2*len(p.parsed.Source.Text) +
		len(u.Code)*code.InstrSize + len(u.Meta)*metaBytes + len(u.Consts)*constBytes +
		size(p.parsed.Term)
	p.size.Store(int64(n))
	return n
}

// size is about what a term takes.
func size(t term.Term) int {
	n := termBytes
	switch t := t.(type) {
	case *term.Int:
		return intBytes
	case *term.Var:
		return varBytes
	case *term.Prim:
		n = primBytes
	case *term.Record:
		n += len(t.Fields) * fieldBytes
	}
	term.Children(t, func(c term.Term) bool {
		n += size(c)
		return true
	})
	return n
}
