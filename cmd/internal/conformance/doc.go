// Package conformance runs the official conformance suite of MCP on our server.
//
// It contains tests only. The suite speaks to fixtures by fixed names: tools,
// resources and prompts that answer as its authors wrote down. They are added here to
// our own server (package mcpserver, by [mcpserver.Extra]) behind our own transports,
// and never to the product. There are two runs of the suite, since there are two eras
// of the protocol, on one URL of package streamable; and two more through a bridge that
// gives a package stdio server an URL, because the suite knows no other way in.
//
// Nothing may fail. What is about HTTP itself isn't judged through the bridge.
//
// The suite is in Node.js: `npm ci --ignore-scripts` in this folder installs it, and a
// Node.js that is new enough for it on linux/amd64. Without it the tests are skipped,
// or fail where PIF_REQUIRE_NODE=1, as in .ci/run.
//
// suite_test.go runs the suite, bridge_test.go is the bridge, tools_test.go,
// rounds_test.go and world_test.go are the fixtures.
package conformance
