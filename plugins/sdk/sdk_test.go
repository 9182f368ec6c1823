package sdk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/mcp-pif/mcp-pif/caps"
	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/must"
	pif "github.com/mcp-pif/mcp-pif/core/text"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/internal/wire"
	pluginv1 "github.com/mcp-pif/mcp-pif/proto/mcppif/plugin/v1"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		Serve(of(Op("go", "Goes.", Flags{}, nothing)))
	}
	os.Exit(m.Run())
}

// of is a plugin with these operations.
func of(operations ...Operation) Plugin {
	return Plugin{Kind: "toy", Version: "1.0.0", Doc: "A toy.", Scope: Exact, Operations: operations}
}

func nothing(context.Context, any, struct{}) (struct{}, error) { return struct{}{}, nil }

// giving is an operation that gives r.
func giving[R any](r R, err error) Operation {
	return Op("go", "Goes.", Flags{}, func(context.Context, any, struct{}) (R, error) { return r, err })
}

func direct(t *testing.T, p Plugin) *Handle {
	t.Helper()
	h, err := Direct(context.Background(), p, Capability{})
	must.NoError(t, err)
	return h
}

func record(fields ...value.Field) *value.Record { return &value.Record{Fields: fields} }

func f(key string, v value.Value) value.Field { return value.Field{Key: key, Value: v} }

// json is how a value reads.
func json(t *testing.T, v value.Value) string {
	t.Helper()
	e, fault := pif.Encode(v, 1<<20, 1<<20)
	must.NoFault(t, fault)
	return string(e.JSON)
}

func TestOpResults(t *testing.T) {
	type row struct {
		Path     string
		Size     int64 `pif:"bytes"`
		Note     string
		Empty    string `pif:",optional"`
		Absent   *int
		Present  *int
		Hidden   int `pif:"-"`
		HTTPCode int
	}
	n := 5
	for _, c := range []struct {
		name, want string
		o          Operation
	}{
		{"a string", `"é"`, giving("é", nil)},
		{"an integer", "-7", giving(-7, nil)},
		{"nothing in a struct", `{}`, giving(struct{}{}, nil)},
		{"a bool", "true", giving(true, nil)},
		{"strings", `["a","b"]`, giving([]string{"a", "b"}, nil)},
		{"no list", `[]`, giving([]string(nil), nil)},
		{"a map", `{"a":1,"b":2}`, giving(map[string]int{"b": 2, "a": 1}, nil)},
		{"no map", `{}`, giving(map[string]int(nil), nil)},
		{"no pointer", `null`, giving((*row)(nil), nil)},
		{"a record", `{"bytes":3,"http_code":200,"note":"","path":"a","present":5}`, giving(row{Path: "a", Size: 3, Present: &n, HTTPCode: 200}, nil)},
		{"a value", `{"pair":[1,null]}`, giving[value.Value](&value.Pair{First: value.NewInt(1), Second: value.Unit{}}, nil)},
		{"no value", `null`, giving[value.Value](nil, nil)},
		{"values in a list", `[1,"x"]`, giving([]value.Value{value.NewInt(1), value.Str("x")}, nil)},
		{"a record as it is", `{"a":null}`, giving(record(f("a", value.Unit{})), nil)},
		{"no record as it is", `null`, giving[*value.Record](nil, nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := direct(t, of(c.o)).Invoke(context.Background(), "toy.go", nil)
			must.NoError(t, err)
			if got := json(t, v); got != c.want {
				t.Fatalf("%s, want %s", got, c.want)
			}
		})
	}
	if _, err := direct(t, of(giving("\xff", nil))).Invoke(context.Background(), "toy.go", nil); err == nil || !strings.HasPrefix(err.Error(), "unknown") || !strings.Contains(err.Error(), "UTF-8") {
		t.Fatalf("text that isn't UTF-8: %v", err)
	}
}

type everything struct {
	Path    string `pif:"path,main,designates" doc:"where"`
	As      string `pif:"as,optional,enum=utf8|base64"`
	Limit   *int
	Deep    bool              `pif:",optional"`
	Names   []string          `pif:",optional"`
	Headers map[string]string `pif:",optional"`
	Any     value.Value       `pif:",optional"`
	Exact   value.Int         `pif:",optional"`
	Inner   *struct {
		X int64
	}
}

