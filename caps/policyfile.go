package caps

import (
	"encoding/json"
	"errors"
	"fmt"
)

// A PolicyFile is what a policy file says: the texts of capabilities.
type PolicyFile struct {
	Grant []string
	Ask   []string
	Deny  []string
}

// ParsePolicy reads {"grant":[…],"ask":[…],"deny":[…]}. Every key may be left
// out; another key, or one twice, is an error, since a misspelled denial would
// deny nothing.
func ParsePolicy(data []byte) (PolicyFile, error) {
	var p PolicyFile
	var keys map[string]json.RawMessage
	if err := strictJSON(data, &keys); err != nil {
		return p, fmt.Errorf("policy: %w", err)
	}
	if keys == nil {
		return p, errors.New(`policy: write {"grant":[…],"ask":[…],"deny":[…]}`)
	}
	for key, raw := range keys {
		var into *[]string
		switch key {
		case "grant":
			into = &p.Grant
		case "ask":
			into = &p.Ask
		case "deny":
			into = &p.Deny
		default:
			return PolicyFile{}, fmt.Errorf("policy: unknown key %s: it has grant, ask and deny", quoted(key))
		}
		if err := strictJSON(raw, into); err != nil || *into == nil {
			return PolicyFile{}, fmt.Errorf("policy: %s must be a list of capabilities' texts", key)
		}
	}
	return p, nil
}
