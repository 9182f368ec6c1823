// Package kv is the plugin of the kind kv: values that last, by keys. It exports
// [Plugin]; kv.go has the table of operations, key.go what a key is, scope.go a
// capability, store.go the file, write.go and list.go the operations.
//
// A key is names between slashes, "notes/2026/todo", whole and the same for every
// tool: a capability narrows which keys there are, and renames none. Keys are
// compared byte by byte, as the host compares scopes: case counts, and a letter
// with an accent isn't the letter and an accent. A key that is no names, or can't
// be read, is refused (see checkKey).
//
// Values are the language's, exactly; functions are refused. Each value has a
// version: a random number, another one after every change, so that none comes
// back with a key that was deleted, and none tells how much others write. kv.cas
// changes a key only if it is as the program last saw it, and is atomic among all
// servers and processes of the profile.
//
// All keys of a profile are in one SQLite file in the state directory (the
// privilege "state"), since capabilities overlap: kv:notes/** and kv:notes/a/**
// are views of the same keys. What is answered is on the disk. What keeps
// prefixes apart is therefore the host's check and, again, this plugin's, not the
// operating system; profiles are folders of their own.
//
// The first name of a key is a space: notes. A space has at most 64 MiB and
// 100,000 keys, or what its grant says with the options size and keys; all spaces
// together 1 GiB and a million keys. A value has at most 1 MiB, a key 512 bytes.
// That a space is full can be noticed by every tool that writes to it.
package kv

import (
	"context"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// Plugin returns the plugin of the kind kv.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Kind:    "kv",
		Version: "1.0.0",
		Doc:     "keeps values by keys, such as notes/todo, beyond the end of the server",
		Scope:   sdk.Segments,
		Options: map[string][]string{"size": words(sizes), "keys": words(counts)},
		Open: func(_ context.Context, c sdk.Capability) (any, error) {
			return open(c)
		},
		Operations: []sdk.Operation{
			sdk.Op("get", "gives the value of a key", flags["get"], get),
			sdk.Op("entry", "gives the value of a key with its version, which kv.cas takes; version 0 and no value where there is none", flags["entry"], entry),
			sdk.Op("put", "makes a key have a value", flags["put"], put),
			sdk.Op("cas", "makes a key have a value if it is as the program last saw it: with that version (0: there is none), or with the value expect", flags["cas"], cas),
			sdk.Op("delete", "takes a key away, if it is there", flags["delete"], remove),
			sdk.Op("list", "lists keys with their versions and sizes, sorted by their bytes", flags["list"], list),
		},
		Privileges: []string{"state"},
	}
}

// flags is what the operations can do at worst, by verb: there is one for each.
var flags = map[string]sdk.Flags{
	"get":   {ReadOnly: true, Idempotent: true},
	"entry": {ReadOnly: true, Idempotent: true},
	"list":  {ReadOnly: true, Idempotent: true},
	// A second put of the same value, or delete, changes nothing, not even the
	// version.
	"put":    {Destructive: true, Idempotent: true},
	"delete": {Destructive: true, Idempotent: true},
	"cas":    {Destructive: true},
}
