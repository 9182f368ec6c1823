package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
)

// remembered is how many entries a history keeps.
const remembered = 1000

// history is what was typed into the repl before, in this session and earlier
// ones. An entry of several lines is kept as one.
type history struct {
	entries []string // the oldest first
	path    string   // "" keeps nothing beyond the session
}

// openHistory reads the history of earlier sessions; where there is none, or it
// can't be read, it starts empty.
func openHistory() *history {
	dir, err := app.StateDir()
	if err != nil {
		return &history{}
	}
	h := &history{path: filepath.Join(dir, "history")}
	text, err := os.ReadFile(h.path)
	if err != nil || len(text) == 0 {
		return h
	}
	h.entries = strings.Split(strings.TrimSpace(string(text)), "\n")
	if more := len(h.entries) - remembered; more > 0 {
		h.entries = h.entries[more:]
		if more > remembered {
			_ = statefile.Replace(h.path, []byte(strings.Join(h.entries, "\n")+"\n"), 0o600)
		}
	}
	return h
}

// Add is called by the editor for every line; entries are added by remember.
func (h *history) Add(string) {}

// Len is the number of entries.
func (h *history) Len() int { return len(h.entries) }

// At is an entry, counted from the newest.
func (h *history) At(i int) string { return h.entries[len(h.entries)-1-i] }

// remember adds an entry, and writes it to the file if there can be one. No
// string has a newline in it, so a space in its place means the same.
func (h *history) remember(entry string) {
	entry = strings.ReplaceAll(entry, "\n", " ")
	if n := len(h.entries); n > 0 && h.entries[n-1] == entry {
		return
	}
	h.entries = append(h.entries, entry)
	if h.path == "" || os.MkdirAll(filepath.Dir(h.path), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		h.path = "" // it can't be kept; the session's own history still works
		return
	}
	defer f.Close()
	_, _ = f.WriteString(entry + "\n")
}
