package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/cmd/internal/wait"
	"github.com/mcp-pif/mcp-pif/core/prim"
)

// TestResources: what there is to read can be read in both eras, and every address
// of the list is there, and every template.
func TestResources(t *testing.T) {
	inEras(t, func(t *testing.T, version string) {
		s := New(Options{})
		cs := speaking(t, s, version, nil)
		const odd = "ein Würfel/½?#%"
		ask(t, cs, "evolve", `{"name":"square","code":"n => n * n","description":"squares"}`)
		ask(t, cs, "evolve", `{"name":"square","code":"n => n * n + 0"}`)
		ask(t, cs, "evolve", fmt.Sprintf(`{"name":%q,"code":"n => n * n * n","draft":true}`, odd))
		ask(t, cs, "run", `{"tool":"square","input":3}`)
		var uris []string
		for r, err := range cs.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Title == "" || r.MIMEType == "" || r.Name == "" {
				t.Errorf("%s lacks a name, a title or a type: %+v", r.URI, r)
			}
			if c := readText(t, cs, r.URI); c.MIMEType != r.MIMEType {
				t.Errorf("%s has the type %s, and %s is listed", r.URI, c.MIMEType, r.MIMEType)
			}
			uris = append(uris, r.URI)
		}
		want := []string{"pif://capabilities", "pif://language", "pif://server"}
		for _, g := range prim.Groups {
			want = append(want, "pif://language/"+url.PathEscape(g))
		}
		want = append(want, "pif://tools/"+url.PathEscape(odd), "pif://tools/square")
		if !slices.Equal(uris, want) {
			t.Errorf("listed: %v\nexpected: %v", uris, want)
		}
		var templates []string
		for r, err := range cs.ResourceTemplates(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			templates = append(templates, r.URITemplate)
			if r.Title == "" || r.Description == "" || r.MIMEType == "" {
				t.Errorf("the template %s lacks something: %+v", r.URITemplate, r)
			}
		}
		if len(templates) != len(resourceTemplates) || !slices.IsSorted(templates) {
			t.Errorf("templates: %v", templates)
		}
		for uri, in := range map[string]string{
			"pif://language":                           prim.Card(),
			"pif://language/any%20value":               "type_of",
			"pif://operations/fold":                    "fold (lists)",
			"pif://operations/evolve":                  "Make a tool",
			"pif://tools/square":                       `"version":2`,
			"pif://tools/square/1":                     `"state":"superseded"`,
			"pif://tools/" + url.PathEscape(odd):       `"n => n * n * n"`,
			"pif://journal/" + aRun(t, s):              `"kind":"run.ended"`,
			"pif://journal/" + aRun(t, s) + "?after=1": `"kind":"run.ended"`,
			"pif://capabilities":                       `"grants":[]`,
			"pif://server":                             `"tools":{"ready":`,
		} {
			c := readText(t, cs, uri)
			if !strings.Contains(c.Text, in) {
				t.Errorf("%s lacks %q:\n%.500s", uri, in, c.Text)
			}
			if c.MIMEType == jsonText && !json.Valid([]byte(c.Text)) {
				t.Errorf("%s is no JSON", uri)
			}
		}
		// A retired tool is gone, its versions aren't.
		ask(t, cs, "retire", `{"name":"square"}`)
		if _, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "pif://tools/square"}); err == nil {
			t.Error("a retired tool is there")
		}
		readText(t, cs, "pif://tools/square/2")
	})
}

// aRun is the name of the newest run.
func aRun(t testing.TB, s *Server) string {
	t.Helper()
	runs := s.recentRuns()
	if len(runs) == 0 {
		t.Fatal("no run is on record")
	}
	return runs[0]
}

