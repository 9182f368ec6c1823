package mcpserver

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/results"
	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// large is a call whose result is a string of n characters, é the last of each ten.
func large(n int) string {
	return fmt.Sprintf(`{"code":"join(map(i => \"012345678é\", range(0, %d)), \"\")"}`, n/10)
}

// largeText is that result as JSON.
func largeText(n int) string { return `"` + strings.Repeat("012345678é", n/10) + `"` }

// readAll follows next until there is none, and puts the parts together.
func readAll(t testing.TB, cs *mcp.ClientSession, text string, res *mcp.CallToolResult) string {
	t.Helper()
	all := text
	for range 10_000 {
		next, ok := res.StructuredContent.(map[string]any)["next"].(map[string]any)
		if !ok {
			return all
		}
		arguments, err := json.Marshal(next["arguments"])
		if err != nil {
			t.Fatal(err)
		}
		text, res = ask(t, cs, next["name"].(string), string(arguments))
		if res.IsError {
			t.Fatal(text)
		}
		all += text
	}
	t.Fatal("there is always more")
	return ""
}

// TestReadOn: a result that is too large to show can be read whole, by run and as a
// resource, whatever characters are in it.
func TestReadOn(t *testing.T) {
	inEras(t, func(t *testing.T, version string) {
		cs := speaking(t, New(Options{}), version, nil)
		n := 1_000_000
		if os.Getenv("PIF_FULL") != "" {
			n = 3_000_000
		}
		text, res := ask(t, cs, "run", large(n))
		shown := res.StructuredContent.(map[string]any)
		if res.IsError || shown["total"].(float64) != float64(n*11/10+2) || shown["preview"] != text || len(text) > preview {
			t.Fatalf("%.300s", text)
		}
		if last := res.Content[len(res.Content)-1].(*mcp.TextContent).Text; !strings.HasPrefix(last, `next: {"name":"run","arguments":{"result":"`) {
			t.Errorf("whoever reads the text alone isn't told how to read on: %.200s", last)
		}
		if all := readAll(t, cs, text, res); all != largeText(n) {
			t.Errorf("read on, it has %d bytes, expected %d", len(all), len(largeText(n)))
		}
		all, uri := "", shown["uri"].(string)
		for uri != "" {
			res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil {
				t.Fatal(err)
			}
			c := res.Contents[0]
			all += c.Text
			uri, _ = c.Meta["next"].(string)
		}
		if all != largeText(n) {
			t.Errorf("as a resource it has %d bytes, expected %d", len(all), len(largeText(n)))
		}
		// One that fits is JSON, at once.
		_, res = ask(t, cs, "run", large(300_000))
		if c := readText(t, cs, res.StructuredContent.(map[string]any)["uri"].(string)); c.MIMEType != jsonText || c.Text != largeText(300_000) {
			t.Errorf("%s of %d bytes", c.MIMEType, len(c.Text))
		}
	})
}

// TestReadOnText: the result of a tool that gives text is read on as that text, not as
// JSON of it, whichever way it is read; and its run can be replayed.
func TestReadOnText(t *testing.T) {
	w := newRecordedWorld(t, 1)
	s := w.server
	want := strings.Repeat("a \"b\"\n\té€😀\\", 20_000)
	must(t, s, "evolve", `{"name":"page","code":"n => join(map(i => \"a \\\"b\\\"\\n\\té€😀\\\\\", range(0, n)), \"\")"}`)
	must(t, s, "evolve", `{"name":"hint","as":"prompt","code":"n => @page(n)","capabilities":["call:page"]}`)
	cs := session(t, s, nil)
	for _, call := range [][2]string{{"page", `{"input":20000}`}, {"run", `{"tool":"page","input":20000}`}} {
		text, res := ask(t, cs, call[0], call[1])
		shown := res.StructuredContent.(map[string]any)
		if shown["preview"] != text || shown["total"].(float64) != float64(len(want)) || len(text) > preview {
			t.Errorf("%.200v", shown)
		}
		if all := readAll(t, cs, text, res); all != want {
			t.Errorf("%s: read on, it has %d bytes, expected %d: %.100q", call[0], len(all), len(want), all)
		}
		if c := readText(t, cs, shown["uri"].(string)); c.MIMEType != plainText || c.Text != want {
			t.Errorf("%s of %d bytes", c.MIMEType, len(c.Text))
		}
		if _, v := w.replay(w.record(w.newest())); v.Verdict != run.Identical {
			t.Errorf("%s: its replay: %+v", call[0], v)
		}
	}
	if got := said(t, cs, "hint", map[string]string{"n": "2000"}); got != "user: "+want[:len(want)/10] {
		t.Errorf("a prompt says %.100q", got)
	}
}

