//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestDynamic: a dynamically linked program gets its loader and libraries, and
// nothing else with them.
func TestDynamic(t *testing.T) {
	needs(t, LayerFiles)
	f, err := os.Open("/bin/cat")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if loader, err := loaderOf(f); err != nil || loader == "" {
		t.Skip("/bin/cat is no dynamically linked binary")
	}
	for _, as := range users() {
		s := newScene(t, as)
		for _, c := range []struct{ name, out, errors string }{
			{s.root + "/a", "a", ""}, {"/etc/passwd", "", "Permission denied"}, {s.home + "/secret", "", "Permission denied"},
		} {
			spec := s.confined()
			spec.Path, spec.Args, spec.Env = "/bin/cat", []string{"cat", c.name}, []string{"LC_ALL=C"}
			r := start(t, spec, as)
			r.out.Scan()
			r.Cmd.Wait()
			if r.out.Text() != c.out || !strings.Contains(r.errors.String(), c.errors) {
				t.Errorf("%s: cat %s: %q, %q", as.name, c.name, r.out.Text(), r.errors)
			}
		}
	}
}

// TestNode: a runtime of another language, with threads of its own making and a
// compiler that writes code, works and is held.
func TestNode(t *testing.T) {
	needs(t, LayerFiles, LayerNetwork, LayerSyscalls)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no Node.js here")
	}
	if node, err = filepath.EvalSymlinks(node); err != nil {
		t.Fatal(err)
	}
	const program = `
const net = require('net'), { Worker } = require('worker_threads');
const tried = f => { try { f(); return 'done' } catch (e) { return e.code } };
console.log(tried(() => require('fs').readFileSync('/etc/passwd')));
console.log(tried(() => require('child_process').execFileSync('/bin/true')));
net.connect(process.argv[1] + '/none').on('error', e => console.log(e.code));
const s = net.createServer().listen(process.argv[1] + '/s', () => {
  s.close();
  new Worker("require('worker_threads').parentPort.postMessage('worker')", { eval: true }).on('message', m => console.log(m));
});`
	for _, as := range users() {
		dir := folder(t, as)
		r := start(t, Spec{Path: node, Args: []string{"node", "-e", program, dir}, Rules: []Rule{{Path: dir, Access: Sockets}}}, as)
		var lines []string
		for r.out.Scan() {
			lines = append(lines, r.out.Text())
		}
		slices.Sort(lines)
		if got := strings.Join(lines, " "); got != "EACCES EPERM EPERM worker" {
			t.Errorf("%s: %s\n%s", as.name, got, r.errors)
		}
	}
}

// TestFork: a plugin that may starts what its rules name, which is held as it is.
func TestFork(t *testing.T) {
	needs(t, LayerFiles, LayerSyscalls)
	for _, as := range users() {
		s := newScene(t, as)
		spec := s.confined()
		spec.Fork = true
		rules, err := Program("/bin/cat")
		if err != nil {
			t.Skip(err)
		}
		spec.Rules = append(spec.Rules, rules...)
		all := []attack{
			{"start=/bin/cat," + s.root + "/a", "", false},
			{"start=/bin/cat,/etc/passwd", "it ended with 1", false},
			{"start=/bin/sh,-c,:", "EACCES", false},
			{"fork", "", false},
			{"unshare", "EPERM", false},
			{fmt.Sprintf("tcp=%d", s.port), "EPERM", false},
			{"memfd", "EPERM", false},
			{"deathsig", "EPERM", false},
			{fmt.Sprintf("ptrace=%d", s.victim), "EPERM", false},
			{"read=/etc/passwd", "EACCES", false},
		}
		if v, _ := landlockVersion(); v >= 6 {
			all = append(all, attack{fmt.Sprintf("signal=%d", s.victim), "EPERM", false}, attack{"signal=PPID", "EPERM", false})
		}
		r := start(t, spec, as, attempted(all)...)
		met := map[string]string{}
		for len(met) < len(all) && r.out.Scan() {
			var line struct{ Attempt, Error string }
			if json.Unmarshal(bytes.TrimPrefix(r.out.Bytes(), []byte("a")), &line) == nil { // cat's output comes in between
				met[line.Attempt] = line.Error
			}
		}
		expect(t, all, met)
	}
}

