package pinned

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/pinned/npmtest"
	"github.com/mcp-pif/mcp-pif/core/must"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]string{
		"npx -y @modelcontextprotocol/server-memory@2026.8.31":  "npm:@modelcontextprotocol/server-memory@2026.8.31",
		"npx --yes server@1.2.3-beta.1 --flag":                  "npm:server@1.2.3-beta.1",
		"/usr/bin/npx -p tools@1.0.0 other":                     "npm:tools@1.0.0",
		"npm exec -- server@1.2.3":                              "npm:server@1.2.3",
		"uvx mcp-server-git==2025.1.14 --repository .":          "pypi:mcp-server-git==2025.1.14",
		"uvx --from=mcp-server-git@1.0 git":                     "pypi:mcp-server-git==1.0",
		"uv tool run server==1.0rc1":                            "pypi:server==1.0rc1",
		"pipx run --spec server==1.0 program":                   "pypi:server==1.0",
		"npx server":                                            "npm:server@",
		"npx server@latest":                                     "error",
		"npx server@^1.2.3":                                     "error",
		"npx -c server":                                         "error",
		"npx ../../x@1.2.3":                                     "error",
		"uvx server==1.*":                                       "error",
		"uvx git+https://example.com/x":                         "error",
		"docker run -i image:latest":                            "error",
		"deno run server.ts":                                    "error",
		"docker run -i image@sha256:" + strings.Repeat("a", 64): "no runner",
		"/usr/bin/node server.js":                               "no runner",
		"":                                                      "no runner",
	} {
		p, isRunner, err := Parse(strings.Fields(line))
		got := p.String()
		if err != nil {
			got = "error"
		} else if !isRunner {
			got = "no runner"
		}
		if got != want {
			t.Errorf("%s: %s (%v), want %s", line, got, err, want)
		}
	}
	p, _, err := Parse([]string{"npx", "-y", "-p", "tools@1.0.0", "other", "-y", "--", "x"})
	if err != nil || p.Program != "other" || !slices.Equal(p.Args, []string{"-y", "--", "x"}) {
		t.Errorf("the program's own arguments stay: %+v, %v", p, err)
	}
}

// need skips a test whose installer this machine lacks, unless it is required.
func need(t *testing.T, required string, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv(required) != "" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
}

