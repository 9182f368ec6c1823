package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// A client is one of others' that goes on the tour.
type client interface {
	// tools is the names that tools/list gives.
	tools(t *testing.T) []string
	// call calls a tool with arguments as JSON.
	call(t *testing.T, tool, arguments string) reply
	// changes is how often the server said that the list of tools changed; hears is
	// whether the client listens at all.
	changes(t *testing.T) (n int, hears bool)
	// ask makes a request that isn't about tools; false: the client can't.
	ask(t *testing.T, method, params string, result any) bool
	// watch asks to be told when a resource changes; false: the client can't.
	watch(t *testing.T, uri string) bool
	// updates is how often the server said that a resource changed.
	updates(t *testing.T) int
}

// A reply is what a client got from a call.
type reply struct {
	Content           []struct{ Type, Text string }
	StructuredContent map[string]json.RawMessage
	IsError           bool
}

func (r reply) text() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

// A traveller is a client on the tour.
type traveller struct {
	*testing.T
	client
	dir string // of the server
}

// gives makes a call whose text is known.
func (t traveller) gives(tool, arguments, want string) {
	t.Helper()
	if r := t.call(t.T, tool, arguments); r.IsError || r.text() != want {
		t.Fatalf("%s %s gave %q, expected %q", tool, arguments, r.text(), want)
	}
}

// says makes a call that succeeds in words that hold these.
func (t traveller) says(tool, arguments string, words ...string) reply {
	t.Helper()
	r := t.call(t.T, tool, arguments)
	if r.IsError {
		t.Fatalf("%s %s failed: %s", tool, arguments, r.text())
	}
	t.holds(r, words)
	return r
}

// fails makes a call that fails with this kind, in words that hold these.
func (t traveller) fails(tool, arguments, kind string, words ...string) reply {
	t.Helper()
	r := t.call(t.T, tool, arguments)
	if got := failure(r).Kind; !r.IsError || got != kind {
		t.Fatalf("%s %s: expected a failure of kind %s, got %q: %s", tool, arguments, kind, got, r.text())
	}
	t.holds(r, words)
	return r
}

func (t traveller) holds(r reply, words []string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(r.text(), w) {
			t.Fatalf("expected %q in %s", w, r.text())
		}
	}
}

// A fault is the error of a structured answer.
type fault struct{ Kind, Hint, Near string }

func failure(r reply) (f fault) {
	_ = json.Unmarshal(r.StructuredContent["error"], &f)
	return f
}

// fixed is the tools that are always there, in their order.
var fixed = []string{"evolve", "run", "list", "help", "describe", "history", "journal", "retire"}

// tour is what every client does.
func tour(t *testing.T, c client, dir string) {
	g := traveller{t, c, dir}
	if got := c.tools(t); len(got) < len(fixed) || !slices.Equal(got[:len(fixed)], fixed) {
		t.Fatalf("the tools are %v", got)
	}
	g.heard("square", `{"name":"square","code":{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"}]}},"description":"n times n"}`)
	if got := c.tools(t); !slices.Contains(got, "square") {
		t.Fatalf("square isn't among %v", got)
	}
	g.gives("run", `{"tool":"square","input":4294967296}`, "18446744073709551616")
	g.gives("square", `{"input":-12}`, "144")

	g.refused()
	g.granted()
	g.repaired()
	g.named()
	g.read()
	g.prompted()
	g.watched()

	g.says("help", `{"name":"fold"}`, "fold")
	g.says("describe", `{"name":"square"}`, "n times n")
	g.says("history", `{"name":"square"}`, `"version":1`)
	g.says("retire", `{"name":"square"}`, `"square"`)
	if got := c.tools(t); slices.Contains(got, "square") {
		t.Fatalf("square is still among %v", got)
	}
	g.fails("run", `{"tool":"square","input":2}`, "no_tool")
}

// heard makes a tool, and sees that the client is told. It may make it again: clients
// begin to listen some time after they have connected.
func (t traveller) heard(name, evolve string) {
	t.Helper()
	before, hears := t.changes(t.T)
	for range 600 {
		t.says("evolve", evolve, `"`+name+`"`)
		for range 20 {
			if now, _ := t.changes(t.T); !hears || now > before {
				return
			}
			time.Sleep(25 * time.Millisecond)
		}
	}
	t.Fatal("the client wasn't told that the list of tools changed")
}

// refused is what nobody granted.
func (t traveller) refused() {
	t.Helper()
	t.fails("run", `{"code":"!fs.read({path: \"numbers.txt\"})"}`, "denied")
	t.fails("evolve", `{"name":"peek","code":"path => !fs.read({path: path})","capabilities":["fs.read:./elsewhere"]}`, "refused", "fs:./sandbox")
}

// granted is what was, within its bounds and on record.
func (t traveller) granted() {
	t.Helper()
	t.says("evolve", `{"name":"peek","code":"path => !fs.read({path: path})","capabilities":["fs.read:./sandbox"]}`, `"peek"`)
	t.gives("peek", `{"input":"numbers.txt"}`, "3\n1\n2\n")
	t.fails("peek", `{"input":"../tools.db"}`, "denied")
	t.says("evolve", `{"name":"note","code":"words => !fs.write({path: \"note.txt\", content: words}).bytes","capabilities":["fs.write:./sandbox"]}`, `"note"`)
	t.gives("run", `{"tool":"note","input":"three words, ünïcode"}`, "22")
	if got, err := os.ReadFile(filepath.Join(t.dir, "sandbox", "note.txt")); err != nil || string(got) != "three words, ünïcode" {
		t.Fatalf("note.txt holds %q, %v", got, err)
	}
	r := t.says("journal", `{"kind":"effect"}`)
	var events []struct {
		Kind string
		Data struct{ Op string }
	}
	must.NoError(t, json.Unmarshal(r.StructuredContent["events"], &events))
	seen := map[string]int{}
	for _, e := range events {
		seen[e.Kind+" "+e.Data.Op]++
	}
	if seen["effect.requested fs.read"] != 1 || seen["effect.requested fs.write"] != 1 || seen["effect.denied fs.read"] < 1 {
		t.Fatalf("the journal has %v", seen)
	}
}

// repaired is a mistake, and the same call mended by what its answer says.
func (t traveller) repaired() {
	t.Helper()
	near := failure(t.fails("run", `{"tool":"squar","input":3}`, "no_tool")).Near
	arguments, _ := json.Marshal(map[string]any{"tool": near, "input": 3})
	t.gives("run", string(arguments), "9")
	t.fails("evolve", `{"name":"cube","code":{"lam":"n","body":{"mul":[{"var":"n"},{"var":"n"},{"var":"n"}]}}}`, "parse_error", "/body")
	t.says("evolve", `{"name":"cube","code":{"lam":"n","body":{"mul":[{"var":"n"},{"mul":[{"var":"n"},{"var":"n"}]}]}}}`, `"cube"`)
	t.gives("cube", `{"input":3}`, "27")
}
