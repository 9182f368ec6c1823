package caps

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A PolicyFile is what a policy file says: the texts of capabilities.
type PolicyFile struct {
	Grant []string
	Ask   []string
	Deny  []string
	// Secrets is what the secrets of the operator's are for and where they lie, by
	// name; see [PolicyFile.Bindings].
	Secrets map[string]SecretEntry
	// Processes is what names of processes are mapped to.
	Processes map[string]Command
}

// A SecretEntry is a secret in a policy file: {"for":"https://api.example.com",
// "file":"PATH"}, or "env":"VARIABLE" in place of the file.
type SecretEntry struct {
	For  string `json:"for"`
	File string `json:"file"`
	Env  string `json:"env"`
}

// Bindings is the secrets, checked, in the order of names.
func (p PolicyFile) Bindings(kinds Kinds) ([]Binding, error) {
	var all []Binding
	for _, name := range slices.Sorted(maps.Keys(p.Secrets)) {
		e := p.Secrets[name]
		b, err := NewBinding(name, e.For, e.File, e.Env, kinds)
		if err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
		all = append(all, b)
	}
	return all, nil
}

// ParsePolicy reads {"grant":[…],"ask":[…],"deny":[…],"secrets":{…},"processes":{…}}. Every key may be left
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
		if key == "secrets" {
			if err := strictJSON(raw, &p.Secrets); err != nil || p.Secrets == nil {
				return PolicyFile{}, errors.New(`policy: secrets must be {"NAME":{"for":"ORIGIN","file":"PATH"}}, or with "env":"VARIABLE" for the file`)
			}
			continue
		}
		if key == "processes" {
			if err := p.readProcesses(raw); err != nil {
				return PolicyFile{}, err
			}
			continue
		}
		var into *[]string
		switch key {
		case "grant":
			into = &p.Grant
		case "ask":
			into = &p.Ask
		case "deny":
			into = &p.Deny
		default:
			return PolicyFile{}, fmt.Errorf("policy: unknown key %s: it has grant, ask, deny, secrets and processes", quoted(key))
		}
		if err := strictJSON(raw, into); err != nil || *into == nil {
			return PolicyFile{}, fmt.Errorf("policy: %s must be a list of capabilities' texts", key)
		}
	}
	return p, nil
}

// readProcesses reads what names of processes are mapped to.
func (p *PolicyFile) readProcesses(raw []byte) error {
	var entries map[string]json.RawMessage
	if err := strictJSON(raw, &entries); err != nil || entries == nil {
		return errors.New(`policy: processes must be {"NAME":{"command":["/usr/bin/python3","-i"]}}`)
	}
	p.Processes = map[string]Command{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		c, err := ParseCommand(entries[name])
		if err != nil {
			return fmt.Errorf("policy: the process %s: %w", quoted(name), err)
		}
		p.Processes[name] = c
	}
	return nil
}
