// Package plugintest holds a capability plugin against the contract, as a test of
// its author's: [Run] takes the plugin as a value, in the test's own process, with
// the race detector if the test has it; [Binary] takes a program, in any language,
// and starts it as a server would. Both make the checks of `mcp-pif plugin test`,
// a subtest each, in a few seconds and with loopback as the only network.
//
//	func TestConforms(t *testing.T) {
//		plugintest.Run(t, Plugin(), plugintest.Fixtures{})
//	}
//
// The checks don't know what a plugin is for; see package conform for what they
// look at. They are beside an author's own tests, which [sdk.Direct] makes short.
package plugintest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-pif/mcp-pif/core/value"
	"github.com/mcp-pif/mcp-pif/plugins/plugintest/conform"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// Fixtures is what can't be guessed of a plugin: a scope that it takes, calls that
// succeed, calls that take long; see [conform.Fixtures].
type Fixtures = conform.Fixtures

// A Call is a request of an operation, of the fixtures; see [conform.Call].
type Call = conform.Call

// Arguments makes the arguments of a [Call] from their names and values, which are
// those that handlers take: strings, integers, booleans, lists and records of them,
// and [value.Value]. It panics on others: a mistake of the test's.
func Arguments(namesAndValues ...any) value.Value { return conform.Arguments(namesAndValues...) }

// Run makes the checks of a plugin in this process. Those that are of processes
// are skipped.
func Run(t *testing.T, p sdk.Plugin, f Fixtures) {
	t.Helper()
	report(t, conform.Options{Plugin: &p, Fixtures: f})
}

// Binary makes the checks of a plugin's program, given with its arguments.
func Binary(t *testing.T, f Fixtures, program string, args ...string) {
	t.Helper()
	path, err := filepath.Abs(program)
	if err != nil {
		t.Fatal(err)
	}
	o := conform.Options{Fixtures: f}
	o.Source.Path, o.Source.Args = path, args
	report(t, o)
}

// report makes a subtest of each check.
func report(t *testing.T, o conform.Options) {
	t.Helper()
	// Go tests run beside each other: a slow answer isn't a wrong one.
	o.Patience, o.Grace = 2*time.Minute, 2*time.Minute
	r, err := conform.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		t.Run(c.Name, func(t *testing.T) {
			switch c.Status {
			case conform.Failed:
				for _, e := range c.Evidence {
					t.Error(e)
				}
			case conform.Skipped:
				t.Skip(c.Detail)
			}
		})
	}
}

// Types gives a function that fails a test where what an operation gave isn't of the
// type that the plugin's manifest says, for tests that call it by [sdk.Direct]. A
// host gives no program such an answer.
func Types(p sdk.Plugin) func(t testing.TB, operation string, v value.Value) {
	m, err := p.Manifest()
	return func(t testing.TB, operation string, v value.Value) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		o, ok := m.Operation(operation)
		if !ok {
			t.Fatalf("there is no operation %s", operation)
		}
		if o.Type == nil {
			return
		}
		if why := o.Type.Misfit(v); why != "" {
			t.Errorf("%s gave what isn't of its type %s: %s", operation, o.Type, why)
		}
	}
}
