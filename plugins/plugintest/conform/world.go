package conform

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/host"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

// A world is what surrounds a plugin in one check: what its scopes are of, and
// canaries that must come to nothing.
type world struct {
	manifest *caps.Manifest
	fixtures Fixtures
	scratch  *host.Scratch // which the next start sweeps where this one is killed
	base     string
	state    string // where it keeps what lasts, where it asks for that
	home     string // its HOME, which stays empty
	outside  string // beside what is granted
	granted  string
	root     *os.File // granted, open; nil where the algebra isn't path
	before   map[string]string

	scope string
	// inside designates what there is; fresh what there isn't yet.
	inside, fresh []string
	// outer is arguments that designate nothing within.
	outer []string

	web *web
	// The canaries: texts that no result may have.
	secret, denied, above string
}

// The names in the granted directory. What is denied is in a folder that isn't.
const (
	deniedDir  = "keep/private"
	deniedFile = "keep/private/pif-denied.txt"
)

func newWorld(m *caps.Manifest, f Fixtures) (_ *world, err error) {
	w := &world{manifest: m, fixtures: f, secret: token(), denied: token(), above: token()}
	if w.scratch, err = host.NewScratch(""); err != nil {
		return nil, err
	}
	w.base = w.scratch.Path
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	w.home, w.outside, w.granted = filepath.Join(w.base, "home"), filepath.Join(w.base, "outside"), filepath.Join(w.base, "granted")
	if err := os.Mkdir(w.home, 0o700); err != nil {
		return nil, err
	}
	if slices.Contains(m.Privileges, wire.PrivilegeState) {
		w.state = filepath.Join(w.base, "state")
		if err := os.Mkdir(w.state, 0o700); err != nil {
			return nil, err
		}
	}
	if err := put(filepath.Join(w.outside, "canary.txt"), w.secret); err != nil {
		return nil, err
	}
	switch m.Algebra {
	case caps.Path:
		err = w.files()
	case caps.URL:
		w.servers()
	case caps.Segments:
		w.scope, w.inside, w.fresh = "conform/**", []string{"conform/a", "conform/b/c"}, []string{"conform/new", "conform/other"}
		w.outer = []string{"elsewhere/a", "conformx/a", "conform/../elsewhere", "elsewhere", "/conform/a"}
	default:
		w.scope, w.inside, w.fresh, w.outer = "conform", []string{"conform"}, []string{"conform"}, []string{"elsewhere", "conform2", "Conform"}
	}
	if err != nil {
		return nil, err
	}
	if m.Algebra != caps.Path && m.Algebra != caps.URL {
		if f.Scope != "" {
			w.scope = f.Scope
		}
		if len(f.Inside) > 0 {
			w.inside, w.fresh = f.Inside, f.Inside
		}
		if len(f.Outside) > 0 {
			w.outer = f.Outside
		}
	}
	w.before = w.snapshot(w.home, w.outside)
	return w, nil
}

func token() string {
	b := make([]byte, 12)
	rand.Read(b)
	return "canary-" + hex.EncodeToString(b)
}

func put(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

// files is the world of paths.
func (w *world) files() error {
	content := map[string]string{
		"a.txt": w.above + "\nsome text\n", "sub/b.txt": "more text\n", deniedFile: w.denied, "keep/c.txt": "kept\n",
	}
	for path, text := range w.fixtures.Files {
		if !filepath.IsLocal(filepath.FromSlash(path)) {
			return fmt.Errorf("the fixtures' file %q isn't inside the directory", path)
		}
		content[path] = text
	}
	for path, text := range content {
		if err := put(filepath.Join(w.granted, filepath.FromSlash(path)), text); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{
		"out": "../outside", "out.txt": "../outside/canary.txt", "sub/up.txt": "../a.txt", "to-denied.txt": deniedFile,
		"absolute.txt": filepath.Join(w.outside, "canary.txt"),
	} {
		// A system without links has nothing to follow.
		_ = os.Symlink(target, filepath.Join(w.granted, filepath.FromSlash(name)))
	}
	w.inside, w.fresh = []string{"a.txt", "sub", "sub/b.txt", "new.txt", "."}, []string{"fresh.txt", "fresh-2.txt", "fresh-3.txt"}
	w.inside = append(w.inside, w.fixtures.Inside...)
	canary := filepath.ToSlash(filepath.Join(w.outside, "canary.txt"))
	w.outer = append([]string{
		"../outside/canary.txt", "sub/../../outside/canary.txt", "./../outside/canary.txt", canary, "/etc/passwd", "..", "../outside",
		"out/../../outside/canary.txt", "/proc/self/environ", "/proc/self/cwd/../../outside/canary.txt", "a.txt\x00",
	}, w.fixtures.Outside...)
	var err error
	w.root, err = os.Open(w.granted)
	return err
}

// A web is two servers: one that is granted a part of, and one that isn't.
type web struct {
	mu      sync.Mutex
	granted *httptest.Server
	other   *httptest.Server
	heard   []string // METHOD path, of the granted one
	strange []string // whatever the other one heard
	slow    chan struct{}
	over    chan struct{}
	canary  string   // what is watched for, or nothing
	knowing []string // the paths of requests that had it
}

// hear remembers a request that has what is watched for.
func (v *web) hear(r *http.Request, origin string) {
	var text strings.Builder
	_ = r.Header.Write(&text) // into memory
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.canary != "" && strings.Contains(r.URL.String()+text.String()+string(body), v.canary) {
		v.knowing = append(v.knowing, origin+r.URL.Path)
	}
}

// told is where requests went that had it, since the last time.
func (v *web) told() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.knowing
	v.knowing = nil
	return all
}

// servers is the world of URLs.
func (w *world) servers() {
	v := &web{slow: make(chan struct{}, 100), over: make(chan struct{})}
	w.web = v
	v.other = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		v.hear(r, "another origin: ")
		v.mu.Lock()
		v.strange = append(v.strange, r.Method+" "+r.URL.Path)
		v.mu.Unlock()
		fmt.Fprint(out, w.secret)
	}))
	v.granted = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		v.hear(r, "")
		v.mu.Lock()
		v.heard = append(v.heard, r.Method+" "+r.URL.Path)
		v.mu.Unlock()
		switch r.URL.Path {
		case "/in/slow":
			v.slow <- struct{}{}
			select {
			case <-r.Context().Done():
			case <-v.over:
			}
		case "/in/away":
			http.Redirect(out, r, v.other.URL+"/landed", http.StatusFound)
		case "/in/on":
			http.Redirect(out, r, "/in/landed", http.StatusFound)
		case "/in/out":
			http.Redirect(out, r, "/out/landed", http.StatusFound)
		case "/in/to-denied":
			http.Redirect(out, r, "/in/denied/landed", http.StatusFound)
		case "/in/text":
			fmt.Fprint(out, "some text")
		default:
			out.Header().Set("Content-Type", "application/json")
			fmt.Fprint(out, `{"ok":true,"n":[1,2.5,"x"]}`)
		}
	}))
	at := v.granted.URL
	w.scope = at + "/in/**"
	w.inside, w.fresh = []string{at + "/in/a", at + "/in/text?q=1"}, []string{at + "/in/b", at + "/in/c"}
	w.outer = []string{
		v.other.URL + "/in/a", at + "/out/a", at + "/in/../out/a", at + "/in/%2e%2e/out/a", at + "/inside",
		strings.Replace(at, "http://", "http://user@", 1) + "/in/a", strings.Replace(at, "http://", "https://", 1) + "/in/a",
		"file:///etc/passwd", "//" + strings.TrimPrefix(v.other.URL, "http://") + "/in/a", strings.Replace(at, "127.0.0.1", "localhost", 1) + "/in/a",
	}
}

