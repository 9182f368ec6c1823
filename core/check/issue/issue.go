// Package issue makes certificates: it has types inferred, and answers with them
// what package cert asks for in going through a program.
//
// What the checker doesn't accept is not claimed: a certificate without types
// still claims what the program can ask for, what it takes and what it needs.
// Nothing here is trusted; a certificate is worth what [cert.Check] says.
package issue

import (
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Certificate is that of a program, with the tools it names as they are now.
// src is what the term's places refer to, env what types are inferred in; where
// env.Tool is empty it is inline code. It is nil where the code names a tool
// that isn't there.
func Certificate(t term.Term, src *term.Source, env check.Env, tools cert.Tools) *cert.Certificate {
	return Within(t, src, env, tools, check.Budget{})
}

// Within is [Certificate], with types as far as the budget goes.
func Within(t term.Term, src *term.Source, env check.Env, tools cert.Tools, b check.Budget) *cert.Certificate {
	if env.Result == nil {
		// What an operation answers is some data, and no more is claimed of it.
		env.Result = func(string) (*check.Type, bool) { return check.Data, true }
	}
	whole := t
	if _, ok := t.(*term.Lam); !ok && env.Tool != "" {
		if free := term.Free(t); len(free) == 1 {
			whole = prim.Function(term.At(t.Pos()), free, t)
		}
	}
	d := check.Derive(whole, src, env, b)
	w := writer{index: map[string]int{}, named: map[string]int{}, bound: map[string]int{}, ok: true}
	c, untyped, err := cert.Claims(t, env.Tool != "", tools, d.Expand, func(t term.Term) *cert.Type {
		if len(w.types) == 0 {
			return w.said(d.Type(whole)) // of the program, which it asks for first
		}
		return w.said(asked(d, t))
	})
	switch {
	case err != nil:
		return nil
	case untyped == nil && w.ok:
		c.Table, c.Types = w.table, w.types
		return c
	}
	c, _, _ = cert.Claims(t, env.Tool != "", tools, prim.Expand, func(term.Term) *cert.Type { return nil })
	return c
}

// asked is what is inferred of what the checker asks for at a term: the type of a
// function's parameter, of a list's items, and of others what they give.
func asked(d *check.Derivation, t term.Term) *check.Type {
	typ := d.Type(t)
	if typ == nil {
		return nil
	}
	switch t := t.(type) {
	case *term.Lam:
		return typ.Param
	case *term.List:
		return typ.Item
	case *term.Prim:
		if name := prim.Get(t.ID).Name; name == "par" || name == "values" {
			return typ.Item
		}
	}
	return typ
}
