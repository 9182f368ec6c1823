package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A played is the playground in a browser.
type played struct {
	t        *testing.T
	ctx      context.Context
	base     string
	end      func() // of its server
	mu       sync.Mutex
	problems []string // what the browser complained of
}

func play(t *testing.T) *played {
	t.Helper()
	dir := t.TempDir()
	binary, err := build(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "playground", filepath.Join(dir, "site"), "--serve", "0")
	cmd.Dir, cmd.Stderr = "..", os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &played{t: t, end: sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })}
	t.Cleanup(p.end)
	for lines := bufio.NewScanner(out); p.base == "" && lines.Scan(); {
		if address, _, ok := strings.Cut(lines.Text(), " (Ctrl-C"); ok {
			p.base = address
		}
	}
	if p.base == "" {
		t.Fatal("the playground isn't served")
	}
	ctx, stop := browser(t.Context())
	t.Cleanup(stop)
	p.ctx = ctx
	complain := func(what string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.problems = append(p.problems, what)
	}
	if err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			complain(e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			complain(e.Entry.Text)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return p
}

// eval evaluates a script that gives a string.
func (p *played) eval(script string) string {
	p.t.Helper()
	s, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](script))
	if err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
	return s
}

// until waits for a script to give true.
func (p *played) until(script string) {
	p.t.Helper()
	end := time.Now().Add(time.Minute)
	for p.eval("String(Boolean("+script+"))") != "true" {
		if time.Now().After(end) {
			p.t.Fatalf("it doesn't come to %s: status %q, result %q, %q", script, p.eval(`document.getElementById("status").textContent`), p.eval(`document.getElementById("result").textContent`), p.problems)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (p *played) write(id, text string) {
	p.eval(fmt.Sprintf(`(() => { const e = document.getElementById(%q); e.value = %q; e.dispatchEvent(new Event("input")); return ""; })()`, id, text))
}

// A person opens a task, makes a mistake, sees it, ends a run that is too long, and goes on
// without a network.
func TestPlayground(t *testing.T) {
	p := play(t)
	result := `document.getElementById("result").textContent`
	if _, err := chromedp.Run(p.ctx, chromedp.Navigate(p.base)); err != nil {
		t.Fatal(err)
	}
	p.until(`"ready" in document.documentElement.dataset && ` + result + ` === "48.600"`)
	if n := p.eval(`String(document.querySelectorAll("#tasks li").length)`); n != "80" {
		t.Errorf("%s tasks", n)
	}
	p.until(`document.getElementById("known").textContent.includes("Cost: linear") && document.getElementById("other").textContent.includes('"mul"')`)
	p.shoot("playground", 1280, 900, "light")
	p.shoot("playground-dark", 1280, 900, "dark")
	p.shoot("playground-narrow", 360, 1500, "light")
	if wide := p.eval(`String(document.documentElement.scrollWidth)`); wide > "360" {
		t.Errorf("at 360 px the page is %s wide", wide)
	}
	p.write("code", "n =>\n  n + (2 * \"2.5\")")
	p.until(`document.querySelector("#problems li pre")?.textContent.includes("^") && document.querySelector("#shown .wrong")?.textContent === "*"`)
	p.until(`document.getElementById("took").textContent.endsWith(", before the last change")`)
	p.shoot("playground-problem", 1280, 900, "light")
	p.write("code", `n => self(n + 1)`)
	p.write("input", `1`)
	p.eval(`document.getElementById("steps").value = "1000000000"`)
	p.eval(`(document.getElementById("run").click(), "")`)
	p.until(`!document.getElementById("stop").disabled`)
	p.eval(`(document.getElementById("stop").click(), "")`)
	p.until(result + ` === "stopped"`)
	p.write("code", `{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`)
	p.write("input", `12`)
	p.eval(`(document.getElementById("run").click(), "")`)
	p.until(result + ` === "144" && document.getElementById("other").textContent === "x => x * x"`)
	// Nothing may be fetched from elsewhere, no text become markup or script.
	for _, script := range []string{`fetch("http://127.0.0.1:1/").then(() => "done", (e) => "refused")`, `import("data:text/javascript,1").then(() => "done", () => "refused")`} {
		p.eval(fmt.Sprintf(`(%s.then((s) => { window.said = s; }), "")`, script))
		p.until(`window.said === "refused"`)
		p.eval(`(delete window.said, "")`)
	}
	if got := p.eval(`(() => { try { document.body.innerHTML = "<b>x</b>"; return "done"; } catch { return "refused"; } })()`); got != "refused" {
		t.Error("markup was made of a text")
	}
	p.eval(`(navigator.serviceWorker.ready.then(() => { window.kept = true; }), "")`)
	p.until(`window.kept`)
	p.end()
	if _, err := chromedp.Run(p.ctx, chromedp.Navigate(p.base+"#gcd")); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Run(p.ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	p.until(`"ready" in document.documentElement.dataset && document.getElementById("code").value.includes("greatest common divisor")`)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.problems {
		if !strings.Contains(s, "127.0.0.1:1/") && !strings.Contains(s, "data:text/javascript") && !strings.Contains(s, "TrustedHTML") && !strings.Contains(s, "trusted-types") {
			t.Errorf("the browser says: %s", s)
		}
	}
}

// shoot writes a picture, where PIF_SHOTS names a folder.
func (p *played) shoot(name string, width, height int64, theme string) {
	p.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, media); err != nil {
		p.t.Fatal(err)
	}
	if err := chromedp.Do(p.ctx, chromedp.EmulateViewport(width, height)); err != nil {
		p.t.Fatal(err)
	}
	dir := os.Getenv("PIF_SHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
