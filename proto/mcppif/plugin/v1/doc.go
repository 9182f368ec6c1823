// Package pluginv1 is the contract between a host and a capability plugin, first
// major version: the Go code generated from plugin.proto, which is its
// documentation too.
//
// Only packages wire, sdk and host of plugins use it; authors of plugins in Go
// import plugins/sdk. Authors in other languages generate from plugin.proto.
// See proto/README.md for the order of calls, the limits, and what may change.
package pluginv1

//go:generate go run ../../../internal/gen mcppif/plugin/v1/plugin.proto
