package issue_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/check/cert"
	"github.com/mcp-pif/mcp-pif/core/check/issue"
)

// answering is tools among which the operation toy.get answers what is of a type;
// nil: some data.
func answering(typ *check.Type) cert.Tools {
	return func(name string) (cert.Need, *cert.Type, bool) {
		if name != "!toy.get" {
			return tools(name)
		}
		if typ == nil {
			return cert.Need{}, nil, false
		}
		return cert.Need{Name: name, Hash: typ.String()}, issue.Type(typ), true
	}
}

// TestAnswers: what an operation answers is claimed where that is said, holds while
// it is, and of other answers nothing more is believed than that they are data.
func TestAnswers(t *testing.T) {
	ints := check.List(check.Int)
	types := []*check.Type{nil, check.Int, check.Number, check.String, ints, check.JSON}
	for _, c := range []struct {
		code  string
		typed []*check.Type // by which it has a type
	}{
		{"k => !toy.get(k)", types},
		{"k => !toy.get(k) + 1", []*check.Type{check.Int, check.Number}},
		{"k => sum(!toy.get(k))", []*check.Type{ints}},
		{`k => length(!toy.get(k))`, []*check.Type{check.String, ints}},
		{`k => to_json(!toy.get(k))`, []*check.Type{check.Int, check.Number, check.String, ints, check.JSON}},
	} {
		s := ofText(t, c.code)
		for _, typ := range types {
			env := check.Env{Tool: "tool", Result: func(string) (*check.Type, bool) { return typ, typ != nil }}
			if typ == nil {
				env.Result = nil
			}
			made := issue.Certificate(s.term, s.source, env, answering(typ))
			if typed := len(made.Types) > 0; typed != slices.Contains(c.typed, typ) {
				t.Errorf("%s of %s: it has a type: %t", c.code, typ, typed)
			}
			for _, now := range types {
				err := cert.Check(made, s.term, answering(now))
				if (err == nil) != (now == typ) {
					t.Errorf("%s of %s, checked with %s: %v", c.code, typ, now, err)
				}
				// The same claim that says nothing of what it relies on.
				bare := new(cert.Certificate)
				if err := json.Unmarshal(mustJSON(t, made), bare); err != nil {
					t.Fatal(err)
				}
				bare.Needs = nil
				if len(bare.Types) > 0 && typ != nil && c.code != "k => !toy.get(k)" && cert.Check(bare, s.term, answering(nil)) == nil {
					t.Errorf("%s of %s: it is accepted of any data", c.code, typ)
				}
			}
		}
	}
}