// TestNoSuchResource: what isn't there, or is no address, is the protocol's error
// for that, with the code of its era, and gets nobody out of a name.
func TestNoSuchResource(t *testing.T) {
	inEras(t, func(t *testing.T, version string) {
		cs := speaking(t, New(Options{}), version, nil)
		ask(t, cs, "evolve", `{"name":"square","code":"n => n * n"}`)
		want := int64(-32602)
		if version < "2026" {
			want = -32002
		}
		for _, uri := range []string{
			"pif://", "pif:///", "pif://nothing", "pif://tools", "pif://tools/", "pif://tools/absent", "pif://tools/square/2",
			"pif://tools/..%2f", "pif://tools/..%2Fsquare", "pif://tools/../tools/square", "pif://tools/./square", "pif://tools/square/",
			"pif://tools/square/..", "pif://tools/%73quare%2e", "pif://tools//square", "pif://tools/square/1/2", "pif://tools/square/01", "pif://tools/square/+1",
			"pif://tools/square/-1", "pif://tools/square/1e0", "pif://tools/square/99999999999999999999", "pif://tools/%", "pif://tools/%zz", "pif://tools/%ff%fe",
			"pif://tools/square%00", "pif://tools/square?x=1", "pif://tools/square#f", "pif://tools/" + strings.Repeat("a", 5000), "pif://tools/" + strings.Repeat("%2e", 2000),
			"pif://tools/run", "pif://tools/\u202esquare", "pif://tools/squ\u0430re", "pif://tools/\x01\x7f\"\\", "PIF://tools/square", "pif:tools/square",
			"pif://language/absent", "pif://language/lists/x", "pif://language/..%2fcapabilities", "pif://operations/square", "pif://operations/",
			"pif://journal/", "pif://journal/absent", "pif://journal/absent?after=x", "pif://journal/..%2f..%2fetc%2fpasswd", "pif://results/", "pif://results/absent",
			"pif://results/absent?from=-1", "pif://published/square", "pif://published/absent", "pif://capabilities/x", "file:///etc/passwd", "http://127.0.0.1/", "",
		} {
			_, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err == nil {
				t.Errorf("%.80q can be read", uri)
				continue
			}
			if got := code(err); got != want {
				t.Errorf("%.80q: %d %v, expected %d", uri, got, err, want)
			}
			var e *jsonrpc.Error
			var data struct{ URI string }
			if errors.As(err, &e) && strings.HasPrefix(uri, scheme) {
				if json.Unmarshal(e.Data, &data) != nil || data.URI == "" || len(data.URI) > mostURI+len("…") || len(data.URI) < mostURI && data.URI != uri {
					t.Errorf("%.80q: the error says %.200s", uri, e.Data)
				}
			}
		}
		if text, _ := ask(t, cs, "square", `{"input":3}`); text != "9" {
			t.Errorf("%s after all that", text)
		}
	})
}

// TestWatching: who watches a tool, or what is granted, hears when it is another,
// and nobody hears of what he doesn't watch.
func TestWatching(t *testing.T) {
	inEras(t, func(t *testing.T, version string) {
		updated := make(chan string, 20)
		s, policy, grant := withToy(t)
		cs := speaking(t, s, version, &mcp.ClientOptions{
			ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
		})
		ask(t, cs, "evolve", `{"name":"a b","code":"n => n","draft":true}`)
		ask(t, cs, "evolve", `{"name":"other","code":"n => n"}`)
		watch := func(uri string) {
			t.Helper()
			if err := cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
				t.Fatalf("%s: %v", uri, err)
			}
		}
		before := ""
		heard := func(uri string) {
			t.Helper()
			for {
				got := wait.For(t, updated, "an update of "+uri)
				if got == before {
					continue // what was made just before it was watched may be told, too
				}
				if before = got; got != uri {
					t.Errorf("%s was updated, not %s", got, uri)
				}
				return
			}
		}
		watch("pif://tools/a%20b")
		watch("pif://capabilities")
		// A client of the newer protocol doesn't wait until it is watching.
		if version > "2026" {
			wait.Until(t, "both are watched", func() bool { return s.listens.count() == 2 })
		}
		if version < "2026" { // a listen is refused later, by itself
			for _, uri := range []string{"pif://tools/absent", "pif://tools/a b", "pif://tools/%61%20b", "pif://language", "pif://journal/x", "file:///etc/passwd"} {
				if err := cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); code(err) == 0 {
					t.Errorf("%s can be watched: %v", uri, err)
				}
			}
		}
		ask(t, cs, "evolve", `{"name":"other","code":"n => n + 1"}`)
		ask(t, cs, "evolve", `{"name":"a b","code":"n => n + 1","draft":true}`)
		heard("pif://tools/a%20b")
		if err := policy.Grant(grant); err != nil {
			t.Fatal(err)
		}
		heard("pif://capabilities")
		if c := readText(t, cs, "pif://capabilities"); !strings.Contains(c.Text, `"name":"toy.get"`) || !strings.Contains(c.Text, `"toy:notes/**"`) {
			t.Errorf("%s", c.Text)
		}
		ask(t, cs, "retire", `{"name":"a b"}`)
		heard("pif://tools/a%20b")
	})
}

// count is how many subscriptions there are.
func (ls *listens) count() (n int) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, its := range ls.of {
		n += len(its.all)
	}
	return n
}
