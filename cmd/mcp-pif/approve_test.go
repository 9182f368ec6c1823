package main

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// numberShown is where the terminal shows the number that is to be typed.
var numberShown = regexp.MustCompile(`(?m)^  (?:yes|clear) .* ([0-9]{4})\r?$`)

// answering runs mcp-pif approve on a terminal of its own: answer LINE [FLAGS…].
// NUMBER in the line stands for the number shown. What the terminal shows is the
// script's stdout; "! answer" is one that fails.
func answering(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: answer LINE [FLAGS…]")
	}
	cmd := exec.Command("script", "-qec", "mcp-pif approve "+strings.Join(args[1:], " "), "/dev/null")
	cmd.Env = append(cmd.Environ(), "TERM=xterm", "XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME"))
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	defer cmd.Process.Kill()
	timer := time.AfterFunc(receiveTime, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	var screen bytes.Buffer
	for b := make([]byte, 4096); !bytes.Contains(screen.Bytes(), []byte("\n> ")); {
		n, err := out.Read(b)
		screen.Write(b[:n])
		if err != nil {
			break // it asks nothing
		}
	}
	number := "none"
	if m := numberShown.FindSubmatch(screen.Bytes()); m != nil {
		number = string(m[1])
	}
	_, _ = io.WriteString(in, strings.ReplaceAll(args[0], "NUMBER", number)+"\r")
	_, _ = io.Copy(&screen, out)
	in.Close()
	err = cmd.Wait()
	_, werr := ts.Stdout().Write(bytes.ReplaceAll(screen.Bytes(), []byte("\r\n"), []byte("\n")))
	ts.Check(werr)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || neg != (err != nil) {
		ts.Fatalf("it ended with %v:\n%s", err, screen.String())
	}
}
