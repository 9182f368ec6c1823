package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// program is built once for all tests, into a folder that is removed after them.
var (
	folder  string
	program = sync.OnceValues(func() (string, error) { return build(folder) })
)

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "mcp-pif-browser-*"); err != nil {
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(folder)
	os.Exit(status)
}

// A tab is a browser on a world's page, that notes what no page of ours does.
type tab struct {
	*testing.T
	context.Context
	world *world
	base  string

	mu    sync.Mutex
	wrong []string
}

func newTab(t *testing.T, populate func(*world) error, flags ...string) *tab {
	t.Helper()
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{dir: t.TempDir(), binary: binary}
	if err := populate(w); err != nil {
		t.Fatal(err)
	}
	link, err := w.open(flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	ctx, stop := browser(context.Background())
	t.Cleanup(stop)
	b := &tab{T: t, Context: ctx, world: w}
	origin, _, _ := strings.Cut(link, "/enter")
	note := func(format string, args ...any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
	}
	b.fatal(chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *page.EventJavascriptDialogOpening:
			note("a dialog: %s", e.Message)
		case *runtime.EventExceptionThrown:
			note("an exception: %s", e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Level == "error" && !strings.Contains(e.Entry.Text, "404") {
				note("an error: %s", e.Entry.Text)
			}
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, origin+"/") && !strings.HasPrefix(e.Request.URL, "data:") { // which the policy holds back; Chromium draws its own controls with such
				note("a request of %s", e.Request.URL)
			}
		}
	}))
	canary := page.AddScriptToEvaluateOnNewDocumentParams{Source: `window.canary = window.alert = () => { window.fired = true; };`}
	_, err = chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, canary)
	b.fatal(err)
	b.base, err = enter(ctx, link)
	b.fatal(err)
	return b
}