// hits is what the servers heard that they shouldn't have.
func (v *web) hits() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []string
	for _, s := range v.strange {
		all = append(all, "another origin was asked for "+s)
	}
	for _, s := range v.heard {
		if strings.Contains(s, " /out") || strings.Contains(s, " /inside") {
			all = append(all, "outside the path of the scope it asked for "+s)
		}
	}
	return all
}

// drain gives what the granted server heard since the last time.
func (v *web) drain() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.heard
	v.heard = nil
	return all
}

// text is a capability's, whole or narrowed to a part.
func (w *world) text(within string) string {
	if w.root != nil {
		return w.manifest.Kind + ":./" + strings.TrimPrefix(within, ".")
	}
	return w.manifest.Kind + ":" + w.scope
}

// request opens the scope, or the part of a directory below it.
func (w *world) request(within string, denies []string) *pluginv1.OpenRequest {
	c := &pluginv1.Capability{Text: w.text(within), Within: w.scope, Options: w.fixtures.Options, Max: 1 << 20, TimeoutNs: int64(5 * 60 * 1e9)}
	if w.root != nil {
		if c.Within = within; within == "" {
			c.Within = "."
		}
	}
	r := &pluginv1.OpenRequest{Capability: c}
	for _, d := range denies {
		r.Denies = append(r.Denies, &pluginv1.Deny{Within: d})
	}
	return r
}

// leaks reports whether a result has a canary's text, as it is or in base64.
func leaks(v value.Value, canary string) bool {
	return contains(v, func(s string) bool {
		if strings.Contains(s, canary) {
			return true
		}
		b, err := base64.StdEncoding.DecodeString(s)
		return err == nil && strings.Contains(string(b), canary)
	})
}

// snapshot is what there is below folders: kind, mode, content and target by path.
func (w *world) snapshot(dirs ...string) map[string]string {
	all := map[string]string{}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				all[path] = "unreadable"
				return nil
			}
			rel, _ := filepath.Rel(w.base, path)
			info, err := d.Info()
			if err != nil {
				return nil
			}
			what := info.Mode().String()
			switch {
			case info.Mode().IsRegular():
				b, _ := os.ReadFile(path)
				what += string(b)
			case info.Mode().Type() == fs.ModeSymlink:
				target, _ := os.Readlink(path)
				what += target
			}
			all[filepath.ToSlash(rel)] = what
			return nil
		})
	}
	return all
}

// differences is how two snapshots differ.
func differences(before, after map[string]string) []string {
	var all []string
	for path, was := range before {
		if is, there := after[path]; !there {
			all = append(all, path+" is gone")
		} else if is != was {
			all = append(all, path+" was changed")
		}
	}
	for path := range after {
		if _, there := before[path]; !there {
			all = append(all, path+" was made")
		}
	}
	slices.Sort(all)
	return all
}

// changes is what was done to the canaries.
func (w *world) changes() []string { return differences(w.before, w.snapshot(w.home, w.outside)) }

func (w *world) close() {
	if w.web != nil {
		close(w.web.over)
		w.web.granted.CloseClientConnections()
		w.web.granted.Close()
		w.web.other.Close()
	}
	if w.root != nil {
		w.root.Close()
	}
	_ = w.scratch.Remove()
}