// TestListen: a unix socket in the runtime directory, which the host connects to.
func TestListen(t *testing.T) {
	needs(t, LayerFiles, LayerNetwork)
	for _, as := range users() {
		s := newScene(t, as)
		r := start(t, Spec{Rules: []Rule{{Path: s.runtime, Access: Sockets}}}, as, "listen="+s.runtime+"/s")
		if _, err := r.next(t); err != "" {
			t.Fatalf("%s: listening met %s", as.name, err)
		}
		c, err := net.Dial("unix", s.runtime+"/s")
		must.NoError(t, err)
		defer c.Close()
		echo := make([]byte, 4)
		must.Succeed(t)(c.Write([]byte("ping")))
		if _, err := io.ReadFull(c, echo); err != nil || string(echo) != "ping" {
			t.Errorf("%s: %q, %v", as.name, echo, err)
		}
	}
}

// TestHandshake: go-plugin's own server works in the sandbox.
func TestHandshake(t *testing.T) {
	needs(t, LayerFiles, LayerNetwork)
	served := filepath.Join(filepath.Dir(attacker), "served")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-w", "-o", served, "./testdata/served")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s%v", out, err)
	}
	for _, network := range []Network{Listening, Outgoing} {
		for _, as := range users() {
			s := newScene(t, as)
			r := start(t, Spec{
				Path: served, Args: []string{"served"}, Network: network, Limits: Limits{Memory: 128 << 20, Files: 64},
				Env:   []string{"COOKIE=crumbs", "PLUGIN_UNIX_SOCKET_DIR=" + s.runtime},
				Rules: []Rule{{Path: s.runtime, Access: Sockets}},
			}, as)
			if !r.out.Scan() {
				t.Fatalf("%s: it says nothing: %s", as.name, r.errors)
			}
			// CORE-PROTOCOL|APP-PROTOCOL|NETWORK|ADDRESS|PROTOCOL
			line := strings.Split(r.out.Text(), "|")
			if len(line) < 5 || line[2] != "unix" || filepath.Dir(line[3]) != s.runtime || line[4] != "grpc" {
				t.Fatalf("%s: it says %q", as.name, r.out.Text())
			}
			c, err := net.Dial("unix", line[3])
			must.NoError(t, err)
			// The server's first frame of HTTP/2 comes by itself: SETTINGS.
			frame := make([]byte, 9)
			if _, err := io.ReadFull(c, frame); err != nil || frame[3] != 4 {
				t.Errorf("%s: it greets with % x, %v", as.name, frame, err)
			}
			c.Close()
		}
	}
}

// TestResolver: what a plugin with the network and [Resolver] reads, and that it
// reads nothing else of /etc.
func TestResolver(t *testing.T) {
	needs(t, LayerFiles)
	for _, as := range users() {
		all := []attack{{"read=/etc/passwd", "EACCES", true}, {"read=/etc/shadow", "EACCES", true}, {"list=/etc", "EACCES", true}}
		for _, name := range []string{"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf"} {
			if _, err := os.Stat(name); err == nil {
				all = append(all, attack{"read=" + name, "", true})
			}
		}
		if in, err := os.ReadDir("/etc/ssl/certs"); err == nil {
			all = append(all, attack{"list=/etc/ssl/certs", "", true})
			if i := slices.IndexFunc(in, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".crt") }); i >= 0 {
				all = append(all, attack{"read=/etc/ssl/certs/" + in[i].Name(), "", true})
			}
		}
		if _, err := os.Stat("/etc/shadow"); err != nil {
			all = slices.Delete(all, 1, 2)
		}
		expect(t, all, results(t, Spec{Network: Outgoing, Rules: Resolver()}, as, attempted(all)...))
	}
}
