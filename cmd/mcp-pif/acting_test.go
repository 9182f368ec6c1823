//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/wait"
)

// children is the processes that a process has started, and those have.
func children(t testing.TB, pid int) []int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("children are listed in /proc, which is Linux's")
	}
	entries, err := os.ReadDir("/proc")
	must.NoError(t, err)
	parent := map[int]int{}
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has just ended
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if fields[0] == "Z" {
			continue
		}
		parent[id], _ = strconv.Atoi(fields[1])
	}
	var found []int
	for id := range parent {
		for p := parent[id]; p > 1; p = parent[p] {
			if p == pid {
				found = append(found, id)
				break
			}
		}
	}
	return found
}

// reads waits until the tool r reads the file a: a plugin may need longer to start, where
// the machine is busy, than its first request waits for it.
func (p *process) reads() {
	p.t.Helper()
	wait.Until(p.t, "reading works", func() bool {
		text, failed := p.runs("r", "a")
		if failed && !strings.Contains(text, "effect_failed") || !failed && text != `"A"` {
			p.t.Fatalf("reading: %s", text)
		}
		return !failed
	})
}

func TestPureServerStartsNoProcess(t *testing.T) {
	t.Parallel()
	p := start(t).open()
	p.call("evolve", `{"name":"r","code":"p => !fs.read(p)","capabilities":["fs.read:./x"]}`)
	p.call("run", `{"code":"!fs.read(\"x\")"}`)
	p.call("run", `{"code":"1 + 1"}`)
	if c := children(t, p.cmd.Process.Pid); len(c) > 0 {
		t.Errorf("a server without any capability has started processes: %v", c)
	}
}

// A plugin that was granted and never declared isn't started either.
func TestPluginsStartWhenDeclared(t *testing.T) {
	t.Parallel()
	p, _ := sandboxed(t, map[string]string{"sandbox/a": "A"}, "--cap", "fs:./sandbox")
	p.makes("pure", "x => x")
	if c := children(t, p.cmd.Process.Pid); len(c) > 0 {
		t.Errorf("processes before any tool declared the capability: %v", c)
	}
	p.makes("r", "p => !fs.read(p)", "fs.read:./sandbox")
	p.reads()
	if c := children(t, p.cmd.Process.Pid); len(c) == 0 {
		t.Error("the effect was not done by another process")
	}
}

func TestPluginsEndWithTheServer(t *testing.T) {
	t.Parallel()
	for _, how := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, 0} {
		p, _ := sandboxed(t, map[string]string{"sandbox/a": "A"}, "--cap", "fs:./sandbox")
		p.makes("r", "p => !fs.read(p)", "fs.read:./sandbox")
		p.reads()
		plugins := children(t, p.cmd.Process.Pid)
		if len(plugins) == 0 {
			t.Fatal("no plugin process")
		}
		if how == 0 {
			p.in.Close()
		} else if err := p.cmd.Process.Signal(how); err != nil {
			t.Fatal(err)
		}
		for _, id := range plugins {
			wait.Until(t, fmt.Sprintf("plugin %d ended after its server's %v", id, how), func() bool {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
				return err != nil || strings.Contains(string(stat), ") Z ")
			})
		}
	}
}

func TestPluginsComeBack(t *testing.T) {
	t.Parallel()
	p, _ := sandboxed(t, map[string]string{"sandbox/a": "A"}, "--cap", "fs:./sandbox,timeout=2s")
	p.makes("r", "p => !fs.read(p)", "fs.read:./sandbox")
	p.reads()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		for _, id := range children(t, p.cmd.Process.Pid) {
			must.NoError(t, syscall.Kill(id, sig))
		}
		// The first may fail; the server answers, and soon it works again.
		wait.Until(t, fmt.Sprintf("reading works again after %v", sig), func() bool {
			text, failed := p.runs("r", "a")
			if failed && !strings.Contains(text, "effect_failed") {
				t.Fatalf("a read with the plugin gone: %s", text)
			}
			return !failed && text == `"A"`
		})
	}
}

func TestFetchFromLoopback(t *testing.T) {
	t.Parallel()
	secret := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the server that wasn't granted got %s %s", r.Method, r.URL)
	}))
	defer secret.Close()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/data":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"price":1.10,"count":12345678901234567890}`)
		case "/v1/away":
			http.Redirect(w, r, secret.URL, http.StatusFound)
		case "/v1/out":
			http.Redirect(w, r, "/v2/data", http.StatusFound)
		default:
			t.Errorf("the server got %s %s", r.Method, r.URL)
		}
	}))
	defer web.Close()
	p, _ := sandboxed(t, nil, "--cap", "fetch.get:"+web.URL+"/v1/**")
	p.makes("get", "u => !fetch(u)", "fetch.get:"+web.URL+"/v1/**")
	p.makes("many", "u => par(!fetch(u).json.count, !fetch(u).json.count, !fetch(u).json.count)", "fetch.get:"+web.URL+"/v1/**")

	text, failed := p.runs("get", web.URL+"/v1/data")
	var r struct {
		Status int
		Body   string
		JSON   struct {
			Price json.Number
			Count json.Number
		}
	}
	if err := json.Unmarshal([]byte(text), &r); failed || err != nil || r.Status != 200 || r.JSON.Price != "1.10" || r.JSON.Count != "12345678901234567890" {
		t.Errorf("fetched %s (%v)", text, err)
	}
	if text, failed := p.runs("many", web.URL+"/v1/data"); failed || text != "[12345678901234567890,12345678901234567890,12345678901234567890]" {
		t.Errorf("under par: %s", text)
	}
	for _, url := range []string{
		web.URL + "/v2/data", web.URL + "/v10", web.URL + "/v1/%2e%2e/v2/data", web.URL + "/v1/../v2/data", web.URL + "/v1/away", web.URL + "/v1/out",
		secret.URL, secret.URL + "/v1/data", strings.Replace(web.URL, "127.0.0.1", "localhost", 1) + "/v1/data",
		strings.Replace(web.URL, "127.0.0.1", "2130706433", 1) + "/v1/data", strings.Replace(web.URL, "127.0.0.1", "user@127.0.0.1", 1) + "/v1/data",
		"file:///etc/passwd", "",
	} {
		if text, failed := p.runs("get", url); !failed || !strings.Contains(text, "denied") && !strings.Contains(text, "effect_failed") {
			t.Errorf("fetching %q gave %s", url, text)
		}
	}
	if text, failed := p.runs("get", map[string]any{"url": web.URL + "/v1/data", "method": "POST"}); !failed || !strings.Contains(text, "denied") {
		t.Errorf("a method that was not granted: %s", text)
	}
}

