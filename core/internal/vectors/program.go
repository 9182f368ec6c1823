package vectors

import "encoding/json"

// Program is what Code says to run, by the rules of `run`: a string is a
// tool's name, or else JSON text; anything else is a term itself. tool is set
// where it is a tool's name; otherwise code is the source to parse, which may
// be no JSON at all.
func (v Vector) Program() (tool string, code []byte) {
	return program(v.Code, func(name string) bool {
		for _, t := range v.Setup {
			if t.Name == name {
				return true
			}
		}
		return false
	})
}

func program(code json.RawMessage, known func(string) bool) (tool string, source []byte) {
	var s string
	if json.Unmarshal(code, &s) != nil || string(code) == "null" {
		return "", code
	}
	if known(s) {
		return s, nil
	}
	return "", []byte(s)
}

// Source is a tool's code as evolve reads it: a string that holds JSON is
// that, and any other string a string literal.
func (t Tool) Source() []byte {
	var s string
	if json.Unmarshal(t.Code, &s) == nil && json.Valid([]byte(s)) {
		return []byte(s)
	}
	return t.Code
}
