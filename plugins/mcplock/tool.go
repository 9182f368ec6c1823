package mcplock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

// A Tool is one tool of a server as the operator accepted it.
type Tool struct {
	Tool        string          `json:"tool"` // its name on the wire
	Hash        string          `json:"hash"` // of its definition; see [definition.hash]
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output,omitempty"`
	// Params is the arguments whose names the language doesn't have: word to wire name.
	Params map[string]string `json:"params,omitempty"`
	Claims Hints             `json:"claims"` // of a stranger
	// Accepted is the flags that hold; nil: the worst do.
	Accepted   *Hints `json:"accepted,omitempty"`
	AcceptedOn string `json:"accepted_on,omitempty"` // date
}

// Hints are the flags of a tool; nil: nothing is said.
type Hints struct {
	ReadOnly    *bool `json:"read_only,omitempty"`
	Idempotent  *bool `json:"idempotent,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	OpenWorld   *bool `json:"open_world,omitempty"`
}

// definition is an entry of tools/list, its members unread.
type definition map[string]json.RawMessage

// defining is the members that say what a tool is. Others (_meta, icons) don't.
var defining = []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution"}

// define takes an entry of tools/list apart.
func define(raw json.RawMessage) (definition, error) {
	if _, err := Canonical(raw); err != nil {
		return nil, err
	}
	var d definition
	if err := json.Unmarshal(raw, &d); err != nil || d == nil {
		return nil, errors.New("the definition of a tool is an object")
	}
	maps.DeleteFunc(d, func(key string, _ json.RawMessage) bool { return !slices.Contains(defining, key) })
	return d, nil
}

// hash returns the hash of a tool's definition: SHA-256 over the canonical JSON of the
// members that say what the tool is. Key order and white space don't matter, unknown members
// below those count, and an absent member isn't an empty one.
func (d definition) hash() (string, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return "", err
	}
	return hash(raw)
}

// with returns the definition with a member of another text, or without it if that is empty.
func (d definition) with(key, text string) definition {
	d = maps.Clone(d)
	if delete(d, key); text != "" {
		d[key], _ = json.Marshal(text) // a string has JSON
	}
	return d
}

// name returns the tool's name on the wire, or "".
func (d definition) name() (name string) {
	_ = json.Unmarshal(d["name"], &name)
	return name
}

// isTask reports whether the tool answers by tasks alone, which this client doesn't have.
func (d definition) isTask() bool {
	var execution struct {
		TaskSupport string `json:"taskSupport"`
	}
	_ = json.Unmarshal(d["execution"], &execution)
	return execution.TaskSupport == "required"
}

// TaskTools returns the names, a stranger's texts, of the tools in a tools/list that answer by
// tasks alone. [NewTools] leaves them out.
func TaskTools(listed []json.RawMessage) (names []string) {
	for _, raw := range listed {
		if d, err := define(raw); err == nil && d.isTask() {
			names = append(names, d.name())
		}
	}
	return names
}

// wireName is the names of tools that need no renaming.
var wireName = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

// NewTool reads an entry of tools/list and returns it with its word, which is the operation's
// name after the kind. The word is "" if the name on the wire has none of its own, so that the
// operator has to choose one.
func NewTool(raw json.RawMessage) (word string, t *Tool, err error) {
	d, err := define(raw)
	if err != nil {
		return "", nil, err
	}
	t = &Tool{Input: json.RawMessage(`{"type":"object"}`)}
	var claims struct {
		ReadOnly    *bool `json:"readOnlyHint"`
		Idempotent  *bool `json:"idempotentHint"`
		Destructive *bool `json:"destructiveHint"`
		OpenWorld   *bool `json:"openWorldHint"`
	}
	for key, into := range map[string]any{
		"name": &t.Tool, "title": &t.Title, "description": &t.Description, "inputSchema": &t.Input, "outputSchema": &t.Output, "annotations": &claims,
	} {
		if value, ok := d[key]; ok && json.Unmarshal(value, into) != nil {
			return "", nil, fmt.Errorf("its %s is of another type than MCP says", key)
		}
	}
	if t.Tool == "" || len(t.Tool) > maxName {
		return "", nil, fmt.Errorf("its name is empty or has more than %d bytes", maxName)
	}
	t.Claims = Hints(claims)
	for _, schema := range []*json.RawMessage{&t.Input, &t.Output} {
		if string(*schema) == "null" {
			*schema = nil
		}
		if *schema, err = compact(*schema); err != nil {
			return "", nil, err
		}
	}
	if t.Params, err = paramWords(t.Input); err != nil {
		return "", nil, err
	}
	if t.Hash, err = d.hash(); err != nil {
		return "", nil, err
	}
	if wireName.MatchString(t.Tool) {
		word = wordOf(t.Tool)
	}
	return word, t, nil
}

// maxName bounds a name on the wire, in bytes.
const maxName = 256

func compact(raw json.RawMessage) (json.RawMessage, error) {
	if raw == nil {
		return nil, nil
	}
	if raw[0] != '{' {
		return nil, errors.New("its schema isn't an object")
	}
	var b bytes.Buffer
	err := json.Compact(&b, raw)
	return b.Bytes(), err
}

var otherRuns = lazyregexp.New(`[^a-z0-9]+`)

// wordOf returns the word for a name on the wire: lower case, with one underscore for each run
// of other characters, and a letter first.
func wordOf(name string) string {
	word := strings.TrimLeft(otherRuns.ReplaceAllString(strings.ToLower(name), "_"), "_")
	if word == "" || word[0] < 'a' || word == "ro" {
		word = "t_" + word
	}
	return word[:min(len(word), 64)]
}

// paramWords returns the properties of a schema of arguments whose names the language takes
// for itself, by the words that stand for them.
func paramWords(schema json.RawMessage) (map[string]string, error) {
	properties, err := propertiesOf(schema)
	if err != nil {
		return nil, err
	}
	var words map[string]string
	for _, reserved := range []string{"", "in"} {
		if _, ok := properties[reserved]; !ok {
			continue
		}
		word := reserved + "_"
		for properties[word] != nil {
			word += "_"
		}
		if words == nil {
			words = map[string]string{}
		}
		words[word] = reserved
		properties[word] = properties[reserved]
	}
	return words, nil
}

// propertiesOf returns the properties of an object's schema.
func propertiesOf(schema json.RawMessage) (map[string]json.RawMessage, error) {
	var members, properties map[string]json.RawMessage // a struct would have them by another spelling, too
	err := json.Unmarshal(schema, &members)
	if list, ok := members["properties"]; ok && err == nil {
		err = json.Unmarshal(list, &properties)
	}
	if err != nil {
		return nil, errors.New("the properties of its schema aren't an object")
	}
	return properties, nil
}

// isWord tells the words of operations. One is an option in a capability's text.
func isWord(s string) bool { return opWord.MatchString(s) && s != "ro" }

var opWord = lazyregexp.New(`^[a-z][a-z0-9_]{0,63}$`)

// NewTools reads a whole tools/list. rename gives words to names on the wire. It refuses a list
// in which two tools have one name or one word, and names that need a word of the operator's.
func NewTools(listed []json.RawMessage, rename map[string]string) (map[string]*Tool, error) {
	tools, names := map[string]*Tool{}, map[string]bool{}
	var refused []error
	for i, raw := range listed {
		if d, err := define(raw); err == nil && d.isTask() {
			continue
		}
		word, t, err := NewTool(raw)
		if err != nil {
			refused = append(refused, fmt.Errorf("tool %d of the list: %w", i+1, err))
			continue
		}
		shown := lock.Shown(t.Tool, 80)
		if chosen, ok := rename[t.Tool]; ok {
			word = chosen
		}
		switch was := tools[word]; {
		case names[t.Tool]:
			refused = append(refused, fmt.Errorf("the list has two tools called %s", shown))
		case !isWord(word):
			refused = append(refused, fmt.Errorf("the tool %s has no name of its own here: give it one with --rename '%s=WORD', lower-case letters, digits and underscores", shown, shown))
		case was != nil:
			refused = append(refused, fmt.Errorf("the tools %s and %s are both %s: rename one with --rename '%s=%s_2'", lock.Shown(was.Tool, 80), shown, word, shown, word))
		default:
			tools[word] = t
		}
		names[t.Tool] = true
	}
	for _, name := range slices.Sorted(maps.Keys(rename)) {
		if !names[name] {
			refused = append(refused, fmt.Errorf("--rename %s: the server has no such tool", lock.Shown(name, 80)))
		}
	}
	return tools, errors.Join(refused...)
}

// A Difference is how what a server lists now differs from what was accepted. A tool that
// isn't in it is as it was accepted.
type Difference struct {
	// Held is the tools that may not be called until the operator accepts the change, by word.
	Held map[string]Held
	// Gone is the words of the tools that aren't listed any more.
	Gone []string
	// Added is the tools that don't exist for programs, in the order of the list.
	Added []Added
}

// Held is why a tool is held.
type Held struct {
	Words bool // only title and description differ
	Twice bool // the list has the name more than once
	Now   json.RawMessage
}

// An Added tool is one that was never accepted.
type Added struct {
	Tool    string // name on the wire, a stranger's text
	Renamed string // the word of the tool that is gone and differs in its name alone; "": none
}

// Same reports whether nothing differs.
func (d *Difference) Same() bool { return len(d.Held)+len(d.Gone)+len(d.Added) == 0 }

// Compare holds a server's list of tools to what was accepted. What can't be read is no tool:
// one that was accepted is gone then.
func Compare(accepted *Server, listed []json.RawMessage) Difference {
	d := Difference{Held: map[string]Held{}}
	words := make(map[string]string, len(accepted.Tools)) // by name on the wire
	for word, t := range accepted.Tools {
		words[t.Tool] = word
	}
	seen := map[string]bool{}
	var added []definition
	for _, raw := range listed {
		now, err := define(raw)
		name := now.name()
		if err != nil || name == "" {
			continue
		}
		word, known := words[name]
		t := accepted.Tools[word]
		switch {
		case !known && now.isTask(): // it is left out, whenever it comes
		case !known:
			added = append(added, now)
			d.Added = append(d.Added, Added{Tool: name})
		case seen[word]:
			d.Held[word] = Held{Twice: true, Now: raw}
		case !now.is(t.Hash):
			words := now.with("title", t.Title).with("description", t.Description)
			d.Held[word] = Held{Words: words.is(t.Hash), Now: raw}
		}
		seen[word] = known
	}
	for _, word := range slices.Sorted(maps.Keys(accepted.Tools)) {
		if seen[word] {
			continue
		}
		d.Gone = append(d.Gone, word)
		t := accepted.Tools[word]
		for i, now := range added {
			if d.Added[i].Renamed == "" && now.with("name", t.Tool).is(t.Hash) {
				d.Added[i].Renamed = word
				break
			}
		}
	}
	return d
}

// is reports whether the definition has a hash.
func (d definition) is(want string) bool {
	got, err := d.hash()
	return err == nil && got == want
}

// A schema holds arguments to a JSON Schema, as they are sent.
type schema struct {
	raw    json.RawMessage
	params map[string]string // word to wire name, where they differ

	// The rules are read when they are first asked for: few of a server's tools are called.
	once  sync.Once
	rules *check.Foreign
	wrong error
}

// Check is [caps.Schema]'s.
func (s *schema) Check(args *value.Record) *fault.Fault {
	text, err := Arguments(args, s.params)
	if err != nil {
		return &fault.Fault{Kind: fault.InvalidRequest, Message: err.Error()}
	}
	s.once.Do(func() {
		if s.rules == nil {
			s.rules, s.wrong = check.FromSchema(s.raw, check.MaxAnswer)
		}
	})
	if s.wrong != nil {
		return &fault.Fault{Kind: fault.InvalidRequest, Message: s.wrong.Error()}
	}
	return s.rules.Check(text)
}

// Arguments writes a call's arguments as they are sent: as JSON, exactly, under their names on
// the wire. params is those of [Tool.Params].
func Arguments(args *value.Record, params map[string]string) (json.RawMessage, error) {
	sent := slices.Clone(args.Fields)
	for i, f := range sent {
		if wire, ok := params[f.Key]; ok {
			sent[i].Key = wire
		}
	}
	text, odd := pifjson.Append(nil, &value.Record{Fields: sent})
	if odd != nil {
		return nil, fmt.Errorf("JSON has no form for a %s", odd.Type())
	}
	return text, nil
}

// Narrow returns what the operator permits of the arguments of each operation, by its name.
// An argument for which a schema lists values has to be there; any other may be left out.
func (s *Server) Narrow(name string, policy *caps.ServerPolicy) (map[string]caps.Schema, error) {
	var narrow map[string]caps.Schema
	for _, word := range slices.Sorted(maps.Keys(policy.Tools)) {
		said, t := policy.Tools[word], s.Tools[word]
		if said == nil || said.Input == nil || t == nil {
			continue
		}
		rules, err := t.restrict(said.Input)
		if err != nil {
			return nil, fmt.Errorf("what the policy permits of %s.%s: %w", name, word, err)
		}
		if narrow == nil {
			narrow = map[string]caps.Schema{}
		}
		narrow[name+"."+word] = &schema{rules: rules, params: t.Params}
	}
	return narrow, nil
}

// restrict reads the operator's schema of a tool's arguments. It refuses one that speaks of an
// argument that isn't there, since that would restrict nothing.
func (t *Tool) restrict(raw json.RawMessage) (*check.Foreign, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(raw, &top); err != nil || top == nil {
		return nil, fmt.Errorf(`it isn't a schema, such as {"properties":{"owner":{"const":"acme"}}}`)
	}
	said, err := propertiesOf(raw)
	if err != nil {
		return nil, err
	}
	var required []string
	if list, ok := top["required"]; ok && json.Unmarshal(list, &required) != nil {
		return nil, fmt.Errorf(`"required" is a list of names`)
	}
	known, err := propertiesOf(t.Input)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		var values struct{ Const, Enum json.RawMessage }
		_ = json.Unmarshal(said[name], &values)
		if values.Const != nil || values.Enum != nil {
			required = append(required, name)
		}
		if known[name] == nil {
			return nil, fmt.Errorf("the tool has no argument %s", lock.Shown(name, 60))
		}
	}
	if required != nil {
		slices.Sort(required)
		top["required"], _ = json.Marshal(slices.Compact(required)) // strings have JSON
	}
	whole, err := json.Marshal(top)
	if err != nil {
		return nil, err
	}
	return check.Restrict(whole)
}
