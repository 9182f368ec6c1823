package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// A suggestion is the call of a tool that is to be made next, and what is to be said
// of it: "" where it was tried, and succeeds.
type suggestion struct {
	call []byte
	note string
}

// suggest is a call of a tool that succeeds, as far as that can be found out with few
// steps: the candidates are run, and none of their effects is carried out. Where none
// succeeds it is the shape of a call. A tool of one parameter is run, which every
// client can do before it has read the list of tools again; one of several is called
// by its name with each by its own; one that takes what no data is, by code.
func (s *Server) suggest(t *registry.Tool, sees *registry.Snapshot) suggestion {
	if t.Unusable() != nil {
		return suggestion{call: describing(t)}
	}
	p := &prober{server: s, tool: t, trial: &trial{server: s, candidate: t, sees: sees}, left: probeSteps}
	p.params, _ = t.Report().Arguments()
	way := asRun
	switch {
	case len(p.params) > 1 && registry.Listed(t.Name) && t.As == registry.AsTool:
		way = asName
	case len(p.params) > 1:
		way = asCode
	}
	note := ""
	if name, what := unsayable(p.params); name != "" {
		note = fmt.Sprintf("%q is %s, which no JSON is: the tool can't be called by its name, but run takes a term as its input, as next does", name, what)
		if len(p.params) > 1 {
			way = asCode
			note = fmt.Sprintf("%q is %s, which no JSON is: the tool can't be called by its name, nor with @%s; code of your own can evaluate its code, as next does", name, what, t.Name)
		}
	}
	p.way = way
	if way == asCode && len(t.Reach()) > 0 {
		// Code that is run has no authority, whatever the tool holds.
		return suggestion{describing(t), note}
	}
	found := p.search()
	if note != "" && found.note != "" {
		found.note = note + "; " + found.note
	} else if note != "" {
		found.note = note
	}
	return found
}

// example is the call that is suggested.
func (s *Server) example(t *registry.Tool, sees *registry.Snapshot) []byte {
	return s.suggest(t, sees).call
}

// describing is the call that shows a tool.
func describing(t *registry.Tool) []byte {
	return begin().text("name", "describe").raw("arguments", begin().text("name", t.Name).end()).end()
}

// unsayable is the first parameter that no data is, and what it is.
func unsayable(params []check.Parameter) (name, what string) {
	for _, p := range params {
		if what := noData(p.Type, 0); what != "" {
			return p.Name, what
		}
	}
	return "", ""
}

// noData says what a type is, or has in it, no value of which is data; "": there is
// data of it.
func noData(t *check.Type, deep int) string {
	if t == nil || deep > 8 || t.Any || t.Deep || t.Dynamic || len(t.Vars) > 0 || t.Kinds == 0 {
		return ""
	}
	if t.Kinds&^(prim.KindFunction|prim.KindQuoted|prim.KindContinuation) == 0 {
		if t.Kinds&prim.KindFunction != 0 {
			return "a function"
		}
		return "code"
	}
	var parts []*check.Type
	switch t.Kinds {
	case prim.KindPair:
		parts = []*check.Type{t.First, t.Second}
	case prim.KindRecord:
		for _, f := range t.Fields {
			if !f.Optional {
				parts = append(parts, f.Type)
			}
		}
	}
	for _, part := range parts {
		if what := noData(part, deep+1); what != "" {
			return "a value with " + what + " in it"
		}
	}
	return ""
}

// A way is how a call is made.
type way uint8

const (
	asRun  way = iota // {"tool": …, "input": …}
	asName            // {"a": …, "b": …}
	asCode            // the tool's code, applied
)

// call writes the call of a tool with arguments.
func (p *prober) call(args [][]byte) []byte {
	switch p.way {
	case asName:
		o := begin()
		for i, v := range args {
			o = o.raw(p.params[i].Name, v)
		}
		return begin().text("name", p.tool.Name).raw("arguments", o.end()).end()
	case asCode:
		return begin().text("name", "run").raw("arguments", begin().text("code", string(p.applied(args))).end()).end()
	}
	o := begin().text("tool", p.tool.Name)
	if len(args) > 0 {
		o = o.raw("input", args[0])
		if p.readAs(args[0]) == core.InputData {
			o = o.text("input_as", "data")
		}
	}
	return begin().text("name", "run").raw("arguments", o.end()).end()
}

// readAs is how an input has to be read to be what it is: a sample is a term, an
// example is data.
func (p *prober) readAs(input []byte) core.InputAs {
	var text string
	if p.data && bytes.IndexByte(input, '{') >= 0 || json.Unmarshal(input, &text) == nil && json.Valid([]byte(text)) {
		return core.InputData
	}
	return core.InputAuto
}

// applied is code that applies the tool's code, in the text form where that can be.
func (p *prober) applied(args [][]byte) []byte {
	code := []byte(begin().raw("eval", begin().text("code_of", p.tool.Name).end()).end())
	for _, v := range args {
		code = begin().raw("app", begin().raw("func", code).raw("arg", v).end()).end()
	}
	if program, err := core.Compile(code); err == nil {
		return program.Text()
	}
	return code
}
