// Package cert checks certificates: what is claimed of a program, with the
// types that make the claim evident.
//
// It infers nothing. Going along the term once, it finds for each term that what
// flows into it is within the type that the certificate gives it, that a row's
// operands are of the kinds it takes, and that a function asks for no more than
// its type says. What a program can ask for, which tools it names and how many
// evaluations it takes (package count) it works out itself, and compares. So a
// certificate may come from anybody: what [Check] accepts is true.
//
// What is claimed: the type, that on an input of it no run fails with
// type_error or unbound; the operations that can be asked for, and no others;
// the evaluations of terms at most, and how they grow; the tools it depends on,
// by version and hash. What the rules can't show (dynamic types, types that
// refer to themselves, evaluated code) a certificate doesn't claim: it has no
// types then. Package issue makes certificates.
package cert

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/check/cert/count"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// A Certificate is what is claimed of a program, with what it takes to check
// it in one pass.
type Certificate struct {
	// Hash is the SHA-256 of the program's canonical JSON, in hexadecimal; Tool
	// says that it is a tool's code.
	Hash string `json:"hash"`
	Tool bool   `json:"tool,omitempty"`
	// Table and Types are, where the program's type is claimed, the types that
	// occur, and by their places in Table that of each term in the order in which
	// it stands, what rows of the library mean after their use. The first is the
	// program's: on an input of its type no run fails with type_error or unbound.
	Table []*Type `json:"table,omitempty"`
	Types []int   `json:"types,omitempty"`
	// Effects is the operations that the program's code can have performed,
	// sorted: "call:NAME" is a call, "*" any, and "call:*" a call of any tool.
	// What an eval around never permits is asked for in vain, and not here.
	Effects []string `json:"effects,omitempty"`
	// Cost is the evaluations of terms in a run at most, those of the inputs and
	// further steps for large values apart: a formula in the lengths of the
	// parameters' values, len(1), and calls, how often self is applied. Class
	// is how it grows. Cost is "unbounded" where none is claimed.
	Cost  string `json:"cost"`
	Class string `json:"class"`
	// Needs is the tools that the code names, sorted by their names.
	Needs []Need `json:"needs,omitempty"`
}

// A Need is a tool, with the version and the hash that it has.
type Need struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
	Hash    string `json:"hash"`
}

// Tools says what a tool is now, and its type, nil where that isn't certified.
type Tools func(name string) (n Need, typ *Type, ok bool)

// Bounds of a check: comparisons of types, and how deep a term may be nested.
const (
	maxWork = 2_000_000
	maxDeep = 2_000
)

// Check says why a certificate is not one of the term; nil: all that it claims
// holds. It is void when the code or a tool that it names has changed.
func Check(c *Certificate, t term.Term, tools Tools) error {
	sum := sha256.Sum256(text.Canonical(t))
	if c.Hash != hex.EncodeToString(sum[:]) {
		return errors.New("the certificate is of another term")
	}
	if _, ok := t.(*term.Lam); !ok && c.Tool {
		if free := term.Free(t); len(free) == 1 {
			t = &term.Lam{At: term.At(t.Pos()), Param: free[0], Body: t}
		}
	}
	effects, needs := Asks(t)
	if !slices.Equal(c.Effects, effects) {
		return fmt.Errorf("the program can ask for %q", effects)
	}
	if !slices.EqualFunc(c.Needs, needs, func(n Need, name string) bool { return n.Name == name }) {
		return fmt.Errorf("the program needs %q", needs)
	}
	types := map[string]*Type{}
	for _, n := range c.Needs {
		now, typ, ok := tools(n.Name)
		if !ok || now != n {
			return fmt.Errorf("the tool %q is not what it was", n.Name)
		}
		types[n.Name] = typ
	}
	if cost, class := count.Of(t); c.Cost != cost || c.Class != class {
		return fmt.Errorf("the program takes %s, %s", cost, class)
	}
	if len(c.Types) == 0 && len(c.Table) == 0 {
		return nil
	}
	return checkTypes(c, t, types)
}

func checkTypes(c *Certificate, t term.Term, needs map[string]*Type) error {
	w := typing{table: c.Table, at: c.Types, left: maxWork, needs: func(name string) *Type { return needs[name] }}
	if _, ok := t.(*term.Lam); ok && c.Tool && len(c.Types) > 0 && c.Types[0] >= 0 && c.Types[0] < len(c.Table) {
		w.self = c.Table[c.Types[0]]
	}
	if w.term(t, nil); w.err == nil && len(w.at) > 0 {
		return errors.New("there are more types than terms")
	}
	return w.err
}

// Asks is the operations that code can have performed, and the tools that it
// names.
func Asks(t term.Term) (effects, needs []string) {
	var walk func(t term.Term, active bool)
	walk = func(t term.Term, active bool) {
		add := func(op string) {
			if active {
				effects = append(effects, op)
			}
		}
		switch t := t.(type) {
		case *term.Quote:
			active = false
		case *term.Effect:
			add(t.Op)
		case *term.CodeOf:
			needs = append(needs, t.Name)
		case *term.Prim:
			if t.ID == prim.Call {
				name, ok := t.Args[0].(*term.Str)
				if ok {
					add("call:" + name.Value)
					needs = append(needs, name.Value)
				} else {
					add("call:*")
				}
			}
			if texts, _ := term.With(t.Args); t.ID == prim.Eval && len(texts) > 0 {
				if q, ok := t.Args[0].(*term.Quote); ok {
					walk(q.Body, active)
				} else {
					add("*")
				}
			}
		}
		term.Children(t, func(x term.Term) bool {
			walk(x, active)
			return true
		})
	}
	walk(t, true)
	slices.Sort(effects)
	slices.Sort(needs)
	return slices.Compact(effects), slices.Compact(needs)
}
