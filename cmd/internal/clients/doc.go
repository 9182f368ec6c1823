// Package clients lets clients that others wrote use the whole server.
//
// It contains tests only. Each client goes on one tour (tour_test.go) against the
// built binary, over stdio and over HTTP, in the older protocol and in the newer one
// where it speaks it: it makes a tool, runs it by name and directly, is refused an
// effect, is granted one, hears that the list changed, reads the journal, mends a
// call by what the answer says, calls a tool of several parameters, reads resources,
// gets a prompt, has an argument completed and is told that a tool changed which it
// watches (around_test.go). The clients are
//
//   - @modelcontextprotocol/sdk, in TypeScript, of the older protocol;
//   - @modelcontextprotocol/client, its successor, of both;
//   - github.com/mark3labs/mcp-go, of both, in a module of its own so that it never
//     becomes a dependency of ours;
//   - @modelcontextprotocol/inspector, as a command, of both: it judges the tools'
//     schemas, too, and loads the server.
//
// The libraries are driven by a program for each language (drive.mjs, mcpgo), which is
// told on its standard input what to do, a line of JSON at a time, and answers so.
// `npm ci --ignore-scripts` in this folder installs what is in Node.js; without it
// those tests are skipped, or fail where PIF_REQUIRE_NODE=1, as in .ci/run.
//
// noop_test.go times a tool that does nothing, here and on the SDK's own server.
package clients
