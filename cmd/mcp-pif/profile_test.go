package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestFolderNames: a profile's folder is a plain name whatever a client calls
// itself, a safe name is its own, and no two names share one.
func TestFolderNames(t *testing.T) {
	names := []string{
		"claude-ai", "Claude-AI", "claude ai", "claude/ai", "a", "A", "", ".", "..", "...", "a.", ".a", "a/../b", "../../etc/passwd", `..\..\x`,
		"/", "con", "nul.txt", "CON", "-rf", "a\x00b", "a\nb", "é", "É", "日本", "👩", strings.Repeat("x", 64), strings.Repeat("x", 65),
		strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20) + "y", "cursor-vscode", "mcp_client.v2",
	}
	for _, name := range names[:len(names):len(names)] {
		names = append(names, app.FolderName(name)) // a client may be called like a folder
	}
	whose := map[string]string{}
	for _, name := range names {
		folder := app.FolderName(name)
		if other, taken := whose[folder]; taken && other != name {
			t.Errorf("%.80q and %.80q share the folder %s", name, other, folder)
		}
		whose[folder] = name
		plainName(t, name, folder)
	}
	for _, name := range []string{"claude-ai", "a", "cursor-vscode", "mcp_client.v2", "test"} {
		if app.FolderName(name) != name {
			t.Errorf("%s becomes %s", name, app.FolderName(name))
		}
	}
	runes := []rune("aAbéÉ日👩._-~%/\\ \x00\n\u202e\ufffd0")
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var drawn [2]string
		for i := range drawn {
			for range r.IntN(4) {
				drawn[i] += string(runes[r.IntN(len(runes))])
			}
		}
		a, b := drawn[0], drawn[1]
		plainName(t, a, app.FolderName(a))
		if a != b && app.FolderName(a) == app.FolderName(b) {
			t.Errorf("%q and %q share the folder %s", a, b, app.FolderName(a))
		}
	}
}

func plainName(t *testing.T, name, folder string) {
	if !app.SafeName.MatchString(folder) || app.DeviceName.MatchString(folder) || strings.HasSuffix(folder, ".") || !filepath.IsLocal(folder) || filepath.Base(folder) != folder {
		t.Errorf("%.80q becomes %q, which is no plain name", name, folder)
	}
}

// TestClientName: the name is where each protocol has it.
func TestClientName(t *testing.T) {
	for _, c := range []struct{ line, name string }{
		{initialize, "test"},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"newer","version":"1"}}}}`, "newer"},
		{`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"newer"}}}}`, "newer"},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"clientInfo":{"name":"not initialize"}}}`, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":5}}}`, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":[1]}`, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, ""},
		{`[` + initialize + `]`, ""},
		{initialize[:40], ""},
		{``, ""}, {`null`, ""}, {`5`, ""},
	} {
		if got := clientName([]byte(c.line)); got != c.name {
			t.Errorf("%s: %q, expected %q", c.line, got, c.name)
		}
	}
}

// TestFirstFrame: what was looked at is read again, every byte of it, however it
// comes; and no more is looked at than is needed.
func TestFirstFrame(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	for _, c := range []struct{ input, line string }{
		{"", ""},
		{"\n \n\t\n", ""},
		{"one\ntwo\n", "one"},
		{"\n\r\n  one\ntwo", "one"},
		{"one", "one"},
		{long + "\ntwo\n", long[:mostFirst]},
	} {
		for _, in := range []io.Reader{strings.NewReader(c.input), iotest.OneByteReader(strings.NewReader(c.input)), iotest.DataErrReader(strings.NewReader(c.input)), regular(t, c.input)} {
			if _, slow := in.(*strings.Reader); !slow && len(c.input) > 1<<20 {
				if _, file := in.(*os.File); !file {
					continue
				}
			}
			line, all, err := firstFrame(t.Context(), in)
			if err != nil || string(line) != c.line && !strings.HasPrefix(string(line), c.line) {
				t.Errorf("%T %.20q: the line is %.20q, %v", in, c.input, line, err)
			}
			rest, err := io.ReadAll(all)
			if err != nil || !bytes.Equal(rest, []byte(c.input)) {
				t.Errorf("%T %.20q: %d of %d bytes are left, %v", in, c.input, len(rest), len(c.input), err)
			}
		}
	}
	// A failure of the input comes after what was read of it.
	line, all, err := firstFrame(t.Context(), io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("broken"))))
	rest, readErr := io.ReadAll(all)
	if err != nil || string(line) != "half" || string(rest) != "half" || readErr == nil || readErr.Error() != "broken" {
		t.Errorf("%q, %v; then %q, %v", line, err, rest, readErr)
	}
	// A server that is told to end while it waits does so.
	ctx, cancel := context.WithCancel(t.Context())
	silent, _ := io.Pipe()
	cancel()
	if _, _, err := firstFrame(ctx, silent); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// regular is a file with a text, of which a part was read already.
func regular(t *testing.T, text string) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err == nil {
		_, err = f.WriteString("before\n" + text)
	}
	if err == nil {
		_, err = f.Seek(7, io.SeekStart)
	}
	must.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// TestFirstLater: a client that is slow to say who it is, is waited for, and one
// that ends without a word leaves nothing behind.
func TestFirstLater(t *testing.T) {
	p := start(t, "--log-level=error")
	half := len(initialize) / 2
	must.Succeed(t)(io.WriteString(p.in, "\n"+initialize[:half]))
	p.send(initialize[half:])
	if m := p.answer(`"init"`); m.Result == nil {
		t.Errorf("%+v", m)
	}
	p.end()
	if found := stores(p); len(found) != 1 || filepath.Base(filepath.Dir(found[0])) != "test" {
		t.Errorf("the stores are %v", found)
	}
	silent := start(t, "--log-level=error")
	silent.end()
	if found := stores(silent); len(found) != 0 {
		t.Errorf("without a request there are %v", found)
	}
}

// stores is the profiles' files that a server made.
func stores(p *process) []string {
	p.t.Helper()
	found, err := filepath.Glob(filepath.Join(p.stateHome(), "mcp-pif", "profiles", "*", app.JournalFile))
	must.NoError(p.t, err)
	return found
}

// stateHome is where a server's process has its state.
func (p *process) stateHome() string {
	home := stateHomes
	for _, v := range p.cmd.Env {
		if dir, ok := strings.CutPrefix(v, "XDG_STATE_HOME="); ok {
			home = dir // the last one counts
		}
	}
	return home
}

// Commands that the page shows are about its store.
func TestUIFlags(t *testing.T) {
	t.Parallel()
	var o uiOptions
	if got := o.flags("http-ann-1"); got != "--profile 'http-ann-1'" {
		t.Error(got)
	}
	if o.Store = "/x/my pif.db"; o.flags(storeName) != "--store '/x/my pif.db'" {
		t.Error(o.flags(storeName))
	}
}
