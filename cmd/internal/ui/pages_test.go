package ui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/journal"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// TestViews: each view shows what is there.
func TestViews(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	ran := func(tool string, n int) string { return url.QueryEscape(w.runs(tool)[n]) }
	for path, want := range map[string][]string{
		"":                            {"<b>4</b> tools", "both", "effect_failed"},
		"tools":                       {"square", "Squares.", "note.get:work/**", "Retired", "gone", "constant"},
		"tools?q=squ":                 {"square"},
		"tools?kind=note":             {"look", "keep"},
		"tools?state=blocked":         {"No tool fits"},
		"tool?name=look":              {`<span class="effect">!note.get</span>`, "note.get:work/**", "reads only", "both", "effect_failed"},
		"tool?name=both":              {"through <bdi>look</bdi>", `<span class="tool">@look</span>`},
		"tool?name=square&v=1":        {"superseded", "version 2 is the current one"},
		"tool?name=gone":              {"retired"},
		"diff?name=square&a=1&b=2":    {`class="del"`, `class="add"`, "n =&gt; n * n &#43; 0", "Neither wider nor narrower"},
		"runs":                        {"square", "ok"},
		"runs?tool=look":              {"work/a", "denied"},
		"runs?tool=look&outcome=ok":   {"work/a"},
		"runs?op=note":                {"look", "both"},
		"runs?refresh=5":              {`http-equiv="refresh" content="5"`},
		"run?id=" + ran("both", 0):    {"note.get", `class="bar"`, "hello", "work/a", "Replay"},
		"run?id=" + ran("look", 0):    {"denied", "home/a"},
		"run?id=" + ran("square", 0):  {"for this input", "for any input at most", "is its budget"},
		"replay?id=" + ran("both", 0): {"identical", "hello", "Memory</dt><dd>at most "},
		"replay?id=" + ran("square", 0) + "&with=1":               {"square@1", "Requests"},
		"steps?id=" + ran("both", 0):                              {"Evaluates", `class="line here"`, "next ▶", "Variables"},
		"steps?id=" + ran("both", 0) + "&at=3&do=effect":          {"An effect has its outcome", "note.get", "hello", "<b><bdi>look</bdi></b>", "<mark>"},
		"steps?id=" + ran("both", 0) + "&at=99999&do=back-effect": {"An effect has its outcome"},
		"steps?id=" + ran("both", 0) + "&at=99999":                {"The end", "hello"},
		"steps?id=" + ran("both", 0) + "&do=go&step=9":            {"Evaluates"},
		"steps?id=" + ran("both", 0) + "&do=fault":                {"There is none"},
		"steps?id=" + ran("look", 1) + "&do=fault":                {"Fails", "effect_failed"},
		"flame?id=" + ran("both", 0):                              {`<svg class="flame"`, "look at tool:look:1", "By line"},
		"flame?id=" + ran("both", 0) + "&zoom=0.0":                {"all of it"},
		"events":           {"effect.requested", "tool.evolved"},
		"events?kind=tool": {"tool.retired"},
		"events?seq=1":     {"&#34;seq&#34;: 1"},
		"questions":        {"Nothing waits"},
		"servers":          {"No server was added"},
		"flow":             {"No rule says where data may flow"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			status, text := w.get(path)
			if status != http.StatusOK {
				t.Fatalf("%d: %s", status, text)
			}
			for _, words := range want {
				if !strings.Contains(text, words) {
					t.Errorf("it doesn't show %q: %s", words, text)
				}
			}
			if strings.Count(text, "<h1>") != 1 {
				t.Error("a page has one heading of the first rank")
			}
		})
	}
	for path, status := range map[string]int{
		"tool?name=nobody": 404, "tool?name=square&v=9": 404, "run?id=none": 404, "replay?id=none": 404, "steps?id=none": 404, "flame?id=none": 404, "nothing": 404, "events?kind=nothing": 404,
		"diff?name=square&a=1&b=9": 404, "tools?from=-5": 200, "tools?from=99999": 200, "tools?from=x": 200, "events?before=x": 200,
	} {
		if got, text := w.get(path); got != status {
			t.Errorf("%s: %d, want %d: %s", path, got, status, text)
		}
	}
	if a := w.send(httptest.NewRequest(http.MethodGet, "/p/other/tools", nil)); a.Code != 404 {
		t.Errorf("a profile that isn't: %d", a.Code)
	}
	if status, _ := w.get("runs?tool=look&outcome=failed&since=2100-01-01"); status != 200 {
		t.Errorf("a time in the future: %d", status)
	}
}

