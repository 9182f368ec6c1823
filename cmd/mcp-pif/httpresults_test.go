//go:build unix

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestHTTPResults: a large result is read on by whose it is, in a later request and by
// another of its tokens, and by no other principal, who is told what is told of one that
// never was.
func TestHTTPResults(t *testing.T) {
	s := startPolicied(t, t.TempDir(), `{}`)
	const unknown = "AAAAAAAAAAAAAAAAAAAAAAAAAA"
	for _, version := range eras {
		ann, bob := s.connect(annToken, version), s.connect(bobToken, version)
		text, failed := ann.asks("run", map[string]any{"code": `s => "ann's: " ++ s ++ "end"`, "input": strings.Repeat("long", 100_000)})
		id := strings.TrimPrefix(regexp.MustCompile(`pif://results/[A-Z2-7]+`).FindString(text), "pif://results/")
		if failed || id == "" {
			t.Fatalf("%s: no handle: %.300s", version, text)
		}
		uri := "pif://results/" + id
		for who, c := range map[string]*webClient{"ann": ann, "ann by her other token": s.connect(annsOther, version)} {
			res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil || !strings.HasPrefix(res.Contents[0].Text, `"ann's: long`) {
				t.Errorf("%s: %s reads %+.300v, %v", version, who, res, err)
			}
			if text, failed := c.asks("run", map[string]any{"result": id, "from": 400_000}); failed || !strings.Contains(text, "end") {
				t.Errorf("%s: %s reads on: %.300s", version, who, text)
			}
		}
		var said [2]string
		for i, handle := range []string{id, unknown} {
			res, err := bob.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "pif://results/" + handle})
			if err == nil {
				t.Fatalf("%s: bob reads %+.300v", version, res)
			}
			text, failed := bob.asks("run", map[string]any{"result": handle})
			if !failed {
				t.Fatalf("%s: bob reads on: %.300s", version, text)
			}
			said[i] = strings.ReplaceAll(err.Error()+text, handle, "ID")
		}
		if said[0] != said[1] {
			t.Errorf("%s: of ann's bob is told %s, and of none %s", version, said[0], said[1])
		}
		if _, err := ann.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil {
			t.Errorf("%s: after bob's attempts ann's is gone: %v", version, err)
		}
	}
	s.stop()
}
