//go:build amd64 || arm64

package sandbox

import (
	"bufio"
	"context"
	"os/exec"
	"syscall"
	"testing"

	"github.com/mcp-pif/mcp-pif/core/must"
)

// BenchmarkStart compares a start through the launcher with a plain one, to the
// plugin's first words.
func BenchmarkStart(b *testing.B) {
	first := func(b *testing.B, cmd *exec.Cmd, start func() error) {
		out, err := cmd.StdoutPipe()
		must.NoError(b, err)
		must.NoError(b, start())
		if !bufio.NewScanner(out).Scan() {
			b.Fatal("it says nothing")
		}
		must.NoError(b, cmd.Wait())
	}
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command(attacker, "thread")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			first(b, cmd, cmd.Start)
		}
	})
	b.Run("sandboxed", func(b *testing.B) {
		for b.Loop() {
			l, err := New(Spec{Path: attacker, Args: []string{"attacker", "thread"}, Mode: BestEffort})
			must.NoError(b, err)
			first(b, l.Cmd, func() error { _, err := l.Start(context.Background()); return err })
		}
	})
}
