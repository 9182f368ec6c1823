package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// ErrPagerLeft is what a command gets that prints on after its reader left the pager.
var ErrPagerLeft = errors.New("the pager was left")

// A pager keeps what a command prints on a terminal while it fits there, and hands it to
// the user's pager when it doesn't. For whoever asks it is that terminal.
type pager struct {
	terminal      *os.File
	kept          bytes.Buffer
	rows, columns int // of the terminal; rows counts down
	pipe          *os.File
	process       *exec.Cmd
}

// StartPager has the rest of a command's output go through a pager, as git's does, if it
// goes to a terminal: MCP_PIF_PAGER, else PAGER, else less; "" and cat are none.
// [TerminalWriter.Close] ends it.
func StartPager(cmd *cobra.Command) {
	shown, ok := cmd.OutOrStdout().(*TerminalWriter)
	if !ok || !IsTerminal(shown) || os.Getenv("TERM") == "dumb" {
		return
	}
	terminal, ok := shown.Out.(*os.File)
	columns, rows, err := term.GetSize(int(terminal.Fd()))
	if !ok || err != nil || rows == 0 || columns == 0 {
		return
	}
	shown.Out = &pager{terminal: terminal, rows: rows - 1, columns: columns}
}

func (p *pager) Fd() uintptr                { return p.terminal.Fd() }
func (p *pager) Read(b []byte) (int, error) { return p.terminal.Read(b) }

func (p *pager) Write(b []byte) (int, error) {
	if p.pipe != nil {
		if _, err := p.pipe.Write(b); err != nil {
			return 0, ErrPagerLeft
		}
		return len(b), nil
	}
	if p.rows < 0 { // there is no pager
		return p.terminal.Write(b)
	}
	for line := range strings.Lines(string(b)) {
		if p.rows -= max(0, ansi.StringWidth(line)-1) / p.columns; strings.HasSuffix(line, "\n") {
			p.rows--
		}
	}
	p.kept.Write(b)
	if p.rows >= 0 {
		return len(b), nil
	}
	p.rows = -1
	p.start()
	rest := bytes.Clone(p.kept.Bytes())
	p.kept.Reset()
	_, err := p.Write(rest)
	return len(b), err
}

// start starts the pager, if there is one.
func (p *pager) start() {
	command, named := os.LookupEnv("MCP_PIF_PAGER")
	if !named {
		if command, named = os.LookupEnv("PAGER"); !named {
			command = "less"
		}
	}
	if command = strings.TrimSpace(command); command == "" || command == "cat" {
		return
	}
	args := strings.Fields(command)
	name := args[0]
	switch {
	case runtime.GOOS == "windows":
	case strings.ContainsAny(command, "|&;<>()$`\\\"'=*?[#~"): // as git has it: the shell knows what to run
		name, args = "sh", []string{"sh", "-c", command}
	default:
		args = []string{"sh", "-c", "exec " + command}
	}
	if _, err := exec.LookPath(name); err != nil {
		return
	}
	read, write, err := os.Pipe()
	if err != nil {
		return
	}
	defer read.Close()
	p.process = exec.Command(args[0], args[1:]...)
	p.process.Stdin, p.process.Stdout, p.process.Stderr = read, p.terminal, os.Stderr
	p.process.Env = os.Environ()
	for name, value := range map[string]string{"LESS": "FRX", "LV": "-c"} {
		if _, set := os.LookupEnv(name); !set {
			p.process.Env = append(p.process.Env, name+"="+value)
		}
	}
	if err := p.process.Start(); err != nil {
		write.Close()
		return
	}
	signal.Ignore(os.Interrupt) // it is the pager's, which stays until it is left
	p.pipe = write
}

// Close prints what is kept, and waits until the reader leaves the pager.
func (p *pager) Close() error {
	if p.pipe == nil {
		_, err := p.kept.WriteTo(p.terminal)
		return err
	}
	p.pipe.Close()
	return p.process.Wait()
}