// An npm package is installed at the version that was named, with what it depends on;
// no script of any of them runs unless that was allowed.
func TestInstallNPM(t *testing.T) {
	must.SkipQuick(t)
	need(t, "PIF_REQUIRE_NODE", "npm", "node")
	server := func(version string) []byte {
		return npmtest.Tarball(t, map[string]string{
			"package.json": `{"name":"server","version":"` + version + `","bin":{"server":"main.js"},"dependencies":{"dep":"^1.0.0"}}`,
			"main.js":      "#!/usr/bin/env node\nconsole.log('" + version + "', require('dep'), process.argv.slice(2).join())\n",
		})
	}
	s := npmtest.Registry(t, map[string][]byte{
		"server-1.0.0": server("1.0.0"), "server-2.0.0": server("2.0.0"),
		"dep-1.0.0": npmtest.Tarball(t, map[string]string{
			"package.json": `{"name":"dep","version":"1.0.0","scripts":{"postinstall":"echo ran > ran"}}`, "index.js": "module.exports = 'dep'\n",
		}),
	})
	for _, variable := range npmtest.Env(t, s) {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	for _, allowed := range []bool{false, true} {
		folder := t.TempDir()
		p, _, err := Parse([]string{"npx", "-y", "server@1.0.0", "a", "b"})
		must.NoError(t, err)
		in, err := p.Install(t.Context(), folder, Options{Scripts: allowed})
		must.NoError(t, err)
		if !slices.Equal(in.Scripts, []string{"dep"}) {
			t.Errorf("scripts of %q, want dep", in.Scripts)
		}
		if _, err := os.Stat(filepath.Join(folder, "node_modules/dep/ran")); (err == nil) != allowed {
			t.Errorf("allowed %v: the install script's file: %v", allowed, err)
		}
		cmd := exec.CommandContext(t.Context(), in.Command[0], in.Command[1:]...)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "1.0.0 dep a,b\n" {
			t.Errorf("%q, %v", out, err)
		}
	}
	for line, want := range map[string]string{
		"npx -y server": "2.0.0", "npx server@latest": "2.0.0", "npx server@^1.0.0": "1.0.0", "npx server@1.x": "1.0.0", "npx server@1.0.0": "1.0.0", "npx missing": "", "npx server@^3.0.0": "",
	} {
		if p, isRunner, err := Find(t.Context(), t.TempDir(), strings.Fields(line)); p.Version != want || !isRunner || (err == nil) != (want != "") {
			t.Errorf("%s: the version is %q, %v, want %q", line, p.Version, err, want)
		}
	}
}

// What a registry has is asked for elsewhere than in the folder of the caller, whose settings and modules may be
// somebody else's.
func TestFindElsewhere(t *testing.T) {
	must.SkipQuick(t)
	var asked atomic.Int32
	theirs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(theirs.Close)
	here := t.TempDir()
	for name, text := range map[string]string{
		".npmrc": "registry=" + theirs.URL + "\n", "package.json": "{}",
		"uv.toml": "index-url = \"" + theirs.URL + "\"\n",
		"pip.py":  "open('ran', 'w')\n", "sitecustomize.py": "open('ran', 'w')\n",
	} {
		must.NoError(t, os.WriteFile(filepath.Join(here, name), []byte(text), 0o600))
	}
	t.Chdir(here)
	own := filepath.Join(t.TempDir(), "npmrc")
	must.NoError(t, os.WriteFile(own, []byte("registry=http://127.0.0.1:1\nfetch-retries=0\n"), 0o600))
	t.Setenv("npm_config_userconfig", own)
	t.Setenv("PIP_NO_INDEX", "1")
	t.Setenv("UV_OFFLINE", "1")
	for _, line := range []string{"npx server", "uvx my-server"} {
		if p, _, err := Find(t.Context(), t.TempDir(), strings.Fields(line)); err == nil {
			t.Errorf("%s: found %v", line, p)
		}
	}
	_, _ = Package{Registry: "pypi", Name: "my-server", Version: "1.0"}.Install(t.Context(), t.TempDir(), Options{})
	if _, err := os.Stat("ran"); err == nil || asked.Load() > 0 {
		t.Errorf("a module of the folder ran: %v; its registry was asked %d times", err == nil, asked.Load())
	}
}

// A wheel is installed without building anything, and its entry point runs in
// isolation.
func TestInstallWheel(t *testing.T) {
	must.SkipQuick(t)
	need(t, "", "python3")
	if err := exec.Command("python3", "-m", "pip", "--version").Run(); err != nil {
		t.Skip("python3 has no pip")
	}
	wheels := t.TempDir()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for name, text := range map[string]string{
		"my_server/__init__.py":                    "import sys\ndef main():\n    print('1.0', *sys.argv[1:])\n",
		"my_server-1.0.dist-info/METADATA":         "Metadata-Version: 2.1\nName: my-server\nVersion: 1.0\n",
		"my_server-1.0.dist-info/WHEEL":            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"my_server-1.0.dist-info/entry_points.txt": "[gui_scripts]\nwindow = my_server:window\n[console_scripts]\nmy-server = my_server:main\n",
		"my_server-1.0.dist-info/RECORD":           "",
	} {
		w, err := z.Create(name)
		must.NoError(t, err)
		must.Succeed(t)(fmt.Fprint(w, text))
	}
	must.NoError(t, z.Close())
	must.NoError(t, os.WriteFile(filepath.Join(wheels, "my_server-1.0-py3-none-any.whl"), out.Bytes(), 0o600))
	t.Setenv("PIP_NO_INDEX", "1")
	t.Setenv("PIP_FIND_LINKS", wheels)
	t.Setenv("UV_NO_INDEX", "1")
	t.Setenv("UV_FIND_LINKS", wheels)
	folder := t.TempDir()
	in, err := Package{Registry: "pypi", Name: "my-server", Version: "1.0", Args: []string{"x"}}.Install(t.Context(), folder, Options{})
	must.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), in.Command[0], in.Command[1:]...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "1.0 x\n" {
		t.Errorf("%q, %v", out, err)
	}
	if p, _, err := Find(t.Context(), t.TempDir(), []string{"uvx", "my-server"}); err != nil || p.Version != "1.0" {
		t.Errorf("the newest is %q, %v", p.Version, err)
	}
	if _, err := (Package{Registry: "pypi", Name: "other", Version: "1.0"}).Install(t.Context(), t.TempDir(), Options{}); err == nil {
		t.Error("what isn't there was installed")
	}
}
