// Package vectors is test support: what programs must do, for every way of
// running them.
//
// [Each] goes through the vectors of ../shared/seed, which record what the
// predecessor did, and holds an evaluator, the façade or the server to them by
// the rules of the seed's README. A vector whose outcome differs by design is
// held to ours, which bydesign.go lists with the reason. [EachCase] goes
// through this project's own corpus in core/testdata/corpus.
//
// Both take a function that runs one program and says what came of it. Only
// tests import this package.
package vectors

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	types "github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/fault"
	pifjson "github.com/mcp-pif/mcp-pif/core/json"
	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/parse"
	"github.com/mcp-pif/mcp-pif/core/prim"
	"github.com/mcp-pif/mcp-pif/core/term"
	"github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
)

// A Tool is one to evolve before a program runs.
type Tool struct {
	Name string          `json:"name"`
	Code json.RawMessage `json:"code"`
}

// A Vector is a program with what is expected of it, its code rounded as [Round]
// does. Evolve Setup in order, as drafts, then run Code with Input, read as the
// predecessor did (core.InputAuto). If a tool of Setup is refused, its fault is the
// outcome.
type Vector struct {
	ID    string          `json:"id"`
	Tags  []string        `json:"tags"`
	Setup []Tool          `json:"setup"`
	Code  json.RawMessage `json:"code"`
	Input json.RawMessage `json:"input"`
	// Reason says why the outcome isn't the predecessor's; empty if it is.
	Reason string `json:"-"`
	// Endless says that it takes any budget that it is given.
	Endless bool `json:"nonterminating"`
}

// Steps is a budget for a test that has more to do than to see the outcome: 0 is the
// evaluator's own. Without PIF_FULL a program that has no end gets fewer steps to it.
func (v Vector) Steps() uint64 {
	if v.Endless && os.Getenv("PIF_FULL") == "" {
		return 300_000
	}
	return 0
}

// An Outcome is what came of a program: a result with its type, or a fault.
type Outcome struct {
	Result json.RawMessage // as JSON; nil where it failed
	Type   string
	Kind   fault.Kind
	Steps  uint64
	// The rest of a fault, compared by the corpus only.
	At        fault.Pointer
	In        string
	EvalDepth int
	Got       string
	// Asked is what was asked for, as a test wrote it down; the corpus has its
	// own way.
	Asked string
}

// Failed is the outcome of a fault after a number of steps.
func Failed(f *fault.Fault, steps uint64) Outcome {
	return Outcome{Kind: f.Kind, At: f.At, In: f.In, EvalDepth: f.EvalDepth, Got: f.Got, Steps: steps}
}

func (o Outcome) String() string {
	if o.Kind != "" {
		return fmt.Sprintf("%s (%d steps)", o.Kind, o.Steps)
	}
	return fmt.Sprintf("%.300s, %s, %d steps", o.Result, o.Type, o.Steps)
}

// ByBudget reports whether a fault of this kind says that a budget is used up.
func ByBudget(k fault.Kind) bool {
	return k == fault.OutOfFuel || k == fault.TooDeep || k == fault.OutOfMemory
}

// record is a line of the seed's files.
type record struct {
	Vector
	Result json.RawMessage `json:"result"`
	Type   string          `json:"type"`
	Steps  uint64          `json:"steps"`
	Error  *struct {
		Kind      fault.Kind `json:"kind"`
		InnerKind fault.Kind `json:"inner_kind"`
	} `json:"error"`
}

// want is what is compared: a zero Type or Steps is not.
type want struct {
	Outcome
	anyBudget bool // any budget's fault will do
}

// Files are the seed's files of vectors, with how many each has.
var Files = []struct {
	Name  string
	Count int
}{{"public.jsonl", 1154}, {"fuel.jsonl", 52}, {"overflow.jsonl", 17}}

// Each runs every vector of the seed as a test of its own. Where there is no
// seed the test is skipped.
func Each(t *testing.T, run func(t *testing.T, v Vector) Outcome) {
	dir, ok := Seed()
	if !ok {
		t.Skip("the seed's vectors are not here: no ../shared/seed around the repository, and PIF_SHARED is not set")
	}
	for _, file := range Files {
		t.Run(file.Name, func(t *testing.T) {
			n := 0
			lines(t, filepath.Join(dir, file.Name), func(line []byte) {
				n++
				var r record
				must.NoError(t, json.Unmarshal(line, &r))
				r.Code = Round(r.Code)
				for i := range r.Setup {
					r.Setup[i].Code = Round(r.Setup[i].Code)
				}
				expected, reason := r.expected()
				r.Reason = reason
				t.Run(r.ID, func(t *testing.T) {
					check(t, expected, run(t, r.Vector), reason)
				})
			})
			if n != file.Count {
				t.Errorf("%d vectors, not %d", n, file.Count)
			}
		})
	}
}

