package mcplock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

// A Tool is one tool of a server as the operator accepted it.
type Tool struct {
	Tool        string          `json:"tool"` // its name on the wire
	Hash        string          `json:"hash"` // of its definition; see [HashTool]
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

// HashTool returns the hash of a tool's definition: SHA-256 over the canonical JSON of the
// members that say what the tool is. Key order and white space don't matter, unknown members
// below those count, and an absent member isn't an empty one.
func HashTool(raw json.RawMessage) (string, error) {
	d, err := define(raw)
	if err != nil {
		return "", err
	}
	return d.hash()
}

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
var wireName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

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

var otherRuns = regexp.MustCompile(`[^a-z0-9]+`)

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
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, errors.New("the properties of its schema aren't an object")
	}
	return s.Properties, nil
}

// isWord tells the words of operations. One is an option in a capability's text.
func isWord(s string) bool { return opWord.MatchString(s) && s != "ro" }

var opWord = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

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
