package core

import (
	"encoding/json"

	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
)

// Parse reads a term in either spelling: well-formed JSON, or else the text form. It
// is what [Compile] and [CompileText] read, without compiling it; src must not change
// afterwards.
func Parse(src []byte) (term.Term, error) {
	if json.Valid(src) {
		p, f := parse.Code(src, parse.Options{})
		if f != nil {
			return nil, f
		}
		return p.Term, nil
	}
	p, f := text.Parse(src, text.Options{})
	if f != nil {
		return nil, f
	}
	return p.Term, nil
}

// Print writes a term in the text form, laid out for reading. [Parse] gives it back.
func Print(t term.Term) []byte { return text.Print(t) }
