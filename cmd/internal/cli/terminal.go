package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func Count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// FirstLine is a text's first line, shortened.
func FirstLine(text string, most int) string {
	text, _, more := strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > most {
		text, more = string(runes[:most]), true
	}
	if more {
		text += "…"
	}
	return text
}

// Colours, as parameters of the terminal's escape sequence.
const (
	Red    = "31"
	Yellow = "33"
	Green  = "32"
	Cyan   = "36"
	Bold   = "1"
	Faint  = "2"
)

// Paint prints lines in a colour on a terminal whose user wants colours, and as they
// are elsewhere. See https://no-color.org.
func Paint(out io.Writer, colour, text string) {
	text = PrintableLines(text)
	if IsTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		out, text = Underlying(out).(io.Writer), "\x1b["+colour+"m"+text+"\x1b[0m"
	}
	fmt.Fprintln(out, text)
}

// IsTerminal reports whether a reader or writer is one.
func IsTerminal(stream any) bool {
	f, ok := Underlying(stream).(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// Context is the command's context, or one that never ends.
func Context(cmd *cobra.Command) context.Context {
	if ctx := cmd.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// Interruptible returns the command's context, which an interrupt or a request to end ends, too.
// Within one that is so already it is ended with that one, neither before nor after.
func Interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	type interruptible struct{}
	ctx := Context(cmd)
	if ctx.Value(interruptible{}) != nil {
		return context.WithCancel(ctx)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	return context.WithValue(ctx, interruptible{}, true), stop
}

// TerminalWidth returns how many columns a terminal has; 0 of what is none.
func TerminalWidth(out io.Writer) int {
	f, ok := Underlying(out).(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// release is the version of a release, set by its build:
// -ldflags "-X github.com/mcp-pif/mcp-pif/cmd/internal/cli.release=v1.2.3".
var release = ""

// Version is what this program calls itself.
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

func VersionLine() string {
	return fmt.Sprintf("mcp-pif %s %s %s/%s\n", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// A typedLine is what a reading of a line came to.
type typedLine struct {
	text string
	err  error
}

// typed is where lines are read from, and a reading that has begun.
var typed struct {
	sync.Mutex
	from  io.Reader
	lines *bufio.Reader
	next  chan typedLine // nil: none
}

// ReadLine reads a line that a person types, until the context ends. A line that comes after that
// is the next one's: whoever waited before takes nothing of it.
func ReadLine(ctx context.Context, in io.Reader) (string, error) {
	typed.Lock()
	if typed.from != in {
		typed.from, typed.lines, typed.next = in, bufio.NewReader(in), nil
	}
	next, lines := typed.next, typed.lines
	if next == nil {
		next = make(chan typedLine, 1)
		typed.next = next
		go func() {
			text, err := lines.ReadString('\n')
			next <- typedLine{text, err}
		}()
	}
	typed.Unlock()
	select {
	case line := <-next:
		typed.Lock()
		defer typed.Unlock()
		if typed.next == next {
			typed.next = nil
		}
		return line.text, line.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Confirm reports whether a change is agreed to: by the flag --yes, or by a person at a terminal.
func Confirm(cmd *cobra.Command, yes bool, question string) (bool, error) {
	switch {
	case yes:
		return true, nil
	case !IsTerminal(cmd.InOrStdin()):
		return false, errors.New("not a terminal, so it can't ask: review what is above, then run again with --yes")
	}
	ctx, stop := Interruptible(cmd)
	defer stop()
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	line, _ := ReadLine(ctx, cmd.InOrStdin())
	if ctx.Err() != nil {
		return false, errors.New("interrupted: nothing was changed")
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}

func OrNone(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
