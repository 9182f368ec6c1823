// Package npmtest is a registry of npm on loopback, for tests of what is installed from one,
// and an MCP server that can be in a package of it.
package npmtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// Env is the variables by which npm asks a registry, with a cache that goes with the test.
func Env(t testing.TB, s *httptest.Server) []string {
	t.Helper()
	return []string{"npm_config_registry=" + s.URL, "npm_config_cache=" + t.TempDir(), "npm_config_update_notifier=false", "npm_config_noproxy=127.0.0.1"}
}

// Server makes a package with an MCP server of the name and version that has the tool hello,
// which only reads, gives the value of the variable WORD, and needs no arguments, and others
// that do the same.
func Server(t testing.TB, name, version string, others ...string) []byte {
	t.Helper()
	return Tarball(t, Files(name, version, others...))
}

// Files are those of a package of [Server].
func Files(name, version string, others ...string) map[string]string {
	all, _ := json.Marshal(append([]string{"hello"}, others...)) // strings have JSON
	return map[string]string{
		"package.json": `{"name":"` + name + `","version":"` + version + `","bin":{"` + path.Base(name) + `":"main.js"}}`,
		"main.js": `#!/usr/bin/env node
const tools = ` + string(all) + `.map(name => ({name, description: 'Gives a word.', inputSchema: {type: 'object', properties: {}}, annotations: {readOnlyHint: true}}))
require('readline').createInterface({input: process.stdin}).on('line', line => {
  const {id, method, params} = JSON.parse(line)
  const answer = {
    initialize: () => ({protocolVersion: params.protocolVersion < '2026' ? params.protocolVersion : '2025-11-25', capabilities: {tools: {}}, serverInfo: {name: '` + name + `', version: '` + version + `'}}),
    'tools/list': () => ({tools}),
    'tools/call': () => ({content: [{type: 'text', text: String(process.env.WORD)}]}),
    ping: () => ({}),
  }[method]
  if (id === undefined) return
  const out = answer ? {result: answer()} : {error: {code: -32601, message: 'no such method'}}
  console.log(JSON.stringify({jsonrpc: '2.0', id, ...out}))
})
`,
	}
}

// Tarball makes a package of npm.
func Tarball(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for name, text := range files {
		must.NoError(t, w.WriteHeader(&tar.Header{Name: "package/" + name, Mode: 0o644, Size: int64(len(text))}))
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	must.NoError(t, w.Close())
	must.NoError(t, z.Close())
	return out.Bytes()
}

// Registry serves packages at version 1.0.0, 2.0.0 and 2026.8.31 as npm's registry does.
func Registry(t testing.TB, packages map[string][]byte) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, ok := strings.CutPrefix(r.URL.Path, "/-/"); ok {
			_, _ = w.Write(packages[name])
			return
		}
		name := strings.TrimPrefix(r.URL.Path, "/")
		versions := map[string]any{}
		for _, version := range []string{"1.0.0", "2.0.0", "2026.8.31"} {
			content, ok := packages[name+"-"+version]
			if !ok {
				continue
			}
			z, err := gzip.NewReader(bytes.NewReader(content))
			if err != nil {
				t.Error(err)
				return
			}
			var manifest map[string]any
			for files := tar.NewReader(z); ; {
				h, err := files.Next()
				if err != nil {
					break
				}
				if h.Name == "package/package.json" {
					if err := json.NewDecoder(files).Decode(&manifest); err != nil {
						t.Error(err)
					}
				}
			}
			sum := sha512.Sum512(content)
			manifest["dist"] = map[string]string{"tarball": "http://" + r.Host + "/-/" + name + "-" + version, "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
			if scripts, ok := manifest["scripts"].(map[string]any); ok && scripts["postinstall"] != nil {
				manifest["hasInstallScript"] = true
			}
			versions[version] = manifest
		}
		if len(versions) == 0 {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "dist-tags": map[string]string{"latest": "2.0.0"}, "versions": versions})
	}))
	t.Cleanup(s.Close)
	return s
}
