package main

import (
	"io"
	"strings"
	"testing"

	"github.com/mcp-pif/mcp-pif/cmd/internal/cli"
)

// TestMisused: a flag with a value that can't be meant is status 2, as one that there
// isn't; a right one for which there is nothing is 1.
func TestMisused(t *testing.T) {
	for args, want := range map[string]int{
		"--no-such-flag":                    cli.StatusUsage,
		"--log-level=loud":                  cli.StatusUsage,
		"--timeout=soon":                    cli.StatusUsage,
		"--ask-via=mail":                    cli.StatusUsage,
		"--sandbox=maybe":                   cli.StatusUsage,
		"--sandbox=fs=off --sandbox=fs=off": cli.StatusUsage,
		"caps --sandbox=maybe":              cli.StatusUsage,
		"--cap=fs:./no-such-folder":         cli.StatusFailed,
	} {
		var out, errs strings.Builder
		status := command(append(strings.Fields(args), "--store=memory"), strings.NewReader(""), &out, &errs)
		if status != want || out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("%s: status %d, want %d\nstdout: %s\nstderr: %s", args, status, want, out.String(), errs.String())
		}
	}
	if status := command([]string{"--store=memory"}, strings.NewReader(""), io.Discard, io.Discard); status != 0 {
		t.Errorf("without any: status %d", status)
	}
}
