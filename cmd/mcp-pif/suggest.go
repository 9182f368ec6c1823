package main

import (
	"strings"

	"github.com/mcp-pif/mcp-pif/core/prim"
)

// closest returns the name that a word was probably meant to be: one that is spelt
// nearly so, or the first that begins so; "" if there is none.
func closest(word string, names []string) string {
	if near := prim.Closest(word, names); near != "" || word == "" {
		return near
	}
	for _, name := range names {
		if strings.HasPrefix(name, word) {
			return name
		}
	}
	return ""
}

// didYouMean asks whether a name was meant; "" if there is none.
func didYouMean(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}
