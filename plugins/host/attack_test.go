//go:build linux

package host

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/core/wait"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
)

// A plugin that doesn't introduce itself as it should is killed and not used.
func TestAttackHandshake(t *testing.T) {
	t.Parallel()
	for role, says := range map[string]string{
		"tcp":     "doesn't listen at a unix socket",
		"foreign": "listens outside its folder",
		"escape":  "listens outside its folder",
		"link":    "listens at what is not a socket",
		"garbage": "Unrecognized remote plugin message",
		"old":     "incompatible API version",
		"exits":   "Unrecognized remote plugin message",
		"endless": "Unrecognized remote plugin message",
		"silent":  "it took too long to start",
		"deaf":    "it took too long to start",
		"frozen":  "it took too long to start",
		"other":   "its manifest is another one",
		// It has ended by the time that anybody asks why: the log has the reason.
		"litterer": "it made files where its socket is to be",
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, role)
			if says == "it took too long to start" {
				w.timing.start = time.Second
			}
			h := w.grant(t, "toy:a/**")
			f := w.fails(t, act(t, h, "echo_once", arg("v", value.Unit{})), fault.EffectFailed, "it wasn't begun")
			if role == "other" && !strings.Contains(f.Message, "isn't what its manifest says") {
				t.Fatal(f)
			}
			wait.Until(t, "nothing is left of it", func() bool {
				left, err := os.ReadDir(w.dir)
				return err == nil && len(left) == 0
			})
			wait.Until(t, "the problem is known", func() bool { return w.Status()[0].Problem != "" })
			if s := w.Status()[0]; s.State != "failed" || !strings.Contains(s.Problem, says) {
				t.Fatalf("%s, %s; want a problem with %q", s.State, s.Problem, says)
			}
		})
	}
}

// Whoever reaches a plugin's socket is answered only with the certificate of its host. The
// plugin's own is on P-256: go-plugin's, on P-521, costs each start tens of milliseconds.
func TestAttackStrangerAtTheSocket(t *testing.T) {
	t.Parallel()
	host := must.Value(wire.NewCertificate(x509.ExtKeyUsageClientAuth))
	cmd := exec.Command(must.Value(os.Executable()), "toy")
	cmd.Env = append(os.Environ(), wire.Handshake.MagicCookieKey+"="+wire.Handshake.MagicCookieValue, "PLUGIN_PROTOCOL_VERSIONS=1",
		plugin.EnvUnixSocketDir+"="+t.TempDir(), "PLUGIN_CLIENT_CERT="+string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: host.Certificate[0]})))
	out, err := cmd.StdoutPipe()
	must.NoError(t, err)
	must.NoError(t, wait.Start(cmd))
	kill := func() { _ = cmd.Process.Kill() }
	t.Cleanup(func() { kill(); _ = cmd.Wait() })
	defer time.AfterFunc(wait.Limit(t), kill).Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	must.NoError(t, err)
	parts := strings.Split(strings.TrimSpace(line), "|")
	if len(parts) != 6 {
		t.Fatalf("it introduces itself by %q", line)
	}
	own, err := x509.ParseCertificate(must.Value(base64.RawStdEncoding.DecodeString(parts[5])))
	must.NoError(t, err)
	if key, ok := own.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		t.Errorf("its certificate has the key %v", own.PublicKey)
	}
	roots := x509.NewCertPool()
	roots.AddCert(own)
	for name, certificates := range map[string][]tls.Certificate{
		"the host": {host}, "none": nil, "another": {must.Value(wire.NewCertificate(x509.ExtKeyUsageClientAuth))},
	} {
		c, err := net.Dial("unix", parts[3])
		must.NoError(t, err)
		must.NoError(t, c.SetDeadline(time.Now().Add(wait.Limit(t))))
		// The server speaks first, once it knows who it is.
		_, err = tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: certificates, NextProtos: []string{"h2"}}).Read(make([]byte, 1))
		if isHost := name == "the host"; isHost && err != nil || !isHost && !strings.Contains(fmt.Sprint(err), "remote error: tls: ") {
			t.Errorf("with the certificate of %s: %v", name, err)
		}
		c.Close()
	}
}

