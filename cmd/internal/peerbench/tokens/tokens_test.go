// Package tokens_test runs the Starlark programs of the table in
// core/examples/tasks, which compares PIF's length with Starlark's: they have
// to give what the PIF programs give.
package tokens_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	starjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

const tasks = "../../../../core/examples/tasks"

// options allow what the programs need and the language by default forbids.
var options = &syntax.FileOptions{Recursion: true, While: true}

// A trial is an input with its result.
type trial struct{ Input, Want json.RawMessage }

func TestStarlark(t *testing.T) {
	files, err := filepath.Glob(tasks + "/*.star")
	if err != nil || len(files) != 30 {
		t.Fatalf("%d programs, not 30: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".star")
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			task, err := os.ReadFile(filepath.Join(tasks, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var e struct {
				trial
				Also []trial
			}
			if err := json.Unmarshal(task, &e); err != nil {
				t.Fatal(err)
			}
			for _, tr := range append(e.Also, e.trial) {
				got, err := run(name, src, string(tr.Input))
				if err != nil {
					t.Fatalf("on %s: %v", tr.Input, err)
				}
				if !reflect.DeepEqual(decode(t, got), decode(t, string(tr.Want))) {
					t.Errorf("on %s it gives\n%s, not\n%s", tr.Input, got, tr.Want)
				}
			}
		})
	}
}

// run gives, as JSON, what the program's main makes of an input.
func run(name string, src []byte, input string) (string, error) {
	thread := &starlark.Thread{Name: name}
	globals, err := starlark.ExecFileOptions(options, thread, name+".star", src, starlark.StringDict{"json": starjson.Module})
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

func decode(t *testing.T, s string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return v
}
