package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// checked runs check, and gives its exit status and what it prints.
func checked(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = command(append([]string{"check"}, args...), strings.NewReader(""), &stdout, &stderr)
	return status, stdout.String()
}

// TestCheckStatus: the exit status says what came of a check.
func TestCheckStatus(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	missing := filepath.Join(t.TempDir(), "none.db")
	for _, c := range []struct {
		status int
		args   []string
	}{
		{0, []string{"x => x + 1"}},
		{0, []string{"x => parse_json(x) + 1"}},
		{1, []string{"--strict", "x => parse_json(x) + 1"}},
		{1, []string{`x => x + "a"`}},
		{1, []string{"x => !fs.read(x)"}},
		{2, []string{"x =>"}},
		{2, []string{"--json", "x =>"}},
		{2, []string{}},
		{2, []string{"--file", missing}},
		{2, []string{"--tool", "it", "1"}},
		{2, []string{"--store", missing, "--tool", "it"}},
		{0, []string{"x => x", "--equal", "y => y"}},
		{1, []string{"x => x", "--equal", "y => 1"}},
		{2, []string{"x => x", "--equal", "y =>"}},
		{2, []string{"x =>", "--equal", "y => y"}},
		{2, []string{"x => x", "--equal", ""}},
		{2, []string{"--store", missing, "--tool", "it", "--equal", "y => y"}},
		{0, []string{"x => x + x", "--equal", "x => 2 * x"}},
		{3, []string{"x => x + x + x", "--equal", "x => 3 * x"}},
	} {
		if got, out := checked(t, c.args...); got != c.status {
			t.Errorf("check %q exits with %d, want %d\n%s", c.args, got, c.status, out)
		}
	}
}

// TestCheckJSON: the document has every member that is promised, whatever the
// code, and lists where there is nothing.
func TestCheckJSON(t *testing.T) {
	promised := map[string]reflect.Kind{
		"ok": reflect.Bool, "hash": reflect.String, "type": reflect.String, "params": reflect.Slice, "result": reflect.String,
		"sound": reflect.Bool, "problems": reflect.Slice, "unknown": reflect.Slice, "effects": reflect.Slice, "open": reflect.Bool,
		"cannot": reflect.Slice, "least": reflect.Slice, "certificate": reflect.Map, "notes": reflect.Slice,
	}
	for _, code := range []string{
		"1", "x => x", `x => x + "a"`, "x => !fs.read({path: x})", "q => eval(q)", "x => self(x)", "x + y",
		"x => " + strings.Repeat("[", 2_000) + strings.Repeat("]", 2_000),
		"x => [" + strings.Repeat(`1 + "a", `, 300) + "1]",
	} {
		status, out := checked(t, "--json", code)
		var doc map[string]any
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Errorf("%.60s: %v", code, err)
			continue
		}
		for name, kind := range promised {
			if got := reflect.ValueOf(doc[name]).Kind(); got != kind {
				t.Errorf("%.60s: %s is a %s, not a %s", code, name, got, kind)
			}
		}
		if doc["ok"] != (status == 0) {
			t.Errorf("%.60s: ok is %v, and the status %d", code, doc["ok"], status)
		}
		if cost, ok := doc["cost"].(map[string]any); ok && cost["class"] == "" {
			t.Errorf("%.60s: the cost is %v", code, cost)
		}
	}
	if _, out := checked(t, "--json", "x => ["+strings.Repeat(`1 + "a", `, 300)+"1]"); !strings.Contains(out, `"more": 200`) {
		t.Error("300 problems are cut without a word")
	}
}

// TestCheckPrintable: what turns the direction of text, or moves the cursor, doesn't
// reach a terminal, wherever it stands in the code.
func TestCheckPrintable(t *testing.T) {
	for _, code := range []string{
		"{\"add\":[\"\u202e\u0085\",1]}", "\u202e => 1", `{"lam":"\u001b[2J","body":{"add":["\u202e",{"var":"\u009b"}]}}`,
		`{"lam":"x","body":{"get":[{"record":{"\u001b]0;":1}},"\u202e"]}}`, `{"\u202ea.b":1}`, `{"call":{"tool":"\u202e","input":1}}`,
	} {
		_, out := checked(t, code)
		if strings.ContainsAny(out, "\u202e\u0085\u009b\x1b") {
			t.Errorf("check %q prints %q", code, out)
		}
	}
}