// go-plugin's reader of standard error panics on a message that is no string.
func TestAttackLogLinePanicsGoPlugin(t *testing.T) {
	w := newWorld(t, "shouts")
	h := w.grant(t, "toy:a/**")
	w.do(t, h, "pid")
	wait.Until(t, "the line is in the log", func() bool { return strings.Contains(w.log.String(), "@timestamp") })
}

func TestAttackAnswersAgainstTheContract(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "raw")
	h := w.grant(t, "toy:a/**")
	w.do(t, h, "echo", arg("v", value.Unit{}))
	a := act(t, h, "large", arg("bytes", value.NewInt(1)))
	a.Most = 1 << 40
	w.fails(t, a, fault.EffectFailed, "too_large")
	w.fails(t, act(t, h, "pid"), fault.EffectFailed, "the plugin's answer can't be used")
	w.fails(t, act(t, h, "scope"), fault.EffectFailed, "the plugin's answer can't be used")
	w.fails(t, act(t, h, "key"), fault.OutcomeUnknown, "the plugin's answer can't be used")
	f := w.fails(t, act(t, h, "fail"), fault.EffectFailed, "toy.fail: failed: ")
	if len(f.Error()) > 2000 || strings.Contains(f.Error(), "\x1b") {
		t.Fatalf("%d bytes: %.100q", len(f.Error()), f.Error())
	}
	w.fails(t, act(t, h, "echo_once"), fault.OutcomeUnknown, "the connection to the plugin failed")
	w.fails(t, act(t, h, "die"), fault.EffectFailed, "it was cancelled")
	if s := w.Status()[0]; s.State != "running" || s.Starts != 1 {
		t.Errorf("a status cost the process: %+v", s)
	}
	for _, operation := range []string{"scope", "pid"} { // more than it was given room for
		a, starts := act(t, h, operation), w.Status()[0].Starts
		a.Progress, a.Most = func(string) {}, 2<<20
		w.fails(t, a, fault.EffectFailed, "the plugin's answer can't be used")
		w.do(t, h, "echo", arg("v", value.Unit{}))
		if s := w.Status()[0]; s.Starts != starts+1 {
			t.Errorf("%s: the process goes on: %+v", operation, s)
		}
	}
	a = act(t, h, "count")
	heard := 0
	a.Progress = func(s string) {
		if heard++; len(s) > 600 {
			t.Errorf("a message of %d bytes", len(s))
		}
	}
	w.fails(t, a, fault.EffectFailed, "the plugin's answer can't be used")
	if heard == 0 || heard > 5000 {
		t.Fatalf("heard %d messages", heard)
	}
}

