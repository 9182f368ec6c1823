package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/mcpserver/wire"
)

// The predecessor's vectors and the project's own corpus run on both
// evaluators in package core. Here they go through the server, as a client
// would have them run: what is tested is that nothing is lost on the way.

// byDesign are the features in which ours differs; what they must do is tested
// in package core.
var byDesign = []string{
	"dynamic-self", "reserved-name", "continuation-in-data", "continuation-nontail", "open-tool", "input-context",
	"extension", "duplicate-keys",
}

// same reports whether two JSON texts mean the same, numbers exactly.
func same(a, b []byte) bool {
	decode := func(b []byte) (v any) {
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.UseNumber()
		if dec.Decode(&v) != nil {
			return string(b)
		}
		return v
	}
	x, _ := json.Marshal(decode(a))
	y, _ := json.Marshal(decode(b))
	return bytes.Equal(x, y)
}

// eachLine calls visit with every line of a file.
func eachLine(t *testing.T, path string, visit func(line []byte)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := bufio.NewScanner(f)
	r.Buffer(nil, 16<<20)
	for r.Scan() {
		if len(bytes.TrimSpace(r.Bytes())) > 0 {
			visit(r.Bytes())
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
}

// seed is the folder of the predecessor's vectors, beside the repository.
func seed(t *testing.T) string {
	shared := os.Getenv("PIF_SHARED")
	if shared == "" {
		shared = "../../../../shared"
	}
	dir := filepath.Join(shared, "seed")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no ../shared/seed around the repository")
	}
	return dir
}

var number = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?`)

// rounded is code with each number rounded half to even, as the predecessor read it:
// also inside a string of JSON.
func rounded(t *testing.T, code json.RawMessage) json.RawMessage {
	var s string
	if json.Unmarshal(code, &s) == nil && code[0] == '"' {
		if !json.Valid([]byte(s)) {
			return code
		}
		return json.RawMessage(quoteJSON(string(rounded(t, json.RawMessage(s)))))
	}
	return number.ReplaceAllFunc(code, func(n []byte) []byte {
		if n[0] == '"' || !bytes.ContainsAny(n, ".eE") {
			return n
		}
		return []byte(do(t, New(Options{}), "run", `{"code":"x => to_int(x, \"half_even\")","input":`+string(n)+`}`).Text)
	})
}

func TestSeedVectors(t *testing.T) {
	count := 0
	eachLine(t, filepath.Join(seed(t), "public.jsonl"), func(line []byte) {
		var v struct {
			ID    string
			Tags  []string
			Setup []struct {
				Name, Description string
				Code              json.RawMessage
			}
			Code, Input, Result json.RawMessage
			Type                string
			Steps               json.Number
			Error               *struct {
				Kind      string
				InnerKind string `json:"inner_kind"`
			}
			Nonterminating bool
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(v.Tags, func(tag string) bool { return slices.Contains(byDesign, tag) }) {
			return
		}
		count++
		s := New(Options{Limits: Limits{Result: 1 << 20}})
		for _, tool := range v.Setup {
			a := do(t, s, "evolve", fmt.Sprintf(`{"name":%s,"description":%s,"code":%s,"draft":true}`, quoteJSON(tool.Name), quoteJSON(tool.Description), rounded(t, tool.Code)))
			if a.Fault != nil {
				t.Errorf("%s: evolve %s: %s", v.ID, tool.Name, a.Text)
				return
			}
		}
		a := do(t, s, "run", fmt.Sprintf(`{"code":%s,"input":%s,"input_as":"auto"}`, rounded(t, v.Code), v.Input))
		switch {
		case v.Nonterminating:
			if a.Fault == nil || !slices.Contains([]string{"out_of_fuel", "out_of_memory", "too_deep"}, string(a.Fault.Kind)) {
				t.Errorf("%s: %s, expected a budget to stop it", v.ID, a.Text)
			}
		case v.Error != nil:
			want := v.Error.Kind
			if v.Error.InnerKind != "" {
				want = v.Error.InnerKind
			}
			if a.Fault == nil || string(a.Fault.Kind) != want {
				t.Errorf("%s: %s, expected %s", v.ID, a.Text, want)
			}
		case a.Fault != nil:
			t.Errorf("%s: %s, expected %s", v.ID, a.Text, v.Result)
		case v.Type == "continuation":
			var want struct {
				NextInput json.RawMessage `json:"next_input"`
				Tool      string
			}
			if err := json.Unmarshal(v.Result, &want); err != nil {
				t.Fatal(err)
			}
			if got := field(t, a, "result/next_input"); !same([]byte(got), want.NextInput) || field(t, a, "result/tool") != quoteJSON(want.Tool) {
				t.Errorf("%s: %s, expected %s", v.ID, a.Text, v.Result)
			}
		default:
			if !same([]byte(a.Text), v.Result) || !same([]byte(field(t, a, "result")), v.Result) || field(t, a, "type") != quoteJSON(v.Type) || field(t, a, "steps") != string(v.Steps) {
				t.Errorf("%s: %s, expected %s, %s, %s steps", v.ID, a.Structured, v.Result, v.Type, v.Steps)
			}
		}
	})
	if count < 900 {
		t.Errorf("only %d vectors were run", count)
	}
}

func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("../../../core/testdata/corpus/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	count := 0
	for _, file := range files {
		eachLine(t, file, func(line []byte) {
			var c struct {
				Name    string
				Term    json.RawMessage
				Tool    string
				Input   json.RawMessage
				InputAs string `json:"input_as"`
				Tools   map[string]json.RawMessage
				Budgets map[string]json.RawMessage
				Effects []json.RawMessage
				Calls   bool
				Want    json.RawMessage
				Type    string
				Fault   *struct {
					Kind string
					At   *string
				}
				Steps json.Number
			}
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatal(err)
			}
			if len(c.Effects) > 0 || c.Calls || c.Budgets["depth"] != nil {
				return // not for a client to say
			}
			count++
			name := strings.TrimSuffix(filepath.Base(file), ".jsonl") + ": " + c.Name
			s := New(Options{})
			var a wire.Answer
			for tool, code := range c.Tools {
				if a = do(t, s, "evolve", fmt.Sprintf(`{"name":%s,"code":%s}`, quoteJSON(tool), code)); a.Fault != nil {
					break
				}
			}
			if a.Fault == nil {
				call := map[string]any{}
				if c.Tool != "" {
					call["tool"] = c.Tool
				} else {
					call["code"] = c.Term
				}
				if c.Input != nil {
					call["input"] = c.Input
				}
				if call["input_as"] = c.InputAs; c.InputAs == "" {
					call["input_as"] = "auto"
				}
				for _, budget := range []string{"steps", "memory"} {
					if n := c.Budgets[budget]; n != nil {
						call[budget] = n
					}
				}
				arguments, err := json.Marshal(call)
				if err != nil {
					t.Fatal(err)
				}
				a = do(t, s, "run", string(arguments))
			}
			switch {
			case c.Fault != nil:
				if a.Fault == nil || string(a.Fault.Kind) != c.Fault.Kind && !(c.Fault.Kind != "refused" && a.Fault.Kind == "refused") {
					t.Errorf("%s: %s, expected %s", name, a.Text, c.Fault.Kind)
				} else if c.Fault.At != nil && a.Fault.Kind != "refused" && string(a.Fault.At) != *c.Fault.At && a.Fault.Kind.Catchable() {
					t.Errorf("%s: at %s, expected %s", name, a.Fault.At, *c.Fault.At)
				}
			case a.Fault != nil && a.Fault.Kind == "refused": // a tool with an effect
			case a.Fault != nil:
				t.Errorf("%s: %s, expected %s", name, a.Text, c.Want)
			case field(t, a, "result") != "" && field(t, a, "type") != `"continuation"` && !same([]byte(a.Text), c.Want):
				t.Errorf("%s: %s, expected %s", name, a.Text, c.Want)
			case c.Steps != "" && field(t, a, "steps") != string(c.Steps):
				t.Errorf("%s: %s steps, expected %s", name, field(t, a, "steps"), c.Steps)
			}
		})
	}
	if count < 100 {
		t.Errorf("only %d cases were run", count)
	}
}
