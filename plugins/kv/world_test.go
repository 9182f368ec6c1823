package kv

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// TestMain lets the test binary be a process that puts until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		if err := putUntilKilled(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A holder is an open capability.
type holder struct {
	testing.TB
	*sdk.Handle
}

// hold opens a capability of a pattern on the store in a folder.
func hold(t testing.TB, dir, pattern string, more ...func(*sdk.Capability)) holder {
	t.Helper()
	c := sdk.Capability{Text: "kv:" + pattern, Within: pattern, State: dir}
	for _, m := range more {
		m(&c)
	}
	h, err := sdk.Direct(t.Context(), Plugin(), c)
	must.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return holder{t, h}
}

func verbs(names ...string) func(*sdk.Capability) {
	return func(c *sdk.Capability) { c.Verbs = names }
}

func option(name, word string) func(*sdk.Capability) {
	return func(c *sdk.Capability) {
		if c.Options == nil {
			c.Options = map[string]string{}
		}
		c.Options[name] = word
	}
}

func denies(d ...sdk.Deny) func(*sdk.Capability) {
	return func(c *sdk.Capability) { c.Denies = d }
}

var ofType = plugintest.Types(Plugin())

// try makes a request. Its context isn't the test's, which ends before cleaning up.
func (h holder) try(operation string, args ...any) (value.Value, error) {
	v, err := h.Invoke(context.Background(), "kv."+operation, plugintest.Arguments(args...))
	if err == nil {
		ofType(h, "kv."+operation, v)
	}
	return v, err
}

// does makes a request that has to succeed.
func (h holder) does(operation string, args ...any) value.Value {
	h.Helper()
	v, err := h.try(operation, args...)
	if err != nil {
		h.Fatalf("kv.%s %v: %v", operation, args, err)
	}
	return v
}

// fails makes a request that has to fail with a code, and gives the failure.
func (h holder) fails(code, operation string, args ...any) sdk.Failure {
	h.Helper()
	v, err := h.try(operation, args...)
	f, ok := errors.AsType[sdk.Failure](err)
	if !ok || f.Code != code {
		h.Fatalf("kv.%s %.200v: %v, %v; a failure %s was expected", operation, args, v, err, code)
	}
	return f
}

// member is a member of a record, nil where there is none.
func member(v value.Value, name string) value.Value {
	r, _ := v.(*value.Record)
	for i := 0; r != nil && i < len(r.Fields); i++ {
		if r.Fields[i].Key == name {
			return r.Fields[i].Value
		}
	}
	return nil
}

func number(t testing.TB, v value.Value) int64 {
	t.Helper()
	i, ok := v.(value.Int)
	n, fits := i.Int64()
	if !ok || !fits {
		t.Fatalf("%v is no integer of 64 bits", v)
	}
	return n
}

// keys lists all keys that a capability has.
func (h holder) keys(args ...any) []string {
	h.Helper()
	items, ok := value.Slice(h.does("list", args...))
	if !ok {
		h.Fatal("no list")
	}
	keys := []string{}
	for _, item := range items {
		keys = append(keys, string(member(item, "key").(value.Str)))
	}
	return keys
}

// same compares values to the last digit.
func same(t testing.TB, a, b value.Value) bool {
	t.Helper()
	x, err := sdk.Encode(a, 1<<30)
	must.NoError(t, err)
	y, err := sdk.Encode(b, 1<<30)
	must.NoError(t, err)
	return string(x) == string(y)
}

func bigInt(s string) value.Int {
	b, ok := new(big.Int).SetString(s, 10)
	if !ok {
		panic(s)
	}
	return value.NewBig(b)
}

func decimal(s string) value.Dec {
	d, ok := value.ParseDec(s)
	if !ok {
		panic(s)
	}
	return d
}