// A plugin's process has nothing of the host's: not its input, environment,
// folder or open files.
func TestAttackInheritance(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "hunter2")
	secret := filepath.Join(t.TempDir(), "secret")
	must.NoError(t, os.WriteFile(secret, []byte("hunter2"), 0o600))
	// A descriptor that the host itself inherited: nothing marks it to be closed.
	fd, err := unix.Open(secret, unix.O_RDONLY, 0)
	must.NoError(t, err)
	defer unix.Close(fd)
	r, input, err := os.Pipe()
	must.NoError(t, err)
	defer r.Close()
	defer input.Close()
	input.WriteString("the conversation")
	before := os.Stdin
	os.Stdin = r
	defer func() { os.Stdin = before }()

	w := newWorld(t, "toy")
	root := t.TempDir()
	must.NoError(t, os.WriteFile(filepath.Join(root, "a.txt"), nil, 0o600))
	for _, h := range []*caps.Held{w.grant(t, "toy:a/**"), w.grant(t, "files:"+root)} {
		rec := w.do(t, h, "inherited").(*value.Record)
		get := func(key string) value.Value {
			for _, f := range rec.Fields {
				if f.Key == key {
					return f.Value
				}
			}
			t.Fatalf("no %s in %v", key, rec)
			return nil
		}
		list := func(key string) (all []string) {
			items, _ := value.Slice(get(key))
			for _, item := range items {
				all = append(all, string(item.(value.Str)))
			}
			return all
		}
		for _, e := range list("environment") {
			name, _, _ := strings.Cut(e, "=")
			allowed := []string{"LANG", "TMPDIR", "MCP_PIF_PLUGIN", "MCP_PIF_MAX_MESSAGE", "MCP_PIF_ROOT"}
			if !slices.Contains(allowed, name) && !strings.HasPrefix(name, "PLUGIN_") {
				t.Errorf("environment: %s", e)
			}
			if name == "PLUGIN_CLIENT_CERT" && strings.Contains(e, "PRIVATE") {
				t.Error("the host's private key")
			}
		}
		for _, d := range list("descriptors") {
			switch {
			case d == secret, strings.HasSuffix(d, "/secret"):
				t.Error("the host's descriptor")
			case d == root && h.Kind == "files", strings.HasPrefix(d, "/sys/fs/cgroup/"): // the runtime of Go reads how many processors it has
			case filepath.IsAbs(d) && d != "/dev/null" && !strings.HasPrefix(d, "/proc/") && !strings.HasPrefix(d, w.dir):
				t.Errorf("descriptor of %s", d)
			}
		}
		if h.Kind == "files" && !slices.Contains(list("descriptors"), root) {
			t.Error("the grant's directory isn't there")
		}
		if in := get("input"); in != value.Value(value.Str("")) {
			t.Errorf("input %v", in)
		}
		if folder := list("folder"); len(folder) > 0 {
			t.Errorf("its folder has %v", folder)
		}
		if get("group") != value.Value(value.Bool(true)) {
			t.Error("it is in another's process group")
		}
	}
	h := w.grant(t, "files:names="+root)
	if names, _ := value.Slice(w.do(t, h, "names")); len(names) != 1 || names[0] != value.Value(value.Str("a.txt")) {
		t.Fatalf("%v", names)
	}
	// Its own failures don't tell where things are either.
	f := w.fails(t, act(t, h, "leak", arg("path", value.Str(root+"/x"))), fault.EffectFailed, "in names/x and …")
	if strings.Contains(f.Error(), root) {
		t.Fatal(f)
	}
	w.sources["files"].Reads = []string{"/srv/lock.d/0123"} // a folder's copy
	w.fails(t, act(t, h, "leak", arg("path", value.Str("/srv/lock.d/0123/main.js"))), fault.EffectFailed, "in the plugin/main.js and …")
}

// beHost is a host with a plugin, which writes the numbers of the plugin's
// processes and waits.
func beHost() {
	t := &testing.T{}
	exe, _ := os.Executable()
	m, err := toy().Manifest()
	if err != nil {
		panic(err)
	}
	h, err := New(Options{Sandbox: unboxed})
	if err != nil {
		panic(err)
	}
	h.patient()
	if err := h.Add(Source{Manifest: m, Path: exe, Args: []string{os.Args[3]}}); err != nil {
		panic(err)
	}
	kinds, err := caps.NewKinds(m)
	if err != nil {
		panic(err)
	}
	w := &world{Host: h, kinds: kinds, policy: caps.NewPolicy(kinds, nil)}
	held := w.grant(t, "toy:a/**")
	if _, _, f := h.Perform(context.Background(), act(t, held, "echo", arg("v", value.Unit{}))); f != nil {
		panic(f)
	}
	fmt.Println(h.dir, h.Status()[0].PID)
	if os.Args[2] == "busy" {
		go h.Perform(context.Background(), act(t, held, "runaway"))
		for h.Status()[0].Calls == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	fmt.Println("ready")
	hang()
}

// However the host dies, its plugins die too.
func TestAttackHostIsKilled(t *testing.T) {
	for _, state := range [][]string{{"idle", "toy"}, {"busy", "toy"}, {"idle", "raw"}} { // raw doesn't end by itself
		for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGABRT} {
			t.Run(strings.Join(state, " ")+" "+sig.String(), func(t *testing.T) {
				cmd := exec.Command(os.Args[0], append([]string{"host"}, state...)...)
				out, err := cmd.StdoutPipe()
				must.NoError(t, err)
				must.NoError(t, cmd.Start())
				defer cmd.Process.Kill()
				lines := bufio.NewScanner(out)
				if !lines.Scan() {
					t.Fatal("the host says nothing")
				}
				dir, number, _ := strings.Cut(lines.Text(), " ")
				pid, err := strconv.Atoi(number)
				if err != nil || !lines.Scan() || !alive(pid) {
					t.Fatalf("the host says %q", lines.Text())
				}
				defer os.RemoveAll(dir)
				must.NoError(t, cmd.Process.Signal(sig))
				cmd.Wait()
				wait.Until(t, "the plugin is gone", func() bool { return !alive(pid) })
			})
		}
	}
}

