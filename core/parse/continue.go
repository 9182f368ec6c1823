package parse

import (
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/term"
)

// checkContinue refuses every continue of a tool's code that is not in tail
// position: in the tool's outermost lambdas, then in branches of if and in the
// bodies of lambdas applied at once. Code with one free variable and no lambda
// is the body of a lambda.
func (b *builder) checkContinue(t term.Term) *fault.Fault {
	c := tailCheck{b: b}
	body, isLam := t, false
	for {
		l, ok := body.(*term.Lam)
		if !ok {
			break
		}
		body, isLam = l.Body, true
	}
	c.walk(body, isLam || len(Free(t)) == 1)
	if len(b.faults) == 0 {
		return nil
	}
	return b.fault()
}

type tailCheck struct{ b *builder }

func (c *tailCheck) walk(t term.Term, tail bool) {
	switch t := t.(type) {
	case *term.Continue:
		if !tail {
			c.refuse(t)
		}
		c.walk(t.Input, false)
	case *term.Lam:
		c.walk(t.Body, false)
	case *term.LetRec:
		for _, f := range t.Funcs {
			c.walk(f.Lam, false)
		}
		c.walk(t.Body, tail)
	case *term.App:
		c.app(t, tail)
	case *term.If:
		c.walk(t.Cond, false)
		c.walk(t.Then, tail)
		c.walk(t.Else, tail)
	case *term.List:
		for _, item := range t.Items {
			c.walk(item, false)
		}
	case *term.Record:
		for _, f := range t.Fields {
			c.walk(f.Value, false)
		}
	case *term.Effect:
		c.walk(t.Arg, false)
	case *term.Prim:
		for _, a := range t.Args {
			c.walk(a, false)
		}
	}
}

// app walks an application; lambdas applied at once, to one argument or
// several, have their body in the application's position.
func (c *tailCheck) app(t *term.App, tail bool) {
	n := 1
	f := t.Func
	for {
		inner, ok := f.(*term.App)
		if !ok {
			break
		}
		f = inner.Func
		n++
	}
	applied := false
	for ; n > 0; n-- {
		l, ok := f.(*term.Lam)
		if !ok {
			break
		}
		f, applied = l.Body, true
	}
	c.walk(f, tail && applied && n == 0)
	for t != nil {
		c.walk(t.Arg, false)
		t, _ = t.Func.(*term.App)
	}
}

func (c *tailCheck) refuse(t *term.Continue) {
	i, ok := c.b.find(t.Pos())
	if !ok {
		return
	}
	c.b.refuse(i, &fault.Fault{
		Message:  "continue is not in tail position of the tool's function, so something would still be to do after it",
		Expected: "continue as the last thing the tool's function does",
		Hint:     `Make it the whole result of a branch: {"lam":"n","body":{"if":{"cond":{"lte":[{"var":"n"},0]},"then":"done","else":{"continue":{"input":{"sub":[{"var":"n"},1]}}}}}}.`,
	})
}