// TestExampleRuns: an example is run with its own effects, and nothing is recorded.
func TestExampleRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	w.call(false, "evolve", object{"name": "last", "code": "n => n"}) // with it what was only noted before is in the file
	s, err := w.page.open("test")
	w.fatal(err)
	before, err := s.Journal.Last()
	w.fatal(err)
	if status, text := w.post("example", url.Values{"name": {"look"}, "n": {"0"}}); status != 200 || !strings.Contains(text, "It gives what it says") {
		t.Errorf("%d: %s", status, text)
	}
	if status, _ := w.post("example", url.Values{"name": {"look"}, "n": {"1"}}); status != 404 {
		t.Errorf("an example that isn't: %d", status)
	}
	if status, _ := w.get("example?name=look&n=0"); status != 404 {
		t.Errorf("an example runs by being looked at: %d", status)
	}
	if after, err := s.Journal.Last(); err != nil || after != before {
		t.Errorf("%d events, then %d, %v", before, after, err)
	}
}

// TestLive: what happens is told while one looks, runs and events.
func TestLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	w.call(false, "evolve", object{"name": "last", "code": "n => n"}) // with it what was only noted before is in the file
	server := httptest.NewServer(http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) {
		r.Host = w.page.door.host
		w.page.ServeHTTP(a, r)
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	listen := func(query string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/p/test/live?"+query, nil)
		w.fatal(err)
		r.AddCookie(w.cookie)
		a, err := http.DefaultClient.Do(r)
		w.fatal(err)
		if a.Header.Get("Content-Type") != "text/event-stream" || a.Header.Get("Content-Security-Policy") != policy {
			t.Fatalf("%v", a.Header)
		}
		return a
	}
	s, err := w.page.open("test")
	w.fatal(err)
	last, err := s.Journal.Last()
	w.fatal(err)
	after := url.Values{"after": {json.Number(grouped(itoa(last))).String()}}
	after.Set("after", itoa(last))
	runs, events := listen("of=runs&"+after.Encode()), listen("kind=run&"+after.Encode())
	defer runs.Body.Close()
	defer events.Body.Close()
	w.call(false, "square", object{"input": 1111})
	got := w.until(runs.Body, `"state":"ok"`)
	if !strings.Contains(got, `"called":"square"`) || !strings.Contains(got, "1111") {
		t.Errorf("the stream of runs has %s", got)
	}
	if got := w.until(events.Body, "run.ended"); !strings.Contains(got, "id: "+itoa(last+1)) {
		t.Errorf("the stream of events has %s", got)
	}
}

// TestLiveBurst: more than a page of events at once is told whole, although nothing comes after them.
func TestLiveBurst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.call(false, "evolve", object{"name": "last", "code": "n => n"})
	writer, err := journal.Open(filepath.Join(w.dir, "journal.db"), journal.Options{})
	w.fatal(err)
	for range 2*perPage + 1 {
		_, err := writer.Append(journal.Noted, journal.RunStarted, "r-1", "", []byte(`{"code":"1"}`))
		w.fatal(err)
	}
	last, err := writer.Append(journal.Written, journal.RunEnded, "r-1", "", []byte(`{"steps":3,"type":"int","result":{"bytes":1}}`))
	w.fatal(errors.Join(err, writer.Close()))
	server := httptest.NewServer(http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) {
		r.Host = w.page.door.host
		w.page.ServeHTTP(a, r)
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), wait.Limit(t))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/p/test/live?kind=run", nil)
	w.fatal(err)
	r.AddCookie(w.cookie)
	a, err := http.DefaultClient.Do(r)
	w.fatal(err)
	defer a.Body.Close()
	w.until(a.Body, "id: "+itoa(last)+"\n")
}