func TestOpArguments(t *testing.T) {
	var got everything
	h := direct(t, of(Op("go", "Goes.", Flags{}, func(_ context.Context, _ any, a everything) (struct{}, error) {
		got = a
		return struct{}{}, nil
	})))
	path := f("path", value.Str("a"))
	huge := value.NewBig(value.Power10(30))
	if _, err := h.Invoke(context.Background(), "toy.go", record(
		f("any", value.Unit{}), f("as", value.Str("utf8")), f("deep", value.Bool(true)), f("exact", huge),
		f("headers", record(f("k", value.Str("v")))), f("inner", record(f("x", value.NewInt(9)))), f("limit", value.NewInt(3)),
		f("names", value.FromSlice([]value.Value{value.Str("n")})), path,
	)); err != nil {
		t.Fatal(err)
	}
	if got.Path != "a" || got.As != "utf8" || *got.Limit != 3 || !got.Deep || got.Names[0] != "n" || got.Headers["k"] != "v" ||
		got.Any != value.Value(value.Unit{}) || got.Inner.X != 9 || got.Exact.String() != huge.String() {
		t.Fatalf("%+v", got)
	}
	if _, err := h.Invoke(context.Background(), "toy.go", record(f("as", value.Unit{}), f("limit", value.Unit{}), path)); err != nil || got.Limit != nil || got.As != "" {
		t.Fatalf("null leaves out: %v, %+v", err, got)
	}
	for _, c := range []struct {
		name, says string
		args       value.Value
	}{
		{"no record", "are a record, not a list", value.Nil{}},
		{"nothing", "path is missing", nil},
		{"null for what is needed", "path must be a string, not null", record(f("path", value.Unit{}))},
		{"another type", "path must be a string, not an int", record(f("path", value.NewInt(1)))},
		{"what isn't there", "unknown argument size", record(path, f("size", value.NewInt(1)))},
		{"another word", "as is \"x\", not one of utf8, base64", record(f("as", value.Str("x")), path)},
		{"too large a number", "limit doesn't fit 64 bits", record(f("limit", huge), path)},
		{"a decimal", "limit must be an integer, not a dec", record(f("limit", value.Dec{}), path)},
		{"a wrong item", "names[1] must be a string", record(f("names", value.FromSlice([]value.Value{value.Str(""), value.Unit{}})), path)},
		{"a wrong member", "headers.k must be a string", record(f("headers", record(f("k", value.NewInt(1)))), path)},
		{"deep inside", "inner.x must be an integer", record(f("inner", record(f("x", value.Str("")))), path)},
		{"what isn't there inside", "unknown argument inner.y", record(f("inner", record(f("x", value.NewInt(1)), f("y", value.NewInt(1)))), path)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := h.Invoke(context.Background(), "toy.go", c.args)
			if failure, ok := err.(Failure); !ok || failure.Code != "invalid" || !strings.Contains(failure.Message, c.says) {
				t.Fatalf("%v, want invalid with %q", err, c.says)
			}
		})
	}
}

func TestManifestOfOperations(t *testing.T) {
	p := of(
		Op("read", "Reads.", Flags{ReadOnly: true}, func(context.Context, any, everything) ([]struct{ Path, Kind string }, error) {
			return nil, nil
		}),
		Op("request", "Asks.", Flags{}, func(context.Context, any, struct {
			Method string `pif:"method,optional"`
		}) (map[string]string, error) {
			return nil, nil
		}, VerbFrom("method", "get"), Result("record: whatever")),
	)
	p.Verbs = []Verb{{Name: "read", Flags: Flags{ReadOnly: true}}, {Name: "get"}, {Name: "post"}}
	m, err := p.Manifest()
	must.NoError(t, err)
	want := []caps.Operation{
		{Name: "toy.read", Doc: "Reads.", Verb: "read", Result: "list of records: path, kind", Type: typed(t, "list[{kind: string, path: string}]"), Params: []caps.Param{
			{Name: "path", Doc: "where", Type: "string", Main: true, Designates: true},
			{Name: "as", Type: "string", Optional: true, Enum: []string{"utf8", "base64"}},
			{Name: "limit", Type: "int", Optional: true},
			{Name: "deep", Type: "bool", Optional: true},
			{Name: "names", Type: "list", Optional: true},
			{Name: "headers", Type: "record", Optional: true},
			{Name: "any", Type: "any", Optional: true},
			{Name: "exact", Type: "int", Optional: true},
			{Name: "inner", Type: "record", Optional: true},
		}},
		{Name: "toy.request", Doc: "Asks.", Verb: "get", VerbParam: "method", Result: "record: whatever", Type: typed(t, "{*: string}"), Params: []caps.Param{
			{Name: "method", Type: "string", Optional: true},
		}},
	}
	if d := cmp.Diff(want, m.Operations, cmpopts.IgnoreUnexported(check.Type{})); d != "" {
		t.Fatal(d)
	}
	if err := m.Check(); err != nil {
		t.Fatalf("package caps: %v", err)
	}
	p.Operations = p.Operations[:1]
	p.Verbs = nil
	if m, err = p.Manifest(); err != nil || len(m.Verbs) != 1 || m.Verbs[0] != (Verb{Name: "read", Flags: Flags{ReadOnly: true}}) {
		t.Fatalf("%+v, %v", m, err)
	}
}

