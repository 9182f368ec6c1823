// Package mcplock is the lock file of MCP servers: which servers the operator added, which
// program or address each is, and how each of their tools was defined when it was accepted.
//
// The kinds, operations and types of servers come from this file ([Lock.Manifest]) and never
// from the wire: what a server says later is held to it ([Compare]). A changed tool is held, a
// new or renamed one doesn't exist, and the others go on. The file grants nothing.
//
// What a server claims of its tools (read-only, idempotent, …) counts as the worst case until
// the operator accepted it. All of its words are a stranger's: they are kept to be quoted.
//
// The file is JSON in one layout, as the plugin lock: what is written is what is read, key for
// key. A program is hashed, and started from what was hashed, by package lock.
//
// Files: lock.go reads and writes, layout.go holds what is read to its layout; tool.go reads the definition of a tool, gives it a word
// and compares; canonical.go is the text that is hashed; manifest.go makes kinds of servers.
package mcplock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/mcp-pif/mcp-pif/plugins/lock"
)

// DefaultName is the name of the file in the user's state directory.
const DefaultName = "mcp.lock.json"

// format is the file's first line of content.
const format = "mcp-pif servers 1"

// The bounds of a file.
const (
	maxFile    = 32 << 20
	maxServers = 100
	maxTools   = 2000
	maxText    = 4096
)

// A Lock is the content of a file. It isn't safe for concurrent use.
type Lock struct {
	lock.File
	Servers map[string]*Server
}

// A Server is one upstream server. It has a command or a URL.
type Server struct {
	// Command is the program, absolute, or a file in Folder, and its arguments; those that name
	// a file of the folder stand for it.
	Command []string `json:"command,omitempty"`
	Program string   `json:"program,omitempty"` // "sha256:…" of the program's file
	Folder  string   `json:"folder,omitempty"`  // a copy beside the lock, relative to its folder
	Tree    string   `json:"tree,omitempty"`    // "sha256:…" of the folder's listing
	Pinned  string   `json:"pinned,omitempty"`  // "npm:NAME@VERSION" and the like
	// Unpinned is set if the command fetches what it runs, so that nothing of that is hashed.
	Unpinned bool `json:"unpinned,omitempty"`
	// Unconfined is set if the sandbox doesn't hold what the command starts.
	Unconfined   bool             `json:"unconfined,omitempty"`
	URL          string           `json:"url,omitempty"`
	Protocol     string           `json:"protocol"`
	Info         Info             `json:"server"`
	Instructions string           `json:"instructions,omitempty"` // "sha256:…"
	Env          []string         `json:"env,omitempty"`          // variables that it needs: NAME, a secret kept for it or from our environment, or NAME=VALUE
	Headers      []string         `json:"headers,omitempty"`      // of each request to its URL: NAME, a secret that is kept for it, or NAME=VALUE
	Network      []string         `json:"network,omitempty"`      // origins that it needs, or "any"
	Dir          string           `json:"dir,omitempty"`          // where it runs, absolute
	Read         []string         `json:"read,omitempty"`         // paths that it needs to read, absolute
	Write        []string         `json:"write,omitempty"`        // paths that it needs to write, absolute
	Elicit       bool             `json:"elicit,omitempty"`       // it may ask the user, and lists what it has for clients that may be asked
	Added        string           `json:"added"`                  // date
	Tools        map[string]*Tool `json:"tools"`                  // by word
}

// Info is the name and version that a server gave itself.
type Info struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// content is the file as JSON.
type content struct {
	Format  string             `json:"format"`
	Servers map[string]*Server `json:"servers"`
}

// Read reads a file. The error is [fs.ErrNotExist] if there is none.
func Read(path string) (*Lock, error) {
	l, err := at(path)
	if err != nil {
		return nil, err
	}
	text, err := l.Load(maxFile)
	if err == nil {
		l.Servers, err = parse(text)
	}
	if err != nil {
		return nil, fmt.Errorf("lock of MCP servers %s: %w", path, err)
	}
	return l, nil
}

// ReadOrNew is Read, or an empty lock if there is no file.
func ReadOrNew(path string) (*Lock, error) {
	l, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return at(path)
	}
	return l, err
}

// at returns an empty lock at a path.
func at(path string) (*Lock, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// The links of its folder are resolved if there is one.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(dir, filepath.Base(abs))
	}
	return &Lock{File: lock.File{Path: abs}, Servers: map[string]*Server{}}, nil
}

// parse reads a file's text and holds it to the one layout. The schemas, which are most of it,
// are cut out and not decoded.
func parse(text []byte) (map[string]*Server, error) {
	text = bytes.TrimSpace(text)
	rest, schemas, isLaidOut := cutSchemas(text)
	if !isLaidOut {
		rest = text
	}
	if err := statefile.UniqueKeys(rest, false, fileLevels); err != nil {
		return nil, errors.New(lock.Shown(err.Error(), 300))
	}
	var c content
	if err := lock.Decode(rest, &c, &c.Format, format); err != nil {
		return nil, err
	}
	if err := checkServers(c.Servers); err != nil {
		return nil, err
	}
	want, err := encode(c.Servers)
	if err != nil {
		return nil, err
	}
	if !isLaidOut || !bytes.Equal(rest, bytes.TrimSpace(want)) {
		return nil, errors.New("it isn't as mcp-pif writes it: every key once, in its order; write it with `mcp-pif mcp add`, `accept` and `upgrade` rather than by hand")
	}
	// The keys of maps are sorted in it, so that the schemas come in this order.
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		tools := c.Servers[name].Tools
		for _, word := range slices.Sorted(maps.Keys(tools)) {
			for _, schema := range []*json.RawMessage{&tools[word].Input, &tools[word].Output} {
				switch {
				case *schema == nil:
				case string(*schema) != noSchema:
					return nil, errors.New("a schema isn't an object")
				default:
					*schema, schemas = schemas[0], schemas[1:]
				}
			}
		}
	}
	return c.Servers, nil
}

