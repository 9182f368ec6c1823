// Package issue makes certificates: it has types inferred, and answers with them
// what package cert asks for in going through a program.
//
// What the checker doesn't accept is not claimed: a certificate without types
// still claims what the program can ask for, what it takes and what it needs.
// Nothing here is trusted; a certificate is worth what [cert.Check] says.
package issue

import (
	"slices"
	"strconv"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// Certificate is that of a program, with the tools it names as they are now.
// src is what the term's places refer to, env what types are inferred in; where
// env.Tool is empty it is inline code. It is nil where the code names a tool
// that isn't there. Types are inferred as far as the budget goes.
func Certificate(t term.Term, src *term.Source, env check.Env, tools cert.Tools, b check.Budget) *cert.Certificate {
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

// most is how many types a certificate has at most, and in how many places.
const most = 20_000

// Type is a type as certificates say it; nil where it is too large.
func Type(t *check.Type) *cert.Type {
	w := writer{index: map[string]int{}, named: map[string]int{}, bound: map[string]int{}, ok: true}
	return w.said(t)
}

// A writer writes types as certificates say them, each once in a table.
type writer struct {
	table []*cert.Type
	types []int // those that were asked for, by their places in the table
	// index is the places of types by what they are made of, and named of those
	// that are among their own parts, by how they are written.
	index, named map[string]int
	bound        map[string]int // the types around, by their names
	key          []byte         // of index, to be written anew
	ok           bool
}

// said answers with a type.
func (w *writer) said(t *check.Type) *cert.Type {
	n := w.typ(t)
	if n == 0 {
		n = w.place(&cert.Type{})
	}
	if w.ok = w.ok && len(w.types) < most; !w.ok {
		return nil
	}
	w.types = append(w.types, n-1)
	return w.table[n-1]
}

// typ is the place of a type in the table, from 1; 0: no value is of it.
func (w *writer) typ(t *check.Type) int {
	if t == nil || !w.ok {
		return 0
	}
	switch {
	case t.Dynamic:
		// What comes from outside is data; where it is something else the checker
		// finds it.
		return w.deep(prim.KindData)
	case t.Any:
		return w.deep(prim.KindAny)
	case t.Deep:
		return w.deep(t.Kinds)
	case len(t.Vars) == 1 && t.Kinds == 0 && w.bound[t.Vars[0]] > 0:
		return w.bound[t.Vars[0]]
	case slices.ContainsFunc(t.Vars, func(v string) bool { return v != t.Name && w.bound[v] > 0 }):
		w.ok = false // a union with a type around
		return 0
	case len(t.Vars) > 0:
		return w.deep(prim.KindAny) // which the caller chooses
	case t.Kinds == 0:
		return 0
	case t.Name == "":
		return w.place(w.made(t))
	}
	// It is among its own parts: they need its place.
	written := ""
	if len(w.bound) == 0 {
		written = t.String()
		if n := w.named[written]; n > 0 {
			return n
		}
	}
	u := new(cert.Type)
	n := w.add(u)
	w.bound[t.Name] = n
	*u = *w.made(t)
	delete(w.bound, t.Name)
	u.Link(w.table)
	if written != "" {
		w.named[written] = n
	}
	return n
}

// made is a type with the places of its parts.
func (w *writer) made(t *check.Type) *cert.Type {
	u := &cert.Type{Kinds: t.Kinds}
	for _, p := range []*check.Type{t.Item, t.First, t.Second, t.Rest, t.Param, t.Result} {
		u.Parts = append(u.Parts, w.typ(p))
	}
	for _, f := range t.Fields {
		u.Fields = append(u.Fields, cert.Field{Key: f.Key, Optional: f.Optional})
		n := w.typ(f.Type)
		if n == 0 {
			n = w.place(&cert.Type{})
		}
		u.Parts = append(u.Parts, n)
	}
	for len(u.Parts) > 0 && u.Parts[len(u.Parts)-1] == 0 {
		u.Parts = u.Parts[:len(u.Parts)-1]
	}
	return u
}

// place is where a type stands, or now does.
func (w *writer) place(u *cert.Type) int {
	key := strconv.AppendUint(w.key[:0], uint64(u.Kinds), 16)
	for _, n := range u.Parts {
		key = strconv.AppendInt(append(key, ' '), int64(n), 16)
	}
	for _, f := range u.Fields {
		key = strconv.AppendBool(strconv.AppendQuote(key, f.Key), f.Optional)
	}
	w.key = key
	n, ok := w.index[string(key)]
	if !ok {
		n = w.add(u)
		w.index[string(key)] = n
		u.Link(w.table)
	}
	return n
}

func (w *writer) add(u *cert.Type) int {
	w.table = append(w.table, u)
	w.ok = w.ok && len(w.table) <= most
	return len(w.table)
}

// deep is the place of all values whose parts are of the kinds, too.
func (w *writer) deep(k prim.Kinds) int {
	key := k.String()
	n, ok := w.named[key]
	if !ok {
		u := &cert.Type{Kinds: k}
		n = w.add(u)
		w.named[key] = n
		u.Parts = []int{n, n, n, n, 0, n}
		u.Link(w.table)
	}
	return n
}