func (b *tab) fatal(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// eval evaluates a script in the page.
func eval[T any](b *tab, script string) T {
	b.Helper()
	v, err := chromedp.Run(b.Context, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	b.fatal(err)
	return v
}

// until waits for a script to be true, within the test's time.
func (b *tab) until(script string) {
	b.Helper()
	end, ok := b.T.Deadline()
	if !ok {
		end = time.Now().Add(time.Hour)
	}
	if most := time.Now().Add(40 * time.Second); most.Before(end) {
		end = most
	}
	for !eval[bool](b, script) {
		if time.Now().After(end.Add(-5 * time.Second)) {
			b.Fatalf("never true at %s, in %s: %s", eval[string](b, "location.href"), eval[string](b, "document.activeElement.outerHTML.slice(0, 200) + document.activeElement.value"), script)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// settled is that the page says whether it is live.
const settled = `!document.querySelector("[data-live]:not(.on)")`

// layout is where each element is; a theme changes none.
const layout = `[...document.querySelectorAll("body *")].map(e => { const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height].map(Math.round).join(" ") }).join("\n")`

// overflow is elements that make the page wider than the window; what scrolls in itself may.
const overflow = `document.documentElement.scrollWidth > innerWidth ? [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre")).slice(0, 5).map(e => e.outerHTML.slice(0, 200)) : []`

// healthy holds a view against what each must be.
func (b *tab) healthy(s screen) {
	b.Helper()
	for _, theme := range []bool{false, true} {
		s.dark = theme
		b.fatal(show(b.Context, b.base, s))
		if wide := eval[[]string](b, overflow); len(wide) > 0 {
			b.Errorf("%s at %d pixels: %s", s.path, s.width, strings.Join(wide, "\n"))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.wrong {
		b.Errorf("%s: %s", s.path, w)
	}
	b.wrong = nil
	if eval[bool](b, `window.fired === true || document.querySelectorAll("script").length !== 1 || document.querySelectorAll("iframe, object, embed, base, style, [style], [onclick], [onload], [onerror]").length > 0`) {
		b.Errorf("%s: something is in the page, or happened, that no template makes", s.path)
	}
	if foreign := eval[[]string](b, `[...document.querySelectorAll("[href], [src], [action]")].map(e => e.href?.baseVal ?? e.href ?? e.src ?? e.action).filter(u => { const l = new URL(u, location.href); return l.origin !== location.origin }).slice(0, 5)`); len(foreign) > 0 {
		b.Errorf("%s leads to %q", s.path, foreign)
	}
}

// axe is the rules of accessibility, which npm brings.
func axe(t *testing.T) string {
	text, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil && os.Getenv("PIF_REQUIRE_NODE") == "" {
		t.Skip("axe-core isn't there: npm ci --ignore-scripts installs it")
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (b *tab) screens() []screen {
	run, err := b.world.runOf("digest", "ok")
	b.fatal(err)
	denied, err := b.world.runOf("read_note", "denied")
	b.fatal(err)
	return append(screens(run, denied),
		screen{name: "act", path: "/p/claude-code/act?do=retire&name=square"}, screen{name: "missing", path: "/p/claude-code/nothing"},
		screen{name: "grant", path: "/p/claude-code/authority?grant=x"}, screen{name: "event", path: "/p/claude-code/events?seq=2"})
}

// TestViews: each view, in both themes and at 360 pixels too, is laid out alike, runs over no
// edge, and breaks no rule of accessibility.
func TestViews(t *testing.T) {
	rules := axe(t)
	b := newTab(t, (*world).populate, "--act")
	for _, s := range b.screens() {
		for _, width := range []int64{1280, 360} {
			s.width = width
			b.healthy(s)
			layouts := map[bool]string{}
			laid := func(dark bool) {
				s.dark = dark
				b.fatal(show(b.Context, b.base, s))
				b.until(settled)
				layouts[dark] = eval[string](b, layout)
			}
			for _, dark := range []bool{false, true} {
				laid(dark)
				if _, err := chromedp.Run(b.Context, chromedp.Evaluate[chromedp.Void](rules)); err != nil {
					t.Fatal(err)
				}
				for _, v := range eval[[]string](b, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + n.failureSummary).join("; ")))`) {
					t.Errorf("%s at %d pixels, dark %t: %s", s.name, width, dark, v)
				}
			}
			// What is told of time may be another text by now: then both are laid out anew.
			for try := 0; !strings.Contains(s.path, "replay") && layouts[false] != layouts[true]; try++ {
				if try == 5 {
					t.Errorf("%s at %d pixels is laid out otherwise in the dark", s.name, width)
					break
				}
				laid(false)
				laid(true)
			}
		}
	}
}

// TestHostile: whatever models write, the pages show it, fire nothing, ask for nothing, and are
// laid out within their edges.
func TestHostile(t *testing.T) {
	text, err := os.ReadFile("../testdata/hostile.json")
	if err != nil {
		t.Fatal(err)
	}
	var hostile []string
	if err := json.Unmarshal(text, &hostile); err != nil {
		t.Fatal(err)
	}
	hostile = append(hostile, strings.Repeat("W", 15000), strings.Repeat("\n", 2000))
	b := newTab(t, func(w *world) error {
		s, err := w.serve("claude-code")
		if err != nil {
			return err
		}
		for i, bad := range hostile {
			code, err := json.Marshal(object{"lam": "x", "body": object{"quote": bad}})
			if err != nil {
				return err
			}
			name := fmt.Sprintf("t%d", i)
			for _, call := range []func() error{
				func() error {
					return s.call(false, "evolve", object{"name": name, "code": json.RawMessage(code), "description": bad, "draft": true})
				},
				func() error { return s.call(false, name, object{"input": bad}) },
				func() error { return s.call(true, "run", object{"code": "x => raise(x)", "input": bad}) },
			} {
				if err := call(); err != nil {
					return err
				}
			}
		}
		return s.end()
	})
	const p = "/p/claude-code/"
	paths := []string{p, p + "tools", p + "runs", p + "events", p + "authority"}
	for i := range hostile {
		if i%4 == 0 || testing.Short() == false && os.Getenv("PIF_FULL") != "" {
			paths = append(paths, fmt.Sprintf("%stool?name=t%d", p, i), fmt.Sprintf("%sruns?tool=t%d", p, i))
		}
	}
	for _, path := range paths {
		for _, width := range []int64{1280, 360} {
			b.healthy(screen{path: path, width: width})
		}
	}
	// What keeps markup out is the browser, too.
	if eval[bool](b, `(() => { try { document.body.innerHTML = "<p>x"; return true } catch { return false } })()`) {
		t.Error("a script can write markup")
	}
	held := func(p *runtime.EvaluateParams) { p.AllowUnsafeEvalBlockedByCSP = new(bool) }
	evaluates, err := chromedp.Run(b.Context, chromedp.Evaluate[bool](`(() => { try { return new Function("return true")() } catch { return false } })()`, held))
	if err != nil || evaluates {
		t.Errorf("a script can evaluate text: %v", err)
	}
}

// TestKeysAndLive: the keys move, search and open; what another process does appears while one
// looks; and without script all is there.
func TestKeysAndLive(t *testing.T) {
	b := newTab(t, (*world).populate)
	key := func(keys string) { b.Helper(); b.fatal(chromedp.Do(b.Context, chromedp.KeyEvent(keys))) }
	open := func(path string) {
		b.Helper()
		b.fatal(show(b.Context, b.base, screen{path: "/p/claude-code/" + path, width: 1280}))
	}
	open("tools")
	key("jj")
	if got := eval[string](b, `document.activeElement.textContent`); got != "forecast" {
		t.Errorf("two rows down is %q", got)
	}
	key("k")
	if got := eval[string](b, `document.activeElement.textContent`); got != "digest" {
		t.Errorf("one row up is %q", got)
	}
	key("?")
	if !eval[bool](b, `document.querySelector("dialog").open`) {
		t.Error("? opens no help")
	}
	key("\x1b")
	b.until(`!document.querySelector("dialog").open`)
	key("/")
	if got := eval[string](b, `document.activeElement.id`); got != "search" {
		t.Errorf("/ moves to %q", got)
	}
	// The protocol's own character comes through, which a keyboard's doesn't.
	eval[string](b, `document.activeElement.value = ""`)
	key("squ")
	key(kb.Enter)
	b.until(`location.search.includes("squ") && document.querySelectorAll("tbody tr").length === 1 && document.documentElement.classList.contains("js")`)
	key("jq")
	b.until(`location.pathname.endsWith("/questions")`)

	open("runs")
	b.until(`document.querySelector(".live.on") !== null`)
	s, err := b.world.serve("claude-code")
	b.fatal(err)
	b.fatal(s.call(false, "square", object{"input": 4321}))
	began := time.Now()
	b.until(`[...document.querySelectorAll("tr.fresh")].some(r => r.textContent.includes("4321") && r.textContent.includes("ok"))`)
	t.Logf("the run was shown within %v of its answer", time.Since(began).Round(10*time.Millisecond))
	b.fatal(s.end())

	_, err = chromedp.Call(b.Context, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.fatal(err)
	open("runs")
	link, err := chromedp.Run(b.Context, chromedp.Text(".noscript"))
	if err != nil || !strings.Contains(link, "come again") {
		t.Errorf("without script: %q, %v", link, err)
	}
	if !slices.Contains([]int{0}, len(b.wrong)) {
		t.Errorf("%q", b.wrong)
	}
}
