package clients

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// What there is around the tools: resources, prompts, completion.

// named is a tool of several parameters, called with an argument for each.
func (t traveller) named() {
	t.Helper()
	t.says("evolve", `{"name":"cost","code":"(price, count) => price * count","description":"what so many cost"}`, `"cost"`)
	t.gives("cost", `{"price":12,"count":12}`, "144")
}

// contents is what resources/read gives.
type contents struct {
	Contents []struct{ URI, Text string }
}

// reads reads a resource that holds these words.
func (t traveller) reads(uri string, words ...string) {
	t.Helper()
	params, _ := json.Marshal(map[string]string{"uri": uri})
	var c contents
	t.ask(t.T, "resources/read", string(params), &c)
	if len(c.Contents) != 1 || c.Contents[0].URI != uri {
		t.Fatalf("%s holds %+v", uri, c)
	}
	for _, w := range words {
		if !strings.Contains(c.Contents[0].Text, w) {
			t.Fatalf("%s lacks %q: %.300s", uri, w, c.Contents[0].Text)
		}
	}
}

// read is the resources: all of each kind.
func (t traveller) read() {
	t.Helper()
	var list struct{ Resources []struct{ URI string } }
	t.ask(t.T, "resources/list", `{}`, &list)
	var uris []string
	for _, r := range list.Resources {
		uris = append(uris, r.URI)
	}
	for _, uri := range []string{"pif://language", "pif://capabilities", "pif://tools/square"} {
		if !slices.Contains(uris, uri) {
			t.Fatalf("%s isn't among %v", uri, uris)
		}
	}
	var templates struct {
		ResourceTemplates []struct{ URITemplate string }
	}
	if t.ask(t.T, "resources/templates/list", `{}`, &templates) {
		var found []string
		for _, r := range templates.ResourceTemplates {
			found = append(found, r.URITemplate)
		}
		if !slices.Contains(found, "pif://tools/{name}") || !slices.Contains(found, "pif://journal/{run}") {
			t.Fatalf("the templates are %v", found)
		}
	}
	t.reads("pif://language", "evolve makes a function a tool", "fold")
	t.reads("pif://tools/square", "n times n", `"version":`)
	t.reads("pif://capabilities", "fs:./sandbox", "fs.read")
	var events []struct{ Run string }
	r := t.says("journal", `{"kind":"run.ended","limit":1}`)
	if err := json.Unmarshal(r.StructuredContent["events"], &events); err != nil || len(events) == 0 || events[0].Run == "" {
		t.Fatalf("no run: %v: %s", err, r.StructuredContent["events"])
	}
	t.reads("pif://journal/"+events[0].Run, "run.started", "run.ended", events[0].Run)
}

// prompted is the prompts, and what completes their arguments.
func (t traveller) prompted() {
	t.Helper()
	var list struct{ Prompts []struct{ Name string } }
	if t.ask(t.T, "prompts/list", `{}`, &list) && (len(list.Prompts) < 4 || list.Prompts[0].Name != "make_tool") {
		t.Fatalf("the prompts are %+v", list)
	}
	var got struct {
		Messages []struct {
			Role    string
			Content struct{ Type, Text string }
		}
	}
	t.ask(t.T, "prompts/get", `{"name":"make_tool","arguments":{"task":"count the vowels"}}`, &got)
	if len(got.Messages) != 1 || got.Messages[0].Role != "user" || !strings.Contains(got.Messages[0].Content.Text, "count the vowels") {
		t.Fatalf("the prompt is %+v", got)
	}
	for _, ref := range []string{`{"type":"ref/resource","uri":"pif://tools/{name}"}`, `{"type":"ref/prompt","name":"repair_tool"}`} {
		var done struct{ Completion struct{ Values []string } }
		if t.ask(t.T, "completion/complete", `{"ref":`+ref+`,"argument":{"name":"name","value":"squ"}}`, &done) && !slices.Equal(done.Completion.Values, []string{"square"}) {
			t.Fatalf("squ is completed to %v", done.Completion.Values)
		}
	}
}

// watched is a tool that changes, and a client that is told. It may change again:
// clients begin to listen some time after they have asked for it.
func (t traveller) watched() {
	t.Helper()
	if !t.watch(t.T, "pif://tools/cost") {
		return
	}
	for range 600 {
		t.says("evolve", `{"name":"cost","code":"(price, count) => count * price"}`, `"cost"`)
		for range 20 {
			if t.updates(t.T) > 0 {
				return
			}
			time.Sleep(25 * time.Millisecond)
		}
	}
	t.Fatal("the client wasn't told that a tool changed that it watches")
}
