package mcplock

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// A folder is copied beside the lock and hashed; its copy goes with the last server that
// uses it.
func TestLocate(t *testing.T) {
	self, err := os.Executable()
	must.NoError(t, err)
	self, err = filepath.EvalSymlinks(self)
	must.NoError(t, err)
	dir := t.TempDir()
	folder := filepath.Join(dir, "server")
	must.NoError(t, os.Mkdir(folder, 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(folder, "main.js"), []byte("1\n"), 0o600))
	l, err := ReadOrNew(filepath.Join(dir, "mcp.lock.json"))
	must.NoError(t, err)
	s, _, err := l.Locate(folder, []string{self, "main.js", "x"})
	must.NoError(t, err)
	if !slices.Equal(s.Command, []string{self, "main.js", "x"}) || s.Folder == "" || !sum.MatchString(s.Tree) || !sum.MatchString(s.Program) {
		t.Errorf("%+v", s)
	}
	copied := filepath.Join(dir, filepath.FromSlash(s.Folder), "main.js")
	if _, err := os.Stat(copied); err != nil {
		t.Fatal(err)
	}
	l.Servers["other"] = s
	l.Discard(s)
	if _, err := os.Stat(copied); err != nil {
		t.Error("the copy of another server's program is gone")
	}
	delete(l.Servers, "other")
	l.Discard(s)
	if _, err := os.Stat(copied); !os.IsNotExist(err) {
		t.Error("the copy stays", err)
	}
	if s, _, err = l.Locate(self, nil); err != nil || s.Folder != "" || !slices.Equal(s.Command, []string{self}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestServerPolicy(t *testing.T) {
	s := &Server{Env: []string{"TOKEN", "OTHER", "FILE=/x=y"}, Network: []string{"https://a.example"}, Read: []string{"/a"}}
	p, inherit := s.Policy(nil)
	if !slices.Equal(p.Network, []string{"https://a.example"}) || !slices.Equal(p.Read, []string{"/a"}) || !slices.Equal(inherit.Env, []string{"OTHER", "TOKEN"}) {
		t.Errorf("%+v, %v", p, inherit)
	}
	if p.Env["FILE"].Text != "/x=y" || len(p.Env) != 1 {
		t.Errorf("variables %v", p.Env)
	}
	p, inherit = s.Policy(&caps.ServerPolicy{Env: map[string]caps.ServerValue{"TOKEN": {Secret: "t"}}, Network: []string{}, Read: []string{"/b"}})
	if len(p.Network) != 0 || !slices.Equal(p.Read, []string{"/b"}) || !slices.Equal(inherit.Env, []string{"OTHER"}) {
		t.Errorf("%+v, %v", p, inherit)
	}
}

// A program that is another than the one that was added isn't opened, nor one in a folder in
// which something changed.
func TestOpen(t *testing.T) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	must.NoError(t, err)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.NoError(t, err)
	folder := filepath.Join(dir, "server")
	must.NoError(t, os.Mkdir(folder, 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(folder, "main.js"), []byte("1\n"), 0o600))
	l, err := ReadOrNew(filepath.Join(dir, DefaultName))
	must.NoError(t, err)
	s, undo, err := l.Locate(folder, []string{self, "main.js", "main.css"})
	must.NoError(t, err)
	t.Cleanup(undo)
	l.Servers["x"] = s
	x, err := l.Open("x")
	must.NoError(t, err)
	defer x.Close()
	copied := filepath.Join(dir, filepath.FromSlash(s.Folder))
	if want := []string{filepath.Join(copied, "main.js"), "main.css"}; x.Path != self || !slices.Equal(x.Args, want) {
		t.Errorf("%s %q, want %q", x.Path, x.Args, want)
	}
	c, err := StartCommand(x, &caps.ServerPolicy{Network: []string{"any"}, Read: []string{"/a"}})
	if err != nil || !c.Network || !slices.Equal(c.Args, append([]string{self}, x.Args...)) || !slices.Equal(c.Read, []string{"/a"}) {
		t.Errorf("%+v %v", c, err)
	}
	if c, err = StartCommand(x, &caps.ServerPolicy{Network: []string{"https://a.example"}}); err != nil || c.Network || !slices.Equal(c.Origins, []string{"https://a.example"}) {
		t.Errorf("%+v %v", c, err)
	}
	for name, change := range map[string]func(s *Server){
		"another program":  func(s *Server) { s.Program = sumPrefix + "00" + s.Program[len(sumPrefix)+2:] },
		"another folder":   func(s *Server) { s.Tree = sumPrefix + "00" + s.Tree[len(sumPrefix)+2:] },
		"a folder outside": func(s *Server) { s.Folder = "server" },
		"a URL":            func(s *Server) { s.URL = "https://a.example" },
	} {
		changed := *s
		change(&changed)
		l.Servers["y"] = &changed
		if y, err := l.Open("y"); err == nil {
			y.Close()
			t.Errorf("%s is opened", name)
		}
	}
	must.NoError(t, os.Chmod(copied, 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(copied, "more.js"), nil, 0o600))
	if err := x.Check(); err == nil {
		t.Error("a file more isn't noticed before a start")
	}
}
