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
var numberShown = regexp.MustCompile(`(?m)^  (?:yes|clear) (?:.* )?([0-9]{4})\r?$`)

// questionShown is where it shows the question's name.
var questionShown = regexp.MustCompile(`(?m)^  question  ([0-9a-f]{8})\r?$`)

// answering runs mcp-pif approve on a terminal of its own: answer LINE [FLAGS…].
// NUMBER in the line stands for the number shown. What the terminal shows is the
// script's stdout; "! answer" is one that fails.
func answering(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: answer LINE [FLAGS…]")
	}
	screen, err := approving("mcp-pif approve "+strings.Join(args[1:], " "), args[0], "XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME"))
	_, werr := ts.Stdout().Write([]byte(screen))
	ts.Check(werr)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || neg != (err != nil) {
		ts.Fatalf("it ended with %v:\n%s", err, screen)
	}
}

// approving runs a command on a terminal of its own, types a line wherever it asks, the
// next of those that a | separates, and gives what the terminal shows. NUMBER in the line stands for the number shown, and
// QUESTION for the question's name.
func approving(command, line string, env ...string) (shown string, err error) {
	cmd := exec.Command("script", "-qec", command, "/dev/null")
	cmd.Env = append(append(cmd.Environ(), "TERM=xterm"), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer cmd.Process.Kill()
	timer := time.AfterFunc(receiveTime, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	var screen bytes.Buffer
	lines := strings.Split(line, "|")
	b := make([]byte, 4096)
	for typed := 0; ; {
		n, err := out.Read(b)
		screen.Write(b[:n])
		if err != nil {
			break
		}
		if bytes.Count(screen.Bytes(), []byte("\n> ")) == typed {
			continue
		}
		next := "" // leaves what is open
		if typed < len(lines) {
			next = lines[typed]
		}
		typed++
		number := "none"
		if all := numberShown.FindAllSubmatch(screen.Bytes(), -1); all != nil {
			number = string(all[len(all)-1][1])
		}
		if m := questionShown.FindSubmatch(screen.Bytes()); m != nil {
			next = strings.ReplaceAll(next, "QUESTION", string(m[1]))
		}
		_, _ = io.WriteString(in, strings.ReplaceAll(next, "NUMBER", number)+"\r")
	}
	in.Close()
	err = cmd.Wait()
	return strings.ReplaceAll(screen.String(), "\r\n", "\n"), err
}