func TestManifestNamesMistakes(t *testing.T) {
	type loop struct{ Next []loop }
	type hidden struct{ x int }
	_ = hidden{}.x
	takes := func(o Operation) Plugin { return of(o) }
	for _, c := range []struct {
		name, says string
		p          Plugin
	}{
		{"bytes", "has no bytes", takes(giving([]byte(nil), nil))},
		{"a float", "values are made of", takes(giving(1.5, nil))},
		{"a channel", "values are made of", takes(giving(make(chan int), nil))},
		{"an interface", "values are made of", takes(giving[any](1, nil))},
		{"keys that are no strings", "keys of a record", takes(giving(map[int]int{}, nil))},
		{"a type within itself", "contains itself", takes(giving(loop{}, nil))},
		{"nothing exported", "no exported fields", takes(giving(hidden{}, nil))},
		{"a pointer to a pointer", "pointer to a pointer", takes(giving((**int)(nil), nil))},
		{"an embedded struct", "embedded", takes(giving(struct{ fs.PathError }{}, nil))},
		{"arguments that are no struct", "fields of a struct", takes(Op("go", "Goes.", Flags{}, func(context.Context, any, string) (string, error) { return "", nil }))},
		{"an unknown word", "unknown word", takes(giving(struct {
			A int `pif:"a,omitempty"`
		}{}, nil))},
		{"two fields of a name", "two fields are called a", takes(giving(struct {
			A int
			B int `pif:"a"`
		}{}, nil))},
		{"a handmade operation", "isn't made by Op", of(Operation{Operation: caps.Operation{Name: "go"}})},
		{"a verb that isn't listed", "no verb", func() Plugin { p := of(giving(1, nil)); p.Verbs = []Verb{{Name: "x"}}; return p }()},
		{"other flags than the verb", "other flags", func() Plugin {
			p := of(Op("go", "Goes.", Flags{ReadOnly: true}, nothing))
			p.Verbs = []Verb{{Name: "go", Flags: Flags{Destructive: true}}}
			return p
		}()},
		{"a verb from an argument without a list", "must list its verbs", of(Op("go", "Goes.", Flags{}, nothing, VerbFrom("m", "x")))},
		{"no doc", "doc", of(Op("go", "", Flags{}, nothing))},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.p.Manifest(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want one with %q", err, c.says)
			}
			if _, err := Direct(context.Background(), c.p, Capability{}); err == nil {
				t.Fatal("it can be opened")
			}
		})
	}
}