// expected applies the README's rules.
func (r *record) expected() (want, string) {
	if d, ok := byDesign[r.ID]; ok {
		return want{Outcome: d.Outcome}, d.reason
	}
	switch {
	case r.Error == nil:
		return want{Outcome: Outcome{Result: r.Result, Type: r.Type, Steps: r.Steps}}, ""
	case r.Endless:
		return want{anyBudget: true}, ""
	case r.Error.InnerKind != "":
		return want{Outcome: Outcome{Kind: r.Error.InnerKind}}, ""
	}
	return want{Outcome: Outcome{Kind: r.Error.Kind}}, ""
}

func check(t *testing.T, w want, got Outcome, reason string) {
	t.Helper()
	if reason != "" {
		reason = "\n(by design: " + reason + ")"
	}
	if w.anyBudget {
		if !ByBudget(got.Kind) {
			t.Errorf("got %v, want a budget to be used up%s", got, reason)
		}
		return
	}
	same := got.Kind == w.Kind && (w.Type == "" || got.Type == w.Type) && (w.Steps == 0 || got.Steps == w.Steps)
	if same && w.Kind == "" {
		same = SameJSON(got.Result, w.Result)
	}
	if !same {
		t.Errorf("got  %v\nwant %v%s", got, w.Outcome, reason)
	}
}

// SameJSON compares two results: numbers by their text, of a continuation only
// its type, tool and next input.
func SameJSON(a, b json.RawMessage) bool {
	var x, y any
	return pifjson.Decode(a, &x) == nil && pifjson.Decode(b, &y) == nil && same(x, y)
}

func same(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return false
		}
		if a["type"] == "continuation" && b["type"] == "continuation" {
			return a["tool"] == b["tool"] && same(a["next_input"], b["next_input"])
		}
		for k, x := range a {
			if y, ok := b[k]; !ok || !same(x, y) {
				return false
			}
		}
		return len(a) == len(b)
	}
	return a == b
}

// Seed is the folder of the seed's vectors: $PIF_SHARED/seed, or shared/seed
// beside one of the folders around the working directory.
func Seed() (dir string, ok bool) {
	if shared := os.Getenv("PIF_SHARED"); shared != "" {
		return filepath.Join(shared, "seed"), true
	}
	return above(filepath.Join("shared", "seed"))
}

// above looks for a path in the working directory and those around it.
func above(path string) (string, bool) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false
	}
	for {
		if found := filepath.Join(dir, path); exists(found) {
			return found, true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", false
		}
		dir = up
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// lines calls f with each line of a file that isn't empty.
func lines(t testing.TB, path string, f func(line []byte)) {
	t.Helper()
	file, err := os.Open(path)
	must.NoError(t, err)
	defer file.Close()
	s := bufio.NewScanner(file)
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		if line := bytes.TrimSpace(s.Bytes()); len(line) > 0 {
			f(line)
		}
	}
	must.NoError(t, s.Err())
}

// Callee is [value.Tools.Callee] for tests: every tool may be called that the
// evals around permit, by "call" or "call:NAME".
func Callee(tools value.Tools, name string, with [][]string) (value.Tool, *fault.Fault) {
	for _, list := range with {
		permits := false
		for _, text := range list {
			permits = permits || text == "call" || text == "call:"+name
		}
		if !permits {
			return value.Tool{}, fault.New(fault.Denied, "an eval around doesn't permit calling "+name)
		}
	}
	t, ok := tools.Tool(name, true)
	if !ok {
		return value.Tool{}, fault.New(fault.NoTool, "there is no tool "+name)
	}
	return t, nil
}

// Parsed is the tools that a program may look up, parsed.
type Parsed map[string]*parse.Parsed

// Parse parses tools as evolve does.
func Parse(tools []Tool) (Parsed, *fault.Fault) {
	all := Parsed{}
	for _, tool := range tools {
		p, f := parse.Code(tool.Source(), parse.Options{Tool: tool.Name})
		if f != nil {
			return all, f
		}
		p.Source = &term.Source{Text: p.Source.Text, In: "tool:" + tool.Name + "@1"}
		all[tool.Name] = p
	}
	return all, nil
}

// Tool finds a tool.
func (r Parsed) Tool(name string, _ bool) (value.Tool, bool) {
	p, ok := r[name]
	if !ok {
		return value.Tool{}, false
	}
	return value.Tool{Term: p.Term, Source: p.Source, Params: prim.Parameters(p.Term), Name: name, Tools: r, Takes: types.Takes(name, p.Term)}, true
}

