package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

const square = `{"lam":"x","body":{"mul":[{"var":"x"},{"var":"x"}]}}`

// tool compiles a tool that must be possible.
func tool(t interface{ Fatal(...any) }, name, code string) *Tool {
	made, err := Compile(Definition{Name: name, Code: []byte(code)}, nil, nil)
	if err != nil {
		t.Fatal(name, err)
	}
	return made
}

func kind(err error) fault.Kind {
	var f *fault.Fault
	if !errors.As(err, &f) {
		return ""
	}
	return f.Kind
}

func TestCompile(t *testing.T) {
	for _, c := range []struct {
		name, description, code string
		want                    fault.Kind // "": it can be made
	}{
		{"square", "", square, ""},
		{"é-tool", "", `1`, ""},
		{"do it", "", `1`, ""},
		{strings.Repeat("x", 256), "", `1`, ""},
		{"Run", "", `1`, ""},
		{"x", strings.Repeat("d", MaxDescription), `1`, ""},
		{"x", "", `{"quote":{"fs.read":{"path":"a"}}}`, ""},
		{"", "", `1`, fault.InvalidRequest},
		{strings.Repeat("x", 257), "", `1`, fault.InvalidRequest},
		{"a\nb", "", `1`, fault.InvalidRequest},
		{"a\x7fb", "", `1`, fault.InvalidRequest},
		{"a\u0085b", "", `1`, fault.InvalidRequest},
		{"\xff", "", `1`, fault.InvalidRequest},
		{"x", strings.Repeat("d", MaxDescription+1), `1`, fault.InvalidRequest},
		{"run", "", `1`, fault.Refused},
		{"journal", "", `1`, fault.Refused},
		{"x", "", `{"add":[1]}`, fault.ParseError},
		{"x", "", `"` + strings.Repeat("s", MaxCode) + `"`, fault.ParseError},
		{"x", "", `{"lam":"p","body":{"fs.write":{"path":"a","content":{"var":"p"}}}}`, fault.Refused},
		{"x", "", `{"if":{"cond":false,"then":{"fetch":"http://x"},"else":1}}`, fault.Refused},
	} {
		made, err := Compile(Definition{Name: c.name, Description: c.description, Code: []byte(c.code)}, nil, nil)
		if kind(err) != c.want || (err != nil) != (c.want != "") {
			t.Errorf("%.40q %.60s: %v, expected %q", c.name, c.code, err, c.want)
		}
		if err == nil && (made.Description == "" || len(made.Hash) != 64 || made.State != StateReady) {
			t.Errorf("%q: %+v", c.name, made)
		}
	}
}

func TestListed(t *testing.T) {
	for name, want := range map[string]bool{
		"square": true, "A.b_c-9": true, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false,
		"": false, "do it": false, "é": false, "a/b": false, "a\n": false,
	} {
		if Listed(name) != want {
			t.Errorf("Listed(%q) = %v", name, !want)
		}
	}
}

// TestVersions: versions count for each name, and a snapshot never changes.
func TestVersions(t *testing.T) {
	r := New(nil, nil)
	before := r.Snapshot()
	for v := 1; v <= 3; v++ {
		made, err := r.Put(tool(t, "a", fmt.Sprint(v)))
		if err != nil || made.Version != v {
			t.Fatalf("version %d: %v %v", v, made, err)
		}
	}
	if made, err := r.Put(tool(t, "b", "1")); err != nil || made.Version != 1 {
		t.Errorf("%v %v", made, err)
	}
	if before.Len() != 0 {
		t.Error("a snapshot changed")
	}
	after := r.Snapshot()
	if a, ok := after.Get("a"); !ok || string(a.Program().Canonical()) != "3" || after.Len() != 2 {
		t.Errorf("%+v, %d tools", a, after.Len())
	}
}