// What a model sees never holds a path of the host.
func TestNoHostPaths(t *testing.T) {
	t.Parallel()
	p, dir := sandboxed(t, map[string]string{"sandbox/a": "A", "sandbox/d/b": "B", "outside": "O"}, "--cap", "fs:sandbox")
	must.NoError(t, os.Symlink(filepath.Join(dir, "outside"), filepath.Join(dir, "sandbox", "link")))
	must.NoError(t, syscall.Mkfifo(filepath.Join(dir, "sandbox", "fifo"), 0o600))
	ops := map[string]string{
		"read":  "p => !fs.read(p)",
		"write": `p => !fs.write({path: p, content: "x"})`,
		"ls":    "p => !fs.list(p)",
		"stat":  "p => !fs.stat(p)",
		"mkdir": "p => !fs.mkdir({path: p})",
		"rm":    "p => !fs.remove({path: p})",
		"glob":  "p => !fs.glob(p)",
	}
	for name, code := range ops {
		p.makes(name, code, "fs:./sandbox")
	}
	for _, path := range []string{
		"missing", "link", "link/x", "fifo", "d", "a/b", "..", "../outside", "/etc/passwd", dir + "/outside", "a/", "", ".", "a\x00b",
		strings.Repeat("x", 5000), strings.Repeat("y/", 3000), "/proc/self/root/etc/passwd", "d/../../outside", "\u202ea", "A",
	} {
		for name := range ops {
			text, failed := p.runs(name, path)
			if !strings.Contains(path, dir) && strings.Contains(text, filepath.Dir(dir)) {
				t.Errorf("%s %.40q: a path of the host in %s", name, path, text)
			}
			if strings.Contains(text, "root:x:") || !failed && (name == "read" && path != "A") {
				t.Errorf("%s %.40q gave %s", name, path, text)
			}
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "outside")); err != nil || string(b) != "O" {
		t.Errorf("outside holds %q, %v", b, err)
	}
}

// Many callers with many effects each: every outcome is right, every effect is
// in the journal, in order.
func TestManyCallersManyEffects(t *testing.T) {
	t.Parallel()
	callers, effects := 16, 100
	if full() {
		effects = 10_000
	}
	files := map[string]string{}
	for i := range 10 {
		files[fmt.Sprintf("sandbox/%d", i)] = strconv.Itoa(i)
	}
	p, _ := sandboxed(t, files, "--cap", "fs:./sandbox", "--timeout", "30m")
	p.makes("sum", "n => fold(p => fst(p) + parse_int(!fs.read(to_text(snd(p) % 10))), 0, range(0, n))", "fs.read:./sandbox")
	for i := range callers {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"c%d","method":"tools/call","params":{"name":"run","arguments":{"tool":"sum","input":%d,"steps":1000000000}}}`, i, effects))
	}
	want := strconv.Itoa(effects / 10 * 45)
	for answered := 0; answered < callers; {
		line, err := p.out.ReadBytes('\n')
		must.NoError(t, err)
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if m.Method != "" {
			continue // a notification
		}
		answered++
		if r := p.tool(m); r.IsError || r.Content[0].Text != want {
			t.Fatalf("%s: %s, want %s", m.ID, r.Content[0].Text, want)
		}
	}
	requested, outcomes, last := map[string]int{}, 0, uint64(0)
	asked := map[uint64]bool{}
	for after := 0; ; {
		r := p.call("journal", fmt.Sprintf(`{"after":%d,"limit":1000}`, after))
		var page struct {
			Events []struct {
				Seq       uint64
				Kind, Run string
				Data      struct{ Request uint64 }
			}
		}
		must.NoError(t, json.Unmarshal([]byte(r.Content[0].Text), &page))
		if len(page.Events) == 0 {
			break
		}
		for _, e := range page.Events {
			if e.Seq != last+1 {
				t.Fatalf("event %d follows %d", e.Seq, last)
			}
			last = e.Seq
			switch e.Kind {
			case "effect.requested":
				requested[e.Run]++
				asked[e.Seq] = true
			case "effect.outcome":
				if !asked[e.Data.Request] {
					t.Fatalf("event %d is the outcome of %d, which is no open request", e.Seq, e.Data.Request)
				}
				delete(asked, e.Data.Request)
				outcomes++
			}
		}
		after = int(last)
	}
	if len(requested) != callers || outcomes != callers*effects {
		t.Errorf("%d runs, %d outcomes", len(requested), outcomes)
	}
	for run, n := range requested {
		if n != effects {
			t.Errorf("run %s asked %d times", run, n)
		}
	}
}