// Callee finds a tool that the evals around permit to be called.
func (r Parsed) Callee(name string, with [][]string, _ fault.Pointer) (value.Tool, *fault.Fault) {
	return Callee(r, name, with)
}

// Program finds the code to run: that of a tool, or a source.
func (r Parsed) Program(tool string, source []byte) (*parse.Parsed, *fault.Fault) {
	if tool == "" {
		return parse.Code(source, parse.Options{})
	}
	return r[tool], nil
}

// Program is what Code says to run, by the rules of `run`: a string is a
// tool's name, or else JSON text; anything else is a term itself. tool is set
// where it is a tool's name; otherwise code is the source to parse, which may
// be no JSON at all.
func (v Vector) Program() (tool string, code []byte) {
	return program(v.Code, func(name string) bool {
		return slices.ContainsFunc(v.Setup, func(t Tool) bool { return t.Name == name })
	})
}

func program(code json.RawMessage, known func(string) bool) (tool string, source []byte) {
	var s string
	if json.Unmarshal(code, &s) != nil || string(code) == "null" {
		return "", code
	}
	if known(s) {
		return s, nil
	}
	return "", []byte(s)
}

// Source is a tool's code as evolve reads it: a string that holds JSON is
// that, and any other string a string literal.
func (t Tool) Source() []byte {
	var s string
	if json.Unmarshal(t.Code, &s) == nil && json.Valid([]byte(s)) {
		return []byte(s)
	}
	return t.Code
}

// token is a string of JSON, or a number with a point or an exponent.
var token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?`)

// Round rounds each number of JSON that has a point or an exponent to the nearest
// integer, of two the even one: the predecessor read code so. A source that is a
// string of JSON is rounded inside.
func Round(code json.RawMessage) json.RawMessage {
	var s string
	if len(code) > 0 && code[0] == '"' && json.Unmarshal(code, &s) == nil && json.Valid([]byte(s)) {
		inner, _ := json.Marshal(string(round(s)))
		return inner
	}
	return round(string(code))
}

func round(src string) json.RawMessage {
	return json.RawMessage(token.ReplaceAllStringFunc(src, func(s string) string {
		if s[0] == '"' || !strings.ContainsAny(s, ".eE") {
			return s
		}
		exact, ok := new(big.Rat).SetString(s)
		if !ok {
			return s
		}
		// Floor of x + 1/2, less one where x was half way and that is odd.
		double := new(big.Int).Add(new(big.Int).Lsh(exact.Num(), 1), exact.Denom())
		n, rest := new(big.Int).DivMod(double, new(big.Int).Lsh(exact.Denom(), 1), new(big.Int))
		if rest.Sign() == 0 && n.Bit(0) == 1 {
			n.Sub(n, big.NewInt(1))
		}
		return n.String()
	}))
}

// A Library is the tools that programs of a test can look up, as the code of
// Owner sees them: all of them, and itself.
type Library struct {
	Owner string
	Code  map[string]value.Tool // Term and Source
}

// Tool finds a tool.
func (l Library) Tool(name string, _ bool) (value.Tool, bool) {
	t, ok := l.Code[name]
	t.Name, t.Tools = name, Library{name, l.Code}
	return t, ok
}

// Callee finds a tool that the evals around permit to be called.
func (l Library) Callee(name string, with [][]string, _ fault.Pointer) (value.Tool, *fault.Fault) {
	return Callee(l, name, with)
}

// A Script answers the requests of a run, and writes down all that they say, so
// that two runs can be held against each other.
type Script struct {
	// Reply is the outcome of request i (from 0) of those that the evals around
	// permit.
	Reply func(i int, op string, arg value.Value) (value.Value, *fault.Fault)
	Log   strings.Builder
	asked int
}

// Answer answers a round.
func (s *Script) Answer(round []value.Request) []value.Answer {
	fmt.Fprintf(&s.Log, "round of %d\n", len(round))
	answers := make([]value.Answer, len(round))
	for i, r := range round {
		arg := "too large"
		if e, f := text.Encode(r.Arg, 1<<16, 1<<20); f == nil {
			arg = string(e.JSON)
		}
		owner := "nobody"
		if l, ok := r.Tools.(Library); ok {
			owner = "owner " + l.Owner
		}
		fmt.Fprintf(&s.Log, "%s in %q at %q of %q, tool %q of %s, with %q, branch %q: %s\n", r.Op, r.In, r.At, r.Where, r.Tool, owner, r.With, r.Branch, arg)
		if !Permits(r.With, r.Op) {
			answers[i].Fault = fault.New(fault.Denied, r.Op+" is not permitted by an eval around")
			continue
		}
		answers[i].Value, answers[i].Fault = s.Reply(s.asked, r.Op, r.Arg)
		s.asked++
	}
	return answers
}
