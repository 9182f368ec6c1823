package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/caps/run"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest/strangers"
)

// theirs is the path of the program in testdata/others, which is built once.
var theirs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "others") // below that of all tests, which is removed
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "others")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./testdata/others").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.EvalSymlinks(path)
})

// copyOf makes a program of others', as the plugin of a role.
func copyOf(role, path string) error {
	program, err := theirs()
	if err != nil {
		return err
	}
	return strangers.Copy(program, role, path)
}

// stranger makes a program that is a plugin: stranger ROLE FILE.
func stranger(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: stranger ROLE FILE")
	}
	file := ts.MkAbs(args[1])
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o755))
	ts.Check(copyOf(args[0], file))
}

// goFlags is for commands that build: linking takes half the time without what debuggers read, and vet is asked for where it is meant.
const goFlags = "GOFLAGS=-mod=readonly -ldflags=-w -vet=off"

// golang runs the go command in the script's folder, with this machine's caches and
// no network: golang test ./... What it builds is static; the rest is compiled as these
// tests are, so that the cache has it.
func golang(ts *testscript.TestScript, neg bool, args []string) {
	cmd := exec.Command("go", args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "GOPROXY=off", goFlags)
	if args[0] == "build" {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); (err == nil) == neg {
		ts.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// installedIn adds a stranger to a lock in a folder of its own.
func installedIn(t *testing.T, role string) (program, lockFile string) {
	t.Helper()
	dir := t.TempDir()
	program, lockFile = filepath.Join(dir, "weather"), filepath.Join(dir, "plugins.lock.json")
	must.NoError(t, copyOf(role, program))
	var out strings.Builder
	if status := command([]string{"plugin", "add", program, "--yes", "--plugin-lock", lockFile}, strings.NewReader(""), &out, &out); status != 0 {
		t.Fatalf("status %d\n%s", status, out.String())
	}
	return program, lockFile
}

// ask performs weather.get by a host that knows what is installed.
func ask(t *testing.T, n *app.Installed) (string, string) {
	t.Helper()
	k, err := app.Kinds(n.Manifests()...)
	must.NoError(t, err)
	var said strings.Builder
	log := locked{new(sync.Mutex), &said}
	h, err := host.New(host.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	must.NoError(t, err)
	defer h.Close()
	must.NoError(t, app.AddPlugins(h, k, n.Sources(), &app.Upstreams{}, &app.Models{}))
	c, err := caps.Parse("weather:rome/**", k)
	must.NoError(t, err)
	g, err := caps.Resolve(c, caps.ResolveOptions{Kinds: k, Extra: n.Identity(k["weather"])})
	must.NoError(t, err)
	defer g.Close()
	o, _ := g.Manifest.Operation("weather.get")
	v, _, f := h.Perform(context.Background(), run.Act{
		Held: &caps.Held{Capability: g.Shown(), Grant: g, Within: g.Scope}, Operation: o, Verb: o.Verb,
		Args:     &value.Record{Fields: []value.Field{{Key: "place", Value: value.Str("rome/today")}}},
		Deadline: time.Now().Add(time.Minute), Most: 1 << 20,
	})
	if f != nil {
		log.mu.Lock()
		defer log.mu.Unlock()
		return "", f.Error() + " " + said.String()
	}
	return string(v.(value.Str)), ""
}

// Whoever swaps the program between the moment it is hashed and the moment it is
// executed has what was hashed executed, or nothing.
func TestAttackSwappedBetweenHashAndExec(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux executes an open file")
	}
	log := slog.New(slog.DiscardHandler)
	swap := func(t *testing.T, program string) {
		other := program + ".new"
		must.NoError(t, os.WriteFile(other, []byte("#!/bin/sh\necho owned > "+filepath.Join(filepath.Dir(program), "owned")+"\n"), 0o755))
		must.NoError(t, os.Rename(other, program))
	}
	for name, change := range map[string]func(t *testing.T, program string){
		"renamed over": swap,
		"made a link": func(t *testing.T, program string) {
			must.NoError(t, os.Remove(program))
			must.NoError(t, os.Symlink("/bin/sh", program))
		},
		"removed": func(t *testing.T, program string) {
			must.NoError(t, os.Remove(program))
		},
	} {
		t.Run(name, func(t *testing.T) {
			program, lockFile := installedIn(t, "weather")
			n, err := app.OpenInstalled(lockFile, log)
			must.NoError(t, err)
			defer n.Close()
			change(t, program)
			if text, failed := ask(t, n); text != "sunny in rome/today" {
				t.Errorf("%q, %s", text, failed)
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(program), "owned")); err == nil {
				t.Error("what was swapped in was executed")
			}
			if again, err := app.OpenInstalled(lockFile, log); err == nil {
				again.Close()
				t.Error("a new server takes it")
			}
		})
	}
	t.Run("written into", func(t *testing.T) {
		program, lockFile := installedIn(t, "weather")
		n, err := app.OpenInstalled(lockFile, log)
		must.NoError(t, err)
		defer n.Close()
		f, err := os.OpenFile(program, os.O_WRONLY|os.O_APPEND, 0)
		must.NoError(t, err)
		must.Succeed(t)(f.WriteString("\nstranger:ships\n"))
		f.Close()
		if text, failed := ask(t, n); text != "" || !strings.Contains(failed, "was changed since it was checked") {
			t.Errorf("%q, %s", text, failed)
		}
	})
}

// A process that says something else of itself than the lock isn't used, even where
// the bytes are right.
func TestAttackOtherManifestThanTheLock(t *testing.T) {
	_, lockFile := installedIn(t, "weather")
	n, err := app.OpenInstalled(lockFile, slog.New(slog.DiscardHandler))
	must.NoError(t, err)
	defer n.Close()
	n.Lock.Entries[0].Manifest.Operations[0].Doc = "another"
	if text, failed := ask(t, n); text != "" || !strings.Contains(failed, "isn't what its manifest says") {
		t.Errorf("%q, %s", text, failed)
	}
}

// TestPluginsReadme runs the way from nothing to a tool as plugins/README.md has it,
// against this checkout and without a network. Without PIF_FULL it has no vet, which reads
// every package below once more, and is linked as the tests are, not compiled anew.
func TestPluginsReadme(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a plugin and its tests")
	}
	must.SkipQuick(t)
	text, err := os.ReadFile("../../plugins/README.md")
	must.NoError(t, err)
	_, text, found := bytes.Cut(text, []byte("## From nothing to a tool"))
	all := blocks(string(text))
	if !found || len(all) == 0 || all[0].language != "sh" {
		t.Fatal("the way isn't there")
	}
	repository, err := filepath.Abs("../..")
	must.NoError(t, err)
	script := strings.ReplaceAll(all[0].text, "~/src/mcp-pif", repository)
	if script == all[0].text || strings.Count(script, "\n") < 8 {
		t.Fatalf("the way is another:\n%s", script)
	}
	for _, asks := range []string{"plugin add", "plugin accept"} { // no terminal is there to say so
		script = strings.Replace(script, asks, asks+" --yes", 1)
	}
	if !full() {
		for _, dear := range []string{"go vet ./... && ", "CGO_ENABLED=0 "} {
			whole := script
			if script = strings.Replace(script, dear, "", 1); script == whole {
				t.Fatalf("the way has no %s:\n%s", dear, script)
			}
		}
	}
	cmd := exec.Command("sh", "-ex", "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOPROXY=off", goFlags, "XDG_STATE_HOME="+cmd.Dir+"/state")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, said := range []string{
		"ok       handshake ", "ok       results ", "skipped  flags ", "can't be seen here", "0 failed", "added weather", "accepted the flags", "would have: weather.get:rome/**",
	} {
		if !strings.Contains(string(out), said) {
			t.Errorf("nothing says %q:\n%s", said, out)
		}
	}
}
