//go:build linux

package host

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// needsLayers skips a test where this system lacks layers; with
// PIF_REQUIRE_SANDBOX=1 it fails it.
func needsLayers(t testing.TB) {
	t.Helper()
	if System().Holds() {
		return
	}
	if os.Getenv("PIF_REQUIRE_SANDBOX") == "1" {
		t.Fatalf("this system lacks layers: %s", System())
	}
	t.Skipf("this system lacks layers: %s", System())
}

// hostileWorld is a host with two hostile plugins, one of which has a directory,
// and the toy.
func hostileWorld(t *testing.T, sandbox func(string) Mode) *world {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{log: &syncBuffer{}, dir: t.TempDir()}
	w.Host, err = New(Options{Sandbox: sandbox, Logger: slog.New(slog.NewTextHandler(w.log, nil)), RuntimeDir: w.dir})
	if err != nil {
		t.Fatal(err)
	}
	var manifests []*caps.Manifest
	for role, p := range map[string]sdk.Plugin{"hostile": hostile("hostile", sdk.Segments), "hostilefs": hostile("hostilefs", sdk.Path), "toy": toy()} {
		m, err := p.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, m)
		if err := w.Add(Source{Manifest: m, Path: exe, Args: []string{role}}); err != nil {
			t.Fatal(err)
		}
	}
	if w.kinds, err = caps.NewKinds(manifests...); err != nil {
		t.Fatal(err)
	}
	w.policy = caps.NewPolicy(w.kinds, nil)
	w.patient()
	t.Cleanup(func() {
		if err := errors.Join(w.Host.Close(), w.policy.Close()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log:\n%.20000s", w.log.String())
		}
	})
	return w
}

// A hostility is an attempt and the errors that may meet it. real is set where the
// same attempt gets further with the sandbox off, which is tried, too: what refuses
// it is the sandbox, then.
type hostility struct {
	what, at, errors string
	real             bool
}

