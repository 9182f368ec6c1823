package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dop251/goja"
	starjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// maxShare is what PIF's tokens may be of another language's, as a geometric mean.
const maxShare = 0.9

// TestTokens: the page of the tasks is what their programs make it, and PIF is short.
func TestTokens(t *testing.T) {
	tasks, err := loadTasks()
	must.NoError(t, err)
	all, err := countTokens(tasks)
	must.NoError(t, err)
	if page, err := os.ReadFile(taskPage); err != nil || !bytes.Equal(page, tokensPage(all)) {
		t.Errorf("%s is not what the programs make it: go run . -tokens", taskPage)
	}
	if star, js := means(all); star > maxShare || js > maxShare {
		t.Errorf("PIF has %.3f of Starlark's tokens and %.3f of JavaScript's, at most %v are expected", star, js, maxShare)
	}
}

// TestTasks: the Starlark and the JavaScript programs give what the PIF programs give.
func TestTasks(t *testing.T) {
	tasks, err := loadTasks()
	must.NoError(t, err)
	for _, k := range tasks {
		for lang, run := range map[string]func(string) (string, error){"star": k.onStarlark, "js": k.onJavaScript} {
			t.Run(k.name+"."+lang, func(t *testing.T) {
				for _, tr := range k.trials {
					got, err := run(string(tr.Input))
					if err != nil {
						t.Fatalf("on %s: %v", tr.Input, err)
					}
					if !sameJSON(t, got, string(tr.Want)) {
						t.Errorf("on %s it gives\n%s, not\n%s", tr.Input, got, tr.Want)
					}
				}
			})
		}
	}
}

// onStarlark returns, as JSON, what the program's main makes of an input.
func (k *task) onStarlark(input string) (string, error) {
	thread := &starlark.Thread{Name: k.name}
	globals, err := starlark.ExecFileOptions(starlarkOptions, thread, k.name+".star", k.star, starlark.StringDict{"json": starjson.Module})
	if err != nil {
		return "", err
	}
	in, err := starlark.Call(thread, starjson.Module.Members["decode"], starlark.Tuple{starlark.String(input)}, nil)
	if err != nil {
		return "", err
	}
	out, err := starlark.Call(thread, globals["main"], starlark.Tuple{in}, nil)
	if err != nil {
		return "", err
	}
	text, err := starlark.Call(thread, starjson.Module.Members["encode"], starlark.Tuple{out}, nil)
	if err != nil {
		return "", err
	}
	return string(text.(starlark.String)), nil
}

// runtimeLacks is what the JavaScript programs use that goja doesn't have yet, and the
// integers that JSON.stringify can't write.
const runtimeLacks = `
Object.groupBy ??= (xs, key) => {
  const groups = Object.create(null);
  for (const x of xs) (groups[key(x)] ??= []).push(x);
  return groups;
};
BigInt.prototype.toJSON = function () { return "integer " + this; };
(f, input) => JSON.stringify(f(JSON.parse(input)))`

// onJavaScript returns, as JSON, what the function that the program is makes of an input.
func (k *task) onJavaScript(input string) (string, error) {
	rt := goja.New()
	call, err := rt.RunString(runtimeLacks)
	if err != nil {
		return "", err
	}
	f, err := rt.RunString("(" + strings.TrimSuffix(strings.TrimSpace(string(k.js)), ";") + ")")
	if err != nil {
		return "", err
	}
	apply, ok := goja.AssertFunction(call)
	if !ok {
		return "", fmt.Errorf("%s is no function", call)
	}
	out, err := apply(goja.Undefined(), f, rt.ToValue(input))
	if err != nil {
		return "", err
	}
	return regexp.MustCompile(`"integer (-?\d+)"`).ReplaceAllString(out.String(), "$1"), nil
}

// sameJSON reports whether two JSON texts say the same, numbers by what they are worth.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	return string(normal(t, a)) == string(normal(t, b))
}

// normal is a JSON text with sorted keys and one spelling for each number.
func normal(t *testing.T, s string) []byte {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	var spell func(any) any
	spell = func(v any) any {
		switch v := v.(type) {
		case json.Number:
			r, _ := new(big.Rat).SetString(v.String())
			return json.RawMessage(`{"":"` + r.String() + `"}`)
		case []any:
			for i := range v {
				v[i] = spell(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = spell(v[k])
			}
		}
		return v
	}
	b, err := json.Marshal(spell(v))
	must.NoError(t, err)
	return b
}
