package statefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// TestDocument: a document is read as it was changed, in its format and no other; an edit that
// is refused, or changes nothing, leaves the file as it was.
func TestDocument(t *testing.T) {
	type content struct {
		statefile.Format
		N int `json:"n"`
	}
	d := statefile.Document[content]{Path: filepath.Join(t.TempDir(), "state", "n.json"), Name: "the number", Format: "number 1"}
	v, err := d.Read()
	must.NoError(t, err)
	if v.N != 0 {
		t.Errorf("%d, and there is no file", v.N)
	}
	add := func(result error) error {
		return d.Change(func(c *content) error { c.N++; return result })
	}
	if err := add(statefile.ErrSame); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(d.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
	must.NoError(t, add(nil))
	must.NoError(t, add(nil))
	refused := errors.New("no")
	if err := add(refused); err != refused {
		t.Errorf("%v, expected %v", err, refused)
	}
	must.NoError(t, add(statefile.ErrSame))
	text, err := os.ReadFile(d.Path)
	must.NoError(t, err)
	if want := "{\n  \"format\": \"number 1\",\n  \"n\": 2\n}\n"; string(text) != want {
		t.Errorf("%s, expected %s", text, want)
	}
	for _, text := range []string{`{"format":"number 2","n":3}`, `{"n":3}`, `{"format":"number 1","m":3}`, `{"format":"number 1","n":3,"n":4}`, ``} {
		must.NoError(t, os.WriteFile(d.Path, []byte(text), 0o600))
		for what, err := range map[string]error{"read": second(d.Read()), "changed": add(nil)} {
			if err == nil || !strings.HasPrefix(err.Error(), "the number: "+d.Path+": ") {
				t.Errorf("%q is %s: %v", text, what, err)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }
