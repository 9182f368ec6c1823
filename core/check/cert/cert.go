// Package cert checks certificates: what is claimed of a program, with the
// types that make the claim evident.
//
// It infers nothing. Going along the program as it runs, it works out what each
// term gives from its operands, and finds that what flows into an operand is within
// what that takes. Where that isn't enough it asks for a type: of a parameter, or
// one that holds what several branches or items give. A certificate's types are the
// answers, in the order of asking, each held against what flows there. So it may
// come from anybody (package issue makes them): what [Check] accepts is true. What
// the rules can't show (dynamic types, evaluated code) no certificate claims.
package cert

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// A Certificate is what is claimed of a program, with what it takes to check it.
type Certificate struct {
	// Hash is the SHA-256 of the program's canonical JSON, in hexadecimal; Tool
	// says that it is a tool's code.
	Hash string `json:"hash"`
	Tool bool   `json:"tool,omitempty"`
	// Types is, by their places in Table, the program's type, where one is claimed, and those that
	// are asked for. On an input of it no run fails with type_error or unbound, and its result is of it.
	Table []*Type `json:"table,omitempty"`
	Types []int   `json:"types,omitempty"`
	// Effects is the operations that the code can have performed, sorted:
	// "call:NAME" is a call, "call:*" that of any tool, and "*" any operation.
	Effects []string `json:"effects,omitempty"`
	// Cost is the evaluations of terms at most in a run with an input for each parameter, those of
	// inputs and further steps for large values apart, or "unbounded": a formula in n, the
	// longest parameter's length, and calls, of self.
	Cost  string `json:"cost"`
	Class string `json:"class"`
	// Needs is the tools that the code names, and operations ("!fs.read") with a type, sorted by their names.
	Needs []Need `json:"needs,omitempty"`
}

// A Need is a tool, with the version and the hash that it has.
type Need struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
	Hash    string `json:"hash"`
}

// Tools says what a tool is now, or what an operation ("!fs.read") answers, and its type, nil where there is none.
type Tools func(name string) (n Need, typ *Type, ok bool)

// UnmarshalJSON reads a certificate, and links its table.
func (c *Certificate) UnmarshalJSON(src []byte) error {
	type plain Certificate
	err := json.Unmarshal(src, (*plain)(c))
	for _, t := range c.Table {
		if t != nil {
			t.Link(c.Table)
		}
	}
	return err
}

// Check says why a certificate is not one of the term; nil: all that it claims
// holds. It is void when the code or a tool that it names has changed.
func Check(c *Certificate, t term.Term, tools Tools) error {
	asked := 0
	is, untyped, err := Claims(t, c.Tool, tools, prim.Expand, func(term.Term) *Type {
		if asked++; asked > len(c.Types) || c.Types[asked-1] < 0 || c.Types[asked-1] >= len(c.Table) {
			return nil
		}
		return c.Table[c.Types[asked-1]]
	})
	switch {
	case err != nil:
		return err
	case c.Hash != is.Hash || c.Cost != is.Cost || c.Class != is.Class || !slices.Equal(c.Effects, is.Effects) || !slices.Equal(c.Needs, is.Needs):
		for _, claim := range []struct {
			what     string
			said, is any
		}{{"hash", c.Hash, is.Hash}, {"cost", c.Cost, is.Cost}, {"class", c.Class, is.Class}, {"effects", c.Effects, is.Effects}} {
			if fmt.Sprint(claim.said) != fmt.Sprint(claim.is) {
				return fmt.Errorf("it claims the %s %v; what holds is %v", claim.what, claim.said, claim.is)
			}
		}
		return fmt.Errorf("it claims to need %v; what holds is %v", c.Needs, is.Needs)
	case len(c.Types) == 0 && len(c.Table) == 0:
		return nil
	case untyped == nil && asked != len(c.Types):
		return fmt.Errorf("there are %d types, %d are asked for", len(c.Types), asked)
	}
	return untyped
}

// Claims is a certificate without types of what is found of a term. types is asked
// for the program's type first, and then as types are needed; untyped says why
// they don't show that it is that. expand is [prim.Expand], or gives the same.
func Claims(t term.Term, tool bool, tools Tools, expand func(*term.Prim) term.Term, types func(term.Term) *Type) (c *Certificate, untyped, err error) {
	sum := sha256.Sum256(text.Canonical(t))
	if _, ok := t.(*term.Lam); !ok && tool && len(term.Free(t)) == 1 { // it stands for a function
		t = prim.Function(term.At(t.Pos()), term.Free(t), t)
	}
	effects, needs := asks(t)
	c = &Certificate{Hash: hex.EncodeToString(sum[:]), Tool: tool, Effects: effects}
	for _, name := range needs {
		if need, _, ok := tools(name); ok && need.Name == name {
			c.Needs = append(c.Needs, need)
		} else if name[:min(1, len(name))] != "!" { // an operation may answer any data
			return nil, nil, fmt.Errorf("the tool %q isn't there", name)
		}
	}
	p := pass{said: types, expand: expand, tools: tools, seen: map[[2]*Type]bool{}, left: maxWork, cost: exactly(0)}
	c.Cost, c.Class = p.run(t, tool)
	return c, p.err, nil
}

// asks is the operations that code can have performed, and the tools it names.
func asks(t term.Term) (effects, needs []string) {
	quoted := 0
	var walk func(t term.Term) bool
	walk = func(t term.Term) bool {
		op := ""
		switch t := t.(type) {
		case *term.Quote:
			quoted++
			defer func() { quoted-- }()
		case *term.Effect:
			op = t.Op
			needs = append(needs, "!"+op)
		case *term.CodeOf:
			needs = append(needs, t.Name)
		case *term.Prim:
			if t.ID == prim.Call {
				op = "call:*"
				if name, ok := t.Args[0].(*term.Str); ok {
					op = "call:" + name.Value
					needs = append(needs, name.Value)
				}
			} else if with, _ := term.With(t.Args); t.ID == prim.Eval && len(with) > 0 {
				op = "*"
				if q, ok := t.Args[0].(*term.Quote); ok {
					return walk(q.Body)
				}
			}
		}
		if op != "" && quoted == 0 {
			effects = append(effects, op)
		}
		return term.Children(t, walk)
	}
	walk(t)
	return slices.Compact(slices.Sorted(slices.Values(effects))), slices.Compact(slices.Sorted(slices.Values(needs)))
}