// TestLost: a run whose node ended is shown as failed, however many events it has: on its page, in lists and live.
func TestLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.call(false, "evolve", object{"name": "look", "code": "n => n"})
	writer, err := journal.Open(filepath.Join(w.dir, "journal.db"), journal.Options{})
	w.fatal(err)
	effects := map[string]int{"r-1": 1, "r-2": summed, "r-3": maxRunEvents}
	lost := &journal.Event{Kind: journal.RunLost, Data: []byte(`{"error":{"kind":"outcome_unknown","message":"the node n1 ended"}}`)}
	for id, n := range effects {
		_, err := writer.Append(journal.Noted, journal.RunStarted, id, "", []byte(`{"tool":"look","version":1}`))
		w.fatal(err)
		for range n {
			_, err := writer.Append(journal.Noted, journal.EffectRequested, id, "", []byte(`{"n":1,"op":"note.get","tool":"look","args":{}}`))
			w.fatal(err)
		}
		for range 2 { // by two nodes
			_, err = writer.Append(journal.Written, lost.Kind, id, "", lost.Data)
			w.fatal(err)
		}
	}
	w.fatal(writer.Close())
	s, err := w.page.open("test")
	w.fatal(err)
	for _, f := range []runFilter{{}, {Outcome: "failed"}, {Tool: "look", Outcome: "failed"}} {
		if l, err := s.find(f, 0, 10); err != nil || len(l.Runs) != len(effects) {
			t.Errorf("%+v finds %d runs, %v", f, len(l.Runs), err)
		}
	}
	if sum := run.Summarize([]journal.Event{{Kind: journal.RunStarted}, {Kind: journal.RunLost, Time: time.Time{}.Add(time.Second), Data: lost.Data}}); sum.Took != time.Second {
		t.Errorf("it took %v", sum.Took)
	}
	q := &request{page: w.page, profile: "test", store: s}
	for id := range effects {
		if r, err := s.summary(id); err != nil || r.State() != "failed" {
			t.Errorf("%s is %s in a list, %v", id, r.State(), err)
		}
		if status, text := w.get("run?id=" + id); status != http.StatusOK || !strings.Contains(text, "the node n1 ended") {
			t.Errorf("%s: %d, which doesn't show its end", id, status)
		}
		lost.Run = id
		if row, err := q.liveRow(lost, true); err != nil || !strings.Contains(string(row), `"state":"failed"`) {
			t.Errorf("%s: its end is told as %q, %v", id, row, err)
		}
	}
	if l, err := s.glance(); err != nil || l.Failed != len(effects) || l.Tools["look"].Failed == 0 {
		t.Errorf("%+v, %v", l, err)
	}
}

// markup is what text from outside never may be in a page.
var markup = regexp.MustCompile(`(?i)<(script|img|svg|iframe|b|a)[^>]*(canary|alert)|href="(javascript|data)|\x00`)

// TestHostile: whatever a model writes, a page shows it, and it does nothing.
func TestHostile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for i, bad := range hostile {
		text, _ := json.Marshal(bad)
		code := "x => " + string(caps60(text))
		name := "t" + itoa(uint64(i))
		w.call(false, "evolve", object{"name": name, "code": code, "description": bad, "draft": true})
		w.call(false, name, object{"input": bad})
		w.call(true, "run", object{"code": `x => raise(x)`, "input": bad})
	}
	pages := []string{"", "tools", "runs", "events", "events?kind=tool", "authority"}
	for i, bad := range hostile {
		pages = append(pages, "tool?name=t"+itoa(uint64(i)), "tools?q="+url.QueryEscape(bad), "runs?tool="+url.QueryEscape(bad), "tool?name="+url.QueryEscape(bad), "run?id="+url.QueryEscape(bad), "events?kind="+url.QueryEscape(bad))
	}
	for _, id := range w.runs("") {
		pages = append(pages, "run?id="+url.QueryEscape(id), "replay?id="+url.QueryEscape(id))
	}
	for _, path := range pages {
		status, text := w.get(path)
		if status != 200 && status != 404 {
			t.Errorf("%s: %d %s", path, status, text)
		}
		if m := markup.FindString(text); m != "" {
			t.Errorf("%s: %q is in the page", path, m)
		}
		for _, r := range text {
			if r != '\n' && r != '\t' && visible(string(r)) != string(r) {
				t.Errorf("%s: %U is in the page", path, r)
				break
			}
		}
		if len(text) > 300<<10 {
			t.Errorf("%s: %d bytes", path, len(text))
		}
	}
}

