package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-pif/mcp-pif/caps/statefile"
	"github.com/mcp-pif/mcp-pif/cmd/internal/app"
	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// openLines is the way a repl reads: with editing and a history where a person
// types, plainly where input is piped in.
func openLines(cmd *cobra.Command, complete func(string) (string, []string)) lines {
	in, ok := cmd.InOrStdin().(*os.File)
	out, ok2 := cli.Underlying(cmd.OutOrStdout()).(*os.File)
	if !ok || !ok2 || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		return &piped{bufio.NewReader(cmd.InOrStdin())}
	}
	return &typed{in: in, out: out, complete: complete, history: openHistory()}
}

// piped is input that nobody types.
type piped struct{ *bufio.Reader }

func (p *piped) interactive() bool { return false }
func (p *piped) remember(string)   {}

func (p *piped) read(bool) (string, error) {
	line, err := p.ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}

// typed is input from a terminal, in raw mode while a line is edited and only
// then, so that an interrupt reaches a run.
type typed struct {
	in, out     *os.File
	complete    func(string) (string, []string)
	history     *history
	editor      *term.Terminal // nil: to be made
	interrupted bool
	cut         bool // the editor left something of the line out
}

// maxTyped is how many characters a line has when the editor takes no further key, other than of a longer one, which was
// pasted or is of the history.
const maxTyped = 4096

func (t *typed) interactive() bool     { return true }
func (t *typed) remember(entry string) { t.history.remember(entry) }

const ctrlC = 3

// Read passes keys on, noticing an interrupt: the editor takes it for the end.
func (t *typed) Read(b []byte) (int, error) {
	n, err := t.in.Read(b)
	t.interrupted = bytes.IndexByte(b[:n], ctrlC) >= 0
	return n, err
}

func (t *typed) Write(b []byte) (int, error) { return t.out.Write(b) }

func (t *typed) read(first bool) (string, error) {
	old, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(t.in.Fd()), old)
	prompt := "pif> "
	if !first {
		prompt = "...> "
	}
	if t.editor == nil {
		t.editor = term.NewTerminal(t, prompt)
		t.editor.History = t.history
		t.editor.AutoCompleteCallback = t.tab
	}
	t.editor.SetPrompt(prompt)
	if w, h, err := term.GetSize(int(t.out.Fd())); err == nil && w > 0 && h > 0 {
		_ = t.editor.SetSize(w, h)
	}
	t.editor.SetBracketedPasteMode(true)
	defer t.editor.SetBracketedPasteMode(false)
	t.cut = false
	line, err := t.editor.ReadLine()
	if t.cut && err == nil {
		fmt.Fprintf(t.editor, "a typed line has at most %d characters, so this one isn't read; 'mcp-pif run --file FILE' reads a longer one\n", maxTyped)
		return "", errInterrupted
	}
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	if errors.Is(err, io.EOF) {
		_, _ = t.out.WriteString("\r\n")
		if t.interrupted {
			t.editor = nil // the line it holds is dropped with it
			return "", errInterrupted
		}
	}
	return line, err
}

// mostListed is how many candidates are shown.
const mostListed = 100

// tab completes the word before the cursor as far as the candidates agree, and lists
// them where that adds nothing.
func (t *typed) tab(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		t.cut = t.cut || unicode.IsPrint(key) && utf8.RuneCountInString(line) == maxTyped
		return "", 0, false
	}
	word, candidates := t.complete(line[:pos])
	if len(candidates) == 0 {
		return line, pos, true
	}
	common := candidates[0]
	for _, c := range candidates[1:] {
		for !strings.HasPrefix(c, common) {
			common = common[:len(common)-1]
		}
	}
	if len(candidates) > 1 && common == word {
		fmt.Fprintln(t.editor, strings.Join(candidates[:min(len(candidates), mostListed)], "  "))
	}
	done := line[:pos-len(word)] + common
	return done + line[pos:], len(done), true
}

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
