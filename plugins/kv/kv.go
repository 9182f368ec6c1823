// Package kv is the plugin of the kind kv: values that last, by keys. It exports
// [Plugin]; kv.go has the table of operations and what a capability is, key.go what a
// key is, store.go the file, write.go and list.go the operations.
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
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcp-pif/mcp-pif/plugins/sdk"
)

// Plugin returns the plugin of the kind kv.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Kind:    "kv",
		Version: "1.0.0",
		Doc:     "keeps values by keys, such as notes/todo, across restarts of the server",
		Scope:   sdk.Segments,
		Options: map[string][]string{"size": words(sizes), "keys": words(counts)},
		Open: func(_ context.Context, c sdk.Capability) (any, error) {
			return open(c)
		},
		Operations: []sdk.Operation{
			sdk.Op("get", "gives the value of a key", flags["get"], get),
			sdk.Op("entry", "gives the value of a key with its version, which kv.cas takes; version 0 and no value where there is none", flags["entry"], entry),
			sdk.Op("put", "makes a key have a value", flags["put"], put, sdk.Once("create", "only")),
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

// The limits where a capability says nothing, and those that none raises.
const (
	defaultSize   = 64 << 20 // bytes of a space's keys and values
	defaultCount  = 100_000  // keys of a space
	maxValueBytes = 1 << 20  // bytes of a value
	maxSpaceBytes = 1 << 30  // bytes of all spaces
	maxKeys       = 1_000_000
)

// The values of the options size and keys.
var (
	sizes  = []choice{{"64KiB", 64 << 10}, {"1MiB", 1 << 20}, {"4MiB", 4 << 20}, {"16MiB", 16 << 20}, {"64MiB", 64 << 20}, {"256MiB", 256 << 20}}
	counts = []choice{{"10", 10}, {"100", 100}, {"1000", 1000}, {"10000", 10_000}, {"100000", 100_000}, {"1000000", 1_000_000}}
)

// A choice is a value of an option.
type choice struct {
	word string
	n    int64
}

func words(choices []choice) []string {
	all := make([]string, len(choices))
	for i, c := range choices {
		all[i] = c.word
	}
	return all
}

// chosen returns what an option says, or otherwise.
func chosen(options map[string]string, name string, choices []choice, otherwise int64) (int64, error) {
	word, ok := options[name]
	if !ok {
		return otherwise, nil
	}
	i := slices.IndexFunc(choices, func(c choice) bool { return c.word == word })
	if i < 0 {
		return 0, sdk.Fail("invalid", "the option %s is one of %s", name, strings.Join(words(choices), ", "))
	}
	return choices[i].n, nil
}

// A scope is an open capability. It may be used by several goroutines; Close
// waits for them.
type scope struct {
	mu       sync.RWMutex // held for reading by each operation
	closed   bool
	store    *store
	release  func() error
	pattern  string
	readOnly bool
	verbs    []string // nil: all
	denies   []sdk.Deny
	value    int   // bytes of a value
	size     int64 // bytes of a space
	count    int64 // keys of a space
}

// open makes a scope of a capability.
func open(c sdk.Capability) (*scope, error) {
	if c.State == "" {
		return nil, sdk.Fail("failed", "there is no folder to keep anything in")
	}
	s := &scope{pattern: c.Within, verbs: c.Verbs, denies: c.Denies, value: maxValueBytes}
	if c.Max > 0 {
		s.value = int(min(c.Max, maxValueBytes))
	}
	_, s.readOnly = c.Options["ro"]
	var err error
	if s.size, err = chosen(c.Options, "size", sizes, defaultSize); err != nil {
		return nil, err
	}
	if s.count, err = chosen(c.Options, "keys", counts, defaultCount); err != nil {
		return nil, err
	}
	if s.store, s.release, err = shared.take(c.State); err != nil {
		return nil, because(err)
	}
	return s, nil
}

// Close lets go of the store after the operations under way.
func (s *scope) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.release()
}

// begin starts an operation, if the capability has its verb. The caller calls
// s.mu.RUnlock at its end.
func (s *scope) begin(verb string) error {
	if s.verbs != nil && !slices.Contains(s.verbs, verb) || s.readOnly && !flags[verb].ReadOnly {
		return sdk.Fail("denied", "the capability doesn't permit %s", verb).
			WithHint("Only the operator can change that; don't try again.")
	}
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return because(errClosed)
	}
	return nil
}

// on does what begin does for an operation on a key, which must lie within the
// capability.
func (s *scope) on(verb, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if !s.has(verb, key) {
		return outside(key, s.pattern)
	}
	return s.begin(verb)
}

// outside returns the failure of a key, or the beginning of keys, that isn't within.
func outside(key, pattern string) error {
	return sdk.Fail("denied", "%s lies outside the capability, which is %s", quote(key), strconv.Quote(pattern)).
		WithHint("Keys are whole: they begin as the capability does.")
}

// has reports whether a key lies within the capability for a verb.
func (s *scope) has(verb, key string) bool {
	return within(s.pattern, key) && !slices.ContainsFunc(s.denies, func(d sdk.Deny) bool {
		return (len(d.Verbs) == 0 || slices.Contains(d.Verbs, verb)) && within(d.Within, key)
	})
}
