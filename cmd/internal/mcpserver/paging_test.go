package mcpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/registry"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
	"github.com/mcp-pif/mcp-pif/cmd/internal/wait"
)

// TestPages: lists of ten thousand are whole, in order and the same each time, page
// by page; and what is evolved or retired between two pages makes nothing else
// appear twice or not at all.
func TestPages(t *testing.T) {
	n := 2_500
	if os.Getenv("PIF_FULL") != "" {
		n = registry.MaxTools - 100
	}
	s := New(Options{})
	var tools, prompts, published []string
	for i := range n {
		d := registry.Definition{Name: fmt.Sprintf("t%05d", i), Code: []byte("1")}
		switch {
		case i%2 == 1:
			d.As = registry.AsPrompt
			prompts = append(prompts, d.Name)
		case i%20 == 2:
			d.As = registry.AsResource
			published = append(published, publishedURI(d.Name))
		default:
			tools = append(tools, d.Name)
		}
		if _, err := s.tools.Evolve(d, registry.Edit{}); err != nil {
			t.Fatal(err)
		}
	}
	var uris []string
	for i := range n {
		uris = append(uris, toolURI(fmt.Sprintf("t%05d", i)))
	}
	inEras(t, func(t *testing.T, version string) {
		cs := speaking(t, s, version, nil)
		lists := map[string]struct {
			want []string
			page func(cursor string) (names []string, next string, err error)
		}{
			"tools": {append(wire.ToolNames(), tools...), func(cursor string) (names []string, next string, err error) {
				res, err := cs.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: cursor})
				if err != nil {
					return nil, "", err
				}
				for _, tool := range res.Tools {
					names = append(names, tool.Name)
					if tool.Title == "" || tool.Description == "" || tool.Annotations == nil || tool.Annotations.DestructiveHint == nil {
						t.Errorf("%s lacks something", tool.Name)
					}
				}
				if version == "2026-07-28" && (res.CacheScope != "private" || res.TTLMs != 0) {
					t.Errorf("tools: %+v", res.Cacheable)
				}
				return names, res.NextCursor, nil
			}},
			"resources": {append(published, uris...), func(cursor string) (names []string, next string, err error) {
				res, err := cs.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: cursor})
				if err != nil {
					return nil, "", err
				}
				for _, r := range res.Resources {
					if strings.HasPrefix(r.URI, toolURI("")) || strings.HasPrefix(r.URI, publishedURI("")) {
						names = append(names, r.URI)
					}
				}
				if version == "2026-07-28" && res.CacheScope != "private" {
					t.Errorf("resources: %+v", res.Cacheable)
				}
				return names, res.NextCursor, nil
			}},
			"prompts": {append([]string{"make_tool", "repair_tool", "review_capabilities", "port_function"}, prompts...), func(cursor string) (names []string, next string, err error) {
				res, err := cs.ListPrompts(t.Context(), &mcp.ListPromptsParams{Cursor: cursor})
				if err != nil {
					return nil, "", err
				}
				for _, p := range res.Prompts {
					names = append(names, p.Name)
				}
				if version == "2026-07-28" && (res.CacheScope != "private" || res.TTLMs != 0) {
					t.Errorf("prompts: %+v", res.Cacheable)
				}
				return names, res.NextCursor, nil
			}},
		}
		for name, list := range lists {
			all := func(between func()) (got []string) {
				cursor := ""
				for range 1 + n/100 {
					names, next, err := list.page(cursor)
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if got = append(got, names...); next == "" {
						return got
					}
					cursor = next
					if between != nil {
						between()
					}
				}
				t.Fatalf("%s: there is always more", name)
				return nil
			}
			if got := all(nil); !slices.Equal(got, list.want) {
				t.Errorf("%s: %d listed, expected %d", name, len(got), len(list.want))
			}
			i := 0
			got := all(func() {
				i++
				extra := registry.Definition{Name: fmt.Sprintf("extra%d", i), Code: []byte("1")} // before all others
				if _, err := s.tools.Evolve(extra, registry.Edit{}); err != nil {
					t.Fatal(err)
				}
			})
			for j := range i {
				if _, err := s.tools.Retire(fmt.Sprintf("extra%d", j+1), registry.Edit{}); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(got, list.want) {
				t.Errorf("%s, changed meanwhile: %d listed, expected %d", name, len(got), len(list.want))
			}
			for _, cursor := range []string{"x", "%", base64.RawURLEncoding.EncodeToString([]byte("x")), strings.Repeat("a", 10_000)} {
				if _, _, err := list.page(cursor); code(err) != -32602 {
					t.Errorf("%s takes the cursor %.20q: %v", name, cursor, err)
				}
			}
		}
		if version == "2026-07-28" {
			res, err := cs.ListResourceTemplates(t.Context(), nil)
			if err != nil || res.CacheScope != "public" || res.TTLMs == 0 {
				t.Errorf("templates: %+v %v", res, err)
			}
			read, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "pif://language"})
			if err != nil || read.CacheScope != "public" || read.TTLMs == 0 {
				t.Errorf("the language: %+v %v", read, err)
			}
			if read, err = cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "pif://tools/t00000"}); err != nil || read.CacheScope != "private" || read.TTLMs != 0 {
				t.Errorf("a tool: %+v %v", read, err)
			}
		}
	})
}

// TestProgressInEras: a long run tells how far it is, and ends when it is cancelled.
func TestProgressInEras(t *testing.T) {
	inEras(t, func(t *testing.T, version string) {
		var told atomic.Int64
		begun := make(chan struct{}, 100)
		s := New(Options{})
		cs := speaking(t, s, version, &mcp.ClientOptions{ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
			told.Add(1)
			select {
			case begun <- struct{}{}:
			default:
			}
		}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			select {
			case <-begun:
			case <-time.After(wait.Limit(t)):
			}
			cancel()
		}()
		params := &mcp.CallToolParams{Name: "run", Arguments: json.RawMessage(`{"code":` + omega + `,"steps":1000000000}`)}
		params.SetProgressToken("p")
		if _, err := cs.CallTool(ctx, params); err == nil {
			t.Error("a run that was cancelled has an answer")
		}
		if told.Load() == 0 {
			t.Error("nobody said how far it is")
		}
		wait.Until(t, "the run's end is on record", func() bool {
			events, _ := ask(t, cs, "journal", `{"kind":"run.ended"}`)
			return strings.Contains(events, `"cancelled"`)
		})
	})
}

// TestPagesAreKept: a page is made once until a tool changes, or what is granted.
func TestPagesAreKept(t *testing.T) {
	s := New(Options{})
	evolve := func(name string) {
		t.Helper()
		if _, err := s.tools.Evolve(registry.Definition{Name: name, Code: []byte("1"), Description: "<b>"}, registry.Edit{}); err != nil {
			t.Fatal(err)
		}
	}
	evolve("a")
	page := func(first bool, after string) *encodedPage { return s.fill(&mcp.ListToolsResult{}, first, after) }
	whole, rest := page(true, ""), page(false, "a")
	if page(true, "").made != whole.made || page(false, "a").made != rest.made || whole.made == rest.made {
		t.Error("a page is made again")
	}
	text, err := json.Marshal(whole)
	var read mcp.ListToolsResult
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if last := len(read.Tools) - 1; err != nil || read.Tools[last].Name != "a" || read.Tools[last].Description != "<b>" {
		t.Errorf("%s %v", text, err)
	}
	evolve("b")
	if now := page(true, ""); now.made == whole.made || !strings.Contains(string(now.made.text), `"b"`) {
		t.Error("the page of before is given")
	}
	runtime.KeepAlive(rest)
}
