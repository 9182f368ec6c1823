// Package must ends a test at an error that it didn't expect, in one line. Only tests
// import it; what a test is about it compares itself, with words.
package must

import (
	"os"
	"runtime/debug"
	"slices"

	"github.com/mcp-pif/mcp-pif/core/fault"
)

// Tests make much garbage beside little that is kept: the collector runs as seldom as in
// the server, which saves up to a third of their time, unless GOGC says how often.
func init() {
	if percent := debug.SetGCPercent(400); percent != 100 {
		debug.SetGCPercent(percent)
	}
}

// T is a test: a [testing.TB], or what package rapid hands to a property.
type T interface {
	Helper()
	Fatal(args ...any)
}

// NoError ends the test if there is an error.
func NoError(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Succeed is [NoError] of a call that returns something else, too: must.Succeed(t)(f()).
func Succeed(t T) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		NoError(t, err)
	}
}

// NoFault is [NoError] of what packages of core return.
func NoFault(t T, f *fault.Fault) {
	t.Helper()
	if f != nil {
		t.Fatal(f)
	}
}

// Value returns what has no error, and panics otherwise: for an expression that can't fail.
func Value[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// Full returns how many a test makes: few, or all with PIF_FULL=1, as for a release.
func Full(few, all int) int {
	if os.Getenv("PIF_FULL") != "" {
		return all
	}
	return few
}

// Quick reports whether neither PIF_CI=1, as .ci/run sets it, nor PIF_FULL=1 asks for more
// than a developer waits for.
func Quick() bool { return os.Getenv("PIF_CI")+os.Getenv("PIF_FULL") == "" }

// Drawn returns how many programs, or other things, a test makes: those of [Full], and a
// quarter of few where it is to be [Quick].
func Drawn(few, all int) int {
	if Quick() {
		return few / 4
	}
	return Full(few, all)
}

// SkipQuick skips a test that takes long, mostly in programs that aren't ours, where it is to be [Quick].
func SkipQuick(t interface{ Skip(args ...any) }) {
	if Quick() {
		t.Skip("it takes long: PIF_CI=1 has it run, as .ci/run does")
	}
}

// SkipRacing skips a test in which nothing runs at once and which would take long with the race detector.
func SkipRacing(t interface{ Skip(args ...any) }) {
	if Racing() {
		t.Skip("nothing here runs at once")
	}
}

// Racing reports whether the race detector is on: much is some ten times slower then, and
// memory isn't what it is.
func Racing() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