// A plugin that dies takes what it started with it.
func TestAttackGrandchildOutlivesNobody(t *testing.T) {
	w := newWorld(t, "toy")
	h := w.grant(t, "toy:a/**")
	pid := w.pid(t, h)
	n, _ := w.do(t, h, "fork").(value.Int).Int64()
	grandchild := int(n)
	if !alive(grandchild) {
		t.Fatal("there is no grandchild")
	}
	syscall.Kill(pid, syscall.SIGKILL)
	wait.Until(t, "the grandchild is gone", func() bool { return !alive(grandchild) })
	if again := w.pid(t, h); again == pid {
		t.Fatal("the dead answer")
	}
}

// However often processes start and end, nothing of them stays.
func TestAttackNothingAccumulates(t *testing.T) {
	w := newWorld(t, "toy")
	w.timing.patience, w.timing.backoff, w.timing.settled = time.Hour, time.Nanosecond, 0
	h := w.grant(t, "toy:a/**")
	round := func() {
		w.pid(t, h)
		w.fails(t, act(t, h, "die"), fault.EffectFailed, "the plugin's process ended")
		wait.Until(t, "it has ended", func() bool { return w.Status()[0].State == "idle" })
	}
	held := func() (goroutines, descriptors int) {
		fds, err := os.ReadDir("/proc/self/fd")
		must.NoError(t, err)
		return runtime.NumGoroutine(), len(fds)
	}
	round()
	g, d := held()
	for range 8 {
		round()
	}
	wait.Until(t, "as much is held as before", func() bool {
		left, err := os.ReadDir(w.dir)
		must.NoError(t, err)
		goroutines, descriptors := held()
		return goroutines <= g+2 && descriptors <= d+2 && len(left) == 0
	})
}

// Where a folder's path is too long for sockets, they are elsewhere.
func TestNewWithALongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	w := newWorld(t, "toy")
	long, err := New(Options{Sandbox: unboxed, RuntimeDir: dir, Logger: w.Host.log})
	must.NoError(t, err)
	defer long.Close()
	long.patient()
	h := w.grant(t, "toy:a/**")
	must.NoError(t, long.Add(*w.sources["toy"]))
	if _, _, f := long.Perform(context.Background(), act(t, h, "pid")); f != nil {
		t.Fatal(f)
	}
	sockets := long.sockets.Path
	must.NoError(t, long.Close())
	if _, err := os.Stat(sockets); !os.IsNotExist(err) {
		t.Fatalf("%s is still there: %v", sockets, err)
	}
}

func TestAttackFailingStartsAreSpaced(t *testing.T) {
	w := newWorld(t, "exits")
	w.timing.backoff, w.timing.longest = time.Hour, time.Hour
	h := w.grant(t, "toy:a/**")
	a := act(t, h, "pid")
	w.fails(t, a, fault.EffectFailed, "doesn't start")
	wait.Until(t, "its end is known", func() bool { return w.Status()[0].State == "failed" })
	w.fails(t, a, fault.EffectFailed, "doesn't start")
	wait.Until(t, "the second end is known", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		s := w.seats[h.Grant.ID]
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.failures == 2
	})
	for range 100 {
		w.fails(t, a, fault.EffectFailed, "it is started again in")
	}
	if s := w.Status()[0]; s.Starts != 2 {
		t.Fatalf("%d starts", s.Starts)
	}
}