// encode lays servers out.
func encode(servers map[string]*Server) ([]byte, error) {
	return statefile.EncodeJSON(content{format, servers})
}

// Write replaces the file as a whole, readable by its owner only, if it still is as it was
// read and has the copies of the servers that come in, of each of which take is called, while no
// other process writes it.
func (l *Lock) Write(take func(name string, s *Server) error, in ...string) error {
	var programs []lock.Program
	for _, name := range in {
		programs = append(programs, l.Servers[name].program())
	}
	return l.Replace(maxFile, 0o600, programs, func() ([]byte, error) {
		for _, name := range in {
			if err := take(name, l.Servers[name]); err != nil {
				return nil, err
			}
		}
		if err := checkServers(l.Servers); err != nil { // without the secrets that were taken before
			return nil, err
		}
		return encode(l.Servers)
	})
}

var serverName = lazyregexp.New(`^[a-z][a-z0-9_]{0,31}$`)

// CheckName refuses the name of a server that can't be a kind.
func CheckName(name string) error {
	if !serverName.MatchString(name) {
		return errors.New("a server's name is lower-case letters, digits and underscores, a letter first, at most 32")
	}
	if slices.Contains(lock.Reserved, name) {
		return fmt.Errorf("the name %s is reserved for what ships with mcp-pif", name)
	}
	return nil
}

// checkServers refuses servers that `mcp add` doesn't write.
func checkServers(servers map[string]*Server) error {
	if servers == nil {
		return errors.New("it has no servers")
	}
	if len(servers) > maxServers {
		return fmt.Errorf("it has %d servers, at most %d", len(servers), maxServers)
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		err := CheckName(name)
		if err == nil {
			err = servers[name].Check()
		}
		if err != nil {
			return fmt.Errorf("the server %s: %w", lock.Shown(name, 60), err)
		}
	}
	return nil
}

// IsOther reports whether a server by this name of its own isn't the one that was added: who
// answers at a URL may be somebody else one day. Its version may change.
func (s *Server) IsOther(name string) bool {
	return s.URL != "" && s.Info.Name != "" && name != s.Info.Name
}

var sum = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)

// isText reports whether a text is short and on one line.
func isText(text string) bool {
	return len(text) <= maxText && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// Check refuses an entry that `mcp add` doesn't write.
func (s *Server) Check() error {
	if s == nil {
		return errors.New("it is null")
	}
	switch isSum := sum.MatchString; {
	case (len(s.Command) > 0) == (s.URL != ""):
		return errors.New("it has a command or a URL, and not both")
	case s.URL != "" && (s.Program != "" || s.Folder != "" || s.Tree != ""):
		return errors.New("a URL has no program")
	case s.Program != "" && !isSum(s.Program) || s.Tree != "" && !isSum(s.Tree) || s.Instructions != "" && !isSum(s.Instructions):
		return errors.New("a hash is sha256: and 64 digits")
	case len(s.Headers) > 0 && s.URL == "":
		return errors.New("a program has no headers")
	case (s.Folder == "") != (s.Tree == ""):
		return errors.New("a folder has a hash, and a hash a folder")
	case s.URL == "" && s.Program == "" && s.Tree == "":
		return errors.New("the SHA-256 of its program is missing")
	case len(s.Tools) > maxTools:
		return fmt.Errorf("it has %d tools, at most %d", len(s.Tools), maxTools)
	case s.Tools == nil:
		return errors.New("it has no tools")
	}
	for _, text := range slices.Concat(s.Env, s.Headers) {
		if !isText(text) { // which may be a secret
			name, _, _ := strings.Cut(text, "=")
			return fmt.Errorf("the value of %s has a line break or more than %d bytes", lock.Shown(name, 80), maxText)
		}
	}
	for _, text := range slices.Concat(s.Command, s.Network, s.Read, s.Write, []string{s.URL, s.Folder, s.Dir}) {
		if !isText(text) {
			return fmt.Errorf("the text %s", lock.Shown(text, 80))
		}
	}
	names := map[string]string{}
	for _, word := range slices.Sorted(maps.Keys(s.Tools)) {
		t := s.Tools[word]
		switch {
		case !isWord(word):
			return fmt.Errorf("the word %s", lock.Shown(word, 80))
		case t == nil || t.Tool == "" || !sum.MatchString(t.Hash) || len(t.Input) == 0:
			return fmt.Errorf("the tool %s lacks its name, its hash or its schema", word)
		case names[t.Tool] != "":
			return fmt.Errorf("the words %s and %s are one tool", names[t.Tool], word)
		}
		names[t.Tool] = word
	}
	return nil
}