// TestLarge: however much a model writes, or has a run do, its page is shown, with the command that shows all of it.
func TestLarge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.call(false, "evolve", object{"name": "blank", "code": "n =>" + strings.Repeat("\n", 25_000) + "n", "draft": true})
	for _, letter := range []string{"<", ">"} {
		w.call(false, "evolve", object{"name": "wide", "code": "n => [\n" + strings.Repeat(`"`+strings.Repeat(letter, 150)+"\",\n", 300) + "n]", "draft": true})
	}
	writer, err := journal.Open(filepath.Join(w.dir, "journal.db"), journal.Options{})
	w.fatal(err)
	text, message := strings.Repeat("<", 30_000), strings.Repeat("<", 900)
	for id, outcome := range map[string]string{"r-1": `"value":{"text":"` + text + `"}`, "r-2": `"error":{"kind":"effect_failed","message":"` + message + `","hint":"` + message + `"}`} {
		_, err := writer.Append(journal.Noted, journal.RunStarted, id, "", []byte(`{"code":"1"}`))
		w.fatal(err)
		for range maxBars {
			seq, err := writer.Append(journal.Written, journal.EffectRequested, id, "", []byte(`{"n":1,"op":"note.get","args":{"key":"<"}}`))
			w.fatal(err)
			_, err = writer.Append(journal.Noted, journal.EffectOutcome, id, "", []byte(`{"request":`+itoa(seq)+`,`+outcome+`}`))
			w.fatal(err)
		}
	}
	w.fatal(writer.Close())
	whole := "What is large has its beginning here"
	for path, words := range map[string][]string{
		"tool?name=blank":        {"… (25005 bytes in all)"},
		"diff?name=wide&a=1&b=2": {"more lines"},
		"run?id=r-1":             {"bytes in all: mcp-pif journal show r-1 --profile test)", "&lt;&lt;"},
		"run?id=r-2":             {whole, "mcp-pif journal show &#39;r-2&#39; --profile test", "note.get"},
	} {
		status, page := w.get(path)
		if status != http.StatusOK || len(page) > maxPage || strings.Contains(page, whole) != (words[0] == whole) {
			t.Errorf("%s: %d, with %d bytes, as beginnings: %v", path, status, len(page), strings.Contains(page, whole))
		}
		for _, word := range words {
			if !strings.Contains(page, word) {
				t.Errorf("%s doesn't show %q", path, word)
			}
		}
	}
}

