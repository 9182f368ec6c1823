// Package playground writes the playground: a page that reads, checks and runs programs in
// the browser, with the evaluator as WebAssembly.
//
// The page has an origin and a policy of its own, holds nothing of any store, and sends
// nothing: its policy lets it fetch its own files alone. The evaluator (folder wasm) is
// built from source, since a binary of it in the repository, or in mcp-pif, would be four
// megabytes that nearly nobody opens. It imports core alone, so what runs in the browser
// is what runs in a server, without effects.
package playground

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed site
var site embed.FS

// Policy is the page's content security policy, which stands in it, and Headers those that
// a server adds.
const Policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; " +
	"base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types pif"

// Headers is what a server is to send with each file.
func Headers() map[string]string {
	return map[string]string{
		"Content-Security-Policy":      Policy + "; frame-ancestors 'none'",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy":              "no-referrer",
		"X-Content-Type-Options":       "nosniff",
	}
}

// Module is the name of the evaluator's file, and MaxModule how large it may be.
const (
	Module    = "pif.wasm.gz"
	MaxModule = 4 << 20
)

// Build builds the evaluator with the Go that is installed, from the module in a folder,
// and returns it compressed, with the licences of what is in it.
func Build(ctx context.Context, source string) (module, licences []byte, err error) {
	goTool := func(env []string, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Env = source, append(os.Environ(), env...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("go %s: %w\n%s", args[0], err, errs.Bytes())
		}
		return strings.TrimSpace(out.String()), nil
	}
	const path = "github.com/mcp-pif/mcp-pif"
	root, err := goTool(nil, "list", "-m", "-f", "{{.Dir}}", path)
	if err != nil {
		return nil, nil, fmt.Errorf("the evaluator is built from source with Go, in a clone of %s; --source names it: %w", path, err)
	}
	dir, err := os.MkdirTemp("", "mcp-pif-playground-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "pif.wasm")
	if _, err := goTool([]string{"GOOS=wasip1", "GOARCH=wasm", "GOFLAGS="}, "build", "-trimpath", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, path+"/cmd/internal/playground/wasm"); err != nil {
		return nil, nil, err
	}
	bare, err := os.ReadFile(out)
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = z.Write(bare)
	if err := z.Close(); err != nil {
		return nil, nil, err
	}
	if b.Len() > MaxModule {
		return nil, nil, fmt.Errorf("the evaluator has %d bytes, more than %d", b.Len(), MaxModule)
	}
	goroot, err := goTool(nil, "env", "GOROOT")
	if err != nil {
		return nil, nil, err
	}
	for name, path := range map[string]string{"mcp-pif": filepath.Join(root, "LICENSE"), "the Go runtime and library": filepath.Join(goroot, "LICENSE")} {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		licences = fmt.Appendf(licences, "%s\n\n%s\n\n", name, text)
	}
	return b.Bytes(), licences, nil
}

// Check refuses a folder that has files, and no playground.
func Check(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || len(entries) == 0 {
		return nil
	}
	if err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == Module }) {
		err = fmt.Errorf("%s has other files than a playground's: name a new folder, or an empty one", dir)
	}
	return err
}

// Write writes the playground's files into a folder, which is made, and returns their names.
func Write(dir string, module, licences []byte) ([]string, error) {
	if err := Check(dir); err != nil {
		return nil, err
	}
	files := map[string][]byte{Module: module, "LICENCES.txt": licences}
	sum := sha256.New()
	sum.Write(module)
	err := fs.WalkDir(site, "site", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := site.ReadFile(path)
		sum.Write(text)
		files[d.Name()] = text
		return err
	})
	if err != nil {
		return nil, err
	}
	files["index.html"] = bytes.Replace(files["index.html"], []byte(`content="CSP"`), []byte(`content="`+Policy+`"`), 1)
	files["sw.js"] = bytes.Replace(files["sw.js"], []byte("VERSION\";"), fmt.Appendf(nil, "%.12x\";", sum.Sum(nil)), 1)
	// Hosts of static pages read their headers here.
	headers := []byte("/*\n")
	for _, name := range []string{"Content-Security-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Referrer-Policy", "X-Content-Type-Options"} {
		headers = fmt.Appendf(headers, "  %s: %s\n", name, Headers()[name])
	}
	files["_headers"] = headers
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var names []string
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // through no link
		if err != nil {
			return nil, err
		}
		_, err = f.Write(text)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// Handler serves those files of the folder that Write wrote, with their headers, under this
// machine's own names: under another a site could have the browser ask for them.
func Handler(dir string, names []string) http.Handler {
	files := http.FileServer(http.Dir(dir))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range Headers() {
			w.Header().Set(name, value)
		}
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if host != "127.0.0.1" && host != "localhost" {
			http.Error(w, "This is not the address of the page.", http.StatusMisdirectedRequest)
			return
		}
		if r.URL.Path != "/" && !slices.Contains(names, strings.TrimPrefix(r.URL.Path, "/")) {
			http.NotFound(w, r)
			return
		}
		files.ServeHTTP(w, r)
	})
}
