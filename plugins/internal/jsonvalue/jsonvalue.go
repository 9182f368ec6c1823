// Package jsonvalue reads and writes values of the language as JSON for plugins, as the
// language's parse_json and to_json do: package core/json with a plugin's bound of
// nesting.
//
// It refuses a duplicate key, half of a surrogate pair and a number of more than 4,096
// digits. The text that is read has to be UTF-8, which the caller has checked.
package jsonvalue

import (
	"fmt"

	"github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// Deepest is how deep JSON that is read may be nested.
const Deepest = 500

// Write writes a value as to_json does, and refuses what JSON has no form for, with its
// type in the error.
func Write(v value.Value) (string, error) {
	text, odd := json.Append(nil, v)
	if odd != nil {
		return "", fmt.Errorf("json has a %s in it, which JSON has no form for", odd.Type())
	}
	return string(text), nil
}

// Read reads one JSON value and nothing after it. It refuses numbers with exponents of more than
// 16 MiB of digits in all.
func Read(s string) (value.Value, bool) {
	if json.Exponents(s) > value.MaxGrown/2 {
		return nil, false
	}
	v, bad := json.Read(s, Deepest, nil)
	return v, bad == nil
}
