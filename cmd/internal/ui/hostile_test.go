package ui

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
)

// hostile is what a model, a plugin or another server might write; the longest are made here.
var hostile = func() (list []string) {
	text, err := os.ReadFile("testdata/hostile.json")
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		panic(err)
	}
	return append(list, strings.Repeat("long ", 3000), strings.Repeat("W", 15000), strings.Repeat("\n", 3000))
}()

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

// caps60 is JSON as code of PIF has strings: without what its strings don't take.
func caps60(text []byte) []byte {
	return []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(text)))
}

// TestVisible: what hides, acts or turns is written out; all else is as it was.
func TestVisible(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"":                    "",
		"plain é 中 →\n\tx":    "plain é 中 →\n\tx",
		"a\u202eb":            `a\u{202E}b`,
		"\u200b":              `\u{200B}`,
		"a\x00b\rc\x1b":       `a\u{0}b\u{D}c\u{1B}`,
		"x\xff\ufffdy":        `x\xff` + "\ufffdy",
		"a\u0301\u0301\u0301": "a\u0301\u0301" + `\u{301}`,
		"a\u0301b\u0301":      "a\u0301b\u0301",
		"\U000E0041":          `\u{E0041}`,
		"no\u00a0break\u2800": `no\u{A0}break\u{2800}`,
		"שלום":                "שלום",
	} {
		if got := visible(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
