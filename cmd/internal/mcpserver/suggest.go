package mcpserver

import (
	"github.com/mcp-pif/mcp-pif/caps/registry"
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
	p.way = asRun
	if len(p.params) > 1 && registry.Listed(t.Name) && t.As == registry.AsTool {
		p.way = asName
	}
	return p.search()
}

// example is the call that is suggested.
func (s *Server) example(t *registry.Tool, sees *registry.Snapshot) []byte {
	return s.suggest(t, sees).call
}

// describing is the call that shows a tool.
func describing(t *registry.Tool) []byte {
	return begin().text("name", "describe").raw("arguments", begin().text("name", t.Name).end()).end()
}

// A way is how a call is made.
type way uint8

const (
	asRun  way = iota // {"tool": …, "input": …}
	asName            // {"a": …, "b": …}
)

// call writes the call of a tool with arguments.
func (p *prober) call(args [][]byte) []byte {
	if p.way == asName {
		return begin().text("name", p.tool.Name).raw("arguments", p.shown(args)).end()
	}
	o := begin().text("tool", p.tool.Name)
	if len(args) > 0 {
		o = o.raw("input", p.shown(args))
	}
	return begin().text("name", "run").raw("arguments", o.end()).end()
}
