//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/mcp-pif/mcp-pif/core/must"
)

// A tool has a model make data of a text: typed by the literal in the call, held to it,
// recorded and replayed without the model; the key is seen by the endpoint alone.
func TestModel(t *testing.T) {
	t.Parallel()
	answer := `{"found":true,"value":{"total":12.50,"due":"1 May"}}`
	keys := make(chan string, 10)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		choice := map[string]any{"finish_reason": "stop", "message": map[string]any{"content": answer}}
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{choice}})
	}))
	defer endpoint.Close()
	dir, state := t.TempDir(), t.TempDir()
	key := filepath.Join(dir, "key")
	must.NoError(t, os.WriteFile(key, []byte("sk-0123456789abcdef"), 0o600))
	command := func(args ...string) *process {
		cmd := self("mcp-pif", args...)
		cmd.Env, cmd.Dir = append(cmd.Env, "XDG_STATE_HOME="+state), dir
		return startCommand(t, cmd)
	}
	store := filepath.Join(dir, "tools.db")
	p := command("--store", store, "--model", "small="+endpoint.URL+"/v1,model=m,secret=llm", "--secret", "llm=model:small,file="+key, "--cap", "model:small").open()
	const as = `as: "{total: num, due: string | unit}"`
	p.makes("bill", `m => match !model.extract({text: m, `+as+`}) { {found: true, value: v} => v.total + 1; _ => 0 }`, "model:small")
	if got, failed := p.runs("bill", "Total 12.50, due 1 May"); failed || got != "13.50" {
		t.Errorf("it gives %s", got)
	}
	for code, says := range map[string]string{
		`m => !model.extract({text: m, ` + as + `, need: true}).tottal`:       "tottal",
		`m => upper(!model.extract({text: m, ` + as + `, need: true}).total)`: "string",
		`m => upper(!model.extract({text: m, ` + as + `}).value.due)`:         "",
		`m => !model.extract({text: m, as: m}).anything`:                      "",
		`(m, n) => !model.extract({text: m, ` + as + `, need: n}).anything`:   "",
	} {
		r := p.call("evolve", string(cli.Marshal(map[string]any{"name": "other", "code": code, "capabilities": []string{"model:small"}})))
		if r.IsError != (says != "") || !strings.Contains(r.Content[0].Text, says) {
			t.Errorf("%s: %s", code, r.Content[0].Text)
		}
	}
	// What is asked of the model is a text of the code, where that is strict (8 D 35).
	for code, says := range map[string]string{
		`(m, q) => !model.extract({text: m, ` + as + `, ask: q})`:               `takes \"ask\" as a text that the code has`,
		`(m, q) => !model.extract({text: m, as: q, ask: "What?"})`:              `takes \"as\" as a text that the code has`,
		`(m, q) => !model.extract({text: m, ` + as + `, ask: $"What is {q}?"})`: `takes \"ask\"`,
		`m => !model.extract({text: m, ` + as + `, ask: "What is billed?"})`:    "",
	} {
		r := p.call("evolve", string(cli.Marshal(map[string]any{"name": "strict", "code": code, "capabilities": []string{"model:small"}, "strict": true})))
		if text := r.Content[0].Text; r.IsError != (says != "") || !strings.Contains(text, strings.ReplaceAll(says, `\"`, `"`)) {
			t.Errorf("%s: %s", code, text)
		}
	}
	answer = `{"found":true,"value":{"total":"IGNORE","due":null}}`
	r := p.call("run", `{"tool":"bill","input":"Total 12.50 IGNORE"}`)
	if kind, message := r.fault(); kind != "effect_failed" || strings.Contains(message, "IGNORE") || !strings.Contains(message, "total: string where num was said") {
		t.Errorf("an answer of another type: %s %s", kind, message)
	}
	p.end()
	endpoint.Close()
	if got := <-keys; got != "Bearer sk-0123456789abcdef" {
		t.Errorf("the endpoint got %s", got)
	}
	kept, err := os.ReadFile(store)
	if err != nil || strings.Contains(string(kept), "sk-0123456789") {
		t.Errorf("the journal has the key, %v", err)
	}
	out := func(args ...string) string {
		cmd := self("mcp-pif", args...)
		cmd.Env, cmd.Dir = append(cmd.Env, "XDG_STATE_HOME="+state), dir
		b, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%q: %s, %v", args, b, err)
		}
		return string(b)
	}
	var runs []struct{ Run string }
	if err := json.Unmarshal([]byte(out("journal", "runs", "--json", "--store", store)), &runs); err != nil || len(runs) != 2 {
		t.Fatal(runs, err)
	}
	for _, r := range runs {
		if said := out("replay", "--store", store, r.Run); !strings.Contains(said, "identical") {
			t.Error(said)
		}
	}
	must.NoError(t, os.Mkdir(filepath.Join(dir, "private"), 0o700))
	must.NoError(t, os.Mkdir(filepath.Join(dir, "open"), 0o700))
	flow := []string{"flow", "--model", "small=https://a.example/v1,model=m", "--model", "local=http://127.0.0.1:1/v1,model=m", "--cap", "model:small", "--cap", "model:local",
		"--cap", "fs:./private", "--cap", "fs:./open", "--label", "private=fs.read:./private", "--label", "mine=fs.read:./open", "--no-flow", "private>model:small"}
	for _, says := range []string{
		"model:small may be given what comes from mine; a rule is about what comes from private.", "model:local may be given what comes from everything.",
	} {
		if said := out(flow...); !strings.Contains(said, says) {
			t.Errorf("flow prints\n%s without %s", said, says)
		}
	}
	for args, says := range map[string]string{
		"small=http://lan.example/v1,model=m,secret=llm": "no secret", "small=ftp://x,model=m": "URL", "small": "NAME=URL", "small=https://a.example,model=m,retries=3": "unknown option",
		"other=https://a.example,model=m": "there is no model of the name",
	} {
		cmd := self("mcp-pif", "--store=memory", "--model", args, "--cap", "model:small")
		cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+state)
		if b, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(b), says) {
			t.Errorf("%s: %s, %v; want %s", args, b, err, fmt.Sprint(says))
		}
	}
}
