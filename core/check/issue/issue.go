// Package issue makes certificates: it has types inferred and writes down, term
// by term, what package cert needs to check them without inferring anything.
//
// What the checker doesn't accept is not claimed: a certificate without types
// still claims what the program can ask for, what it takes and what it needs.
// Nothing here is trusted; a certificate is worth what [cert.Check] says.
package issue

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/check/cert/count"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
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
	sum := sha256.Sum256(text.Canonical(t))
	c := &cert.Certificate{Hash: hex.EncodeToString(sum[:]), Tool: env.Tool != ""}
	whole := t
	if _, ok := t.(*term.Lam); !ok && c.Tool {
		if free := term.Free(t); len(free) == 1 {
			whole = &term.Lam{At: term.At(t.Pos()), Param: free[0], Body: t}
		}
	}
	var needs []string
	c.Effects, needs = cert.Asks(whole)
	c.Cost, c.Class = count.Of(whole)
	for _, name := range needs {
		n, _, ok := tools(name)
		if !ok {
			return nil
		}
		c.Needs = append(c.Needs, n)
	}
	if whole != t {
		return c // what is inferred has no type for the lambda
	}
	if env.Result == nil {
		// What an operation answers is some data, and no more is claimed of it.
		env.Result = func(string) (*check.Type, bool) { return check.Data, true }
	}
	d := check.Derive(t, src, env, b)
	if !d.Report.Sound() {
		return c
	}
	typed := *c
	w := writer{d: d, index: map[string]int{}, c: &typed, ok: true}
	w.term(t)
	if w.ok && cert.Check(&typed, t, tools) == nil {
		return &typed
	}
	return c
}

// A writer writes the types of a derivation in the order of the terms.
type writer struct {
	d     *check.Derivation
	c     *cert.Certificate
	index map[string]int
	ok    bool
}

// most is how many types a certificate has at most.
const most = 20_000

func (w *writer) term(t term.Term) bool {
	if len(w.c.Types) > most {
		w.ok = false
	}
	if !w.ok {
		return false
	}
	if _, args, body := cert.Let(t); body != nil {
		for _, x := range args {
			w.term(x)
		}
		return w.term(body)
	}
	typ, ok := w.typ(w.d.Types[t])
	if !ok {
		w.ok = false
		return false
	}
	key, _ := json.Marshal(typ)
	i, seen := w.index[string(key)]
	if !seen {
		i = len(w.c.Table)
		w.index[string(key)] = i
		w.c.Table = append(w.c.Table, typ)
	}
	w.c.Types = append(w.c.Types, i)
	switch t := t.(type) {
	case *term.Quote:
		return true
	case *term.Prim:
		if prim.Get(t.ID).Body != "" {
			body := w.d.Expansions[t]
			if body == nil {
				w.ok = false
				return false
			}
			return w.term(body)
		}
	}
	return term.Children(t, w.term)
}

// typ is a type as certificates say it; ok is false for what they can't.
func (w *writer) typ(t *check.Type) (*cert.Type, bool) {
	if t == nil {
		return &cert.Type{}, true
	}
	if t.Dynamic {
		// What comes from outside is data; where it is something else the checker
		// finds it.
		return &cert.Type{Kinds: prim.KindData, Deep: true}, true
	}
	if t.Name != "" || t.Effects.Open {
		return nil, false
	}
	r := &cert.Type{Kinds: t.Kinds, Any: t.Any, Deep: t.Deep, Vars: t.Vars, Asks: t.Effects.Ops}
	ok := true
	part := func(p *check.Type) *cert.Type {
		if p == nil {
			return nil
		}
		u, fine := w.typ(p)
		ok = ok && fine
		return u
	}
	r.Item, r.First, r.Second, r.Rest = part(t.Item), part(t.First), part(t.Second), part(t.Rest)
	r.Param, r.Result = part(t.Param), part(t.Result)
	for _, f := range t.Fields {
		r.Fields = append(r.Fields, cert.Field{Key: f.Key, Type: part(f.Type), Optional: f.Optional})
	}
	return r, ok
}
