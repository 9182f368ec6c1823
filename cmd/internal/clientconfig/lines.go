package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v4"

	pifjson "github.com/mcp-pif/mcp-pif/core/json"
)

// TOML and YAML are edited by lines: a section or a block is replaced, all other
// lines stay. What that does is checked by reading the result.

func parseTOML(text []byte) (map[string]any, error) {
	tree := map[string]any{}
	return tree, toml.Unmarshal(text, &tree)
}

func setTOML(text []byte, members []string, name string, entry json.RawMessage) ([]byte, error) {
	path := append(members[:len(members):len(members)], name)
	lines := splitLines(text)
	start, end, ours := -1, len(lines), false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "[") {
			header, err := parseTOML([]byte(line))
			if err != nil {
				continue // a line of a list
			}
			if ours = below(header, path) != nil; ours && start < 0 {
				start = i
			} else if !ours && start >= 0 {
				end = i
				break
			}
		}
	}
	var section []string
	if entry != nil {
		section = []string{"[" + strings.Join(path, ".") + "]\n"}
		for _, m := range ordered(entry) {
			section = append(section, m.key+" = "+inline(m.value, " = ")+"\n")
		}
	}
	if start < 0 {
		if n := len(lines); n > 0 && entry != nil {
			if !strings.HasSuffix(lines[n-1], "\n") {
				lines[n-1] += "\n"
			}
			section = append([]string{"\n"}, section...)
		}
		return join(append(lines, section...)), nil
	}
	// Blank lines and comments at its end belong to what follows.
	for end > start+1 && (strings.TrimSpace(lines[end-1]) == "" || strings.HasPrefix(strings.TrimSpace(lines[end-1]), "#")) {
		end--
	}
	return join(slices.Replace(lines, start, end, section...)), nil
}

func parseYAML(text []byte) (map[string]any, error) {
	tree := map[string]any{}
	return tree, yaml.Unmarshal(text, &tree)
}

// emptyYAML is a key whose value is written on its line and is empty.
var emptyYAML = regexp.MustCompile(`^([^\s:]+:)\s*(\{\s*\}|~|null)?(\s*(#.*)?)$`)

func setYAML(text []byte, members []string, name string, entry json.RawMessage) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	lines := splitLines(text)
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		lines[n-1] += "\n"
	}
	block := func(indent int) (block []string) {
		if entry == nil {
			return nil
		}
		space := strings.Repeat(" ", indent)
		block = []string{space + name + ":\n"}
		for _, m := range ordered(entry) {
			block = append(block, space+"  "+m.key+": "+inline(m.value, ": ")+"\n")
		}
		return block
	}
	var key, servers *yaml.Node
	if len(document.Content) > 0 {
		key, servers = member(document.Content[0], members[0])
	}
	if key == nil {
		if entry == nil {
			return text, nil
		}
		return join(append(append(lines, members[0]+":\n"), block(2)...)), nil
	}
	line := strings.TrimRight(lines[key.Line-1], "\r\n")
	if servers.Kind != yaml.MappingNode || len(servers.Content) == 0 {
		parts := emptyYAML.FindStringSubmatch(line)
		if parts == nil {
			return nil, errors.New("the servers are not a block")
		}
		lines[key.Line-1] = parts[1] + parts[3] + "\n"
		return join(slices.Insert(lines, key.Line, block(2)...)), nil
	}
	if servers.Style&yaml.FlowStyle != 0 {
		return nil, errors.New("the servers are in braces")
	}
	indent := servers.Content[0].Column - 1
	found, _ := member(servers, name)
	if found == nil {
		return join(slices.Insert(lines, key.Line, block(indent)...)), nil
	}
	start := found.Line - 1
	end := start + 1
	for end < len(lines) && (strings.TrimSpace(lines[end]) == "" || len(lines[end])-len(strings.TrimLeft(lines[end], " ")) > indent) {
		end++
	}
	for strings.TrimSpace(lines[end-1]) == "" {
		end--
	}
	if entry == nil && len(servers.Content) == 2 {
		lines[key.Line-1] = line + " {}\n"
	}
	return join(slices.Replace(lines, start, end, block(indent)...)), nil
}

// member returns a key of a mapping and its value; nil: it has none.
func member(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

func splitLines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool { return line == "" })
}

func join(lines []string) []byte { return []byte(strings.Join(lines, "")) }

type pair struct {
	key   string
	value hujson.Value
}

// ordered returns the members of an object as they are written.
func ordered(entry json.RawMessage) (all []pair) {
	v, err := hujson.Parse(entry)
	object, ok := v.Value.(*hujson.Object)
	if err != nil || !ok {
		return nil
	}
	for _, m := range object.Members {
		name := m.Name.Value.(hujson.Literal).String()
		if !bareKey.MatchString(name) {
			name = string(pifjson.MustEncode(name))
		}
		all = append(all, pair{name, m.Value})
	}
	return all
}

var bareKey = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// inline returns a value on one line: JSON, but for what is between the key and the
// value of an object.
func inline(v hujson.Value, between string) string {
	if _, ok := v.Value.(*hujson.Object); !ok {
		return string(bytes.TrimSpace(v.Pack()))
	}
	var members []string
	for _, m := range ordered(v.Pack()) {
		members = append(members, m.key+between+inline(m.value, between))
	}
	return "{" + strings.Join(members, ", ") + "}"
}
