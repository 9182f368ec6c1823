package stdio

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A member is one of the params of a method, and what opens its JSON.
type member struct {
	name     string
	opens    byte
	required bool
}

var (
	named     = member{"name", '"', true}
	addressed = member{"uri", '"', true}
	paged     = member{"cursor", '"', false}
	meta      = member{"_meta", '{', false}
)

// wanted is the params that methods need to be understood at all, of the methods that
// all versions of the protocol have: in another one they aren't even known. The SDK
// finds the same, but says so in the names of its types, and lets a call of no tool pass.
var wanted = map[string][]member{
	"tools/call":               {named},
	"prompts/get":              {named, {"arguments", '{', false}},
	"resources/read":           {addressed},
	"tools/list":               {paged},
	"prompts/list":             {paged},
	"resources/list":           {paged},
	"resources/templates/list": {paged},
	"completion/complete":      {{"ref", '{', true}, {"argument", '{', true}},
}

// unfit returns what is wrong with the params of a call; "": nothing.
func unfit(method string, params []byte) string {
	members, ok := wanted[method]
	switch {
	case len(params) == 0:
		return "" // which for some methods is right
	case params[0] == '[':
		return "params must be an object" // JSON-RPC has arrays, MCP hasn't
	case !ok:
		return ""
	}
	var there uint8
	wrong := ""
	check := func(m member, value []byte) {
		if value[0] != m.opens && (m.required || value[0] != 'n') && wrong == "" {
			wrong = fmt.Sprintf("%q of %s is %s", m.name, method, m.kind())
		}
	}
	s := scanner{b: params}
	s.members(0, func(key, value []byte) {
		for i, m := range members {
			if string(key[1:len(key)-1]) == m.name {
				there |= 1 << i
				check(m, value)
			}
		}
		if string(key) == `"_meta"` {
			check(meta, value)
		}
	})
	for i, m := range members {
		if m.required && there&(1<<i) == 0 && wrong == "" {
			wrong = fmt.Sprintf("%s needs %q, %s", method, m.name, m.kind())
		}
	}
	return wrong
}

func (m member) kind() string {
	if m.opens == '{' {
		return "an object"
	}
	return "a string"
}

// badParams refuses a call that is understood but for its params.
func badParams(id []byte, why string) *refusal {
	return &refusal{jsonrpc.CodeInvalidParams, id, "invalid params: " + why}
}
