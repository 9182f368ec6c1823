package playground

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-pif/mcp-pif/core"
	"github.com/mcp-pif/mcp-pif/core/fault"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// built is the evaluator, built once for all tests.
var built = sync.OnceValues(func() ([]byte, error) {
	module, _, err := Build(context.Background(), ".")
	return module, err
})

func build(t *testing.T) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("building the evaluator takes up to a minute")
	}
	must.SkipQuick(t)
	module, err := built()
	must.NoError(t, err)
	return module
}

// inNode answers requests by the evaluator as the page loads it, in Node.
func inNode(t *testing.T, requests ...request) []json.RawMessage {
	t.Helper()
	module := build(t)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("Node.js isn't installed: the evaluator isn't run in it")
	}
	dir := t.TempDir()
	must.Succeed(t)(Write(dir, module, nil))
	questions, err := json.Marshal(requests)
	must.NoError(t, err)
	script := `import { start } from "./pif.js";
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
const call = start(new WebAssembly.Module(gunzipSync(readFileSync("pif.wasm.gz"))));
process.stdout.write(JSON.stringify(JSON.parse(readFileSync("questions.json", "utf8")).map(call)));`
	for name, text := range map[string][]byte{"questions.json": questions, "ask.mjs": []byte(script)} {
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	cmd := exec.CommandContext(t.Context(), node, "ask.mjs")
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.Bytes())
	}
	var answers []json.RawMessage
	must.NoError(t, json.Unmarshal(out, &answers))
	return answers
}

type request = map[string]any

// An answer is what the page is told.
type answer struct {
	Result, Other, Type, Cost string
	Steps                     uint64
	Fault                     *problem
	Problems                  []problem
	Lines                     []any
}

type problem struct {
	Kind            fault.Kind
	At, Caret, Hint string
	From, To        int
}

// What the evaluator gives in a browser is what it gives here.
func TestAnswers(t *testing.T) {
	t.Parallel()
	var all []struct{ Name, Code, Input string }
	if err := json.Unmarshal(inNode(t, request{"do": "tasks"})[0], &all); err != nil || len(all) != 80 {
		t.Fatalf("%d tasks: %v", len(all), err)
	}
	var requests []request
	for _, task := range all {
		requests = append(requests, request{"do": "run", "code": task.Code, "input": task.Input}, request{"do": "check", "code": task.Code})
	}
	answers := inNode(t, requests...)
	for i, task := range all {
		p, err := core.CompileText("it", []byte(task.Code))
		must.NoError(t, err)
		want, err := core.Run(t.Context(), p, []byte(task.Input), core.Budgets{})
		must.NoError(t, err)
		var ran, checked answer
		must.NoError(t, errors.Join(json.Unmarshal(answers[2*i], &ran), json.Unmarshal(answers[2*i+1], &checked)))
		if ran.Result != string(want.JSON) || ran.Steps != want.Steps {
			t.Errorf("%s: %+v, expected %s in %d steps", task.Name, ran, want.JSON, want.Steps)
		}
		var b bytes.Buffer
		if err := json.Compact(&b, []byte(checked.Other)); err != nil || b.String() != string(p.Canonical()) || checked.Type == "" || checked.Cost == "" || checked.Fault != nil || checked.Problems != nil {
			t.Errorf("%s: %v %+v", task.Name, err, checked)
		}
	}
}

