package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// binaryWith is an ELF file that names a loader.
func binaryWith(loader string) []byte {
	b := make([]byte, elfHeader+elfProgramSize)
	copy(b, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint64(b[32:], elfHeader)
	binary.LittleEndian.PutUint16(b[54:], elfProgramSize)
	binary.LittleEndian.PutUint16(b[56:], 1)
	if loader != "" {
		program := b[elfHeader:]
		binary.LittleEndian.PutUint32(program, elfInterpreter)
		binary.LittleEndian.PutUint64(program[8:], uint64(len(b)))
		binary.LittleEndian.PutUint64(program[32:], uint64(len(loader)+1))
		b = append(append(b, loader...), 0)
	}
	return b
}

// TestLoader: the file that a binary calls its loader is opened to it only where
// it is one.
func TestLoader(t *testing.T) {
	for loader, ok := range map[string]bool{
		"": true, "/lib64/ld-linux-x86-64.so.2": true, "/lib/ld-linux-aarch64.so.1": true, "/lib/ld-musl-x86_64.so.1": true,
		"/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": true,
		"/etc/shadow": false, "/home/user/.ssh/id_rsa": false, "ld-linux.so.2": false, "/lib64/../etc/ld-x.so": false,
		"/lib/a/b/ld-linux.so.2": false, "/tmp/ld-linux.so.2": false, "/lib64/": false, "/lib64/ld-linux": false, "/lib/libsecret.so": false,
	} {
		rules, err := libraries(bytes.NewReader(binaryWith(loader)))
		if (err == nil) != ok {
			t.Errorf("%q: %v", loader, err)
		}
		if want := ok && loader != ""; (len(rules) > 0) != want {
			t.Errorf("%q: %v", loader, rules)
		}
		for _, r := range rules {
			if r.Access&(Write|Sockets) != 0 || r.Access&Execute != 0 && r.Path != loader {
				t.Errorf("%q: the rule %+v allows more than reading libraries", loader, r)
			}
		}
	}
}

// TestHostileBinaries: what the headers say is refused or bounded, never followed.
func TestHostileBinaries(t *testing.T) {
	good := binaryWith("/lib64/ld-linux-x86-64.so.2")
	change := func(at int, with ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], with)
		return b
	}
	full := bytes.Repeat([]byte{0xff}, 8)
	for name, b := range map[string][]byte{
		"empty": nil, "text": []byte("hello"), "script": []byte("#!/bin/sh\n" + strings.Repeat(" ", 100)),
		"32 bits": change(4, 1), "big-endian": change(5, 2), "headers far away": change(32, full...), "headers beyond the end": change(32, 0, 0, 0, 1),
		"a size of entries": change(54, 1, 0), "many entries": change(56, 0xff, 0xff), "a loader far away": change(elfHeader+8, full...),
		"a long loader": change(elfHeader+32, full...), "a loader beyond the end": change(elfHeader+8, 0, 0, 0, 1), "no loader's name": change(elfHeader+32, make([]byte, 8)...),
		"cut": good[:elfHeader+10],
	} {
		if rules, err := libraries(bytes.NewReader(b)); err == nil || rules != nil {
			t.Errorf("%s: %v, %v", name, rules, err)
		}
	}
	for i := range len(good) {
		for _, b := range []byte{0, 1, 0x7f, 0xff} {
			_, _ = libraries(bytes.NewReader(change(i, b))) // panics for nothing
		}
	}
}

// TestProgram: a script brings its interpreter, which is a binary.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		name = filepath.Join(dir, name)
		must.NoError(t, os.WriteFile(name, []byte(content), 0o755))
		return name
	}
	static := write("static", string(binaryWith("")))
	if rules, err := Program(static); err != nil || len(rules) != 1 || rules[0] != (Rule{Path: static, Access: Execute}) {
		t.Errorf("%v, %v", rules, err)
	}
	script := write("script", "#! "+static+" -x\n")
	if rules, err := Program(script); err != nil || len(rules) != 2 || rules[1].Path != static {
		t.Errorf("%v, %v", rules, err)
	}
	for _, name := range []string{
		write("a", "#!"+write("secret", "password")+"\n"), write("b", "#!"+script+"\n"), write("c", "#!\n"), write("d", "#!sh\n"), write("e", "text"),
		filepath.Join(dir, "nowhere"), write("f", "#!"+filepath.Join(dir, "nowhere")+"\n"),
	} {
		if rules, err := Program(name); err == nil {
			t.Errorf("%s: %v", name, rules)
		}
	}
}

// TestResolverRules: they read, and no folder among them has more in it than
// configuration of names and certificates.
func TestResolverRules(t *testing.T) {
	for _, r := range Resolver() {
		if r.Access != Read || !r.Optional || r.File != nil || !filepath.IsAbs(r.Path) {
			t.Errorf("%+v", r)
		}
		for _, secret := range []string{"/etc/ssl/private/key.pem", "/etc/passwd", "/etc/shadow", "/etc/pki/tls/private/key.pem", "/run/docker.sock"} {
			if strings.HasPrefix(secret, r.Path+"/") || secret == r.Path {
				t.Errorf("%s reaches %s", r.Path, secret)
			}
		}
	}
}

// TestReports: what is missing is named with its reason, to people and to require.
func TestReports(t *testing.T) {
	var r Report
	if r.Holds() {
		t.Error("a report of nothing holds")
	}
	r.add(LayerFiles, "Landlock 7", "")
	r.add(LayerSockets, "", "Landlock 7 holds no sockets")
	if !r.Holds() || len(r.Missing()) != 1 {
		t.Errorf("%+v", r)
	}
	r.add(LayerNetwork, "", "no seccomp")
	if r.Holds() || r.Layer(LayerNetwork).On || r.Layer("nothing").On {
		t.Errorf("%+v", r)
	}
	if got, want := r.String(), "on: files; off: sockets (Landlock 7 holds no sockets), network (no seccomp)"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	err := error(&MissingError{Report: r})
	if got, want := err.Error(), "the sandbox is required and lacks network: no seccomp; --sandbox=best-effort starts it with the layers there are"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	if _, ok := errors.AsType[*MissingError](err); !ok {
		t.Error("it isn't one")
	}
}

// TestSystem: every system says of each layer whether it is there, and why not.
func TestSystem(t *testing.T) {
	r := System()
	for _, name := range []string{
		LayerDescriptors, LayerLimits, LayerCapabilities, LayerNoNewPrivs, LayerFiles, LayerNetwork, LayerSyscalls, LayerSignals, LayerSockets,
	} {
		if l := r.Layer(name); l.Detail == "" || l.Name != name {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if runtime.GOOS != "linux" && r.Holds() {
		t.Errorf("%+v", r)
	}
}