func TestFailuresOfHandlers(t *testing.T) {
	secret := "/home/someone/secret.txt"
	for _, c := range []struct {
		name string
		err  error
		want Failure
	}{
		{"its own", Fail("exists", "%s is there", "it").WithHint("Remove it.").WithRetry(), Failure{Code: "exists", Message: "it is there", Hint: "Remove it.", Retryable: true}},
		{"wrapped", fmt.Errorf("x: %w", Fail("conflict", "c")), Failure{Code: "conflict", Message: "c"}},
		{"a code of its own", Fail("boom", "b"), Failure{Code: "failed", Message: "b"}},
		{"a code by hand", Failure{Code: "boom", Message: "b"}, Failure{Code: "failed", Message: "b"}},
		{"no file", &fs.PathError{Op: "open", Path: secret, Err: syscall.ENOENT}, Failure{Code: "not_found", Message: "not found"}},
		{"no permission", &fs.PathError{Op: "open", Path: secret, Err: syscall.EACCES}, Failure{Code: "denied", Message: "the operating system doesn't permit it"}},
		{"another errno", &fs.PathError{Op: "open", Path: secret, Err: syscall.ENOSPC}, Failure{Code: "failed", Message: "the operating system says: " + syscall.ENOSPC.Error()}},
		{"a pointer", fmt.Errorf("x: %w", &Failure{Code: "conflict", Message: "c"}), Failure{Code: "conflict", Message: "c"}},
		{"a word about a file", fmt.Errorf("x: %w", &fs.PathError{Op: "open", Path: secret, Err: errors.New("it is odd")}), Failure{Code: "failed", Message: "it is odd"}},
		{"a word about two", &os.LinkError{Op: "rename", Old: secret, New: secret, Err: errors.New("it is odd")}, Failure{Code: "failed", Message: "it is odd"}},
		{"a time", context.DeadlineExceeded, Failure{Code: "timeout", Message: "the operation didn't end in time", Retryable: true}},
		{"a program", &exec.Error{Name: secret, Err: exec.ErrDot}, Failure{Code: "failed", Message: exec.ErrDot.Error()}},
		{"an address", &url.Error{Op: "Get", URL: "http://" + secret, Err: errors.New("no redirects")}, Failure{Code: "failed", Message: "no redirects"}},
		{"any", errors.New("first line\nsecond"), Failure{Code: "failed", Message: "first line"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := direct(t, of(giving(1, c.err))).Invoke(context.Background(), "toy.go", nil); err != error(c.want) {
				t.Fatalf("%#v, want %#v", err, c.want)
			}
		})
	}
}

func TestPanicsAreFailures(t *testing.T) {
	h := direct(t, of(Op("go", "Goes.", Flags{}, func(context.Context, any, struct{}) (string, error) { panic("secret") })))
	_, err := h.Invoke(context.Background(), "toy.go", nil)
	if failure, ok := err.(Failure); !ok || failure.Code != "unknown" || strings.Contains(failure.Message, "secret") {
		t.Fatalf("%v", err)
	}
	p := of(giving(1, nil))
	p.Open = func(context.Context, Capability) (any, error) { panic("secret") }
	if _, err := Direct(context.Background(), p, Capability{}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Fatalf("%v", err)
	}
	if _, err := h.Invoke(context.Background(), "toy.gone", nil); err == nil {
		t.Fatal("an operation that isn't there")
	}
}

