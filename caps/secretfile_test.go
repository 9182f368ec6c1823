package caps_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps"
)

// TestSecretFile: who may read it is decided on what was opened.
func TestSecretFile(t *testing.T) {
	kinds := secretKinds(t)
	read := func(w *world, name string) (*caps.Secret, error) {
		b, err := caps.ParseBinding("api=https://api.example.com,file="+name, kinds)
		if err != nil {
			t.Fatal(err)
		}
		return b.Read(w.dir)
	}
	for _, c := range []struct {
		name string
		make func(w *world, path string) error
		says string // empty: it is read
	}{
		{"private", func(w *world, path string) error { return os.WriteFile(path, []byte(apiKey+"\n"), 0o600) }, ""},
		{"read-only", func(w *world, path string) error { return os.WriteFile(path, []byte(apiKey+"\r\n"), 0o400) }, ""},
		{"read by all", func(w *world, path string) error { return os.WriteFile(path, []byte(apiKey), 0o644) }, "chmod 600"},
		{"read by the group", func(w *world, path string) error { return os.WriteFile(path, []byte(apiKey), 0o640) }, "chmod 600"},
		{"not there", func(w *world, path string) error { return nil }, "no such file"},
		{"a link", func(w *world, path string) error {
			w.make("real")
			return os.Symlink("real", path)
		}, "it is a link"},
		{"a directory", func(w *world, path string) error { return os.Mkdir(path, 0o700) }, "regular file"},
		{"two names", func(w *world, path string) error {
			w.make("real")
			return os.Link(w.path("real"), path)
		}, "hard link"},
		{"short", func(w *world, path string) error { return os.WriteFile(path, []byte("1234567\n"), 0o600) }, "fewer than 8"},
		{"long", func(w *world, path string) error { return os.WriteFile(path, []byte(strings.Repeat("x", 4097)), 0o600) }, "more than 4096"},
		{"endless", func(w *world, path string) error { return os.WriteFile(path, make([]byte, 1<<20), 0o600) }, "more than 4096"},
		{"lines", func(w *world, path string) error { return os.WriteFile(path, []byte(apiKey+"\n\n"), 0o600) }, "one line"},
		{"a header more", func(w *world, path string) error { return os.WriteFile(path, []byte(apiKey+"\r\nX-A: b"), 0o600) }, "one line"},
		{"not ASCII", func(w *world, path string) error { return os.WriteFile(path, []byte("pässwörter"), 0o600) }, "ASCII"},
		{"blanks", func(w *world, path string) error { return os.WriteFile(path, []byte(" "+apiKey), 0o600) }, "space"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if err := c.make(w, w.path("key")); err != nil {
				t.Skip(err)
			}
			s, err := read(w, "key")
			switch {
			case c.says == "" && (err != nil || s.Value() != apiKey):
				t.Errorf("got %v", err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("got %v, expected %q", err, c.says)
			case err != nil && strings.Contains(err.Error(), w.dir):
				t.Errorf("the message has the folder: %v", err)
			case err != nil && strings.Contains(err.Error(), "sk-live"):
				t.Errorf("the message has the value: %v", err)
			}
		})
	}
	t.Setenv("PIF_TEST_SECRET", apiKey)
	b, err := caps.NewBinding("api", "https://api.example.com", "", "PIF_TEST_SECRET", kinds)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := b.Read(""); err != nil || s.Value() != apiKey {
		t.Errorf("from the environment: %v", err)
	}
	b.Env = "PIF_TEST_NO_SECRET"
	if _, err := b.Read(""); err == nil || !strings.Contains(err.Error(), "no variable") {
		t.Errorf("a variable that isn't there: %v", err)
	}
}

// A grant that contains a secret's file, or is it, is refused.
func TestSecretFileIsProtected(t *testing.T) {
	w := newWorld(t, "keys/key", "sandbox/a")
	w.link("alias", "keys")
	for _, protected := range []string{w.path("keys/key"), w.path("alias/key")} {
		for _, text := range []string{"fs:./keys", "fs:.", "fs:./keys/key", "fs:./alias"} {
			if _, err := w.resolve(text, protected); err == nil || !strings.Contains(err.Error(), "which no tool may reach") {
				t.Errorf("%s with %s protected: %v", text, protected, err)
			}
		}
		if _, err := w.resolve("fs:./sandbox", protected); err != nil {
			t.Error(err)
		}
	}
}
