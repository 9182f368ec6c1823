package sdk

import (
	"context"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/check"
	"github.com/mcp-pif/mcp-pif/core/value"
)

func typed(t *testing.T, notation string) *check.Type {
	t.Helper()
	typ, err := check.ParseAnswer(notation)
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		v, err := h.Invoke(t.Context(), "toy.get", &value.Record{})
		if err != nil {
			t.Fatal(err)
		}
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
