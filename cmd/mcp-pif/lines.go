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
	"github.com/mcp-pif/mcp-pif/core/lazyregexp"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// openLines is the way a repl reads: with editing and a history where a person
// types, plainly where input is piped in.
func openLines(cmd *cobra.Command, complete func(string) (string, []string)) lines {
	in, ok := cmd.InOrStdin().(*os.File)
	out, ok2 := cli.Underlying(cmd.OutOrStdout()).(*os.File)
	if !ok || !ok2 || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return &piped{Reader: bufio.NewReaderSize(cmd.InOrStdin(), mostAhead)}
	}
	if os.Getenv("TERM") == "dumb" {
		return &piped{bufio.NewReaderSize(in, mostAhead), out}
	}
	return &typed{in: in, ahead: bufio.NewReaderSize(in, mostAhead), out: out, complete: complete, history: openHistory()}
}

// piped is input that nobody types, or that a terminal edits itself.
type piped struct {
	*bufio.Reader
	out *os.File // the terminal; nil: there is none
}

func (p *piped) interactive() bool { return p.out != nil }
func (p *piped) remember(string)   {}

// continuing matches the beginning of a line that goes on with the one before.
var continuing = lazyregexp.New(`^\s*(?:\|>|&&|\|\||\.[\pL_]|(?:else|and|or|in|then)(?:\s|$))`)

// mostAhead is how many bytes of a paste or a pipe are there before they are read.
const mostAhead = 64 << 10

// continues reports whether the line that has come and wasn't read yet goes on.
func continues(in *bufio.Reader) bool {
	next, _ := in.Peek(in.Buffered())
	if end := bytes.IndexAny(next, "\r\n\x1b"); end >= 0 {
		next = next[:end]
	}
	return continuing.MatchString(string(next))
}

// goesOn looks only at what has come: whoever writes a line may wait for its answer.
func (p *piped) goesOn() bool { return continues(p.Reader) }

func (p *piped) read(prompt string) (string, error) {
	if p.out != nil {
		fmt.Fprint(p.out, prompt)
	}
	line, err := p.ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}

// typed is input from a terminal, in raw mode while a line is edited and only
// then, so that an interrupt reaches a run.
type typed struct {
	in, out     *os.File
	ahead       *bufio.Reader // of in
	complete    func(string) (string, []string)
	history     *history
	editor      *term.Terminal // nil: to be made
	interrupted bool
	cut         bool // the editor left something of the line out
	more        bool // the line goes on with the next one
}

// maxTyped is how many characters a line has when the editor takes no further key, other than of a longer one, which was
// pasted or is of the history.
const maxTyped = 4096

func (t *typed) interactive() bool     { return true }
func (t *typed) remember(entry string) { t.history.remember(entry) }

const ctrlC = 3

// Read passes keys on, of one line, noticing an interrupt: the editor takes it for the end.
func (t *typed) Read(b []byte) (int, error) {
	if _, err := t.ahead.Peek(1); err != nil {
		return 0, err
	}
	keys, _ := t.ahead.Peek(min(len(b), t.ahead.Buffered()))
	if end := bytes.IndexAny(keys, "\r\n"); end >= 0 {
		if bytes.HasPrefix(keys[end:], []byte("\r\n")) {
			end++
		}
		keys = keys[:end+1]
	}
	t.interrupted = bytes.IndexByte(keys, ctrlC) >= 0
	return t.ahead.Read(b[:len(keys)])
}

func (t *typed) goesOn() bool { return t.more }

// look looks at the next line, and waits for that of a paste, whose end the terminal marks.
func (t *typed) look(pasted bool) bool {
	for n := 1; pasted && n < mostAhead; n++ {
		if next, err := t.ahead.Peek(n); err != nil || next[0] == '\x1b' || bytes.ContainsAny(next[1:], "\r\n\x1b") {
			break
		}
	}
	return continues(t.ahead)
}

func (t *typed) Write(b []byte) (int, error) { return t.out.Write(b) }

func (t *typed) read(prompt string) (string, error) {
	old, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(t.in.Fd()), old)
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
	pasted := errors.Is(err, term.ErrPasteIndicator)
	if pasted {
		err = nil
	}
	t.more = err == nil && t.look(pasted)
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