// TestCommands: what a page leaves out is shown by a command about the same.
func TestCommands(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"tool?name=a&v=2": "tools show 'a@2' --profile test", "tool?name=a": "tools show 'a' --profile test", "runs": "journal runs --profile test", "tools": "tools list --profile test", "": "journal runs --profile test",
		"authority?grant=1": "caps --profile test", "flow": "flow --profile test", "act?do=revoke&grant=1": "caps --profile test", "events": "journal tail --profile test", "servers": "mcp list",
	} {
		q := &request{Request: httptest.NewRequest(http.MethodGet, "/p/test/"+path, nil), profile: "test", page: &Page{o: Options{Flags: profileFlags}}}
		if got := q.command(); got != "mcp-pif "+want {
			t.Errorf("%s: %s", path, got)
		}
	}
	for path, want := range map[string]string{"/p/test/servers?name=shop": "mcp upgrade 'shop'", "/": "journal runs"} {
		q := &request{Request: httptest.NewRequest(http.MethodPost, path, nil)}
		if got := q.command(); got != "mcp-pif "+want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestWeek: the rules are tried on what was done before them, on demand; and a plan that waits is shown as at the
// terminal.
func TestWeek(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.populate()
	w.call(false, "keep", object{"k": "work/a", "v": 1})
	w.rules = []string{"work=note.get:work/**", "work>note.put"}
	c, err := caps.ParseRequests("note.put:work/**", "", w.writes.Kinds())
	w.fatal(err)
	w.writes.Confirm([]caps.Requests{c})
	w.call(false, "keep", object{"k": "work/a", "v": "as it is"})
	_, text := w.get("flow")
	if !strings.Contains(text, "Replay last week") || strings.Contains(text, "Would be") {
		t.Errorf("it isn't asked first: %s", text)
	}
	_, text = w.get("flow?week=1")
	for _, words := range []string{"<td class=\"num\">2</td><td class=\"num\">2</td>", "note.put", "<td>denied</td><td>work</td>", "<bdi>keep</bdi>"} {
		if !strings.Contains(text, words) {
			t.Errorf("it doesn't show %q: %s", words, text)
		}
	}
	if _, text = w.get("tool?name=keep"); !strings.Contains(text, "keeps rule 1: Nothing that is made of") || !strings.Contains(text, "All rules") {
		t.Errorf("a tool isn't shown with what the rules mean for it: %s", text)
	}
	_, text = w.get("questions")
	for _, words := range []string{"&#34;keep&#34; (version 1) wants to do 1 thing:", "key &#34;work/a&#34;", "mcp-pif approve p_"} {
		if !strings.Contains(text, words) {
			t.Errorf("it doesn't show %q: %s", words, text)
		}
	}
	if strings.Contains(text, "Nothing waits") || !strings.Contains(text, `<b class="badge">1</b>`) {
		t.Error("it says that nothing waits")
	}
	writer, err := journal.Open(filepath.Join(w.dir, "journal.db"), journal.Options{})
	w.fatal(err)
	_, err = writer.Append(journal.Written, journal.FlowAsked, "r-1", "", []byte(`{"n":1,"question":"f_a","op":"note.put","tool":"keep","version":1,"key":"k","shown":"The rule: none"}`))
	_, began := writer.Append(journal.Written, journal.RunStarted, "r-2", "", []byte(`{"tool":"keep","version":1,"steps":9,"memory":9,"under":["web"]}`))
	_, ended := writer.Append(journal.Written, journal.RunEnded, "r-2", "", []byte(`{"steps":3,"type":"string","result":{"bytes":2},"entered":["web","mail"],"sealed":"s_a1"}`))
	w.fatal(errors.Join(err, began, ended, writer.Close()))
	if _, text := w.get("run?id=r-2"); !strings.Contains(text, "mcp-pif flow show s_a1 --profile test<") || !strings.Contains(text, "<code>web</code> <code>mail</code>") || !strings.Contains(text, "had been shown <code>web</code>") {
		t.Errorf("it isn't shown what came into a run, and that what it gave is sealed: %s", text)
	}
	if _, text := w.get("questions"); !strings.Contains(text, "The rule: none") || !strings.Contains(text, "mcp-pif approve f_a --profile test<") || !strings.Contains(text, `<b class="badge">2</b>`) {
		t.Errorf("a request that waits isn't shown: %s", text)
	}
	_, id, _ := strings.Cut(text, "mcp-pif approve p_")
	id, _, _ = strings.Cut(id, " --profile test<")
	for path, want := range map[string]string{"run?id=" + id: "wants to do 1 thing:", "runs?outcome=planned": id} {
		if _, text := w.get(path); !strings.Contains(text, `<span class="state planned">planned</span>`) || !strings.Contains(text, want) {
			t.Errorf("%s doesn't show the plan: %s", path, text)
		}
	}
}

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