// TestConcurrentPuts: no change is lost, and readers see whole snapshots.
func TestConcurrentPuts(t *testing.T) {
	r := New(nil, nil)
	made := tool(t, "x", "1")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				next := *made
				next.Name = fmt.Sprintf("t%d", (i*200+j)%400)
				if _, err := r.Put(&next); err != nil {
					t.Error(err)
				}
				if s := r.Snapshot(); s.Len() != len(s.All()) {
					t.Error("a snapshot miscounts")
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, tool := range r.Snapshot().All() {
		total += tool.Version
	}
	if total != 1600 {
		t.Errorf("%d versions were counted, 1600 made", total)
	}
}

func TestFull(t *testing.T) {
	s := new(Snapshot)
	made := tool(t, "x", "1")
	for i := range MaxTools {
		next := *made
		next.Name = fmt.Sprint("t", i)
		var err error
		if s, err = s.With(&next); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.With(made); kind(err) != fault.Refused {
		t.Errorf("one tool too many: %v", err)
	}
	next := *made
	next.Name = "t7"
	if _, err := s.With(&next); err != nil {
		t.Errorf("a new version of one: %v", err)
	}
	large := tool(t, "large", `[1`+strings.Repeat(",1", 100_000)+`]`)
	s = new(Snapshot)
	for i := 0; ; i++ {
		next := *large
		next.Name = fmt.Sprint("t", i)
		after, err := s.With(&next)
		if err != nil {
			if kind(err) != fault.Refused || i != MaxTotal/len(large.Source) {
				t.Errorf("after %d large tools: %v", i, err)
			}
			break
		}
		s = after
	}
	small := *made
	small.Name = "t0"
	if _, err := s.With(&small); err != nil {
		t.Errorf("a smaller version: %v", err)
	}
}

// TestKeep: a change that can't be kept isn't made.
func TestKeep(t *testing.T) {
	fails := errors.New("the disk is full")
	var kept *Snapshot
	r := New(nil, func(s *Snapshot, _ *Tool) error {
		if kept != nil && kept.Len() == 1 {
			return fails
		}
		kept = s
		return nil
	})
	if _, err := r.Put(tool(t, "a", "1")); err != nil {
		t.Fatal(err)
	}
	_, err := r.Put(tool(t, "b", "1"))
	if !errors.Is(err, fails) || kind(err) != fault.Refused || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("%v", err)
	}
	if r.Snapshot().Len() != 1 {
		t.Error("the tool exists all the same")
	}
}

// TestFile: what is written is what is read back, whatever the names and code.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tools.json")
	s := new(Snapshot)
	deepCode := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for i, code := range []string{
		square, `"<&>\u2028\n"`, `123456789012345678901234567890`, `[]`, `{"nil":true}`, `[[],{"pair":[1,[2]]}]`,
		`{"record":{"a":1,"b":[1,2,3]}}`, deepCode, `{"lam":"` + strings.Repeat("long", 50) + `","body":{"concat":["{[\"","]}\\"]}}`,
	} {
		made := tool(t, fmt.Sprintf("t%d \"<☃>\"", i), code)
		made.Version = i + 1
		made.Description = strings.Repeat("line\n", i)
		var err error
		if s, err = s.With(made); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteFile(path, s); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text) {
		t.Fatalf("not JSON:\n%s", text)
	}
	for line := range strings.Lines(string(text)) {
		if len(line) > 400 && !strings.Contains(line, "code_text") {
			t.Errorf("a line of %d bytes: %.200s", len(line), line)
		}
	}
	back, err := ReadFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again := Encode(back); back.Len() != s.Len() || !sameTools(s, back) {
		t.Errorf("read back:\n%.2000s", again)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func sameTools(a, b *Snapshot) bool {
	for _, t := range a.All() {
		u, ok := b.Get(t.Name)
		if !ok || u.Hash != t.Hash || u.Version != t.Version || u.Description != t.Description && t.Description != "" {
			return false
		}
	}
	return true
}

// TestWriteFails: a file that can't be replaced stays as it is.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tools.json")
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, new(Snapshot)); err == nil {
		t.Error("a directory was replaced")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                                   "not a file of tools",
		`{}`:                                 "format",
		`{"format":"mcp-pif tools 2"}`:       "format",
		`{"format":"mcp-pif tools 1","x":1}`: "unknown field",
		`{"format":"mcp-pif tools 1","tools":[{"name":"a","code":1},{"name":"a","code":2}]}`:          "twice",
		`{"format":"mcp-pif tools 1","tools":[{"name":"a","code":{"add":[1]}},{"name":"","code":2}]}`: "parse_error",
		`{"format":"mcp-pif tools 1","tools":[{"name":"a"}]}`:                                         "parse_error",
	} {
		if _, err := Decode(strings.NewReader(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", text, err, want)
		}
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tools.json")
	release, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second claim: %v", err)
	}
	release()
	release, err = Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

// TestLayout: laid-out JSON means the same, and its size is in proportion.
func TestLayout(t *testing.T) {
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
			case kind == 0:
				return rapid.Int().Draw(t, "int")
			case kind == 1:
				return rapid.String().Draw(t, "string") + rapid.SampledFrom([]string{"", `"`, `\`, `[`, `}`}).Draw(t, "odd")
			case kind == 2 || depth == 0:
				return nil
			case kind == 3:
				return rapid.MapOfN(rapid.String(), value(depth-1), 0, 5).Draw(t, "object")
			}
			return rapid.SliceOfN(value(depth-1), 0, 8).Draw(t, "list")
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		code, err := json.Marshal(value(5).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		out := layout(nil, code, rapid.IntRange(0, 80).Draw(t, "indent"))
		var back bytes.Buffer
		if err := json.Compact(&back, out); err != nil || !bytes.Equal(back.Bytes(), code) {
			t.Fatalf("%s\nbecame\n%s\n%v", code, out, err)
		}
	})
	deep := strings.Repeat(`{"a":[`, 2000) + strings.Repeat(`]}`, 2000)
	if out := layout(nil, []byte(deep), 0); len(out) > 4*len(deep) {
		t.Errorf("%d bytes became %d", len(deep), len(out))
	}
}