// TestDecodeText: the beginning of a string's JSON holds a text up to the last whole
// character of it.
func TestDecodeText(t *testing.T) {
	const json, text = `"a\u001f\n\"\\é😀"`, "a\x1f\n\"\\é😀"
	if got, ok := wire.ReadText([]byte(json), false); !ok || got != text {
		t.Errorf("%q", got)
	}
	for n := 1; n < len(json); n++ {
		if got, ok := wire.ReadText([]byte(json[:n]), true); !ok || !strings.HasPrefix(text, got) || len(got) < n/6-1 {
			t.Errorf("%q: %q", json[:n], got)
		}
	}
	for _, other := range []string{"", "1", `{"a":"b`} {
		if _, ok := wire.ReadText([]byte(other), true); ok {
			t.Errorf("%q is a string", other)
		}
	}
}

// TestReadOnWrong: what isn't there to be read on is said so, and where a place is
// within a character, that character is read.
func TestReadOnWrong(t *testing.T) {
	s := New(Options{})
	a := must(t, s, "run", large(300_000))
	var shown struct {
		Next struct{ Arguments struct{ Result string } }
	}
	if err := json.Unmarshal(a.Structured, &shown); err != nil {
		t.Fatal(err)
	}
	id := shown.Next.Arguments.Result
	if a := must(t, s, "run", fmt.Sprintf(`{"result":%q,"from":"11"}`, id)); !strings.HasPrefix(a.Text, "é0123") || !strings.Contains(string(a.Structured), `"from":10,`) {
		t.Errorf("%.80s %.80s", a.Text, a.Structured)
	}
	for args, kind := range map[string]string{
		`{"result":"absent"}`: "invalid_request",
		`{"result":""}`:       "invalid_request",
		`{"result":5}`:        "invalid_request",
		fmt.Sprintf(`{"result":%q,"from":1000000000}`, id):       "out_of_range",
		fmt.Sprintf(`{"result":%q,"from":-1}`, id):               "invalid_request",
		fmt.Sprintf(`{"result":%q,"code":"1"}`, id):              "invalid_request",
		fmt.Sprintf(`{"result":%q}`, strings.ToLower(id)):        "invalid_request",
		`{"code":"1","from":5}`:                                  "invalid_request",
		fmt.Sprintf(`{"result":%q,"from":"x"}`, id):              "invalid_request",
		fmt.Sprintf(`{"result":%q,"from":9e99}`, id):             "out_of_range",
		fmt.Sprintf(`{"result":%q,"from":1e300,"tool":"x"}`, id): "invalid_request",
	} {
		a := s.Call(t.Context(), Call{Tool: "run", Arguments: json.RawMessage(args)})
		if a.Fault == nil || string(a.Fault.Kind) != kind || a.Fault.Hint == "" {
			t.Errorf("%s: %+v", args, a.Fault)
		}
	}
}

// TestOthersResults: a result is its server's alone, by run and by address, though servers share the room.
func TestOthersResults(t *testing.T) {
	room := results.New(0)
	ann, bob := New(Options{Results: room}), New(Options{Results: room})
	var shown struct{ URI string }
	if a := must(t, ann, "run", large(300_000)); json.Unmarshal(a.Structured, &shown) != nil || shown.URI == "" {
		t.Fatalf("%.200s", a.Structured)
	}
	id := strings.TrimPrefix(shown.URI, "pif://results/")
	for s, want := range map[*Server]bool{ann: true, bob: false} {
		a, c := do(t, s, "run", fmt.Sprintf(`{"result":%q}`, id)), s.resultContent(id, address{})
		if (a.Fault == nil) != want || (c != nil) != want {
			t.Errorf("run: %v, resource: %v, expected %v", a.Fault, c, want)
		}
	}
}

// TestLargerThanKept: of a result larger than what is kept of one, the first part
// can be read on, and the answer says how much that is.
func TestLargerThanKept(t *testing.T) {
	s := New(Options{Limits: Limits{Timeout: time.Hour}})
	a := must(t, s, "run", `{"code":"join(map(i => join(map(j => \"0123456789\", range(0, 1000)), \"\"), range(0, 1800)), \"\")","steps":100000000}`)
	if !strings.Contains(strings.Join(a.More, "\n"), fmt.Sprintf("its first %d bytes can be read on", results.MaxKept)) {
		t.Errorf("%q", a.More)
	}
	var shown struct {
		Total int
		Next  struct{ Arguments struct{ Result string } }
	}
	if err := json.Unmarshal(a.Structured, &shown); err != nil || shown.Total != 18_000_002 {
		t.Fatalf("%d %v", shown.Total, err)
	}
	last := must(t, s, "run", fmt.Sprintf(`{"result":%q,"from":%d}`, shown.Next.Arguments.Result, results.MaxKept-10))
	if len(last.Text) != 10 || strings.Contains(string(last.Structured), "next") {
		t.Errorf("%q %s", last.Text, last.Structured)
	}
}
