package caps

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

// A PolicyFile is what a policy file says: of everybody, and besides of each
// principal that it names.
type PolicyFile struct {
	PolicyEntry
	// Flow is where data may flow, for package flow; nil: nothing is said.
	Flow       json.RawMessage
	Principals map[string]PolicyEntry
}

// A PolicyEntry is what a policy file says of everybody, or of one principal: the
// texts of capabilities.
type PolicyEntry struct {
	Grant []string
	Ask   []string
	Deny  []string
	// Confirm is the requests that are performed as part of an approved plan only; see [Requests].
	Confirm []string
	// Secrets is what the secrets of the operator's are for and where they lie, by
	// name; see [PolicyEntry.Bindings].
	Secrets map[string]SecretEntry
	// Processes is what names of processes are mapped to.
	Processes map[string]Command
	// Servers is what is said of MCP servers of the lock, by their names.
	Servers map[string]*ServerPolicy
}

// A SecretEntry is a secret in a policy file: {"for":"https://api.example.com",
// "file":"PATH"}, or "env":"VARIABLE" in place of the file.
type SecretEntry struct {
	For  string `json:"for"`
	File string `json:"file"`
	Env  string `json:"env"`
}

// Bindings is the secrets, checked, in the order of names.
func (p PolicyEntry) Bindings(kinds Kinds) ([]Binding, error) {
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

// ParsePolicy reads {"grant":[…],"ask":[…],"deny":[…],"confirm":[…],"secrets":{…},"processes":{…},"servers":{…},
// "flow":{…},"principals":{"NAME":{"grant":[…],…}}}. Every key may be left out; another key, or
// one twice, is an error, since a misspelled denial would deny nothing.
func ParsePolicy(data []byte) (PolicyFile, error) {
	var keys map[string]json.RawMessage
	if err := statefile.Decode(data, &keys); err != nil {
		return PolicyFile{}, fmt.Errorf("policy: %w", err)
	}
	if keys == nil {
		return PolicyFile{}, errors.New(`policy: write {"grant":[…],"ask":[…],"deny":[…]}`)
	}
	var p PolicyFile
	if raw, ok := keys["principals"]; ok {
		delete(keys, "principals")
		if err := p.readPrincipals(raw); err != nil {
			return PolicyFile{}, fmt.Errorf("policy: %w", err)
		}
	}
	if raw, ok := keys["flow"]; ok {
		delete(keys, "flow")
		p.Flow = raw
	}
	if err := p.read(keys, "grant, ask, deny, confirm, secrets, processes, servers, flow and principals"); err != nil {
		return PolicyFile{}, fmt.Errorf("policy: %w", err)
	}
	return p, nil
}

// readPrincipals reads what the file says of principals.
func (p *PolicyFile) readPrincipals(raw []byte) error {
	var entries map[string]map[string]json.RawMessage
	if err := statefile.Decode(raw, &entries); err != nil || entries == nil {
		return errors.New(`principals must be {"NAME":{"grant":[…],"ask":[…],"deny":[…]}}`)
	}
	p.Principals = map[string]PolicyEntry{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if err := CheckPrincipal(name); err != nil {
			return err
		}
		var e PolicyEntry
		if entries[name] == nil {
			return fmt.Errorf(`the principal %s: write {"grant":[…],"ask":[…],"deny":[…]}`, quoted(name))
		}
		if err := e.read(entries[name], "grant, ask, deny, confirm, secrets, processes and servers"); err != nil {
			return fmt.Errorf("the principal %s: %w", quoted(name), err)
		}
		p.Principals[name] = e
	}
	return nil
}

// read reads the members of an entry; known is what there can be, in words.
func (p *PolicyEntry) read(keys map[string]json.RawMessage, known string) error {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		raw := keys[key]
		var into *[]string
		switch key {
		case "grant":
			into = &p.Grant
		case "ask":
			into = &p.Ask
		case "deny":
			into = &p.Deny
		case "confirm":
			into = &p.Confirm
		case "secrets":
			if err := statefile.Decode(raw, &p.Secrets); err != nil || p.Secrets == nil {
				return errors.New(`secrets must be {"NAME":{"for":"ORIGIN","file":"PATH"}}, or with "env":"VARIABLE" for the file`)
			}
			continue
		case "processes":
			if err := p.readProcesses(raw); err != nil {
				return err
			}
			continue
		case "servers":
			if err := p.readServers(raw); err != nil {
				return err
			}
			continue
		default:
			return fmt.Errorf("unknown key %s: it has %s", quoted(key), known)
		}
		if err := statefile.Decode(raw, into); err != nil || *into == nil {
			return fmt.Errorf("%s must be a list of capabilities' texts", key)
		}
	}
	return nil
}

// readProcesses reads what names of processes are mapped to.
func (p *PolicyEntry) readProcesses(raw []byte) error {
	var entries map[string]json.RawMessage
	if err := statefile.Decode(raw, &entries); err != nil || entries == nil {
		return errors.New(`processes must be {"NAME":{"command":["/usr/bin/python3","-i"]}}`)
	}
	p.Processes = map[string]Command{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		c, err := ParseCommand(entries[name])
		if err != nil {
			return fmt.Errorf("the process %s: %w", quoted(name), err)
		}
		p.Processes[name] = c
	}
	return nil
}

// readServers reads what is said of MCP servers.
func (p *PolicyEntry) readServers(raw []byte) error {
	var entries map[string]json.RawMessage
	if err := statefile.Decode(raw, &entries); err != nil || entries == nil {
		return errors.New(`servers must be {"NAME":{"env":{"VARIABLE":{"secret":"NAME"}}}}`)
	}
	p.Servers = map[string]*ServerPolicy{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		s, err := ParseServer(entries[name])
		if err != nil {
			return fmt.Errorf("the server %s: %w", quoted(name), err)
		}
		p.Servers[name] = s
	}
	return nil
}
