package engine

import (
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestChanging: an effect may change something where its verb does, where nobody knows, and where
// an argument that isn't in the event says its verb.
func TestChanging(t *testing.T) {
	kinds, err := caps.NewKinds(&caps.Manifest{
		Kind: "web", Version: "1", Doc: "pages", Algebra: caps.Segments,
		Verbs: []caps.Verb{{Name: "get", Flags: caps.Flags{ReadOnly: true}}, {Name: "post"}},
		Operations: []caps.Operation{{Name: "web.send", Doc: "sends", Verb: "get", VerbParam: "method", Result: "any", Params: []caps.Param{
			{Name: "url", Doc: "where", Type: "string", Main: true, Designates: true}, {Name: "method", Doc: "how", Type: "string", Optional: true},
		}}},
	})
	must.NoError(t, err)
	for data, want := range map[string]bool{
		`{"op":"web.send","args":{"url":"a"}}`:                 false,
		`{"op":"web.send","args":{"url":"a","method":"POST"}}`: true,
		`{"op":"web.send","args_hash":"00"}`:                   true,
		`{"op":"web.send","args":{"url":"a","method":"BREW"}}`: true,
		`{"op":"gone.by","args":{}}`:                           true,
	} {
		if got := changing.has(kinds, &journal.Event{Data: []byte(data)}); got != want {
			t.Errorf("%s: %v", data, got)
		}
	}
}
