package registry

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
)

var (
	documentKeys = []string{"format", "tools", "bound_versions"}
	entryKeys    = []string{
		"name", "version", "hash", "description", "capabilities", "bound", "group", "examples", "as", "input_schema", "code", "code_text", "source", "form", "certificate",
	}
)

// exampleKeys are those of an example, and effectKeys of an effect in one.
var (
	exampleKeys = []string{"as", "input", "expect", "error", "effects"}
	effectKeys  = []string{"op", "args", "value", "error", "message"}
)

// ambiguous refuses a document that says one thing to this reader and another to
// those that a person would look at it with: with a key twice, of which this one
// takes the last, with one in other letters, such as "Code", that the decoder takes
// for the same, or with code in both its forms.
func ambiguous(text []byte) error {
	if err := statefile.UniqueKeys(text, false, 0); err != nil {
		return err
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(text, &doc); err != nil {
		return err
	}
	if err := spelled(doc, documentKeys); err != nil {
		return err
	}
	for _, list := range []string{"tools", "bound_versions"} {
		var entries []map[string]json.RawMessage
		if doc[list] == nil {
			continue
		}
		if err := json.Unmarshal(doc[list], &entries); err != nil {
			return err
		}
		for _, e := range entries {
			if err := spelled(e, entryKeys); err != nil {
				return err
			}
			if err := spelledExamples(e["examples"]); err != nil {
				return err
			}
			if e["code"] != nil && e["code_text"] != nil {
				return fmt.Errorf("the tool %s has both code and code_text", e["name"])
			}
		}
	}
	return nil
}

func spelledExamples(list json.RawMessage) error {
	if list == nil {
		return nil
	}
	var examples []map[string]json.RawMessage
	if err := json.Unmarshal(list, &examples); err != nil {
		return err
	}
	for _, e := range examples {
		if err := spelled(e, exampleKeys); err != nil {
			return err
		}
		var effects []map[string]json.RawMessage
		if e["effects"] == nil {
			continue
		}
		if err := json.Unmarshal(e["effects"], &effects); err != nil {
			return err
		}
		for _, effect := range effects {
			if err := spelled(effect, effectKeys); err != nil {
				return err
			}
		}
	}
	return nil
}

func spelled(object map[string]json.RawMessage, keys []string) error {
	for key := range object {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("unknown field %q", key)
		}
	}
	return nil
}
