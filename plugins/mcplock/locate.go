package mcplock

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps"
)

// Locate finds a program that is to be added and hashes it: an executable, or a folder with
// the command that runs its files, which is copied beside the lock (see [lock.Lock.Locate]). The
// entry has its program and nothing else; undo takes the copy back, unless an entry names it by then.
func (l *Lock) Locate(path string, command []string) (_ *Server, undo func(), err error) {
	// The copy would make it for everybody to read.
	if err := os.MkdirAll(filepath.Dir(l.Path), 0o700); err != nil {
		return nil, func() {}, err
	}
	p, undo, err := l.File.Locate(path, command, l.folders)
	if err != nil {
		return nil, undo, err
	}
	s := &Server{Command: p.Command, Program: withSum(p.SHA256), Folder: p.Folder, Tree: withSum(p.Listing)}
	if p.File != "" {
		s.Command = append([]string{l.Absolute(p.File)}, p.Command...)
	}
	return s, undo, nil
}

// withSum writes a hash as the file has it.
func withSum(hex string) string {
	if hex == "" {
		return ""
	}
	return sumPrefix + hex
}

// Discard removes the copy of a server's folder, if it has one and no server of the file uses it.
func (l *Lock) Discard(s *Server) { l.File.Discard(s.Folder, l.folders) }

// folders is the copies that the file names now.
func (l *Lock) folders() (all []string, err error) {
	now, err := ReadOrNew(l.Path)
	if err == nil {
		for _, s := range now.Servers {
			all = append(all, s.Folder)
		}
	}
	return all, err
}

// Inherited is what the entry names without a value, sorted: each is a secret that is kept for
// the server, or a variable of mcp-pif's own environment.
type Inherited struct{ Env, Headers []string }

// Policy returns what the operator says of the server in all: the entry has what it needs, and
// a policy file may say otherwise, member by member. Names of the entry that neither gives a
// value are inherited.
func (s *Server) Policy(said *caps.ServerPolicy) (all *caps.ServerPolicy, inherit Inherited) {
	p := caps.ServerPolicy{}
	if said != nil {
		p = *said
	}
	p.Dir, p.Elicit = cmp.Or(p.Dir, s.Dir), p.Elicit || s.Elicit
	for _, list := range []struct {
		to   *[]string
		from []string
	}{{&p.Read, s.Read}, {&p.Write, s.Write}, {(*[]string)(&p.Network), s.Network}} {
		if *list.to == nil {
			*list.to = list.from
		}
	}
	p.Env, inherit.Env = valued(p.Env, s.Env)
	p.Headers, inherit.Headers = valued(p.Headers, s.Headers)
	return &p, inherit
}

// valued adds NAME=VALUE to values that don't have the name, and returns those without one.
func valued(said map[string]caps.ServerValue, entry []string) (all map[string]caps.ServerValue, without []string) {
	all = maps.Clone(said)
	for _, text := range entry {
		name, value, hasValue := strings.Cut(text, "=")
		if _, isSaid := all[name]; isSaid {
			continue
		}
		if !hasValue {
			without = append(without, name)
			continue
		}
		if all == nil {
			all = map[string]caps.ServerValue{}
		}
		all[name] = caps.ServerValue{Text: value}
	}
	slices.Sort(without)
	return all, slices.Compact(without)
}
