package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// TestMain lets the test binary be the servers of the task over two of them.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == wordServer {
		if err := serve(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestServers: the task over two servers gives the same report in both ways, and a program
// takes the fewer tokens that the root README tells of.
func TestServers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the servers run in the sandbox that Linux has")
	}
	var out bytes.Buffer
	if err := writeServers(&out); err != nil {
		t.Fatal(err)
	}
	for row, least := range map[string]float64{"tokens that enter": 95, "of them for the task": 98, "tokens read": 96} {
		_, line, _ := strings.Cut(out.String(), row)
		line, _, _ = strings.Cut(line, "\n")
		fields := strings.Fields(line)
		fewer := 0.0
		if n := len(fields); n > 3 {
			_, _ = fmt.Sscan(fields[n-3], &fewer) // 0 is too few
		}
		if fewer < least {
			t.Errorf("%s: %s; at least %v %% fewer are told", row, line, least)
		}
	}
	for i := range issues {
		if text, err := json.Marshal(newIssue(i)); err != nil || len(text) != issueBytes {
			t.Fatalf("an issue has %d bytes, %v", len(text), err)
		}
	}
}