// TestDoneWithoutAnswer: what was done, and whose outcome can't be sent, isn't told as a failure, unless it only read.
func TestDoneWithoutAnswer(t *testing.T) {
	long := func(context.Context, any, struct{}) (string, error) { return strings.Repeat("x", 100), nil }
	loop := func(context.Context, any, struct{}) (value.Value, error) { return &value.Closure{}, nil }
	p := of(Op("look", "Looks.", Flags{ReadOnly: true}, long), Op("go", "Goes.", Flags{}, long), Op("set", "Sets.", Flags{Idempotent: true}, long),
		Op("look_odd", "Looks.", Flags{ReadOnly: true}, loop), Op("go_odd", "Goes.", Flags{}, loop))
	m, err := p.Manifest()
	must.NoError(t, err)
	s := newServer(p, m, nil, 1<<20, func() {})
	opened, err := s.Open(t.Context(), &pluginv1.OpenRequest{Capability: &pluginv1.Capability{}})
	must.NoError(t, err)
	for name, want := range map[string]string{
		"look": "too_large: the outcome has more", "go": "unknown: it was done, but the outcome has more", "set": "unknown: it was done",
		"look_odd": "failed: the outcome can't be sent", "go_odd": "unknown: it was done, but the outcome can't be sent",
	} {
		answer, err := s.invoke(t.Context(), &wire.Request{Head: &pluginv1.InvokeRequest{Handle: opened.GetHandle(), Operation: "toy." + name, MaxOutcomeBytes: 50}})
		must.NoError(t, err)
		if got := answer.Failure.GetCode() + ": " + answer.Failure.GetMessage(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

type closer struct{ closed atomic.Int32 }

func (c *closer) Close() error { c.closed.Add(1); return nil }

func TestOpenGivesTheScope(t *testing.T) {
	p := of(Op("go", "Goes.", Flags{}, func(_ context.Context, s *closer, _ struct{}) (int, error) { return int(s.closed.Load()), nil }))
	scope := &closer{}
	p.Open = func(_ context.Context, c Capability) (any, error) {
		if c.Within != "here" {
			return nil, Fail("denied", "not there")
		}
		return scope, nil
	}
	if _, err := Direct(context.Background(), p, Capability{Within: "there"}); err != error(Failure{Code: "denied", Message: "not there"}) {
		t.Fatalf("%v", err)
	}
	h, err := Direct(context.Background(), p, Capability{Within: "here"})
	must.NoError(t, err)
	if v, err := h.Invoke(context.Background(), "toy.go", nil); err != nil || v != value.Value(value.NewInt(0)) {
		t.Fatal(v, err)
	}
	if first, second := h.Close(), h.Close(); first != nil || second != nil || scope.closed.Load() != 1 {
		t.Fatalf("closed %d times", scope.closed.Load())
	}
	p.Open = func(context.Context, Capability) (any, error) { return "a string", nil }
	if h, err = Direct(context.Background(), p, Capability{}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Invoke(context.Background(), "toy.go", nil); err == nil || !strings.Contains(err.Error(), "defect") {
		t.Fatalf("%v", err)
	}
}

func TestProgressIsHeard(t *testing.T) {
	h := direct(t, of(Op("go", "Goes.", Flags{}, func(ctx context.Context, _ any, _ struct{}) (int, error) {
		Progress(ctx, "%d", 1)
		return 0, nil
	})))
	var heard []string
	ctx := WithProgress(context.Background(), func(s string) { heard = append(heard, s) })
	if _, err := h.Invoke(ctx, "toy.go", nil); err != nil || len(heard) != 1 || heard[0] != "1" {
		t.Fatal(heard, err)
	}
	if _, err := h.Invoke(context.Background(), "toy.go", nil); err != nil || len(heard) != 1 {
		t.Fatal(heard, err)
	}
}

// A plugin that a person starts says what it is, and ends.
func TestServeByHand(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "serve")
	var out, complaint strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Fatalf("it ended with %v", err)
	}
	if out.Len() > 0 || !strings.Contains(complaint.String(), "is a plugin of mcp-pif") {
		t.Fatalf("%q, %q", out.String(), complaint.String())
	}
}

// Values that a plugin keeps as bytes come back as they were; what no value is, or
// too large, is a failure.
func TestEncodeAndDecode(t *testing.T) {
	half, _ := value.ParseDec("1.50")
	v := &value.Record{Fields: []value.Field{
		{Key: "big", Value: value.NewBig(new(big.Int).Lsh(big.NewInt(1), 200))}, {Key: "dec", Value: half},
		{Key: "pair", Value: &value.Pair{First: value.Unit{}, Second: value.FromSlice([]value.Value{value.Str("é")})}},
	}}
	b, err := Encode(v, 1000)
	must.NoError(t, err)
	back, err := Decode(b)
	must.NoError(t, err)
	if again, err := Encode(back, len(b)); err != nil || string(again) != string(b) {
		t.Errorf("%v came back as %v (%v)", v, back, err)
	}
	for code, refused := range map[string]value.Value{"too_large": value.Str(strings.Repeat("x", 1000)), "invalid": &value.Closure{}} {
		_, err := Encode(refused, 1000)
		if f, ok := errors.AsType[Failure](err); !ok || f.Code != code {
			t.Errorf("%s: %v", code, err)
		}
	}
	for _, bad := range [][]byte{b[:len(b)-1], []byte("\xff\xff"), nil} {
		if v, err := Decode(bad); err == nil {
			t.Errorf("%q is %v", bad, v)
		}
	}
}

func typed(t *testing.T, notation string) *check.Type {
	t.Helper()
	typ, err := check.ParseAnswer(notation)
	must.NoError(t, err)
	return typ
}

type inner struct {
	N    int64
	Text *string
	More []string `pif:"more,optional"`
}

// gives makes an operation whose handler gives a value of a Go type.
func gives[R any](r R, more ...OpOption) Operation {
	return Op("get", "Gets.", Flags{}, func(context.Context, any, struct{}) (R, error) { return r, nil }, more...)
}

// TestTypeOfResult: the manifest has the type of what a handler's Go type encodes
// to, and what comes is of it.
func TestTypeOfResult(t *testing.T) {
	text := "x"
	for _, c := range []struct {
		op   Operation
		want string
	}{
		{gives("x"), "string"},
		{gives(7), "int"},
		{gives(true), "bool"},
		{gives([]string{"a"}), "list[string]"},
		{gives([]string(nil)), "list[string]"},
		{gives(map[string]int{"a": 1}), "{*: int}"},
		{gives(&text), "string | unit"},
		{gives((*string)(nil)), "string | unit"},
		{gives([]*string{nil, &text}), "list[string | unit]"},
		{gives(inner{N: 1}), "{more?: list[string], n: int, text?: string}"},
		{gives([]inner{{Text: &text, More: []string{"b"}}}), "list[{more?: list[string], n: int, text?: string}]"},
		{gives(value.NewInt(3)), "int"},
		{gives(value.Bool(true)), "bool"},
		{gives(&value.Record{}), "unit | {*: data}"},
		{gives((*value.Record)(nil)), "unit | {*: data}"},
		{gives(&value.Pair{First: value.Str("a"), Second: value.Unit{}}), "unit | pair[data, data]"},
		{gives([]value.Value{value.Unit{}}), "list[data]"},
		{gives(struct{}{}), "{}"},
		{gives(value.Value(value.Str("x"))), ""},
		{gives(value.Value(value.Str("x")), Type("string | unit")), "string | unit"},
		{gives([]value.Value{value.NewInt(1)}, Type("list[num]")), "list[num]"},
		{gives(map[string]int{"a": 1}, Type("{a: int}")), "{a: int}"},
	} {
		p := of(c.op)
		m, err := p.Manifest()
		if err != nil {
			t.Fatalf("%s: %v", c.want, err)
		}
		typ := m.Operations[0].Type
		if typ == nil {
			if c.want != "" {
				t.Errorf("there is no type, expected %s", c.want)
			}
			continue
		}
		if typ.String() != c.want {
			t.Errorf("its type is %s, expected %s", typ, c.want)
		}
		h, err := Direct(t.Context(), p, Capability{})
		must.NoError(t, err)
		v, err := h.Invoke(t.Context(), "toy.get", &value.Record{})
		must.NoError(t, err)
		if why := typ.Misfit(v); why != "" {
			t.Errorf("%s: %s", c.want, why)
		}
	}
}

// TestTypeRefused: a notation that is none, or that isn't what the handler gives, is
// a mistake which is told when the plugin starts.
func TestTypeRefused(t *testing.T) {
	for notation, says := range map[string]string{
		"strin":                   "expected a type",
		"{b: int, a: int}":        "expected keys in their order",
		"(int) -> int":            "functions and continuations are no data",
		"any":                     "write data",
		"rec a. {next?: a}":       "write data",
		"list[?]":                 "write data",
		"nothing":                 "nothing is the type of no answer",
		"list[string":             `expected "]"`,
		"int":                     "its handler gives string",
		"string | int":            "its handler gives string",
		strings.Repeat("x", 3000): "at most 2000",
	} {
		_, err := of(gives("x", Type(notation))).Manifest()
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "operation get") {
			t.Errorf("%.40s: %v, expected %s", notation, err, says)
		}
	}
}

// Whose time is over while it waits for room is told that, though the room is refused at the same moment.
func TestRoomIsNoExcuse(t *testing.T) {
	over := errors.New("over")
	for _, c := range []struct {
		action string
		end    error
		want   string
	}{{"accept", nil, "<nil>"}, {"decline", nil, "no room for 131072 bytes"}, {"decline", over, "over"}} {
		ctx, end := context.WithCancelCause(context.Background())
		a := &asker{rooms: true, answer: map[uint32]chan Answer{}}
		a.send = func(context.Context, *pluginv1.InvokeStreamResponse) bool {
			if c.end != nil {
				end(c.end)
			}
			a.answer[0] <- Answer{Action: c.action}
			return true
		}
		err := Room(context.WithValue(ctx, askerKey{}, a), 1<<17)
		if !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		end(nil)
	}
}
