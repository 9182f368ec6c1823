// Package proc is the plugin of the kind proc: programs that go on between calls,
// such as an interpreter of Python that a model types into. It exports [Plugin],
// and [Keeper], which the program that serves the plugin calls first.
//
// A capability names what the operator mapped, proc:python3: its command line,
// folder, environment and sandbox. A program chooses the name and types; it never
// chooses an argument, and there is no shell. What it starts is a session, named
// by 128 random bits, which a tool returns as data and takes again. Whoever holds
// the grant and knows the name may use it; nobody else, and no name comes twice.
//
// Each session has a keeper (package keeper), which starts the command in a sandbox of
// its own and ends with it whatever that started. Output is read
// as it comes and the last of it kept (output.go), so that nothing between two reads
// is lost unless the buffer overflowed, and then it is said how much.
//
// Files: scope.go is an open capability; session.go a session's life, output.go what
// it writes, wait.go when a read is over; start.go, send.go, read.go, signal.go and
// status.go the operations.
package proc

import (
	"context"

	"github.com/mcp-pif/mcp-pif/plugins/internal/keeper"
	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// Plugin returns the plugin of the kind proc. Its sessions are those of this value
// alone.
func Plugin() sdk.Plugin {
	all := newSessions()
	return sdk.Plugin{
		Kind:    "proc",
		Version: "1.0.0",
		Doc:     "drives programs that the operator named, such as python3, in sessions that go on between calls",
		Scope:   sdk.Exact,
		Open:    func(_ context.Context, c sdk.Capability) (any, error) { return all.open(c), nil },
		Operations: []sdk.Operation{
			sdk.Op("start", "starts the program and gives the session's name, which the other operations take", acts, start),
			sdk.Op("send", "types text into the session; a line needs its line feed", acts, send),
			sdk.Op("read", "gives what the session wrote since the last read, once it wrote a pattern or a prompt, is silent, has ended, or the time is over; without a condition that is a prompt", takes, read, sdk.Result(readingWords)),
			sdk.Op("wait_for", "waits as proc.read does, and takes nothing", looks, waitFor),
			sdk.Op("status", "tells whether a session runs, and how it ended", looks, status, sdk.Result(stateWords)),
			sdk.Op("list", "lists the sessions of the capability", looks, list),
			sdk.Op("signal", "sends a signal to the session's programs; INT interrupts what an interpreter does", acts, signalTo),
			sdk.Op("stop", "ends a session with everything that it started, and tells how it ended", ends, stop, sdk.Result(stateWords)),
		},
		Privileges: []string{"command", "processes"},
	}
}

// What the operations can do at worst. What is typed into an interpreter may do
// whatever the operator's mapping lets it: destroy files, and reach the network.
var (
	acts  = sdk.Flags{Destructive: true, OpenWorld: true}
	takes = sdk.Flags{}
	looks = sdk.Flags{ReadOnly: true}
	ends  = sdk.Flags{Destructive: true, Idempotent: true, OpenWorld: true}
)

// Keeper is a session's keeper where this process was started as one: it doesn't
// return then. The program that serves the plugin calls it first thing, after the
// sandbox's launcher, which it needs too.
func Keeper() { keeper.Main() }
