package text

import (
	"errors"

	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
)

func init() {
	prim.ParseBody = func(src string) (term.Term, error) {
		p, f := Parse([]byte(src), Options{})
		if f != nil {
			return nil, f
		}
		if _, ok := p.Term.(*term.Lam); !ok || len(p.Free) > 0 {
			return nil, errors.New("it is no closed function")
		}
		return p.Term, nil
	}
}
