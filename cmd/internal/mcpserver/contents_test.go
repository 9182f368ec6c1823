package mcpserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// shownContents is content items in a line.
func shownContents(t testing.TB, list []mcp.Content) string {
	t.Helper()
	var all []string
	for _, c := range list {
		switch c := c.(type) {
		case *mcp.TextContent:
			all = append(all, "text "+c.Text)
		case *mcp.ImageContent:
			all = append(all, fmt.Sprintf("image %s %d", c.MIMEType, len(c.Data)))
		case *mcp.AudioContent:
			all = append(all, fmt.Sprintf("audio %s %d", c.MIMEType, len(c.Data)))
		case *mcp.EmbeddedResource:
			all = append(all, fmt.Sprintf("resource %s %s%s", c.Resource.URI, c.Resource.Text, c.Resource.Blob))
		default:
			t.Errorf("%T", c)
		}
	}
	return strings.Join(all, ", ")
}

// TestContents: a tool answers with content items, images of any size among them, where
// its result is a record of them and nothing else.
func TestContents(t *testing.T) {
	w := newRecordedWorld(t, 1)
	cs := session(t, w.server, nil)
	large := base64.StdEncoding.EncodeToString(make([]byte, 60_000))
	for code, want := range map[string]string{
		`u => {content: [{type: "text", text: "a"}, {type: "image", data: "aGk=", mimeType: "image/png"}]}`: "text a, image image/png 2",
		`u => {content: [{type: "audio", data: "aGk=", mimeType: "audio/wav"}]}`:                            "audio audio/wav 2",
		`u => {content: [{type: "resource", resource: {uri: "a://b", text: "x"}}]}`:                         "resource a://b x",
		`u => {content: [{type: "resource", resource: {uri: "a://b", mimeType: "a/b", blob: "aGk="}}]}`:     "resource a://b hi",
		`u => {content: [{type: "image", data: "` + large + `", mimeType: "image/png"}]}`:                   "image image/png 60000",
		`u => {content: [{type: "image", data: "not base64", mimeType: "image/png"}]}`:                      `text {"content"`,
		`u => {content: [{type: "image", data: "aGk=", mimeType: "text/plain"}]}`:                           `text {"content"`,
		`u => {content: [{type: "text", text: "a", more: 1}]}`:                                              `text {"content"`,
		`u => {content: [{type: "text", text: "a"}], more: 1}`:                                              `text {"content"`,
		`u => {content: [{type: "resource", resource: {uri: "a://b", text: "x", blob: "aGk="}}]}`:           `text {"content"`,
		`u => {content: []}`: `text {"content":[]}`,
		`u => {content: [{type: "text", text: "a"}, "b"]}`: `text {"content"`,
	} {
		w.evolve("t", code)
		for _, c := range [][2]string{{"t", `{}`}, {"run", `{"tool":"t"}`}} {
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: c[0], Arguments: json.RawMessage(c[1])})
			if err != nil {
				t.Fatal(err)
			}
			if got := shownContents(t, res.Content); !strings.HasPrefix(got, want) {
				t.Errorf("%.80s: %.80s, expected %s", code, got, want)
			}
			if _, v := w.replay(w.record(w.newest())); v.Verdict != run.Identical {
				t.Errorf("%.80s: the replay: %+v", code, v)
			}
		}
	}
	// Inline code and what isn't a tool's own stays JSON.
	if a := must(t, w.server, "run", `{"code":"{content: [{type: \"text\", text: \"a\"}]}"}`); a.Contents != nil {
		t.Errorf("inline code answered with %v", a.Contents)
	}
}

// TestOwnContents: prompts have messages of other content and described arguments, and
// resources have contents with a type and an address of their own.
func TestOwnContents(t *testing.T) {
	s := New(Options{})
	cs := session(t, s, nil)
	for _, arguments := range []string{
		`{"name":"p","as":"prompt","code":"a => [{role: \"user\", text: a.topic ++ get(a, \"tone\", \"!\")}, {role: \"assistant\", content: {type: \"image\", data: \"aGk=\", mimeType: \"image/png\"}}]","input_schema":{"type":"object","properties":{"topic":{"type":"string","description":"what about","maxLength":5},"tone":{"type":"string","description":"how"}},"required":["topic"]}}`,
		`{"name":"one","as":"prompt","code":"topic => topic ++ \"?\"","input_schema":{"type":"object","properties":{"input":{"type":"string","description":"what about"}}}}`,
		`{"name":"csv","as":"resource","code":"{mimeType: \"text/csv\", text: \"a,b\"}"}`,
		`{"name":"both","as":"resource","code":"{contents: [{uri: \"data://x\", mimeType: \"image/png\", blob: \"aGk=\"}, {text: \"t\"}]}"}`,
		`{"name":"plain","as":"resource","code":"{text: \"t\"}"}`,
	} {
		must(t, s, "evolve", arguments)
	}
	list, err := cs.ListPrompts(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var arguments []string
	for _, p := range list.Prompts[4:] {
		for _, a := range p.Arguments {
			arguments = append(arguments, fmt.Sprintf("%s %s: %s %v", p.Name, a.Name, a.Description, a.Required))
		}
	}
	if got, want := strings.Join(arguments, ", "), "one topic: what about true, p tone: how false, p topic: what about true"; got != want {
		t.Errorf("the arguments are %s, expected %s", got, want)
	}
	res, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p", Arguments: map[string]string{"topic": "cats"}})
	if err != nil || len(res.Messages) != 2 || shownContents(t, []mcp.Content{res.Messages[0].Content, res.Messages[1].Content}) != "text cats!, image image/png 2" {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err = cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p", Arguments: map[string]string{"topic": "too long"}}); err == nil || !strings.Contains(err.Error(), "declared") {
		t.Errorf("an argument longer than is declared: %v", err)
	}
	for uri, want := range map[string]string{
		"pif://published/csv":   `[{"uri":"pif://published/csv","mimeType":"text/csv","text":"a,b"}]`,
		"pif://published/both":  `[{"uri":"data://x","mimeType":"image/png","blob":"aGk="},{"uri":"pif://published/both","mimeType":"text/plain","text":"t"}]`,
		"pif://published/plain": `[{"uri":"pif://published/plain","mimeType":"application/json","text":"{\"text\":\"t\"}"}]`,
	} {
		res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(wire.Encode(res.Contents)); got != want {
			t.Errorf("%s: %s, expected %s", uri, got, want)
		}
	}
}