// What is wrong is told with its place, and a run keeps its budget and acts on nothing.
func TestProblems(t *testing.T) {
	t.Parallel()
	cases := []struct {
		ask             request
		kind            fault.Kind
		caret           string
		from, to, steps int
	}{
		{request{"do": "check", "code": "n => 𝒳 + (n"}, fault.ParseError, "^", 12, 13, 0},
		{request{"do": "check", "code": "n => \"𝒳\" ++ (2 - \"é\")"}, fault.TypeError, "^", 16, 17, 0},
		{request{"do": "check", "code": `{"add":[1]}`}, fault.ParseError, "", -1, 0, 0},
		{request{"do": "run", "code": "self", "input": "{"}, fault.ParseError, "", -1, 0, 0},
		{request{"do": "run", "code": "n => self(n + 1)", "input": "1", "steps": 1000}, fault.OutOfFuel, "^", 9, 10, 1000},
		{request{"do": "run", "code": "p => !fs.read(p)", "input": "\"a\""}, fault.Denied, "^", 5, 6, 5},
		{request{"do": "run", "code": "1 / 0"}, fault.DivisionByZero, "^", 2, 3, 3},
		{request{"do": "nothing"}, "", "", 0, 0, 0},
	}
	var requests []request
	for _, c := range cases {
		requests = append(requests, c.ask)
	}
	for i, raw := range inNode(t, requests...) {
		c, a := cases[i], answer{}
		must.NoError(t, json.Unmarshal(raw, &a))
		if a.Fault == nil && len(a.Problems) > 0 {
			a.Fault = &a.Problems[0]
		}
		if a.Fault == nil {
			a.Fault = &problem{}
		}
		if f := a.Fault; f.Kind != c.kind || !strings.Contains(f.Caret, c.caret) || f.From != c.from || f.To != c.to || a.Steps != uint64(c.steps) {
			t.Errorf("%v: %s", c.ask, raw)
		}
	}
}

// The files are small, name nothing outside, and are served with their policy.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names, err := Write(dir, []byte("module"), []byte("licences"))
	if err != nil || len(names) != 10 {
		t.Fatalf("%v: %v", names, err)
	}
	total := 0
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		must.NoError(t, err)
		total += len(text)
		for _, banned := range []string{"https://", "http://w", "http://c", "innerHTML", "eval(", "document.write", "style=", " onclick", "VERSION\";", `"CSP"`} {
			if strings.Contains(strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", ""), banned) {
				t.Errorf("%s has %s", name, banned)
			}
		}
	}
	if total > 40<<10 {
		t.Errorf("the page's own files have %d bytes", total)
	}
	r := httptest.NewRecorder()
	Handler(dir, names).ServeHTTP(r, httptest.NewRequest(http.MethodGet, "http://localhost:80/", nil))
	policy := r.Header().Get("Content-Security-Policy")
	if r.Code != http.StatusOK || !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe-inline") || !strings.Contains(r.Body.String(), Policy) {
		t.Errorf("%d %s: %s", r.Code, policy, r.Body)
	}
	must.NoError(t, os.WriteFile(filepath.Join(dir, ".secret"), nil, 0o600))
	for url, want := range map[string]int{
		"http://127.0.0.1/sw.js": http.StatusOK, "http://localhost:1/.secret": http.StatusNotFound, "http://localhost//.secret": http.StatusNotFound, "http://example.com/sw.js": http.StatusMisdirectedRequest,
	} {
		r := httptest.NewRecorder()
		if Handler(dir, names).ServeHTTP(r, httptest.NewRequest(http.MethodGet, url, nil)); r.Code != want {
			t.Errorf("%s gave %d", url, r.Code)
		}
	}
	module := build(t)
	if len(module) > MaxModule {
		t.Errorf("the evaluator has %d bytes", len(module))
	}
	z, err := gzip.NewReader(bytes.NewReader(module))
	must.NoError(t, err)
	if text, err := io.ReadAll(z); err != nil || !bytes.HasPrefix(text, []byte("\x00asm")) {
		t.Errorf("it is no module: %v", err)
	}
}

// A folder of something else stays as it is, and so does what a link in a playground leads to.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, module := filepath.Join(dir, "index.html"), filepath.Join(t.TempDir(), Module)
	must.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	if _, err := Write(dir, []byte("new"), nil); err == nil || !strings.Contains(err.Error(), "other files") {
		t.Errorf("written over: %v", err)
	}
	_, err := Write(filepath.Dir(module), []byte("old"), nil)
	must.NoError(t, err)
	index := filepath.Join(filepath.Dir(module), "index.html")
	must.NoError(t, os.Remove(index))
	if err := os.Symlink(file, index); err != nil {
		t.Skip(err)
	}
	_, err = Write(filepath.Dir(module), []byte("new"), nil)
	must.NoError(t, err)
	text, err := os.ReadFile(file)
	must.NoError(t, err)
	written, err := os.ReadFile(module)
	if err != nil || string(written) != "new" || string(text) != "mine" {
		t.Errorf("%v: %q, and behind the link %q", err, written, text)
	}
}