// surroundings makes what there is to be had around a plugin, and the attempts.
func surroundings(t *testing.T, w *world) []hostility {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := func(network, at string) net.Listener {
		l, err := net.Listen(network, at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	short, err := os.MkdirTemp("", "pif")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	tcp, path := listen("tcp4", "127.0.0.1:0"), filepath.Join(short, "s")
	abstract := "@" + filepath.Base(short)
	listen("unix", path)
	listen("unix", abstract)
	me := fmt.Sprint(os.Getpid())
	return []hostility{
		{"read", "/etc/passwd", "EACCES", true},
		{"read", secret, "EACCES", true},
		{"list", "/", "EACCES", true},
		{"list", w.dir, "EACCES", true},
		{"read", "/proc/" + me + "/environ", "EACCES", true},
		{"read", "/proc/" + me + "/maps", "EACCES", true},
		{"open", "/proc/" + me + "/mem", "EACCES", false},
		{"peek", me, "EPERM", false},
		{"write", filepath.Join(dir, "new"), "EACCES", true},
		{"write", secret, "EACCES", true},
		{"write", filepath.Join(w.dir, "new"), "EACCES", true},
		{"link", filepath.Join(dir, "link"), "EACCES", true},
		{"take", secret, "EACCES|EXDEV", false},

		{"tcp", tcp.Addr().String(), "EPERM", true},
		{"tcp6", "", "EPERM", false},
		{"udp", "", "EPERM", true},
		{"mptcp", "", "EPERM", false},
		{"unix", path, "EPERM", true},
		{"unix", abstract, "EPERM", true},
		{"datagram", "", "EPERM", true},

		{"fork", "", "EPERM", true},
		{"exec", "/bin/true", "EPERM|EACCES", false},
		{"memfd", "", "EPERM", true},
		{"execfd", "", "EPERM|EACCES", false},
		{"ptrace", me, "EPERM", false},
		{"attach", me, "EPERM", false},
		{"signal", me, "EPERM", true},
		{"pidfd", me, "EPERM", true},

		{"fill", "", "EACCES", true},
		{"litter", "", "EACCES", true},
		{"litter", "socket", "ENOENT", false},
		{"memory", "", "ENOMEM", true},
		{"shared", "", "EPERM", true},
		{"descriptors", "", "EMFILE", false},
		{"raise", "", "EPERM", false},
	}
}

// try has a plugin try something, and gives what it met.
func (w *world) try(t *testing.T, h *caps.Held, a hostility) string {
	t.Helper()
	return string(w.do(t, h, "try", arg("at", value.Str(a.at)), arg("what", value.Str(a.what))).(value.Str))
}

// TestAttackHostilePlugin: whatever it tries is refused, by an error that it sees
// itself; it goes on answering, and so do the host and the other plugins.
func TestAttackHostilePlugin(t *testing.T) {
	needsLayers(t)
	w := hostileWorld(t, nil)
	other := w.grant(t, "toy:a/**")
	for _, text := range []string{"hostile:a/**", "hostilefs:" + t.TempDir()} {
		held := w.grant(t, text)
		who := w.do(t, held, "who")
		for _, a := range surroundings(t, w) {
			if got := w.try(t, held, a); !slices.Contains(strings.Split(a.errors, "|"), got) {
				t.Errorf("%s: %s %s met %s, expected %s", held.Kind, a.what, a.at, got, a.errors)
			}
			if now := w.do(t, held, "who"); now != who {
				t.Fatalf("%s: after %s %s it is %v, not %v", held.Kind, a.what, a.at, now, who)
			}
		}
		if got := w.do(t, other, "echo", arg("v", value.Str("still"))); got != value.Str("still") {
			t.Errorf("another plugin answers with %v", got)
		}
	}
	if s := w.log.String(); strings.Contains(s, "ended by itself") || strings.Contains(s, "off:") {
		t.Error("a process ended, or lacked a layer")
	}
}

// TestAttacksOfHostilePluginAreReal: with the sandbox off the same attempts get
// further.
func TestAttacksOfHostilePluginAreReal(t *testing.T) {
	needsLayers(t)
	w := hostileWorld(t, unboxed)
	held := w.grant(t, "hostile:a/**")
	tried := 0
	for _, a := range surroundings(t, w) {
		if !a.real {
			continue
		}
		tried++
		if got := w.try(t, held, a); slices.Contains(strings.Split(a.errors, "|"), got) {
			t.Errorf("%s %s met %s without a sandbox, too: it shows nothing", a.what, a.at, got)
		}
	}
	if tried < 15 {
		t.Errorf("only %d were tried", tried)
	}
}

// TestAttackAnswersForAnother: handles are those of one process, each of which
// serves one grant. It can't get at the socket by which the host asks another, and
// the same number means nothing there.
func TestAttackAnswersForAnother(t *testing.T) {
	needsLayers(t)
	w := hostileWorld(t, nil)
	one, two := w.grant(t, "hostile:a/**"), w.grant(t, "hostile:b/**")
	said := []value.Value{w.do(t, one, "who"), w.do(t, two, "who")}
	for i, h := range []*caps.Held{one, two} {
		if s := string(said[i].(value.Str)); !strings.HasPrefix(s, h.String()+" ") {
			t.Errorf("%s is answered for by %s", h, s)
		}
	}
	numbers := map[uint64]int{}
	w.mu.Lock()
	for _, s := range w.seats {
		s.process.handles.mu.Lock()
		for _, it := range s.process.handles.open {
			numbers[it.number]++
		}
		s.process.handles.mu.Unlock()
	}
	theirs := w.seats[two.Grant.ID].process.addr.String()
	folder := w.seats[two.Grant.ID].process.launch.work
	w.mu.Unlock()
	if len(numbers) != 1 {
		t.Errorf("the handles have the numbers %v; the test is about two that are the same", numbers)
	}
	for _, a := range []hostility{
		{"unix", theirs, "EPERM", false}, {"list", filepath.Dir(theirs), "ENOENT", false}, {"take", folder, "EACCES|EXDEV", false},
		{"link", folder + "/link", "EACCES", false}, {"list", folder, "EACCES", false},
	} {
		if got := w.try(t, one, a); !slices.Contains(strings.Split(a.errors, "|"), got) {
			t.Errorf("%s the socket of another met %s, expected %s", a.what, got, a.errors)
		}
	}
	for range 20 {
		if got := []value.Value{w.do(t, one, "who"), w.do(t, two, "who")}; !slices.Equal(got, said) {
			t.Fatalf("%v, expected %v", got, said)
		}
	}
}

// TestAttackHostileHandshake: a false address is refused in the sandbox, too, and
// isn't even one that the plugin could listen at.
func TestAttackHostileHandshake(t *testing.T) {
	needsLayers(t)
	for role, says := range map[string]string{
		"tcp": "doesn't listen at a unix socket", "foreign": "listens outside its folder", "escape": "listens outside its folder",
	} {
		w := newWorld(t, role)
		w.sandbox = nil
		h := w.grant(t, "toy:a/**")
		if v, _, f := w.Perform(t.Context(), act(t, h, "echo", arg("v", value.Unit{}))); f == nil {
			t.Errorf("%s: it gave %v", role, v)
		}
		until(t, "the problem is known", func() bool { return w.Status()[0].Problem != "" })
		if s := w.Status()[0]; !strings.Contains(s.Problem, says) {
			t.Errorf("%s: %s; want %q", role, s.Problem, says)
		}
	}
}
