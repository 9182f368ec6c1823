package registry

import (
	"encoding/json"
	"fmt"
	"slices"
)

var (
	documentKeys = []string{"format", "tools", "bound_versions"}
	entryKeys    = []string{
		"name", "version", "hash", "description", "capabilities", "bound", "examples", "as", "input_schema", "code", "code_text",
	}
)

// ambiguous refuses a document that says one thing to this reader and another to
// those that a person would look at it with: with a key in other letters, such as
// "Code", that the decoder takes for the same, or with code twice.
func ambiguous(text []byte) error {
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
			if e["code"] != nil && e["code_text"] != nil {
				return fmt.Errorf("the tool %s has both code and code_text", e["name"])
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
