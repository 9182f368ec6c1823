package main

import (
	"bytes"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// prompted finds a prompt that waits for a line: a type has an arrow, too, and a list
// of completions is followed by the line again.
var prompted = regexp.MustCompile(`2004h(pif|\.\.\.)> `)

// typing runs the repl on a terminal and types: typed FILE. Each line of the file
// is typed, with Go's escapes and no return at its end, when the prompt has come.
// What the terminal shows is the script's stdout.
func typing(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: typed FILE")
	}
	cmd := exec.Command("script", "-qec", "mcp-pif repl", "/dev/null")
	cmd.Env = append(cmd.Environ(), "TERM=xterm", "NO_COLOR="+ts.Getenv("NO_COLOR"), "XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME"))
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	defer cmd.Process.Kill()
	timer := time.AfterFunc(receiveTime, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	var screen bytes.Buffer
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		keys, err := strconv.Unquote(`"` + strings.ReplaceAll(strings.TrimSuffix(line, "\n"), `"`, `\"`) + `"`)
		ts.Check(err)
		shown := screen.Len()
		for b := make([]byte, 4096); !prompted.Match(screen.Bytes()[shown:]); {
			n, err := out.Read(b)
			screen.Write(b[:n])
			if err != nil {
				ts.Fatalf("the repl ended before %s was typed:\n%s", line, screen.String())
			}
		}
		_, err = io.WriteString(in, keys)
		ts.Check(err)
	}
	_, _ = io.Copy(&screen, out)
	in.Close()
	if err := cmd.Wait(); err != nil {
		ts.Fatalf("%v\n%s", err, screen.String())
	}
	_, err = ts.Stdout().Write(screen.Bytes())
	ts.Check(err)
}
